"""The rows that caps keep: the first ones of each instance, in a keyed order.

**Order.** Every possible row has a place that does not depend on other rows: by a
64-bit hash of the key and its id, then by the id, then by its contents. Without a
declared id, the hash is that of its contents. Rows with the same place are alike in all
that a query reads of them; which of them is kept makes no difference. The proof that
caps move few rows (ADR 0027, ADR 0071) needs such an order, and no secrecy: the key is
new in each run so that nobody can choose ids that come first.

**Sketch.** Most instances have no more rows than a cap keeps. Rows are counted in
buckets, by a hash of their instance. A bucket counts at least as many rows as any
instance in it. So an instance of a bucket that does not exceed the cap loses no row.
Only rows that are in an exceeding bucket of any cap are *crowded* and looked at one by
one; all rows of an instance that may lose one are among them, for each cap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from modicum.engines.caps import arrays
from modicum.engines.caps.arrays import Booleans, Integers, Words

#: One cap: how many rows it keeps of each instance; the column with its id; for a unit
#: with periods the column with the day of a row, and the period.
Limit: TypeAlias = tuple[int, str, str | None, str | None]

#: Compiling takes longer than fewer rows take.
_COMPILED_ROWS: Final = 1_000_000
#: Of the number of buckets; not fewer than one of the coarse ones.
_BITS: Final = (12, 28)
_COARSE_BITS: Final = 6
#: A block has about so many rows, as a power of two.
_BLOCK_BITS: Final = 15
#: A share too, of rows in any order; and the number of shares.
_SHARE_BITS: Final = (20, 6)
_NULL: Final = np.uint64(0x6D6F646963756D21)
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}


class Caps:
    """Some caps that cut one after the other, over columns of rows.

    Args:
        limits: The caps, in order.
        row_id: The columns that identify a row; empty if there are none.
        key: The key of the order, in hex.
        used: Of a single cap, the column that says how many rows of a row's instance
            it has kept before; None for none.

    Attributes:
        limits: The caps, in order.
        ids: The columns with ids.
        columns: The columns that identify instances.
        keys: The key of the order, in two words.
        used: The column with the rows that were kept before.
    """

    def __init__(
        self,
        limits: Sequence[Limit],
        row_id: Sequence[str],
        key: str,
        used: str | None = None,
    ) -> None:
        # Plain tuples, which Spark's workers can read.
        self.limits: list[Limit] = [(*one,) for one in limits]
        self.ids = list(dict.fromkeys(limit[1] for limit in limits))
        days = [limit[2] for limit in limits if limit[2] is not None]
        self.columns = list(dict.fromkeys([*self.ids, *days]))
        self.keys = [
            np.uint64(int(key, 16) >> 64 * part & 2**64 - 1) for part in range(2)
        ]
        self._key, self._row_id, self.used = key, list(row_id), used

    def of(self, limits: Sequence[Limit]) -> Caps:
        """Return some caps in the same order of rows."""
        return Caps(limits, self._row_id, self._key, self.used)

    def periods(
        self, rows: pa.RecordBatch | pa.Table, sequence: Integers | None = None
    ) -> list[Integers]:
        """Return by cap the period of each row, or of some rows by their numbers."""
        found: dict[tuple[str | None, str | None], Integers] = {}
        days: dict[str | None, Integers] = {None: np.zeros(rows.num_rows, np.int32)}
        for _, _, day, period in self.limits:
            if day not in days:
                every = _joined(map(_numbers, _chunks(rows[day])))
                days[day] = every if sequence is None else every[sequence]
            if (day, period) not in found:
                found[day, period] = _periods(days[day], period)
        return [found[limit[2:]] for limit in self.limits]

    def shares(
        self, rows: pa.RecordBatch, bits: int, tools: ModuleType
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield rows by shares; all rows of an id are in the same one.

        Args:
            rows: The rows.
            bits: The number of bits of a share's number, up to 8.
            tools: The functions to use.
        """
        if not bits or len(self.ids) > 1:
            yield 0, rows
            return
        hashes = np.full(rows.num_rows, self.keys[1])
        tools.mix(hashes, _words(rows[self.ids[0]], tools))
        numbers = (hashes >> np.uint64(64 - bits)).astype(np.uint8)
        order = pa.array(np.argsort(numbers, kind="stable"))
        rows = pc.take(rows, order, boundscheck=False, memory_pool=_pool())
        begin = 0
        for number, count in enumerate(np.bincount(numbers).tolist()):
            if count:
                yield number, rows.slice(begin, count)
                begin += count

    def kept(self, rows: pa.Table, tools: ModuleType | None = None) -> Booleans:
        """Return which of some rows are kept, if there are no others."""
        found = np.zeros(rows.num_rows, np.bool_)
        if not rows.num_rows:
            return found
        tools = tools or tools_for(rows.num_rows)
        codes = {name: _codes(rows[name]) for name in self.ids}
        sequence, blocks = self._sequence(rows, codes, tools)
        ids = {name: numbers[sequence] for name, numbers in codes.items()}
        instances = [
            (ids[limit[1]], periods)
            for limit, periods in zip(
                self.limits, self.periods(rows, sequence), strict=True
            )
        ]
        most = [limit[0] for limit in self.limits]
        used = None
        if self.used is not None:
            used = _joined(map(_numbers, _chunks(rows[self.used])))[sequence]
        found[sequence] = tools.first_rows(instances, blocks, most, used)
        return found

    def _order(self, rows: pa.Table, tools: ModuleType) -> Words:
        """Return the hash of each row that it is ordered by."""
        order = np.full(rows.num_rows, self.keys[0])
        for name in self._row_id or rows.column_names:
            begin = 0
            for chunk in rows[name].chunks:
                end = begin + len(chunk)
                tools.mix(order[begin:end], _words(chunk, tools))
                begin = end
        tools.mix(order, np.broadcast_to(self.keys[1], rows.num_rows))
        return order

    def _sequence(
        self, rows: pa.Table, ids: dict[str, Integers], tools: ModuleType
    ) -> tuple[Integers, Integers]:
        """Return the numbers of the rows in order, block by block, and the blocks.

        A block has all rows of some ids: few enough that they stay in a processor's
        cache. It fills the first bits of what is sorted, and a row's number the last
        ones; the hash of its order is between. Sorting is quick that way, and where its
        bits are equal, the whole order is compared.
        """
        count = rows.num_rows
        low = (count - 1).bit_length()
        high = max(low - _BLOCK_BITS, 0) if len(ids) == 1 else 0
        packed = self._order(rows, tools)
        tools.pack(packed, ids[self.ids[0]], self.keys[0], low, high)
        packed.sort()
        begins = np.arange(1, 1 << high, dtype=np.uint64) << np.uint64(64 - high & 63)
        inner = np.searchsorted(packed, begins)
        sequence = (packed & np.uint64((1 << low) - 1)).view(np.int64)
        packed >>= np.uint64(low)
        same = packed[1:] == packed[:-1]
        if same.any():
            tied = np.zeros(count, np.bool_)
            tied[1:] |= same
            tied[:-1] |= same
            some = sequence[tied]
            few = rows.take(some)
            columns = [pa.array(packed[tied]), pa.array(self._order(few, tools))]
            columns += [few[name] for name in (*self._row_id, *rows.column_names)]
            table = pa.table(columns, names=[f"c{n}" for n in range(len(columns))])
            by = [(name, "ascending") for name in table.column_names]
            sequence[tied] = some[pc.sort_indices(table, by).to_numpy()]
        return sequence, np.array([0, *inner, count], np.int64)


class Sketch:
    """Counts of rows in buckets of instances.

    Args:
        caps: The caps.
        rows: So many rows are added, at most; fewer cost time and memory, no exactness.

    Attributes:
        whole: Whether so many rows are crowded that all count as such.
        share_bits: Of the number of a share of the crowded rows.
        tools: The functions to use.
    """

    def __init__(self, caps: Caps, rows: int) -> None:
        self._caps, self.tools = caps, tools_for(rows)
        bits = min(max(rows.bit_length() - 2, _BITS[0]), _BITS[1])
        self._shift = 64 - bits
        kind = np.uint32 if rows < 2**32 else np.uint64
        self._counts: list[Any] = [np.zeros(1 << bits, kind) for _ in caps.limits]
        self._most, self._rows, self._look_at = rows, 0, rows // 8
        self._full: dict[int, tuple[Booleans, Booleans]] = {}
        self.whole, self.share_bits = False, 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Count rows."""
        if self.whole:
            return
        self._rows += rows.num_rows
        for number, hashes in self._hashes(rows, range(len(self._counts))):
            self.tools.bump(self._counts[number], hashes, self._shift)
        if self._rows > self._look_at:  # What exceeds a cap now does so in the end.
            self._look_at *= 2
            self.whole = 4 * self._exceeding() > 3 * self._rows

    def close(self) -> int:
        """Return how many rows are crowded, at most; no more are added."""
        found = self._most if self.whole else min(self._exceeding(), self._rows)
        if 2 * found > self._rows:
            self.whole, found = True, max(found, self._rows)
        if self._caps.used is not None:  # What is left of a cap differs by instance.
            found = max(found, self._rows)
        bits = found.bit_length() - _SHARE_BITS[0]
        self.share_bits = min(max(bits, 0), _SHARE_BITS[1])
        if self._caps.used is not None:
            return found
        for number, counts in enumerate(self._counts):
            full = counts > self._caps.limits[number][0]
            if full.any():
                # Where few buckets are full, looking at few bits of many is quicker.
                coarse = full.reshape(-1, 1 << _COARSE_BITS).any(axis=1)
                self._full[number] = full, coarse
        self._counts.clear()
        return found

    def _exceeding(self) -> int:
        """Return how many rows are in buckets that exceed a cap, over all caps."""
        return sum(
            int(counts.sum(where=counts > limit[0], dtype=np.uint64))
            for limit, counts in zip(self._caps.limits, self._counts, strict=True)
        )

    def crowded(self, rows: pa.RecordBatch) -> Booleans:
        """Return which rows are in an exceeding bucket."""
        if self._caps.used is not None:
            ((_, hashes),) = self._hashes(rows, [0])
            buckets = (hashes >> np.uint64(self._shift)).astype(np.int64)
            counts = self._counts[0][buckets].astype(np.int64)
            crowded: Booleans = (
                counts + _numbers(rows[self._caps.used]) > self._caps.limits[0][0]
            )
            return crowded
        found = np.zeros(rows.num_rows, np.bool_)
        for number, hashes in self._hashes(rows, self._full):
            full, coarse = self._full[number]
            self.tools.mark(found, full, coarse, hashes, self._shift)
        return found

    def _hashes(
        self, rows: pa.RecordBatch, numbers: Collection[int]
    ) -> Iterator[tuple[int, Words]]:
        """Yield by the number of a cap the hashes of the instances of rows."""
        if not numbers:
            return
        ids = {name: _words(rows[name], self.tools) for name in self._caps.ids}
        for number, periods in enumerate(self._caps.periods(rows)):
            if number in numbers:
                of_id = ids[self._caps.limits[number][1]]
                key = self._caps.keys[0]
                yield number, self.tools.pair_hashes(key, of_id, periods)


def kept_rows(
    batches: Iterable[pa.RecordBatch], caps: Caps, sketch: Sketch
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that are kept of those that are all there are of some ids.

    Args:
        batches: The rows.
        caps: The caps.
        sketch: The counts of these rows, and maybe of more.
    """
    crowded: list[list[pa.RecordBatch]] = [[] for _ in range(1 << sketch.share_bits)]
    for batch in batches:
        some = batch
        if not sketch.whole:
            many = sketch.crowded(batch)
            if not many.any():
                yield batch
                continue
            yield batch.filter(pa.array(~many))
            some = batch.filter(pa.array(many))
        # In a processor's cache, a few rows are cut in less time.
        for number, share in caps.shares(some, sketch.share_bits, sketch.tools):
            crowded[number].append(share)
    for held in filter(None, crowded):
        rows = pa.Table.from_batches(held).combine_chunks()
        held.clear()
        kept = caps.kept(rows, sketch.tools)
        yield from rows.filter(pa.array(kept)).to_batches()


def kept_of_all(
    caps: Caps, columns: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield columns of the rows that are kept, of all that there are of some ids."""
    held = list(batches)
    if held:
        rows = pa.Table.from_batches(held).combine_chunks().to_batches()
        sketch = Sketch(caps, sum(batch.num_rows for batch in rows))
        for batch in rows:
            sketch.add(batch)
        sketch.close()
        for batch in kept_rows(rows, caps, sketch):
            yield batch.select(columns)


def tools_for(rows: int) -> ModuleType:
    """Return the compiled loops if they are there and worth it."""
    if rows >= _COMPILED_ROWS:
        try:
            from modicum.engines.caps import loops
        except ImportError:
            return arrays
        return loops
    return arrays


def _pool() -> pa.MemoryPool:
    """Return a pool without huge pages, which take long where memory is in pieces."""
    try:
        return pa.jemalloc_memory_pool()
    except NotImplementedError:  # It is not on every platform.
        return pa.default_memory_pool()


# --- values as numbers ----------------------------------------------------------------


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _joined(parts: Iterable[Any]) -> Any:
    """Return arrays as one; there is at least one."""
    several = list(parts)
    return several[0] if len(several) == 1 else np.concatenate(several)


def _is_text(column: pa.Array | pa.ChunkedArray) -> bool:
    kind = column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _numbers(column: pa.Array) -> Integers:
    """Return integers, booleans, days or moments as integers; NULL as any."""
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif not pa.types.is_integer(kind):
        column = column.view(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    if column.null_count:
        column = column.fill_null(0)
    numbers: Integers = column.to_numpy()
    return numbers


def _words(column: pa.Array, tools: ModuleType) -> Words:
    """Return 64 bits for each value, the same for the same value."""
    if _is_text(column):
        words = _text_words(column, tools)
    elif pa.types.is_decimal128(column.type) and column.type.scale == 0:
        both = np.frombuffer(column.buffers()[1], np.uint64)  # The low half is first.
        words = both[2 * column.offset :: 2][: len(column)]
    elif pa.types.is_decimal(column.type):
        words = _text_words(column.cast(pa.string()), tools)
    else:
        words = _numbers(column).astype(np.int64, copy=False).view(np.uint64)
    if column.null_count:
        missing = column.is_null().to_numpy(zero_copy_only=False)
        words = np.where(missing, _NULL, words)
    return words


def _text_words(column: pa.Array, tools: ModuleType) -> Words:
    plain = column.cast(pa.large_string())
    _, offsets, data = plain.buffers()
    if data is None:
        return np.zeros(len(plain), np.uint64)
    starts = np.frombuffer(offsets, np.int64)[plain.offset :][: len(plain) + 1]
    low, high = int(starts[0]), int(starts[-1])
    found: Words = tools.text_hashes(
        starts - low, np.frombuffer(data, np.uint8)[low:high]
    )
    return found


def _codes(column: pa.ChunkedArray) -> Integers:
    """Return an integer for each id, the same for the same id only; none is NULL."""
    parts: Iterable[Any] = map(_numbers, column.chunks)
    if _is_text(column):
        encoded = column.dictionary_encode().unify_dictionaries()
        parts = (one.indices.to_numpy() for one in encoded.chunks)
    codes: Integers = _joined(parts).astype(np.int64, copy=False)
    return codes


def _periods(days: Integers, period: str | None) -> Integers:
    """Return the number of the period of each day, counted from 1970."""
    if period in {None, "day"} or not len(days):
        return days
    if period == "week":
        return (days + 3) // 7  # 1 January 1970 was a Thursday.
    first, last = int(days.min()), int(days.max())
    few = last - first < len(days)  # Then days repeat, and are computed once.
    every = np.arange(first, last + 1) if few else days
    months = every.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    numbers: Integers = months // _MONTHS[str(period)]
    return numbers[days - first] if few else numbers
