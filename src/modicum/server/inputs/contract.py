"""Reading what is asked of the escrow: exactly, and nothing unheard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Final, TypeAlias

from modicum.api.local.escrow.proposal import LASTS_SECONDS, QUERIES_MAX, Purpose
from modicum.api.ports.escrow import Limits
from modicum.core.document import Node
from modicum.core.errors import Code
from modicum.core.fields import Fields
from modicum.core.reader import (
    boolean,
    choice,
    count,
    fail,
    items,
    line,
    release_id,
    text,
)
from modicum.escrow.blocks import BLOCKS_MAX, BLOCKS_MIN, ByBlocks
from modicum.escrow.programs import Program
from modicum.escrow.task_files import TaskFile
from modicum.ledger.state.contract_checks import RECIPIENTS_MAX
from modicum.server.inputs.contract_schema import (
    LASTS_SECONDS_MAX,
    MEMORY_MIB_MAX,
    NOISES,
    QUERY_MAX,
    SECONDS_MAX,
    USES_MAX,
)
from modicum.server.inputs.program import amount, read_program


@dataclass(frozen=True, slots=True)
class QueryInput:
    """Queries that are to run.

    Attributes:
        queries: Query files, as texts.
        exact: Whether exact answers are computed, too.
    """

    queries: tuple[str, ...] = field(repr=False)
    exact: bool


@dataclass(frozen=True, slots=True)
class TaskInput:
    """A task that is to run.

    Attributes:
        query: The contract whose answers it runs on.
        program: A program, or what the catalogue makes one of.
        tier: The sandbox; None for the usual of its language.
        limits: What it may use up.
        blocks: Into which blocks people are divided; None if they are not.
    """

    query: str
    program: Program | TaskFile
    tier: str | None
    limits: Limits
    blocks: ByBlocks | None = None


@dataclass(frozen=True, slots=True)
class OutputInput:
    """Private answers that are to go out.

    Attributes:
        query: The contract whose answers they are.
    """

    query: str


@dataclass(frozen=True, slots=True)
class SignalInput:
    """A score on private answers that is to go out.

    Attributes:
        task: The contract whose score it is.
    """

    task: str


@dataclass(frozen=True, slots=True)
class RawSignalInput:
    """A score on exact answers that is to go out.

    Attributes:
        task: The contract whose score it is.
        width: How wide the bins are, of which one is told; None for the score itself.
    """

    task: str
    width: Fraction | None


Wanted: TypeAlias = QueryInput | TaskInput | OutputInput | SignalInput | RawSignalInput


@dataclass(frozen=True, slots=True)
class ContractInput:
    """A contract that somebody asks for.

    Attributes:
        heading: What it is called, why, and how long.
        wanted: What is to flow.
    """

    heading: Purpose
    wanted: Wanted


def read_contract(node: Node) -> ContractInput:
    """Return the contract that a form asks for."""
    fields = Fields(node, "the request")
    flow = choice(fields.take("flow"), "flow", _BY_FLOW, Code.UNKNOWN_CHOICE)
    wanted = _BY_FLOW[flow](fields)
    heading = _heading(fields, flow)
    fields.finish()
    return ContractInput(heading, wanted)


def _heading(fields: Fields, flow: str) -> Purpose:
    identifier = release_id(fields.take("contract"), "`contract`")
    reason = text(fields.take("reason"), "`reason`")
    lasts = _count(fields, "lasts_seconds", LASTS_SECONDS_MAX, LASTS_SECONDS)
    uses = _count(fields, "uses", USES_MAX, 0) or None
    to, analyst = None, None
    if flow == "query":
        analyst = fields.take_optional("analyst")
    elif flow != "task":
        to = fields.take_optional("to")
    listed = () if to is None else items(to, "`to`")
    if len(listed) > RECIPIENTS_MAX:
        message = f"`to` names more than {RECIPIENTS_MAX} people"
        raise fail(Code.TOO_LARGE, message, fields.node)
    return Purpose(
        identifier,
        reason,
        lasts,
        uses,
        tuple(_name(one, "each of `to`") for one in listed),
        "" if analyst is None else _name(analyst, "`analyst`"),
    )


# --- what is to flow ------------------------------------------------------------------


def _query(fields: Fields) -> QueryInput:
    listed = items(fields.take("queries"), "`queries`")
    if not 1 <= len(listed) <= QUERIES_MAX:
        message = f"`queries` holds 1 to {QUERIES_MAX} query files, as texts"
        raise fail(Code.OUT_OF_RANGE, message, fields.node)
    queries = tuple(
        text(one, "each of `queries`", characters_max=QUERY_MAX) for one in listed
    )
    return QueryInput(queries, _flag(fields, "exact"))


def _task(fields: Fields) -> TaskInput:
    query = _name(fields.take("query"), "`query`")
    program = read_program(fields.take("program"))
    tier = fields.take_optional("tier")
    seconds = _count(fields, "seconds", SECONDS_MAX, 60)
    memory = _count(fields, "memory_mib", MEMORY_MIB_MAX, 2048)
    return TaskInput(
        query,
        program,
        None if tier is None else line(tier, "`tier`"),
        Limits(float(seconds), memory * 2**20),
        _blocks(fields),
    )


def _blocks(fields: Fields) -> ByBlocks | None:
    node = fields.take_optional("blocks")
    if node is None:
        return None
    inner = Fields(node, "`blocks`")
    number = count(
        inner.take("number"), "`number`", at_least=BLOCKS_MIN, at_most=BLOCKS_MAX
    )
    loss = amount(inner.take("loss"), "`loss`")
    unit, noise = inner.take_optional("unit"), inner.take_optional("noise")
    word = "laplace"
    if noise is not None:
        word = choice(noise, "noise", NOISES, Code.UNKNOWN_CHOICE)
    inner.finish()
    return ByBlocks(
        number,
        loss,
        "" if unit is None else _name(unit, "`unit`"),
        "gaussian" if word == "gaussian" else "laplace",
    )


def _output(fields: Fields) -> OutputInput:
    return OutputInput(_name(fields.take("query"), "`query`"))


def _signal(fields: Fields) -> SignalInput:
    return SignalInput(_name(fields.take("task"), "`task`"))


def _raw_signal(fields: Fields) -> RawSignalInput:
    task = _name(fields.take("task"), "`task`")
    width, exact = fields.take_optional("width"), _flag(fields, "exact")
    if (width is None) is not exact:
        raise fail(
            Code.KEYS_CONFLICT,
            "a raw signal is told in bins of a `width`, or `exact`",
            fields.node,
            help="write one of both; `exact: true` takes two people who agree",
        )
    return RawSignalInput(task, None if width is None else amount(width, "`width`"))


_BY_FLOW: Final[Mapping[str, Callable[[Fields], Wanted]]] = MappingProxyType(
    {
        "query": _query,
        "task": _task,
        "output": _output,
        "signal": _signal,
        "raw-signal": _raw_signal,
    }
)


# --- values ---------------------------------------------------------------------------


def _name(node: Node, what: str) -> str:
    return text(node, what, characters_max=200)


def _flag(fields: Fields, key: str) -> bool:
    node = fields.take_optional(key)
    return node is not None and boolean(node, f"`{key}`")


def _count(fields: Fields, key: str, most: int, usual: int) -> int:
    node = fields.take_optional(key)
    if node is None:
        return usual
    return count(node, f"`{key}`", at_least=1, at_most=most)
