"""The verbs of those who ask for releases, and of those who agree to them."""

from __future__ import annotations

from modicum.api.local.balances import Entry
from modicum.api.local.evaluation import Description, price_release
from modicum.api.local.governance.approval_cases import (
    Spoken,
    Topic,
    about_release,
    spoken,
)
from modicum.api.local.governance.approvals import Said, Word, refuse_other_content, say
from modicum.api.local.governance.corrections import (
    corrects,
    made_already,
    redescribe,
    say_to_correction,
)
from modicum.api.local.governance.governance import active_policy
from modicum.api.local.governance.office import Office
from modicum.api.local.governance.requests import (
    PendingRequest,
    Requested,
    about_requested_release,
    pending_request,
    pending_requests,
    request,
    withdraw,
)
from modicum.ledger.decision.approvals import Hearing, hearings_of_release
from modicum.ledger.log.approval_statement import Signer
from modicum.ledger.state.pending import Request


class ReleaseOffice(Office):
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
    ) -> Said:
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
        word = Word(True, reason, head, key, content)  # noqa: FBT003
        return self._say_to_release(release, word)

    def reject(
        self,
        release: Description | str,
        *,
        reason: str,
        content: str | None = None,
        key: Signer | None = None,
    ) -> Said:
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
        word = Word(False, reason, None, key, content)  # noqa: FBT003
        return self._say_to_release(release, word)

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

    def spoken(self, identifier: str) -> tuple[Spoken, ...]:
        """Return what people said to a release or a policy, oldest first.

        Args:
            identifier: The id of the release, or the digest of the policy.

        Raises:
            UsageError: If there is no ledger.
        """
        _, read, _ = self._ledger.look()
        return spoken(identifier, read(0))

    def _say_to_release(self, release: Description | str, word: Word) -> Said:
        def work(entry: Entry) -> Said:
            if corrects(entry, release):
                return say_to_correction(entry, release, word)
            made = made_already(entry, release, word)
            if made is not None:
                return made
            topic = _topic(entry, release, word)
            refuse_other_content(topic, word.content)
            return say(entry, topic, word)

        return self._ledger.turn(work, deciding=True)


def _topic(entry: Entry, release: Description | str, word: Word) -> Topic:
    compiled = active_policy(entry.book)
    if isinstance(release, str):
        return about_requested_release(release, entry, compiled, approves=word.approves)
    return about_release(price_release(release, compiled), compiled.policy)
