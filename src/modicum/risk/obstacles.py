"""Which queries have no closed form, and why."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final

from sqlglot import exp

from modicum.risk.outputs import has_aggregate, keys_of, measure_of
from modicum.risk.rowwise import stranger

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
        unit: The column that tells whose a row is.
        persons: The tables that have it.
    """
    for clause, value in select.args.items():
        if value not in (None, [], False) and clause not in _PLAIN:
            return f"it has a {clause.strip('_').upper()} clause"
    if select.find(exp.Subquery, exp.Window, exp.CTE, exp.Lateral, exp.Unnest):
        return "a query or window stands within it"
    if strange := stranger(select):
        return f"{strange} is not known to be computed of one row"
    if not isinstance(select.args["from_"].this, exp.Table):
        return "it does not read a table"
    group = select.args.get("group")
    if group is not None and any(
        value not in (None, [], False)
        for clause, value in group.args.items()
        if clause != "expressions"
    ):
        return "it groups in more than one way"
    told = _output_obstacle(select, columns)
    return told or _join_obstacle(select, unit, persons)


def _output_obstacle(select: exp.Select, columns: Set[str]) -> str:
    keys = {one.sql("duckdb") for one in keys_of(select, columns)}
    for one in select.selects:
        plain = one.unalias()
        if has_aggregate(plain):
            if measure_of(plain) is None:
                return f"`{plain.sql('duckdb')[:60]}` is more than one aggregate"
        elif plain.sql("duckdb") not in keys:
            return f"`{plain.sql('duckdb')[:60]}` is no group and no aggregate"
    return ""


def _join_obstacle(select: exp.Select, unit: str | None, persons: Sequence[str]) -> str:
    first = select.args["from_"].this
    joins = select.args.get("joins") or []
    if joins and first.name not in persons:
        return "its first table holds nobody's rows"
    equated = {first.alias_or_name.lower()}
    for join in joins:
        if not isinstance(join.this, exp.Table) or join.args.get("method"):
            return "it joins something else than tables"
        if join.side not in ("", "LEFT") or join.kind not in ("", "INNER", "OUTER"):
            return "it joins other than with JOIN or LEFT JOIN"
        if join.this.name not in persons:
            continue
        if not _on_the_unit(join, equated, unit or ""):
            return "it joins rows of different persons"
        equated.add(join.this.alias_or_name.lower())
    return ""


def _on_the_unit(join: exp.Join, equated: set[str], unit: str) -> bool:
    """Tell whether a join takes only rows of the same person together."""
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
