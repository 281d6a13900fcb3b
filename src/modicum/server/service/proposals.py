"""Policy proposals: proposing, voting and activating."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from modicum.api.local.governance.actions import Governance
from modicum.api.local.governance.activation import Activation, ActivationPreview
from modicum.api.local.governance.approval_cases import VoteEntry
from modicum.api.local.governance.approvals import Ballot, RecordedVote
from modicum.api.local.governance.proposals import PendingPolicy, Proposed
from modicum.api.local.handlers.errors import not_found
from modicum.api.local.ledger_view import LedgerView
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_stored
from modicum.server.inputs.body import Body
from modicum.server.service.policies import compiled_body
from modicum.server.service.threads import Threads
from modicum.server.service.visibility import ReadOnlyGovernance
from modicum.server.service.votes import refuse_repeated
from modicum.writer.idempotency import IdempotencyKey
from modicum.writer.service import Decider


@dataclass(frozen=True, slots=True)
class Change:
    """The parameters of replacing the active policy.

    Attributes:
        reason: Why, for the record; 1 to 2000 characters.
        replaces: The digest of the policy that is active, as far as they know.
        accept: Rules that history exceeds, and may; and attributes that are gone.
    """

    reason: str
    replaces: str
    accept: Sequence[str] = ()


class Proposals:
    """The operations on proposed policies.

    Args:
        decider: The ledger.
        threads: Where they run.
    """

    def __init__(self, decider: Decider, threads: Threads) -> None:
        self._decider = decider
        self._threads = threads

    async def propose(
        self, who: Identity, body: Body, reason: str, once: IdempotencyKey | None = None
    ) -> Proposed:
        """Propose a policy; its text is stored in the ledger."""
        who.must(Action.PROPOSE_POLICY)

        compiled = await self._compiled(who, body)

        def work() -> Proposed:
            office = self._decider.governance(who.name, once=once)
            return office.propose_policy(compiled, reason=reason)

        return await self._threads.compute(work)

    async def pending(self, who: Identity) -> tuple[PendingPolicy, ...]:
        """Return the policies that are proposed and wait."""
        who.must(Action.READ_POLICY)
        return await self._threads.compute(
            lambda: self._decider.governed(lambda office: office.proposals())
        )

    async def one(
        self, who: Identity, digest: str
    ) -> tuple[PendingPolicy, tuple[VoteEntry, ...]]:
        """Return a proposal, and its votes."""
        who.must(Action.READ_POLICY)

        def read_view(
            office: Governance,
        ) -> tuple[PendingPolicy, tuple[VoteEntry, ...]]:
            return _proposed(office, digest), office.votes(digest)

        return await self._threads.ponder(lambda: self._decider.studied(read_view))

    async def vote(
        self,
        who: Identity,
        digest: str,
        ballot: Ballot,
        once: IdempotencyKey | None = None,
    ) -> RecordedVote:
        """Agree to a proposal, or refuse it."""
        who.must(Action.APPROVE_POLICY)

        def work() -> RecordedVote:
            refuse_repeated(self._decider, who, once)
            self._decider.governed(lambda one: _proposed(one, digest), quick=True)
            office = self._decider.governance(who.name, once=once)
            return office.vote_on_policy(digest, ballot)

        return await self._threads.compute(work)

    async def preview_activation(
        self, who: Identity, body: Body, accept: Sequence[str] = ()
    ) -> ActivationPreview:
        """Return the effect of activating a policy now. Writes nothing.

        The author of a rule chooses which releases it counts: so this is only for those
        who may read all of them.
        """
        who.must(Action.COMPILE_POLICY)
        who.must(Action.READ_RELEASES)
        node = await self._threads.policy(who.name, body)

        def work() -> ActivationPreview:
            successor = compiled_body(body, node)

            # The actor who activates it is a requester, and does not count as an
            # approver.
            def read_view(view: LedgerView) -> ActivationPreview:
                office = Governance(ReadOnlyGovernance(view), who.name)
                return office.preview_activation(successor, accept=accept)

            return self._decider.study(read_view)

        return await self._threads.compile(who.name, work)

    async def activate(
        self,
        who: Identity,
        policy: Body | str,
        change: Change,
        once: IdempotencyKey | None = None,
    ) -> Activation:
        """Put a policy in the place of the active one."""
        who.must(Action.ACTIVATE_POLICY)

        await self._threads.compute(lambda: refuse_repeated(self._decider, who, once))
        if isinstance(policy, Body):
            successor = await self._compiled(who, policy)
        else:
            successor = await self._threads.compute(
                lambda: self._decider.governed(lambda office: office.proposed(policy))
            )

        # The writer needs it after the turn, and shall not compile it then.
        policy_name, text = successor.policy.name, successor.policy.text
        await self._threads.compile(
            who.name, lambda: compile_stored(text, f"{policy_name} (active)")
        )

        def work() -> Activation:
            return self._decider.governance(who.name, once=once).activate(
                successor,
                reason=change.reason,
                accept=change.accept,
                replaces=change.replaces,
            )

        return await self._threads.compute(work)

    async def _compiled(self, who: Identity, body: Body) -> CompiledPolicy:
        node = await self._threads.policy(who.name, body)
        return await self._threads.compile(who.name, lambda: compiled_body(body, node))


def _proposed(office: Governance, digest: str) -> PendingPolicy:
    """Return a proposal."""
    for one in office.proposals():
        if one.proposal.digest == digest:
            return one
    raise not_found(
        f"no policy `{digest[:64]}` is proposed",
        "list those that are at  /policies/proposals",
    )
