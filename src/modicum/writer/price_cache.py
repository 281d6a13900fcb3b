"""Releases whose like was priced before: to read and price them again is quick.

What is quick is best done by the writer. It does one release after the other, and what
it needs is at hand each time; a thread that wakes for one release, maybe on another
processor, takes about twice as long for the same. What is slow is done by the client,
so that nobody waits for it.

A release is handed over as bytes. So the writer runs nothing of the client's, and what
the client changes afterwards changes nothing.
"""

from __future__ import annotations

import marshal
from typing import Any, NamedTuple

from modicum.api.local.evaluation import Description
from modicum.policy import CompiledPolicy
from modicum.release import ReleaseDraft
from modicum.release.memo import Memo

#: So many lists of mechanisms are known at most: fewer than there are prices kept.
KNOWN_MAX = 512
#: So many parts of the data are known at most: fewer than there are headings kept.
PARTS_MAX = 2048
#: Longer descriptions are read by their clients.
BYTES_MAX = 4_000
# The last format that writes equal values alike, whatever else refers to them.
_FORMAT = 2
_PART = ("where", "periods", "groups")


class Plain(NamedTuple):
    """A release of plain data, as bytes.

    Attributes:
        text: All of it.
        kind: What tells its mechanisms from others.
        part: What tells the part of the data that it names from others.
    """

    text: bytes
    kind: int
    part: int

    @classmethod
    def of(cls, release: Description) -> Plain | None:
        """Return a release as bytes; None if it is long, or cannot be written so."""
        if isinstance(release, ReleaseDraft):
            release = release.to_dict()
        if type(release) is not dict:
            return None
        try:
            text = marshal.dumps(release, _FORMAT)
            if len(text) > BYTES_MAX:
                return None
            mechanisms = marshal.dumps(release.get("mechanisms"), _FORMAT)
            part = marshal.dumps([release.get(name) for name in _PART], _FORMAT)
        except ValueError:  # It holds what is no data.
            return None
        return cls(text, hash(mechanisms), hash(part))

    def read(self) -> dict[str, Any]:
        """Return the release, made anew."""
        found: dict[str, Any] = marshal.loads(self.text)  # noqa: S302 - our own bytes
        return found


class PriceCache:
    """What was read and priced before, under one policy; any thread may ask.

    It is a guess of how long it takes to do that again, and of nothing else. A part of
    the data may take longer than all the rest, above all if it is misspelt.
    """

    def __init__(self) -> None:
        self._known: Memo[tuple[str, int], bool] = Memo(KNOWN_MAX)
        self._parts: Memo[tuple[str, int], bool] = Memo(PARTS_MAX)

    def knows(self, one: Plain, compiled: CompiledPolicy) -> bool:
        """Return whether the mechanisms and the part of a release were read before."""
        digest = compiled.policy.digest
        return (
            self._known.get((digest, one.kind)) is not None
            and self._parts.get((digest, one.part)) is not None
        )

    def note(self, one: Plain, compiled: CompiledPolicy) -> None:
        """Note that a release was priced."""
        digest = compiled.policy.digest
        self._known.keep((digest, one.kind), value=True)
        self._parts.keep((digest, one.part), value=True)
