"""From a marked tree to a policy: every key known, every claim checked."""

from __future__ import annotations

from collections.abc import Mapping

from modicum.accounting import (
    Budget,
    Unlimited,
)
from modicum.accounting.budget_reading import limit_delta, read_measured
from modicum.core.canonical import digest
from modicum.core.document import Kind, Node, Scalar
from modicum.core.errors import Code
from modicum.core.exact import number_text
from modicum.core.reading import (
    Fields,
    Problems,
    choice,
    fail,
    items,
    name,
    nearest,
    number,
    place,
    positive,
    text,
)
from modicum.policy.budget_maps import BudgetMap, Same, parse_map
from modicum.policy.cel.lowering import parse_predicate
from modicum.policy.declarations.governance import (
    read_approvals,
    read_guards,
    read_invariants,
)
from modicum.policy.declarations.header import (
    Declarations,
    read_declarations,
    read_level,
)
from modicum.policy.declarations.population import read_population
from modicum.policy.document.canonical_form import formatted
from modicum.policy.implication.search import counterexample
from modicum.policy.model import (
    Approval,
    AttributePolicy,
    BasePolicy,
    CategoryPolicy,
    CustomPolicy,
    Extension,
    Guard,
    Level,
    Partition,
    Policy,
    Setting,
)
from modicum.policy.predicates import (
    Constant,
    Predicate,
    looks_only_at_labels,
)
from modicum.release import Vocabulary

#: The version of the format that this module reads.
FORMAT = "policy/v1"

#: Risk levels that a budget may name though nothing has them.
USUAL_RISK_LEVELS = ("low", "medium", "high")


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
    declared = read_declarations(fields)
    reader = _Reader(declared)
    found = Problems()
    base_policies: tuple[BasePolicy, ...] = ()
    with found.guard():
        base_policies = reader.base_policies(fields.take_optional("policies"))
    extensions: tuple[Extension, ...] = ()
    with found.guard():
        extensions = reader.extensions(fields.take_optional("extensions"))
    per_release: tuple[BasePolicy, ...] = ()
    with found.guard():
        per_release = reader.base_policies(fields.take_optional("per_release"))
    partitions: dict[str, Partition] = {}
    time_detail: dict[str, int] = {}
    with found.guard():
        partitions, time_detail = read_population(
            fields.take_optional("population"), declared.vocabulary.unit_facts
        )
    guards: tuple[Guard, ...] = ()
    with found.guard():
        guards = read_guards(fields.take_optional("guards"), declared.vocabulary)
    approvals: tuple[Approval, ...] = ()
    with found.guard():
        approvals = read_approvals(
            fields.take_optional("approvals"), declared.vocabulary
        )
    invariants: tuple[str, ...] = ()
    with found.guard():
        invariants = read_invariants(fields.take_optional("disclosed_invariants"))
    with found.guard():
        fields.finish()
    found.raise_any()
    _refuse_no_rules(base_policies, per_release, node)
    _refuse_same_names((*base_policies, *per_release))
    delta = declared.header.bare_delta
    return Policy(
        name=declared.name,
        digest=digest(formatted(node).encode()),
        text=source,
        filter_name=declared.header.filter_name,
        report_delta=number_text(delta) if delta else None,
        vocabulary=declared.vocabulary,
        attributes=declared.attributes,
        categories=declared.categories,
        base_policies=base_policies,
        extensions=extensions,
        per_release=per_release,
        guards=guards,
        approvals=approvals,
        partitions=partitions,
        time_detail=time_detail,
        disclosed_invariants=invariants,
        label_marks=declared.label_marks,
    )


def _version(node: Node) -> None:
    version = text(node, "`modicum`")
    if version != FORMAT:
        raise fail(
            Code.UNKNOWN_VERSION,
            f'unknown format "{version[:40]}"',
            node,
            help=f"this version reads {FORMAT}",
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


class _Reader:
    """Reads the parts of a policy that refer to its vocabulary."""

    def __init__(self, declared: Declarations) -> None:
        self._vocabulary = declared.vocabulary
        self._header = declared.header
        used = [attribute.risk for attribute in declared.attributes.values()]
        self._risk_levels = tuple(
            dict.fromkeys((*USUAL_RISK_LEVELS, *used, *declared.categories.values()))
        )

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
            if node.kind is Kind.TEXT and node.text == "unlimited":
                return Unlimited()
            if node.kind is Kind.TEXT and not node.quoted:
                raise fail(
                    Code.NO_MEASURE,
                    f'"{node.text[:40]}" is not a budget',
                    node,
                    label=nearest(node.text, ["unlimited"]),
                    help="write a number, {eps: …} and the like, or unlimited",
                )
            number(node, "a budget")
        return read_measured(node, "a budget", limit_delta)

    def _budgets(self, node: Node) -> dict[str, Budget]:
        found = Problems()
        budgets: dict[str, Budget] = {}
        for key, value in Fields(node, "`budget`").rest():
            with found.guard():
                level = choice(
                    key, "risk level", self._risk_levels, Code.UNKNOWN_RISK_LEVEL
                )
                budgets[level] = self.budget(value)
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
        each = fields.take_optional("for_each")
        when = fields.take("when") if each is None else None
        unit = choice(
            fields.take("unit"),
            "privacy unit",
            self._vocabulary.units,
            Code.UNKNOWN_UNIT,
        )
        policy: BasePolicy
        if when is not None:
            policy = CustomPolicy(
                name=own_name,
                unit=unit,
                predicate=parse_predicate(when, "`when`", self._vocabulary),
                budget=self.budget(fields.take("budget")),
                mark=node.mark,
            )
        else:
            assert each is not None
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
                levels[read_level(key)] = parse_map(value, self.budget)
        if not levels:
            raise fail(
                Code.MISSING_KEY,
                "`levels` is empty: the policy would have no rule",
                levels_node,
                help="leave it out for {member: same}",
            )
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
        setting = Setting(own_name, predicate, budget_map, key.mark)
        return setting, within

    def _refuse_no_catch_all(
        self, own_name: str, settings: list[Setting], node: Node
    ) -> None:
        escapes: dict[str, Mapping[str, str]] = {}
        for setting in settings:
            escape = _counterexample(
                Constant(value=True), setting, self._vocabulary, node
            )
            if escape is None:
                return
            escapes[setting.name] = escape
        raise fail(
            Code.NO_CATCH_ALL,
            f'extension "{own_name}" has no setting that matches every mechanism',
            node,
            notes=tuple(
                f"`{setting}` misses a mechanism with {_labels_text(escape)}"
                for setting, escape in escapes.items()
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
) -> Mapping[str, str] | None:
    try:
        return counterexample(narrow, wide.predicate, vocabulary)
    except ValueError as error:
        raise fail(Code.CEL_LIMIT, str(error), node) from error


def _labels_text(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in labels.items()) or "any label"


def _refuse_same_settings(extensions: list[Extension]) -> None:
    seen: set[str] = set()
    names: set[str] = set()
    for extension in extensions:
        if extension.name in names:
            node = Scalar(Kind.TEXT, extension.name, quoted=False, mark=extension.mark)
            raise fail(
                Code.DUPLICATE_NAME,
                f"two extensions are named `{extension.name}`",
                node,
            )
        names.add(extension.name)
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
