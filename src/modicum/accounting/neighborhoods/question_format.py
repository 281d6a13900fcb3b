"""Reading entries: releases, their records, and their proven relations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from modicum.accounting.budget_format import cost_delta, read_measured
from modicum.accounting.curves import NOTHING, Curve, composed
from modicum.accounting.mechanisms.declared import curve_of_guarantee
from modicum.accounting.mechanisms.kind import OF_SENSITIVITY, Kind
from modicum.accounting.named_mechanisms import curve_of_kind, kind_named
from modicum.accounting.neighborhoods.entries import (
    Draw,
    Entry,
    Native,
    Part,
    Relation,
    RowBound,
    Unit,
    UserPer,
    on_sample,
)
from modicum.accounting.neighborhoods.region_format import (
    numeric_axis,
    read_axes,
    read_region,
)
from modicum.accounting.neighborhoods.regions import EVERYTHING, Axis
from modicum.accounting.neighborhoods.target import Target
from modicum.accounting.neighborhoods.target_format import read_target
from modicum.core.document import Entries, Node, Scalar
from modicum.core.errors import Code
from modicum.core.reader import (
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
    take_format,
)

_TIMES_MAX = 10**9


def read_entry(node: Node, axes: Mapping[str, Axis]) -> tuple[Entry, Draw | None]:
    """Return an entry of a document, and the sample that it is on.

    Raises:
        InputError: If it makes no sense, with its place.

    Examples:
        >>> from modicum.core.document import from_python
        >>> entry, draw = read_entry(from_python({"id": "a", "cost": {"rho": 0.5}}), {})
        >>> entry.curve.rho, draw
        (Fraction(1, 2), None)
    """
    fields = Fields(node, "an entry")
    name = line(fields.take("id"), "`id`")
    one, kind = _curve(fields, node)
    times = _times(fields)
    where = fields.take_optional("where")
    reads = fields.take_optional("reads")
    native = fields.take_optional("proven-for")
    stay = fields.take_optional("if-it-stays")
    rows = fields.take_optional("rows")
    sample = fields.take_optional("sample")
    entry = Entry(
        id=name,
        curve=composed([(one, times)]) if times > 1 else one,
        region=EVERYTHING if where is None else read_region(where, axes),
        reads=None
        if reads is None
        else frozenset(line(one, "an attribute") for one in items(reads, "`reads`")),
        native=Native() if native is None else _native(native, axes),
        stay=None if stay is None else composed([(_stay(stay), times)]),
        rows=None if rows is None else _rows(rows, axes),
    )
    draw = None if sample is None else _draw(sample)
    if kind is not None:
        _check_relation(kind, entry, native or node, sampled=draw is not None)
    fields.finish()
    return entry, draw


def _check_relation(kind: Kind, entry: Entry, node: Node, *, sampled: bool) -> None:
    """Refuse to treat a mechanism as proven for what its curve does not cover."""
    relation = entry.native.relation
    if kind.relation == OF_SENSITIVITY:
        return
    if kind.relation == Relation.ADD_REMOVE.value:
        if relation is not Relation.ADD_REMOVE:
            raise fail(
                Code.KEYS_CONFLICT,
                f"`{kind.name}` is valid for add-remove, not for {relation.value}",
                node,
                help="write `relation: add-remove`: the target converts it",
            )
        return
    if sampled or relation in {Relation.ADD_REMOVE, Relation.METRIC}:
        raise fail(
            Code.KEYS_CONFLICT,
            f"`{kind.name}` is valid for {kind.relation}, which is neither add-remove"
            " nor"
            " amplified by a sample",
            node,
            help="name that unit in `proven-for`, with another `relation`",
        )


def _curve(fields: Fields, node: Node) -> tuple[Curve, Kind | None]:
    cost, mechanism = fields.take_optional("cost"), fields.take_optional("mechanism")
    if (cost is None) == (mechanism is None):
        raise fail(
            Code.MISSING_KEY if cost is None else Code.KEYS_CONFLICT,
            "an entry has either `cost` or `mechanism`",
            node,
        )
    if cost is not None:
        return _declared(cost), None
    return _mechanism(mechanism)


def _times(fields: Fields) -> int:
    node = fields.take_optional("times")
    if node is None:
        return 1
    return count(node, "`times`", at_least=1, at_most=_TIMES_MAX)


def _declared(node: Node) -> Curve:
    budget = read_measured(node, "the cost", cost_delta)
    return curve_of_guarantee(budget)


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
        raise fail(Code.OUT_OF_RANGE, "`rate` must be in (0, 1]", rate_node)
    fields.finish()
    return Draw(name, rate)


FORMAT = "composition/v1"


@dataclass(frozen=True, slots=True)
class Question:
    """A question for an engine.

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
    """Return the question in a document.

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
        modicum.core.errors.InputError: two entries are named `a`
    """
    fields = Fields(node, "the document")
    take_format(fields, FORMAT)
    found = Problems()
    axes: dict[str, Axis] = {}
    axes_node = fields.take_optional("axes")
    if axes_node is not None:
        with found.guard():
            axes = read_axes(axes_node)
    attributes = _attributes(fields)
    entry_nodes = items(fields.take("entries"), "`entries`")
    read: list[tuple[Entry, Draw | None]] = []
    for entry_node in entry_nodes:
        with found.guard():
            read.append(read_entry(entry_node, axes))
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
            raise fail(Code.DUPLICATE_NAME, f"two entries are named `{entry.id}`", node)
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
                help="give a sample with another rate another name",
            )
        else:
            draws[draw.name][1].append(entry)
    return [
        on_sample(draws[one][1], draws[one][0]) if isinstance(one, str) else one
        for one in found
    ]
