"""What is computed of the answers of a query, after the noise: it costs nothing.

Values are exact, in SQL's logic of three values. Beside each value stands what is known
of the true one, which the query would have without noise: that it is the same, or that
it lies between two numbers if those of all aggregates do, or nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, Final, TypeAlias

from msgspec import Struct

from modicum.query.averages import root_above, root_below
from modicum.query.expressions.function import Plain, value_of
from modicum.query.expressions.table import FUNCTIONS
from modicum.query.model import (
    AllOf,
    AnyOf,
    Call,
    Expression,
    IsNull,
    Literal,
    Not,
    Order,
    Query,
    Released,
    Window,
)


class Cell(Struct, frozen=True, gc=False):
    """A value that is computed of answers, and what is known of the true one.

    Attributes:
        value: The value; None for NULL.
        low: The true one is a number and not less; None if that is unknown.
        high: Nor is it more.
        sure: Whether the true one is the same, because no noise is in it.
    """

    value: Plain
    low: Fraction | None = None
    high: Fraction | None = None
    sure: bool = False


#: A value of each group, in their order.
Column: TypeAlias = Sequence[Cell]

UNKNOWN: Final = Cell(None)


def sure(value: Plain) -> Cell:
    """Return a value without noise: a key, or one that is written in the query."""
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        number = Fraction(value)
        return Cell(number, number, number, sure=True)
    return Cell(value, sure=True)


def parts_of(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all expressions within it."""
    yield expression
    for one in _inner(expression):
        yield from parts_of(one)


def released_in(expression: Expression, names: Collection[str]) -> dict[str, bool]:
    """Return which aggregates are in an expression, and whether in a window.

    Args:
        expression: The expression.
        names: The names of the aggregates.
    """
    parts = [*parts_of(expression)]
    windows = [one for one in parts if isinstance(one, Window)]
    inside = {
        one.name
        for window in windows
        for one in parts_of(window)
        if isinstance(one, Released)
    }
    every = [one.name for one in parts if isinstance(one, Released)]
    return {name: name in inside for name in dict.fromkeys(every) if name in names}


def aggregates_in_having(query: Query) -> dict[str, bool]:
    """Return the aggregates that decide which groups are kept, as `released_in`."""
    names = {one.name for one in query.aggregates}
    return {} if query.having is None else released_in(query.having, names)


def chosen_by_noise(query: Query) -> bool:
    """Return whether noisy numbers decide which groups are shown."""
    names = {one.name for one in query.aggregates}
    cut = query.offset or query.limit is not None
    ordered = any(released_in(one.value, names) for one in query.order)
    return bool(aggregates_in_having(query) or (cut and ordered))


def _inner(expression: Expression) -> tuple[Expression, ...]:
    match expression:
        case Call(arguments=parts) | AllOf(parts=parts) | AnyOf(parts=parts):
            return parts
        case IsNull(value=inner) | Not(inner=inner):
            return (inner,)
        case Window(value=value, partition=partition, order=order):
            values = () if value is None else (value,)
            return (*values, *partition, *(one.value for one in order))
        case _:
            return ()


def column_of(
    expression: Expression, known: Mapping[str, Column], groups: Sequence[int]
) -> list[Cell]:
    """Return an expression's values.

    Args:
        expression: The expression, of keys and aggregates.
        known: The values of these by name, for all groups.
        groups: The numbers of the groups that it is computed for; windows look at
            these only.
    """
    match expression:
        case Released(name=name):
            column = known[name]
            return [column[group] for group in groups]
        case Literal(value=value):
            return [sure(value)] * len(groups)
        case Window():
            return _over(expression, known, groups)
        case _:
            pass
    parts = [column_of(one, known, groups) for one in _inner(expression)]
    computed = _operation(expression)
    return [computed(*cells) for cells in zip(*parts, strict=True)]


def shown_groups(
    query: Query, known: Mapping[str, Column], number: int
) -> tuple[list[int], list[int]]:
    """Return the groups that HAVING keeps, and those of them that are shown, in order.

    Groups that are equal in the order are ordered by their keys, so that all of it
    follows from what is released.

    Args:
        query: The query.
        known: The values of keys and aggregates by name, for all groups.
        number: How many groups there are.
    """
    kept = list(range(number))
    if query.having is not None:
        holds = column_of(query.having, known, kept)
        kept = [group for group, one in zip(kept, holds, strict=True) if one.value]
    if query.limit is None and not query.offset and not query.order:
        return kept, kept
    by_keys = (Order(Released(key.name)) for key in query.keys)
    places = list(range(len(kept)))
    for one in reversed((*query.order, *by_keys)):
        places = _sorted(places, column_of(one.value, known, kept), one)
    end = None if query.limit is None else query.offset + query.limit
    return kept, [kept[place] for place in places[query.offset : end]]


def _sorted(places: Iterable[int], cells: Column, order: Order) -> list[int]:
    """Return places by their cells; equal ones stay as they are."""
    given: list[int] = []
    nulls: list[int] = []
    for place in places:
        (nulls if cells[place].value is None else given).append(place)

    def value(place: int) -> Any:
        return cells[place].value

    given.sort(key=value, reverse=order.descending)
    return nulls + given if order.nulls_first else given + nulls


# --- operations on cells --------------------------------------------------------------

_Operation: TypeAlias = Callable[..., Cell]
#: Ranges of some numbers in, the ends of the result out; None if there is none.
_Ends: TypeAlias = Callable[..., tuple[Fraction, Fraction] | None]
_Pair: TypeAlias = tuple[Fraction, Fraction]


def _operation(expression: Expression) -> _Operation:
    match expression:
        case Call(function=name):
            return _OPERATIONS[name]
        case IsNull():
            return _is_null
        case Not():
            return _not
        case AllOf():
            return lambda *parts: _joined(parts, decisive=False)
        case AnyOf():
            return lambda *parts: _joined(parts, decisive=True)
        case _:  # The parser makes no other ones of answers.
            raise AssertionError(expression)


def _ends(cell: Cell) -> _Pair | None:
    return None if cell.low is None or cell.high is None else (cell.low, cell.high)


def _numeric(
    meant: Callable[..., Any], ends: _Ends, *, exact: bool = True
) -> _Operation:
    """Return a function of numbers that is NULL if one of them is."""

    def computed(*cells: Cell) -> Cell:
        values = [one.value for one in cells]
        if None in values:
            surely = any(one.sure and one.value is None for one in cells)
            return Cell(None, sure=surely)
        value = meant(*values)
        if exact and all(one.sure for one in cells):
            return sure(value)
        ranges = [_ends(one) for one in cells]
        found = None if value is None or None in ranges else ends(*ranges)
        return Cell(value) if found is None else Cell(value, *found)

    return computed


def _rising(function: Callable[..., Any]) -> _Operation:
    """Return a function that does not fall in its first argument; others are sure."""

    def ends(one: _Pair, *more: _Pair) -> _Pair | None:
        if any(low != high for low, high in more):
            return None
        fixed = [low for low, _ in more]
        low, high = (Fraction(function(end, *fixed)) for end in one)
        return low, high

    return _numeric(lambda *values: Fraction(function(*values)), ends)


def _corners(function: Callable[[Fraction, Fraction], Fraction]) -> _Ends:
    """Return the ends of a function that is monotone in each of two arguments."""

    def ends(one: _Pair, other: _Pair) -> _Pair:
        found = [function(left, right) for left, right in product(one, other)]
        return min(found), max(found)

    return ends


def _quotient(one: Fraction, other: Fraction) -> Fraction | None:
    return None if other == 0 else one / other


def _quotient_ends(one: _Pair, other: _Pair) -> _Pair | None:
    if other[0] <= 0 <= other[1]:
        return None
    return _corners(operator.truediv)(one, other)


def _size_ends(one: _Pair) -> _Pair:
    low, high = abs(one[0]), abs(one[1])
    least = Fraction(0) if one[0] <= 0 <= one[1] else min(low, high)
    return least, max(low, high)


def _square_root(one: Fraction) -> Fraction | None:
    return None if one < 0 else root_below(one)


def _square_root_ends(one: _Pair) -> _Pair | None:
    return None if one[0] < 0 else (root_below(one[0]), root_above(one[1]))


def _chosen(of: Callable[..., Any]) -> _Operation:
    """Return LEAST or GREATEST, which look at those that are not NULL."""

    def computed(*cells: Cell) -> Cell:
        known = [one for one in cells if one.value is not None]
        if not known or any(one.value is None and not one.sure for one in cells):
            value = of(one.value for one in known) if known else None
            return Cell(value, sure=all(one.sure for one in cells))
        value = of(one.value for one in known)
        if all(one.sure for one in known):
            return sure(value)
        ranges = [_ends(one) for one in known]
        if None in ranges:
            return Cell(value)
        low, high = (of(ends) for ends in zip(*filter(None, ranges), strict=True))
        return Cell(value, low, high)

    return computed


def _coalesce(*cells: Cell) -> Cell:
    for place, one in enumerate(cells):
        if one.value is None and one.sure:
            continue
        if one.value is not None:
            return one
        later = (each.value for each in cells[place + 1 :])
        return Cell(next((each for each in later if each is not None), None))
    return Cell(None, sure=True)


def _nullif(one: Cell, other: Cell) -> Cell:
    same = _COMPARED["="](one, other)
    if same.value is True:
        return Cell(None, sure=same.sure)
    return one if same.sure else Cell(one.value)


def _case(*cells: Cell) -> Cell:
    certain = True
    for condition, value in zip(cells[:-1:2], cells[1::2], strict=True):
        certain = certain and condition.sure
        if condition.value is True:
            return value if certain else Cell(value.value)
    return cells[-1] if certain else Cell(cells[-1].value)


# --- conditions -----------------------------------------------------------------------


def _comparison(name: str) -> _Operation:
    meant: Callable[[Any, Any], bool] = FUNCTIONS[name].meant

    def computed(one: Cell, other: Cell) -> Cell:
        if one.value is None or other.value is None:
            surely = any(cell.sure and cell.value is None for cell in (one, other))
            return Cell(None, sure=surely)
        value = meant(one.value, other.value)
        if one.sure and other.sure:
            return Cell(value, sure=True)
        first, second = _ends(one), _ends(other)
        if first is None or second is None:
            return Cell(value)
        apart = first[1] < second[0] or second[1] < first[0]
        outcomes = {meant(left, right) for left, right in product(first, second)}
        ordered = name not in ("=", "<>") and len(outcomes) == 1
        return Cell(value, sure=(apart or ordered) and outcomes == {value})

    return computed


_COMPARED: Final[Mapping[str, _Operation]] = {
    name: _comparison(name) for name in ("=", "<>", "<", "<=", ">", ">=")
}


def _is_null(one: Cell) -> Cell:
    return Cell(one.value is None, sure=one.sure or one.low is not None)


def _not(one: Cell) -> Cell:
    return Cell(None if one.value is None else not one.value, sure=one.sure)


def _joined(parts: Sequence[Cell], *, decisive: bool) -> Cell:
    """Return AND, which one false part decides, or OR, which a true one does."""
    values = [one.value for one in parts]
    if decisive in values:
        surely = any(one.sure and one.value is decisive for one in parts)
        return Cell(decisive, sure=surely)
    value = None if None in values else not decisive
    return Cell(value, sure=all(one.sure for one in parts))


def _between(one: Cell, low: Cell, high: Cell) -> Cell:
    both = _COMPARED[">="](one, low), _COMPARED["<="](one, high)
    return _joined(both, decisive=False)


def _among(one: Cell, *others: Cell) -> Cell:
    return _joined([_COMPARED["="](one, each) for each in others], decisive=True)


def _plainly(name: str) -> _Operation:
    """Return a function of which no more is known than its value."""
    function = FUNCTIONS[name]

    def computed(*cells: Cell) -> Cell:
        value = value_of(function, tuple(one.value for one in cells))
        return Cell(value, sure=all(one.sure for one in cells))

    return computed


_OPERATIONS: Final[Mapping[str, _Operation]] = {
    "plus": _numeric(operator.add, _corners(operator.add)),
    "minus": _numeric(operator.sub, _corners(operator.sub)),
    "times": _numeric(operator.mul, _corners(operator.mul)),
    "ratio": _numeric(_quotient, _quotient_ends),
    "negative": _numeric(operator.neg, lambda one: (-one[1], -one[0])),
    "abs": _numeric(abs, _size_ends),
    "sqrt": _numeric(_square_root, _square_root_ends, exact=False),
    **{
        name: _rising(FUNCTIONS[name].meant)
        for name in ("floor", "ceil", "round", "sign")
    },
    "least": _chosen(min),
    "greatest": _chosen(max),
    "coalesce": _coalesce,
    "nullif": _nullif,
    "case": _case,
    **_COMPARED,
    "between": _between,
    "in": _among,
    "same": _plainly("same"),
}  # fmt: skip
#: The functions that are read in what is computed of answers.
READ: Final = frozenset(_OPERATIONS)


# --- windows --------------------------------------------------------------------------


def _over(
    window: Window, known: Mapping[str, Column], groups: Sequence[int]
) -> list[Cell]:
    values = None
    if window.value is not None:
        values = column_of(window.value, known, groups)
    partitions = [column_of(one, known, groups) for one in window.partition]
    orders = [column_of(one.value, known, groups) for one in window.order]
    by_group: dict[tuple[Plain, ...], list[int]] = {}
    for place in range(len(groups)):
        by_group.setdefault(_values(partitions, place), []).append(place)
    certain = all(one.sure for cells in (*partitions, *orders) for one in cells)
    found = [UNKNOWN] * len(groups)
    for places in by_group.values():
        in_order = places
        for cells, one in reversed([*zip(orders, window.order, strict=True)]):
            in_order = _sorted(in_order, cells, one)
        equals = _equals(in_order, orders)
        for place, cell in _WINDOWS[window.function](values, in_order, equals):
            found[place] = cell if certain else Cell(cell.value)
    return found


def _values(columns: Iterable[Column], place: int) -> tuple[Plain, ...]:
    return tuple(cells[place].value for cells in columns)


def _equals(places: Sequence[int], orders: Sequence[Column]) -> list[list[int]]:
    """Return places in runs of equal order; without an order, all are equal."""
    runs = [[places[0]]]
    for before, place in pairwise(places):
        if _values(orders, before) == _values(orders, place):
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


_Runs: TypeAlias = Sequence[Sequence[int]]
_Placed: TypeAlias = Iterator[tuple[int, Cell]]


def _sums(values: Column, _places: Sequence[int], equals: _Runs) -> _Placed:
    """Yield sums of all up to each group, and of its equals; NULLs do not count."""
    total, bounded, some = sure(0), True, False
    for run in equals:
        for cell in (values[place] for place in run):
            if cell.value is None:
                bounded = bounded and cell.sure
                continue
            some, bounded = True, bounded and cell.low is not None
            total = _OPERATIONS["plus"](total, cell)
        shown = total if bounded else Cell(total.value)
        for place in run:
            yield place, shown if some else Cell(None, sure=bounded)


def _ranks(_values: object, _places: Sequence[int], equals: _Runs) -> _Placed:
    before = 0
    for run in equals:
        for place in run:
            yield place, sure(before + 1)
        before += len(run)


def _numbers(_values: object, places: Sequence[int], _equals: _Runs) -> _Placed:
    for number, place in enumerate(places, start=1):
        yield place, sure(number)


def _shifted(by: int) -> Callable[[Column, Sequence[int], _Runs], _Placed]:
    def shifted(values: Column, places: Sequence[int], _equals: _Runs) -> _Placed:
        for number, place in enumerate(places):
            other = number + by
            inside = 0 <= other < len(places)
            yield place, values[places[other]] if inside else sure(None)

    return shifted


_WINDOWS: Final[Mapping[str, Callable[..., _Placed]]] = {
    "sum": _sums,
    "rank": _ranks,
    "row_number": _numbers,
    "lag": _shifted(-1),
    "lead": _shifted(1),
}
