"""The verbs of those who govern a ledger that a server keeps."""

from __future__ import annotations

from modicum.api import operations
from modicum.api.local.governance.annotations import Disclosure, read_disclosure
from modicum.client.policy_actions import RemotePolicyGovernance
from modicum.client.release_actions import RemoteReleaseGovernance
from modicum.client.request_encoding import encoded
from modicum.client.retry_connection import Request
from modicum.ledger.log.events import DisclosureRecorded


class RemoteGovernance(RemoteReleaseGovernance, RemotePolicyGovernance):
    """What people do who govern a ledger; each verb is an entry of its log.

    Args:
        view: The ledger.
    """

    def annotate(self, remark: str, *, about: str = "") -> int:
        """Add a remark to the log; it changes nothing.

        Args:
            remark: The remark, 1 to 2000 characters.
            about: The id of a release or a disclosure; empty for the ledger as a whole.

        Returns:
            The number of the entry.

        Raises:
            AccessError: If whoever asks may not.
            InputError: If there is no remark, or the ledger knows no such release or
                disclosure.
            UnavailableError: If the server gives no answer. Said again, it stands
                twice.
        """
        form = {"remark": remark, "about": about}
        request = Request(
            operations.ANNOTATE, sent=encoded(form), step="added the remark"
        )
        return self._connection.call(request).entry

    def disclose(self, disclosure: Disclosure) -> tuple[DisclosureRecorded, int]:
        """Record that something was disclosed outside differential privacy.

        Args:
            disclosure: What was disclosed, in the words of the active policy.

        Returns:
            What was recorded, and the number of the entry.

        Raises:
            AccessError: If whoever asks may not.
            ConflictError: If its id was used before.
            InputError: With every mistake in it.
            UnavailableError: If the server gives no answer. Recorded again under the
                same id, it is refused if it stands.
        """
        body = read_disclosure(disclosure, self._view.policy().policy.vocabulary)
        request = Request(
            operations.DISCLOSE,
            sent=encoded(disclosure),
            step="recorded the disclosure",
        )
        return body, self._connection.call(request).entry
