"""The functions of `arrays` as loops compiled by numba. Import it only to use it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from modicum.core.jit import compiled
from modicum.engines.caps.arrays import FACTORS, Booleans, Instances, Integers, Words

_A, _B, _C = (np.uint64(one) for one in FACTORS)
_HALF, _LESS, _BYTE = np.uint64(32), np.uint64(29), np.uint64(8)


@compiled
def mixed(state: np.uint64, value: np.uint64) -> np.uint64:
    """Return a hash with one more value."""
    state = (state ^ value) * _A
    state = (state ^ (state >> _HALF)) * _B
    state = (state ^ (state >> _LESS)) * _C
    return state ^ (state >> _HALF)


@compiled
def mix(state: Words, values: Words | Integers) -> None:
    """Mix one value into each hash, in place."""
    for row in range(len(state)):
        state[row] = mixed(state[row], np.uint64(values[row]))


@compiled
def _pair_hashes(
    key: np.uint64, firsts: Words, seconds: Integers, found: Words
) -> None:
    for row in range(len(found)):
        found[row] = mixed(mixed(key, firsts[row]), np.uint64(seconds[row]))


def pair_hashes(key: np.uint64, firsts: Words, seconds: Integers) -> Words:
    """Return a hash of each pair of values."""
    found = np.empty(len(firsts), np.uint64)
    _pair_hashes(key, firsts, seconds, found)
    return found


@compiled
def _text_hashes(starts: Integers, data: NDArray[np.uint8], hashes: Words) -> None:
    for row in range(len(hashes)):
        begin, end = starts[row], starts[row + 1]
        state = np.uint64(end - begin)
        while begin < end:
            word = np.uint64(0)
            for place in range(min(end - begin, 8)):
                word |= np.uint64(data[begin + place]) << (_BYTE * np.uint64(place))
            state = mixed(state, word)
            begin += 8
        hashes[row] = state


def text_hashes(starts: Integers, data: NDArray[np.uint8]) -> Words:
    """Return a hash of each text, of its length and its words of eight bytes."""
    hashes = np.empty(len(starts) - 1, np.uint64)
    _text_hashes(starts, data, hashes)
    return hashes


@compiled
def _bump(counts: NDArray[np.unsignedinteger], hashes: Words, shift: np.uint64) -> None:
    for row in range(len(hashes)):
        counts[hashes[row] >> shift] += 1


def bump(counts: NDArray[np.unsignedinteger], hashes: Words, shift: int) -> None:
    """Count each hash in the bucket of its first bits."""
    _bump(counts, hashes, np.uint64(shift))


@compiled
def _mark(
    found: Booleans,
    full: Booleans,
    coarse: Booleans,
    hashes: Words,
    shifts: tuple[np.uint64, np.uint64],
) -> None:
    for row in range(len(hashes)):
        if coarse[hashes[row] >> shifts[1]]:
            found[row] |= full[hashes[row] >> shifts[0]]


def mark(
    found: Booleans, full: Booleans, coarse: Booleans, hashes: Words, shift: int
) -> None:
    """Mark each hash whose bucket is full, in place."""
    more = (len(full) // len(coarse)).bit_length() - 1
    shifts = np.uint64(shift), np.uint64(shift + more)
    _mark(found, full, coarse, hashes, shifts)


@compiled
def _pack(
    order: Words, ids: Integers, key: np.uint64, low: np.uint64, high: np.uint64
) -> None:
    top = np.uint64(64) - high
    for row in range(len(order)):
        packed = (order[row] >> (low + high)) << low | np.uint64(row)
        if high:
            packed |= (mixed(key, np.uint64(ids[row])) >> top) << top
        order[row] = packed


def pack(order: Words, ids: Integers, key: np.uint64, low: int, high: int) -> None:
    """Put a block's number before the hash of each row, and the row's number behind."""
    _pack(order, ids, key, np.uint64(low), np.uint64(high))


@compiled
def _cut(
    ids: Integers,
    periods: Integers,
    blocks: Integers,
    most: int,
    tables: tuple[Integers, Integers, Integers],
    kept: Booleans,
) -> None:
    """Drop the rows that are beyond one cap; those dropped before do not count.

    A hash table has the place of an instance's first row, and its number of rows. What
    is before the current block counts as empty. The third table has the number of rows
    that were kept before of each row's instance, or one number for all.
    """
    firsts, counts, used = tables
    several = len(used) > 1
    last = np.uint64(len(firsts) - 1)
    for block in range(len(blocks) - 1):
        begin = blocks[block]
        for place in range(begin, blocks[block + 1]):
            if not kept[place]:
                continue
            code, period = ids[place], periods[place]
            slot = mixed(mixed(_A, np.uint64(code)), np.uint64(period)) & last
            while True:
                first = firsts[slot]
                if first < begin:
                    firsts[slot] = place
                    counts[slot] = 1 + used[place if several else 0]
                    break
                if ids[first] == code and periods[first] == period:
                    counts[slot] += 1
                    break
                slot = (slot + np.uint64(1)) & last
            kept[place] = counts[slot] <= most


def first_rows(
    instances: Sequence[Instances],
    blocks: Integers,
    most: Sequence[int],
    used: Integers | None = None,
) -> Booleans:
    """Return which rows are left when caps have cut, one after the other."""
    kept = np.ones(blocks[-1], np.bool_)
    before = np.zeros(1, np.int64) if used is None else used
    size = 1 << (2 * int(np.diff(blocks).max())).bit_length()
    for (ids, periods), limit in zip(instances, most, strict=True):
        tables = np.full(size, -1), np.zeros(size, np.int64), before
        _cut(ids, periods, blocks, limit, tables, kept)
    return kept
