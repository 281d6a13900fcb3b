"""The verbs of those who govern a ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from modicum.ledger.deciding.approvals import Hearing, hearings_of_release
from modicum.ledger.log.events import DisclosureRecorded
from modicum.policy import CompiledPolicy
from modicum.workspace.answers import Description, price_release
from modicum.workspace.book import Book, Entry, Reader
from modicum.workspace.governing.governance import Said, active_policy, say
from modicum.workspace.governing.remarks import Disclosure, annotate, disclose
from modicum.workspace.governing.topics import (
    Spoken,
    Topic,
    about_known_release,
    about_policy,
    about_release,
    spoken,
)

if TYPE_CHECKING:
    from modicum.workspace.governing.activation import Activation, Weighed

T = TypeVar("T")


class Ledger(Protocol):
    """What governing needs of a workspace."""

    def turn(self, work: Callable[[Entry], T]) -> T:
        """Do some work in the turn of a ledger that exists; it is durable then."""
        ...

    def look(self) -> tuple[Book, Reader, str]:
        """Return the book of a ledger that exists, its reader, and the time."""
        ...


class Governance:
    """What people do who govern a ledger; each verb is an entry of its log.

    Args:
        ledger: The ledger.
        actor: Who acts.
    """

    def __init__(self, ledger: Ledger, actor: str) -> None:
        self._ledger = ledger
        self._actor = actor

    # --- approvals ---

    def approve(self, release: Description | str, *, reason: str) -> Said:
        """Agree to a release that needs approval.

        Args:
            release: The release; or its id, if somebody spoke about it before.
            reason: Why, for the record; 1 to 2000 characters.

        Raises:
            ApprovalError: If nobody is asked, or the actor's word would not count.
            ConflictError: If the release stands already.
            InputError: If the release is malformed or not known, or there is no
                reason.
            UsageError: If there is no ledger with a policy.
        """
        return self._say_to_release(release, approves=True, reason=reason)

    def reject(self, release: Description | str, *, reason: str) -> Said:
        """Refuse a release that needs approval, or take an approval back.

        It is blocked until the actor approves it.

        Args:
            release: As for `approve`.
            reason: As for `approve`.

        Raises:
            ApprovalError: As for `approve`.
            ConflictError: As for `approve`.
            InputError: As for `approve`.
            UsageError: As for `approve`.
        """
        return self._say_to_release(release, approves=False, reason=reason)

    def approve_policy(self, successor: CompiledPolicy, *, reason: str) -> Said:
        """Agree that a policy takes the place of the active one.

        Args:
            successor: The policy.
            reason: Why, for the record; 1 to 2000 characters.

        Raises:
            ApprovalError: If nobody is asked, or the actor's word would not count.
            InputError: If there is no reason.
            UsageError: If there is no ledger with a policy.
        """
        return self._say_to_policy(successor, approves=True, reason=reason)

    def reject_policy(self, successor: CompiledPolicy, *, reason: str) -> Said:
        """Refuse that a policy takes the place of the active one.

        Args:
            successor: The policy.
            reason: As for `approve_policy`.

        Raises:
            ApprovalError: As for `approve_policy`.
            InputError: As for `approve_policy`.
            UsageError: As for `approve_policy`.
        """
        return self._say_to_policy(successor, approves=False, reason=reason)

    def hearings(self, release: Description) -> tuple[Hearing, ...]:
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
        return hearings_of_release(recorded, compiled.policy, book.state)

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

    def spoken(self, identifier: str) -> tuple[Spoken, ...]:
        """Return what people said to a release or a policy, oldest first.

        Args:
            identifier: The id of the release, or the digest of the policy.

        Raises:
            UsageError: If there is no ledger.
        """
        _, read, _ = self._ledger.look()
        return spoken(identifier, read(0))

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

    # --- policies ---

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
        from modicum.workspace.governing.activation import refuse_replaced, weigh

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
                or their scopes.
            replaces: The digest of the policy that the caller believes to be active;
                None for whichever is.

        Raises:
            ApprovalError: If people must agree first.
            InputError: If the policy has mistakes, history exceeds rules that are not
                accepted, or no reason is given.
            StaleError: If another policy is active than the one to be replaced.
            UsageError: If there is no ledger with a policy.
        """
        from modicum.workspace.governing.activation import activate

        return self._ledger.turn(
            lambda entry: activate(
                entry, successor, reason=reason, accept=accept, replaces=replaces
            )
        )

    # --- remarks ---

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

    # --- inside ---

    def _say_to_release(
        self, release: Description | str, *, approves: bool, reason: str
    ) -> Said:
        def topic(entry: Entry) -> Topic:
            if isinstance(release, str):
                return about_known_release(release, entry.read(0))
            compiled = active_policy(entry.book)
            recorded = price_release(release, compiled)
            return about_release(recorded, compiled.policy)

        return self._ledger.turn(
            lambda entry: say(entry, topic(entry), approves=approves, reason=reason)
        )

    def _say_to_policy(
        self, successor: CompiledPolicy, *, approves: bool, reason: str
    ) -> Said:
        def work(entry: Entry) -> Said:
            topic = about_policy(successor, active_policy(entry.book).policy)
            return say(entry, topic, approves=approves, reason=reason)

        return self._ledger.turn(work)
