"""Arguments of functions and operators: which fit each other, and which never do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from modicum.core.errors import Code, InputError
from modicum.query.expressions.analysis import facts_of, size_of
from modicum.query.expressions.facts import TIMES, Misfit, is_null
from modicum.query.model import Call, Expression, Literal
from modicum.query.parser.literals import name_for_value, time_value
from modicum.query.parser.scope import Scope
from modicum.query.refusals import Reason, refused
from modicum.query.tables import ColumnType

if TYPE_CHECKING:
    from sqlglot import exp

#: Deeper expressions are refused: each level takes several calls in Python.
_LEVELS_MAX: Final = 64
#: Larger expressions are refused, as they are written for an engine.
_SIZE_MAX: Final = 3_000

NO_COLUMN: Final = Reason(
    "a condition says something about a row",
    "leave it out: it has no effect on a row",
)
OF_GROUPS: Final = Reason(
    "this looks at single rows, and aggregates are of groups",
    "put conditions on aggregates into HAVING: … GROUP BY key HAVING COUNT(*) > 10 ;"
    " sums of aggregates are windows: SUM(COUNT(*)) OVER ()",
)
#: The classes that sqlglot makes of the aggregates that are read.
AGGREGATES: Final = frozenset(
    {
        "ApproxDistinct",
        "Avg",
        "Count",
        "CountIf",
        "Filter",
        "Median",
        "Quantile",
        "ApproxQuantile",
        "PercentileCont",
        "PercentileDisc",
        "Stddev",
        "StddevPop",
        "StddevSamp",
        "Sum",
        "Variance",
        "VariancePop",
        "WithinGroup",
    }
)


#: Those of pairs of numbers, which are computed of other aggregates.
OF_PAIRS: Final = frozenset(
    {
        "Corr",
        "CovarPop",
        "CovarSamp",
        "RegrCount",
        "RegrIntercept",
        "RegrR2",
        "RegrSlope",
    }
)


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is one of the aggregates that are read."""
    return type(node).__name__ in AGGREGATES


def is_of_pairs(node: exp.Expr) -> bool:
    """Return whether a node is an aggregate of pairs, such as CORR."""
    return type(node).__name__ in OF_PAIRS


def refuse_deep(node: exp.Expr, scope: Scope) -> None:
    """Refuse a node with too many levels; a chain of AND or of OR is one.

    Raises:
        InputError: If it has more.
    """
    from sqlglot import exp

    waiting = [(node, 0)]
    while waiting:
        one, level = waiting.pop()
        if level > _LEVELS_MAX:
            raise _too_large(node, scope)
        for inner in one.iter_expressions():
            chained = type(one) is type(inner) and isinstance(one, exp.Connector)
            waiting.append((inner, level if chained else level + 1))


def refuse_large(expression: Expression, node: exp.Expr, scope: Scope) -> None:
    """Refuse an expression that is too large where it is written out.

    Raises:
        InputError: If it is.
    """
    if size_of(expression) > _SIZE_MAX:
        raise _too_large(node, scope)


def _too_large(node: exp.Expr, scope: Scope) -> InputError:
    return refused(
        Code.NOT_IN_SUBSET,
        "the expression is too large, or nested too deep",
        scope.sql.mark_of(node),
        reason=Reason("", "compute it in the data, and declare that column"),
    )


def fitted(
    name: str, arguments: Iterable[Expression], node: exp.Expr, scope: Scope
) -> Expression:
    """Return the call of a function whose arguments fit it.

    Raises:
        InputError: If they do not.
    """
    call = Call(name, tuple(arguments))
    try:
        facts_of(call, scope.declared)
    except Misfit as misfit:
        raise refused(
            Code.DOES_NOT_FIT,
            str(misfit),
            scope.sql.mark_of(node),
            reason=Reason(misfit.why, misfit.remedy),
        ) from None
    return call


def alike(
    values: Sequence[Expression], node: exp.Expr, scope: Scope
) -> list[Expression]:
    """Return values of one type: texts and NULL as the others, dates as timestamps.

    Raises:
        InputError: If a text is no time, and the others are times.
    """
    facts = [scope.facts(one) for one in values]
    types = {one.type for one in facts if not is_null(one)}
    kind: ColumnType = next((one.type for one in facts if not is_null(one)), "text")
    times = types & set(TIMES)
    if times and types <= {"text", *TIMES}:
        kind = "timestamp" if "timestamp" in times else "date"
    found: list[Expression] = []
    for one, known in zip(values, facts, strict=True):
        if isinstance(one, Literal) and one.value is None:
            found.append(Literal(None, kind))
        elif isinstance(one, Literal) and known.type == "text" and kind in TIMES:
            found.append(time_value(str(one.value), kind, node, scope.sql))
        elif kind == "timestamp" and known.type == "date":
            found.append(Call("timestamp", (one,)))
        else:
            found.append(one)
    return found


def call_alike(
    name: str, values: Sequence[Expression], node: exp.Expr, scope: Scope
) -> Expression:
    """Return the call of a function whose arguments are made alike.

    Raises:
        InputError: If they do not fit it.
    """
    return fitted(name, alike(values, node, scope), node, scope)


def arguments_of(node: exp.Expr, parts: Iterable[str]) -> list[exp.Expr]:
    """Return some parts of a node that are there, in their order."""
    found: list[exp.Expr] = []
    for part in parts:
        value = node.args.get(part)
        found += (
            value if isinstance(value, list) else [value] if value is not None else []
        )
    return found


def refuse_odd(node: exp.Expr, scope: Scope) -> None:
    """Refuse comparisons of aggregates, of values alone, and of what joins tables.

    Raises:
        InputError: If it is one of these.
    """
    from sqlglot import exp

    if scope.grouped is not None:
        return  # Aggregates are columns of groups.
    for one in node.walk():
        if is_aggregate(one) or is_of_pairs(one):
            raise scope.sql.unread(one, OF_GROUPS)
    if node.find(exp.Column) is None:
        drawn = node.find(exp.Rand)
        raise scope.sql.unread(drawn or node, None if drawn else NO_COLUMN)
    names = ("this", "expression", "low", "high", "expressions")
    sides = [one for one in arguments_of(node, names) if type(one) is exp.Column]
    for one in sides:
        if not one.args.get("table") and not scope.knows(one.this):
            raise name_for_value(one, scope.sql)
    if len(sides) < 2 or type(node) is not exp.EQ:
        return
    left, right = sides
    tables = {one.args["table"].name for one in sides if one.args.get("table")}
    if left.name == right.name and len(tables) > 1:
        remedy = f"write JOIN … USING ({left.name[:60]}) after FROM, and leave it out"
        reason = Reason("joins are not conditions", remedy)
        raise scope.sql.unread(node, reason)
