"""A workspace whose ledger a server keeps: the same verbs, over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from modicum.api import operations
from modicum.api.local.reservation_use import Adapters, Use
from modicum.api.operations import Operation
from modicum.api.schema.approval import Reason
from modicum.api.schema.release import ReleaseState
from modicum.client.actions import RemoteGovernance
from modicum.client.audits import RemoteAudits
from modicum.client.decoding import named, standing_of
from modicum.client.escrow import RemoteEscrow
from modicum.client.jobs import RemoteJobs
from modicum.client.plan_actions import RemoteRounds
from modicum.client.policies import RemotePolicies
from modicum.client.request_encoding import EncodedRequest, sent
from modicum.client.retry_connection import Connection, Request
from modicum.client.session import unsupported
from modicum.client.submit import RemoteSubmit
from modicum.ledger import Standing

if TYPE_CHECKING:
    from modicum.api.local.queries.actions import Queries


class RemoteWorkspace(RemoteSubmit):
    """One ledger on a server: its read and write operations.

    Every step has a new idempotency key, and is repeated under that key without a
    response: it is executed once. The token identifies the actor.

    Args:
        connection: The server.
        adapters: Libraries that may use a reservation; None for none.
    """

    def __init__(
        self, connection: Connection, adapters: Adapters | None = None
    ) -> None:
        super().__init__(connection)
        #: Libraries that may use a reservation; None for none.
        self.adapters = adapters

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    # --- the life of a release ---

    def start(self, release: str) -> Standing:
        """Note, durably, that rows are about to be read. From here on it is spent."""
        return self._step(
            operations.START_RELEASE, release, "started it, so that its loss is spent"
        )

    def publish(self, release: str) -> Standing:
        """Mark a started release as published."""
        return self._step(
            operations.PUBLISH_RELEASE,
            release,
            "published it; its loss is spent in any case",
        )

    def cancel(self, release: str, *, reason: str) -> Standing:
        """Cancel a reservation that was not started; its loss is released."""
        content = sent(Reason(reason=reason))
        return self._step(
            operations.CANCEL_RELEASE, release, "released its reservation", content
        )

    def use(self, release: str) -> Use:
        """Return a reservation to be used: a `with` block that starts and publishes it.

        Rows are read here; the server sees none of them.
        """
        return Use(self, release, self.adapters)

    # --- the ledger ---

    @property
    def governance(self) -> RemoteGovernance:
        """Governance operations: approve, activate, remark."""
        return RemoteGovernance(self)

    @property
    def rounds(self) -> RemoteRounds:
        """Planning operations: open rounds, make plans, commit plans."""
        return RemoteRounds(self)

    @property
    def escrow(self) -> RemoteEscrow:
        """Escrow operations: register data, request, vote, run, receive."""
        return RemoteEscrow(self)

    @property
    def policies(self) -> RemotePolicies:
        """Policy operations: compile, compare and simulate."""
        return RemotePolicies(self._connection)

    @property
    def audits(self) -> RemoteAudits:
        """Audit operations: fetch and verify bundles."""
        return RemoteAudits(self._connection)

    @property
    def jobs(self) -> RemoteJobs:
        """The jobs of the server: progress and cancellation."""
        return RemoteJobs(self._connection)

    @property
    def queries(self) -> Queries:
        """Private query operations: price queries, and run them locally."""
        from modicum.api.local.queries.actions import Queries

        return Queries(self, self.adapters)

    # --- operations of a local ledger ---

    def turn(
        self,
        work: Callable[[Any], Any],
        *,
        deciding: bool = False,
        expiring: bool = True,
    ) -> NoReturn:
        """Refuse: turns of the ledger run on the server."""
        raise unsupported(
            "a turn of the ledger",
            "call the operation itself, such as  ws.submit(…)  or"
            "  ws.governance.approve(…)",
        )

    def init(self) -> NoReturn:
        """Refuse: a ledger is made where it is kept."""
        raise unsupported(
            "a new ledger",
            "its operator creates it:  modicum init --policy policy.yaml ; activate"
            " another policy with  ws.governance.activate(…)",
        )

    def save_snapshot(self) -> NoReturn:
        """Refuse: the server keeps its own snapshots."""
        raise unsupported("a snapshot", "leave it out: the server writes its own")

    # --- inside ---

    def _step(
        self,
        operation: Operation[ReleaseState],
        release: str,
        done: str,
        content: EncodedRequest | None = None,
    ) -> Standing:
        request = Request(operation, named(release), sent=content, step=done)
        return standing_of(self._connection.send(request))
