"""The verbs of those who govern a ledger that a server keeps."""

from __future__ import annotations

from modicum.api import operations
from modicum.api.local.governance.annotations import Disclosure, read_disclosure
from modicum.api.schema.ledger import RemarkInput
from modicum.client.policy_actions import RemotePolicyGovernance
from modicum.client.release_actions import RemoteReleaseGovernance
from modicum.client.request_encoding import encoded, sent
from modicum.client.retry_connection import Request
from modicum.ledger.log.events import DisclosureRecorded


class RemoteGovernance(RemoteReleaseGovernance, RemotePolicyGovernance):
    """All governance operations; each adds an entry to the log.

    Args:
        view: The ledger.
    """

    def annotate(self, remark: str, *, about: str = "") -> int:
        """Add a remark to the log; it changes nothing."""
        form = RemarkInput(remark=remark, about=about)
        request = Request(operations.ANNOTATE, sent=sent(form), step="added the remark")
        return self._connection.call(request).entry

    def disclose(self, disclosure: Disclosure) -> tuple[DisclosureRecorded, int]:
        """Record that something was disclosed outside differential privacy."""
        body = read_disclosure(disclosure, self._view.policy().policy.vocabulary)
        request = Request(
            operations.DISCLOSE,
            sent=encoded(disclosure),
            step="recorded the disclosure",
        )
        return body, self._connection.call(request).entry
