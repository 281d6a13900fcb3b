"""Signed words about the log: a checkpoint of its head, and receipts for answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio.to_thread
from anyio import CapacityLimiter

from modicum.api.local.release_datasets import data_sets_recorded, may
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.api.ports.storage import Clock
from modicum.ledger import RecordedRelease
from modicum.ledger.proof.claims import Signed
from modicum.server.resources import Equipment, not_set_up
from modicum.storage.proofs.ledger_log import sign_checkpoint
from modicum.storage.proofs.receipts import AuditedAnswers
from modicum.storage.proofs.signing_keys import Signing
from modicum.system.clock import SystemClock
from modicum.writer.service import Decider

#: Nothing is signed about a log that was not checked, and that takes a while.
_AT_ONCE: Final = 1


class SignedWords:
    """What the server signs with its own key.

    Args:
        decider: The ledger.
        own: The key.
        clock: The time of day.
    """

    def __init__(
        self,
        decider: Decider,
        own: Equipment,
        clock: Clock | None = None,
    ) -> None:
        self._decider = decider
        self._key = own.signing_key
        self._clock = clock or SystemClock()
        self._checking = CapacityLimiter(_AT_ONCE)
        self._answers = AuditedAnswers(decider.log())
        self._last: tuple[str, Signed] | None = None

    async def checkpoint(self, who: Identity) -> Signed:
        """Return a signed checkpoint of the head, after checking all of the log.

        Args:
            who: Who asks.

        Raises:
            AccessError: If they may not read the ledger.
            UsageError: If the server has no key.
            VerificationError: If the log does not hold.
        """
        who.must(Action.READ_LEDGER)
        return await self._signed(self._checkpoint)

    async def receipt(self, who: Identity, release: str) -> Signed:
        """Return a receipt for the latest answer that the ledger gave to a release.

        Args:
            who: Who asks.
            release: Its id.

        Raises:
            InputError: If there is no such release, as far as they may know; or it
                was never answered.
            UsageError: If the server has no key.
            VerificationError: If the log does not hold.
        """

        def may_see(recorded: RecordedRelease) -> bool:
            return may(who, Action.READ_RELEASES, data_sets_recorded(recorded))

        return await self._signed(
            lambda signing: self._answers.sign_receipt(release, signing, may_see)
        )

    async def _signed(self, sign: Callable[[Signing], Signed]) -> Signed:
        """Return what is signed; one thread does so at a time."""
        if self._key is None:
            raise not_set_up("no key to sign with", "signing_key_file")
        key = self._key
        return await anyio.to_thread.run_sync(
            lambda: sign(Signing(key, self._clock.now())), limiter=self._checking
        )

    def _checkpoint(self, signing: Signing) -> Signed:
        """Return the checkpoint of the head; it is signed once."""
        head = self._decider.look(lambda view: view.state().head)
        if self._last is None or self._last[0] != head:
            self._last = head, sign_checkpoint(self._decider.log(), signing)
        return self._last[1]
