"""What is asked of an escrow: data sets, contracts, and an epsilon by risk."""

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

#: A contract ends after so many seconds if nobody says otherwise: 30 days.
LASTS_SECONDS: Final = 30 * 24 * 60 * 60
#: A contract holds for so long at most: ten years.
LASTS_SECONDS_MAX: Final = 10 * 366 * 24 * 3600
#: A contract asks so many queries at most, and a query file has so many characters.
QUERIES_MAX: Final = 20
QUERY_MAX: Final = 2**16
#: The code of a program has so many characters at most, in base64 or not.
CODE_MAX: Final = 2**23
SECONDS_MAX: Final = 24 * 3600
MEMORY_MIB_MAX: Final = 2**20
USES_MAX: Final = 1_000_000
#: So many candidates are taken.
CANDIDATES_MAX: Final = 1000
# As the ledger and the escrow limit them, which are not loaded for this.
RECIPIENTS_MAX: Final = 100
BLOCKS: Final = (2, 1000)

QueryText = Annotated[str, Meta(min_length=1, max_length=QUERY_MAX)]
Line = Annotated[str, Meta(max_length=200, extra={"read": line})]
Recipients = Annotated[tuple[Name, ...], Meta(max_length=RECIPIENTS_MAX)]


# --- data sets ------------------------------------------------------------------------


class DatasetInput(Input, frozen=True, kw_only=True):
    """The rows of a data set, their declaration, and at first whose they are.

    Attributes:
        table: A tables file that declares them.
        rows: The rows, in base64.
        media: How they are written.
        owners: Whose they are: by name the raw public keys that must sign, none if
            nobody need.
        quorum: So many owners must agree; all, if left out.
        contracts: So many contracts may be open for one analyst.
        bits: So many bits may one person be told outside differential privacy.
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
    """Return a value as programs are given it: no fractions, which are texts there."""
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
    """A program: its code as a text, or in base64.

    Attributes:
        language: What it is written in.
        code: Its code.
        code_base64: Its code in base64.
        arguments: What it is given beside the tables; fractions are texts.
        range: The least and the greatest score.
        compares: Whether it is given exact and private answers together.
        catalogue: What the catalogue calls it, if its text is that of the catalogue.
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
else:  # What was sent stays a tree: it may be a task file.
    AnyProgram = Annotated[
        Any,
        Meta(
            extra_json_schema={
                "oneOf": [{"$ref": REFERENCE.format(name="ProgramInput")}, _TASK_FILE]
            }
        ),
    ]


class BlocksInput(Input, frozen=True, kw_only=True):
    """How people are divided, for a private score on exact answers.

    Attributes:
        number: Into how many blocks.
        loss: What it may cost one instance of the unit.
        unit: The privacy unit that is divided; the only one, if left out.
        noise: The kind of noise.
    """

    number: Annotated[int, Meta(ge=BLOCKS[0], le=BLOCKS[1])]
    loss: Fraction
    unit: Name | UnsetType = UNSET
    noise: Literal["laplace", "gaussian"] = "laplace"


# --- contracts ------------------------------------------------------------------------


class ContractProposal(Reason, frozen=True, kw_only=True, tag_field="flow"):
    """What is to flow: the answers of queries, a program, or what goes out.

    Attributes:
        contract: What it is called.
        lasts_seconds: How long it holds.
        uses: How often it may be used; what is usual, if left out.
    """

    contract: NewId
    lasts_seconds: Annotated[int, Meta(ge=1, le=LASTS_SECONDS_MAX)] = LASTS_SECONDS
    uses: Annotated[int, Meta(ge=1, le=USES_MAX)] | UnsetType = UNSET


class QueryProposal(ContractProposal, frozen=True, kw_only=True, tag="query"):
    """Queries that are to run, whose answers are withheld.

    Attributes:
        queries: Query files, as texts.
        exact: Whether exact answers are computed, too.
        analyst: For whom; you, if left out.
    """

    queries: Annotated[
        tuple[QueryText, ...], Meta(min_length=1, max_length=QUERIES_MAX)
    ]
    exact: bool = False
    analyst: Name | UnsetType = UNSET


class TaskProposal(ContractProposal, frozen=True, kw_only=True, tag="task"):
    """A program that is to run on withheld answers, whose scores are withheld.

    Attributes:
        query: The contract whose answers it runs on.
        program: The program, or a task of the catalogue.
        tier: The sandbox; the usual of its language, if left out.
        seconds: How long each run takes.
        memory_mib: How much memory it may use.
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
    """Private answers that are to go out.

    Attributes:
        query: The contract whose answers they are.
        to: Who may have them; the analyst, if nobody is named.
    """

    query: Name
    to: Recipients = ()


class SignalProposal(ContractProposal, frozen=True, kw_only=True, tag="signal"):
    """A score on private answers that is to go out.

    Attributes:
        task: The contract whose score it is.
        to: Who may have it; the analyst, if nobody is named.
    """

    task: Name
    to: Recipients = ()


class RawSignalProposal(SignalProposal, frozen=True, kw_only=True, tag="raw-signal"):
    """A score on exact answers that is to go out, in bins of a width, or exactly.

    Attributes:
        width: How wide the bins are, of which one is told.
        exact: Whether the score itself is told, to which two people must agree.
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


#: What is to flow.
ContractInput: TypeAlias = (
    QueryProposal | TaskProposal | OutputProposal | SignalProposal | RawSignalProposal
)


# --- risk -----------------------------------------------------------------------------


class RiskInput(Input, frozen=True, kw_only=True):
    """A query of a contract, or a query file, and how alike people are to be.

    Attributes:
        contract: The contract that asks it.
        query: Which query of the contract, if it has several.
        file: The query file, without a contract.
        tau: The least ratio of the indicators of two people.
        delta: For Gaussian noise.
        epsilons: The candidates; the published ones, if left out.
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
