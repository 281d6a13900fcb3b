"""Contracts under review: their state and full content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from modicum.api.local.balances import LedgerBalances, Reader
from modicum.api.local.decision import Decision
from modicum.api.local.escrow.block_scores import read_again
from modicum.api.local.escrow.declared_tables import charge_of, read_query, tables_of
from modicum.api.local.escrow.retry import EscrowReader
from modicum.api.local.governance.approval_cases import VoteEntry, vote_entry
from modicum.api.local.queries.actions import plan_of
from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, ConflictError, InputError, Problem, StaleError
from modicum.escrow.block_release import BlockScore
from modicum.ledger import Event, event_of
from modicum.ledger.log.contracts import Charge, QueryTerms, TaskTerms
from modicum.ledger.log.events import ApprovalGiven
from modicum.ledger.state.consent import Agreement, Consents
from modicum.ledger.state.datasets import DataSet
from modicum.ledger.state.escrow import Escrow as EscrowState
from modicum.ledger.state.escrow import not_permitted
from modicum.ledger.state.flow import Flow, in_general
from modicum.query.query_file import QueryFile


@dataclass(frozen=True, slots=True)
class QueryPrice:
    """A query of a contract, or a score of blocks, and its loss.

    Attributes:
        charge: The query or the score as the contract has it.
        query: The query, read under the active policy; None if that cannot be done.
        decision: The current decision; None if there is none.
        problem: Why there is no decision; empty otherwise.
        code: The code of that; None for none.
        score: The score of blocks, likewise.
    """

    charge: Charge
    query: QueryFile | None = None
    decision: Decision | None = None
    problem: str = ""
    code: Code | None = None
    score: BlockScore | None = None


@dataclass(frozen=True, slots=True)
class ContractReview:
    """A contract under review.

    Attributes:
        flow: The contract and its state.
        consents: The consents of its owners.
        stage: Its stage, as text.
        waits: Whether people may agree to it still, so that it can be used.
    """

    flow: Flow
    consents: Consents
    stage: str
    waits: bool = False


@dataclass(frozen=True, slots=True)
class ContractRecord:
    """All ledger data about a contract.

    Attributes:
        review: The contract.
        reason: The requester's reason.
        above: The contracts that it builds on, the nearest first.
        votes: The owners' votes, oldest first.
        queries: Its queries, or its score of blocks, if any.
        shredded: The tables whose data was shredded.
        seq: The number of the last entry when this was looked at.
        head: The hash of that entry.
    """

    review: ContractReview
    reason: str
    above: tuple[ContractReview, ...]
    votes: tuple[VoteEntry, ...]
    queries: tuple[QueryPrice, ...]
    shredded: tuple[str, ...]
    seq: int
    head: str


def named(escrow: EscrowState, name: str) -> Flow:
    """Return a contract by its name."""
    digest = escrow.names.get(name)
    if digest is not None:
        return escrow.flow(digest)
    raise InputError(
        Problem(
            Code.CONTRACT_UNKNOWN,
            f"unknown contract `{name[:200]}`",
            label=nearest(name, list(escrow.names)),
            help="list the contracts with  modicum escrow list",
        )
    )


def contract_reviews(ledger: EscrowReader) -> tuple[ContractReview, ...]:
    """Return all contracts, oldest first. Writes nothing."""
    book, _, now = ledger.current()
    flows = book.state.escrow.flows.values()
    return tuple(_looked(book, one, now) for one in flows)


def contract_review(ledger: EscrowReader, name: str) -> ContractReview:
    """Return a contract. Writes nothing."""
    book, _, now = ledger.current()
    return _looked(book, named(book.state.escrow, name), now)


def examined(ledger: EscrowReader, name: str) -> ContractRecord:
    """Return all ledger data about a contract. Writes nothing."""
    book, reader, now = ledger.current()
    escrow = book.state.escrow
    flow = named(escrow, name)
    above = []
    parent = flow.contract.parent
    while parent:
        one = escrow.flow(parent)
        above.append(_looked(book, one, now))
        parent = one.contract.parent
    return ContractRecord(
        _looked(book, flow, now),
        _reason(reader, flow),
        tuple(above),
        tuple(_vote(reader, one) for one in _votes(book, flow)),
        _queries(ledger, flow, escrow),
        _shredded(flow, escrow.data),
        book.state.seq,
        book.state.head,
    )


def must_be_usable(ledger: EscrowReader, name: str) -> None:
    """Refuse early what a contract does not permit now; the fold refuses again."""
    book, _, now = ledger.current()
    escrow = book.state.escrow
    flow = named(escrow, name)
    why = "it has run, and its results are withheld" if flow.results else ""
    consents = escrow.consents(flow, _votes(book, flow))
    why = why or in_general(flow, escrow.data, consents, now)
    if why:
        raise not_permitted(flow, why)


def owner_votes(ledger: EscrowReader, name: str) -> tuple[VoteEntry, ...]:
    """Return the owners' votes on a contract, oldest first. Writes nothing."""
    book, reader, _ = ledger.current()
    votes = _votes(book, named(book.state.escrow, name))
    return tuple(_vote(reader, one) for one in votes)


def columns_of(ledger: EscrowReader, name: str) -> dict[str, tuple[str, ...]] | None:
    """Return the columns of a query contract's answers, by release."""
    book, _, _ = ledger.current()
    flow, data = named(book.state.escrow, name), book.state.escrow.data
    terms, compiled = flow.contract.terms, ledger.policy()
    found: dict[str, tuple[str, ...]] = {}
    try:
        tables = tables_of(data, flow.contract.data.values(), compiled)
        for one in terms.charges if isinstance(terms, QueryTerms) else ():
            request = read_query(one.text, tables, compiled).request.query
            keys = [key.name for key in request.keys]
            found[one.release] = (*keys, *(each.name for each in request.outputs))
    except InputError:
        return None
    return found or None


def _looked(book: LedgerBalances, flow: Flow, now: str) -> ContractReview:
    state = book.state
    consents = state.escrow.consents(flow, _votes(book, flow))
    data = state.escrow.data
    waits = flow.is_open(now) and not _shredded(flow, data) and not consents.given
    return ContractReview(
        replace(flow), consents, _stage(flow, data, consents, now), waits
    )


def _stage(
    flow: Flow, data: Mapping[str, DataSet], consents: Consents, now: str
) -> str:
    gone = _shredded(flow, data)
    if flow.results and gone:
        return f"it has run, and its results were shredded with {gone[0]}"
    if flow.results:
        return "it has run, and its results are withheld"
    if flow.running:
        return "a run started; its end is not recorded"
    ready = "it may run" if flow.computes else "it may be received"
    return in_general(flow, data, consents, now) or ready


def _shredded(flow: Flow, data: Mapping[str, DataSet]) -> tuple[str, ...]:
    return tuple(
        table
        for table, one in flow.contract.data.items()
        if data[one.id].versions[one.number].shredded
    )


def _reason(reader: Reader, flow: Flow) -> str:
    return str(getattr(_event(reader, flow.seq).body, "reason", ""))


def _votes(book: LedgerBalances, flow: Flow) -> tuple[Agreement, ...]:
    return book.state.approvals.get(("contract", flow.contract.digest), ())


def _vote(reader: Reader, vote: Agreement) -> VoteEntry:
    event = _event(reader, vote.seq)
    assert isinstance(event.body, ApprovalGiven)
    return vote_entry(event, event.body, vote.seq)


def _event(reader: Reader, seq: int) -> Event:
    return event_of(next(iter(reader(seq - 1))), seq)


def _queries(
    ledger: EscrowReader, flow: Flow, escrow: EscrowState
) -> tuple[QueryPrice, ...]:
    terms = flow.contract.terms
    if isinstance(terms, TaskTerms):
        return tuple(_scored(ledger, flow, escrow, one) for one in terms.charges)
    charges = terms.charges if isinstance(terms, QueryTerms) else ()
    return tuple(_priced(ledger, flow, escrow.data, one) for one in charges)


def _scored(
    ledger: EscrowReader, flow: Flow, escrow: EscrowState, charge: Charge
) -> QueryPrice:
    """Return the price of a score of blocks, as `_priced` does for a query."""
    query = escrow.flow(flow.contract.parent).contract
    try:
        compiled = ledger.policy()
        score = read_again(flow.contract, query, escrow.data, compiled)
        return QueryPrice(charge, decision=ledger.check(score.described), score=score)
    except (ConflictError, InputError, StaleError) as error:
        return QueryPrice(charge, problem=error.problems[0].message, code=error.code)


def _priced(
    ledger: EscrowReader, flow: Flow, data: Mapping[str, DataSet], charge: Charge
) -> QueryPrice:
    """Return the price of a query; one that no longer fits the policy is shown, too."""
    try:
        compiled = ledger.policy()
        tables = tables_of(data, flow.contract.data.values(), compiled)
        query = read_query(charge.text, tables, compiled)
        if charge_of(charge.text, query, compiled).content != charge.content:
            changed = "it has another meaning under the active policy"
            return QueryPrice(charge, query, problem=changed)
        return QueryPrice(charge, query, plan_of(ledger, query))
    except (ConflictError, InputError, StaleError) as error:
        return QueryPrice(charge, problem=error.problems[0].message, code=error.code)
