"""Operations on policies and requests: propose, vote, activate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec.structs import replace

from modicum.api.local.balances import Entry, LedgerBalances, Reader
from modicum.api.local.evaluation import Description, price_release
from modicum.api.local.governance.annotations import Disclosure, annotate, disclose
from modicum.api.local.governance.approval_cases import (
    ApprovalCase,
    VoteEntry,
    about_policy,
    about_release,
    active_policy,
    vote_entries,
)
from modicum.api.local.governance.approvals import (
    Ballot,
    RecordedVote,
    record_vote,
    refuse_other_content,
)
from modicum.api.local.governance.corrections import (
    corrects,
    made_already,
    redescribe,
    vote_on_correction,
)
from modicum.api.local.governance.proposals import (
    PendingPolicy,
    Proposed,
    pending_policies,
    propose,
    proposed_policy,
)
from modicum.api.local.governance.requests import (
    PendingRequest,
    Requested,
    about_requested_release,
    pending_request,
    pending_requests,
    request,
    withdraw,
)
from modicum.ledger.decision.approvals import ApprovalState, release_approvals
from modicum.ledger.log.approval_statement import Signer
from modicum.ledger.log.events import DisclosureRecorded
from modicum.ledger.state.pending import Request
from modicum.policy import CompiledPolicy

if TYPE_CHECKING:
    from modicum.api.local.governance.activation import Activation, ActivationPreview

T = TypeVar("T")


class Ledger(Protocol):
    """The ledger operations that governance needs."""

    def turn(self, work: Callable[[Entry], T], *, deciding: bool = False) -> T:
        """Do some work in the turn of a ledger that exists; it is durable then."""
        ...

    def current(self) -> tuple[LedgerBalances, Reader, str]:
        """Return the book of a ledger that exists, its reader, and the time."""
        ...


class BaseGovernance:
    """The base of governance operations; each adds an entry to the log.

    Args:
        ledger: The ledger.
        actor: The actor.
    """

    def __init__(self, ledger: Ledger, actor: str) -> None:
        self._ledger = ledger
        self._actor = actor


class PolicyGovernance(BaseGovernance):
    """Proposals, approvals and activation of policies."""

    # --- proposals ---

    def propose_policy(self, successor: CompiledPolicy, *, reason: str) -> Proposed:
        """Propose a policy to replace the active one, if approval is needed.

        Its text is stored in the ledger, so that approvers can read it there and refer
        to it by its digest. Proposing the same policy again changes nothing. Activating
        another policy ends all proposals.

        Args:
            successor: The policy.
            reason: Why, for the record; 1 to 2000 characters.

        Raises:
            ApprovalError: If it needs no approval.
            ConflictError: If it is active already.
            InputError: If the policy has mistakes, or there is no reason.
            UsageError: If there is no ledger with a policy.
        """
        return self._ledger.turn(lambda entry: propose(entry, successor, reason))

    def proposals(self) -> tuple[PendingPolicy, ...]:
        """Return the policies that are proposed and wait. Writes nothing.

        Raises:
            UsageError: If there is no ledger with a policy.
        """
        book, read, _ = self._ledger.current()
        return tuple(pending_policies(book, read))

    def proposed(self, digest: str) -> CompiledPolicy:
        """Return a policy that is proposed. Writes nothing.

        Args:
            digest: Its digest, or at least the first 12 characters.

        Raises:
            InputError: If no such policy is proposed.
            UsageError: If there is no ledger.
        """
        book, read, _ = self._ledger.current()
        return proposed_policy(digest, book.state, read)

    # --- agreeing ---

    def approve_policy(
        self,
        successor: CompiledPolicy | str,
        *,
        reason: str,
        head: str | None = None,
        key: Signer | None = None,
    ) -> RecordedVote:
        """Approve a policy to replace the active one.

        The conflicts with history are checked again and returned; the person who
        activates the policy chooses which to accept.

        Args:
            successor: The policy; or its digest, or at least the first 12 characters,
                if it is proposed.
            reason: Why, for the record; 1 to 2000 characters.
            head: The hash of the last entry that the actor has looked at, or at least
                its first 12 characters; None for whichever is last.
            key: The signer; None for no signature.

        Raises:
            ApprovalError: If no approval is needed, the actor's vote would not count,
                or a required signature is missing.
            InputError: If there is no reason, or no such policy is proposed.
            StaleError: If the log has entries after `head`; review again.
            UsageError: If there is no ledger with a policy.
        """
        return self.vote_on_policy(successor, Ballot(True, reason, head, key))  # noqa: FBT003

    def reject_policy(
        self,
        successor: CompiledPolicy | str,
        *,
        reason: str,
        key: Signer | None = None,
    ) -> RecordedVote:
        """Refuse a policy as the successor of the active one.

        Args:
            successor: As for `approve_policy`.
            reason: As for `approve_policy`.
            key: As for `approve_policy`; a refusal counts without, too.

        Raises:
            ApprovalError: As for `approve_policy`.
            InputError: As for `approve_policy`.
            UsageError: As for `approve_policy`.
        """
        return self.vote_on_policy(successor, Ballot(False, reason, None, key))  # noqa: FBT003

    def policy_approval_states(
        self, successor: CompiledPolicy
    ) -> tuple[ApprovalState, ...]:
        """Return the state of the approval that another policy needs. Writes nothing.

        Args:
            successor: The policy; if it is already active, no approval is needed.

        Raises:
            UsageError: If there is no ledger with a policy.
        """
        book, _, _ = self._ledger.current()
        active = active_policy(book).policy
        if book.is_active(successor):
            return ()
        return about_policy(successor, active).states_in(book.state)

    def counting_votes(self, successor: CompiledPolicy) -> tuple[VoteEntry, ...]:
        """Return the votes on a policy since the last activation, oldest first.

        Earlier votes were about another change, and do not count.

        Args:
            successor: The policy.

        Raises:
            UsageError: If there is no ledger.
        """
        book, read, _ = self._ledger.current()
        since = book.state.policy.seq if book.state.policy else 0
        return vote_entries(successor.policy.digest, read(since))

    # --- activating ---

    def preview_activation(
        self,
        successor: CompiledPolicy,
        *,
        accept: Sequence[str] = (),
        replaces: str | None = None,
    ) -> ActivationPreview:
        """Return the effect of activating a policy now. Writes nothing.

        Args:
            successor: The policy.
            accept: As for `activate`.
            replaces: As for `activate`.

        Raises:
            InputError: If a rule that is accepted is not one that history exceeds.
            StaleError: If another policy is active than the one to be replaced.
            UsageError: If there is no ledger with a policy.
        """
        # Comparing policies imports much that deciding releases never needs.
        from modicum.api.local.governance.activation import (
            preview_activation,
            refuse_replaced,
        )

        book, read, now = self._ledger.current()
        refuse_replaced(active_policy(book), replaces)
        return preview_activation(
            book, read, now, successor, accept=accept, actor=self._actor
        )

    def activate(
        self,
        successor: CompiledPolicy,
        *,
        reason: str,
        accept: Sequence[str] = (),
        replaces: str | None = None,
    ) -> Activation:
        """Replace the active policy; if it is already active, do nothing.

        Args:
            successor: The policy that is to hold.
            reason: Why, for the record; 1 to 2000 characters.
            accept: Rules that history exceeds and that may stay exceeded: their ids,
                or their scopes. And `attribute:NAME` of attributes that are gone, and
                are none of the new ones; `unit:NAME` of redefined units;
                `departed:SCOPE` of rules that past releases leave; and `filter:NAME`
                of a further filter.
            replaces: The digest of the policy that the caller believes to be active;
                None for whichever is.

        Raises:
            ApprovalError: If people must agree first.
            InputError: If the policy has mistakes, redefines a unit, drops an attribute
                or is exceeded by history without that being accepted; or there is no
                reason.
            StaleError: If another policy is active than the one to be replaced.
            UsageError: If there is no ledger with a policy.
        """
        from modicum.api.local.governance.activation import activate

        return self._ledger.turn(
            lambda entry: activate(
                entry, successor, reason=reason, accept=accept, replaces=replaces
            )
        )

    def vote_on_policy(
        self, successor: CompiledPolicy | str, ballot: Ballot
    ) -> RecordedVote:
        """Vote on a policy that is to take the place of the active one."""
        from modicum.api.local.governance.activation import preview_activation as weigh

        def work(entry: Entry) -> RecordedVote:
            active = active_policy(entry.book).policy
            compiled = (
                proposed_policy(successor, entry.book.state, entry.read)
                if isinstance(successor, str)
                else successor
            )
            vote = record_vote(entry, about_policy(compiled, active), ballot)
            if not ballot.approves:
                return vote
            # Last, since it is slow and often unnecessary.
            preview = weigh(
                entry.book, entry.read, entry.now, compiled, actor=self._actor
            )
            return replace(vote, preview=preview)

        return self._ledger.turn(work, deciding=True)


class ReleaseGovernance(BaseGovernance):
    """Requests for releases that need approval, and votes on them."""

    # --- requests ---

    def request(self, release: Description, *, reason: str) -> Requested:
        """Request a release that needs approval. It spends nothing.

        The request is stored in the ledger, so that approvers can read it there and
        refer to it by its id. Repeating a request changes nothing; another release
        under the same id replaces it, if it has the same requester.

        Args:
            release: The release.
            reason: Why, for the record; 1 to 2000 characters.

        Raises:
            ApprovalError: If it needs no approval.
            ConflictError: If its id is in use, or requested by another actor, or it
                would be denied now.
            InputError: If the release is malformed, or there is no reason.
            UsageError: If there is no ledger with a policy.
        """

        def work(entry: Entry) -> Requested:
            recorded = price_release(release, active_policy(entry.book))
            return request(entry, recorded, reason)

        return self._ledger.turn(work, deciding=True)

    def redescribe(self, release: Description, *, reason: str) -> Requested | None:
        """Request the correction of the `periods` of a past release.

        It takes effect when another person approves it, and all approvals that the
        policy requires are given. Until then, the release is charged as recorded.

        Args:
            release: The release as it was recorded, with other `periods`.
            reason: Why, for the record; 1 to 2000 characters.

        Returns:
            The request, and the decision under the correction; None if the release
            already has this description.

        Raises:
            ConflictError: If it was not recorded as past, or another actor requested a
                different correction.
            InputError: If it differs in more than `periods`, is malformed or not known,
                or there is no reason.
            UsageError: If there is no ledger with a policy.
        """
        return self._ledger.turn(
            lambda entry: redescribe(entry, release, reason), deciding=True
        )

    def withdraw_request(self, release: str, *, reason: str) -> Request:
        """Withdraw one's own request; its votes stay in the log.

        Args:
            release: The id of the release.
            reason: Why, for the record; 1 to 2000 characters.

        Returns:
            The withdrawn request.

        Raises:
            ConflictError: If there is no such request, or it is another actor's.
            InputError: If there is no reason.
            UsageError: If there is no ledger with a policy.
        """
        return self._ledger.turn(lambda entry: withdraw(entry, release, reason))

    def requests(self) -> tuple[PendingRequest, ...]:
        """Return the pending requests, oldest first. Writes nothing.

        Raises:
            UsageError: If there is no ledger with a policy.
        """
        book, read, _ = self._ledger.current()
        return tuple(pending_requests(book, read))

    def requested(self, release: str) -> PendingRequest | None:
        """Return the pending request of an id; None if there is none. Writes nothing.

        Args:
            release: The id.

        Raises:
            UsageError: If there is no ledger with a policy.
        """
        book, read, _ = self._ledger.current()
        return pending_request(release, book, read)

    # --- agreeing ---

    def approve(
        self,
        release: Description | str,
        *,
        reason: str,
        head: str | None = None,
        content: str | None = None,
        key: Signer | None = None,
    ) -> RecordedVote:
        """Approve a release that needs approval, and would be allowed now.

        Args:
            release: The release; or its id, if it is requested.
            reason: Why, for the record; 1 to 2000 characters.
            head: The hash of the last entry that the actor has looked at, or at least
                its first 12 characters; None for whichever is last.
            content: The SHA-256 of the contents that the actor has looked at; None for
                whichever it has.
            key: The signer; None for no signature.

        Raises:
            ApprovalError: If no approval is needed, the actor's vote would not count,
                or a required signature is missing.
            ConflictError: If the release is already accepted, or would be denied now.
            InputError: If the release is malformed or not requested, or the reason is
                missing.
            StaleError: If the log has entries after `head`, the release has other
                contents, or it was requested under another policy; review again.
            UsageError: If there is no ledger with a policy.
        """
        ballot = Ballot(True, reason, head, key, content)  # noqa: FBT003
        return self.vote(release, ballot)

    def reject(
        self,
        release: Description | str,
        *,
        reason: str,
        content: str | None = None,
        key: Signer | None = None,
    ) -> RecordedVote:
        """Refuse a release that needs approval, or withdraw an approval.

        It is blocked until the actor approves it.

        Args:
            release: The release; or its id, if it is requested or has votes.
            reason: As for `approve`.
            content: As for `approve`.
            key: As for `approve`; a refusal counts without, too.

        Raises:
            ApprovalError: As for `approve`.
            ConflictError: If the release is already accepted.
            InputError: As for `approve`.
            UsageError: As for `approve`.
        """
        ballot = Ballot(False, reason, None, key, content)  # noqa: FBT003
        return self.vote(release, ballot)

    def approval_states(self, release: Description) -> tuple[ApprovalState, ...]:
        """Return the state of each approval that a release needs. Writes nothing.

        Args:
            release: The release.

        Raises:
            InputError: If the release is malformed.
            UsageError: If there is no ledger with a policy.
        """
        book, _, _ = self._ledger.current()
        compiled = active_policy(book)
        recorded = price_release(release, compiled)
        return release_approvals(recorded, compiled.policy, book.state)

    def votes(self, identifier: str) -> tuple[VoteEntry, ...]:
        """Return the votes on a release or a policy, oldest first.

        Args:
            identifier: The id of the release, or the digest of the policy.

        Raises:
            UsageError: If there is no ledger.
        """
        _, read, _ = self._ledger.current()
        return vote_entries(identifier, read(0))

    def vote(self, release: Description | str, ballot: Ballot) -> RecordedVote:
        """Vote on a release that needs approval."""

        def work(entry: Entry) -> RecordedVote:
            if corrects(entry, release):
                return vote_on_correction(entry, release, ballot)
            made = made_already(entry, release, ballot)
            if made is not None:
                return made
            topic = _topic(entry, release, ballot)
            refuse_other_content(topic, ballot.content)
            return record_vote(entry, topic, ballot)

        return self._ledger.turn(work, deciding=True)


def _topic(entry: Entry, release: Description | str, ballot: Ballot) -> ApprovalCase:
    compiled = active_policy(entry.book)
    if isinstance(release, str):
        return about_requested_release(
            release, entry, compiled, approves=ballot.approves
        )
    return about_release(price_release(release, compiled), compiled.policy)


class Governance(ReleaseGovernance, PolicyGovernance):
    """All governance operations; each adds an entry to the log.

    Args:
        ledger: The ledger.
        actor: The actor.
    """

    def annotate(self, remark: str, *, about: str = "") -> int:
        """Add a remark to the log; it changes nothing.

        Args:
            remark: The remark, 1 to 2000 characters.
            about: The id of a release or a disclosure; empty for the ledger as a whole.

        Returns:
            The number of the entry.

        Raises:
            InputError: If there is no remark, or the ledger knows no such release or
                disclosure.
            UsageError: If there is no ledger.
        """
        return self._ledger.turn(lambda entry: annotate(entry, remark, about=about))

    def disclose(self, disclosure: Disclosure) -> tuple[DisclosureRecorded, int]:
        """Record a disclosure outside differential privacy.

        Args:
            disclosure: The disclosure, in the vocabulary of the active policy.

        Returns:
            The recorded disclosure, and the number of the entry.

        Raises:
            ConflictError: If its id was used before.
            InputError: With every mistake in it.
            UsageError: If there is no ledger with a policy.
        """
        return self._ledger.turn(lambda entry: disclose(entry, disclosure))
