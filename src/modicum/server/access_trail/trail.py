"""The access trail of a process: a queue, and a thread that stores it in the chain.

Nothing waits for it: no request, and no decision. If the trail cannot be written, the
server goes on, `/readyz` fails after some seconds, and what does not fit into the queue
is counted. Operations on tokens are the exception: they and their events are stored
together (see `AccessTable.change`).
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final

from modicum.api.permissions.tokens import Token
from modicum.api.ports.storage import Clock, Store, Versioned
from modicum.core.errors import Code, ModicumError, Problem, UnavailableError
from modicum.ledger.log.chain import Record
from modicum.ledger.proof.access_trail import AccessEvent, AccessKind, bounded
from modicum.server.access_trail.events import RefusalBounds, event_of
from modicum.server.telemetry.log import Served
from modicum.server.telemetry.trail_state import TrailState
from modicum.storage.access_table import AccessTable

#: Maximum number of events that wait in memory.
QUEUE_MAX: Final = 10_000
#: Maximum number of events that are stored in one turn of the ledger.
BATCH_MAX: Final = 256
#: Events are collected for this long, so that they share a turn.
COLLECT_SECONDS: Final = 0.25
#: The interval of attempts to store what could not be stored, in seconds.
RETRY_SECONDS: Final = 1.0
#: `/readyz` fails once events could not be stored for this many seconds.
FAILING_SECONDS: Final = 10.0
#: How long the end of a server waits for its last events.
END_SECONDS: Final = 5.0

_SETTINGS: Final = "settings"


class Trail:
    """Notes what happens, and stores it a moment later; any thread may use it.

    Args:
        store: The store of the ledger; it stays open.
        clock: The time of day.
        seconds: Returns seconds, from any origin.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.table = AccessTable(store)
        self._store = store
        self._clock = clock
        #: Called after events were stored.
        self.on_stored: Callable[[], object] = lambda: None
        self._seconds = seconds
        self._bounds = RefusalBounds(seconds)
        self._guard = threading.Lock()
        self._storing = threading.Lock()  # A batch is stored by one thread.
        self._events: deque[AccessEvent] = deque()
        self._bell = threading.Event()
        self._over = threading.Event()
        self._failing_since: float | None = None
        self._attempt: tuple[Record, int] | None = None
        self._left_out = 0
        self._settings: Mapping[str, str] = {}
        self._thread: threading.Thread | None = None

    # --- noting ---

    def note(self, event: AccessEvent) -> None:
        """Note an event; it waits for nothing."""
        with self._guard:
            if len(self._events) >= QUEUE_MAX:
                self._bounds.leave_out(event.kind)
                self._left_out += 1
                return
            if not self._bounds.takes(event):
                self._left_out += 1
                return
            self._events.append(event)
        self._bell.set()

    def note_served(self, one: Served) -> None:
        """Note a served request, if it is an access."""
        event = event_of(one, self._clock.now)
        if event is not None:
            self.note(event)

    def note_use(self, token: Token) -> None:
        """Note the use of a token; only the first one of all is stored."""
        self.note(
            AccessEvent(
                self._clock.now(),
                AccessKind.TOKEN_USED,
                who=bounded(token.actor),
                token=token.id,
            )
        )

    def note_settings(self, settings: Mapping[str, str]) -> None:
        """Note the digests of the settings in force; only a change is stored."""
        self._settings = dict(settings)
        self.note(AccessEvent(self._clock.now(), AccessKind.SETTINGS_CHANGED))

    # --- beginning and ending ---

    def start(self, settings: Mapping[str, str]) -> None:
        """Note the start of a process with the digests of its settings, and store."""
        if settings:
            self.note_settings(settings)
        self.note(AccessEvent(self._clock.now(), AccessKind.SERVER_STARTED))
        self._thread = threading.Thread(
            target=self._run, name="modicum-trail", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Note the end of the process, and wait a while until all is stored."""
        if self._thread is None:
            return
        self.note(AccessEvent(self._clock.now(), AccessKind.SERVER_STOPPED))
        self._over.set()
        self._bell.set()
        self._thread.join(END_SECONDS)
        self._thread = None

    # --- state ---

    def must_be_written(self) -> None:
        """Refuse to be ready if events could not be stored for a while."""
        since = self._failing_since
        if since is not None and self._seconds() - since >= FAILING_SECONDS:
            raise UnavailableError(
                Problem(
                    Code.TRAIL_UNWRITTEN,
                    "the access trail cannot be written",
                    help="mend the database; events wait in memory until then",
                )
            )

    def state(self) -> TrailState:
        """Return the state, for metrics."""
        return TrailState(
            len(self._events), self._left_out, is_written=self._failing_since is None
        )

    # --- the thread ---

    def _run(self) -> None:
        while True:
            self._bell.wait(RETRY_SECONDS)
            is_over = self._over.is_set()
            if not is_over:
                self._over.wait(COLLECT_SECONDS)
            self._bell.clear()
            self._count(at_end=is_over)
            stored = self.store_now()
            if is_over and (stored or not self._events):
                return
            if not stored:
                if is_over:
                    return  # What could not be stored by now is lost with the process.
                self._over.wait(RETRY_SECONDS)

    def _count(self, *, at_end: bool) -> None:
        with self._guard:
            self._events.extend(self._bounds.counted(self._clock.now(), at_end=at_end))

    def store_now(self) -> bool:
        """Store all that waits; return whether that succeeded."""
        try:
            with self._storing:
                while self._events:
                    if not self._is_current():
                        return False
                    self._store_batch()
        except ModicumError:
            self._note_failure()
            return False
        except Exception:  # noqa: BLE001 - the thread must go on
            self._note_failure()
            return False
        self._failing_since = None
        return True

    def _note_failure(self) -> None:
        if self._failing_since is None:
            self._failing_since = self._seconds()

    def _is_current(self) -> bool:
        """Return whether the tables are there: only a decision makes new ones."""
        if not self._store.exists():
            return False
        store = self._store
        return not isinstance(store, Versioned) or len({*store.table_versions()}) == 1

    def _store_batch(self) -> None:
        """Store the first events."""
        attempt, self._attempt = self._attempt, None
        if attempt is not None and self.table.has(attempt[0]):
            self._forget(attempt[1])  # Its outcome was unknown.
            return
        with self._guard:
            batch = [*islice(self._events, BATCH_MAX)]

        def attempted(last: Record) -> None:
            self._attempt = last, len(batch)

        self.table.append(partial(self._to_store, batch), attempted)
        self._attempt = None
        self._forget(len(batch))

    def _forget(self, count: int) -> None:
        """Drop the first events, which are stored."""
        with self._guard:
            for _ in range(count):
                self._events.popleft()
        self.on_stored()

    def _to_store(
        self, batch: Sequence[AccessEvent], mark: Callable[[str], str | None]
    ) -> tuple[list[AccessEvent], dict[str, str]]:
        """Return the events that are new, and the marks by which that is known."""
        events: list[AccessEvent] = []
        marks: dict[str, str] = {}
        for event in batch:
            if event.kind is AccessKind.TOKEN_USED:
                name = f"used {event.token}"
                if name in marks or mark(name) is not None:
                    continue
                marks[name] = event.at
            if event.kind is not AccessKind.SETTINGS_CHANGED:
                events.append(event)
                continue
            text = json.dumps(self._settings, sort_keys=True)
            before = mark(_SETTINGS)
            if before not in (None, text):  # None at the first start of all.
                events.append(_changed(event, json.loads(before or ""), self._settings))
            marks[_SETTINGS] = text
        return events, marks


def _changed(
    event: AccessEvent, before: Mapping[str, str], after: Mapping[str, str]
) -> AccessEvent:
    """Return the event of changed settings: their digest, and which they are."""
    parts = sorted(
        name
        for name in before.keys() | after.keys()
        if name and before.get(name) != after.get(name)
    )
    return AccessEvent(
        event.at, event.kind, settings=after.get("", ""), parts=tuple(parts)
    )
