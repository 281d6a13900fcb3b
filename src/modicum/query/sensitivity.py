"""How far the exact answers move with one change of a unit, in the L1 and L2 norm.

Of the kept rows, some come and some go (see `contribution_bounds`). Each is in one
group of the answer. What matters is how many can be in one group: a key that
distinguishes days allows no more in a group than a cap keeps of a day.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from itertools import product
from math import isqrt
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from modicum.query.contribution_bounds import UNBOUNDED, Moves

__all__ = ["Norms", "Shape", "of_counts", "of_ids", "of_sums", "of_tree", "root"]

#: Number of digits of square roots after the point, rounded up.
ROOT_DIGITS: Final = 12

#: The number of rows that come to a group and that go from it; and the number of
#: groups.
_Filled: TypeAlias = tuple[tuple[int, int], int]


class Shape(Struct, frozen=True):
    """The division of an answer into groups.

    Attributes:
        groups: In how many groups rows can move with one change, at most; `UNBOUNDED`
            if that is not public.
        together: The maximum number of rows of one change in one group, of those that
            come and of those that go; `UNBOUNDED` if nothing separates them.
        apart: Whether no group has both rows that come and rows that go.
    """

    groups: int = 1
    together: int = UNBOUNDED
    apart: bool = False


class Norms(Struct, frozen=True):
    """The change of an answer.

    Attributes:
        l1: In the L1 norm, a whole number.
        l2_squared: In the L2 norm, its square, a whole number.
    """

    l1: int
    l2_squared: int


def of_counts(moves: Moves, shape: Shape) -> Norms:
    """Return the norms of numbers of rows, or of distinct values.

    A row that comes adds at most one to its group, one that goes subtracts at most one.
    """
    return of_sums(moves, shape, 0, 1)


def of_sums(moves: Moves, shape: Shape, low: int, high: int) -> Norms:
    """Return the norms of sums of one number per row.

    A norm is convex, so its maximum is at a corner: in each group the rows that come
    all have one of the two extreme numbers, and those that go the other one.
    """
    norms = _of_sums(moves, shape, low, high)
    if not shape.apart:
        return norms
    come, go = (
        _of_sums(Moves(rows, 0), shape, low, high)
        for rows in (moves.coming, moves.going)
    )
    return Norms(
        min(norms.l1, come.l1 + go.l1),
        min(norms.l2_squared, come.l2_squared + go.l2_squared),
    )


def _of_sums(moves: Moves, shape: Shape, low: int, high: int) -> Norms:
    up, down = max(high, 0), max(-low, 0)

    def moved(coming: int, going: int) -> int:
        return max(coming * up + going * down, coming * down + going * up)

    l1 = l2_squared = 0
    for filled in _fillings(moves, shape):
        l1 = max(l1, sum(moved(*rows) * times for rows, times in filled))
        l2_squared = max(
            l2_squared, sum(moved(*rows) ** 2 * times for rows, times in filled)
        )
    return Norms(l1, l2_squared)


def of_ids(moves: Moves, shape: Shape, ids: int) -> Norms:
    """Return the norms of numbers of distinct ids.

    Of the rows of one id that come to a group, or go from it, one counts at most.

    Args:
        moves: The rows that come and go.
        shape: The groups.
        ids: How many different ids they have, at most.
    """
    return of_counts(moves, replace(shape, together=min(shape.together, ids)))


def of_tree(moves: Moves, shape: Shape, levels: int) -> Norms:
    """Return the norms of a tree of counts: each row is in one node of each level.

    Args:
        moves: The rows that come and go.
        shape: The groups of each node's counts.
        levels: The number of released levels.
    """
    # Two nodes of a group suffice: one for what comes, one for what goes.
    nodes = min(2 * shape.groups, UNBOUNDED)
    one = of_counts(moves, replace(shape, groups=nodes))
    return Norms(levels * one.l1, levels * one.l2_squared)


def root(squared: int) -> tuple[int, int]:
    """Return a square root, rounded up, as a fraction of two whole numbers.

    Args:
        squared: The number, at least 0.

    Examples:
        >>> root(49)
        (7, 1)
        >>> root(2)
        (1414213562374, 1000000000000)
    """
    whole = isqrt(squared)
    if whole * whole == squared:
        return whole, 1
    scale = 10**ROOT_DIGITS
    return isqrt(squared * scale * scale - 1) + 1, scale


# --- groups ---------------------------------------------------------------------------


def _fillings(moves: Moves, shape: Shape) -> Iterator[Sequence[_Filled]]:
    """Yield distributions of rows to groups, with the largest norms among them.

    Again by convexity: groups contain the maximum number of rows of a kind, or none,
    except for one group with the rest of what comes, and one with the rest of what
    goes. These may be the same one.
    """
    most = shape.together
    full_coming, rest_coming = _divided(moves.coming, shape)
    full_going, rest_going = _divided(moves.going, shape)
    for ours, theirs in product(_Place, repeat=2):
        if (ours is _Place.WITH_REST) != (theirs is _Place.WITH_REST):
            continue
        groups = [
            *_with_rest(ours, rest_coming, most, (rest_coming, rest_going)),
            *((b, a) for a, b in _with_rest(theirs, rest_going, most, None)),
        ]
        coming = full_coming - (theirs is _Place.WITH_FULL)
        going = full_going - (ours is _Place.WITH_FULL)
        left = shape.groups - len(groups)
        if min(coming, going, left) < 0:
            continue
        singly: list[_Filled] = [(rows, 1) for rows in groups]
        for both in _meetings(coming, going, left):
            one_kind = min(coming + going - 2 * both, left - both)
            yield [*singly, ((most, most), both), ((most, 0), one_kind)]


class _Place(Enum):
    """The place of remaining rows that fill no group."""

    NOWHERE = auto()
    ALONE = auto()
    WITH_FULL = auto()
    WITH_REST = auto()


def _divided(rows: int, shape: Shape) -> tuple[int, int]:
    """Return how many groups some rows fill, and how many are left."""
    full, rest = divmod(rows, shape.together)
    return (shape.groups, 0) if full >= shape.groups else (full, rest)


def _with_rest(
    place: _Place, rest: int, most: int, both: tuple[int, int] | None
) -> list[tuple[int, int]]:
    """Return the group that a rest is in, if this is the one to name it."""
    if place is _Place.ALONE:
        return [(rest, 0)]
    if place is _Place.WITH_FULL:
        return [(rest, most)]
    if place is _Place.WITH_REST and both is not None:
        return [both]
    return []


def _meetings(coming: int, going: int, left: int) -> set[int]:
    """Return in how many groups what comes may meet what goes: none, all, or must."""
    most = min(coming, going, left)
    return {0, most, max(0, min(most, coming + going - left))}
