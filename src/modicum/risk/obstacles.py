"""Which queries have no closed form, and why.

A function that is not here may look at other rows, make several rows of one, or change
from run to run. A query with one has no closed form.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final

from sqlglot import exp

from modicum.risk.outputs import has_aggregate, keys_of, measure_of

#: Never fails, whatever a row contains.
_TOTAL: Final[tuple[type[exp.Expr], ...]] = (
    *(exp.Select, exp.From, exp.Join, exp.Where, exp.Group, exp.Order, exp.Ordered),
    *(exp.Alias, exp.TableAlias, exp.Table, exp.Identifier, exp.Column, exp.Star),
    *(exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Tuple, exp.Filter),
    *(exp.Distinct, exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median),
    *(exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevPop, exp.StddevSamp),
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE),
    *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between, exp.Neg),
    *(exp.Like, exp.ILike, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.IsNan),
    *(exp.Lower, exp.Upper, exp.Length, exp.TryCast, exp.DataType, exp.DataTypeParam),
)
#: May fail for some rows: by their values alone.
_PARTIAL: Final[tuple[type[exp.Expr], ...]] = (
    *(exp.Cast, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Abs),
    *(exp.Floor, exp.Ceil, exp.Round, exp.Sqrt, exp.Trim, exp.Substring, exp.Concat),
    *(exp.DPipe, exp.StartsWith, exp.Contains, exp.Extract, exp.Year, exp.Month),
    *(exp.Day, exp.DateTrunc, exp.TimestampTrunc, exp.Interval, exp.Var),
)
#: A possible suffix of a table's name: its alias.
_OF_A_TABLE: Final = frozenset({"this", "alias"})
_OF_AN_ALIAS: Final = frozenset({"this"})
_OF_A_LIST: Final = frozenset({"this", "expressions"})


def unknown_function(select: exp.Select) -> str:
    """Return the first part of a query not known to be a row function; empty if none.

    Args:
        select: The query.

    Returns:
        Its text, shortened.

    Neighboring relation:
        A person's rows are removed. With known functions only, all other rows are read
        as before, whatever hers contain; closed forms rely on that.

    Source:
        None; RSK-13 rests on it.

    Examples:
        >>> from sqlglot import parse_one
        >>> unknown_function(parse_one("SELECT COUNT(*) FROM t WHERE x > 3"))
        ''
        >>> unknown_function(parse_one("SELECT COUNT(*) FROM t WHERE x > (SELECT 3)"))
        '`(SELECT 3)`'
    """
    known = {*_TOTAL, *_PARTIAL}
    for one in select.walk():
        if (one is not select and isinstance(one, exp.Query)) or type(one) not in known:
            return _sql_text(one)
        if isinstance(one, exp.Table) and not _only(one, _OF_A_TABLE):
            return _sql_text(one)
        if isinstance(one, exp.TableAlias) and not _only(one, _OF_AN_ALIAS):
            return _sql_text(one)
        if isinstance(one, exp.In) and not _only(
            one, frozenset({"this", "expressions"})
        ):
            return _sql_text(one)
    return ""


def may_fail(select: exp.Select) -> bool:
    """Return whether some row may make the query fail.

    Args:
        select: A query without strangers.

    Returns:
        Whether something in it, a division for one, is not known to end well.

    Neighboring relation:
        A person's rows are removed, and an error with them: an answer that may fail
        moves by more than any number, so that no epsilon covers it.

    Source:
        None; RSK-13 rests on it.

    Examples:
        >>> from sqlglot import parse_one
        >>> may_fail(parse_one("SELECT COUNT(*) FROM t WHERE x > 3"))
        False
        >>> may_fail(parse_one("SELECT COUNT(*) FROM t WHERE CAST(x AS INT) > 3"))
        True
    """
    return any(
        type(one) not in _TOTAL
        or (isinstance(one, exp.Neg) and not isinstance(one.this, exp.Literal))
        for one in select.walk()
    )


def _only(tree: exp.Expr, names: frozenset[str]) -> bool:
    return all(name in names for name, value in tree.args.items() if value)


def _sql_text(tree: exp.Expr) -> str:
    return f"`{tree.sql('duckdb')[:60]}`"


_PLAIN: Final = frozenset(
    {"kind", "expressions", "from_", "joins", "where", "group", "order", "hint"}
)


def obstacle_of(
    select: exp.Select, columns: Set[str], unit: str | None, persons: Sequence[str]
) -> str:
    """Return why moves have no closed form; empty if they have one.

    Args:
        select: The query.
        columns: The names of the columns of its tables, in small letters.
        unit: The column that identifies a person.
        persons: The tables that have it.
    """
    for clause, value in select.args.items():
        if value not in (None, [], False) and clause not in _PLAIN:
            return f"it has a {clause.strip('_').upper()} clause"
    if select.find(exp.Subquery, exp.Window, exp.CTE, exp.Lateral, exp.Unnest):
        return "it contains a query or window"
    if unknown := unknown_function(select):
        return f"{unknown} is not known to depend on one row only"
    if not isinstance(select.args["from_"].this, exp.Table):
        return "it does not read a table"
    group = select.args.get("group")
    if group is not None and any(
        value not in (None, [], False)
        for clause, value in group.args.items()
        if clause != "expressions"
    ):
        return "it has several groupings"
    obstacle = _output_obstacle(select, columns)
    return obstacle or _join_obstacle(select, unit, persons)


def _output_obstacle(select: exp.Select, columns: Set[str]) -> str:
    keys = {one.sql("duckdb") for one in keys_of(select, columns)}
    for one in select.selects:
        plain = one.unalias()
        if has_aggregate(plain):
            if measure_of(plain) is None:
                return f"`{plain.sql('duckdb')[:60]}` is more than one aggregate"
        elif plain.sql("duckdb") not in keys:
            return f"`{plain.sql('duckdb')[:60]}` is neither a group nor an aggregate"
    return ""


def _join_obstacle(select: exp.Select, unit: str | None, persons: Sequence[str]) -> str:
    first = select.args["from_"].this
    joins = select.args.get("joins") or []
    if joins and first.name not in persons:
        return "its first table has no id column of a person"
    equated = {first.alias_or_name.lower()}
    for join in joins:
        if not isinstance(join.this, exp.Table) or join.args.get("method"):
            return "it joins something other than tables"
        if join.side not in ("", "LEFT") or join.kind not in ("", "INNER", "OUTER"):
            return "it uses a join other than JOIN or LEFT JOIN"
        if join.this.name not in persons:
            continue
        if not _on_the_unit(join, equated, unit or ""):
            return "it joins rows of different people"
        equated.add(join.this.alias_or_name.lower())
    return ""


def _on_the_unit(join: exp.Join, equated: set[str], unit: str) -> bool:
    """Return whether a join combines only rows of the same person."""
    using = [one.name.lower() for one in join.args.get("using") or []]
    if unit.lower() in using:
        return True
    on = join.args.get("on")
    own = join.this.alias_or_name.lower()
    for one in () if on is None else on.flatten() if isinstance(on, exp.And) else [on]:
        one = one.unnest()  # noqa: PLW2901
        if not isinstance(one, exp.EQ):
            continue
        sides = (one.this, one.expression)
        if all(
            isinstance(side, exp.Column) and side.name.lower() == unit.lower()
            for side in sides
        ):
            owners = {side.table.lower() for side in sides}
            if own in owners and len(owners) == 2 and (owners - {own}) <= equated:
                return True
    return False
