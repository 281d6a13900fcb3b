"""Scores of blocks, worked out slowly, and how far one person can move them.

It knows what docs/spec/escrow.md says, and nothing of how modicum does it: tables are
mappings from people to what is known of them, and everything is tried.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product

#: What is known of each person who is there.
People = Mapping[int, str]
#: What the query and the program make of the people of one block.
Score = Callable[[frozenset[tuple[int, str]]], float | None]


def mean(
    people: People,
    blocks: Sequence[int],
    number: int,
    score: Score,
    ends: tuple[Fraction, Fraction],
) -> Fraction:
    """Return the mean of the scores of all blocks, each on its grid of nine digits."""
    low, high = ends
    step = (high - low) / 10**9
    found = []
    for block in range(number):
        inside = frozenset((who, what) for who, what in people.items()
                           if blocks[who] == block)  # fmt: skip
        result = score(inside)
        if result is None or not math.isfinite(result):
            found.append((low + high) / 2)
            continue
        moved = min(max(Fraction(result), low), high)
        found.append(low + round((moved - low) / step) * step)
    return sum(found, Fraction(0)) / number


def tables(number: int, values: Sequence[str]) -> Iterator[People]:
    """Yield all tables of so many people, each there with one of the values or not."""
    for row in product((None, *values), repeat=number):
        yield {who: what for who, what in enumerate(row) if what is not None}


def neighbors(people: People, who: int, values: Sequence[str]) -> Iterator[People]:
    """Yield what any change of one person makes of a table: there or not, or other."""
    others = {one: what for one, what in people.items() if one != who}
    for what in (None, *values):
        yield others if what is None else {**others, who: what}


def block_of(key: str, id_text: str, number: int) -> int:
    """Return the block of an id: where the first 60 bits of its hash lie."""
    written = f"{key}:{len(id_text)}:{id_text}"
    first = int(hashlib.sha256(written.encode()).hexdigest()[:15], 16)
    return next(
        block for block in reversed(range(number)) if first >= block * 2**60 // number
    )
