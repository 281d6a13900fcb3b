"""Running what a contract permits: queries and tasks, whose results are withheld.

A run is counted before anything is read. Whatever becomes of it, who asked is told no
more than that it ended: why it failed may be a fact about rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final

from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    ModicumError,
    Problem,
    StaleError,
    UnavailableError,
)
from modicum.escrow.programs import Program, Table
from modicum.ledger.log.contracts import Charge, Contract, QueryTerms, TaskTerms
from modicum.ledger.log.escrow_events import FlowBegun, FlowFailed, FlowWithheld
from modicum.ledger.log.events import ReleaseStarted
from modicum.ledger.state.escrow import not_permitted
from modicum.ledger.state.flow import Flow, in_general
from modicum.policy import CompiledPolicy
from modicum.query.answers import Answers
from modicum.query.document import QueryFile
from modicum.query.tables import Tables
from modicum.workspace.book import Entry
from modicum.workspace.decision import Decision
from modicum.workspace.escrowing import places
from modicum.workspace.escrowing.declared import charge_of, read_query, tables_of
from modicum.workspace.escrowing.ledger import Ledger
from modicum.workspace.escrowing.ports import Equipment, Limits, Sealed
from modicum.workspace.escrowing.programs_kept import program_of
from modicum.workspace.escrowing.results import (
    answers_from_bytes,
    answers_to_bytes,
    score_to_bytes,
)
from modicum.workspace.governing.governance import active_policy
from modicum.workspace.querying.ports import Engines, Sampler
from modicum.workspace.querying.running import answered, must_fit
from modicum.workspace.steps import step

_MIB: Final = 2**20
_PRIVATE_FIRST: Final = ("private", "exact")
_CHANGED: Final = "its contract did not permit it any more"
_DENIED: Final = "another query of its contract was denied"


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a run.

    Attributes:
        denied: What the ledger said to the query that it denied; None if it ran.
    """

    denied: Decision | None = None


@dataclass(frozen=True, slots=True)
class Tools:
    """What runs need.

    Attributes:
        equipment: The vault, and sandboxes.
        engines: Where engines for queries come from.
    """

    equipment: Equipment
    engines: Engines


class NoNoise:
    """A sampler that adds nothing: what it answers is exact, and never goes out."""

    def check(self, noise: str, scale: Fraction, sensitivity: Fraction) -> None:
        """Return; there is nothing to draw."""

    def add(self, noise: str, scale: Fraction, values: Sequence[int]) -> list[int]:
        """Return whole numbers as they are.

        Args:
            noise: What would be added.
            scale: Its scale.
            values: The numbers.
        """
        return list(values)


def run_query(ledger: Ledger, tools: Tools, contract: Contract) -> Ran:
    """Run the queries of a contract, and withhold their answers.

    Args:
        ledger: The ledger.
        tools: What it needs.
        contract: The contract.

    Raises:
        ApprovalError: If people must agree to a release first.
        ConflictError: If the contract does not permit it now.
        StaleError: If its queries were priced under another policy.
        UnavailableError: If it ended without answers; its loss is spent then.
    """
    terms = contract.terms
    assert isinstance(terms, QueryTerms)
    queries = ledger.turn(lambda entry: _queries(entry, contract, terms), deciding=True)
    policy = queries[0].policy
    sampler = tools.engines.sampler()
    denied = _reserve(ledger, queries)
    if denied is not None:
        return Ran(denied)
    try:
        run = ledger.turn(lambda entry: _begin_query(entry, contract, terms, policy))
    except (ConflictError, InputError, StaleError):
        # The policy or people's minds changed since. Nothing was started.
        for one in queries:
            ledger.void(one.heading.id, reason=_CHANGED)
        raise

    def work() -> dict[str, bytes]:
        by_name: dict[str, Sampler] = {"private": sampler, "exact": NoNoise()}
        with ExitStack() as stack:
            rows = _rows(ledger, tools, contract, stack)
            return {
                name: answers_to_bytes(
                    {
                        one.heading.id: _answers(one, rows, tools, by_name[name])
                        for one in queries
                    }
                )
                for name in terms.results
            }

    return _carried_out(ledger, tools, contract, run, work)


def run_task(ledger: Ledger, tools: Tools, contract: Contract, query: Flow) -> Ran:
    """Run the program of a contract, on private and exact answers apart.

    Args:
        ledger: The ledger.
        tools: What it needs.
        contract: The contract.
        query: The contract whose answers it runs on.

    Raises:
        ConflictError: If the contract does not permit it now.
        UnavailableError: If its sandbox is not there, and nothing ran; or it ended
            without scores.
    """
    terms = contract.terms
    assert isinstance(terms, TaskTerms)
    ledger.turn(lambda entry: _must_be_permitted(entry, contract))
    sandbox = tools.equipment.sandbox(terms.tier)
    sandbox.check()
    program = program_of(tools.equipment.vault, terms.program)
    limits = Limits(float(terms.seconds), terms.memory_mib * _MIB)
    run = ledger.turn(lambda entry: _begin(entry, contract))

    def work() -> dict[str, bytes]:
        found = {}
        # Whatever a run leaves in the caches of the machine, the next one may find. So
        # what is given exact answers runs last; its score tells of them anyway.
        for name in sorted(terms.results, key=_PRIVATE_FIRST.index):
            tables, reference = _inputs(tools, query, program, name)
            score = sandbox.score(program, tables, reference, limits)
            found[name] = score_to_bytes(score)
        return found

    return _carried_out(ledger, tools, contract, run, work)


def where_is(flow: Flow, name: str) -> Sealed:
    """Return where a result lies in the vault.

    Args:
        flow: The contract that it is a result of.
        name: Which result.
    """
    return Sealed(
        places.of_result(flow.contract.digest, flow.ended_by, name), flow.results[name]
    )


def _queries(entry: Entry, contract: Contract, terms: QueryTerms) -> list[QueryFile]:
    _must_be_permitted(entry, contract)
    compiled = active_policy(entry.book)
    data = entry.book.state.escrow.data
    tables = tables_of(data, contract.data.values(), compiled)
    return [_query(one, tables, compiled) for one in terms.charges]


def _query(charge: Charge, tables: Tables, compiled: CompiledPolicy) -> QueryFile:
    query = read_query(charge.text, tables, compiled)
    if charge_of(charge.text, query, compiled).content != charge.content:
        raise StaleError(
            Problem(
                Code.POLICY_STALE,
                f"the query `{query.heading.id}` means something else under the active"
                " policy than when people agreed to it",
                help="propose it again, under another id",
            )
        )
    return query


def _must_be_permitted(entry: Entry, contract: Contract) -> None:
    """Refuse early, before anything is reserved; the fold refuses again."""
    state = entry.book.state
    flow = state.escrow.flow(contract.digest)
    said = state.approvals.get(("contract", contract.digest), ())
    consent = state.escrow.consents(flow, said)
    why = "its results are withheld" if flow.results else ""
    why = why or in_general(flow, state.escrow.data, consent, entry.now)
    if why:
        raise not_permitted(flow, why)


def _reserve(ledger: Ledger, queries: Sequence[QueryFile]) -> Decision | None:
    """Reserve what queries cost; return the denial if one is denied."""
    reserved: list[str] = []
    for query in queries:
        decision = ledger.submit(query.described)
        if not decision.allowed:
            for one in reserved:
                ledger.void(one, reason=_DENIED)
            return decision
        reserved.append(query.heading.id)
    return None


def _begin_query(
    entry: Entry, contract: Contract, terms: QueryTerms, policy: str
) -> int:
    """Count a run of queries that mean what they did when people agreed to them."""
    if active_policy(entry.book).policy.digest != policy:
        _queries(entry, contract, terms)  # Another one became active since.
    return _begin(entry, contract)


def _begin(entry: Entry, contract: Contract) -> int:
    """Count a run, and spend what it costs: rows may be read from here on."""
    terms = contract.terms
    assert isinstance(terms, QueryTerms | TaskTerms)
    for one in terms.charges:
        # What started before may have told something: then this refuses.
        step(ReleaseStarted(one.release), entry)
    run = entry.book.state.escrow.flow(contract.digest).runs + 1
    entry.add(FlowBegun(contract.digest, run))
    return run


def _rows(
    ledger: Ledger, tools: Tools, contract: Contract, stack: ExitStack
) -> Mapping[str, object]:
    def look(entry: Entry) -> dict[str, tuple[Sealed, str]]:
        data = entry.book.state.escrow.data
        found = {}
        for one in contract.data.values():
            version = data[one.id].versions[one.number]
            sealed = Sealed(places.of_data(one), version.sealed)
            found[one.id] = sealed, version.media
        return found

    return {
        name: stack.enter_context(tools.equipment.rows(*where))
        for name, where in ledger.turn(look).items()
    }


def _answers(
    query: QueryFile, rows: Mapping[str, object], tools: Tools, sampler: Sampler
) -> Answers:
    sources = {name: rows[name] for name in query.asked.query.tables}
    with tools.engines.engine("duckdb", sources, "", spills=False) as engine:
        must_fit(query.lowered, engine, sampler)
        return answered(query, engine, sampler, tools.engines.lots())


def _inputs(
    tools: Tools, query: Flow, program: Program, name: str
) -> tuple[Mapping[str, Table], Mapping[str, Table] | None]:
    vault = tools.equipment.vault
    tables = answers_from_bytes(vault.open(where_is(query, name))).tables
    if not program.compares:
        return tables, None
    return tables, answers_from_bytes(vault.open(where_is(query, "private"))).tables


def _carried_out(
    ledger: Ledger,
    tools: Tools,
    contract: Contract,
    run: int,
    work: Callable[[], Mapping[str, bytes]],
) -> Ran:
    """Do the work of a run that began, and withhold what it computed."""
    digest, results = contract.digest, dict[str, str]()
    try:
        for name, content in work().items():
            place = places.of_result(digest, run, name)
            results[name] = tools.equipment.vault.seal(place, content).digest
    except Exception:  # noqa: BLE001 - it may quote rows; that it failed is told below
        results = {}
    body = FlowWithheld(digest, run, results) if results else FlowFailed(digest, run)
    ledger.turn(partial(_add, body))
    if not results:
        raise _ended(contract)
    return Ran()


def _add(body: FlowWithheld | FlowFailed, entry: Entry) -> None:
    entry.add(body)


def _ended(contract: Contract) -> ModicumError:
    return UnavailableError(
        Problem(
            Code.ENGINE_FAILED,
            f"a run of the contract `{contract.id}` ended without a result",
            notes=(
                "why is not told: it may be a fact about rows",
                "the use is counted, and what it charged is spent",
            ),
            help="its owners may look at the data, and try the query on a copy",
        )
    )
