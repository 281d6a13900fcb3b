"""Whether a query matches its tables and its engine, checked before a row is read.

An engine's errors about rows may quote them, so none are shown. Errors over empty
tables concern the query and the columns alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from sqlglot import exp

from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Problem, UnavailableError
from modicum.engines.duckdb_engine import DuckdbEngine
from modicum.engines.sql_engine import SqlEngine
from modicum.risk.influence.leave_one_out import must_have_own_names, query_without
from modicum.risk.influence.statement import PeopleGroup, statement
from modicum.risk.measurement.ranges import over
from modicum.risk.outputs import no_number
from modicum.risk.question import Question

#: Numeric types with a common supertype for any two.
_NUMBER: Final = re.compile(
    r"u?(?:tinyint|smallint|integer|bigint)|byte|short|int|long|float|real|double"
)
#: More digits before or after the point might not fit beside another number's.
_DIGITS_MAX: Final = 18
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
_TEXT: Final = re.compile(r"varchar|string|enum\(.*", re.DOTALL)
_TIMES: Final = frozenset({"date", "timestamp"})
_COMPARED: Final = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ),
    *(exp.NullSafeNEQ, exp.Like, exp.ILike, exp.Nullif),
)


def conversions(engine: SqlEngine, question: Question) -> tuple[str, ...]:
    """Return the implicit conversions of a query, as text."""
    if question.obstacle:
        return ()
    select = question.select
    found = [one for node in select.walk() for one in _meeting(node)]
    problems = [one for one in found if not _fits(engine, question, *one)]
    unit = (question.unit or "").lower()
    using = (
        one.name
        for join in select.find_all(exp.Join)
        for one in join.args.get("using") or ()
    )
    texts = [
        " and ".join(f"`{one.sql('duckdb')[:60]}`" for one in each)
        for each, _ in problems
    ]
    texts += [f"`USING ({one[:60]})`" for one in using if one.lower() != unit]
    return tuple(
        f"{text}: an engine may convert it to compare it, and a row could make the"
        " query fail (TRY_CAST does not)"
        for text in dict.fromkeys(texts)
    )


def _meeting(node: exp.Expr) -> Iterator[tuple[list[exp.Expr], bool]]:
    """Return the parts of a node that need one type, and whether it is boolean."""
    if isinstance(node, _COMPARED):
        yield [node.this, node.expression], False
    elif isinstance(node, exp.In | exp.Coalesce):
        yield [node.this, *node.expressions], False
    elif isinstance(node, exp.Between):
        yield [node.this, node.args["low"], node.args["high"]], False
    elif isinstance(node, exp.Case):
        ifs = node.args["ifs"]
        otherwise = node.args.get("default")
        yield (
            [one.args["true"] for one in ifs] + ([otherwise] if otherwise else []),
            False,
        )
        conditions = [one.this for one in ifs]
        yield ([node.this, *conditions], False) if node.this else (conditions, True)
    elif isinstance(node, exp.And | exp.Or):
        yield [node.this, node.expression], True
    elif isinstance(node, exp.Not | exp.Where):
        yield [node.this], True
    elif isinstance(node, exp.Join) and node.args.get("on"):
        yield [node.args["on"]], True
    elif isinstance(node, exp.Is) and not isinstance(node.expression, exp.Null):
        yield [node.this], True
    elif isinstance(node, exp.If) and not isinstance(node.parent, exp.Case):
        yield [node.this], True
        yield [one for one in (node.args["true"], node.args.get("false")) if one], False


def _fits(
    engine: SqlEngine,
    question: Question,
    operands: list[exp.Expr],
    truth: bool,  # noqa: FBT001
) -> bool:
    problems = [
        one.unnest() for one in operands if not isinstance(one.unnest(), exp.Null)
    ]
    texts = [one.name for one in problems if one.is_string]
    others = [one for one in problems if not one.is_string]
    if not others:
        return not truth
    try:
        found = engine.types_of(
            over(engine, question, [f"({one.sql('duckdb')})" for one in others])
        )
    except UnavailableError:
        return False  # Such as the name of an output.
    types = {one.lower() for one in found}
    if truth:
        return not texts and all(one == "boolean" or _is_number(one) for one in types)
    if texts and types <= _TIMES and len(types) == 1:
        return all(map(_is_time, texts))
    if all(_TEXT.fullmatch(one) for one in types):
        return True
    return not texts and (len(types) == 1 or all(map(_is_number, types)))


def _is_number(kind: str) -> bool:
    if found := _DECIMAL.fullmatch(kind):
        after = int(found[2])
        return after <= _DIGITS_MAX and int(found[1]) - after <= _DIGITS_MAX
    return _NUMBER.fullmatch(kind) is not None


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is None
    except ValueError:
        return False


#: Forbidden references.
_CLOSED: Final[dict[str, str | bool | int | float | list[str]]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}
_NAMELESS: Final = re.compile(r'Referenced (column|table) "([^"]*)" not found')
_SEVERAL: Final = re.compile(r'Ambiguous reference to column name "([^"]*)"')
_NO_FUNCTION: Final = re.compile(r"Function with name (\S+) does not exist")
#: The values of an enumeration may be those of rows.
ENUM: Final = re.compile(r"ENUM\('(?:[^']|'')*'(?:, '(?:[^']|'')*')*\)")


def must_bind(
    engine: SqlEngine, question: Question, groups: Sequence[PeopleGroup] = ()
) -> None:
    """Refuse a query that its engine would not understand; no row is read."""
    if not isinstance(engine, DuckdbEngine):
        return
    import duckdb

    relations = engine.relations()
    types = {table: engine.types(table) for table in {*question.tables, *_read(groups)}}
    statements = [query_without(question, relations, engine.columns(), None)]
    if not question.obstacle:
        statements.append(statement(question, relations, groups).sql)
    statements += [
        exp.select("1").from_(relations[one.table]).where(one.condition).sql("duckdb")
        for one in groups
    ]
    with duckdb.connect(":memory:", config=_CLOSED) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for table, columns in types.items():
            connection.execute(_empty(relations[table], columns))
        for text in statements:
            try:
                connection.execute(f"EXPLAIN {text}")
            except duckdb.Error as error:
                raise _misunderstood(str(error), question) from None


def _read(groups: Iterable[PeopleGroup]) -> set[str]:
    return {one.table for one in groups}


def _empty(relation: str, columns: Mapping[str, str]) -> str:
    """Return the statement of a table that has columns and no rows."""
    listed = ", ".join(
        f"{exp.to_identifier(name, quoted=True).sql('duckdb')}"
        f" {ENUM.sub('VARCHAR', type_of)}"
        for name, type_of in columns.items()
    )
    return f"CREATE TABLE {relation} ({listed})"


def _misunderstood(message: str, question: Question) -> InputError:
    first = message.partition("\n")[0].partition(": ")[2][:400]
    if found := _NAMELESS.search(message):
        what, name = found[1], found[2]
        known = question.columns if what == "column" else _called(question)
        return _mistake(
            Code.UNKNOWN_NAME,
            f"unknown {what} `{name[:60]}`",
            "known: " + (", ".join(sorted(known))[:400] or "none"),
            nearest(name, known),
        )
    if found := _SEVERAL.search(message):
        return _mistake(
            Code.UNKNOWN_NAME,
            f"`{found[1][:60]}` may mean several columns",
            "prefix it with the table name",
        )
    if found := _NO_FUNCTION.search(message):
        return _mistake(
            Code.NOT_IN_SUBSET,
            f"DuckDB has no function `{found[1][:60]}`",
            "use a function of DuckDB",
        )
    return _mistake(
        Code.DOES_NOT_FIT,
        "the query does not fit its tables",
        "correct the query",
        note=f"DuckDB: {first}",
    )


def _called(question: Question) -> list[str]:
    return [one.alias_or_name for one in question.select.find_all(exp.Table)]


def _mistake(
    code: Code, message: str, remedy: str, near: str = "", *, note: str = ""
) -> InputError:
    notes = (note,) if note else ()
    return InputError(Problem(code, message, label=near, notes=notes, help=remedy))


#: Types by other names that hold the same values, and compare them exactly.
_EXACT: Final = frozenset({"integer", "text"})
#: Aggregates that count, whatever their argument.
_COUNTING: Final = frozenset({"rows", "count", "distinct"})
_TEMPORAL: Final = ("date", "time", "interval")


def must_have_fitting_types(engine: SqlEngine, question: Question) -> None:
    """Refuse a query that no moves can be measured of, by its columns' types."""
    _must_have_the_same_ids(engine, question)
    _must_be_numbers(engine, question)


def _must_have_the_same_ids(engine: SqlEngine, question: Question) -> None:
    """Refuse ids that an engine has to convert to compare them.

    Two of them may be the same person in a join, and two persons in a table: for
    example the texts '1' and '01' beside the number 1.
    """
    if question.unit is None or len(question.persons) < 2:
        return
    problems = []
    kinds = set()
    for table in question.persons:
        forms = engine.forms()[table]
        name = next(one for one in forms if one.lower() == question.unit.lower())
        column = exp.column(name, quoted=True)
        relation = exp.to_table(engine.relations()[table], quoted=True)
        select = exp.select(column).from_(relation)
        (described,) = engine.types_of(select.sql(engine.dialect))
        form = forms[name]
        kinds.add(form if form in _EXACT else described)
        shown = ENUM.sub("ENUM", described)[:60]
        problems.append(f"`{table[:60]}.{name[:60]}` is {shown}")
    if len(kinds) == 1:
        return
    raise InputError(
        Problem(
            Code.DOES_NOT_FIT,
            "the person ids of the tables have different types",
            notes=tuple(problems),
            help="give them one type in all tables: otherwise ids may match in a join"
            " and differ in a table",
        )
    )


def _must_be_numbers(engine: SqlEngine, question: Question) -> None:
    select, called = _query_and_outputs(engine, question)
    if not any(called):
        return
    types = engine.types_of(select)
    for one, kind in zip(called, types, strict=True):
        if one and kind.lower().startswith(_TEMPORAL):
            raise no_number(one, "a date or time")


def _query_and_outputs(engine: SqlEngine, question: Question) -> tuple[str, list[str]]:
    """Return a query, and which outputs must be numbers: by output, a name or none."""
    if question.obstacle:
        relations, columns = engine.relations(), engine.columns()
        text = query_without(question, relations, columns, None, engine.dialect)
        return text, ["" if key else name for name, key in question.outputs]
    measured = [
        (one.called, one.value)
        for one in question.measures
        if one.value is not None and one.aggregate not in _COUNTING
    ]
    values = [f"({value.sql('duckdb')})" for _, value in measured]
    return over(engine, question, values or ["1"]), [called for called, _ in measured]


def must_fit(
    engine: SqlEngine, question: Question, groups: Sequence[PeopleGroup] = ()
) -> None:
    """Refuse a query that its engine does not understand, or that has no moves."""
    must_have_own_names(question, engine.relations())
    try:
        # First, since a sum of dates is no number, and not understood either.
        must_have_fitting_types(engine, question)
    except UnavailableError:
        must_bind(engine, question, groups)
        raise
    must_bind(engine, question, groups)
