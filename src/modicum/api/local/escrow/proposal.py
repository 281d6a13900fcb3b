"""Proposed contracts: for queries, tasks, and disclosures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

from modicum.api.local.balances import Entry, LedgerBalances
from modicum.api.local.escrow.block_scores import (
    refuse_unfit,
    score_of_blocks,
    scored_of,
)
from modicum.api.local.escrow.declared_tables import charge_of, newest_of
from modicum.api.local.escrow.placement import (
    may_see_exact,
    refuse_exact,
    refuse_misplaced,
)
from modicum.api.local.escrow.programs import program_text, range_of
from modicum.api.local.governance.approval_cases import active_policy, reason_text
from modicum.api.ports.escrow import Limits
from modicum.api.schema.escrow_input import LASTS_SECONDS, QUERIES_MAX
from modicum.core.document import from_python
from modicum.core.errors import Code, ConflictError, InputError, Problem
from modicum.core.reader import release_id, text
from modicum.escrow.blocks import ByBlocks
from modicum.escrow.programs import Program, Range
from modicum.escrow.signals import bins_of
from modicum.ledger.log.contracts import (
    Charge,
    Contract,
    OutputTerms,
    QueryTerms,
    RawSignalTerms,
    SignalTerms,
    TaskTerms,
    Terms,
    Version,
)
from modicum.ledger.log.escrow_events import ContractProposed
from modicum.ledger.state.flow import Flow

#: Default number of uses of a disclosure, over all recipients.
USES_OUT: Final = 20
#: A task may be retried if its run did not end.
USES_OF_TASK: Final = 3


class Moment(Protocol):
    """A ledger at the time of a request: a turn, or a state just read."""

    @property
    def book(self) -> LedgerBalances:
        """The book."""
        ...

    @property
    def actor(self) -> str:
        """The actor."""
        ...


@dataclass(frozen=True, slots=True)
class Purpose:
    """The common part of all proposed contracts.

    Attributes:
        id: The contract's id, in the format of release ids.
        reason: Why, for the record; 1 to 2000 characters.
        lasts_seconds: The lifetime of the contract; at least 1.
        uses: The maximum number of uses; None for the default: queries run once, tasks
            may be tried three times, and disclosures may be received 20 times.
        recipients: The recipients of disclosures; empty for the analyst alone.
        analyst: The analyst; empty for the requester.
    """

    id: str
    reason: str
    lasts_seconds: int = LASTS_SECONDS
    uses: int | None = None
    recipients: Sequence[str] = ()
    analyst: str = ""


@dataclass(frozen=True, slots=True)
class ProposedTerms:
    """A proposal and when it ends.

    Attributes:
        heading: The common part.
        expires_at: When the contract ends.
    """

    heading: Purpose
    expires_at: str


@dataclass(frozen=True, slots=True)
class Queries:
    """The queries of a proposal.

    Attributes:
        texts: Query files, as texts; the tables that they read are data sets.
        exact: Whether to compute exact answers, too, for a signal.
        among: The data sets that the requester knows; None for all.
    """

    texts: Sequence[str]
    exact: bool
    among: Collection[str] | None = None


@dataclass(frozen=True, slots=True)
class ProgramChoice:
    """The program of a proposal.

    Attributes:
        program: The program.
        tier: The sandbox that it runs in.
        limits: Its resource limits.
        blocks: The division of people into blocks, for a differentially private score
            on exact answers; None for scores on withheld answers.
    """

    program: Program
    tier: str
    limits: Limits
    blocks: ByBlocks | None = None


def propose(entry: Entry, contract: Contract, reason: str) -> Flow:
    """Propose a contract."""
    entry.add(ContractProposed(contract, _why(reason)))
    return entry.book.state.escrow.flows[contract.digest]


def refuse_in_vain(
    book: LedgerBalances, contract: Contract, reason: str, by: str, at: str
) -> None:
    """Refuse a proposal that would fail, before anything is stored for it."""
    _why(reason)
    state = book.state
    state.escrow.refuse_proposal(contract, by, at, state.disclosures)


def contract_of_query(
    moment: Moment, proposal: ProposedTerms, wanted: Queries
) -> Contract:
    """Return a contract by which queries run on the newest versions of their data."""
    if not 1 <= len(wanted.texts) <= QUERIES_MAX:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"a contract has 1 to {QUERIES_MAX} queries, and this"
                f" {len(wanted.texts)}",
            )
        )
    compiled = active_policy(moment.book)
    newest = newest_of(moment.book.state.escrow.data, compiled, wanted.among)
    charges: list[Charge] = []
    used: set[str] = set()
    for written in wanted.texts:
        query = newest.read(written, compiled)
        charges.append(charge_of(written, query, compiled))
        used.update(query.request.query.sources)
    versions = {name: one for name, one in newest.versions.items() if name in used}
    results = ("exact", "private") if wanted.exact else ("private",)
    terms = QueryTerms(tuple(charges), results)
    return _drawn_up(
        moment, proposal, terms, _Follows("", proposal.heading.analyst, versions)
    )


def contract_of_task(
    moment: Moment, proposal: ProposedTerms, query: Flow, wanted: ProgramChoice
) -> Contract:
    """Return a contract to run a program on withheld answers.

    It runs on the private answers, and on the exact ones where there are some and it
    may receive them; one that compares runs on the exact ones alone. With blocks it
    runs on the exact answers about each block, for a differentially private score.
    """
    program, limits = wanted.program, wanted.limits
    limits.refuse_short()
    refuse_misplaced(program, wanted.tier)
    if program.compares or wanted.blocks is not None:
        refuse_exact(program, wanted.tier)
    results = ("exact",) if program.compares else tuple(sorted(query.results))
    if not may_see_exact(program, wanted.tier):
        results = tuple(one for one in results if one != "exact")
    number, charges = 0, tuple[Charge, ...]()
    if wanted.blocks is not None:
        number, charges = (
            wanted.blocks.number,
            (_charged(moment, proposal, query, wanted),),
        )
        results = ("private",)
    terms = TaskTerms(
        program=program_text(program),
        tier=wanted.tier,
        seconds=int(limits.seconds),
        memory_mib=limits.memory_mib,
        results=results,
        blocks=number,
        charges=charges,
    )
    return _drawn_up(moment, proposal, terms, _following(query))


def _charged(
    moment: Moment, proposal: ProposedTerms, query: Flow, wanted: ProgramChoice
) -> Charge:
    """Return the charge of a score of blocks; its release has the contract's id."""
    assert wanted.blocks is not None  # The caller looked.
    refuse_unfit(wanted.program)
    if not isinstance(query.contract.terms, QueryTerms):
        raise ConflictError(
            Problem(
                Code.CONTRACT_REFUSED,
                f"the contract `{query.contract.id}` has no queries to score",
                help="name the contract of a query",
            )
        )
    compiled, data = active_policy(moment.book), moment.book.state.escrow.data
    release = release_id(from_python(proposal.heading.id), "the id of the contract")
    text_of_it = program_text(wanted.program)
    scored = scored_of(release, text_of_it, query.contract, data, compiled)
    return score_of_blocks(scored, wanted.blocks, compiled)[1]


def contract_of_output(
    moment: Moment, proposal: ProposedTerms, query: Flow
) -> Contract:
    """Return a contract to disclose private answers."""
    terms = OutputTerms(_result(query, "private"))
    return _drawn_up(moment, proposal, terms, _following(query))


def contract_of_signal(moment: Moment, proposal: ProposedTerms, task: Flow) -> Contract:
    """Return a contract to disclose a score on private answers."""
    terms = SignalTerms(_result(task, "private"))
    return _drawn_up(moment, proposal, terms, _following(task))


def contract_of_raw_signal(
    moment: Moment, proposal: ProposedTerms, task: Flow, width: Fraction | None
) -> Contract:
    """Return a contract to disclose a score on exact answers.

    That is not differentially private.
    """
    result = _result(task, "exact")
    bins = 0 if width is None else bins_of(scores_of(task), width)
    return _drawn_up(moment, proposal, RawSignalTerms(result, bins), _following(task))


def scores_of(task: Flow) -> Range:
    """Return where the scores of a task lie."""
    assert isinstance(task.contract.terms, TaskTerms)
    return range_of(task.contract.terms.program)


@dataclass(frozen=True, slots=True)
class _Follows:
    """What a contract inherits from the contract that it builds on."""

    parent: str
    analyst: str
    data: dict[str, Version]


def _following(flow: Flow) -> _Follows:
    one = flow.contract
    return _Follows(one.digest, one.analyst, dict(one.data))


def _drawn_up(
    moment: Moment, proposal: ProposedTerms, terms: Terms, follows: _Follows
) -> Contract:
    heading, analyst = proposal.heading, follows.analyst or moment.actor
    out = isinstance(terms, OutputTerms | SignalTerms | RawSignalTerms)
    tried = isinstance(terms, TaskTerms) and not terms.charges
    usual = USES_OUT if out else USES_OF_TASK if tried else 1
    given = {*(heading.recipients or (analyst,))} if out else heading.recipients
    for who in (analyst, *given):
        text(from_python(who), "the name of a person", characters_max=200)
    return Contract(
        id=release_id(from_python(heading.id), "the id of the contract"),
        analyst=analyst,
        recipients=tuple(sorted(given)),
        data=follows.data,
        parent=follows.parent,
        expires_at=proposal.expires_at,
        uses=usual if heading.uses is None else heading.uses,
        terms=terms,
    )


def _result(flow: Flow, name: str) -> str:
    if name in flow.results:
        return flow.results[name]
    terms = flow.contract.terms
    remedy = "let it run first:  modicum escrow run " + flow.contract.id
    if isinstance(terms, TaskTerms) and name not in terms.results:
        remedy = f"the task has none: request a task on {name} answers"
    raise ConflictError(
        Problem(
            Code.CONTRACT_REFUSED,
            f"the contract `{flow.contract.id}` has no {name} result to disclose",
            help=remedy,
        )
    )


def _why(reason: str) -> str:
    return reason_text(reason, "requesting a flow of data")
