"""Budget maps: how a level or a context changes a budget. Total, monotone, exact."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias, assert_never

from msgspec import Struct

from modicum.accounting import Budget, Unlimited
from modicum.accounting.budgets import (
    RenyiBudget,
    measure,
    parameter,
    with_parameter,
)
from modicum.core.document import Entries, Kind, Node, Scalar, describe, flow_text
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.core.rationals import number_text
from modicum.core.reader import Fields, choice, fail, nearest, number, positive


class Same(Struct, frozen=True):
    """The budget itself."""


class Scale(Struct, frozen=True):
    """The parameter (eps, rho or mu) times a factor; delta stays."""

    factor: Fraction


class Add(Struct, frozen=True):
    """The parameter plus that of another budget of the same measure; delta stays."""

    budget: Budget


class To(Struct, frozen=True):
    """A separate budget."""

    budget: Budget


class Table(Struct, frozen=True):
    """Looked up in a sorted table of parameters.

    Attributes:
        points: (from, to), strictly increasing in the first, not falling in the
            second; at least one.
        between: `linear`, `floor` (the nearest smaller key) or `error`.
        below: `proportional` or `error`.
        above: `last`, `unlimited` or `error`.
    """

    points: tuple[tuple[Fraction, Fraction], ...]
    between: str
    below: str
    above: str


class BudgetMap(Struct, frozen=True):
    """A map and its position."""

    form: Form
    mark: Mark | None


Form: TypeAlias = Same | Scale | Add | To | Table


def apply_map(budget_map: BudgetMap, budget: Budget, reached_by: str) -> Budget:
    """Return the changed budget.

    Raises:
        InputError: If a table is undefined at this budget, measures differ, or the
            map would change a Renyi budget, which has no single number.
    """
    match budget_map.form:
        case Same():
            return budget
        case To(budget=other):
            return other
        case Scale(factor=factor):
            value = _number(budget_map, budget, reached_by)
            return budget if value is None else with_parameter(budget, value * factor)
        case Add(budget=other):
            value = _number(budget_map, budget, reached_by)
            more = _number(budget_map, other, reached_by)
            if value is None or more is None:
                return Unlimited()
            if measure(other).split(",")[0] != measure(budget).split(",")[0]:
                raise _wrong(
                    budget_map,
                    Code.MAP_MEASURE,
                    f"cannot add {measure(other)} to a budget in {measure(budget)}"
                    f" (rule {reached_by})",
                )
            return with_parameter(budget, value + more)
        case Table() as table:
            value = _number(budget_map, budget, reached_by)
            if value is None:
                return budget
            found = _look_up(table, value)
            if found is None:
                raise _undefined(budget_map, table, value, reached_by)
            return (
                found if isinstance(found, Unlimited) else with_parameter(budget, found)
            )
        case _:
            assert_never(budget_map.form)


def _number(budget_map: BudgetMap, budget: Budget, reached_by: str) -> Fraction | None:
    """Return the number that the map acts on; None if the budget is unlimited."""
    if isinstance(budget, RenyiBudget):
        raise _wrong(
            budget_map,
            Code.MAP_MEASURE,
            f"a budget map cannot change a budget by Renyi orders (rule {reached_by})",
            notes=("it has one limit per order, and a map changes one number",),
            help="use `same`, or `{to: {rdp: …}}` with the changed limits",
        )
    return parameter(budget)


def _look_up(table: Table, value: Fraction) -> Fraction | Unlimited | None:
    keys = [key for key, _ in table.points]
    place = bisect_right(keys, value)
    if place and keys[place - 1] == value:
        return table.points[place - 1][1]
    if place == 0:
        first_key, first = table.points[0]
        return value * first / first_key if table.below == "proportional" else None
    if place == len(keys):
        if table.above == "unlimited":
            return Unlimited()
        return table.points[-1][1] if table.above == "last" else None
    (x0, y0), (x1, y1) = table.points[place - 1], table.points[place]
    if table.between == "linear":
        return y0 + (y1 - y0) * (value - x0) / (x1 - x0)
    return y0 if table.between == "floor" else None


def _undefined(
    budget_map: BudgetMap, table: Table, value: Fraction, reached_by: str
) -> InputError:
    first, last = table.points[0][0], table.points[-1][0]
    if value < first:
        where, remedy = "below the first key", "`below: proportional`"
    elif value > last:
        where, remedy = "above the last key", "`above: last`"
    else:
        where, remedy = "between two keys", "`between: linear`"
    return _wrong(
        budget_map,
        Code.MAP_UNDEFINED,
        f"budget map is undefined at {number_text(value)} (rule {reached_by})",
        notes=(
            f"{number_text(value)} lies {where};"
            f" the keys run from {number_text(first)} to {number_text(last)}",
        ),
        help=f"add a key, or choose {remedy}",
    )


def _wrong(
    budget_map: BudgetMap,
    code: Code,
    message: str,
    *,
    notes: tuple[str, ...] = (),
    help: str = "",  # noqa: A002 - the word users see
) -> InputError:
    return InputError(Problem(code, message, budget_map.mark, notes=notes, help=help))


def parse_map(node: Node, read_budget: Callable[[Node], Budget]) -> BudgetMap:
    """Return the budget map that a marked tree describes.

    Args:
        node: `same`, `{scale: …}`, `{add: …}`, `{to: …}` or `{map: {…}, …}`.
        read_budget: Reads a budget, with the policy's bare budget.

    Raises:
        InputError: If it is none of these, or a table is not monotone.
    """
    if isinstance(node, Scalar) and node.text == "same":
        return BudgetMap(Same(), node.mark)
    if isinstance(node, Scalar):
        raise _no_map(node)
    fields = Fields(node, "a budget map")
    form: Form
    if "scale" in fields:
        form = Scale(positive(fields.take("scale"), "`scale`"))
    elif "add" in fields:
        more = fields.take("add")
        _refuse_delta(more)
        form = Add(read_budget(more))
    elif "to" in fields:
        form = To(read_budget(fields.take("to")))
    elif "map" in fields:
        form = _parse_table(fields)
    else:
        raise fail(
            Code.MISSING_KEY,
            "a budget map needs `scale`, `add`, `to` or `map`, or is `same`",
            node,
            help=_with_to(node),
        )
    fields.finish()
    return BudgetMap(form, node.mark)


def _no_map(node: Scalar) -> InputError:
    """Return the error for a word or number that is no budget map."""
    known = "write same, {scale: …}, {add: …}, {to: …} or {map: {…}}"
    if node.kind is Kind.NUMBER or node.text == "unlimited":
        times = (
            f"; {{scale: {node.text}}} multiplies" if node.kind is Kind.NUMBER else ""
        )
        known = f"write  {{to: {node.text}}}  instead of  {node.text}{times}"
    return fail(
        Code.UNKNOWN_CHOICE if node.kind is Kind.TEXT else Code.WRONG_TYPE,
        f"{describe(node)} is not a budget map",
        node,
        label=nearest(node.text, ["same"]),
        help=known,
    )


def _with_to(node: Node) -> str:
    """Return how to write a budget as a map to it."""
    keys = {key.text for key, _ in node.entries} if isinstance(node, Entries) else set()
    if not keys & {"eps", "rho", "mu", "rdp"}:
        return ""
    written = flow_text(node)
    return f"write  {{to: {written}}}  instead of  {written}"


def _refuse_delta(node: Node) -> None:
    if isinstance(node, Entries) and any(
        key.text == "delta" for key, _ in node.entries
    ):
        raise fail(
            Code.KEYS_CONFLICT,
            "`add` adds to eps; delta does not change",
            node,
            help="leave delta out",
        )


def _parse_table(fields: Fields) -> Table:
    node = fields.take("map")
    points = tuple(sorted(_point(key, value) for key, value in _pairs(node)))
    if not points:
        raise fail(Code.MAP_UNDEFINED, "the budget map has no entries", node)
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 == x1:
            raise fail(
                Code.DUPLICATE_KEY,
                f"the budget map has the key {number_text(x0)} twice",
                node,
            )
        if y1 < y0:
            raise fail(
                Code.MAP_NOT_MONOTONE,
                f"the budget map falls from {number_text(y0)} at {number_text(x0)}"
                f" to {number_text(y1)} at {number_text(x1)}",
                node,
                notes=("a larger budget must never become a smaller one",),
            )
    return Table(
        points,
        between=_option(fields, "between", ("linear", "floor", "error")),
        below=_option(fields, "below", ("proportional", "error")),
        above=_option(fields, "above", ("last", "unlimited", "error")),
    )


def _pairs(node: Node) -> tuple[tuple[Scalar, Node], ...]:
    if not isinstance(node, Entries):
        raise fail(Code.WRONG_TYPE, "`map` must be a mapping of numbers", node)
    return node.entries


def _point(key: Scalar, value: Node) -> tuple[Fraction, Fraction]:
    if key.kind is not Kind.NUMBER:
        raise fail(Code.NOT_A_NUMBER, "a key of `map` must be a number", key)
    source = number(key, "a key of `map`")
    if source <= 0:
        raise fail(Code.OUT_OF_RANGE, "a key of `map` must be greater than 0", key)
    return source, positive(value, "a value of `map`")


def _option(fields: Fields, key: str, known: tuple[str, ...]) -> str:
    node = fields.take_optional(key)
    if node is None:
        return "error"
    return choice(node, f"`{key}`", known, Code.UNKNOWN_CHOICE)
