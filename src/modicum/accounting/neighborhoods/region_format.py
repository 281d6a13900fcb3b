"""Reading axes, and regions as boxes over them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from modicum.accounting.neighborhoods.regions import (
    Allowed,
    Axis,
    Box,
    CategoryAxis,
    NumericAxis,
    Region,
    Span,
    checked,
)
from modicum.core.document import Entries, Items, Node, Scalar
from modicum.core.document import Kind as ScalarKind
from modicum.core.errors import Code
from modicum.core.reader import choice, fail, items, line, number, placed

_DATE = re.compile(r"\d{4}-\d\d(-\d\d)?")


def read_axes(node: Node) -> dict[str, Axis]:
    """Return the axes of a document by name.

    Raises:
        InputError: If one has no values, or is neither numbers nor texts.

    Examples:
        >>> from modicum.core.document import from_python
        >>> read_axes(from_python({"day": [0, 7], "area": ["n", "s"]}))["area"].values
        ('n', 's')
    """
    if not isinstance(node, Entries):
        raise fail(Code.WRONG_TYPE, "`axes` must map names to values", node)
    found: dict[str, Axis] = {}
    for key, values in node.entries:
        what = f"the axis `{key.text}`"
        parts = items(values, what)
        if _are_numbers(parts):
            found[key.text] = NumericAxis(key.text, _span(values, what))
        else:
            found[key.text] = CategoryAxis(key.text, _values(values, what))
    return found


def _values(node: Node, what: str) -> tuple[str, ...]:
    found = tuple(line(part, f"a value of {what}") for part in items(node, what))
    if not found:
        raise fail(Code.MISSING_KEY, f"{what} has no values", node)
    if len(set(found)) < len(found):
        raise fail(Code.DUPLICATE_NAME, f"{what} has a value twice", node)
    if len(found) == 2 and all(_DATE.fullmatch(value) for value in found):
        raise fail(
            Code.NOT_A_NUMBER,
            f"{what} is two dates, not two numbers",
            node,
            help="count days from the first day, such as [0, 365]",
        )
    return found


def _are_numbers(parts: tuple[Node, ...]) -> bool:
    return bool(parts) and all(
        isinstance(part, Scalar) and part.kind is ScalarKind.NUMBER for part in parts
    )


def _span(node: Node, what: str) -> Span:
    parts = items(node, what)
    if len(parts) != 2:
        raise fail(
            Code.WRONG_TYPE,
            f"{what} must be two numbers, [from, up to but not including]",
            node,
        )
    low, high = (number(part, what) for part in parts)
    if low >= high:
        raise fail(Code.OUT_OF_RANGE, f"{what} must be increasing", node)
    return Span(low, high)


def read_region(node: Node, axes: Mapping[str, Axis]) -> Region:
    """Return the region of a box, or of a list of boxes.

    Raises:
        InputError: If it names no records, or leaves its axes.

    Examples:
        >>> from modicum.core.document import from_python
        >>> axes = read_axes(from_python({"day": [0, 7]}))
        >>> read_region(from_python({"day": [2, 9]}), axes)
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: the span [2, 9) of `day` exceeds its axis [0, 7)
    """
    boxes = node.items if isinstance(node, Items) else (node,)
    if not boxes:
        raise fail(Code.OUT_OF_RANGE, "`where` matches no records", node)
    region = tuple(_box(box, axes) for box in boxes)
    with placed(node):
        return checked(region, axes)


def _box(node: Node, axes: Mapping[str, Axis]) -> Box:
    if not isinstance(node, Entries):
        raise fail(Code.WRONG_TYPE, "a box must map axes to what it allows", node)
    box: dict[str, Allowed] = {}
    for key, side in node.entries:
        axis = axes.get(key.text)
        if axis is None:
            raise fail(
                Code.UNKNOWN_ATTRIBUTE,
                f"unknown axis `{key.text}`",
                key,
                help="known: " + (", ".join(axes) or "none"),
            )
        if isinstance(axis, NumericAxis):
            box[axis.name] = _span(side, f"`{axis.name}`")
        else:
            values = side.items if isinstance(side, Items) else (side,)
            if not values:
                raise fail(Code.OUT_OF_RANGE, f"no value of `{axis.name}`", side)
            box[axis.name] = frozenset(value_of(axis, one) for one in values)
    return box


def numeric_axis(node: Node, axes: Mapping[str, Axis]) -> str:
    """Return the name of an axis with numbers.

    Raises:
        InputError: If there is none of that name.

    Examples:
        >>> from modicum.core.document import from_python
        >>> axes = read_axes(from_python({"day": [0, 7]}))
        >>> numeric_axis(from_python("day"), axes)
        'day'
        >>> numeric_axis(from_python("city"), axes)
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: unknown axis with numbers "city"
    """
    known = [name for name, axis in axes.items() if isinstance(axis, NumericAxis)]
    return choice(node, "axis with numbers", known, Code.UNKNOWN_ATTRIBUTE)


def value_of(axis: CategoryAxis, node: Node) -> str:
    """Return one of the values of an axis.

    Raises:
        InputError: If it is none of them.

    Examples:
        >>> from modicum.core.document import from_python
        >>> axis = CategoryAxis("city", ("Basel", "Bern"))
        >>> value_of(axis, from_python("Bern"))
        'Bern'
        >>> value_of(axis, from_python("Paris"))
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: unknown value of `city` "Paris"
    """
    what = f"value of `{axis.name}`"
    return choice(node, what, axis.values, Code.UNKNOWN_CHOICE)
