"""What an engine has to answer, computed row by row. Slow and obvious."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from msgspec import structs
from oracle.row_expressions import Meaning, steps_of

from modicum.query.expressions.analysis import facts_of
from modicum.query.groups import values_of
from modicum.query.model import (
    ColumnRef,
    Derived,
    Key,
    Lookup,
    Measure,
    Query,
    Union,
)
from modicum.query.statistics import ExactPlan, Statistic
from modicum.query.tables import Column
from samples.drawn_expressions import columns_of

#: A row of each table that is joined, by the table's name.
Joined: TypeAlias = dict[str, dict[str, Any]]
Rows: TypeAlias = list[dict[str, Any]]


def exact_answers(
    plan: ExactPlan,
    data: Mapping[str, Rows],
    order_key: str,
    sample_seed: str,
    *,
    by_days: str | None = None,
) -> dict[str, dict[tuple[Any, ...], int]]:
    """Return every statistic of a plan, by group.

    Args:
        plan: The plan.
        data: The rows of its tables.
        order_key: The key of the order of rows.
        sample_seed: The seed of samples.
        by_days: The time of the main table by whose days the order begins; None if it
            does not.
    """
    oracle = _Oracle(plan, data, order_key, sample_seed)
    oracle.by_days = by_days
    return oracle.answers()


class _Oracle:
    def __init__(
        self, plan: ExactPlan, data: Mapping[str, Rows], order_key: str, seed: str
    ) -> None:
        self.plan, self.key, self.seed = plan, order_key, seed
        self.also: list[Any] = []
        self.by_days: str | None = None
        self.meaning = Meaning(plan.tables)
        self.data = {
            name: [
                {c: _clean(row[c], plan.tables.by_name[name].columns[c]) for c in row}
                for row in rows
            ]
            for name, rows in data.items()
        }
        for one in plan.query.derived:
            self.data[one.table.name] = self.groups_of(one, data)
        for union in plan.query.unions:
            self.data[union.table.name] = list(self.rows_of(union, data))
        on = plan.query.joined_on
        many = [
            name
            for name in plan.query.tables
            if on is None or plan.tables.by_name[name].one_per != on
        ]
        self.main = (many or list(plan.query.tables))[0]

    def answers(self) -> dict[str, dict[tuple[Any, ...], int]]:
        rows = [row for row in self.joined() if self.is_read(row)]
        rows = self.capped(rows)
        wanted = list(self.plan.statistics)
        if self.plan.selection is not None:
            wanted.append(self.plan.selection)
        found: dict[str, dict[tuple[Any, ...], int]] = {one.name: {} for one in wanted}
        every = self.plan.query.keys
        for one in wanted:
            keys = every if one.keys is None else [every[place] for place in one.keys]
            groups: dict[tuple[Any, ...], list[Joined]] = {}
            for row in rows:
                group = tuple(_told(self.key_of(key, row)) for key in keys)
                groups.setdefault(group, []).append(row)
            for group, members in groups.items():
                for extra, number in self.statistic(one, members).items():
                    found[one.name][(*group, *extra)] = number
        return found

    # --- 0: one row for each group of an id -------------------------------------------

    def groups_of(self, derived: Derived, data: Mapping[str, Rows]) -> Rows:
        """The rows of a table that is computed of others, whatever the caps are."""
        inner = self.inner(derived.rows, data)
        inner.also = [*derived.values]
        groups: dict[tuple[Any, ...], list[Joined]] = {}
        for row in inner.joined():
            if inner.is_read(row):
                first, *others = derived.keys
                assert isinstance(first.value, ColumnRef)
                id_ = row[first.value.table][first.value.column]
                group = (id_, *(inner.grouped(key, row) for key in others))
                groups.setdefault(group, []).append(row)
        names = [key.name for key in derived.keys]
        return [
            {
                **dict(zip(names, group, strict=True)),
                **{one.column: inner.measure(one, rows) for one in derived.measures},
            }
            for group, rows in groups.items()
        ]

    def inner(self, rows: Query, data: Mapping[str, Rows]) -> _Oracle:
        """The same for rows that a table is computed of."""
        plan = structs.replace(
            self.plan,
            query=rows,
            sample=None,
            caps=(),
            statistics=(),
            selection=None,
        )
        return _Oracle(plan, data, self.key, self.seed)

    def rows_of(
        self, union: Union, data: Mapping[str, Rows]
    ) -> Iterator[dict[str, Any]]:
        """The rows of a union: those of its parts, one after the other."""
        for part, values in zip(union.parts, union.values, strict=True):
            inner = self.inner(part, data)
            inner.also = [*values]
            columns = list(zip(union.table.columns.values(), values, strict=True))
            for row in inner.joined():
                if inner.is_read(row):
                    yield {
                        column.name: row[value.table][value.column]
                        if isinstance(value, ColumnRef) and not column.counted
                        else inner.meaning.of(value, row)
                        for column, value in columns
                    }

    def grouped(self, key: Key, row: Joined) -> Any:
        value = self.meaning.of(key.value, row)
        return value if key.grain is None or value is None else _start(value, key.grain)

    def measure(self, one: Measure, rows: list[Joined]) -> Any:
        if one.value is None:
            return len(rows)
        values = [self.meaning.of(one.value, row) for row in rows]
        known = [value for value in values if value is not None]
        if one.function == "count":
            return len(known)
        if one.function == "count-distinct":
            return len(set(known))
        if not known:
            return None
        if one.function == "sum":
            return sum(map(Fraction, known))
        texts = isinstance(known[0], str)
        order = {"key": str.encode} if texts else {}
        extreme: Any = min if one.function == "min" else max
        return extreme(known, **order)

    # --- 1: joined --------------------------------------------------------------------

    def joined(self) -> list[Joined]:
        rows: list[Joined] = [{self.main: row} for row in self.data[self.main]]
        on = self.plan.query.joined_on
        for name in self.plan.query.tables:
            if name == self.main:
                continue
            assert on is not None
            firsts: dict[Any, dict[str, Any]] = {}
            needed = self.needed(name)
            for row in sorted(
                self.data[name],
                key=lambda row: (
                    self.order(name, row),
                    [_sortable(row[column]) for column in needed],
                ),
            ):
                if row[on] is not None and self.may_be_in_part(name, row):
                    firsts.setdefault(row[on], row)
            rows = [
                {**row, name: firsts[row[self.main][on]]}
                for row in rows
                if row[self.main][on] in firsts
            ]
        for lookup in self.plan.query.lookups:
            rows = list(self.looked_up(lookup, rows))
        return rows

    def looked_up(self, lookup: Lookup, rows: list[Joined]) -> Iterator[Joined]:
        name, table = lookup.table, self.plan.tables.by_name[lookup.table]
        needed = self.needed(name)

        def order(row: dict[str, Any]) -> Any:
            contents = [_sortable(row[column]) for column in needed]
            return contents if table.key else (self.order(name, row), contents)

        firsts: dict[Any, dict[str, Any]] = {}
        for row in sorted(self.data[name], key=order):
            private = table.key is None
            if row[lookup.key] is not None and not (
                private and not self.may_be_in_part(name, row)
            ):
                firsts.setdefault(row[lookup.key], row)
        for one in rows:
            found = firsts.get(one[lookup.on.table][lookup.on.column])
            if found is not None:
                yield {**one, name: found}
            elif lookup.optional:
                yield {**one, name: dict.fromkeys(table.columns)}

    def needed(self, table: str) -> list[str]:
        """The columns of a table that the plan goes by."""
        plan, declared = self.plan, self.plan.tables.by_name[table]
        names = {*declared.row_id, plan.query.joined_on}
        main = plan.tables.by_name[self.main].columns
        for unit in plan.units.values() if table in plan.query.tables else ():
            names |= {unit.id, unit.column} - (
                main.keys() if table != self.main else set()
            )
        for lookup in plan.query.lookups:
            names |= {lookup.key} if lookup.table == table else set()
            names |= set() if declared.key is None else declared.columns.keys()
            names |= {lookup.on.column} if lookup.on.table == table else set()
        attributes = {name for box in plan.part.where or () for name, _ in box}
        names |= {
            c.name for c in declared.columns.values() if c.partition in attributes
        }
        names |= {declared.group} if plan.part.groups is not None else set()
        used = [key.value for key in plan.query.keys] + [plan.query.where]
        used += [one.value for one in self.statistics] + self.also
        mentioned = [
            one for what in used if what is not None for one in columns_of(what)
        ]
        names |= {one.column for one in mentioned if one.table == table}
        return [name for name in declared.columns if name in names]

    def may_be_in_part(self, table: str, row: dict[str, Any]) -> bool:
        part, declared = self.plan.part, self.plan.tables.by_name[table]
        if part.groups is not None and declared.group is not None:
            number = row[declared.group]
            if number is None or not _inside(number, part.groups):
                return False
        return part.where is None or any(
            self.box(box, {table: row}) for box in part.where
        )

    def order(self, table: str, row: dict[str, Any]) -> Any:
        declared = self.plan.tables.by_name[table]
        values = [
            _identity(row[name], declared.columns[name]) for name in declared.row_id
        ]
        texts = [_text(value) for value in values]
        return self.digest(self.key, texts)[:12], [_sortable(value) for value in values]

    @staticmethod
    def digest(key: str, texts: Sequence[str | None]) -> str:
        parts = "".join("-:" if t is None else f"{len(t)}:{t}" for t in texts)
        return hashlib.sha256(f"{key}:{parts}".encode()).hexdigest()

    # --- 2 and 3: what is read --------------------------------------------------------

    def at(self, name: str, row: Joined) -> Any:
        """The value of a column of a unit; KeyError if no table has it."""
        # A table that is looked up in does not tell whose a row is.
        for table in (self.main, *self.plan.query.tables):
            if name in self.plan.tables.by_name[table].columns:
                return row[table][name]
        raise KeyError(name)

    def has(self, name: str) -> bool:
        tables = (self.plan.tables.by_name[one] for one in self.plan.query.tables)
        return any(name in table.columns for table in tables)

    def instance(self, unit_name: str, row: Joined) -> list[Any]:
        unit = self.plan.units[unit_name]
        found = [self.at(unit.id, row)]
        if unit.period is not None and unit.column is not None:
            found.append(_start(self.at(unit.column, row), unit.period))
        return found

    def is_read(self, row: Joined) -> bool:
        plan = self.plan
        where = plan.query.where
        return (
            self.is_whole(row)
            and self.in_part(row)
            and self.is_drawn(row)
            and (where is None or self.meaning.of(where, row) is True)
            and all(self.is_public(key, row) for key in plan.query.keys)
        )

    def is_whole(self, row: Joined) -> bool:
        """Whether no unit whose columns are there lacks its key."""
        for unit in self.plan.units.values():
            for name in (unit.id, unit.column):
                try:
                    if name is not None and self.at(name, row) is None:
                        return False
                except KeyError:
                    continue
        return True

    def in_part(self, row: Joined) -> bool:
        plan, part = self.plan, self.plan.part
        if part.periods is not None:
            for name in {unit.column for unit in plan.units.values()} - {None}:
                if plan.query.inner and not self.has(str(name)):
                    continue  # What it is computed from is in the part.
                day = _day(self.at(str(name), row)).toordinal()
                if not _inside(day, part.periods):
                    return False
        for name in plan.query.tables:
            group = plan.tables.by_name[name].group
            if part.groups is not None and group is not None:
                number = row[name][group]
                if number is None or not _inside(number, part.groups):
                    return False
        return part.where is None or any(self.box(box, row) for box in part.where)

    def is_drawn(self, row: Joined) -> bool:
        sample = self.plan.sample
        if sample is None:
            return True
        texts = [_text(one) for one in self.instance(sample.unit, row)]
        return int(self.digest(self.seed, texts)[:15], 16) < sample.threshold

    def box(self, box: Any, row: Joined) -> bool:
        looked_up = (
            {one.table for one in self.plan.query.lookups} if len(row) > 1 else ()
        )
        for attribute, values in box:
            for name in row.keys() - looked_up:
                for column in self.plan.tables.by_name[name].columns.values():
                    if column.partition == attribute:
                        value = row[name][column.name]
                        if value is None:
                            return False
                        if isinstance(value, str):
                            if value not in values:
                                return False
                        elif not _inside(value, values):
                            return False
        return True

    def column(self, reference: ColumnRef) -> Column:
        return self.plan.tables.by_name[reference.table].columns[reference.column]

    def key_of(self, key: Key, row: Joined) -> Any:
        if not isinstance(key.value, ColumnRef):
            return self.meaning.of(key.value, row)
        value = row[key.value.table][key.value.column]
        if key.grain is None or value is None:
            return value  # A date is its own day.
        return _start(value, key.grain)

    def is_public(self, key: Key, row: Joined) -> bool:
        if not isinstance(key.value, ColumnRef):
            # Which values are public is tested apart; every other row counts.
            public = values_of(key, self.plan.tables, self.plan.part)
            return public is None or _told(self.key_of(key, row)) in public
        value, column = self.key_of(key, row), self.column(key.value)
        clock = column.name in self.plan.tables.clocks
        if key.grain is None and not (clock and column.type == "date"):
            return column.values is None or _told(value) in column.values
        spans = self.plan.part.periods
        if spans is None or not clock:
            return True
        if spans[0][0] == 1 or spans[-1][1] == date.max.toordinal():
            return True  # Nobody can list the periods of an open end.
        starts = {
            _start(date.fromordinal(day), key.grain or "day")
            for low, high in spans
            for day in range(low, high + 1)
        }
        return value in starts

    # --- 4: caps ----------------------------------------------------------------------

    def capped(self, rows: list[Joined]) -> list[Joined]:
        for cap in self.plan.caps:
            by_instance: dict[Any, list[Joined]] = {}
            for row in rows:
                by_instance.setdefault(tuple(self.instance(cap.unit, row)), []).append(
                    row
                )
            rows = []
            for members in by_instance.values():
                members.sort(key=self.rank)
                rows += members[: cap.rows]
        return rows

    def rank(self, row: Joined) -> Any:
        """Where a row is in the order: by a hash, by its id, by its contents."""
        plan, pieces = self.plan, dict[Any, Any]()
        for cap in plan.caps:
            unit = plan.units[cap.unit]
            self.add_identity(pieces, self.reference(unit.id), row)
            if unit.period is not None and unit.column is not None:
                clock = self.reference(unit.column)
                pieces[clock, "day"] = _day(row[clock.table][clock.column])
        own = plan.tables.by_name[self.main].row_id
        for name in own:
            self.add_identity(pieces, ColumnRef(self.main, name), row)
        for key in plan.query.keys:
            pieces[key.value, key.grain] = self.key_of(key, row)
        for one in self.statistics:
            if one.value is None:
                continue
            if one.kind not in {"rows", "distinct"}:
                pieces[one.value, one.low, one.high] = self.value(one, row)
            elif isinstance(one.value, ColumnRef):
                self.add_identity(pieces, one.value, row)
            else:
                pieces[one.value, None] = self.value(one, row)
        ids = [
            _identity(row[self.main][name], self.column(ColumnRef(self.main, name)))
            for name in own
        ]
        contents = list(pieces.values())
        first = self.by_days and _day(row[self.main][self.by_days])
        return (
            first,
            row_hash(self.key, ids or contents),
            [_sortable(value) for value in ids],
            [_sortable(value) for value in contents],
        )

    @property
    def statistics(self) -> list[Statistic]:
        last = self.plan.selection
        return [*self.plan.statistics, *(() if last is None else (last,))]

    def value(self, one: Statistic, row: Joined) -> Any:
        """What a statistic goes by in a row: numbers in steps, bounded."""
        bounded = one.kind not in {"rows", "distinct"}
        if not isinstance(one.value, ColumnRef):
            assert one.value is not None
            value = self.meaning.of(one.value, row)
            facts = facts_of(one.value, self.plan.tables)
            if value is None or not facts.numeric:
                return value
            steps = Fraction(value) / facts.step
            assert steps.denominator == 1
            return min(max(int(steps), one.low), one.high) if bounded else int(steps)
        column = self.column(one.value)
        value = row[one.value.table][one.value.column]
        if value is None or not bounded:
            return _identity(value, column)
        return steps_of(value, column, one.low, one.high)

    def reference(self, name: str) -> ColumnRef:
        for table in (self.main, *self.plan.query.tables):
            if name in self.plan.tables.by_name[table].columns:
                return ColumnRef(table, name)
        raise KeyError(name)

    def add_identity(
        self, pieces: dict[Any, Any], reference: ColumnRef, row: Joined
    ) -> None:
        column = self.column(reference)
        number = column.type == "number"
        called = (reference, -(2**53), 2**53) if number else (reference, None)
        value = row[reference.table][reference.column]
        pieces[called] = _identity(value, column)

    # --- 5: statistics ----------------------------------------------------------------

    def statistic(
        self, one: Statistic, rows: list[Joined]
    ) -> dict[tuple[int, ...], int]:
        if one.value is None:
            return {(): len(rows)}
        values = [self.value(one, row) for row in rows]
        steps = [value for value in values if value is not None]
        if one.kind == "rows":
            return {(): len(steps)}
        if one.kind == "distinct":
            return {(): len(set(steps))}
        if one.kind == "total":
            return {(): sum(step - one.center for step in steps)}
        if one.kind == "squares":
            return {(): sum((step - one.center) ** 2 for step in steps)}
        bins: dict[tuple[int, ...], int] = {}
        for step in steps:
            place = ((step - one.low) // one.bin,)
            bins[place] = bins.get(place, 0) + 1
        return bins


_WORDS = 2**64


def row_hash(key: str, values: Sequence[Any]) -> int:
    """The 64 bits that rows are ordered by."""
    first, second = int(key, 16) % _WORDS, (int(key, 16) >> 64) % _WORDS
    state = first
    for value in values:
        state = _mixed(state, _word(value))
    return _mixed(state, second)


def _mixed(state: int, word: int) -> int:
    state = (state ^ word) * 0x9E3779B97F4A7C15 % _WORDS
    state = (state ^ (state >> 32)) * 0xBF58476D1CE4E5B9 % _WORDS
    state = (state ^ (state >> 29)) * 0x94D049BB133111EB % _WORDS
    return state ^ (state >> 32)


def _word(value: Any) -> int:
    if value is None:
        return 0x6D6F646963756D21
    if isinstance(value, str):
        data = value.encode()
        state = len(data)
        for place in range(0, len(data), 8):
            state = _mixed(state, int.from_bytes(data[place : place + 8], "little"))
        return state
    if isinstance(value, datetime):
        begin = datetime.fromisoformat("1970-01-01")
        return (value - begin) // timedelta(microseconds=1) % _WORDS
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days % _WORDS
    return int(value) % _WORDS


def _identity(value: Any, column: Column) -> Any:
    if value is None or column.type != "number":
        return value
    return steps_of(value, column, -(2**53), 2**53)


def _clean(value: Any, column: Column) -> Any:
    if value is None:
        return None
    if column.type == "number" and not column.counted:
        number = float(Fraction(value) if isinstance(value, Decimal) else value)
        return None if math.isnan(number) else number + 0.0
    return value


def _inside(number: int, spans: Any) -> bool:
    return any(low <= number <= high for low, high in spans)


def _day(moment: Any) -> date:
    return moment.date() if isinstance(moment, datetime) else moment


def _start(moment: Any, period: str) -> date:
    day = _day(moment)
    if period == "week":
        return day - timedelta(days=day.weekday())
    if period == "month":
        return day.replace(day=1)
    if period == "quarter":
        return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    if period == "year":
        return day.replace(month=1, day=1)
    return day


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        text = value.isoformat(sep=" ")
        return text.rstrip("0") if value.microsecond else text
    return value.isoformat() if isinstance(value, date) else str(value)


def _sortable(value: Any) -> Any:
    key = value.encode() if isinstance(value, str) else value
    return (value is None, key if key is not None else 0)


def _told(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value
