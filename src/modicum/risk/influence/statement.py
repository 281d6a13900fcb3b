"""The one statement that measures how far an answer moves for everybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlglot import exp, parse_one

from modicum.core.errors import Code, InputError, Problem, check
from modicum.risk.influence import expressions
from modicum.risk.influence.expressions import joined_relations
from modicum.risk.profile import Counts, Influence, Numbers
from modicum.risk.question import Question


@dataclass(frozen=True, slots=True)
class PeopleGroup:
    """A group of people to compare with others.

    Attributes:
        name: Its name.
        condition: Its members: those with a row that satisfies it.
        table: The table whose rows the condition reads.
    """

    name: str
    condition: exp.Expr
    table: str


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of SQL, and how its rows are read.

    Attributes:
        sql: Its text, in the requested dialect.
        measures: How many aggregates the answer has in a group.
        listed: Whether a kind of person has its moves in one list `moves`; else in
            columns `d0`, `d1`, …
        grouped: Whether the answer has a coordinate for each group of rows.
        groups: The names of the groups of people; `g0`, … are how many of a kind
            belong to each.
        sizes: The text of a statement whose only row is `size`, as in each row of the
            other one; for the case that it has no row, since no row belongs to a
            person.
    """

    sql: str
    measures: int
    listed: bool
    grouped: bool
    groups: tuple[str, ...]
    sizes: str


def statement(
    question: Question,
    relations: Mapping[str, str],
    groups: Sequence[PeopleGroup] = (),
    dialect: str = "duckdb",
) -> Statement:
    """Return the statement that measures moves in one pass.

    Args:
        question: The query; it has a closed form.
        relations: By table, the engine's relation.
        groups: Groups of people to distinguish.
        dialect: The SQL dialect.

    Returns:
        The statement. Each of its rows is a kind of person: her moves, `people` that
        are of this kind, and `size`, the number of groups in the answer.
    """
    check(not question.obstacle, "there is a closed form")
    units = question.unit is not None
    shape = expressions.Shape(tuple(f"k{n}" for n in range(len(question.keys))), units)
    made = [("read_rows", _read_rows(question, relations, groups))]
    if not units:
        made.append(("all_rows", _all_rows(question, relations, groups)))
    made += _parts(question, shape, groups)
    made += _known_of_all(question, shape)
    made += _moves(question, shape, groups)
    listed = units and bool(question.keys)
    if _in_one_table(question):
        last = _of_everybody(question, groups)
    elif units:
        made += _people(question, relations, groups)
        last = _of_units(question, groups, listed)
    else:
        last = _of_rows(question, groups)
    names = tuple(one.name for one in groups)
    return Statement(
        _after(made, last, dialect),
        len(question.measures),
        listed,
        bool(question.keys),
        names,
        _after(made, f"SELECT {_size(question)}", dialect),
    )


def _after(made: Sequence[tuple[str, str]], last: str, dialect: str) -> str:
    text = "WITH " + ",\n".join(f"{name} AS ({body})" for name, body in made)
    text = f"{text}\n{last}"
    return text if dialect == "duckdb" else parse_one(text, read="duckdb").sql(dialect)


# --- the rows -------------------------------------------------------------------------


def _in_one_table(question: Question) -> bool:
    """Whether everybody has one part: units with rows in one table, without groups.

    Then a person with only uncounted rows has a part, too, of nothing.
    """
    return (
        question.unit is not None
        and not question.keys
        and not question.select.args.get("joins")
    )


def source_of(question: Question, relations: Mapping[str, str]) -> exp.Select:
    """Return the query's FROM and JOIN over the engine's relations.

    Args:
        question: The query.
        relations: By table, the engine's relation.
    """
    copied = question.select.copy()
    for table in copied.find_all(exp.Table):
        called = table.alias_or_name
        name = exp.to_identifier(relations[table.name], quoted=True)
        table.set("this", name)
        table.set("alias", exp.TableAlias(this=exp.to_identifier(called, quoted=True)))
    clauses = {one: copied.args.get(one) for one in ("from_", "joins")}
    return exp.Select(**{name: one for name, one in clauses.items() if one})


def _read_rows(
    question: Question, relations: Mapping[str, str], groups: Sequence[PeopleGroup]
) -> str:
    where = question.select.args.get("where")
    kept = where.this.sql("duckdb") if where else "TRUE"
    # As a value: where an engine skips blocks of a file by their least and greatest
    # values, it overlooks NaN.
    kept = _holds(kept)
    columns = ["TRUE AS kept" if question.unit is None else f"{kept} AS kept"]
    if question.unit is not None:
        first = question.select.args["from_"].this.alias_or_name
        unit = exp.column(question.unit, first, quoted=True)
        columns.append(f"{unit.sql('duckdb')} AS u")
    if question.unit is None or _in_one_table(question):
        columns += [
            f"{_flag(one)} AS g{number}"
            if question.unit is None or one.table == question.tables[0]
            else f"FALSE AS g{number}"
            for number, one in enumerate(groups)
        ]
    columns += [
        f"({key.sql('duckdb')}) AS k{number}"
        for number, key in enumerate(question.keys)
    ]
    # A person with only uncounted rows has a part of nothing.
    before = f"CASE WHEN {kept} THEN " if _in_one_table(question) else ""
    after = " END" if before else ""
    columns += [
        f"{before}{value}{after} AS v{number}"
        for number, measure in enumerate(question.measures)
        if (value := expressions.value_of(measure))
    ]
    tail = _tail(question, relations)
    if question.unit is None:
        tail += f" WHERE {kept}"
    return f"SELECT {', '.join(columns)}{tail}"


def _tail(question: Question, relations: Mapping[str, str]) -> str:
    return source_of(question, relations).sql("duckdb").removeprefix("SELECT")


def _flag(group: PeopleGroup) -> str:
    """Whether a row belongs to a group of people; unknown counts as false."""
    return _holds(group.condition.sql("duckdb"))


def _holds(condition: str) -> str:
    """Whether a condition holds, as SQL; unknown counts as false."""
    return f"COALESCE(CAST(({condition}) AS BOOLEAN), FALSE)"


# --- moves ----------------------------------------------------------------------------


def _parts(
    question: Question, shape: expressions.Shape, groups: Sequence[PeopleGroup]
) -> list[tuple[str, str]]:
    numbered = [(n, one.aggregate) for n, one in enumerate(question.measures)]
    own = expressions.all_of(
        [expressions.parts(*one, units=shape.units) for one in numbered]
    )
    if not shape.units:
        return _counted(question, own, shape, groups)
    everybody = _in_one_table(question)
    flags = [
        f"MAX(CASE WHEN g{n} THEN 1 ELSE 0 END) AS g{n}"
        for n in range(len(groups) if everybody else 0)
    ]
    parts = f"SELECT {shape.listed('u', *own, *flags, '1 AS w')} FROM read_rows"
    if not everybody:
        parts += " WHERE kept"
    return [("parts", f"{parts}{shape.grouped('u')}")]


def _counted(
    question: Question,
    own: Sequence[str],
    shape: expressions.Shape,
    groups: Sequence[PeopleGroup],
) -> list[tuple[str, str]]:
    """Rows that are alike, counted; few kinds are left, and parts are made of kinds."""
    values = [
        f"v{n}" for n, one in enumerate(question.measures) if expressions.value_of(one)
    ]
    flags = [f"g{number}" for number in range(len(groups))]
    alike = ", ".join([*shape.keys, *values, *flags])
    counted = f"SELECT {alike}{', ' * bool(alike)}COUNT(*) AS w FROM read_rows"
    # Where nothing distinguishes rows, there is one kind of them, or none.
    counted += f" GROUP BY {alike}" if alike else " HAVING COUNT(*) > 0"
    parts = f"SELECT {shape.listed(*own, *flags, 'w')} FROM counted"
    return [("counted", counted), ("parts", parts)]


def _all_rows(
    question: Question, relations: Mapping[str, str], groups: Sequence[PeopleGroup]
) -> str:
    """The number of rows, and how many of each group of people."""
    flags = "".join(
        f", SUM(CASE WHEN {_flag(one)} THEN 1 ELSE 0 END) AS g{number}"
        for number, one in enumerate(groups)
    )
    return f"SELECT COUNT(*) AS w{flags}{_tail(question, relations)}"


def _known_of_all(
    question: Question, shape: expressions.Shape
) -> list[tuple[str, str]]:
    """The results over the parts of all, where needed."""
    whole, second = _needed(question)
    present = "COUNT(*) AS rows_of_parts"
    made = []
    if whole or shape.keys:
        totals = f"SELECT {shape.listed(*whole, present)} FROM parts{shape.grouped()}"
        made.append(("totals", totals))
    if second:
        query = (
            f"SELECT {shape.listed(*second, present, of='p')} FROM parts AS p"
            f" JOIN totals AS t ON {shape.same('p', 't')}{shape.grouped(of='p')}"
        )
        made.append(("second_look", query))
    return made


def _needed(question: Question) -> tuple[list[str], list[str]]:
    """Return which totals, and which second looks, the measures need."""
    numbered = [(n, one.aggregate) for n, one in enumerate(question.measures)]
    return (
        expressions.all_of([expressions.totals(*one) for one in numbered]),
        expressions.all_of([expressions.second_pass(*one) for one in numbered]),
    )


def _moves(
    question: Question, shape: expressions.Shape, groups: Sequence[PeopleGroup]
) -> list[tuple[str, str]]:
    made: list[tuple[str, str]] = []
    joins = ""
    columns: list[str] = []
    for number, measure in enumerate(question.measures):
        relations, join = joined_relations(number, measure.aggregate, shape)
        made += relations
        joins += join
        moved = expressions.move(number, measure.aggregate, units=shape.units)
        columns.append(f"{moved} AS d{number}")
    if shape.units:
        columns.append("p.u")
    if not shape.units or _in_one_table(question):
        columns += [*(f"p.g{number}" for number in range(len(groups))), "p.w"]
    whole, second = _needed(question)
    known = f" JOIN totals AS t ON {shape.same('p', 't')}" if whole else ""
    if second:
        known += f" JOIN second_look AS n ON {shape.same('p', 'n')}"
    moves = f"SELECT {', '.join(columns)} FROM parts AS p{known}{joins}"
    return [*made, ("moves", moves)]


# --- people ---------------------------------------------------------------------------


def _size(question: Question) -> str:
    """The number of groups of the answer."""
    return "(SELECT COUNT(*) FROM totals) AS size" if question.keys else "1 AS size"


def _of_everybody(question: Question, groups: Sequence[PeopleGroup]) -> str:
    """Everybody has one part; rows without a person are not counted."""
    moved = ", ".join(f"d{n}" for n in range(len(question.measures)))
    flags = "".join(f", SUM(g{n}) AS g{n}" for n in range(len(groups)))
    return (
        f"SELECT {moved}, COUNT(*) AS people{flags}, {_size(question)} FROM moves"
        f" WHERE u IS NOT NULL GROUP BY {moved}"
    )


def _of_rows(question: Question, groups: Sequence[PeopleGroup]) -> str:
    """Counted rows have their moves; all others none."""
    numbers = range(len(question.measures))
    moved = ", ".join(f"d{n}" for n in numbers)
    still = ", ".join(f"0.0 AS d{n}" for n in numbers)
    flags = [f"g{n}" for n in range(len(groups))]
    weighted = "".join(f", SUM(CASE WHEN {g} THEN w ELSE 0 END) AS {g}" for g in flags)
    rest = "".join(f", a.{g} - COALESCE(c.{g}, 0) AS {g}" for g in flags)
    return (
        f"SELECT {moved}, SUM(w) AS people{weighted}, {_size(question)} FROM moves"
        f" GROUP BY {moved}\nUNION ALL\n"
        f"SELECT {still}, a.w - COALESCE(c.w, 0) AS people{rest}, {_size(question)}"
        f" FROM all_rows AS a, (SELECT SUM(w) AS w{weighted} FROM counted) AS c"
        " WHERE a.w > COALESCE(c.w, 0)"
    )


def _people(
    question: Question, relations: Mapping[str, str], groups: Sequence[PeopleGroup]
) -> list[tuple[str, str]]:
    """Everybody with a row in any table of persons, and the groups she belongs to."""
    unit = exp.column(question.unit or "", quoted=True).sql("duckdb")
    selects = []
    for table in question.persons:
        flags = "".join(
            f", {_flag(one)} AS g{number}"
            if one.table == table
            else f", FALSE AS g{number}"
            for number, one in enumerate(groups)
        )
        relation = exp.to_identifier(relations[table], quoted=True).sql("duckdb")
        selects.append(f"SELECT {unit} AS u{flags} FROM {relation}")
    flags = "".join(
        f", MAX(CASE WHEN g{n} THEN 1 ELSE 0 END) AS g{n}" for n in range(len(groups))
    )
    every = " UNION ALL ".join(selects)
    people = (
        f"SELECT u{flags} FROM ({every}) AS every_row WHERE u IS NOT NULL GROUP BY u"
    )
    return [("persons", people)]


def _of_units(question: Question, groups: Sequence[PeopleGroup], listed: bool) -> str:  # noqa: FBT001
    flags = "".join(f", SUM(g{n}) AS g{n}" for n in range(len(groups)))
    numbers = range(len(question.measures))
    if not listed:
        moved = ", ".join(f"d{n}" for n in numbers)
        own = ", ".join(f"COALESCE(m.d{n}, 0.0) AS d{n}" for n in numbers)
        groups_of = "".join(f", p.g{n}" for n in range(len(groups)))
        return (
            f"SELECT {moved}, COUNT(*) AS people{flags}, {_size(question)} FROM"
            f" (SELECT {own}{groups_of} FROM persons AS p LEFT JOIN moves AS m"
            f" ON p.u = m.u) AS everybody GROUP BY {moved}"
        )
    each = " UNION ALL ".join(
        f"SELECT u, d{n} AS d FROM moves WHERE d{n} <> 0" for n in numbers
    )
    groups_of = "".join(f", p.g{n}" for n in range(len(groups)))
    return (
        f"SELECT moves, COUNT(*) AS people{flags}, {_size(question)} FROM"
        f" (SELECT l.moves{groups_of} FROM persons AS p LEFT JOIN"
        f" (SELECT u, LIST_SORT(ARRAY_AGG(d)) AS moves FROM ({each}) AS each"
        f" GROUP BY u) AS l ON p.u = l.u) AS everybody GROUP BY moves"
    )


def read_influence(
    made: Statement,
    columns: Mapping[str, Numbers],
    moves: Numbers | None = None,
    lengths: Counts | None = None,
    *,
    size: int,
) -> Influence:
    """Return how far the answer moves for everybody.

    Args:
        made: The statement.
        columns: Its columns by name, but for lists; each of shape (kinds,).
        moves: For a statement with lists, their members, one list after the other.
        lengths: And how many each list has; shape (kinds,).
        size: How many groups the answer has; 1 if it has none.

    Raises:
        InputError: If a person's move is no finite number.
    """
    people = columns["people"].astype(np.int64)
    if moves is None or lengths is None:
        moves, lengths = _sparse(made, columns)
    if not np.all(np.isfinite(moves)):
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                "the answer is infinite or no number with or without some rows",
                help="leave such values out of the query: WHERE isfinite(…)",
            )
        )
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    members = {
        name: np.nan_to_num(columns[f"g{number}"]).astype(np.int64)
        for number, name in enumerate(made.groups)
    }
    return Influence(size * made.measures, moves, starts, people, members)


def _sparse(made: Statement, columns: Mapping[str, Numbers]) -> tuple[Numbers, Counts]:
    """Return the moves that are not 0, and how many of these each kind has."""
    wide = np.stack([columns[f"d{n}"] for n in range(made.measures)], axis=1)
    moved = wide != 0
    return wide[moved], moved.sum(axis=1).astype(np.int64)
