"""What a grant selects is the part that was charged: by SQL, and by the document."""

from __future__ import annotations

import re
import sqlite3
from datetime import date
from typing import Any

from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.api.local.access.grants import rows_to_plain
from modicum.api.local.access.row_filters import Columns, row_filter
from modicum.api.local.access.sql import sql_predicate
from modicum.core.canonical import decode, encode
from modicum.release import Part, Partition, Population, Unit, Vocabulary
from modicum.release.parts import FIRST_DAY, LAST_DAY, Box, Span, in_order, merged

#: Names and values that SQL, or a careless writer of it, would stumble over.
NASTY = (
    "country", "select", "NULL", "true", "1", "", " ", "a b", "a.b", "'", "''", '"',
    '"" OR 1=1 --', "x'; DROP TABLE rows; --", "/*", "*/", "--", "%s", "{}", "{0}",
    "?", ":a", "$1", "CH", "ch", "Zürich", "İ", "ß", "ss", "日本", "😀", "DATE '",
    "DATE '2026-01-01'",
)  # fmt: skip
FIRST = date(2026, 1, 1).toordinal()
GROUPS = "user group"
CLOCK = 'seen "at"'

printable = st.text(
    st.characters(codec="utf-8", exclude_characters="\\").filter(str.isprintable),
    min_size=1,
    max_size=8,
)
words = st.sampled_from([one for one in NASTY if one]) | printable


# --- parts and rows -------------------------------------------------------------------


@st.composite
def spans(draw: st.DrawFn, low: int, high: int) -> tuple[Span, ...]:
    ends = st.tuples(st.integers(low, high), st.integers(low, high))
    pairs = draw(st.lists(ends, min_size=1, max_size=3))
    return merged([(min(pair), max(pair)) for pair in pairs])


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocabulary:
    names = draw(st.lists(words, max_size=3, unique_by=str.casefold))
    partitions = {}
    for name in names:
        if name.casefold() not in (GROUPS, CLOCK):
            listed = draw(st.booleans())
            values = tuple(draw(st.lists(words, min_size=1, max_size=4, unique=True)))
            own = values if listed else None
            partitions[name] = Partition(name, own, -3, 3, (), None)
    units = {"day": Unit("day", "id", "day", CLOCK)}
    population = Population(partitions, clocks=frozenset({CLOCK}))
    return Vocabulary(frozenset(), {}, ("day",), "add-remove", units, population)


@st.composite
def boxes(draw: st.DrawFn, partitions: dict[str, Partition]) -> Box:
    chosen = draw(st.sets(st.sampled_from(sorted(partitions)), min_size=1))
    box: list[tuple[str, Any]] = []
    for name in sorted(chosen):
        known = partitions[name].values
        if known is None:
            box.append((name, draw(spans(-3, 3))))
        else:
            some = draw(st.sets(st.sampled_from(known), min_size=1))
            box.append((name, tuple(sorted(some))))
    return tuple(box)


@st.composite
def parts(draw: st.DrawFn, vocabulary: Vocabulary) -> Part:
    partitions = dict(vocabulary.population.partitions)
    where = None
    if bool(partitions) and draw(st.booleans()):
        some = st.lists(boxes(partitions=partitions), min_size=1, max_size=3)
        where = in_order(draw(some))
    periods: tuple[Span, ...] | None
    periods = draw(st.none() | spans(FIRST - 2, FIRST + 4))
    if periods is not None:
        if draw(st.booleans()):
            periods = merged([(FIRST_DAY, periods[0][1]), *periods[1:]])
        if draw(st.booleans()):
            periods = merged([*periods[:-1], (periods[-1][0], LAST_DAY)])
        periods = None if periods == ((FIRST_DAY, LAST_DAY),) else periods
    return Part(where, periods, draw(st.none() | spans(0, 5)))


@st.composite
def rows(draw: st.DrawFn, vocabulary: Vocabulary) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, one in vocabulary.population.partitions.items():
        known = st.integers(-5, 5)
        row[name] = draw(
            st.none() | (known if one.values is None else st.sampled_from(one.values))
        )
        if one.values is not None and draw(st.integers(0, 4)) == 0:
            row[name] = draw(words)  # Outside the domain, perhaps.
    day = draw(st.integers(FIRST - 3, FIRST + 5))
    time = draw(st.sampled_from(["", " 00:00:00", " 12:00:00", " 23:59:59.999999"]))
    moment = date.fromordinal(day).isoformat() + time
    row[CLOCK] = draw(st.none() | st.just(moment))
    row[GROUPS] = draw(st.none() | st.integers(-1, 6))
    return row


# --- what is right --------------------------------------------------------------------


def within(value: int | None, spans: tuple[Any, ...]) -> bool:
    return value is not None and any(low <= value <= high for low, high in spans)


def has(value: Any, values: tuple[Any, ...]) -> bool:
    return value in values if isinstance(values[0], str) else within(value, values)


def lies_in(row: dict[str, Any], part: Part) -> bool:
    """Return whether a row is one of a part, as the definition of parts has it."""
    moment = row[CLOCK]
    day = None if moment is None else date.fromisoformat(moment[:10]).toordinal()
    return (
        (
            part.where is None
            or any(all(has(row[n], values) for n, values in box) for box in part.where)
        )
        and (part.periods is None or within(day, part.periods))
        and (part.groups is None or within(row[GROUPS], part.groups))
    )


# --- what is selected -----------------------------------------------------------------

_TOKEN = re.compile(r'"(?:[^"]|"")*"|\'(?:[^\']|\'\')*\'|DATE (?=\')')


def for_sqlite(predicate: str) -> str:
    """Return a predicate for SQLite, where days are texts, which compare alike."""
    return _TOKEN.sub(lambda m: "" if m[0] == "DATE " else m[0], predicate)


def by_sql(table: list[dict[str, Any]], predicate: str, columns: Columns) -> list[int]:
    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    names = [columns.group if n == GROUPS else columns.of(n) for n in table[0]]
    with sqlite3.connect(":memory:") as db:
        listed = ", ".join(map(quoted, names))
        db.execute(f"CREATE TABLE rows (__number, {listed})")
        marks = ", ".join("?" * (len(names) + 1))
        for number, row in enumerate(table):
            values = [number, *row.values()]
            db.execute(f"INSERT INTO rows VALUES ({marks})", values)
        where = for_sqlite(predicate)
        found = db.execute(f"SELECT __number FROM rows WHERE {where} ORDER BY 1")
        return [number for (number,) in found]


def passes(row: dict[str, Any], rows: Any) -> bool:
    """Return whether a row passes the filter of a document; a reader may copy this."""

    def fits(condition: Any) -> bool:
        value = row[condition["column"]]
        if value is None:
            return False
        if "in" in condition:
            return value in condition["in"]
        if "between" in condition:
            return any(low <= value <= high for low, high in condition["between"])
        return any(
            (first is None or value >= first) and (until is None or value < until)
            for first, until in condition["during"]
        )

    return any(all(map(fits, one["all"])) for one in rows["any"])


# --- the same rows --------------------------------------------------------------------


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_the_rows_that_are_selected_are_those_of_the_part(data: st.DataObject) -> None:
    vocabulary = data.draw(vocabularies())
    part = data.draw(parts(vocabulary))
    table = data.draw(st.lists(rows(vocabulary), min_size=1, max_size=20))
    mapped = data.draw(st.booleans())
    names = [*vocabulary.population.partitions, CLOCK]
    named = {one: f"c{n} {one}" for n, one in enumerate(names)} if mapped else {}
    columns = Columns(GROUPS, named)
    right = [number for number, row in enumerate(table) if lies_in(row, part)]

    found = row_filter(part, vocabulary, columns)

    assert by_sql(table, sql_predicate(found), columns) == right
    document: Any = decode(encode(rows_to_plain(found)))
    renamed = [{columns.named.get(k, k): v for k, v in row.items()} for row in table]
    assert [n for n, row in enumerate(renamed) if passes(row, document)] == right


@settings(max_examples=examples(100), deadline=None)
@given(printable, printable)
def test_names_and_values_stay_names_and_values(name: str, value: str) -> None:
    partition = Partition(name, (value, value + "x"), 0, 1, (), None)
    population = Population({name: partition})
    vocabulary = Vocabulary(frozenset(), {}, (), "add-remove", {}, population)
    found = row_filter(Part((((name, (value,)),),)), vocabulary, Columns("the group"))
    table = [{name: one} for one in (value, value + "x", None, f"'{value}'")]
    predicate = sql_predicate(found)
    assert by_sql(table, predicate, Columns("the group")) == [0]
    left = _TOKEN.sub("", predicate)
    assert left == "( IN ())", "all that somebody wrote stands in quotes"
