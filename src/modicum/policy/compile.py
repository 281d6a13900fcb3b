"""The compiler: base policies times extensions give rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from modicum.accounting import Budget, Filter, filter_for
from modicum.accounting.budgets import measure
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.core.reading import Problems, nearest, place
from modicum.core.yaml_reader import read_document
from modicum.policy.budget_maps import BudgetMap, Table, To, apply_map
from modicum.policy.model import (
    AttributePolicy,
    BasePolicy,
    CategoryPolicy,
    CustomPolicy,
    Extension,
    Policy,
)
from modicum.policy.parse import parse_policy
from modicum.policy.predicates import (
    Constant,
    Predicate,
    ReadsAny,
    escapes_by_default,
    labels_of,
    words,
)
from modicum.policy.rules import Rule, Stage

#: A policy that compiles to more rules than this is refused.
RULES_MAX = 250_000


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """A policy and its rules.

    Attributes:
        policy: The policy as written.
        rules: Limits on everything released, in the order of the file.
        release_rules: Limits on each release alone.
        base_rules: How many rules there were before the extensions, by base policy.
        warnings: What is allowed but probably not meant.
    """

    policy: Policy
    rules: tuple[Rule, ...]
    release_rules: tuple[Rule, ...]
    base_rules: Mapping[str, int]
    warnings: tuple[Problem, ...]

    def filter_of(self, rule: Rule) -> Filter:
        """Return what a rule admits under the policy's filter."""
        return filter_for(rule.budget, self.policy.filter_name)

    def report_delta(self, rule: Rule) -> Fraction | None:
        """Return the delta at which a rule's loss is also shown, if one is known."""
        delta = getattr(rule.budget, "delta", None)
        if isinstance(delta, Fraction):
            return delta
        shown = self.policy.report_delta
        return Fraction(shown) if shown is not None else None


def compile_text(data: bytes, file: str) -> CompiledPolicy:
    """Return the compiled policy of a text.

    Raises:
        InputError: With every mistake found.
    """
    node = read_document(data, file)
    return compile_policy(parse_policy(node, data.decode("utf-8-sig")))


def compile_policy(policy: Policy) -> CompiledPolicy:
    """Return the rules of a policy.

    Raises:
        InputError: If a risk level has no budget, or a budget map is undefined at a
            value it is applied to.
    """
    found = Problems()
    counts: dict[str, int] = {}
    base_rules: list[Rule] = []
    rules: list[Rule] = []
    for base in policy.base_policies:
        with found.guard():
            own = list(_base_rules(base, policy, Stage.HISTORY))
            base_rules.extend(own)
            counts[base.name] = len(own)
            _refuse_too_many(sum(counts.values()), policy)
            for rule in own:
                rules.extend(_extended(rule, policy.extensions, found))
    release_rules: list[Rule] = []
    for base in policy.per_release:
        with found.guard():
            release_rules.extend(_base_rules(base, policy, Stage.RELEASE))
            if len(release_rules) > RULES_MAX:
                _refuse_too_many(len(release_rules), replace(policy, extensions=()))
    with found.guard():
        _refuse_mixed_tables(policy, base_rules)
    for rule in rules:
        with found.guard():
            _refuse_unproven(rule, policy.filter_name)
    found.raise_any()
    return CompiledPolicy(
        policy, tuple(rules), tuple(release_rules), counts, tuple(_warnings(policy))
    )


def _refuse_unproven(rule: Rule, filter_name: str) -> None:
    """Refuse a budget for which the policy's filter is not proven."""
    try:
        filter_for(rule.budget, filter_name)
    except InputError as error:
        problem = error.problems[0]
        message = f"{problem.message} (rule {rule.id})"
        raise InputError(
            replace(problem, message=message, mark=rule.marks[0])
        ) from error


def _refuse_mixed_tables(policy: Policy, rules: list[Rule]) -> None:
    """Refuse a table of numbers that would act on budgets of several measures."""
    for base in policy.base_policies:
        if isinstance(base, CategoryPolicy):
            own = {_family(budget): base.mark for budget in base.budgets.values()}
            for budget_map in base.levels.values():
                _refuse_mixed(budget_map, own)
    families = {_family(rule.budget): rule.marks[0] for rule in reversed(rules)}
    for extension in policy.extensions:
        for setting in extension.settings:
            _refuse_mixed(setting.budget_map, families)
        for setting in extension.settings:
            if isinstance(setting.budget_map.form, To):
                families[_family(setting.budget_map.form.budget)] = setting.mark


def _family(budget: Budget) -> str:
    return measure(budget).split(",")[0]


def _refuse_mixed(budget_map: BudgetMap, families: Mapping[str, Mark | None]) -> None:
    numbers = {name: mark for name, mark in families.items() if name != "unlimited"}
    if isinstance(budget_map.form, Table) and len(numbers) > 1:
        raise InputError(
            Problem(
                Code.MAP_MEASURE,
                f"a table would act on budgets in {' and in '.join(sorted(numbers))}",
                budget_map.mark,
                notes=tuple(
                    f"{name}: {place(mark)}" for name, mark in sorted(numbers.items())
                ),
                help="state these budgets in one measure, or use `scale`",
            )
        )


def _refuse_too_many(base_rules: int, policy: Policy) -> None:
    rules = base_rules
    for extension in policy.extensions:
        rules *= max(1, len(extension.settings))
    if rules > RULES_MAX:
        problem = Problem(
            Code.TOO_LARGE,
            f"the policy compiles to {rules} rules, more than {RULES_MAX}",
        )
        raise InputError(problem)


def _base_rules(base: BasePolicy, policy: Policy, stage: Stage) -> Iterator[Rule]:
    match base:
        case CustomPolicy():
            yield _rule(base, stage, base.name, base.predicate, base.budget)
        case AttributePolicy():
            for attribute in policy.attributes.values():
                budget = base.override.get(attribute.name)
                if budget is None:
                    budget = _by_risk(base, attribute.risk, attribute.name)
                yield _rule(
                    base,
                    stage,
                    f"{base.name}:{attribute.name}",
                    ReadsAny(frozenset({attribute.name})),
                    budget,
                )
        case CategoryPolicy():
            yield from _category_rules(base, policy, stage)
        case _:
            assert_never(base)


def _category_rules(
    base: CategoryPolicy, policy: Policy, stage: Stage
) -> Iterator[Rule]:
    for category, risk in policy.categories.items():
        budget = _by_risk(base, risk, category)
        for level, budget_map in base.levels.items():
            scope = f"{base.name}:{category}/{level.value}"
            covered = level.includes()
            attributes = [
                attribute.name
                for attribute in policy.attributes.values()
                if attribute.memberships.get(category) in covered
            ]
            yield _rule(
                base,
                stage,
                scope,
                ReadsAny(frozenset(attributes)),
                apply_map(budget_map, budget, scope),
            )


def _rule(
    base: BasePolicy,
    stage: Stage,
    scope: str,
    predicate: Predicate,
    budget: Budget,
) -> Rule:
    return Rule(
        id=scope,
        stage=stage,
        scope=scope,
        context=(),
        unit=base.unit,
        predicate=predicate,
        settings=(),
        when=words(predicate),
        budget=budget,
        marks=(base.mark,),
    )


def _by_risk(base: AttributePolicy | CategoryPolicy, risk: str, of: str) -> Budget:
    if risk not in base.budgets:
        raise InputError(
            Problem(
                Code.NO_BUDGET,
                f"policy `{base.name}` has no budget for risk level `{risk}` (`{of}`)",
                base.budget_mark,
                label=nearest(risk, base.budgets),
                help=f"add  {risk}: …",
            )
        )
    return base.budgets[risk]


def _extended(
    rule: Rule, extensions: tuple[Extension, ...], found: Problems
) -> list[Rule]:
    rules = [rule]
    for extension in extensions:
        longer: list[Rule] = []
        for shorter in rules:
            for setting in extension.settings:
                identifier = f"{shorter.id} @{setting.name}"
                with found.guard():
                    longer.append(
                        replace(
                            shorter,
                            id=identifier,
                            context=(*shorter.context, setting.name),
                            settings=(*shorter.settings, setting.predicate),
                            when=_conjunction(shorter.when, words(setting.predicate)),
                            budget=apply_map(
                                setting.budget_map, shorter.budget, identifier
                            ),
                            marks=(*shorter.marks, setting.mark),
                        )
                    )
        rules = longer
    return rules


def _conjunction(left: str, right: str) -> str:
    if right == "true":
        return left
    if left == "true":
        return right
    return f"({left}) && ({right})"


def _warnings(policy: Policy) -> Iterator[Problem]:
    joined = {
        category
        for attribute in policy.attributes.values()
        for category in attribute.memberships
    }
    for category in policy.categories:
        if category not in joined:
            yield Problem(
                Code.UNKNOWN_CATEGORY,
                f"no attribute joins the category `{category}`",
                help="its rules can never match",
            )
    yield from _loose_defaults(policy)
    yield from _uncovered_levels(policy)
    everything = any(
        isinstance(base, CustomPolicy) and base.predicate == Constant(value=True)
        for base in policy.base_policies
    )
    if not everything:
        yield Problem(
            Code.NO_CATCH_ALL,
            "no base policy covers every mechanism",
            help='nothing limits a mechanism outside all rules; add  when: "true"',
        )


def _uncovered_levels(policy: Policy) -> Iterator[Problem]:
    """Yield memberships of attributes that no rule of a category policy covers."""
    for base in policy.base_policies:
        if not isinstance(base, CategoryPolicy):
            continue
        covered = {level for rule in base.levels for level in rule.includes()}
        for attribute in policy.attributes.values():
            for category, level in attribute.memberships.items():
                if level not in covered:
                    yield Problem(
                        Code.NO_CATCH_ALL,
                        f"policy `{base.name}` has no {level.value} rule:"
                        f" `{attribute.name}` in `{category}` escapes it",
                        base.mark,
                        help=f"add  levels: {{{level.value}: …}}",
                    )


def _loose_defaults(policy: Policy) -> Iterator[Problem]:
    """Yield labels whose default escapes a setting that another value falls under."""
    for extension in policy.extensions:
        for setting in extension.settings:
            for name in labels_of(setting.predicate):
                label = policy.vocabulary.labels[name]
                if escapes_by_default(setting.predicate, name, policy.vocabulary):
                    yield Problem(
                        Code.UNKNOWN_LABEL_VALUE,
                        f"a mechanism without the label `{name}` escapes"
                        f" `{setting.name}`: its default is `{label.default}`",
                        setting.mark,
                        help="choose as default the value that most settings match",
                    )
