"""The first half of a policy: the names that everything else refers to."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

from modicum.accounting import (
    FILTERS,
    ApproxBudget,
    Budget,
    GdpBudget,
    PureBudget,
    ZcdpBudget,
)
from modicum.accounting.budget_format import limit_delta
from modicum.core.document import Entries, Items, Node, Scalar, describe, flow_text
from modicum.core.errors import Code, Mark
from modicum.core.reader import (
    Fields,
    Problems,
    choice,
    fail,
    items,
    name,
    nearest,
    refuse_nothing,
    text,
)
from modicum.policy.declarations.units import read_relation, read_units
from modicum.policy.model import Attribute, Declared, Level
from modicum.release import Label, Relation, Unit, Vocabulary
from modicum.release.vocabulary import RESERVED


class DataSchema(NamedTuple):
    """The contents of the data.

    Attributes:
        attributes: The attributes by name.
        categories: The risk level of every category.
        renamed: By former attribute, the present ones that it may be.
    """

    attributes: dict[str, Attribute]
    categories: dict[str, str]
    renamed: dict[str, tuple[str, ...]]


def read_schema(node: Node) -> DataSchema:
    """Return the contents of the data, as declared.

    Raises:
        InputError: With every mistake found.
    """
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
    renamed: dict[str, tuple[str, ...]] = {}
    earlier = fields.take_optional("was")
    if earlier is not None:
        for key, now in Fields(earlier, "`was` of `schema`").rest():
            with found.guard():
                old = name(key, "a former attribute")
                listed_now = now.items if isinstance(now, Items) else (now,)
                present = [
                    choice(one, "attribute", attributes, Code.UNKNOWN_ATTRIBUTE)
                    for one in listed_now
                ]
                if not present:
                    raise fail(
                        Code.MISSING_KEY,
                        f"the former attribute `{old}` has no current name",
                        now,
                        help="list its current names, or leave it out",
                    )
                renamed[old] = tuple(dict.fromkeys(present))
    with found.guard():
        fields.finish()
    found.raise_any()
    return DataSchema(attributes, categories, renamed)


def _attribute(key: Scalar, value: Node, categories: dict[str, str]) -> Attribute:
    own_name = name(key, "an attribute")
    _refuse_other_shapes(own_name, value)
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
            f"{_shown(parts[2])} has no meaning for attribute `{own_name}`",
            parts[2],
            label=nearest(_shown(parts[2]).strip("`"), ["static"]),
            help="the third part is  static , or is left out",
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


def _refuse_other_shapes(own_name: str, node: Node) -> None:
    """Refuse ``{risk: low}``, ``[low, member]`` and ``[low, static]``."""
    suggestion = ""
    match node:
        case Entries(entries=entries):
            risks = [flow_text(value) for key, value in entries if "risk" in key.text]
            suggestion = risks[0] if risks else ""
        case Items(items=(risk, Scalar(text="static"))):
            suggestion = f"[{flow_text(risk)}, {{}}, static]"
        case Items(items=(risk, Scalar(text=category))):
            suggestion = f"[{flow_text(risk)}, {{{category}: {Level.MEMBER.value}}}]"
        case _:
            return
    written = flow_text(node)
    raise fail(
        Code.WRONG_TYPE,
        f"attribute `{own_name}` must be [risk level, {{category: membership}}]",
        node,
        help=f"write  {suggestion}  instead of  {written}" if suggestion else "",
    )


def _shown(node: Node) -> str:
    return f"`{node.text[:40]}`" if isinstance(node, Scalar) else describe(node)


def read_level(node: Node) -> Level:
    """Return a membership level.

    Raises:
        InputError: If it is not one.
    """
    levels = [level.value for level in Level]
    return Level(choice(node, "membership level", levels, Code.UNKNOWN_CHOICE))


#: `accountant` is the former key of the filter; the meaning of each value.
_ACCOUNTANTS = MappingProxyType(
    {"rdp": "combined-v1", "zcdp": "zcdp-v1", "basic": "basic-v1"}
)


class Header(Struct, frozen=True):
    """The `dp` block.

    Attributes:
        filter_name: The privacy filter of (eps, delta) budgets.
        bare: The type of a bare number as a budget; None if undeclared.
        bare_delta: The delta that it means, if it means one.
        neighbors: The neighboring relation of units that state none.
    """

    filter_name: str
    bare: Callable[[Fraction], Budget] | None
    bare_delta: Fraction | None
    neighbors: Relation = "add-remove"


class Declarations(Declared, frozen=True):
    """Everything that the rest of a policy refers to."""

    header: Header


def read_declarations(fields: Fields) -> Declarations:
    """Parse the declarations among a policy's keys.

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
    schema = DataSchema({}, {}, {})
    with found.guard():
        schema = read_schema(fields.take("schema"))
    found.raise_any()
    vocabulary = Vocabulary(
        frozenset(schema.attributes),
        labels,
        tuple(units),
        header.neighbors,
        units,
        renamed=schema.renamed,
    )
    return Declarations(
        own_name, vocabulary, schema.attributes, schema.categories, label_marks, header
    )


def _header(node: Node | None) -> Header:
    if node is None:
        return Header("combined-v1", None, None)
    refuse_nothing(node, "`dp`")
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
            "`filter` and `accountant` have the same meaning; give one",
            accountant,
        )
    if chosen is not None:
        return choice(chosen, "filter", FILTERS, Code.UNKNOWN_CHOICE)
    if accountant is None:
        return "combined-v1"
    known = (*_ACCOUNTANTS, "pld", "gdp")
    value = choice(accountant, "accountant", known, Code.UNKNOWN_CHOICE)
    if value not in _ACCOUNTANTS:
        raise fail(
            Code.NOT_SUPPORTED,
            f"`accountant: {value}` is not supported by this version",
            accountant,
            help="supported: " + ", ".join(_ACCOUNTANTS),
        )
    return _ACCOUNTANTS[value]


def _bare_budget(
    node: Node,
) -> tuple[Callable[[Fraction], Budget], Fraction | None]:
    fields = Fields(node, "`bare_budget`")
    kinds = ("pure-dp", "approx-dp", "zcdp", "gdp")
    type_node = fields.take("type", help=_typed(node))
    kind = choice(type_node, "budget type", kinds, Code.UNKNOWN_CHOICE)
    delta: Fraction | None = None
    if kind == "approx-dp":
        delta = limit_delta(fields.take("delta", help="add  delta: 1e-7"))
    fields.finish()

    def bare(value: Fraction) -> Budget:
        if delta is not None:
            return ApproxBudget(value, delta)
        if kind == "pure-dp":
            return PureBudget(value)
        return ZcdpBudget(value) if kind == "zcdp" else GdpBudget(value)

    return bare, delta


def _typed(node: Node) -> str:
    """Return the type of a budget such as ``{eps: 1}``."""
    given = {}
    if isinstance(node, Entries):
        given = {key.text: value for key, value in node.entries}
    if "delta" in given:
        kind = f"approx-dp, delta: {flow_text(given['delta'])}"
    else:
        measures = {"eps": "pure-dp", "rho": "zcdp", "mu": "gdp"}
        kind = next((measures[key] for key in given if key in measures), "")
    if not kind:
        return "add  type: pure-dp , approx-dp with a delta, zcdp or gdp"
    return f"write  {{type: {kind}}}  instead of  {flow_text(node)}"


def _labels(
    node: Node | None,
) -> tuple[dict[str, Label], dict[str, Mark | None]]:
    if node is None:
        return {}, {}
    refuse_nothing(node, "`labels`")
    found = Problems()
    labels: dict[str, Label] = {}
    marks: dict[str, Mark | None] = {}
    for key, value in Fields(node, "`labels`").rest():
        with found.guard():
            label = name(key, "a label")
            if not label.isidentifier() or label in RESERVED:
                raise fail(
                    Code.BAD_NAME,
                    f"`{label}` is not allowed as the name of a label",
                    key,
                    help="use letters, digits and _; names of keys are reserved",
                )
            labels[label], marks[label] = _label(label, value)
    found.raise_any()
    return labels, marks


def _label(own_name: str, node: Node) -> tuple[Label, Mark | None]:
    """Return a label, and the place of its default."""
    what = f"label `{own_name}`"
    if isinstance(node, Items) and node.items:
        written = flow_text(node)
        default = flow_text(node.items[0])
        raise fail(
            Code.WRONG_TYPE,
            f"{what} must be a mapping, got a list",
            node,
            notes=("the default applies where no value is given",),
            help=f"write  {{values: {written}, default: {default}}}  instead of"
            f"  {written}",
        )
    fields = Fields(node, what)
    values = _distinct(fields.take("values"), f"value of {what}")
    remedy = f"add  default: {values[0]}  or another of the values"
    default_node = fields.take("default", help=remedy)
    default = choice(default_node, f"value of {what}", values, Code.UNKNOWN_LABEL_VALUE)
    was: dict[str, str] = {}
    earlier = fields.take_optional("was")
    if earlier is not None:
        for key, now in Fields(earlier, f"`was` of {what}").rest():
            old = name(key, f"a former value of {what}")
            was[old] = choice(now, f"value of {what}", values, Code.UNKNOWN_LABEL_VALUE)
    former_node = fields.take_optional("former_name")
    former = None if former_node is None else name(former_node, "a former label")
    fields.finish()
    return Label(values, default, (*was.items(),), former), default_node.mark


def _distinct(node: Node, what: str) -> tuple[str, ...]:
    values: list[str] = []
    for item in items(node, f"the {what}s"):
        value = name(item, f"a {what}")
        if value in values:
            raise fail(Code.DUPLICATE_NAME, f"{what} `{value}` is given twice", item)
        values.append(value)
    if not values:
        raise fail(Code.MISSING_KEY, f"at least one {what} is needed", node)
    return tuple(values)
