"""The base of governance over HTTP: a ledger on a server."""

from __future__ import annotations

from modicum.api.local.governance.actions import Governance
from modicum.client.view import RemoteView


class RemoteGovernanceBase:
    """The base of governance operations; the token identifies the actor.

    Args:
        view: The ledger.
    """

    def __init__(self, view: RemoteView) -> None:
        self._view = view
        self._connection = view.connection

    @property
    def _by_log(self) -> Governance:
        """The same verbs on the log, to look only; for those who may read it."""
        return Governance(self._view.read_only, self._view.actor)
