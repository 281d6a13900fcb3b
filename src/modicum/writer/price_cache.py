"""A cache of prices: releases similar to priced ones are fast to read and price.

Fast requests are best left to the writer. It executes one release after the other with
warm caches; a thread that wakes for one release, maybe on another processor, takes
about twice as long. Slow ones are prepared by the client, so that nobody waits for
them.

A release is handed over as bytes. So the writer runs no code of the client, and later
changes by the client have no effect.
"""

from __future__ import annotations

import marshal
from typing import Any, NamedTuple

from modicum.api.local.evaluation import Description
from modicum.policy import CompiledPolicy
from modicum.release import ReleaseDraft
from modicum.release.memo import Memo

#: Maximum number of cached lists of mechanisms: fewer than cached prices.
KNOWN_MAX = 512
#: Maximum number of cached parts of the data: fewer than cached headings.
PARTS_MAX = 2048
#: Longer descriptions are read by their clients.
BYTES_MAX = 4_000
# Keys of mechanisms whose prices take long, and are forgotten before it is that they
# were known: these are read by their clients as well.
_SLOW = (b"sampling", b"selection")
# The last format that writes equal values alike, independent of shared references.
_FORMAT = 2
_PART = ("where", "periods", "groups")


class Plain(NamedTuple):
    """A release of plain data, as bytes.

    Attributes:
        text: All of it.
        kind: The key of its mechanisms.
        part: The key of its part of the data.
    """

    text: bytes
    kind: int
    part: int

    @classmethod
    def of(cls, release: Description) -> Plain | None:
        """Return a release as bytes; None if it is long or slow, or not plain data."""
        if isinstance(release, ReleaseDraft):
            release = release.to_dict()
        if type(release) is not dict:
            return None
        try:
            text = marshal.dumps(release, _FORMAT)
            if len(text) > BYTES_MAX or any(key in text for key in _SLOW):
                return None
            mechanisms = marshal.dumps(release.get("mechanisms"), _FORMAT)
            part = marshal.dumps([release.get(name) for name in _PART], _FORMAT)
        except ValueError:  # It is not plain data.
            return None
        return cls(text, hash(mechanisms), hash(part))

    def read(self) -> dict[str, Any]:
        """Return the release, made anew."""
        found: dict[str, Any] = marshal.loads(self.text)  # noqa: S302 - our own bytes
        return found


class PriceCache:
    """The releases read and priced before, under one policy; for any thread.

    It only predicts the time to do that again. A part of the data may take longer than
    all the rest, above all if it is misspelt.
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
