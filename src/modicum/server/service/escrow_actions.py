"""Contracts of the escrow: agreed to, run, received, withdrawn."""

from __future__ import annotations

from dataclasses import replace

from modicum.api.local.escrow.approvals import RecordedContractVote
from modicum.api.local.escrow.disclosure import DisclosedResult
from modicum.api.local.escrow.execution import Tools
from modicum.api.local.escrow.review import (
    ContractReview,
    contract_review,
    must_be_usable,
)
from modicum.api.local.governance.approvals import Ballot
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.release_datasets import may
from modicum.api.local.submit import HeldTooMuchError
from modicum.api.local.views.contracts import listed_view
from modicum.api.local.views.releases import decision_view
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.errors import AccessError, Code, ConflictError, Problem
from modicum.ledger.log.contracts import TaskTerms, Terms
from modicum.ledger.state.flow import Flow
from modicum.server.service.escrow_datasets import needed
from modicum.server.service.escrow_visibility import (
    must_be_owner,
    takes_part,
    visible_contract,
)
from modicum.server.service.jobs import Job, Jobs, Report
from modicum.server.service.threads import Threads
from modicum.server.service.visibility import OF_ANOTHER, id_unusable
from modicum.server.service.votes import refuse_repeated
from modicum.writer.idempotency import IdempotencyKey
from modicum.writer.service import Decider


class EscrowActions:
    """The operations on contracts of the escrow.

    Args:
        decider: The ledger.
        threads: Where they run.
        jobs: Where long operations run.
        tools: The vault, sandboxes and engines; None for none.
    """

    def __init__(
        self, decider: Decider, threads: Threads, jobs: Jobs, tools: Tools | None
    ) -> None:
        self._decider = decider
        self._threads = threads
        self._jobs = jobs
        self._tools = tools

    # --- votes ---

    async def withdraw(
        self, who: Identity, name: str, reason: str, once: IdempotencyKey
    ) -> Flow:
        """Withdraw a contract as its requester or one of its recipients.

        Args:
            who: The caller.
            name: The contract.
            reason: Why, for the record.
            once: The idempotency key.

        Raises:
            AccessError: If they take no part in it.
            ConflictError: If it is not theirs to withdraw, or was withdrawn.
            InputError: If there is none, as far as they may know.
        """

        def work() -> Flow:
            refuse_repeated(self._decider, who, once)
            self._must_take_part(who, name)
            office = self._decider.escrow(self._tools, who.name, once=once)
            return office.withdraw(name, reason=reason)

        return await self._threads.submit(work)

    async def vote(
        self, who: Identity, name: str, ballot: Ballot, once: IdempotencyKey
    ) -> RecordedContractVote:
        """Approve or refuse a contract, as an owner of its data.

        Args:
            who: The caller.
            name: The contract.
            ballot: The vote.
            once: The idempotency key.

        Raises:
            AccessError: If they may not, for their data sets.
            ApprovalError: If a required signature is missing.
            ConflictError: If they own none of its data, or it is over.
            InputError: If there is none, as far as they may know.
            StaleError: If the log has entries since the review, or the contents differ.
        """

        def work() -> RecordedContractVote:
            refuse_repeated(self._decider, who, once)

            def read_view(view: LedgerView) -> None:
                escrow = view.state().escrow
                must_be_owner(who, visible_contract(escrow, who, name), escrow.data)

            self._decider.glance(read_view)
            office = self._decider.escrow(self._tools, who.name, once=once)
            return office.vote(name, ballot)

        return await self._threads.submit(work)

    # --- flowing ---

    async def run(self, who: Identity, name: str) -> Job:
        """Start a run of a contract; its results are withheld.

        Args:
            who: The caller.
            name: The contract.

        Raises:
            AccessError: If they take no part in it.
            ConflictError: If it does not permit that now.
            InputError: If there is none, as far as they may know.
            UnavailableError: If too many jobs are in progress.
            UsageError: If the server has no escrow.
        """
        tools = needed(self._tools)
        terms = await self._threads.compute(lambda: self._must_carry_out(who, name))

        def work(report: Report) -> object:
            wanted = replace(tools, still=lambda: report(0.0))
            office = self._decider.escrow(wanted, who.name)
            try:
                ran = office.run(name)
            except ConflictError as conflict:
                hidden = not who.may(Action.READ_RELEASES)
                if hidden and isinstance(conflict, HeldTooMuchError):
                    # A run may be carried out without reading any release.
                    raise conflict.without(conflict.held.keys()) from None
                if conflict.code in OF_ANOTHER and hidden:
                    raise id_unusable(None) from None
                raise
            denied = None
            if ran.denied is not None:
                denied = decision_view(ran.denied, text=True)
            return {"denied": denied, "contract": listed_view(self._review(name))}

        # A program may wait for others on this machine, which must not block other
        # work.
        is_single = isinstance(terms, TaskTerms)
        return self._jobs.begin(
            who, Action.TAKE_PART, "run-contract", work, is_single=is_single
        )

    async def receive(self, who: Identity, name: str) -> DisclosedResult:
        """Return the disclosure of a contract to one of its recipients.

        Args:
            who: The caller.
            name: The contract.

        Raises:
            AccessError: If they take no part in it.
            ConflictError: If it does not permit that now.
            InputError: If there is none, as far as they may know.
            UnavailableError: If it cannot be read; nothing was disclosed then.
            UsageError: If the server has no escrow.
            VerificationError: If the withheld content was changed.
        """
        tools = needed(self._tools)

        def work() -> DisclosedResult:
            self._must_take_part(who, name)
            return self._decider.escrow(tools, who.name).receive(name)

        return await self._threads.submit(work)

    # --- inside ---

    def _review(self, name: str) -> ContractReview:
        return self._decider.glance(lambda view: contract_review(view, name))

    def _must_take_part(self, who: Identity, name: str) -> None:
        """Refuse who only looks on."""

        def read_view(view: LedgerView) -> bool:
            escrow = view.state().escrow
            flow = visible_contract(escrow, who, name)
            return takes_part(who, flow, escrow.data)

        if not self._decider.glance(read_view):
            who.must(Action.TAKE_PART)
            raise _no_part(who, name)

    def _must_carry_out(self, who: Identity, name: str) -> Terms:
        """Refuse a caller who neither takes part nor may run contracts of others."""

        def read_view(view: LedgerView) -> Terms | None:
            escrow = view.state().escrow
            flow = visible_contract(escrow, who, name)
            sets = frozenset[str | None](flow.contract.data_sets)
            part = takes_part(who, flow, escrow.data)
            may_run = part or may(who, Action.CARRY_OUT_ANY, sets)
            return flow.contract.terms if may_run else None

        terms = self._decider.glance(read_view)
        if terms is None:
            who.must(Action.TAKE_PART)
            raise _no_part(who, name)
        self._decider.glance(lambda view: must_be_usable(view, name))
        return terms


def _no_part(who: Identity, name: str) -> AccessError:
    return AccessError(
        Problem(
            Code.FORBIDDEN,
            f"`{who.name}` has no part in the contract `{name[:200]}`",
            help="only its analyst, its recipients and the owners of its data may do"
            " this",
        )
    )
