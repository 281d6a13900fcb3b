"""Reading a question to the engine: axes, releases and a target, from one document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from modicum.accounting.budget_reading import cost_delta, read_measured
from modicum.accounting.budgets import (
    ApproxBudget,
    Budget,
    GdpBudget,
    PureBudget,
    RenyiBudget,
    Unlimited,
    ZcdpBudget,
)
from modicum.accounting.curves import NOTHING, Curve, composed
from modicum.accounting.kinds.table import Kind, curve_of_kind, kind_named
from modicum.accounting.mechanisms import (
    declared_gdp,
    declared_pure,
    declared_renyi,
    declared_zcdp,
)
from modicum.accounting.neighborhoods.entries import (
    Entry,
    Native,
    Part,
    Relation,
    RowBound,
    Unit,
    UserPer,
)
from modicum.accounting.neighborhoods.regions import (
    EVERYTHING,
    Allowed,
    Axis,
    Box,
    CategoryAxis,
    NumericAxis,
    Region,
    Span,
    checked,
)
from modicum.accounting.neighborhoods.samples import Draw, on_sample
from modicum.accounting.neighborhoods.target_format import read_target, value_of
from modicum.accounting.neighborhoods.targets import Target
from modicum.core.document import Entries, Items, Node, Scalar
from modicum.core.document import Kind as ScalarKind
from modicum.core.errors import Code
from modicum.core.reading import (
    Fields,
    Problems,
    choice,
    count,
    fail,
    items,
    line,
    nearest,
    number,
    placed,
    probability,
)

FORMAT = "composition/v1"

_TIMES_MAX = 10**9
_DATE = re.compile(r"\d{4}-\d\d(-\d\d)?")


@dataclass(frozen=True, slots=True)
class Question:
    """What an engine is asked.

    Attributes:
        entries: The releases.
        axes: The partitioning attributes.
        target: The neighboring relation.
        delta: The delta to convert to, if one is given.
    """

    entries: tuple[Entry, ...]
    axes: tuple[Axis, ...]
    target: Target
    delta: Fraction | None


def read_question(node: Node) -> Question:
    """Return the question that a document asks.

    Args:
        node: The document, with its places.

    Raises:
        InputError: With every mistake, each with its place.

    Examples:
        >>> from modicum.core.document import from_python
        >>> entry = {"id": "a", "cost": {"rho": 0.5}}
        >>> document = {"format": FORMAT, "entries": [entry], "target": "substitute"}
        >>> read_question(from_python(document)).target
        Substitute()
        >>> read_question(from_python({**document, "entries": [entry, entry]}))
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: two entries are called `a`
    """
    fields = Fields(node, "the document")
    given = line(fields.take("format"), "`format`")
    if given != FORMAT:
        raise fail(
            Code.UNKNOWN_VERSION,
            f"unknown format `{given[:40]}`",
            node,
            help=f"write `format: {FORMAT}`",
        )
    found = Problems()
    axes: dict[str, Axis] = {}
    axes_node = fields.take_optional("axes")
    if axes_node is not None:
        with found.guard():
            axes = _axes(axes_node)
    attributes = _attributes(fields)
    entry_nodes = items(fields.take("entries"), "`entries`")
    read: list[tuple[Entry, Draw | None]] = []
    for entry_node in entry_nodes:
        with found.guard():
            read.append(_entry(entry_node, axes))
    target_node = fields.take("target")
    delta_node = fields.take_optional("delta")
    delta = None if delta_node is None else probability(delta_node, "delta")
    with found.guard():
        fields.finish()
    names = _known_names(read, axes, attributes)
    if attributes is not None:
        with found.guard():
            _check_reads(read, names, node)
    with found.guard():
        target = read_target(target_node, axes, names)
    with found.guard():
        _no_id_twice(read, node)
    found.raise_any()
    with placed(node):
        entries = tuple(_on_samples(read, node))
    return Question(entries, tuple(axes.values()), target, delta)


def _attributes(fields: Fields) -> frozenset[str] | None:
    node = fields.take_optional("attributes")
    if node is None:
        return None
    return frozenset(line(one, "an attribute") for one in items(node, "`attributes`"))


def _known_names(
    read: list[tuple[Entry, Draw | None]],
    axes: Mapping[str, Axis],
    attributes: frozenset[str] | None,
) -> frozenset[str]:
    """Return the attributes that may be named: the listed ones, or those in use."""
    used = [entry.reads or frozenset() for entry, _ in read]
    listed = frozenset().union(*used) if attributes is None else attributes
    return frozenset(axes) | listed


def _check_reads(
    read: list[tuple[Entry, Draw | None]], names: frozenset[str], node: Node
) -> None:
    for entry, _ in read:
        for name in sorted((entry.reads or frozenset()) - names):
            raise fail(
                Code.UNKNOWN_ATTRIBUTE,
                f"`{entry.id}` reads `{name}`, which `attributes` does not list",
                node,
                label=nearest(name, names),
            )


def _no_id_twice(read: list[tuple[Entry, Draw | None]], node: Node) -> None:
    seen: set[str] = set()
    for entry, _ in read:
        if entry.id in seen:
            raise fail(
                Code.DUPLICATE_NAME, f"two entries are called `{entry.id}`", node
            )
        seen.add(entry.id)


def _on_samples(read: list[tuple[Entry, Draw | None]], node: Node) -> list[Entry]:
    """Replace the entries of each draw by one, in the place of the first."""
    draws: dict[str, tuple[Draw, list[Entry]]] = {}
    found: list[Entry | str] = []
    for entry, draw in read:
        if draw is None:
            found.append(entry)
        elif draw.name not in draws:
            draws[draw.name] = draw, [entry]
            found.append(draw.name)
        elif draws[draw.name][0] != draw:
            raise fail(
                Code.KEYS_CONFLICT,
                f"the sample `{draw.name}` has two rates",
                node,
                help="another rate is another sample: give it another name",
            )
        else:
            draws[draw.name][1].append(entry)
    return [
        on_sample(draws[one][1], draws[one][0]) if isinstance(one, str) else one
        for one in found
    ]


# --- axes and regions --------------------------------------------------------------


def _axes(node: Node) -> dict[str, Axis]:
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
            f"{what} is two dates, and dates are not numbers here",
            node,
            help="count days from a first day, such as [0, 365]",
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
        raise fail(Code.OUT_OF_RANGE, f"{what} must rise from first to second", node)
    return Span(low, high)


def _region(node: Node, axes: Mapping[str, Axis]) -> Region:
    boxes = node.items if isinstance(node, Items) else (node,)
    if not boxes:
        raise fail(Code.OUT_OF_RANGE, "`where` names no records at all", node)
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
                f"no axis is called `{key.text}`",
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


# --- entries -----------------------------------------------------------------------


def _entry(node: Node, axes: Mapping[str, Axis]) -> tuple[Entry, Draw | None]:
    fields = Fields(node, "an entry")
    name = line(fields.take("id"), "`id`")
    curve, kind = _curve(fields, node)
    where = fields.take_optional("where")
    reads = fields.take_optional("reads")
    native = fields.take_optional("proven-for")
    stay = fields.take_optional("if-it-stays")
    rows = fields.take_optional("rows")
    sample = fields.take_optional("sample")
    entry = Entry(
        id=name,
        curve=curve,
        region=EVERYTHING if where is None else _region(where, axes),
        reads=None
        if reads is None
        else frozenset(line(one, "an attribute") for one in items(reads, "`reads`")),
        native=Native() if native is None else _native(native, axes),
        stay=None if stay is None else _stay(stay),
        rows=None if rows is None else _rows(rows, axes),
    )
    draw = None if sample is None else _draw(sample)
    if kind is not None:
        _check_relation(kind, entry, native or node, sampled=draw is not None)
    fields.finish()
    return entry, draw


def _check_relation(kind: Kind, entry: Entry, node: Node, *, sampled: bool) -> None:
    """Refuse to take a mechanism as proven for what its own curve does not hold for."""
    relation = entry.native.relation
    if kind.relation == "that of the sensitivity":
        return
    if kind.relation == Relation.ADD_REMOVE.value:
        if relation is not Relation.ADD_REMOVE:
            raise fail(
                Code.KEYS_CONFLICT,
                f"`{kind.name}` holds for add-remove, not for {relation.value}",
                node,
                help="write `relation: add-remove`: the target converts it",
            )
        return
    if sampled or relation is Relation.ADD_REMOVE:
        raise fail(
            Code.KEYS_CONFLICT,
            f"`{kind.name}` holds for {kind.relation}, which is neither add-remove nor"
            " amplified by a sample",
            node,
            help="say in `proven-for` which unit that is, with another `relation`",
        )


def _curve(fields: Fields, node: Node) -> tuple[Curve, Kind | None]:
    cost, mechanism = fields.take_optional("cost"), fields.take_optional("mechanism")
    times_node = fields.take_optional("times")
    if (cost is None) == (mechanism is None):
        raise fail(
            Code.MISSING_KEY if cost is None else Code.KEYS_CONFLICT,
            "an entry has either a `cost` or a `mechanism`",
            node,
        )
    if cost is not None:
        curve, kind = _declared(cost), None
    else:
        curve, kind = _mechanism(mechanism)
    if times_node is None:
        return curve, kind
    times = count(times_node, "`times`", at_least=1, at_most=_TIMES_MAX)
    return composed([(curve, times)]), kind


def _declared(node: Node) -> Curve:
    budget = read_measured(node, "the cost", cost_delta)
    return curve_of_guarantee(budget)


def curve_of_guarantee(budget: Budget) -> Curve:
    """Return the curve of any mechanism with a guarantee.

    Args:
        budget: The guarantee.

    Raises:
        InputError: If it is unlimited.

    Examples:
        >>> curve = curve_of_guarantee(GdpBudget(Fraction(2)))
        >>> curve.mu2, curve.rho
        (Fraction(4, 1), Fraction(2, 1))
        >>> curve_of_guarantee(Unlimited())
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: a cost must be a number
    """
    match budget:
        case PureBudget(eps=eps):
            return declared_pure(eps=eps)
        case ApproxBudget(eps=eps, delta=delta):
            return declared_pure(eps=eps, delta=delta)
        case ZcdpBudget(rho=rho):
            return declared_zcdp(rho=rho)
        case GdpBudget(mu=mu):
            return declared_gdp(mu=mu)
        case RenyiBudget(limits=limits):
            return declared_renyi(dict(limits))
        case Unlimited():
            raise fail(Code.NO_MEASURE, "a cost must be a number")
        case _:
            assert_never(budget)


def _mechanism(node: Node | None) -> tuple[Curve, Kind]:
    assert node is not None
    fields = Fields(node, "a mechanism")
    kind_node = fields.take("kind")
    values = {key.text: number(value, f"`{key.text}`") for key, value in fields.rest()}
    with placed(kind_node):
        kind = kind_named(line(kind_node, "`kind`"))
        return curve_of_kind(kind, values), kind


def _stay(node: Node) -> Curve:
    if isinstance(node, Scalar) and node.text == "nothing":
        return NOTHING
    return _declared(node)


_UNITS: Mapping[str, Unit] = {part.value: part for part in Part}


def _native(node: Node, axes: Mapping[str, Axis]) -> Native:
    fields = Fields(node, "`proven-for`")
    unit_node = fields.take_optional("unit")
    relation_node = fields.take_optional("relation")
    size_node = fields.take_optional("size")
    unit: Unit = Part.ROW
    if isinstance(unit_node, Entries):
        unit = _user_per(unit_node, axes)
    elif unit_node is not None:
        unit = _UNITS[choice(unit_node, "unit", _UNITS, Code.UNKNOWN_CHOICE)]
    relation = Relation.SUBSTITUTE if unit is Part.ATTRIBUTE else Relation.ADD_REMOVE
    if relation_node is not None:
        allowed = _relations(unit)
        relation = Relation(
            choice(relation_node, "relation", allowed, Code.UNKNOWN_CHOICE)
        )
    size = "private"
    if size_node is not None:
        size = choice(size_node, "size", ("private", "public"), Code.UNKNOWN_CHOICE)
    fields.finish()
    return Native(relation, unit, size_public=size == "public")


def _relations(unit: Unit) -> list[str]:
    if unit is Part.ROW:
        return [relation.value for relation in Relation]
    if unit is Part.ATTRIBUTE:
        return [Relation.SUBSTITUTE.value]
    return [Relation.ADD_REMOVE.value, Relation.ANY.value]


def _user_per(node: Node, axes: Mapping[str, Axis]) -> UserPer:
    fields = Fields(node, "a unit")
    axis_node, length_node = fields.take("user-per"), fields.take_optional("length")
    axis = numeric_axis(axis_node, axes)
    length = 1
    if length_node is not None:
        length = count(length_node, "`length`", at_least=1, at_most=10**6)
    fields.finish()
    return UserPer(axis, Fraction(length))


def numeric_axis(node: Node, axes: Mapping[str, Axis]) -> str:
    """Return the name of an axis with numbers.

    Raises:
        InputError: If there is none of that name.

    Examples:
        >>> from modicum.core.document import from_python
        >>> axes = {"day": NumericAxis("day", Span(Fraction(0), Fraction(7)))}
        >>> numeric_axis(from_python("day"), axes)
        'day'
        >>> numeric_axis(from_python("city"), axes)
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: unknown axis with numbers "city"
    """
    known = [name for name, axis in axes.items() if isinstance(axis, NumericAxis)]
    return choice(node, "axis with numbers", known, Code.UNKNOWN_ATTRIBUTE)


def _rows(node: Node, axes: Mapping[str, Axis]) -> RowBound:
    fields = Fields(node, "`rows`")
    most = count(fields.take("at-most"), "`at-most`", at_least=1, at_most=10**6)
    per = fields.take_optional("per")
    unit = None if per is None else _user_per(per, axes)
    fields.finish()
    return RowBound(most, unit)


def _draw(node: Node) -> Draw:
    fields = Fields(node, "`sample`")
    name = line(fields.take("name"), "`name`")
    rate_node = fields.take("rate")
    rate = number(rate_node, "`rate`")
    if not 0 < rate <= 1:
        raise fail(Code.OUT_OF_RANGE, "`rate` must lie in (0, 1]", rate_node)
    fields.finish()
    return Draw(name, rate)
