"""The status of every release, in columns: compact for a million.

An object for each release would cost several times as much, and most of them are
never looked at again.

Names that differ in capitals or blanks only are one holder.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, KeysView, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import islice, pairwise

from modicum.core.canonical import Plain, encode
from modicum.ledger.state.lifecycle import ReleaseStatus, Standing
from modicum.policy.declarations.roles import person_key

_STATUSES = tuple(ReleaseStatus)
_NUMBERS = {status: number for number, status in enumerate(_STATUSES)}
_RESERVED = _NUMBERS[ReleaseStatus.RESERVED]
_DIGEST_BYTES = 32


class Standings(Mapping[str, Standing]):
    """The status of each release by its id, in log order."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._seqs = array("q")
        self._days = array("i")
        self._statuses = bytearray()
        self._contents = bytearray()
        self._expiries = _Expiries()
        #: The number of releases that count as spent.
        self.counted = 0

    def __getitem__(self, identifier: str) -> Standing:
        place = self._places[identifier]
        start = place * _DIGEST_BYTES
        return Standing(
            id=identifier,
            content=self._contents[start : start + _DIGEST_BYTES].hex(),
            status=_STATUSES[self._statuses[place]],
            expires_at=self._expiries.times.get(identifier, ""),
            seq=self._seqs[place],
            day=self._days[place],
        )

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def after(self, seq: int) -> Iterator[str]:
        """Yield the ids of the releases recorded after an entry, oldest first."""
        return islice(self._places, bisect_right(self._seqs, seq), None)

    def before(self, seq: int) -> Iterator[str]:
        """Yield the ids of the releases recorded before an entry, newest first."""
        passed = len(self._seqs) - bisect_left(self._seqs, seq)
        return islice(reversed(self._places), passed, None)

    def last_before(self, day: int) -> int:
        """Return the entry of the last release reserved before a day; 0 for none.

        Args:
            day: The day, as an ordinal.
        """
        recorded = _NUMBERS[ReleaseStatus.RECORDED]  # Its day is not its entry's.
        for place in reversed(range(len(self._seqs))):
            if self._days[place] < day and self._statuses[place] != recorded:
                return self._seqs[place]
        return 0

    def counted_seqs(self, now: str) -> list[int]:
        """Return the entries of the releases that count as spent, in order.

        Args:
            now: The time; reservations due by then no longer count.
        """
        due = {self._places[identifier] for identifier in self._expiries.until(now)}
        return [
            seq
            for place, seq in enumerate(self._seqs)
            if _STATUSES[self._statuses[place]].counts and place not in due
        ]

    def add(self, standing: Standing) -> None:
        """Add a release whose id is free.

        Raises:
            ValueError: If its content is not a SHA-256.
        """
        content = bytes.fromhex(standing.content)
        if len(content) != _DIGEST_BYTES:
            message = "the content of a release is a SHA-256 digest"
            raise ValueError(message)
        self._places[standing.id] = len(self._places)
        self._seqs.append(standing.seq)
        self._days.append(standing.day)
        self._statuses.append(_NUMBERS[standing.status])
        self._contents += content
        self.counted += standing.status.counts
        if standing.status is ReleaseStatus.RESERVED:
            self._expiries.add(standing.id, standing.expires_at)

    def move(self, identifier: str, status: ReleaseStatus) -> None:
        """Take a reserved or started release a step on."""
        place = self._places[identifier]
        before = _STATUSES[self._statuses[place]]
        self._statuses[place] = _NUMBERS[status]
        self.counted += status.counts - before.counts
        if before is ReleaseStatus.RESERVED:
            self._expiries.remove(identifier)

    def redescribe(self, identifier: str, content: str) -> None:
        """Replace the contents of a release.

        Args:
            identifier: Its id.
            content: The SHA-256 of the new description.
        """
        start = self._places[identifier] * _DIGEST_BYTES
        self._contents[start : start + _DIGEST_BYTES] = bytes.fromhex(content)

    def due(self, now: str) -> list[str]:
        """Return the reservations that are due at `now`, oldest first."""
        found = self._expiries.until(now)
        return sorted(found, key=self._places.__getitem__) if found else []

    def digest(self) -> str:
        """Return a SHA-256 over all of it, the same on every machine."""
        found = hashlib.sha256(encode(list(self._places)))
        for column in (self._seqs, self._days):
            found.update(_little_endian(column))
        found.update(self._statuses)
        found.update(self._contents)
        found.update(encode(self._expiries.times))
        return found.hexdigest()

    # --- for snapshots ---

    def to_columns(self) -> tuple[dict[str, Plain], bytes]:
        """Return all of it as plain data and a block of bytes."""
        plain: dict[str, Plain] = {
            "ids": list(self._places),
            "expiries": dict(self._expiries.times),
        }
        columns = (self._seqs, self._days)
        block = b"".join(map(_little_endian, columns)) + self._statuses + self._contents
        return plain, block

    @classmethod
    def from_columns(
        cls, ids: list[str], expiries: dict[str, str], block: bytes
    ) -> Standings:
        """Return the standings that `to_columns` wrote.

        Raises:
            ValueError: If the parts do not belong together.
        """
        found = cls()
        count = len(ids)
        found._places = dict(zip(ids, range(count), strict=True))
        ends = [0, 8 * count, 12 * count, 13 * count, (13 + _DIGEST_BYTES) * count]
        if len(found._places) != count or len(block) != ends[-1]:
            message = "columns of different lengths"
            raise ValueError(message)
        seqs, days, statuses, contents = (
            block[start:end] for start, end in pairwise(ends)
        )
        found._seqs.frombytes(seqs)
        found._days.frombytes(days)
        if sys.byteorder == "big":
            found._seqs.byteswap()
            found._days.byteswap()
        found._statuses += statuses
        found._contents += contents
        found._expiries = _Expiries(expiries)
        spent = [number for status, number in _NUMBERS.items() if status.counts]
        found.counted = sum(statuses.count(number) for number in spent)
        if statuses.count(_RESERVED) != len(expiries):
            message = "the open reservations are not those that expire"
            raise ValueError(message)
        return found


class _Expiries:
    """The expiry times of open reservations.

    A heap by time. Closed reservations stay in it until they reach its top or are the
    larger part of it.
    """

    def __init__(self, times: Mapping[str, str] | None = None) -> None:
        self.times = dict(times or {})
        self._heap = [(at, identifier) for identifier, at in self.times.items()]
        heapify(self._heap)

    def add(self, identifier: str, at: str) -> None:
        self.times[identifier] = at
        heappush(self._heap, (at, identifier))

    def remove(self, identifier: str) -> None:
        del self.times[identifier]
        heap = self._heap
        if len(heap) > 2 * len(self.times) + 64:
            self._heap = [(at, one) for one, at in self.times.items()]
            heapify(self._heap)
            return
        while heap and heap[0][1] not in self.times:
            heappop(heap)

    def until(self, now: str) -> list[str]:
        """Return what has expired at `now`, in no order; looks at little else."""
        heap, found, left = self._heap, [], [0]
        while left:
            place = left.pop()
            if place < len(heap) and heap[place][0] <= now:
                if heap[place][1] in self.times:
                    found.append(heap[place][1])
                left += (2 * place + 1, 2 * place + 2)
        return found


def _little_endian(column: array[int]) -> bytes:
    if sys.byteorder == "big":
        column = array(column.typecode, column)
        column.byteswap()
    return column.tobytes()


@dataclass(slots=True)
class Holders:
    """The holder of each reservation, and the reservations of each holder.

    Attributes:
        by: By release, its holder; oldest first.
    """

    by: dict[str, str] = field(default_factory=dict)
    #: By holder, the releases; built on first use.
    _of: dict[str, dict[str, None]] | None = field(
        default=None, init=False, compare=False
    )

    def add(self, release: str, actor: str) -> None:
        """Record a reservation of an actor."""
        self.by[release] = actor = person_key(actor)
        if self._of is not None:
            self._of.setdefault(actor, {})[release] = None

    def drop(self, release: str) -> None:
        """Note that a release is held no more, if it was."""
        actor = self.by.pop(release, None)
        if actor is not None and self._of is not None:
            own = self._of[actor]
            del own[release]
            if not own:
                del self._of[actor]

    def of(self, actor: str) -> KeysView[str]:
        """Return the releases that an actor holds, oldest first."""
        if self._of is None:
            self._of = {}
            for release, one in self.by.items():
                self._of.setdefault(one, {})[release] = None
        return self._of.get(person_key(actor), {}).keys()
