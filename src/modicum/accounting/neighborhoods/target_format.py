"""Reading a target: the neighbors of a joint loss."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction

from modicum.accounting.neighborhoods.entries import Relation
from modicum.accounting.neighborhoods.region_format import numeric_axis, value_of
from modicum.accounting.neighborhoods.regions import (
    Axis,
    CategoryAxis,
    NumericAxis,
    Span,
)
from modicum.accounting.neighborhoods.target import (
    AddRemove,
    Attributes,
    Group,
    Metric,
    Point,
    Substitute,
    Target,
    Users,
)
from modicum.core.document import Entries, Node, Scalar
from modicum.core.errors import Code
from modicum.core.reader import (
    Fields,
    choice,
    count,
    fail,
    items,
    line,
    nearest,
    number,
    positive,
)

_SIMPLE: Mapping[str, AddRemove | Substitute] = {
    "add-remove": AddRemove(),
    "substitute": Substitute(),
}
_FORMS = ("attributes", "label", "group", "user", "metric")
_DAYS_MAX = 1000
_LENGTH_MAX = 10**6
_WINDOWS_MAX = 4000
_POINTS_MAX = 200


def read_target(
    node: Node, axes: Mapping[str, Axis], attributes: Collection[str]
) -> Target:
    """Return the target of a document.

    Raises:
        InputError: If it is none of the known forms.

    Examples:
        >>> from modicum.core.document import from_python
        >>> read_target(from_python({"group": 3}), {}, [])
        Group(size=3, of=AddRemove())
        >>> read_target(from_python({"label": "sx"}), {}, ["sex"])
        Traceback (most recent call last):
            ...
        modicum.core.errors.InputError: no axis and no `reads` contains `sx`
    """
    if isinstance(node, Scalar):
        return _SIMPLE[choice(node, "target", _SIMPLE, Code.UNKNOWN_CHOICE)]
    fields = Fields(node, "`target`")
    forms = [form for form in _FORMS if form in fields]
    if len(forms) != 1:
        raise fail(
            Code.KEYS_CONFLICT if forms else Code.MISSING_KEY,
            "a target has exactly one form",
            node,
            help="write add-remove, substitute, or one of "
            + ", ".join(f"{{{form}: …}}" for form in _FORMS),
        )
    target = _form(forms[0], fields, axes, attributes)
    fields.finish()
    return target


def _form(
    form: str, fields: Fields, axes: Mapping[str, Axis], attributes: Collection[str]
) -> Target:
    inner = fields.take(form)
    if form == "attributes":
        at_most = count(inner, "`attributes`", at_least=1, at_most=1000)
        among = fields.take_optional("among")
        if among is None:
            return Attributes(at_most)
        chosen = items(among, "`among`")
        return Attributes(at_most, frozenset(_name(one, attributes) for one in chosen))
    if form == "label":
        return Attributes(1, frozenset({_name(inner, attributes)}))
    if form == "group":
        size = count(inner, "`group`", at_least=1, at_most=100)
        of = fields.take_optional("of")
        kind = (
            "add-remove"
            if of is None
            else choice(of, "`of`", _SIMPLE, Code.UNKNOWN_CHOICE)
        )
        return Group(size, _SIMPLE[kind])
    return _users(inner, axes) if form == "user" else _metric(inner, axes)


def _name(node: Node, attributes: Collection[str]) -> str:
    """Return a known attribute: a misspelled one would cost nothing."""
    name = line(node, "an attribute")
    if name not in attributes:
        raise fail(
            Code.UNKNOWN_ATTRIBUTE,
            f"no axis and no `reads` contains `{name}`",
            node,
            label=nearest(name, attributes),
            help="list every attribute of the data under `attributes`",
        )
    return name


# --- users -------------------------------------------------------------------------


def _users(node: Node, axes: Mapping[str, Axis]) -> Users:
    if isinstance(node, Scalar):
        choice(node, "target `user`", ("ever",), Code.UNKNOWN_CHOICE)
        return Users()
    fields = Fields(node, "`user`")
    along_node = fields.take_optional("along")
    window, sliding = fields.take_optional("window"), fields.take_optional("sliding")
    at_most, fixed = fields.take_optional("at-most"), fields.take_optional("fixed")
    change = fields.take_optional("change")
    along = None
    if along_node is not None:
        along = numeric_axis(along_node, axes)
    elif window is not None or sliding is not None or at_most is not None:
        raise fail(Code.MISSING_KEY, "windows and bounds need the key `along`", node)
    fields.finish()
    others = [name for name in axes if name != along]
    kinds = [Relation.ADD_REMOVE.value, Relation.ANY.value]
    return Users(
        along=along,
        windows=_windows(axes, along, window, sliding),
        at_most=None
        if at_most is None
        else count(at_most, "`at-most`", at_least=1, at_most=_DAYS_MAX),
        change=Relation.ADD_REMOVE
        if change is None
        else Relation(choice(change, "change", kinds, Code.UNKNOWN_CHOICE)),
        fixed=frozenset()
        if fixed is None
        else frozenset(
            choice(one, "axis", others, Code.UNKNOWN_ATTRIBUTE)
            for one in items(fixed, "`fixed`")
        ),
    )


def _windows(
    axes: Mapping[str, Axis],
    along: str | None,
    window: Node | None,
    sliding: Node | None,
) -> tuple[Span, ...] | None:
    """Return fixed windows one after the other, or one at every whole number."""
    node = window if window is not None else sliding
    if along is None or node is None:
        return None
    if window is not None and sliding is not None:
        raise fail(Code.KEYS_CONFLICT, "either `window` or `sliding`", sliding)
    axis = axes[along]
    assert isinstance(axis, NumericAxis)
    length = count(node, "the window", at_least=1, at_most=_LENGTH_MAX)
    step = length if window is not None else 1
    low, high = axis.span.low // 1, -(-axis.span.high // 1)
    # Fixed windows begin at multiples of their length, as blocks of entries do.
    starts = range(low // step * step, high, step)
    if len(starts) > _WINDOWS_MAX:
        raise fail(Code.TOO_LARGE, f"more than {_WINDOWS_MAX} windows", node)
    return tuple(Span(Fraction(start), Fraction(start + length)) for start in starts)


# --- metrics -----------------------------------------------------------------------


def _metric(node: Node, axes: Mapping[str, Axis]) -> Metric:
    fields = Fields(node, "`metric`")
    weights_node, points_node = fields.take("weights"), fields.take("points")
    within_node = fields.take_optional("within")
    fields.finish()
    if not isinstance(weights_node, Entries):
        raise fail(Code.WRONG_TYPE, "`weights` must map axes to numbers", weights_node)
    weights = {
        choice(key, "axis", axes, Code.UNKNOWN_ATTRIBUTE): positive(value, "a weight")
        for key, value in weights_node.entries
    }
    nodes = items(points_node, "`points`")
    if len(nodes) > _POINTS_MAX:
        raise fail(Code.TOO_LARGE, f"more than {_POINTS_MAX} points", points_node)
    return Metric(
        points=tuple(_point(one, axes) for one in nodes),
        distance=_weighted(weights),
        within=None if within_node is None else positive(within_node, "`within`"),
    )


class _weighted:  # noqa: N801 - used as a function
    """The sum over axes of weight times difference; infinite on other axes."""

    def __init__(self, weights: Mapping[str, Fraction]) -> None:
        self._weights = weights

    def __call__(self, a: Point, b: Point) -> Fraction | None:
        total = Fraction(0)
        for name, value in a.items():
            other = b[name]
            if value == other:
                continue
            if name not in self._weights:
                return None
            if isinstance(value, Fraction) and isinstance(other, Fraction):
                total += self._weights[name] * abs(value - other)
            else:
                total += self._weights[name]
        return total


def _point(node: Node, axes: Mapping[str, Axis]) -> Point:
    fields = Fields(node, "a point")
    point: dict[str, Fraction | str] = {}
    for name, axis in axes.items():
        value = fields.take(name)
        if isinstance(axis, CategoryAxis):
            point[name] = value_of(axis, value)
        else:
            place = number(value, f"`{name}`")
            if not axis.span.low <= place < axis.span.high:
                raise fail(Code.OUT_OF_RANGE, f"`{name}` is outside its axis", value)
            point[name] = place
    fields.finish()
    return point
