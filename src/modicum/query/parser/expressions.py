"""Expressions: columns, values, operators, CASE, functions and conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from modicum.core.errors import Code
from modicum.core.reader import Problems
from modicum.query.attributes import columns_in
from modicum.query.expressions.facts import A
from modicum.query.expressions.table import BY_NODE, BY_WORD, FUNCTIONS
from modicum.query.expressions.times import period_name
from modicum.query.model import (
    AllOf,
    AnyOf,
    Call,
    Compare,
    Comparison,
    Expression,
    IsIn,
    IsNull,
    Literal,
    Not,
)
from modicum.query.parser.arguments import (
    NO_COLUMN,
    OF_GROUPS,
    alike,
    arguments_of,
    call_alike,
    fitted,
    is_aggregate,
    is_of_pairs,
    refuse_deep,
    refuse_large,
    refuse_odd,
)
from modicum.query.parser.casts import converted
from modicum.query.parser.literals import (
    is_value,
    name_for_value,
    read_literal,
    read_value,
)
from modicum.query.parser.periods import read_grain
from modicum.query.parser.scope import ResolvedColumn, Scope
from modicum.query.parser.sql_text import only
from modicum.query.parser.times import (
    added,
    between_times,
    formatted,
    moved,
    name_of_part,
    part_of,
    read_interval,
)
from modicum.query.refusals import INNER_QUERY, WORDS, Reason, refused

if TYPE_CHECKING:
    from sqlglot import exp

#: More values of one column are refused.
VALUES_MAX: Final = 10_000
#: By the class that sqlglot makes of it, each comparison.
COMPARISONS: Final[Mapping[str, Comparison]] = {
    "EQ": "=",
    "NEQ": "<>",
    "LT": "<",
    "LTE": "<=",
    "GT": ">",
    "GTE": ">=",
}
#: The comparison with its sides exchanged.
_FLIPPED: Final[Mapping[Comparison, Comparison]] = {
    "=": "=",
    "<>": "<>",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}


def read_whole(
    node: exp.Expr, scope: Scope, *, condition: bool = False, constant: bool = False
) -> Expression:
    """Return the expression of a node, which is part of no other one.

    Args:
        node: The node.
        scope: The tables that are read.
        condition: Whether it must be a condition.
        constant: Whether it may be the same for all rows.

    Raises:
        InputError: If it is none that is read, does not fit, or is too large.
    """
    from sqlglot import exp

    if type(node) is exp.Column and not condition:
        return scope.column(node).value
    refuse_deep(node, scope)
    expression = (read_condition if condition else read_expression)(node, scope)
    if not constant and next(columns_in(expression), None) is None:
        raise scope.sql.unread(node, NO_COLUMN if condition else None)
    refuse_large(expression, node, scope)
    return expression


def read_expression(node: exp.Expr, scope: Scope) -> Expression:
    """Return the expression of a node.

    Raises:
        InputError: If it is none that is read, or does not fit the columns.
    """
    if scope.grouped is not None:
        group = scope.grouped.read(node)
        if group is not None:
            return group
    kind = type(node).__name__
    reader = _READERS.get(kind)
    if reader is not None:
        return reader(node, scope)
    if kind in _CONDITIONS or kind in COMPARISONS:
        return read_condition(node, scope)
    if is_aggregate(node) or is_of_pairs(node):
        raise scope.sql.unread(node, OF_GROUPS)
    if kind == "Star":
        raise scope.sql.unread(node, Reason("", "name a column"))
    return _called(node, scope)


def read_condition(node: exp.Expr, scope: Scope) -> Expression:
    """Return the condition of a node: an expression of type boolean.

    Raises:
        InputError: If it is none that is read.
    """
    kind = type(node).__name__
    if kind in COMPARISONS:
        return _compared(node, scope)
    reader = _CONDITIONS.get(kind)
    if reader is not None:
        return reader(node, scope)
    if is_value(node):
        raise scope.sql.unread(node)
    found = read_expression(node, scope)
    facts = scope.facts(found)
    if facts.type != "boolean":
        raise refused(
            Code.DOES_NOT_FIT,
            f"this is {A[facts.type]}, and not a condition",
            scope.sql.mark_of(node),
            reason=Reason("", "compare it with a value"),
        )
    return found


# --- operands -------------------------------------------------------------------------


def _column(node: exp.Expr, scope: Scope) -> Expression:
    quoted = not node.args.get("table") and node.this.args.get("quoted")
    if quoted and not scope.knows(node.this):
        raise name_for_value(node, scope.sql)
    return scope.column(node).value


def _literal(node: exp.Expr, scope: Scope) -> Expression:
    return read_literal(node, scope.sql)


def _negative(node: exp.Expr, scope: Scope) -> Expression:
    only(scope.sql, node, ("this",))
    if is_value(node):
        return read_literal(node, scope.sql)
    return fitted("negative", [read_expression(node.this, scope)], node, scope)


def _in_brackets(node: exp.Expr, scope: Scope) -> Expression:
    only(scope.sql, node, ("this",))
    return read_expression(node.this, scope)


# --- CASE -----------------------------------------------------------------------------


def _case(node: exp.Expr, scope: Scope) -> Expression:
    only(scope.sql, node, ("this", "ifs", "default"))
    operand = node.args.get("this")
    conditions, values = [], []
    match = None if operand is None else _matcher(operand, scope)
    for one in node.args["ifs"]:
        only(scope.sql, one, ("this", "true"))
        condition = one.this
        conditions.append(
            read_condition(condition, scope) if match is None else match(condition)
        )
        chosen = scope.given(conditions[-1])
        values.append(read_expression(one.args["true"], chosen))
    return _chosen(conditions, values, node.args.get("default"), node, scope)


def _matcher(operand: exp.Expr, scope: Scope) -> Callable[[exp.Expr], Expression]:
    """Return what makes the condition that the operand of a CASE has some value."""
    from sqlglot import exp

    if type(operand) is exp.Column:
        found = scope.column(operand)

        def match_column(node: exp.Expr) -> Expression:
            if is_value(node) and found.stored is not None:
                value = read_value(node, found.column, scope.sql)
                return Compare(found.stored, "=", value)
            other = read_expression(node, scope)
            return call_alike("=", [found.value, other], node, scope)

        return match_column
    value = read_expression(operand, scope)
    return lambda node: call_alike(
        "=", [value, read_expression(node, scope)], node, scope
    )


def _if(node: exp.Expr, scope: Scope) -> Expression:
    only(scope.sql, node, ("this", "true", "false"))
    condition = read_condition(node.this, scope)
    value = read_expression(node.args["true"], scope.given(condition))
    found = _chosen([condition], [value], node.args.get("false"), node, scope)
    scope.sql.spend_call(node, ("IF", "IIF"))
    return found


def _chosen(
    conditions: Sequence[Expression],
    values: Sequence[Expression],
    default: exp.Expr | None,
    node: exp.Expr,
    scope: Scope,
) -> Expression:
    other = (
        Literal(None, "text") if default is None else read_expression(default, scope)
    )
    *chosen, last = alike([*values, other], node, scope)
    pairs = (one for pair in zip(conditions, chosen, strict=True) for one in pair)
    return fitted("case", (*pairs, last), node, scope)


# --- functions ------------------------------------------------------------------------


def _called(node: exp.Expr, scope: Scope) -> Expression:
    """Return a function, or an operator, that the table knows."""
    kind, sql = type(node).__name__, scope.sql
    named = kind == "Anonymous"
    name = BY_WORD.get(sql.name_of_call(node)) if named else BY_NODE.get(kind)
    if name is None:
        raise sql.unread(node)
    function = FUNCTIONS[name]
    if not named:
        only(sql, node, (*function.parts, *function.ignored))
    parts = ("expressions",) if named else function.parts
    arguments = [read_expression(one, scope) for one in arguments_of(node, parts)]
    if not arguments:
        raise sql.unread(node)
    if function.words:
        sql.spend_call(node, function.words)
    if name in _ALIKE:
        return call_alike(name, arguments, node, scope)
    return fitted(name, arguments, node, scope)


#: Functions whose arguments are of one type.
_ALIKE: Final = frozenset({"coalesce", "nullif", "least", "greatest"})


def _sum(node: exp.Expr, scope: Scope) -> Expression:
    """Return a sum or difference: of numbers, or of a time and some units."""
    from sqlglot import exp

    only(scope.sql, node, ("this", "expression"))
    one = read_expression(node.this, scope)
    if type(node.expression) is exp.Interval:
        name, count = read_interval(node, scope.sql)
        count = count if type(node) is exp.Add else -count
        return moved(name, one, count, node, scope)
    return added(one, read_expression(node.expression, scope), node, scope)


def _date_add(node: exp.Expr, scope: Scope) -> Expression:
    """Return DATE_ADD(time, INTERVAL 7 DAY)."""
    from sqlglot import exp

    only(scope.sql, node, ("this", "expression"))
    if type(node.expression) is not exp.Interval:
        raise scope.sql.unread(node, WORDS["INTERVAL"])
    time = read_expression(node.this, scope)
    name, count = read_interval(node, scope.sql)
    scope.sql.spend_call(node, ("DATE_ADD",))
    return moved(name, time, count, node, scope)


def _trim(node: exp.Expr, scope: Scope) -> Expression:
    """Return TRIM, LTRIM or RTRIM of spaces."""
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.text("position"), "trim")
    only(scope.sql, node, ("this", "position"))
    value = read_expression(node.this, scope)
    scope.sql.spend_call(node, (name.upper(),))
    return fitted(name, [value], node, scope)


def _divided(node: exp.Expr, scope: Scope) -> Expression:
    only(scope.sql, node, ("this", "expression"))
    one, other = (read_expression(side, scope) for side in (node.this, node.expression))
    if other in scope.nonzero:
        other = Call("nullif", (other, Literal(0, "integer")))  # That changes no row.
    name = "divided" if isinstance(other, Literal) else "ratio"
    return fitted(name, [one, other], node, scope)


def _modulo(node: exp.Expr, scope: Scope) -> Expression:
    only(scope.sql, node, ("this", "expression"))
    both = [read_expression(side, scope) for side in (node.this, node.expression)]
    if node.meta.get("start") is not None:
        scope.sql.spend_call(node, ("MOD",))
    return fitted("modulo", both, node, scope)


def _like(node: exp.Expr, scope: Scope) -> Expression:
    only(scope.sql, node, ("this", "expression", "negate"))
    both = [read_expression(side, scope) for side in (node.this, node.expression)]
    found = fitted(type(node).__name__.lower(), both, node, scope)
    return Not(found) if node.args.get("negate") else found


# --- times ----------------------------------------------------------------------------


def _extract(node: exp.Expr, scope: Scope) -> Expression:
    from sqlglot import exp

    sql = scope.sql
    only(sql, node, ("this", "expression"))
    time = read_expression(node.expression, scope)
    place = sql.spend_call(node, ("EXTRACT",)) + 2
    part = sql.word(place)
    if type(node.this) is not exp.Var or sql.word(place + 1) != "FROM":
        raise sql.unread(node)
    sql.spend(place)
    return part_of(part, time, node, scope)


def _date_part(node: exp.Expr, scope: Scope) -> Expression:
    """Return DATE_PART('year', time), or another function that sqlglot has not."""
    sql = scope.sql
    if sql.name_of_call(node) not in ("DATE_PART", "DATEPART"):
        return _called(node, scope)
    if len(node.expressions) != 2:
        raise sql.unread(node)
    part, time = (read_expression(one, scope) for one in node.expressions)
    sql.spend_call(node, ("DATE_PART", "DATEPART"))
    word = part.value if isinstance(part, Literal) else None
    return part_of(str(word).upper(), time, node, scope)


def _period(node: exp.Expr, scope: Scope) -> Expression:
    only(scope.sql, node, ("this", "unit"))
    time = read_expression(node.this, scope)
    scope.sql.spend_call(node, ("DATE_TRUNC",))
    return fitted(period_name(read_grain(node, scope.sql)), [time], node, scope)


def _date(node: exp.Expr, scope: Scope) -> Expression:
    only(scope.sql, node, ("this",))
    if is_value(node.this):
        raise scope.sql.unread(node, Reason("", "write DATE '2026-11-30'"))
    time = read_expression(node.this, scope)
    scope.sql.spend_call(node, ("DATE",))
    return fitted(period_name("day"), [time], node, scope)


def _between_times(node: exp.Expr, scope: Scope) -> Expression:
    only(scope.sql, node, ("this", "expression", "unit", "date_part_boundary"))
    both = [read_expression(side, scope) for side in (node.expression, node.this)]
    return between_times(both, node, scope)


def _named_part(node: exp.Expr, scope: Scope) -> Expression:
    only(scope.sql, node, ("this",))
    return name_of_part(read_expression(node.this, scope), node, scope)


def _formatted(node: exp.Expr, scope: Scope) -> Expression:
    only(scope.sql, node, ("this", "format"))
    return formatted(read_expression(node.this, scope), node, scope)


def _cast(node: exp.Expr, scope: Scope) -> Expression:
    if is_value(node):
        return read_literal(node, scope.sql)
    only(scope.sql, node, ("this", "to", "safe"))
    only(scope.sql, node.args["to"], ("this", "nested"))
    return converted(read_expression(node.this, scope), node, scope)


# --- conditions -----------------------------------------------------------------------


def _joined(node: exp.Expr, scope: Scope) -> Expression:
    """Return a chain of one operator, however long, without a call for each link."""
    kind, waiting = type(node), [node]
    links: list[exp.Expr] = []
    while waiting:
        one = waiting.pop()
        if type(one) is kind:
            only(scope.sql, one, ("this", "expression"))
            waiting.extend((one.expression, one.this))
        else:
            links.append(one)
    found = Problems()
    parts: list[Expression] = []
    for one in links:
        with found.guard():
            parts.append(read_condition(one, scope))
    found.raise_any()
    return AllOf(tuple(parts)) if kind.__name__ == "And" else AnyOf(tuple(parts))


def _not(node: exp.Expr, scope: Scope) -> Expression:
    only(scope.sql, node, ("this",))
    return Not(read_condition(node.this, scope))


def _condition_in_brackets(node: exp.Expr, scope: Scope) -> Expression:
    only(scope.sql, node, ("this",))
    return read_condition(node.this, scope)


def _compared(node: exp.Expr, scope: Scope) -> Expression:
    from sqlglot import exp

    only(scope.sql, node, ("this", "expression"))
    operator = COMPARISONS[type(node).__name__]
    left, right = node.this, node.expression
    if type(right) is exp.Column and type(left) is not exp.Column:
        left, right, operator = right, left, _FLIPPED[operator]
    if type(left) is exp.Column and is_value(right):
        found = scope.column(left)
        if found.stored is not None:
            value = read_value(right, found.column, scope.sql)
            if operator not in ("=", "<>"):
                _refuse_unordered(found)
            return Compare(found.stored, operator, value)
    refuse_odd(node, scope)
    both = [read_expression(side, scope) for side in (node.this, node.expression)]
    return call_alike(COMPARISONS[type(node).__name__], both, node, scope)


def _refuse_unordered(found: ResolvedColumn) -> None:
    if found.column.type == "boolean":
        raise refused(
            Code.DOES_NOT_FIT,
            f"`{found.column.name}` is a boolean, and has no order",
            found.mark,
            reason=Reason("", "compare it with = or <>"),
        )


def _between(node: exp.Expr, scope: Scope) -> Expression:
    from sqlglot import exp

    only(scope.sql, node, ("this", "low", "high"))
    ends = node.args["low"], node.args["high"]
    if type(node.this) is exp.Column and all(map(is_value, ends)):
        found = scope.column(node.this)
        reference = found.stored
        if reference is not None:
            _refuse_unordered(found)
            low, high = (read_value(end, found.column, scope.sql) for end in ends)
            return AllOf(
                (Compare(reference, ">=", low), Compare(reference, "<=", high))
            )
    refuse_odd(node, scope)
    values = [read_expression(one, scope) for one in (node.this, *ends)]
    return call_alike("between", values, node, scope)


def _in_values(node: exp.Expr, scope: Scope) -> Expression:
    from sqlglot import exp

    if node.args.get("query") is not None:
        return _member(node, scope)
    only(scope.sql, node, ("this", "expressions"))
    nodes = node.args.get("expressions") or []
    if not 1 <= len(nodes) <= VALUES_MAX:
        raise refused(
            Code.NOT_IN_SUBSET,
            f"IN has 1 to {VALUES_MAX} values, not {len(nodes)}",
            scope.sql.mark_of(node),
            reason=Reason(),
        )
    if type(node.this) is exp.Column and all(map(is_value, nodes)):
        found = scope.column(node.this)
        if found.stored is not None:
            read = (read_value(one, found.column, scope.sql) for one in nodes)
            return IsIn(found.stored, tuple(read))
    refuse_odd(node, scope)
    values = [read_expression(one, scope) for one in (node.this, *nodes)]
    return call_alike("in", values, node, scope)


def _is(node: exp.Expr, scope: Scope) -> Expression:
    from sqlglot import exp

    only(scope.sql, node, ("this", "expression"))
    if type(node.expression) is exp.Null:
        return IsNull(read_expression(node.this, scope))
    if type(node.expression) is exp.Boolean:
        truth = Literal(bool(node.expression.this), "boolean")
        return fitted("same", [read_condition(node.this, scope), truth], node, scope)
    if type(node.expression) is exp.Column:
        raise name_for_value(node.expression, scope.sql)
    remedy = Reason("", "write IS NULL, IS NOT NULL, or compare it with =")
    raise scope.sql.unread(node.expression, remedy)


def _same(node: exp.Expr, scope: Scope) -> Expression:
    only(scope.sql, node, ("this", "expression"))
    refuse_odd(node, scope)
    both = [read_expression(side, scope) for side in (node.this, node.expression)]
    found = call_alike("same", both, node, scope)
    return Not(found) if type(node).__name__ == "NullSafeNEQ" else found


def _truth(node: exp.Expr, scope: Scope) -> Expression:
    """Return the condition that a boolean column alone is."""
    found = scope.column(node)
    if found.column.type != "boolean":
        raise refused(
            Code.DOES_NOT_FIT,
            f"`{found.column.name}` is not a condition: it is not a boolean",
            found.mark,
            reason=Reason("", "compare it with a value"),
        )
    if found.stored is None:
        return found.value
    return Compare(found.stored, "=", value=True)


def _member(node: exp.Expr, scope: Scope) -> Expression:
    """Return whether a subquery has a row: IN (SELECT …), or EXISTS (SELECT …)."""
    if scope.reads is None:
        raise scope.sql.unread(node, INNER_QUERY)
    return scope.reads.member(node, scope)


_Reader = Callable[["exp.Expr", Scope], Expression]
_CONDITIONS: Final[Mapping[str, _Reader]] = {
    "And": _joined,
    "Or": _joined,
    "Not": _not,
    "Paren": _condition_in_brackets,
    "Between": _between,
    "In": _in_values,
    "Exists": _member,
    "Is": _is,
    "NullSafeEQ": _same,
    "NullSafeNEQ": _same,
    "Column": _truth,
}
_READERS: Final[Mapping[str, _Reader]] = {
    "Column": _column,
    "Literal": _literal,
    "Boolean": _literal,
    "Null": _literal,
    "Neg": _negative,
    "Paren": _in_brackets,
    "Case": _case,
    "If": _if,
    "Cast": _cast,
    "TryCast": _cast,
    "Add": _sum,
    "Sub": _sum,
    "DateAdd": _date_add,
    "Div": _divided,
    "Mod": _modulo,
    "Trim": _trim,
    "Like": _like,
    "ILike": _like,
    "Extract": _extract,
    "Anonymous": _date_part,
    "TimestampTrunc": _period,
    "DateTrunc": _period,
    "Date": _date,
    "DateDiff": _between_times,
    "TimeToStr": _formatted,
    "Monthname": _named_part,
    "Dayname": _named_part,
}
