"""The compiler: base policies times extensions give rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from modicum.accounting import Budget, Filter, filter_for, refuse_unproven
from modicum.accounting.budgets import measure
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.core.reader import Problems, nearest, place
from modicum.core.yaml_reader import read_document
from modicum.policy.budget_maps import BudgetMap, Table, To, apply_map
from modicum.policy.document.include import refuse_include
from modicum.policy.model import (
    AttributePolicy,
    BasePolicy,
    CategoryPolicy,
    CustomPolicy,
    Extension,
    Policy,
)
from modicum.policy.parser import parse_policy
from modicum.policy.predicates import ReadsAny
from modicum.policy.rules import BaseRule, RuleSet, Stage
from modicum.release.memo import Memo

if TYPE_CHECKING:
    from modicum.policy.pruning.result import Pruned

#: A policy that compiles to more rules than this is refused.
RULES_MAX: Final = 250_000
# A number may have more digits than Python writes.
_COUNTABLE: Final = 10**12


def refuse_too_many(policy: Policy) -> None:
    """Refuse a policy with too many rules, over history or on each release alone.

    Raises:
        InputError: If it has more than `RULES_MAX` of either.
    """
    contexts = prod(max(1, len(one.settings)) for one in policy.extensions)
    over_history = _number(policy.base_policies, policy) * contexts
    rules = max(over_history, _number(policy.per_release, policy))
    if rules > RULES_MAX:
        shown = str(rules) if rules < _COUNTABLE else f"over {_COUNTABLE}"
        raise InputError(
            Problem(
                Code.TOO_LARGE,
                f"the policy compiles to {shown} rules, more than {RULES_MAX}",
                help="use fewer attributes, categories, levels, or settings of"
                " extensions",
            )
        )


def _number(bases: Iterable[BasePolicy], policy: Policy) -> int:
    """Return how many rules base policies have before the extensions."""
    return sum(_rules_of(base, policy) for base in bases)


def _rules_of(base: BasePolicy, policy: Policy) -> int:
    match base:
        case CustomPolicy():
            return 1
        case AttributePolicy():
            return len(policy.attributes)
        case CategoryPolicy():
            return len(policy.categories) * len(base.levels)
        case _:
            assert_never(base)


class CompiledPolicy(Struct, frozen=True, dict=True):
    """A policy and its rules.

    Attributes:
        policy: The policy as written.
        rules: Limits on everything released, in the order of the file.
        release_rules: Limits on each release alone.
        base_rules: How many rules there were before the extensions, by base policy.
    """

    policy: Policy
    rules: RuleSet
    release_rules: RuleSet
    base_rules: Mapping[str, int]

    @cached_property
    def warnings(self) -> tuple[Problem, ...]:
        """What is allowed but probably not meant."""
        from modicum.policy.lint.warnings import warnings_of

        return tuple(warnings_of(self.policy, self.rules))

    @cached_property
    def diagrams(self) -> Memo[object, Any]:
        """Diagrams of its rules, by what was chosen: they take a while to draw."""
        return Memo(64)

    def refuse_mistakes(self) -> None:
        """Refuse likely mistakes before the policy is activated.

        A policy already in a ledger is not checked again: a mistake proven later must
        not make history unreadable.

        Raises:
            InputError: If there is no rule at all, a predicate can never hold, a budget
                allows nothing, the default of a label is not its strictest reading, or
                a label has the name of a check.
        """
        from modicum.policy.lint.errors import refuse_mistakes

        refuse_mistakes(self.policy, self.rules, self.release_rules)

    def filter_of(self, budget: Budget) -> Filter:
        """Return the filter of a budget under the policy."""
        return filter_for(budget, self.policy.filter_name)

    def report_delta(self, budget: Budget) -> Fraction | None:
        """Return the delta at which a loss is also shown, if one is known."""
        delta = getattr(budget, "delta", None)
        if isinstance(delta, Fraction):
            return delta
        shown = self.policy.report_delta
        return Fraction(shown) if shown is not None else None

    @cached_property
    def pruned(self) -> Pruned:
        """Which rules over history can never be the only one to deny, and why."""
        from modicum.policy.pruning.result import prune

        order = {
            unit: frozenset(one for one in above if self._no_sooner(one, unit))
            for unit, above in self._prunes_units.items()
        }
        return prune(self.rules, order, self.filter_of, self.policy.vocabulary)

    @cached_property
    def pruned_alone(self) -> Pruned:
        """The same for the rules on each release alone."""
        from modicum.policy.pruning.result import Pruned, prune_alone

        rules = self.release_rules
        found = prune_alone(rules, self._prunes_units, self.policy.vocabulary)
        # What denies the same releases need not limit what one identity reserves.
        days = {base.name: base.requester_days for base in self.policy.per_release}
        return Pruned(
            [
                witness if days[base.scope.partition(":")[0]] is None else -1
                for base, witness in zip(rules.bases, found.witness, strict=True)
            ]
        )

    def _no_sooner(self, wide: str, unit: str) -> bool:
        """Return whether a larger unit may never have used more of its limits.

        If user groups rotate, a unit that stays in none has all of its limits from the
        start.
        """
        from modicum.policy.user_groups import grouped_through

        if self.policy.rotation is None:
            return True
        turns = [
            bool(grouped_through(one, self.policy.vocabulary)) for one in (wide, unit)
        ]
        return turns[0] >= turns[1]

    @cached_property
    def requester_limits(self) -> Mapping[int, CompiledPolicy]:
        """By number of days, the rules on what one identity reserves in them.

        They are those of `per_release`, as rules over what is summed.
        """
        found: dict[int, list[BasePolicy]] = {}
        for base in self.policy.per_release:
            if base.requester_days is not None:
                found.setdefault(base.requester_days, []).append(base)
        alone = replace(self.policy, per_release=(), extensions=(), rotation=None)
        return {
            days: compile_policy(replace(alone, base_policies=tuple(bases)))
            for days, bases in found.items()
        }

    @property
    def _prunes_units(self) -> Mapping[str, frozenset[str]]:
        """For each unit, those whose losses are never below its own.

        Between units that holds only for losses proven for any change of the rows of
        one instance: adding a whole user may cost less than replacing one day of hers.
        """
        vocabulary = self.policy.vocabulary
        return {unit: vocabulary.bounding(unit) | {unit} for unit in vocabulary.units}


def compile_text(data: bytes, file: str) -> CompiledPolicy:
    """Return the compiled policy of a text, with or without semantic mistakes.

    Raises:
        InputError: With every mistake found, or if it includes other files.
    """
    node = read_document(data, file)
    refuse_include(node)
    return compile_policy(parse_policy(node, data.decode("utf-8-sig")))


@lru_cache(maxsize=4)
def compile_stored(text: str, file: str) -> CompiledPolicy:
    """Return the compiled policy of a text of a ledger; the last ones are kept.

    Several readers of a ledger compile its active policy, and one of them decides.
    """
    return compile_text(text.encode("utf-8"), file)


def compile_policy(policy: Policy) -> CompiledPolicy:
    """Return the rules of a policy.

    Raises:
        InputError: If it has too many rules, a risk level has no budget,
            a budget map is undefined at a value it is applied to, or the filter is not
            proven for a budget.
    """
    refuse_too_many(policy)
    found = Problems()
    base_rules: list[BaseRule] = []
    counts: dict[str, int] = {}
    for base in policy.base_policies:
        with found.guard():
            own = list(_base_rules(base, policy, Stage.HISTORY))
            base_rules.extend(own)
            counts[base.name] = len(own)
    single_rules: list[BaseRule] = []
    for base in policy.per_release:
        with found.guard():
            own = list(_base_rules(base, policy, Stage.RELEASE))
            single_rules.extend(own)
            if base.requester_days is not None:  # A filter sums the releases.
                for rule in own:
                    name = policy.filter_name
                    _refuse_unproven(rule.budget, name, rule.scope, rule.mark)
    with found.guard():
        _refuse_mixed_tables(policy, base_rules)
    rules = _rule_set(base_rules, policy.extensions, found)
    release_rules = _rule_set(single_rules, (), found)
    found.raise_any()
    for budget, rule_id, mark in rules.budgets():
        with found.guard():
            _refuse_unproven(budget, policy.filter_name, rule_id, mark)
    found.raise_any()
    return CompiledPolicy(policy, rules, release_rules, counts)


def _rule_set(
    bases: Sequence[BaseRule], extensions: tuple[Extension, ...], found: Problems
) -> RuleSet:
    """Return the rules of base rules; each distinct budget is extended once."""
    known: dict[Budget, Budget] = {}
    budgets: dict[Budget, tuple[Budget, ...]] = {}
    for base in bases:
        if base.budget not in budgets:
            row = _extended(base, extensions, found)
            budgets[base.budget] = tuple(known.setdefault(one, one) for one in row)
    return RuleSet(bases, [extension.settings for extension in extensions], budgets)


def _extended(
    base: BaseRule, extensions: tuple[Extension, ...], found: Problems
) -> list[Budget]:
    """Return a base rule's budget in every context, in the order of the contexts."""
    row = [(base.scope, base.budget)]
    for extension in extensions:
        longer: list[tuple[str, Budget]] = []
        for reached_by, budget in row:
            for setting in extension.settings:
                identifier = f"{reached_by} @{setting.name}"
                with found.guard():
                    changed = apply_map(setting.budget_map, budget, identifier)
                    longer.append((identifier, changed))
        row = longer
    return [budget for _, budget in row]


def _refuse_unproven(
    budget: Budget, filter_name: str, rule_id: str, mark: Mark | None
) -> None:
    """Refuse a budget for which the policy's filter is not proven."""
    try:
        refuse_unproven(budget, filter_name)
    except InputError as error:
        problem = error.problems[0]
        message = f"{problem.message} (rule {rule_id})"
        raise InputError(replace(problem, message=message, mark=mark)) from error


def _refuse_mixed_tables(policy: Policy, rules: list[BaseRule]) -> None:
    """Refuse a table of numbers that would act on budgets of several measures."""
    for base in (*policy.base_policies, *policy.per_release):
        if isinstance(base, CategoryPolicy):
            own = {_family(budget): base.mark for budget in base.budgets.values()}
            for budget_map in base.levels.values():
                _refuse_mixed(budget_map, own)
    families = {_family(rule.budget): rule.mark for rule in reversed(rules)}
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
                f"a table would apply to budgets in {' and in '.join(sorted(numbers))}",
                budget_map.mark,
                notes=tuple(
                    f"{name}: {place(mark)}" for name, mark in sorted(numbers.items())
                ),
                help="write these budgets in one measure, or use `scale`",
            )
        )


def _base_rules(base: BasePolicy, policy: Policy, stage: Stage) -> Iterator[BaseRule]:
    match base:
        case CustomPolicy():
            yield BaseRule(
                stage, base.name, base.unit, base.predicate, base.budget, base.mark
            )
        case AttributePolicy():
            for attribute in policy.attributes.values():
                budget = base.override.get(attribute.name)
                if budget is None:
                    budget = _by_risk(
                        base, attribute.risk, attribute.name, attribute.mark
                    )
                yield BaseRule(
                    stage,
                    f"{base.name}:{attribute.name}",
                    base.unit,
                    ReadsAny(frozenset({attribute.name})),
                    budget,
                    base.mark,
                )
        case CategoryPolicy():
            yield from _category_rules(base, policy, stage)
        case _:
            assert_never(base)


def _category_rules(
    base: CategoryPolicy, policy: Policy, stage: Stage
) -> Iterator[BaseRule]:
    for category, risk in policy.categories.items():
        budget = _by_risk(base, risk, category, None)
        for level, budget_map in base.levels.items():
            scope = f"{base.name}:{category}/{level.value}"
            covered = level.includes()
            attributes = frozenset(
                attribute.name
                for attribute in policy.attributes.values()
                if attribute.level(category) in covered
            )
            changed = apply_map(budget_map, budget, scope)
            predicate = ReadsAny(attributes)
            yield BaseRule(stage, scope, base.unit, predicate, changed, base.mark)


def _by_risk(
    base: AttributePolicy | CategoryPolicy, risk: str, of: str, mark: Mark | None
) -> Budget:
    """Return the budget of a risk level; `mark` is where the level is stated."""
    if risk in base.budgets:
        return base.budgets[risk]
    message = f"policy `{base.name}` has no budget for risk level `{risk}` (`{of}`)"
    near = nearest(risk, base.budgets)
    if not near:
        problem = Problem(
            Code.NO_BUDGET, message, base.budget_mark, help=f"add  {risk}: …"
        )
        raise InputError(problem)
    name = near.split('"')[1]
    raise InputError(
        Problem(
            Code.NO_BUDGET,
            message,
            mark or base.budget_mark,
            label=near,
            notes=(f"its budgets are at {place(base.budget_mark)}",),
            help=f"write  {name}  instead of  {risk}",
        )
    )
