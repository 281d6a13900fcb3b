"""The first half of a policy: the names that everything else refers to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from modicum.accounting import (
    FILTERS,
    ApproxBudget,
    Budget,
    GdpBudget,
    PureBudget,
    ZcdpBudget,
)
from modicum.accounting.budget_reading import limit_delta
from modicum.core.document import Items, Node, Scalar, describe
from modicum.core.errors import Code, Mark
from modicum.core.reading import (
    Fields,
    Problems,
    choice,
    fail,
    items,
    name,
    nearest,
    text,
)
from modicum.policy.declarations.units import read_relation, read_units
from modicum.policy.model import (
    Attribute,
    Level,
)
from modicum.release import Label, Relation, Unit, Vocabulary

#: `accountant` is the older word for the filter; what each one means.
_ACCOUNTANTS = MappingProxyType(
    {"rdp": "combined-v1", "zcdp": "zcdp-v1", "basic": "basic-v1"}
)

#: Names that a label may not have: they are keys of a release or a mechanism.
_RESERVED = frozenset(
    {
        *("release", "id", "m", "name", "mechanism", "mechanisms", "attributes"),
        *("sensitivity", "contribution_bound", "public_frame", "cost", "unit"),
        *("scale", "sigma", "truth", "values", "noise", "sampling"),
        *("where", "periods", "released_on", "evidence", "labeled_by"),
    }
)


@dataclass(frozen=True, slots=True)
class Header:
    """The `dp` block.

    Attributes:
        filter_name: The privacy filter of (eps, delta) budgets.
        bare: What a bare number means as a budget; None if nothing was declared.
        bare_delta: The delta that it means, if it means one.
        neighbors: The neighboring relation of units that state none.
    """

    filter_name: str
    bare: Callable[[Fraction], Budget] | None
    bare_delta: Fraction | None
    neighbors: Relation = "add-remove"


@dataclass(frozen=True, slots=True)
class Declarations:
    """Everything that the rest of a policy refers to."""

    name: str
    header: Header
    vocabulary: Vocabulary
    attributes: dict[str, Attribute]
    categories: dict[str, str]
    label_marks: dict[str, Mark | None]


def read_declarations(fields: Fields) -> Declarations:
    """Take the declarations from a policy's keys.

    Raises:
        InputError: With every mistake found.
    """
    found = Problems()
    own_name = "?"
    with found.guard():
        own_name = name(fields.take("name"), "the policy's name")
    header = Header("combined-v1", None, None)
    with found.guard():
        header = _header(fields.take_optional("dp"))
    units: dict[str, Unit] = {}
    with found.guard():
        units = read_units(fields.take("units"), header.neighbors)
    labels: dict[str, Label] = {}
    label_marks: dict[str, Mark | None] = {}
    with found.guard():
        labels, label_marks = _labels(fields.take_optional("labels"))
    attributes: dict[str, Attribute] = {}
    categories: dict[str, str] = {}
    with found.guard():
        attributes, categories = _schema(fields.take("schema"))
    found.raise_any()
    vocabulary = Vocabulary(
        frozenset(attributes), labels, tuple(units), header.neighbors, units
    )
    return Declarations(
        own_name, header, vocabulary, attributes, categories, label_marks
    )


def _header(node: Node | None) -> Header:
    if node is None:
        return Header("combined-v1", None, None)
    fields = Fields(node, "`dp`")
    stated = fields.take_optional("neighbors")
    neighbors: Relation = "add-remove"
    if stated is not None:
        neighbors = read_relation(stated)
    filter_name = _filter(fields)
    bare_node = fields.take_optional("bare_budget")
    bare: Callable[[Fraction], Budget] | None = None
    delta: Fraction | None = None
    if bare_node is not None:
        bare, delta = _bare_budget(bare_node)
    fields.finish()
    return Header(filter_name, bare, delta, neighbors)


def _filter(fields: Fields) -> str:
    chosen = fields.take_optional("filter")
    accountant = fields.take_optional("accountant")
    if chosen is not None and accountant is not None:
        raise fail(
            Code.KEYS_CONFLICT,
            "`filter` and `accountant` say the same thing; give one",
            accountant,
        )
    if chosen is not None:
        return choice(chosen, "filter", FILTERS, Code.UNKNOWN_CHOICE)
    if accountant is None:
        return "combined-v1"
    known = (*_ACCOUNTANTS, "pld", "gdp")
    word = choice(accountant, "accountant", known, Code.UNKNOWN_CHOICE)
    if word not in _ACCOUNTANTS:
        raise fail(
            Code.NOT_SUPPORTED,
            f"`accountant: {word}` is not supported by this version",
            accountant,
            help="supported: " + ", ".join(_ACCOUNTANTS),
        )
    return _ACCOUNTANTS[word]


def _bare_budget(
    node: Node,
) -> tuple[Callable[[Fraction], Budget], Fraction | None]:
    fields = Fields(node, "`bare_budget`")
    kinds = ("pure-dp", "approx-dp", "zcdp", "gdp")
    kind = choice(fields.take("type"), "budget type", kinds, Code.UNKNOWN_CHOICE)
    delta: Fraction | None = None
    if kind == "approx-dp":
        delta = limit_delta(fields.take("delta"))
    fields.finish()

    def bare(value: Fraction) -> Budget:
        if delta is not None:
            return ApproxBudget(value, delta)
        if kind == "pure-dp":
            return PureBudget(value)
        return ZcdpBudget(value) if kind == "zcdp" else GdpBudget(value)

    return bare, delta


def _labels(
    node: Node | None,
) -> tuple[dict[str, Label], dict[str, Mark | None]]:
    if node is None:
        return {}, {}
    found = Problems()
    labels: dict[str, Label] = {}
    marks: dict[str, Mark | None] = {}
    for key, value in Fields(node, "`labels`").rest():
        with found.guard():
            label = name(key, "a label")
            if not label.isidentifier() or label in _RESERVED:
                raise fail(
                    Code.BAD_NAME,
                    f"`{label}` cannot be the name of a label",
                    key,
                    help="use letters, digits and _; names of keys are taken",
                )
            fields = Fields(value, f"label `{label}`")
            values = _distinct(fields.take("values"), f"value of label `{label}`")
            default_node = fields.take("default")
            default = choice(
                default_node,
                f"value of label `{label}`",
                values,
                Code.UNKNOWN_LABEL_VALUE,
            )
            fields.finish()
            labels[label] = Label(values, default)
            marks[label] = default_node.mark
    found.raise_any()
    return labels, marks


def _distinct(node: Node, what: str) -> tuple[str, ...]:
    values: list[str] = []
    for item in items(node, f"the {what}s"):
        value = name(item, f"a {what}")
        if value in values:
            raise fail(Code.DUPLICATE_NAME, f"{what} `{value}` stands twice", item)
        values.append(value)
    if not values:
        raise fail(Code.MISSING_KEY, f"at least one {what} is needed", node)
    return tuple(values)


def _schema(node: Node) -> tuple[dict[str, Attribute], dict[str, str]]:
    found = Problems()
    fields = Fields(node, "`schema`")
    categories: dict[str, str] = {}
    with found.guard():
        listed = fields.take_optional("categories")
        if listed is not None:
            for key, value in Fields(listed, "`categories`").rest():
                with found.guard():
                    category = name(key, "a category")
                    categories[category] = name(value, f"risk level of `{category}`")
    attributes: dict[str, Attribute] = {}
    with found.guard():
        for key, value in Fields(fields.take("attributes"), "`attributes`").rest():
            with found.guard():
                attribute = _attribute(key, value, categories)
                attributes[attribute.name] = attribute
    with found.guard():
        fields.finish()
    found.raise_any()
    return attributes, categories


def _attribute(key: Scalar, value: Node, categories: dict[str, str]) -> Attribute:
    own_name = name(key, "an attribute")
    parts = value.items if isinstance(value, Items) else (value,)
    if not parts or len(parts) > 3:
        raise fail(
            Code.WRONG_TYPE,
            f"attribute `{own_name}` must be [risk level, {{category: membership}}]",
            value,
        )
    if len(parts) == 3 and text(parts[2], "the third part") != "static":
        raise fail(
            Code.UNKNOWN_CHOICE,
            f"{_shown(parts[2])} says nothing about attribute `{own_name}`",
            parts[2],
            label=nearest(_shown(parts[2]).strip("`"), ["static"]),
            help="the third part is  static , or left out",
        )
    risk = name(parts[0], f"the risk level of `{own_name}`")
    memberships: dict[str, Level] | None = None
    if len(parts) >= 2:
        memberships = {}
        for category_key, level in Fields(parts[1], f"attribute `{own_name}`").rest():
            category = choice(
                category_key, "category", categories, Code.UNKNOWN_CATEGORY
            )
            memberships[category] = read_level(level)
    return Attribute(own_name, risk, memberships, len(parts) == 3, key.mark)


def _shown(node: Node) -> str:
    return f"`{node.text[:40]}`" if isinstance(node, Scalar) else describe(node)


def read_level(node: Node) -> Level:
    """Return a membership level.

    Raises:
        InputError: If it is not one.
    """
    words = [level.value for level in Level]
    return Level(choice(node, "membership level", words, Code.UNKNOWN_CHOICE))
