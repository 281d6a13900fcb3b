"""Escrow inputs: data sets, contracts, and the choice of an epsilon by risk."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType, field

from modicum.api.schema.approval import Reason
from modicum.api.schema.escrow import Media
from modicum.api.schema.shape import REFERENCE, Input, Name, NewId, Plain, conflict
from modicum.api.schema.signature import PublicKey
from modicum.core.canonical import Plain as PlainValue
from modicum.core.document import Entries, Items, Kind, Node, Scalar, describe
from modicum.core.errors import Code
from modicum.core.fields import Fields
from modicum.core.reader import fail, line, number

#: Default lifetime of a contract: 30 days.
LASTS_SECONDS: Final = 30 * 24 * 60 * 60
#: Maximum lifetime of a contract: ten years.
LASTS_SECONDS_MAX: Final = 10 * 366 * 24 * 3600
#: Maximum number of queries per contract, and of characters per query file.
QUERIES_MAX: Final = 20
QUERY_MAX: Final = 2**16
#: Maximum length of a program's code, in base64 or not.
CODE_MAX: Final = 2**23
SECONDS_MAX: Final = 24 * 3600
MEMORY_MIB_MAX: Final = 2**20
USES_MAX: Final = 1_000_000
#: Maximum number of candidates.
CANDIDATES_MAX: Final = 1000
# As the ledger and the escrow limit them, which are not loaded for this.
RECIPIENTS_MAX: Final = 100
BLOCKS: Final = (2, 1000)

QueryText = Annotated[str, Meta(min_length=1, max_length=QUERY_MAX)]
Line = Annotated[str, Meta(max_length=200, extra={"read": line})]
Recipients = Annotated[tuple[Name, ...], Meta(max_length=RECIPIENTS_MAX)]


# --- data sets ------------------------------------------------------------------------


class DatasetInput(Input, frozen=True, kw_only=True):
    """The rows of a data set, their declaration, and at registration its owners.

    Attributes:
        table: A tables file that declares them.
        rows: The rows, in base64.
        media: The format of rows.
        owners: By owner, the raw public keys that must sign; none if no signature is
            required.
        quorum: The number of owners that must agree; all if omitted.
        contracts: The maximum number of open contracts per analyst.
        bits: The maximum number of bits disclosed to one person outside differential
            privacy.
    """

    needs = dict.fromkeys(("quorum", "contracts", "bits"), ("owners",))

    table: Annotated[str, Meta(min_length=1)]
    rows: bytes
    media: Media = "csv"
    owners: dict[str, tuple[PublicKey, ...]] | UnsetType = UNSET
    quorum: Annotated[int, Meta(ge=1, le=2**31)] | UnsetType = UNSET
    contracts: Annotated[int, Meta(ge=1, le=2**31)] | UnsetType = UNSET
    bits: Annotated[int, Meta(ge=0, le=2**31)] | UnsetType = UNSET


# --- programs -------------------------------------------------------------------------


def _code(node: Node, what: str) -> str:
    if not isinstance(node, Scalar) or node.kind is not Kind.TEXT:
        message = f"the code of a program is a text, got {describe(node)}"
        raise fail(Code.WRONG_TYPE, message, node)
    if len(node.text) > CODE_MAX:
        raise fail(Code.TOO_LARGE, "the code of a program is too long", node)
    return node.text


def _arguments(node: Node, what: str) -> dict[str, PlainValue]:
    return {key.text: _plain(value) for key, value in Fields(node, what).rest()}


def _plain(node: Node) -> PlainValue:
    """Return a program argument as plain data; fractions are texts."""
    match node:
        case Items(items=listed):
            return [_plain(one) for one in listed]
        case Entries(entries=entries):
            return {key.text: _plain(value) for key, value in entries}
        case Scalar(kind=Kind.NUMBER):
            found = number(node, "an argument")
            if found.denominator != 1:
                raise fail(
                    Code.WRONG_TYPE,
                    "an argument of a program cannot be a fraction",
                    node,
                    help='write it as a text, as in `"0.25"`',
                )
            return int(found)
        case Scalar(kind=Kind.BOOLEAN, text=written):
            return written.lower() == "true"
        case Scalar(kind=Kind.TEXT, text=written):
            return written
        case Scalar():
            return None


CodeText = Annotated[str, Meta(min_length=1, extra={"read": _code})]


class ProgramInput(Input, frozen=True, kw_only=True):
    """A program; its code is text or base64.

    Attributes:
        language: Its language.
        code: Its code.
        code_base64: Its code in base64.
        arguments: Its inputs besides the tables; fractions are texts.
        range: The least and the greatest score.
        compares: Whether it receives exact and private answers together.
        catalogue: Its name in the catalogue, if its text matches the catalogue.
    """

    one_of = ("code", "code_base64")

    language: Literal["python", "wasm"] = "python"
    code: CodeText | UnsetType = UNSET
    code_base64: (
        Annotated[CodeText, Meta(extra_json_schema={"contentEncoding": "base64"})]
        | UnsetType
    ) = UNSET
    arguments: Annotated[Plain, Meta(extra={"read": _arguments})] = field(
        default_factory=dict
    )
    range: tuple[Fraction, Fraction]
    compares: bool = False
    catalogue: Line = ""


_TASK_FILE: Final = {
    "type": "object",
    "properties": {"task": {}, "evaluate": {}},
    "required": ["task", "evaluate"],
    "additionalProperties": False,
}
if TYPE_CHECKING:
    AnyProgram: TypeAlias = ProgramInput | Node
else:  # The input stays a tree: it may be a task file.
    AnyProgram = Annotated[
        Any,
        Meta(
            extra_json_schema={
                "oneOf": [{"$ref": REFERENCE.format(name="ProgramInput")}, _TASK_FILE]
            }
        ),
    ]


class BlocksInput(Input, frozen=True, kw_only=True):
    """The division of people into blocks, for a private score on exact answers.

    Attributes:
        number: Into how many blocks.
        loss: The loss per instance of the unit.
        unit: The privacy unit to divide; the only one if omitted.
        noise: The kind of noise.
    """

    number: Annotated[int, Meta(ge=BLOCKS[0], le=BLOCKS[1])]
    loss: Fraction
    unit: Name | UnsetType = UNSET
    noise: Literal["laplace", "gaussian"] = "laplace"


# --- contracts ------------------------------------------------------------------------


class ContractProposal(Reason, frozen=True, kw_only=True, tag_field="flow"):
    """A proposed contract.

    Attributes:
        contract: Its id.
        lasts_seconds: Its lifetime.
        uses: The maximum number of uses; the default if omitted.
    """

    contract: NewId
    lasts_seconds: Annotated[int, Meta(ge=1, le=LASTS_SECONDS_MAX)] = LASTS_SECONDS
    uses: Annotated[int, Meta(ge=1, le=USES_MAX)] | UnsetType = UNSET


class QueryProposal(ContractProposal, frozen=True, kw_only=True, tag="query"):
    """A contract to run queries and withhold their answers.

    Attributes:
        queries: Query files, as texts.
        exact: Whether to compute exact answers, too.
        analyst: The analyst; the caller if omitted.
    """

    queries: Annotated[
        tuple[QueryText, ...], Meta(min_length=1, max_length=QUERIES_MAX)
    ]
    exact: bool = False
    analyst: Name | UnsetType = UNSET


class TaskProposal(ContractProposal, frozen=True, kw_only=True, tag="task"):
    """A contract to run a program on withheld answers and withhold its scores.

    Attributes:
        query: The query contract whose answers it reads.
        program: The program, or a task of the catalogue.
        tier: The sandbox; the default of its language if omitted.
        seconds: The fixed duration of each run.
        memory_mib: Its memory limit.
        blocks: Into which blocks people are divided, if they are.
    """

    query: Name
    program: AnyProgram
    tier: (
        Annotated[
            Line, Meta(extra_json_schema={"enum": ["bubblewrap", "gvisor", "wasm"]})
        ]
        | UnsetType
    ) = UNSET
    seconds: Annotated[int, Meta(ge=1, le=SECONDS_MAX)] = 60
    memory_mib: Annotated[int, Meta(ge=1, le=MEMORY_MIB_MAX)] = 2048
    blocks: BlocksInput | UnsetType = UNSET


class OutputProposal(ContractProposal, frozen=True, kw_only=True, tag="output"):
    """A contract to disclose private answers.

    Attributes:
        query: The query contract whose answers are disclosed.
        to: The recipients; the analyst if omitted.
    """

    query: Name
    to: Recipients = ()


class SignalProposal(ContractProposal, frozen=True, kw_only=True, tag="signal"):
    """A contract to disclose a score on private answers.

    Attributes:
        task: The contract whose score it is.
        to: The recipients; the analyst if omitted.
    """

    task: Name
    to: Recipients = ()


class RawSignalProposal(SignalProposal, frozen=True, kw_only=True, tag="raw-signal"):
    """A contract to disclose a score on exact answers, binned or exact.

    Attributes:
        width: The bin width; only the bin is disclosed.
        exact: Whether to disclose the exact score, which needs two approvals.
    """

    width: Fraction | UnsetType = UNSET
    exact: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.width is UNSET) is not self.exact:
            raise conflict(
                "a raw signal is released in bins of a `width`, or `exact`",
                "give one of them; `exact: true` needs two approvers",
            )


#: The kinds of proposed contracts.
ContractInput: TypeAlias = (
    QueryProposal | TaskProposal | OutputProposal | SignalProposal | RawSignalProposal
)


# --- risk -----------------------------------------------------------------------------


class RiskInput(Input, frozen=True, kw_only=True):
    """A query of a contract, or a query file, and the desired similarity of people.

    Attributes:
        contract: The contract of the query.
        query: Which query of the contract, if it has several.
        file: The query file, without a contract.
        tau: The least ratio of the indicators of two people.
        delta: For Gaussian noise.
        epsilons: The candidates; the published ones if omitted.
    """

    one_of = ("contract", "file")

    contract: Name | UnsetType = UNSET
    query: Name | UnsetType = UNSET
    file: QueryText | UnsetType = UNSET
    tau: Fraction
    delta: Fraction | UnsetType = UNSET
    epsilons: (
        Annotated[tuple[Fraction, ...], Meta(min_length=1, max_length=CANDIDATES_MAX)]
        | UnsetType
    ) = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.file and self.query:
            message = "`query` selects a query of a `contract`"
            raise conflict(message, "leave it out with a `file`")
