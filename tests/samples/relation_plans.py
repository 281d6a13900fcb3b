"""Random plans that look rows up, and that compute a row for each group of an id."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from msgspec import structs

from modicum.query.expressions.analysis import facts_of
from modicum.query.expressions.facts import NARROW_MAX, Facts
from modicum.query.expressions.table import FUNCTIONS
from modicum.query.model import (
    ColumnRef,
    Derived,
    Expression,
    Key,
    Lookup,
    Measure,
    Measured,
    Query,
    Union,
    with_derived,
)
from modicum.query.tables import TYPES, Column, ColumnType, Table, Tables
from samples.exact_plans import TEXTS, Case, Maker, Rows

_MEASURES: tuple[Measured, ...] = ("count", "count-distinct", "sum", "min", "max")
_PARTED: tuple[ColumnType, ...] = ("text", "integer", "boolean", "date")
_FEW = ("main", "help", "é", "it's", "x")


def looking_up(seed: int, *, written: bool = False) -> Case:
    """Return a random case with lookups in public tables, and perhaps in people."""
    return _Related(seed, "lookups", written=written).case()


def per_id(seed: int, *, written: bool = False) -> Case:
    """Return a random case whose rows are groups of an id, or joined to them."""
    return _Related(seed, "derived", written=written).case()


def unions(seed: int, *, written: bool = False) -> Case:
    """Return a random case that reads the rows of several tables as those of one.

    Rows without an id are ordered by their contents. What 64 bits may not hold is
    ordered as a text, if the engine has a decimal there: nothing is cut then.
    """
    case = _Related(seed, "unions", written=written).case()
    plan = case.plan
    values = [key.value for key in plan.query.keys]
    values += [one.value for one in plan.statistics if one.value is not None]
    known = [facts_of(one, plan.tables) for one in values]
    if any(one.numeric and not one.narrow for one in known):
        return replace(case, plan=structs.replace(plan, caps=()))
    return case


class _Related(Maker):
    def __init__(self, seed: int, kind: str, *, written: bool) -> None:
        super().__init__(seed, written=written)
        self.kind = kind

    def all_tables(self) -> dict[str, Table]:
        found = {"events": self.events(), "people": self.table_of_people()}
        if self.kind == "lookups" or self.random.random() < 0.3:
            found |= {"pages": self.pages(), "kinds": self.kinds()}
        return found

    def pages(self) -> Table:
        columns = [
            Column("page", "text"),
            Column("kind", "text", values=self.random.choice([None, _FEW[:3]])),
            Column("weight", "number", step=self.step, low=-self.step, high=self.step),
            Column("opened", "date"),
            Column("open", "boolean"),
        ]  # fmt: skip
        return Table("pages", {c.name: c for c in columns}, (), key="page")

    def kinds(self) -> Table:
        columns = [
            Column("name", "text"),
            Column("rank", "integer", low=Fraction(0), high=Fraction(9)),
            Column("from", "timestamp"),
        ]
        return Table("kinds", {c.name: c for c in columns}, (), key="name")

    def value(self, column: Column) -> Any:
        few = {"kind": _FEW, "name": _FEW, "page": (*_FEW, *TEXTS[:6])}
        if column.name in few and self.random.random() < 0.8:
            return self.random.choice(few[column.name])
        return super().value(column)

    def rows(self, table: Table) -> Rows:
        rows = super().rows(table)
        if table.key is not None:  # No key is dense, and some are there twice.
            return rows[:20] + [dict(row) for row in rows[:3]]
        return rows

    # --- what is read -----------------------------------------------------------------

    def relations(self, tables: Tables) -> Query:
        if self.kind == "unions":
            union = self.union("t", tables)
            if self.joined:
                names = self.random.choice([("t", "people"), ("people", "t")])
                return Query(names, "user", None, (), (), unions=(union,))
            return Query(("t",), None, None, (), (), unions=(union,))
        query = self.of_rows(tables)
        if self.kind == "lookups":
            return query
        inner = self.derived("t", query, tables)
        table, single = inner.table, inner.table.one_per is not None
        shapes = (
            ["alone"] * 2 + ["main"] + (["joined", "member", "both"] if single else [])
        )
        shape = self.random.choice(shapes)
        if shape == "alone":
            return Query(("t",), None, None, (), (), derived=(inner,))
        if shape == "main":
            names = self.random.choice([("t", "people"), ("people", "t")])
            return Query(names, "user", None, (), (), derived=(inner,))
        if shape == "both":
            other = self.derived("u", self.of_rows(tables), tables, single=True)
            on = ColumnRef("t", "user")
            optional = Lookup("u", on, "user", optional=self.random.random() < 0.7)
            return Query(
                ("t",), None, None, (), (), lookups=(optional,), derived=(inner, other)
            )
        main = "events" if self.random.random() < 0.7 else "people"
        if shape == "joined":
            return Query((main, table.name), "user", None, (), (), derived=(inner,))
        on = ColumnRef(main, "user")
        lookup = Lookup("t", on, "user", optional=self.random.random() < 0.7)
        return Query((main,), None, None, (), (), lookups=(lookup,), derived=(inner,))

    def of_rows(self, tables: Tables) -> Query:
        """Rows of events, with some that are looked up."""
        random, lookups = self.random, list[Lookup]()
        names: tuple[str, ...] = ("events",)
        if self.joined:
            names = random.choice([("events", "people"), ("people", "events")])
        elif random.random() < 0.3:
            on = ColumnRef("events", "user")
            lookups.append(Lookup("people", on, "user", optional=random.random() < 0.7))
        if "pages" in tables.by_name and random.random() < 0.9:
            on, optional = ColumnRef("events", "page"), random.random() < 0.6
            lookups.append(Lookup("pages", on, "page", optional=optional))
            if random.random() < 0.5:
                on, optional = ColumnRef("pages", "kind"), random.random() < 0.6
                lookups.append(Lookup("kinds", on, "name", optional=optional))
        elif "kinds" in tables.by_name and random.random() < 0.5:
            lookups.append(Lookup("kinds", ColumnRef("events", "page"), "name", True))
        joined = "user" if len(names) > 1 else None
        return Query(names, joined, None, (), (), lookups=tuple(lookups))

    # --- rows of several tables -------------------------------------------------------

    def union(self, name: str, tables: Tables) -> Union:
        """A table with the rows of two or three parts: events, mostly, and people."""
        random, self.tables = self.random, tables
        mains = [random.choice(["events", "events", "people"])]
        mains += random.choices(["events", "people"], k=random.choice([1, 2]))
        parts, columns_of_part = [], []
        for main in mains:
            lookups = list[Lookup]()
            if main == "events" and "pages" in tables.by_name and random.random() < 0.5:
                on, optional = ColumnRef("events", "page"), random.random() < 0.6
                lookups.append(Lookup("pages", on, "page", optional=optional))
            kinds = {
                ColumnRef(t, c): column
                for t in (main, *(one.table for one in lookups))
                for c, column in tables.by_name[t].columns.items()
            }
            where = self.condition(kinds, 2) if random.random() < 0.5 else None
            parts.append(Query((main,), None, where, (), (), lookups=tuple(lookups)))
            columns_of_part.append(kinds)
        columns, values = dict[str, Column](), list[tuple[Expression, ...]]()
        for unit in ("user", "device", "at"):
            found = [tables.by_name[main].columns.get(unit) for main in mains]
            if all(found) and (first := found[0]):
                columns[unit] = first
                values.append(tuple(ColumnRef(main, unit) for main in mains))
        for n in range(random.randrange(1, 4)):
            kind = random.choice(TYPES)
            several = tuple(self.drawn(kinds, (kind,)) for kinds in columns_of_part)
            facts = FUNCTIONS["coalesce"].typed(
                *(facts_of(one, tables) for one in several)
            )
            columns[f"c{n}"] = self.column(f"c{n}", facts)
            values.append(several)
        table = Table(name, columns, ())
        return Union(table, tuple(parts), tuple(zip(*values, strict=True)))

    # --- a row for each group ---------------------------------------------------------

    def derived(
        self, name: str, rows: Query, tables: Tables, *, single: bool = False
    ) -> Derived:
        random = self.random
        self.tables = with_derived(tables, rows)
        read = (*rows.tables, *(one.table for one in rows.lookups))
        kinds = {
            ColumnRef(t, c): column
            for t in read
            for c, column in self.tables.by_name[t].columns.items()
        }
        if random.random() < 0.5:
            rows = structs.replace(rows, where=self.condition(kinds, 2))
        keys = [Key("user", ColumnRef("events", "user"))]
        columns = {"user": tables.by_name["events"].columns["user"]}
        if not single and random.random() < 0.4:
            for n in range(random.choice([1, 2])):
                value = self.expression(kinds, random.choice(_PARTED))
                if random.random() < 0.3:
                    value = random.choice(
                        [r for r, c in kinds.items() if c.type in ("text", "boolean")]
                    )
                keys.append(Key(f"k{n}", value))
                columns[f"k{n}"] = self.column(f"k{n}", facts_of(value, self.tables))
        measures = []
        for n in range(random.randrange(4)):
            measure, column = self.measure(f"m{n}", kinds)
            measures.append(measure)
            columns[measure.column] = column
        ids = tuple(key.name for key in keys)
        one_per = "user" if len(keys) == 1 else None
        table = Table(name, columns, ids, one_per)
        return Derived(table, rows, tuple(keys), tuple(measures))

    def measure(
        self, name: str, kinds: dict[ColumnRef, Column]
    ) -> tuple[Measure, Column]:
        random = self.random
        function = random.choice(_MEASURES)
        if function.startswith("count"):
            value: Expression | None = self.drawn(kinds, TYPES)
            if function == "count" and random.random() < 0.5:
                value = None
            facts = Facts("integer", low=0, high=2**40)
            return Measure(name, function, value), self.column(name, facts)
        fitting: tuple[ColumnType, ...] = ("integer", "number")
        value = self.drawn(kinds, fitting if function == "sum" else TYPES)
        facts = facts_of(value, self.tables)
        if facts.numeric:
            most = NARROW_MAX
            low, high = (-most, most) if function == "sum" else (facts.low, facts.high)
            facts = structs.replace(facts, low=max(low, -most), high=min(high, most))
        return Measure(name, function, value), self.column(name, facts)

    def drawn(
        self, kinds: dict[ColumnRef, Column], types: tuple[ColumnType, ...]
    ) -> Expression:
        """A column or an expression of one of some types."""
        columns = [r for r, c in kinds.items() if c.type in types]
        if not columns or self.random.random() < 0.5:
            return self.expression(kinds, self.random.choice(types))
        return self.random.choice(columns)

    def column(self, name: str, facts: Facts) -> Column:
        if not facts.numeric:
            return Column(name, facts.type)
        low = max(facts.low, -NARROW_MAX) * facts.step
        high = min(facts.high, NARROW_MAX) * facts.step
        return Column(name, facts.type, None, None, facts.step, low, high, counted=True)
