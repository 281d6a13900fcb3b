"""A ledger that a server keeps, as one may look at it: nothing here writes a byte."""

from __future__ import annotations

from modicum.api import operations
from modicum.api.local.evaluation import Description
from modicum.api.local.submit import Submission
from modicum.client.decision import RemoteDecision, decision_of
from modicum.client.elsewhere import not_from_here
from modicum.client.local_pricing import RemoteSubmission
from modicum.client.log_view import LogView
from modicum.client.policy_view import PolicyView
from modicum.client.problems import not_understood
from modicum.client.releases import named, recorded_release, standing_of
from modicum.client.request_encoding import Sent, sent
from modicum.client.retry_connection import Request
from modicum.ledger import RecordedRelease, Standing


class RemoteView(PolicyView, LogView):
    """One ledger that a server keeps, to be asked. Who asks is what the token says.

    Args:
        connection: The server.
    """

    def check(self, release: Description) -> RemoteDecision:
        """Return what `submit` would answer now. Writes nothing.

        Args:
            release: The release.

        Raises:
            InputError: If the release is malformed.
            ConflictError: If the id stands with other contents, or was given up.
            AccessError: If whoever asks may not.
            UnavailableError: If the server gives no answer.
        """
        return self._check(sent(release))

    def check_prepared(self, one: Submission, *, actor: str = "") -> RemoteDecision:
        """Return what `submit` would answer to a release that was prepared.

        Args:
            one: The release, as `prepare` of this workspace returns it.
            actor: Nobody else than who asks.

        Raises:
            ConflictError: If the id stands with other contents, or was given up.
            UsageError: If it was prepared elsewhere, or somebody else is named.
        """
        if actor not in {"", self.actor}:
            raise not_from_here(
                "the answer to somebody else",
                "connect with their token: who asks is what the token says",
            )
        return self._check(RemoteSubmission.of(one).sent)

    def standing(self, release: str) -> Standing:
        """Return where a release stands now. Writes nothing.

        Args:
            release: The id.

        Raises:
            InputError: If the ledger knows no such release, as far as one may know.
        """
        request = Request(operations.RELEASE, named(release))
        return standing_of(self._connection.ask(request))

    def release_of(self, standing: Standing) -> RecordedRelease:
        """Return what a release is and costs, as the ledger keeps it. Writes nothing.

        Args:
            standing: Where it stands in this ledger.

        Raises:
            UnavailableError: If the server tells of another release.
        """
        request = Request(operations.RELEASE, named(standing.id), {"recorded": True})
        told = self._connection.ask(request)
        found = recorded_release(told.get("recorded"))
        if (found.id, found.content) != (standing.id, standing.content):
            raise not_understood("it tells of another release")
        return found

    def _check(self, content: Sent) -> RemoteDecision:
        request = Request(operations.CHECK_RELEASE, query={"words": True}, sent=content)
        return decision_of(self._connection.ask(request), self._connection, content)
