"""A ledger as it was at an earlier entry: its log up to there, and the time then."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from modicum.api.ports.storage import EventStore, Turn
from modicum.core.errors import Code, Problem, UsageError, check
from modicum.ledger import Record, State, event_of
from modicum.ledger.log.days import day_of

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2}T(?:[01]\d|2[0-3]):[0-5]\d)(:[0-5]\d)?(\.\d{1,6})?Z", re.ASCII
)
_END_OF_DAY = "T23:59:59.999999Z"


@dataclass(frozen=True, slots=True)
class PastPoint:
    """A point in the past of a ledger.

    Attributes:
        seq: The number of the last entry then.
        at: The time then.
    """

    seq: int
    at: str


def past_point(
    point: int | str, state: State, store: EventStore, now: str
) -> PastPoint:
    """Return the selected point in the past.

    Args:
        point: The number of an entry, or a time.
        state: The state at the head.
        store: The store of the log.
        now: The time.

    Raises:
        UsageError: If the point is not in the past of the ledger, or is none at all.
    """
    if isinstance(point, int):
        if not 1 <= point <= state.seq:
            raise _unknown(
                f"there is no entry {point} yet: the ledger has {state.seq} entries"
            )
        return PastPoint(point, _time_of(point, store))
    at = _read_time(point)
    if at > now:
        if point != now[:10]:
            raise _unknown(f"{point} is in the future")
        at = now  # Today, up to now.
    seq = _last_entry(at, state, store)
    if not seq:
        raise _unknown(f"the ledger starts after {point}")
    return PastPoint(seq, at)


class EarlierStore:
    """A log up to one of its entries. Nothing can be added to it.

    Args:
        store: The whole log.
        seq: The number of the entry that it ends with.
    """

    def __init__(self, store: EventStore, seq: int) -> None:
        self._store = store
        self._seq = seq

    @property
    def name(self) -> str:
        """Return its display name."""
        return f"{self._store.name} as of entry {self._seq}"

    def exists(self) -> bool:
        """Return whether there is a ledger."""
        return self._store.exists()

    def read(self, after: int, limit: int | None = None) -> Iterable[Record]:
        """Return the records whose number exceeds `after`, in order.

        Args:
            after: A number; 0 for all records.
            limit: The maximum number of records; None for all.
        """
        left = max(self._seq - after, 0)
        most = left if limit is None else min(left, limit)
        return self._store.read(after, most) if most else ()

    def record(self, seq: int) -> Record | None:
        """Return the record with a number, or None if there is none."""
        return self._store.record(seq) if seq <= self._seq else None

    def turn(self) -> AbstractContextManager[Turn]:
        """Refuse: the past does not change.

        Raises:
            UsageError: Always.
        """
        raise UsageError(
            Problem(
                Code.LEDGER_UNWRITABLE,
                f"{self.name}: a past state is read-only",
                places=(self.name,),
            )
        )

    def close(self) -> None:
        """Close connections."""
        self._store.close()


@dataclass(slots=True)
class EarlierClock:
    """A clock that stands still.

    Attributes:
        at: The time it shows.
    """

    at: str

    def now(self) -> str:
        """Return the time."""
        return self.at

    def checked(self, now: str, at: str) -> str:
        """Return `now`: it never jumps."""
        del at
        return now

    def after(self, now: str, seconds: int) -> str:
        """Refuse: nothing is reserved in the past."""
        check(False, "LED-1: nothing is added to the past")  # noqa: FBT003
        return now  # pragma: no cover - `check` has raised


def _read_time(point: str) -> str:
    """Return a time as entries write it.

    Raises:
        UsageError: If it is none.
    """
    found = _TIME.fullmatch(point)
    if found is not None:
        minute, second, rest = found.groups()
        fraction = (rest or ".")[1:].ljust(6, "0")
        at = f"{minute}{second or ':00'}.{fraction}Z"
    elif _DAY.fullmatch(point):
        at = point + _END_OF_DAY
    else:
        raise _no_time(point)
    try:
        day_of(at)
    except ValueError:
        raise _no_time(point) from None
    return at


def _last_entry(at: str, state: State, store: EventStore) -> int:
    """Return the number of the last entry that was written by a time; 0 if none was.

    Times never fall along the log (LED-15).
    """
    low, high = 0, state.seq + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _time_of(middle, store) <= at else (low, middle)
    return low


def _time_of(seq: int, store: EventStore) -> str:
    record = store.record(seq)
    check(record is not None, "LED-1: entries are never taken away")
    assert record is not None
    return event_of(record, seq).at


def _no_time(point: str) -> UsageError:
    return _unknown(f'"{point[:40]}" is neither an entry number nor a time')


def _unknown(message: str) -> UsageError:
    return UsageError(
        Problem(
            Code.OUT_OF_RANGE,
            message,
            help="name an entry of  modicum ledger list,  or a time in UTC such as"
            " 2026-05-01 or 2026-05-01T12:00Z",
        )
    )
