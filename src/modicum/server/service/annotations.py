"""What people add to the log that counts nothing: remarks, and disclosures."""

from __future__ import annotations

from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.document import Node
from modicum.ledger.log.events import DisclosureRecorded
from modicum.server.service.threads import Threads
from modicum.writer.idempotency import IdempotencyKey
from modicum.writer.service import Decider


class Remarks:
    """What can be said in the log.

    Args:
        decider: The ledger.
        threads: Where it is asked.
    """

    def __init__(self, decider: Decider, threads: Threads) -> None:
        self._decider = decider
        self._threads = threads

    async def annotate(
        self, who: Identity, remark: str, about: str, once: IdempotencyKey
    ) -> int:
        """Add a remark, and return the number of its entry.

        Args:
            who: Who speaks.
            remark: The remark; 1 to 2000 characters.
            about: The id of a release or a disclosure; empty for the ledger.
            once: What makes it a request that is done once.

        Raises:
            AccessError: If they may not.
            InputError: If there is no remark, or nothing of that id.
        """
        who.must(Action.REMARK)

        def work() -> int:
            office = self._decider.governance(who.name, once=once)
            return office.annotate(remark, about=about)

        return await self._threads.ask(work)

    async def disclose(
        self, who: Identity, disclosure: Node, once: IdempotencyKey
    ) -> tuple[DisclosureRecorded, int]:
        """Record that something was disclosed outside differential privacy.

        Args:
            who: Who says so.
            disclosure: What was disclosed.
            once: What makes it a request that is done once.

        Returns:
            What was recorded, and the number of its entry.

        Raises:
            AccessError: If they may not.
            ConflictError: If its id was used before.
            InputError: With every mistake in it.
        """
        who.must(Action.REMARK)

        def work() -> tuple[DisclosureRecorded, int]:
            office = self._decider.governance(who.name, once=once)
            return office.disclose(disclosure)

        return await self._threads.ask(work)
