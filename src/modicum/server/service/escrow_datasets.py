"""Data sets of the escrow: registered and shredded by who owns them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from modicum.api.local.escrow.approvals import RecordedVersionVote
from modicum.api.local.escrow.datasets import Declared, Ownership
from modicum.api.local.escrow.execution import Tools
from modicum.api.local.governance.approvals import Ballot
from modicum.api.local.ledger_view import LedgerView
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.errors import Code, ConflictError, Problem, UnavailableError
from modicum.ledger.log.contracts import Version
from modicum.ledger.state.datasets import DataSet
from modicum.server.resources import not_set_up
from modicum.server.service.escrow_visibility import may_see_data, visible_dataset
from modicum.server.service.threads import Threads
from modicum.server.service.votes import refuse_repeated
from modicum.writer.idempotency import IdempotencyKey
from modicum.writer.service import Decider

#: The vault name of the key for digests of rows.
_DIGESTS: Final = "server/digests"


@dataclass(frozen=True, slots=True)
class SentDataset:
    """A version of a data set in a request.

    Attributes:
        content: Its rows.
        declared: Its declaration.
        owned: Its owners, for a first version; None for a later one.
    """

    content: bytes = field(repr=False)
    declared: Declared
    owned: Ownership | None


class EscrowData:
    """The operations on data sets of the escrow.

    Args:
        decider: The ledger.
        threads: Where they run.
        tools: The vault, sandboxes and engines; None for none.
    """

    def __init__(self, decider: Decider, threads: Threads, tools: Tools | None) -> None:
        self._decider = decider
        self._threads = threads
        self._tools = tools

    async def all(self, who: Identity) -> Mapping[str, DataSet]:
        """Return the visible data sets, by name."""
        who.must_some(Action.READ_DATA)

        def read_view(view: LedgerView) -> dict[str, DataSet]:
            data = view.state().escrow.data
            return {
                name: _still(one)
                for name, one in data.items()
                if may_see_data(who, name, one)
            }

        return await self._threads.read_view(read_view)

    async def one(self, who: Identity, name: str) -> DataSet:
        """Return a data set."""
        return await self._threads.read_view(
            lambda view: _still(visible_dataset(view.state().escrow, who, name))
        )

    async def secret(self, who: Identity, name: str) -> bytes:
        """Return the key for digests of rows, stored encrypted in the vault.

        Args:
            who: The caller.
            name: The data set that they are of.

        Raises:
            AccessError: If they may not register it.
            UnavailableError: If it can be neither read nor stored.
            UsageError: If the server has no escrow.
        """
        who.must(Action.REGISTER_DATA, name)
        vault = needed(self._tools).equipment.vault

        def work() -> bytes:
            found = vault.find(_DIGESTS)
            if found is None:
                with suppress(ConflictError):  # Another process made one just now.
                    vault.seal(_DIGESTS, secrets.token_bytes(32))
                found = vault.find(_DIGESTS)
            if found is None:
                raise no_secret()
            return vault.open(found)

        return await self._threads.submit(work)

    async def register(
        self, who: Identity, name: str, sent: SentDataset, once: IdempotencyKey
    ) -> Version:
        """Put a version of a data set into the vault, and register it."""
        who.must(Action.REGISTER_DATA, name)
        tools = needed(self._tools)

        def work() -> Version:
            refuse_repeated(self._decider, who, once)
            office = self._decider.escrow(tools, who.name, once=once)
            return office.register(name, sent.content, sent.declared, sent.owned)

        return await self._threads.submit(work)

    async def vote(
        self, who: Identity, version: Version, ballot: Ballot, once: IdempotencyKey
    ) -> RecordedVersionVote:
        """Agree to a version that waits for its owners, or refuse it."""
        who.must(Action.APPROVE_CONTRACT, version.id)
        await self.one(who, version.id)

        def work() -> RecordedVersionVote:
            refuse_repeated(self._decider, who, once)
            office = self._decider.escrow(self._tools, who.name, once=once)
            return office.vote_on_data(version, ballot)

        return await self._threads.submit(work)

    async def shred(self, who: Identity, version: Version, reason: str) -> None:
        """Destroy a version, and all withheld results computed from it."""
        who.must(Action.REGISTER_DATA, version.id)
        tools = needed(self._tools)
        await self.one(who, version.id)

        def work() -> None:
            office = self._decider.escrow(tools, who.name)
            office.shred(version, reason=reason)

        await self._threads.submit(work)


def _still(one: DataSet) -> DataSet:
    """Return a snapshot of a data set, independent of later registrations."""
    return replace(one, versions=dict(one.versions))


def no_secret() -> UnavailableError:
    """Return the error for a vault whose secret of the server was shredded."""
    return UnavailableError(
        Problem(
            Code.KEY_UNAVAILABLE,
            "the vault no longer has a secret for the server",
            help="find out who shredded it; register the data on the command line",
        )
    )


def needed(tools: Tools | None) -> Tools:
    """Return the dependencies of an escrow."""
    if tools is None:
        raise not_set_up("no escrow", "escrow")
    return tools
