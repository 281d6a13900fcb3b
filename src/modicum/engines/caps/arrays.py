"""Hashes, counts and first rows on NumPy arrays.

`loops` has the same functions, compiled; which of the two is used makes no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]
#: The instances of one cap: the id and the period of each row.
Instances: TypeAlias = tuple[Integers, Integers]

#: Odd factors, so that multiplication modulo 2**64 loses nothing.
FACTORS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def mix(state: Words, values: Words | Integers) -> None:
    """Mix one value into each hash, in place; one-to-one in the values."""
    state ^= values.astype(np.uint64, copy=False)
    for factor, shift in zip(FACTORS, (32, 29, 32), strict=True):
        state *= np.uint64(factor)
        state ^= state >> np.uint64(shift)


def pair_hashes(key: np.uint64, firsts: Words, seconds: Integers) -> Words:
    """Return a hash of each pair of values."""
    state = np.full(len(firsts), key)
    mix(state, firsts)
    mix(state, seconds)
    return state


def text_hashes(starts: Integers, data: NDArray[np.uint8]) -> Words:
    """Return a hash of each text, of its length and its words of eight bytes.

    Args:
        starts: Where each text begins, and where the last one ends.
        data: The bytes of all texts.
    """
    begins, lengths = starts[:-1], np.diff(starts)
    hashes = lengths.astype(np.uint64)
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    words = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))
    rest, done = np.flatnonzero(lengths > 0), 0
    while len(rest):
        found = words[begins[rest] + done]
        missing = np.maximum(8 - (lengths[rest] - done), 0).astype(np.uint64)
        found &= np.uint64(2**64 - 1) >> (np.uint64(8) * missing)
        state = hashes[rest]
        mix(state, found)
        hashes[rest] = state
        done += 8
        rest = rest[lengths[rest] > done]
    return hashes


def bump(counts: NDArray[np.unsignedinteger], hashes: Words, shift: int) -> None:
    """Count each hash in the bucket of its first bits."""
    buckets = (hashes >> np.uint64(shift)).astype(np.int64)
    np.add.at(counts, buckets, counts.dtype.type(1))


def mark(
    found: Booleans, full: Booleans, coarse: Booleans, hashes: Words, shift: int
) -> None:
    """Mark each hash whose bucket is full, in place.

    Args:
        found: What is marked.
        full: Whether each bucket is full.
        coarse: Whether any of several consecutive buckets is.
        hashes: The hashes.
        shift: By how many bits a hash is longer than the number of a bucket.
    """
    found |= full[(hashes >> np.uint64(shift)).astype(np.int64)]


def pack(order: Words, ids: Integers, key: np.uint64, low: int, high: int) -> None:
    """Put a block's number before the hash of each row, and the row's number behind.

    Args:
        order: The hashes that rows are ordered by; changed in place.
        ids: The ids of the rows; all rows of an id are in one block.
        key: The key of the hash of ids that blocks go by.
        low: The number of bits of a row's number.
        high: The number of bits of a block's number; 0 for a single block.
    """
    order >>= np.uint64(low + high)
    order <<= np.uint64(low)
    order |= np.arange(len(order), dtype=np.uint64)
    if high:
        blocks = np.full(len(order), key)
        mix(blocks, ids)
        blocks >>= np.uint64(64 - high)
        blocks <<= np.uint64(64 - high)
        order |= blocks


def first_rows(
    instances: Sequence[Instances],
    blocks: Integers,
    most: Sequence[int],
    used: Integers | None = None,
) -> Booleans:
    """Return which rows are left when caps have cut, one after the other.

    Args:
        instances: By cap, the instance of each row. Rows are in order within a block.
        blocks: The places where blocks begin, and where the last one ends. Rows of one
            instance are in one block.
        most: By cap, how many rows it keeps of each instance.
        used: For each row, how many of its instance every cap has kept before.
    """
    kept = np.zeros(blocks[-1], np.bool_)
    left = np.arange(blocks[-1])
    for (ids, periods), limit in zip(instances, most, strict=True):
        by = np.lexsort((left, periods[left], ids[left]))
        ordered = left[by]
        starts = np.ones(len(left), np.bool_)
        starts[1:] = (ids[ordered[1:]] != ids[ordered[:-1]]) | (
            periods[ordered[1:]] != periods[ordered[:-1]]
        )
        places = np.arange(len(left))
        ranks = places - np.maximum.accumulate(np.where(starts, places, 0))
        if used is not None:
            ranks += used[ordered]
        left = np.sort(ordered[ranks < limit])
    kept[left] = True
    return kept
