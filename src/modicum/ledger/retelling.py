"""Telling an old release in the words of the policy that counts it now.

Only its parts change: where an attribute that divides the population was refined,
coarsened, renamed or dropped since, a release is charged to all that its words may
stand for now. What it costs and what it reads stay.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from modicum.ledger.events import RecordedMechanism, RecordedRelease
from modicum.policy.past_populations import population_of
from modicum.release import Part, Population
from modicum.release.re_expressed import re_expressed

#: So many parts are remembered.
_REMEMBERED_MAX = 10_000


class Held(Protocol):
    """A policy that holds or held: its text, and the entry that activated it."""

    @property
    def text(self) -> str:
        """The text of the policy."""
        ...

    @property
    def seq(self) -> int:
        """The number of the entry that activated it."""
        ...


class Retelling:
    """Tells releases of a log in the words of one policy.

    Args:
        policies: The policies that were activated up to a head, oldest first.
        present: How the population is divided by the policy that counts now: the
            last of these policies, or one that would take its place.
    """

    def __init__(self, policies: Sequence[Held], present: Population) -> None:
        self._seqs = [one.seq for one in policies]
        chain = [population_of(one.text) for one in policies]
        if not chain or chain[-1] != present:
            chain.append(present)
        self._chain = chain
        self._parts: dict[tuple[Part, int], Part] = {}

    def release(self, release: RecordedRelease, seq: int) -> RecordedRelease:
        """Return a release in the present words.

        Args:
            release: The release, as it was recorded.
            seq: The number of the entry that brought it in.
        """
        if all(one.part.where is None for one in release.mechanisms):
            return release
        told = tuple(self._mechanism(one, seq) for one in release.mechanisms)
        return (
            release if told == release.mechanisms else replace(release, mechanisms=told)
        )

    def part(self, part: Part, seq: int) -> Part:
        """Return a part in the present words.

        Args:
            part: The part, in the words of the policy that held then.
            seq: The number of the entry that told of it.
        """
        held = max(bisect_right(self._seqs, seq) - 1, 0)
        if part.where is None or held == len(self._chain) - 1:
            return part
        found = self._parts.get((part, held))
        if found is None:
            if len(self._parts) >= _REMEMBERED_MAX:
                self._parts.clear()
            found = self._parts[part, held] = re_expressed(part, self._chain[held:])
        return found

    def _mechanism(self, one: RecordedMechanism, seq: int) -> RecordedMechanism:
        part = self.part(one.part, seq)
        return one if part is one.part else replace(one, part=part)
