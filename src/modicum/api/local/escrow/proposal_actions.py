"""Requests in the escrow: queries, tasks, and disclosures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

from msgspec.structs import replace

from modicum.api.local.balances import Entry, LedgerBalances
from modicum.api.local.escrow.declared_tables import newest_of
from modicum.api.local.escrow.execution import Tools
from modicum.api.local.escrow.placement import refuse_long
from modicum.api.local.escrow.programs import keep_code
from modicum.api.local.escrow.proposal import (
    Moment,
    ProgramChoice,
    ProposedTerms,
    Purpose,
    Queries,
    contract_of_output,
    contract_of_query,
    contract_of_raw_signal,
    contract_of_signal,
    contract_of_task,
    propose,
    refuse_in_vain,
)
from modicum.api.local.escrow.retry import Ledger
from modicum.api.local.escrow.review import named
from modicum.api.local.governance.approval_cases import active_policy, reason_text
from modicum.api.ports.escrow import Limits
from modicum.api.ports.storage import Clock
from modicum.core.errors import (
    Code,
    InputError,
    Problem,
    UsageError,
    VerificationError,
)
from modicum.escrow.blocks import ByBlocks
from modicum.escrow.catalog import vetted
from modicum.escrow.programs import Program
from modicum.ledger.log.contracts import Contract, TaskTerms
from modicum.ledger.log.escrow_events import ContractWithdrawn
from modicum.ledger.state.escrow import Escrow as EscrowState
from modicum.ledger.state.flow import Flow


class EscrowProposals:
    """The requests of an actor in the escrow.

    Args:
        ledger: The ledger.
        tools: The vault, sandboxes and engines; None for none.
        clock: The time of day.
        actor: The actor.
        among: The data sets that they know of, to put queries to; None for all.
    """

    def __init__(
        self,
        ledger: Ledger,
        tools: Tools | None,
        clock: Clock,
        actor: str,
        *,
        among: Collection[str] | None = None,
    ) -> None:
        self._ledger, self._clock, self._actor = ledger, clock, actor
        self._among = among
        self._given = tools

    # --- requests ---

    def submit_query(
        self, heading: Purpose, queries: Sequence[str], *, exact: bool = False
    ) -> Flow:
        """Request to run queries on registered data and withhold their answers.

        Args:
            heading: Its id, reason and lifetime.
            queries: Query files, as texts; their tables are data sets.
            exact: Whether to compute exact answers, too, for a later signal.

        Raises:
            ConflictError: If it cannot be proposed.
            InputError: If a query cannot be priced, or reads unregistered data.
            UsageError: If there is no ledger with a policy.
        """
        wanted = Queries(queries, exact, self._among)
        book, _, _ = self._ledger.current()
        # Uncached declarations are read before taking the turn, which others wait for.
        newest_of(book.state.escrow.data, active_policy(book), self._among)
        return self._propose(
            heading, lambda moment, terms: contract_of_query(moment, terms, wanted)
        )

    def submit_task(
        self,
        heading: Purpose,
        query: str,
        program: Program,
        *,
        tier: str | None = None,
        limits: Limits | None = None,
        blocks: ByBlocks | None = None,
    ) -> Flow:
        """Request to run a program on withheld answers and withhold its scores.

        Args:
            heading: Its id, reason and lifetime.
            query: The contract whose answers it reads.
            program: The program; its code is put into the vault.
            tier: The sandbox that it runs in; None for the usual of its language.
            limits: Its resource limits; None for the defaults.
            blocks: The division of people into blocks, for a score on exact answers
                that is differentially private, and charged; None for scores on withheld
                answers. It runs once, with the time limit of `limits` for each block.

        Raises:
            ConflictError: If it cannot be proposed.
            InputError: If the contract or the reason is missing; the program claims to
                be a text of the catalogue and is not; it would occupy the sandbox for
                too long; it needs exact answers and may not receive them there; or the
                queries cannot be divided into blocks.
            UnavailableError: If its code cannot be stored.
            UsageError: If there is no ledger, or no vault.
        """
        _must_be_what_it_says(program)
        usual = "wasm" if program.language == "wasm" else "bubblewrap"
        wanted = ProgramChoice(program, tier or usual, limits or Limits(), blocks)
        tools = self._tools

        def draw_up(moment: Moment, terms: ProposedTerms) -> Contract:
            return contract_of_task(moment, terms, _flow(moment, query), wanted)

        book, _, now = self._ledger.current()
        draft = draw_up(_Now(book, self._actor), self._terms(heading))
        assert isinstance(draft.terms, TaskTerms)
        refuse_long(draft.terms, tools.task_seconds)
        refuse_in_vain(book, draft, heading.reason, self._actor, now)
        keep_code(tools.equipment.vault, program)  # Before anyone can approve it.
        return self._propose(heading, draw_up)

    def submit_output(self, heading: Purpose, query: str) -> Flow:
        """Request the disclosure of private answers.

        Args:
            heading: Its id, reason, lifetime and recipients.
            query: The contract whose answers are disclosed.

        Raises:
            ConflictError: If it cannot be proposed, or has not run.
            InputError: If there is no such contract, or no reason.
            UsageError: If there is no ledger.
        """
        return self._propose(
            heading,
            lambda moment, terms: contract_of_output(
                moment, terms, _flow(moment, query)
            ),
        )

    def submit_signal(self, heading: Purpose, task: str) -> Flow:
        """Request the disclosure of the score on private answers.

        Args:
            heading: Its id, reason, lifetime and recipients.
            task: The contract whose score it is.

        Raises:
            ConflictError: If it cannot be proposed, or has not run.
            InputError: If there is no such contract, or no reason.
            UsageError: If there is no ledger.
        """
        return self._propose(
            heading,
            lambda moment, terms: contract_of_signal(
                moment, terms, _flow(moment, task)
            ),
        )

    def submit_raw_signal(
        self, heading: Purpose, task: str, *, width: Fraction | None
    ) -> Flow:
        """Request the disclosure of the score on exact answers, without any epsilon.

        Args:
            heading: Its id, reason, lifetime and recipients.
            task: The contract whose score it is.
            width: The bin width, where only the bin is disclosed; None for the exact
                score, which needs two approvals.

        Raises:
            ConflictError: If it cannot be proposed, or has not run, or would disclose
                more than owners allow.
            InputError: If there is no such contract, no reason, or bins cannot be so
                wide.
            UsageError: If there is no ledger.
        """
        return self._propose(
            heading,
            lambda moment, terms: contract_of_raw_signal(
                moment, terms, _flow(moment, task), width
            ),
        )

    def withdraw(self, name: str, *, reason: str) -> Flow:
        """Withdraw a contract as its requester or one of its recipients.

        Args:
            name: The contract.
            reason: Why, for the record; 1 to 2000 characters.

        Raises:
            ConflictError: If it is not theirs to withdraw, or was withdrawn.
            InputError: If there is no such contract, or no reason.
            UsageError: If there is no ledger.
        """

        def work(entry: Entry) -> Flow:
            why = reason_text(reason, "withdrawing a contract")
            flow = _flow(entry, name)
            entry.add(ContractWithdrawn(flow.contract.digest, why))
            return replace(flow)

        return self._ledger.turn(work)

    # --- inside ---

    @property
    def _tools(self) -> Tools:
        if self._given is None:
            raise UsageError(
                Problem(
                    Code.NOT_SUPPORTED,
                    "this workspace has no vault",
                    help="name it:  --vault FOLDER --vault-keys FILE",
                )
            )
        return self._given

    def _state(self) -> EscrowState:
        book, _, _ = self._ledger.current()
        return book.state.escrow

    def _propose(
        self, heading: Purpose, draw_up: Callable[[Moment, ProposedTerms], Contract]
    ) -> Flow:
        terms = self._terms(heading)

        def work(entry: Entry) -> Flow:
            contract = draw_up(entry, terms)
            return replace(propose(entry, contract, heading.reason))

        return self._ledger.turn(work)

    def _terms(self, heading: Purpose) -> ProposedTerms:
        if heading.lasts_seconds < 1:
            raise InputError(
                Problem(
                    Code.OUT_OF_RANGE,
                    f"a contract cannot last {heading.lasts_seconds} seconds",
                    help="give it at least 1 second",
                )
            )
        return ProposedTerms(
            heading, self._clock.after(self._clock.now(), heading.lasts_seconds)
        )


@dataclass(frozen=True, slots=True)
class _Now:
    """A ledger state just read, for a requester."""

    book: LedgerBalances
    actor: str


def _flow(moment: Moment, name: str) -> Flow:
    return named(moment.book.state.escrow, name)


def _must_be_what_it_says(program: Program) -> None:
    """Refuse a program that calls itself a text of the catalogue, and is none."""
    try:
        vetted(program)
    except VerificationError as error:  # Here the mistake is the requester's.
        raise InputError(*error.problems) from None
