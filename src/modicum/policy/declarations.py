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
from modicum.core.errors import Code
from modicum.core.reading import (
    Fields,
    Problems,
    choice,
    fail,
    items,
    name,
    text,
)
from modicum.policy.model import (
    Attribute,
    Level,
)
from modicum.release import Label, Vocabulary

_UNIT_LATER = MappingProxyType(
    {
        "time": "time units come later",
        "within": "an order between units comes later; units are independent now",
        "groups": "group sizes come later",
    }
)

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
    """

    filter_name: str
    bare: Callable[[Fraction], Budget] | None
    bare_delta: Fraction | None


@dataclass(frozen=True, slots=True)
class Declarations:
    """Everything that the rest of a policy refers to."""

    name: str
    header: Header
    vocabulary: Vocabulary
    attributes: dict[str, Attribute]
    categories: dict[str, str]


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
    units: tuple[str, ...] = ()
    with found.guard():
        units = _units(fields.take("units"))
    labels: dict[str, Label] = {}
    with found.guard():
        labels = _labels(fields.take_optional("labels"))
    attributes: dict[str, Attribute] = {}
    categories: dict[str, str] = {}
    with found.guard():
        attributes, categories = _schema(fields.take("schema"))
    found.raise_any()
    vocabulary = Vocabulary(frozenset(attributes), labels, units, "add-remove")
    return Declarations(own_name, header, vocabulary, attributes, categories)


def _header(node: Node | None) -> Header:
    if node is None:
        return Header("combined-v1", None, None)
    fields = Fields(node, "`dp`")
    neighbors = fields.take_optional("neighbors")
    if neighbors is not None:
        word = choice(
            neighbors,
            "neighboring relation",
            ("add-remove", "substitute"),
            Code.UNKNOWN_CHOICE,
        )
        if word == "substitute":
            raise fail(
                Code.NOT_SUPPORTED,
                "`neighbors: substitute` is not supported by this version",
                neighbors,
                help="state losses for adding or removing one instance of the unit",
            )
    filter_name = _filter(fields)
    bare_node = fields.take_optional("bare_budget")
    bare: Callable[[Fraction], Budget] | None = None
    delta: Fraction | None = None
    if bare_node is not None:
        bare, delta = _bare_budget(bare_node)
    fields.finish()
    return Header(filter_name, bare, delta)


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


def _units(node: Node) -> tuple[str, ...]:
    found = Problems()
    units: list[str] = []
    for key, value in Fields(node, "`units`").rest():
        with found.guard():
            unit = name(key, "a privacy unit")
            fields = Fields(value, f"unit `{unit}`")
            text(fields.take("id"), f"the id column of `{unit}`")
            fields.finish(unsupported=_UNIT_LATER)
            units.append(unit)
    found.raise_any()
    if not units:
        raise fail(Code.MISSING_KEY, "a policy needs at least one privacy unit", node)
    return tuple(units)


def _labels(node: Node | None) -> dict[str, Label]:
    if node is None:
        return {}
    found = Problems()
    labels: dict[str, Label] = {}
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
            default = choice(
                fields.take("default"),
                f"value of label `{label}`",
                values,
                Code.UNKNOWN_LABEL_VALUE,
            )
            fields.finish()
            labels[label] = Label(values, default)
    found.raise_any()
    return labels


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
    if len(parts) == 3:
        raise fail(
            Code.NOT_SUPPORTED,
            f"{_shown(parts[2])} on attribute `{own_name}` is not supported by this"
            " version",
            parts[2],
            notes=("`static` says how time units are charged; time units come later",),
        )
    risk = name(parts[0], f"the risk level of `{own_name}`")
    memberships: dict[str, Level] = {}
    if len(parts) == 2:
        for category_key, level in Fields(parts[1], f"attribute `{own_name}`").rest():
            category = choice(
                category_key, "category", categories, Code.UNKNOWN_CATEGORY
            )
            memberships[category] = read_level(level)
    return Attribute(own_name, risk, memberships, key.mark)


def _shown(node: Node) -> str:
    return f"`{node.text[:40]}`" if isinstance(node, Scalar) else describe(node)


def read_level(node: Node) -> Level:
    """Return a membership level.

    Raises:
        InputError: If it is not one.
    """
    words = [level.value for level in Level]
    return Level(choice(node, "membership level", words, Code.UNKNOWN_CHOICE))
