"""From a marked tree to a policy: every key known, every claim checked."""

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
    Unlimited,
    ZcdpBudget,
)
from modicum.accounting.budget_reading import limit_delta, read_measured
from modicum.core.canonical import digest, encode
from modicum.core.document import Items, Kind, Node, Scalar, describe, to_plain
from modicum.core.errors import Code
from modicum.core.exact import number_text
from modicum.core.reading import (
    Fields,
    Problems,
    choice,
    fail,
    items,
    name,
    number,
    place,
    positive,
    text,
)
from modicum.policy.budget_maps import BudgetMap, Same, parse_map
from modicum.policy.cel import parse_predicate
from modicum.policy.model import (
    Attribute,
    AttributePolicy,
    BasePolicy,
    CategoryPolicy,
    CustomPolicy,
    Extension,
    Level,
    Policy,
    Setting,
)
from modicum.policy.predicates import (
    Constant,
    Predicate,
    counterexample,
    looks_only_at_labels,
)
from modicum.release import Label, Vocabulary

#: The version of the format that this module reads.
FORMAT = "policy/v1"

_LATER = MappingProxyType(
    {
        "guards": "guards come later",
        "population": "partitioning attributes come later",
        "approvals": "approvals come later",
        "disclosed_invariants": "invariants published outside DP come later",
        "include": "one policy is one file for now",
    }
)
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
class _Header:
    """The `dp` block."""

    filter_name: str
    bare: Callable[[Fraction], Budget] | None
    bare_delta: Fraction | None


def parse_policy(node: Node, source: str) -> Policy:
    """Return the policy that a marked tree describes.

    Args:
        node: The tree of the file.
        source: The file's text, kept for the ledger.

    Raises:
        InputError: With every mistake found, each with its place.
    """
    fields = Fields(node, "the policy")
    _version(fields.take("modicum"))
    found = Problems()
    policy_name = "?"
    with found.guard():
        policy_name = name(fields.take("name"), "the policy's name")
    header = _Header("combined-v1", None, None)
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
    found.raise_any()  # What follows refers to all of the above.
    vocabulary = Vocabulary(frozenset(attributes), labels, units, "add-remove")
    reader = _Reader(vocabulary, header)
    base_policies: tuple[BasePolicy, ...] = ()
    with found.guard():
        base_policies = reader.base_policies(fields.take_optional("policies"))
    extensions: tuple[Extension, ...] = ()
    with found.guard():
        extensions = reader.extensions(fields.take_optional("extensions"))
    per_release: tuple[BasePolicy, ...] = ()
    with found.guard():
        per_release = reader.base_policies(fields.take_optional("per_release"))
    with found.guard():
        _refuse_no_rules(base_policies, per_release, node)
    with found.guard():
        _refuse_same_names((*base_policies, *per_release))
    with found.guard():
        fields.finish(unsupported=_LATER)
    found.raise_any()
    return Policy(
        name=policy_name,
        digest=digest(encode(to_plain(node))),
        text=source,
        filter_name=header.filter_name,
        report_delta=number_text(header.bare_delta) if header.bare_delta else None,
        vocabulary=vocabulary,
        attributes=attributes,
        categories=categories,
        base_policies=base_policies,
        extensions=extensions,
        per_release=per_release,
    )


def _refuse_no_rules(
    base: tuple[BasePolicy, ...], per_release: tuple[BasePolicy, ...], node: Node
) -> None:
    if not base and not per_release:
        raise fail(
            Code.MISSING_KEY,
            "the policy limits nothing: it has neither `policies` nor `per_release`",
            node,
        )


def _refuse_same_names(policies: tuple[BasePolicy, ...]) -> None:
    seen: dict[str, BasePolicy] = {}
    for policy in policies:
        if policy.name in seen:
            first = seen[policy.name].mark
            node = Scalar(Kind.TEXT, policy.name, quoted=False, mark=policy.mark)
            raise fail(
                Code.DUPLICATE_NAME,
                f"two policies are named `{policy.name}`",
                node,
                notes=(f"first at {place(first)}; rules are named after them",),
            )
        seen[policy.name] = policy


def _version(node: Node) -> None:
    version = text(node, "`modicum`")
    if version != FORMAT:
        raise fail(
            Code.UNKNOWN_VERSION,
            f'unknown format "{version[:40]}"',
            node,
            help=f"this version reads {FORMAT}",
        )


def _header(node: Node | None) -> _Header:
    if node is None:
        return _Header("combined-v1", None, None)
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
    return _Header(filter_name, bare, delta)


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
            f"`{describe(parts[2])}` on attribute `{own_name}` is not supported by this"
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
            memberships[category] = _level(level)
    return Attribute(own_name, risk, memberships, key.mark)


def _level(node: Node) -> Level:
    words = [level.value for level in Level]
    return Level(choice(node, "membership level", words, Code.UNKNOWN_CHOICE))


class _Reader:
    """Reads the parts of a policy that refer to its vocabulary."""

    def __init__(self, vocabulary: Vocabulary, header: _Header) -> None:
        self._vocabulary = vocabulary
        self._header = header

    # --- budgets ---

    def budget(self, node: Node) -> Budget:
        """Return a budget; the key names the measure, nothing is guessed."""
        if isinstance(node, Scalar) and node.kind is Kind.NUMBER:
            value = positive(node, "a budget")
            if self._header.bare is None:
                raise fail(
                    Code.NO_MEASURE,
                    f'"{node.text}" has no measure',
                    node,
                    notes=("it could be pure eps, eps at some delta, rho or mu",),
                    help=f"write {{eps: {node.text}, delta: 1e-7}}, or declare"
                    " dp.bare_budget once",
                )
            return self._header.bare(value)
        if isinstance(node, Scalar):
            if not node.quoted and node.text == "unlimited":
                return Unlimited()
            number(node, "a budget")
        return read_measured(node, "a budget", limit_delta)

    def _budgets(self, node: Node) -> dict[str, Budget]:
        found = Problems()
        budgets: dict[str, Budget] = {}
        for key, value in Fields(node, "`budget`").rest():
            with found.guard():
                budgets[name(key, "a risk level")] = self.budget(value)
        found.raise_any()
        return budgets

    # --- base policies ---

    def base_policies(self, node: Node | None) -> tuple[BasePolicy, ...]:
        """Return the base policies of a list, in order."""
        if node is None:
            return ()
        found = Problems()
        policies: list[BasePolicy] = []
        for item in items(node, "a list of policies"):
            with found.guard():
                policies.append(self._base_policy(item))
        found.raise_any()
        return tuple(policies)

    def _base_policy(self, node: Node) -> BasePolicy:
        fields = Fields(node, "a base policy")
        own_name = name(fields.take("name"), "the policy's name")
        unit = choice(
            fields.take("unit"),
            "privacy unit",
            self._vocabulary.units,
            Code.UNKNOWN_UNIT,
        )
        each = fields.take_optional("for_each")
        policy: BasePolicy
        if each is None:
            when = fields.take("when")
            policy = CustomPolicy(
                name=own_name,
                unit=unit,
                predicate=parse_predicate(when, "`when`", self._vocabulary),
                when=text(when, "`when`"),
                budget=self.budget(fields.take("budget")),
                mark=node.mark,
            )
        else:
            kinds = ("attribute", "category")
            kind = choice(each, "`for_each`", kinds, Code.UNKNOWN_CHOICE)
            reader = self._attributes if kind == "attribute" else self._categories
            policy = reader(fields, own_name, unit)
        fields.finish()
        return policy

    def _attributes(self, fields: Fields, own_name: str, unit: str) -> AttributePolicy:
        budget_node = fields.take("budget")
        override: dict[str, Budget] = {}
        override_node = fields.take_optional("override")
        if override_node is not None:
            for key, value in Fields(override_node, "`override`").rest():
                attribute = choice(
                    key,
                    "attribute",
                    sorted(self._vocabulary.attributes),
                    Code.UNKNOWN_ATTRIBUTE,
                )
                override[attribute] = self.budget(value)
        return AttributePolicy(
            name=own_name,
            unit=unit,
            budgets=self._budgets(budget_node),
            override=override,
            mark=fields.node.mark,
            budget_mark=budget_node.mark,
        )

    def _categories(self, fields: Fields, own_name: str, unit: str) -> CategoryPolicy:
        budget_node = fields.take("budget")
        levels: dict[Level, BudgetMap] = {}
        levels_node = fields.take_optional("levels")
        if levels_node is None:
            levels[Level.MEMBER] = BudgetMap(Same(), fields.node.mark)
        else:
            for key, value in Fields(levels_node, "`levels`").rest():
                levels[_level(key)] = parse_map(value, self.budget)
        return CategoryPolicy(
            name=own_name,
            unit=unit,
            budgets=self._budgets(budget_node),
            levels=levels,
            mark=fields.node.mark,
            budget_mark=budget_node.mark,
        )

    # --- extensions ---

    def extensions(self, node: Node | None) -> tuple[Extension, ...]:
        """Return the extensions of a list, in order."""
        if node is None:
            return ()
        found = Problems()
        extensions: list[Extension] = []
        for item in items(node, "`extensions`"):
            with found.guard():
                extensions.append(self._extension(item))
        found.raise_any()
        _refuse_same_settings(extensions)
        return tuple(extensions)

    def _extension(self, node: Node) -> Extension:
        fields = Fields(node, "an extension")
        own_name = name(fields.take("name"), "the extension's name")
        settings_node = fields.take("settings")
        fields.finish()
        found = Problems()
        settings: list[Setting] = []
        claims: list[tuple[Setting, Node]] = []
        for key, value in Fields(settings_node, f"extension `{own_name}`").rest():
            with found.guard():
                setting, within = self._setting(key, value)
                settings.append(setting)
                if within is not None:
                    claims.append((setting, within))
        found.raise_any()
        self._refuse_no_catch_all(own_name, settings, settings_node)
        for setting, within in claims:
            self._check_within(setting, within, settings)
        return Extension(own_name, tuple(settings), node.mark)

    def _setting(self, key: Scalar, node: Node) -> tuple[Setting, Node | None]:
        own_name = name(key, "a setting's name")
        fields = Fields(node, f"setting `{own_name}`")
        when = fields.take("when")
        predicate = parse_predicate(when, "`when`", self._vocabulary)
        if not looks_only_at_labels(predicate):
            raise fail(
                Code.CEL_SUBSET,
                "a setting may look only at labels in this version",
                when,
                notes=("so that it is decidable whether settings cover everything",),
            )
        budget_map = parse_map(fields.take("budget"), self.budget)
        within = fields.take_optional("within")
        fields.finish()
        setting = Setting(
            own_name, predicate, text(when, "`when`"), budget_map, key.mark
        )
        return setting, within

    def _refuse_no_catch_all(
        self, own_name: str, settings: list[Setting], node: Node
    ) -> None:
        escapes = {
            setting.name: _counterexample(
                Constant(value=True), setting, self._vocabulary, node
            )
            for setting in settings
        }
        if any(escape is None for escape in escapes.values()):
            return
        raise fail(
            Code.NO_CATCH_ALL,
            f'extension "{own_name}" has no setting that matches every mechanism',
            node,
            notes=tuple(
                f"`{setting}` misses a mechanism with {_labels_text(escape)}"
                for setting, escape in escapes.items()
                if escape
            ),
            help='write  when: "true"  for the loosest setting',
        )

    def _check_within(
        self, setting: Setting, node: Node, settings: list[Setting]
    ) -> None:
        names = [other.name for other in settings]
        wide_name = choice(node, "setting", names, Code.UNKNOWN_CHOICE)
        wide = settings[names.index(wide_name)]
        escape = _counterexample(setting.predicate, wide, self._vocabulary, node)
        if escape is not None:
            raise fail(
                Code.FALSE_WITHIN,
                f'"{setting.name}" is not within "{wide.name}"',
                node,
                notes=(
                    f"counterexample: a mechanism with {_labels_text(escape)} matches"
                    f' "{setting.name}" but not "{wide.name}" ({place(wide.mark)})',
                ),
            )


def _counterexample(
    narrow: Predicate, wide: Setting, vocabulary: Vocabulary, node: Node
) -> dict[str, str] | None:
    try:
        return counterexample(narrow, wide.predicate, vocabulary)
    except ValueError as error:
        raise fail(Code.CEL_LIMIT, str(error), node) from error


def _labels_text(labels: dict[str, str]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in labels.items()) or "any label"


def _refuse_same_settings(extensions: list[Extension]) -> None:
    seen: set[str] = set()
    for extension in extensions:
        for setting in extension.settings:
            if setting.name in seen:
                node = Scalar(Kind.TEXT, setting.name, quoted=False, mark=setting.mark)
                raise fail(
                    Code.DUPLICATE_NAME,
                    f"two settings are named `{setting.name}`",
                    node,
                    notes=("rules are named after their settings",),
                )
            seen.add(setting.name)
