"""The verbs of those who ask for another policy, agree to it, and activate it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from modicum.api.local.balances import Entry
from modicum.api.local.governance.approval_cases import Spoken, about_policy, spoken
from modicum.api.local.governance.approvals import Said, Word, say
from modicum.api.local.governance.governance import active_policy
from modicum.api.local.governance.office import Office
from modicum.api.local.governance.proposals import (
    PendingPolicy,
    Proposed,
    pending_policies,
    propose,
    proposed_policy,
)
from modicum.ledger.decision.approvals import Hearing
from modicum.ledger.log.approval_statement import Signer
from modicum.policy import CompiledPolicy

if TYPE_CHECKING:
    from modicum.api.local.governance.activation import Activation, Weighed


class PolicyOffice(Office):
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
    ) -> Said:
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
        return self._say_to_policy(successor, Word(True, reason, head, key))  # noqa: FBT003

    def reject_policy(
        self,
        successor: CompiledPolicy | str,
        *,
        reason: str,
        key: Signer | None = None,
    ) -> Said:
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
        return self._say_to_policy(successor, Word(False, reason, None, key))  # noqa: FBT003

    def policy_hearings(self, successor: CompiledPolicy) -> tuple[Hearing, ...]:
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

    def counting_words(self, successor: CompiledPolicy) -> tuple[Spoken, ...]:
        """Return what people said to a policy since the active one came, oldest first.

        What was said before that was about another change, and does not count.

        Args:
            successor: The policy.

        Raises:
            UsageError: If there is no ledger.
        """
        book, read, _ = self._ledger.look()
        since = book.state.policy.seq if book.state.policy else 0
        return spoken(successor.policy.digest, read(since))

    # --- activating ---

    def weigh(
        self,
        successor: CompiledPolicy,
        *,
        accept: Sequence[str] = (),
        replaces: str | None = None,
    ) -> Weighed:
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
        from modicum.api.local.governance.activation import refuse_replaced, weigh

        book, read, now = self._ledger.look()
        refuse_replaced(active_policy(book), replaces)
        return weigh(book, read, now, successor, accept=accept, actor=self._actor)

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

    def _say_to_policy(self, successor: CompiledPolicy | str, word: Word) -> Said:
        from modicum.api.local.governance.activation import weigh

        def work(entry: Entry) -> Said:
            active = active_policy(entry.book).policy
            compiled = (
                proposed_policy(successor, entry.book.state, entry.read)
                if isinstance(successor, str)
                else successor
            )
            said = say(entry, about_policy(compiled, active), word)
            if not word.approves:
                return said
            # Last, since it takes long: only for whom it is worth it.
            weighed = weigh(
                entry.book, entry.read, entry.now, compiled, actor=self._actor
            )
            return replace(said, weighed=weighed)

        return self._ledger.turn(work, deciding=True)
