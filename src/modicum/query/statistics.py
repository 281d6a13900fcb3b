"""Exact statistics of the rows of each group: integers computed by an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from modicum.query.model import Expression, Query
from modicum.query.tables import Tables
from modicum.release.parts import Part
from modicum.release.units import Unit

#: - `rows`: how many rows; of an expression, how many where it is not NULL.
#: - `total`: the sum of its values, each bounded, in steps, less the center.
#: - `squares`: the sum of the squares of these.
#: - `distinct`: how many different values it has, without NULL.
#: - `histogram`: how many bounded values lie in each bin; one more key.
StatisticKind: TypeAlias = Literal["rows", "total", "squares", "distinct", "histogram"]

#: Those that add up over groups, with one number for each.
ADDITIVE: Final = frozenset(("rows", "total", "squares"))


@dataclass(frozen=True, slots=True)
class Secrets:
    """Secrets against choosing rows by their hash.

    Attributes:
        order_key: The key of the order in which caps keep rows, in lower-case hex.
        sample_seed: The seed of the secret sample, in lower-case hex.
        block_key: The key that divides instances into blocks, in lower-case hex.
    """

    order_key: str = field(repr=False)
    sample_seed: str = field(default="", repr=False)
    block_key: str = field(default="", repr=False)


class Statistic(Struct, frozen=True):
    """One exact statistic of each group.

    Attributes:
        name: Its name, unique in a query.
        kind: Which one.
        value: Of which column or expression; None only for `rows`.
        low: The least value, in steps; smaller ones count as this.
        high: The greatest one, in steps.
        center: The number subtracted from each value, in steps.
        bin: For `histogram`, the width of one bin in steps. Bin number b holds the
            values v with ``low + b * bin <= v < low + (b + 1) * bin``.
        keys: The positions of the keys that its groups are formed by; None for all.
    """

    name: str
    kind: StatisticKind
    value: Expression | None = None
    low: int = 0
    high: int = 0
    center: int = 0
    bin: int = 1
    keys: tuple[int, ...] | None = None

    @property
    def levels(self) -> int:
        """The number of levels of a binary tree above the bins of a histogram."""
        bins = (self.high - self.low) // self.bin + 1
        return max(1, (bins - 1).bit_length())

    @property
    def numbers(self) -> int:
        """The number of released numbers per group: one for each node of a tree."""
        return 2 ** (self.levels + 1) - 2 if self.kind == "histogram" else 1


class Cap(Struct, frozen=True):
    """The maximum number of rows read of each instance of a unit.

    It keeps the first by a keyed hash of the row's id, independent of other rows.

    Attributes:
        unit: The unit.
        rows: How many, at least 1.
    """

    unit: str
    rows: int


class Sample(Struct, frozen=True):
    """A secret Poisson sample of the instances of a unit.

    Attributes:
        unit: The unit.
        threshold: An instance is in it if the first 60 bits of its keyed hash are
            below this number; its rate is ``threshold / 2**60``.
    """

    unit: str
    threshold: int


class Block(Struct, frozen=True):
    """One of the blocks that the instances of a unit are divided into.

    Each instance is in one block, with all of its rows, independent of other rows: the
    block that contains the first 60 bits of its keyed hash, if these numbers are
    divided into equal ranges, one per block.

    Attributes:
        unit: The unit.
        number: Which of them, from 0.
        of: How many there are.
    """

    unit: str
    number: int
    of: int


class ExactPlan(Struct, frozen=True):
    """What an engine is to compute, in this order, and nothing else.

    It joins; drops what is outside the part, the sample, the block, the condition and
    the public values of the keys; applies each cap in turn; and computes the statistics
    of each group that has rows.

    Attributes:
        query: Tables, join, condition and keys; its aggregates do not matter here.
        tables: The declarations of the tables.
        part: The boxes, periods and user groups that rows must lie in.
        sample: The sample; None for everybody.
        caps: How many rows are kept, of each instance of which units, in this order.
        statistics: The statistics.
        units: The units of the policy: their id and time columns.
        selection: The statistic for selecting keys, if they are not all public; then
            groups are those that have rows, whichever they are.
        block: The block of instances whose rows are read; None for all.
    """

    query: Query
    tables: Tables
    part: Part
    sample: Sample | None
    caps: tuple[Cap, ...]
    statistics: tuple[Statistic, ...]
    units: Mapping[str, Unit]
    selection: Statistic | None = None
    block: Block | None = None

    @property
    def all_statistics(self) -> tuple[Statistic, ...]:
        """All statistics: that of the selection comes last."""
        keys = () if self.selection is None else (self.selection,)
        return (*self.statistics, *keys)


#: A value of a key in an answer; dates are ISO texts of the first day of the period.
KeyValue: TypeAlias = str | int | bool | None

#: By the values of the keys (and of the bin, for a histogram), a whole number.
Exact: TypeAlias = Mapping[tuple[KeyValue, ...], int]
