"""Additions to the log that charge nothing: remarks and disclosures."""

from __future__ import annotations

from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.document import Node
from modicum.ledger.log.events import DisclosureRecorded
from modicum.server.service.threads import Threads
from modicum.writer.idempotency import IdempotencyKey
from modicum.writer.service import Decider


class Remarks:
    """The operations on remarks.

    Args:
        decider: The ledger.
        threads: Where they run.
    """

    def __init__(self, decider: Decider, threads: Threads) -> None:
        self._decider = decider
        self._threads = threads

    async def annotate(
        self, who: Identity, remark: str, about: str, once: IdempotencyKey
    ) -> int:
        """Add a remark, and return the number of its entry."""
        who.must(Action.REMARK)

        def work() -> int:
            office = self._decider.governance(who.name, once=once)
            return office.annotate(remark, about=about)

        return await self._threads.submit(work)

    async def disclose(
        self, who: Identity, disclosure: Node, once: IdempotencyKey
    ) -> tuple[DisclosureRecorded, int]:
        """Record that something was disclosed outside differential privacy."""
        who.must(Action.REMARK)

        def work() -> tuple[DisclosureRecorded, int]:
            office = self._decider.governance(who.name, once=once)
            return office.disclose(disclosure)

        return await self._threads.submit(work)
