"""The verbs of those who ask for another policy, agree to it, and activate it."""

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
    """What governing needs of a workspace."""

    def turn(self, work: Callable[[Entry], T], *, deciding: bool = False) -> T:
        """Do some work in the turn of a ledger that exists; it is durable then."""
        ...

    def look(self) -> tuple[LedgerBalances, Reader, str]:
        """Return the book of a ledger that exists, its reader, and the time."""
        ...


class BaseGovernance:
    """What somebody may do who governs a ledger; each verb is an entry of its log.

    Args:
        ledger: The ledger.
        actor: Who acts.
    """

    def __init__(self, ledger: Ledger, actor: str) -> None:
        self._ledger = ledger
        self._actor = actor


class PolicyGovernance(BaseGovernance):
    """Asking for another policy, agreeing to it, and activating it."""

    # --- asking ---

    def propose_policy(self, successor: CompiledPolicy, *, reason: str) -> Proposed:
        """Ask that a policy takes the place of the active one, if that asks people.

        Its text stands in the ledger, so that people can read there what they agree
        to, and name it by its digest. The same policy again changes nothing. Once
        another policy is activated, nothing is proposed any more.

        Args:
            successor: The policy.
            reason: Why, for the record; 1 to 2000 characters.

        Raises:
            ApprovalError: If nobody must agree to it.
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
        book, read, _ = self._ledger.look()
        return tuple(pending_policies(book, read))

    def proposed(self, digest: str) -> CompiledPolicy:
        """Return a policy that is proposed. Writes nothing.

        Args:
            digest: Its digest, or at least the first 12 characters.

        Raises:
            InputError: If no such policy is proposed.
            UsageError: If there is no ledger.
        """
        book, read, _ = self._ledger.look()
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
        """Agree that a policy takes the place of the active one.

        What history exceeds is looked at once more, and told; whoever activates the
        policy chooses what of it to accept.

        Args:
            successor: The policy; or its digest, or at least the first 12 characters,
                if it is proposed.
            reason: Why, for the record; 1 to 2000 characters.
            head: The hash of the last entry that the actor has looked at, or at least
                its first 12 characters; None for whichever is last.
            key: What signs it; None for nobody.

        Raises:
            ApprovalError: If nobody is asked, the actor's word would not count, or it
                is not signed as the policy asks.
            InputError: If there is no reason, or no such policy is proposed.
            StaleError: If something came in since `head`; review again.
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
        """Refuse that a policy takes the place of the active one.

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

    def policy_hearings(self, successor: CompiledPolicy) -> tuple[ApprovalState, ...]:
        """Return where the approval stands that another policy needs. Writes nothing.

        Args:
            successor: The policy; if it is active already, nobody is asked.

        Raises:
            UsageError: If there is no ledger with a policy.
        """
        book, _, _ = self._ledger.look()
        active = active_policy(book).policy
        if book.is_active(successor):
            return ()
        return about_policy(successor, active).hearings_in(book.state)

    def counting_words(self, successor: CompiledPolicy) -> tuple[VoteEntry, ...]:
        """Return what people said to a policy since the active one came, oldest first.

        What was said before that was about another change, and does not count.

        Args:
            successor: The policy.

        Raises:
            UsageError: If there is no ledger.
        """
        book, read, _ = self._ledger.look()
        since = book.state.policy.seq if book.state.policy else 0
        return vote_entries(successor.policy.digest, read(since))

    # --- activating ---

    def weigh(
        self,
        successor: CompiledPolicy,
        *,
        accept: Sequence[str] = (),
        replaces: str | None = None,
    ) -> ActivationPreview:
        """Return what it means to activate a policy now. Writes nothing.

        Args:
            successor: The policy.
            accept: As for `activate`.
            replaces: As for `activate`.

        Raises:
            InputError: If a rule that is accepted is not one that history exceeds.
            StaleError: If another policy is active than the one to be replaced.
            UsageError: If there is no ledger with a policy.
        """
        # To compare policies takes much that deciding releases never needs.
        from modicum.api.local.governance.activation import (
            preview_activation,
            refuse_replaced,
        )

        book, read, now = self._ledger.look()
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
        """Put a policy in the place of the active one; if it holds already, do nothing.

        Args:
            successor: The policy that is to hold.
            reason: Why, for the record; 1 to 2000 characters.
            accept: Rules that history exceeds and that may stay exceeded: their ids,
                or their scopes. And `attribute:NAME` of attributes that are gone, and
                are none of the new ones.
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
        self, successor: CompiledPolicy | str, word: Ballot
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
            said = record_vote(entry, about_policy(compiled, active), word)
            if not word.approves:
                return said
            # Last, since it takes long: only for whom it is worth it.
            weighed = weigh(
                entry.book, entry.read, entry.now, compiled, actor=self._actor
            )
            return replace(said, weighed=weighed)

        return self._ledger.turn(work, deciding=True)


class ReleaseGovernance(BaseGovernance):
    """Asking for releases that people must agree to, and agreeing to them."""

    # --- asking ---

    def request(self, release: Description, *, reason: str) -> Requested:
        """Ask for a release that needs approval. It spends nothing.

        What is asked for stands in the ledger, so that people can read there what they
        agree to, and name it by its id. The same request again changes nothing; another
        release under the same id takes its place, if the same person asks.

        Args:
            release: The release.
            reason: Why, for the record; 1 to 2000 characters.

        Raises:
            ApprovalError: If it needs no approval.
            ConflictError: If its id stands, or is asked for by somebody else, or it
                would be denied now.
            InputError: If the release is malformed, or there is no reason.
            UsageError: If there is no ledger with a policy.
        """

        def work(entry: Entry) -> Requested:
            recorded = price_release(release, active_policy(entry.book))
            return request(entry, recorded, reason)

        return self._ledger.turn(work, deciding=True)

    def redescribe(self, release: Description, *, reason: str) -> Requested | None:
        """Ask for the correction of a past release: of the `periods` that it read.

        It takes effect when another person approves it, and those whom the policy
        asks. Until then, it is charged as it was recorded.

        Args:
            release: The release as it was recorded, with other `periods`.
            reason: Why, for the record; 1 to 2000 characters.

        Returns:
            The request, and what the rules say with the correction; None if the release
            is described so already.

        Raises:
            ConflictError: If it was not recorded as past, or somebody else asks for
                another correction.
            InputError: If it differs in more than `periods`, is malformed or not known,
                or there is no reason.
            UsageError: If there is no ledger with a policy.
        """
        return self._ledger.turn(
            lambda entry: redescribe(entry, release, reason), deciding=True
        )

    def withdraw_request(self, release: str, *, reason: str) -> Request:
        """Take back a request of one's own; what people said to it stays said.

        Args:
            release: The id of the release.
            reason: Why, for the record; 1 to 2000 characters.

        Returns:
            What was asked for.

        Raises:
            ConflictError: If nobody asks for it, or somebody else does.
            InputError: If there is no reason.
            UsageError: If there is no ledger with a policy.
        """
        return self._ledger.turn(lambda entry: withdraw(entry, release, reason))

    def requests(self) -> tuple[PendingRequest, ...]:
        """Return what is asked for and waits, oldest first. Writes nothing.

        Raises:
            UsageError: If there is no ledger with a policy.
        """
        book, read, _ = self._ledger.look()
        return tuple(pending_requests(book, read))

    def requested(self, release: str) -> PendingRequest | None:
        """Return what is asked for under an id; None if nobody does. Writes nothing.

        Args:
            release: The id.

        Raises:
            UsageError: If there is no ledger with a policy.
        """
        book, read, _ = self._ledger.look()
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
        """Agree to a release that needs approval, and would be allowed now.

        Args:
            release: The release; or its id, if somebody asks for it.
            reason: Why, for the record; 1 to 2000 characters.
            head: The hash of the last entry that the actor has looked at, or at least
                its first 12 characters; None for whichever is last.
            content: The SHA-256 of the contents that the actor has looked at; None for
                whichever it has.
            key: What signs it; None for nobody.

        Raises:
            ApprovalError: If nobody is asked, the actor's word would not count, or it
                is not signed as the policy asks.
            ConflictError: If the release stands already, or would be denied now.
            InputError: If the release is malformed or not asked for, or there is no
                reason.
            StaleError: If something came in since `head`, the release has other
                contents, or it was asked for under another policy; review again.
            UsageError: If there is no ledger with a policy.
        """
        word = Ballot(True, reason, head, key, content)  # noqa: FBT003
        return self.vote(release, word)

    def reject(
        self,
        release: Description | str,
        *,
        reason: str,
        content: str | None = None,
        key: Signer | None = None,
    ) -> RecordedVote:
        """Refuse a release that needs approval, or take an approval back.

        It is blocked until the actor approves it.

        Args:
            release: The release; or its id, if somebody asks for it or spoke about it.
            reason: As for `approve`.
            content: As for `approve`.
            key: As for `approve`; a refusal counts without, too.

        Raises:
            ApprovalError: As for `approve`.
            ConflictError: If the release stands already.
            InputError: As for `approve`.
            UsageError: As for `approve`.
        """
        word = Ballot(False, reason, None, key, content)  # noqa: FBT003
        return self.vote(release, word)

    def hearings(self, release: Description) -> tuple[ApprovalState, ...]:
        """Return where each approval stands that a release needs. Writes nothing.

        Args:
            release: The release.

        Raises:
            InputError: If the release is malformed.
            UsageError: If there is no ledger with a policy.
        """
        book, _, _ = self._ledger.look()
        compiled = active_policy(book)
        recorded = price_release(release, compiled)
        return release_approvals(recorded, compiled.policy, book.state)

    def spoken(self, identifier: str) -> tuple[VoteEntry, ...]:
        """Return what people said to a release or a policy, oldest first.

        Args:
            identifier: The id of the release, or the digest of the policy.

        Raises:
            UsageError: If there is no ledger.
        """
        _, read, _ = self._ledger.look()
        return vote_entries(identifier, read(0))

    def vote(self, release: Description | str, word: Ballot) -> RecordedVote:
        """Vote on a release that needs approval."""

        def work(entry: Entry) -> RecordedVote:
            if corrects(entry, release):
                return vote_on_correction(entry, release, word)
            made = made_already(entry, release, word)
            if made is not None:
                return made
            topic = _topic(entry, release, word)
            refuse_other_content(topic, word.content)
            return record_vote(entry, topic, word)

        return self._ledger.turn(work, deciding=True)


def _topic(entry: Entry, release: Description | str, word: Ballot) -> ApprovalCase:
    compiled = active_policy(entry.book)
    if isinstance(release, str):
        return about_requested_release(release, entry, compiled, approves=word.approves)
    return about_release(price_release(release, compiled), compiled.policy)


class Governance(ReleaseGovernance, PolicyGovernance):
    """What people do who govern a ledger; each verb is an entry of its log.

    Args:
        ledger: The ledger.
        actor: Who acts.
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
        """Record that something was disclosed outside differential privacy.

        Args:
            disclosure: What was disclosed, in the words of the active policy.

        Returns:
            What was recorded, and the number of the entry.

        Raises:
            ConflictError: If its id was used before.
            InputError: With every mistake in it.
            UsageError: If there is no ledger with a policy.
        """
        return self._ledger.turn(lambda entry: disclose(entry, disclosure))
