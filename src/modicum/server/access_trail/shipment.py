"""Shipping of the access trail: each target has a thread, and a position in the chain.

What is stored is sent, in order, and the position is stored after it. So a target that
was away gets later what it missed, and after a kill some events are sent again: each
has its number and its hash. Of several servers, one at a time ships to a target.
"""

from __future__ import annotations

import secrets
import threading
from contextlib import suppress
from typing import Final

from modicum.api.ports.storage import Clock
from modicum.core.errors import ModicumError
from modicum.server.access_trail.targets import Target, target_of
from modicum.server.settings.audit_targets import AuditTarget
from modicum.server.telemetry.trail_state import TargetState
from modicum.storage.access_table import AccessTable

#: Maximum number of events sent at once.
BATCH_MAX: Final = 200
#: A server that ships to a target holds it for so long; then another one may.
HOLD_SECONDS: Final = 60
#: The interval in which events of other servers are looked for, in seconds.
LOOK_SECONDS: Final = 5.0
#: The longest pause after a failure, in seconds.
PAUSE_MAX: Final = 30.0
#: How long the end of a server waits for a target.
END_SECONDS: Final = 2.0


class Shipment:
    """Ships the trail to one target, in a thread.

    Args:
        table: The trail.
        given: The target.
        clock: The time of day.
        number: Its place in the settings, from 1.
    """

    def __init__(
        self, table: AccessTable, given: AuditTarget, clock: Clock, number: int = 1
    ) -> None:
        self._table = table
        self._target: Target = target_of(given)
        self._mark = f"sent {given.name}"
        self._label = f"{number}-{given.kind.value}"
        self._clock = clock
        self._holder = secrets.token_hex(8)
        self._bell = threading.Event()
        self._over = threading.Event()
        self._is_reached = True
        self._behind = 0
        self._thread = threading.Thread(
            target=self._run, name="modicum-audit-to", daemon=True
        )

    def start(self) -> None:
        """Ship from now on."""
        self._thread.start()

    def ring(self) -> None:
        """Announce that events were stored."""
        self._bell.set()

    def close(self) -> None:
        """Ship what is stored, if the target takes it, and end."""
        self._over.set()
        self._bell.set()
        self._thread.join(END_SECONDS)

    def state(self) -> TargetState:
        """Return the state, for metrics."""
        return TargetState(self._label, self._is_reached, self._behind)

    def _run(self) -> None:
        pause = 1.0
        while True:
            is_last = self._over.is_set()
            self._bell.clear()
            try:
                self.ship()
            except (ModicumError, OSError):
                self._is_reached = False
                if not is_last:
                    self._over.wait(pause)
                pause = min(pause * 2, PAUSE_MAX)
            except Exception:  # noqa: BLE001 - the thread must go on
                self._is_reached = False
                self._over.wait(PAUSE_MAX)
            else:
                self._is_reached, pause = True, 1.0
                if not is_last:
                    self._bell.wait(LOOK_SECONDS)
            if is_last:
                self._end()
                return

    def _end(self) -> None:
        """Let another server go on."""
        self._target.close()
        with suppress(Exception):  # Else it waits until the hold is over.
            now = self._clock.now()
            self._table.claim(self._mark, self._holder, now, now)

    def ship(self) -> int:
        """Send all that the target has not received; return how many events.

        Raises:
            OSError: If it may not have received some of them.
            ModicumError: If the trail cannot be read, or the position not be stored.
        """
        sent = 0
        while True:
            after = int(self._table.mark(self._mark) or 0)
            last = self._table.last()
            self._behind = max(0, (0 if last is None else last.seq) - after)
            records = self._table.page(after, BATCH_MAX)
            if not records or not self._hold():
                return sent
            if int(self._table.mark(self._mark) or 0) != after:
                continue  # Another server sent them meanwhile.
            self._target.send(records)
            self._table.advance(
                self._mark, self._holder, str(records[-1].seq), self._until()
            )
            sent += len(records)

    def _hold(self) -> bool:
        now = self._clock.now()
        return self._table.claim(self._mark, self._holder, now, self._until())

    def _until(self) -> str:
        return self._clock.after(self._clock.now(), HOLD_SECONDS)
