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

from modicum.policy import CompiledPolicy
from modicum.release import ReleaseDraft
from modicum.release.memory import Memory
from modicum.workspace.answers import Description

#: So many lists of mechanisms are known at most: fewer than there are prices kept.
KNOWN_MAX = 512
#: Longer descriptions are read by their clients.
BYTES_MAX = 4_000
# The last format that writes equal values alike, whatever else refers to them.
_FORMAT = 2


class Plain(NamedTuple):
    """A release of plain data, as bytes.

    Attributes:
        text: All of it.
        kind: What tells its mechanisms from others.
    """

    text: bytes
    kind: int

    @classmethod
    def of(cls, release: Description) -> Plain | None:
        """Return a release as bytes; None if it is long, or cannot be written so.

        Args:
            release: The release, with or without mistakes.
        """
        if isinstance(release, ReleaseDraft):
            release = release.to_dict()
        if type(release) is not dict:
            return None
        try:
            text = marshal.dumps(release, _FORMAT)
            mechanisms = marshal.dumps(release.get("mechanisms"), _FORMAT)
        except ValueError:  # It holds what is no data.
            return None
        return cls(text, hash(mechanisms)) if len(text) <= BYTES_MAX else None

    def read(self) -> dict[str, Any]:
        """Return the release, made anew."""
        found: dict[str, Any] = marshal.loads(self.text)  # noqa: S302 - our own bytes
        return found


class Familiar:
    """Which mechanisms were priced before, under one policy; any thread may ask.

    It is a guess of how long it takes to price them, and of nothing else.
    """

    def __init__(self) -> None:
        self._known: Memory[tuple[str, int], bool] = Memory(KNOWN_MAX)

    def knows(self, one: Plain, compiled: CompiledPolicy) -> bool:
        """Return whether the mechanisms of a release were priced before.

        Args:
            one: The release.
            compiled: The policy that it would be priced under.
        """
        return self._known.get((compiled.policy.digest, one.kind)) is not None

    def note(self, one: Plain, compiled: CompiledPolicy) -> None:
        """Note that a release was priced.

        Args:
            one: The release.
            compiled: The policy that it was priced under.
        """
        self._known.keep((compiled.policy.digest, one.kind), value=True)
