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
    """One ledger that a server keeps: what may be asked of it, and what may be done.

    Every step is sent under a key that is made for it, and repeated under that key if
    it gets no answer: it is taken once. Who asks is what the token says.

    Args:
        connection: The server.
        adapters: Other libraries that a reservation may be used with; None for none.
    """

    def __init__(
        self, connection: Connection, adapters: Adapters | None = None
    ) -> None:
        super().__init__(connection)
        #: Other libraries that a reservation may be used with; None for none.
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
        """Note that a started release is out."""
        return self._step(
            operations.PUBLISH_RELEASE,
            release,
            "published it; its loss is spent in any case",
        )

    def cancel(self, release: str, *, reason: str) -> Standing:
        """Give up a reservation that was not started; its loss is taken back."""
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
        """What people do who govern the ledger: approve, activate, remark."""
        return RemoteGovernance(self)

    @property
    def rounds(self) -> RemoteRounds:
        """What people do who plan rounds: open them, plan them, commit plans."""
        return RemoteRounds(self)

    @property
    def escrow(self) -> RemoteEscrow:
        """What people do in the escrow: register data, ask, agree, run, receive."""
        return RemoteEscrow(self)

    @property
    def policies(self) -> RemotePolicies:
        """What people do who work on policies: compile, compare and try them."""
        return RemotePolicies(self._connection)

    @property
    def audits(self) -> RemoteAudits:
        """What people do who audit the ledger: fetch bundles, and verify them."""
        return RemoteAudits(self._connection)

    @property
    def jobs(self) -> RemoteJobs:
        """What the server does that takes long: watched, and given up."""
        return RemoteJobs(self._connection)

    @property
    def queries(self) -> Queries:
        """What people do who ask private queries: price them, and run them here."""
        from modicum.api.local.queries.actions import Queries

        return Queries(self, self.adapters)

    # --- what is done where the ledger is ---

    def turn(self, work: Callable[[Any], Any], *, deciding: bool = False) -> NoReturn:
        """Refuse: what is done in a turn of the ledger is done by the server."""
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
        return standing_of(self._connection.ask(request))
