"""The decision: every matching rule is checked, all or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from modicum.accounting import ApproxBudget, Budget, Filter, Loss, Total, Unlimited
from modicum.accounting.filters.budget_filters import fixed_figure, limit
from modicum.accounting.grid import DELTA
from modicum.accounting.losses import total_of
from modicum.core.exact import DELTA_UNIT, floor_units
from modicum.ledger.balances import Balances, charges, facts_of
from modicum.ledger.charged import charged
from modicum.ledger.events import RecordedRelease
from modicum.policy import CompiledPolicy, Rule, RuleSet


@dataclass(frozen=True, slots=True)
class RuleLoss:
    """What one rule says to a release; `modicum.ledger.amounts` puts it in numbers.

    Attributes:
        rule: The rule.
        allowed: Whether it lets the release pass.
        before: What the rule was charged before; nothing for a rule that looks at
            one release alone.
        alone: What this release adds.
        own_filter: What the rule admits; for a rule that looks at one release
            alone, only its cap on the mechanisms' own deltas is used.
        filter_name: The policy's filter.
        report_delta: The delta at which the loss is also shown, if one is known.
    """

    rule: Rule
    allowed: bool
    before: Total
    alone: Total
    own_filter: Filter
    filter_name: str
    report_delta: Fraction | None

    @property
    def together(self) -> Total:
        """What the rule would be charged in all."""
        return self.before.joined(self.alone)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the rules of a policy say to a release.

    Attributes:
        losses: One entry for each rule that it falls under, in the policy's order:
            first the rules for single releases, then those over history.
        uncovered: Names of mechanisms that no rule is about.
    """

    losses: tuple[RuleLoss, ...]
    uncovered: tuple[str, ...]

    @property
    def allowed(self) -> bool:
        """Whether every rule lets the release pass."""
        return all(loss.allowed for loss in self.losses)

    @property
    def blocking(self) -> tuple[str, ...]:
        """The ids of the rules that deny, in the policy's order."""
        return tuple(loss.rule.id for loss in self.losses if not loss.allowed)


def decide(balances: Balances, release: RecordedRelease, day: int = 0) -> Verdict:
    """Return what every matching rule says to a release.

    A release is allowed if and only if, for every rule that one of its mechanisms
    falls under, the rule's filter still holds after adding the release.

    Args:
        balances: What was charged before, under the policy to decide by.
        release: The priced release.
    """
    compiled = balances.compiled
    vocabulary = compiled.policy.vocabulary
    losses = [
        _alone(compiled, rule, total_of(charged))
        for rule, charged in charges(compiled.release_rules, release, vocabulary)
    ]
    losses += [
        over_history(balances, rule, total_of(charged))
        for rule, charged in charges(compiled.rules, release, vocabulary)
    ]
    return Verdict(tuple(losses), tuple(_uncovered(compiled, release)))


def allows(balances: Balances, release: RecordedRelease) -> bool:
    """Return whether every rule lets a release pass: `decide(...).allowed`.

    Looks only at rules that no other rule implies, and stops at the first denial.

    Args:
        balances: What was charged before, under the policy to decide by.
        release: The priced release.
    """
    compiled = balances.compiled
    return allows_alone(compiled, release) and all(
        over_history(balances, rule, alone).allowed
        for rule, alone in _constraining(
            compiled.rules, compiled.pruned.witness, release, compiled
        )
    )


def allows_alone(
    compiled: CompiledPolicy, release: RecordedRelease, *, pruned: bool = True
) -> bool:
    """Return whether every rule for single releases lets a release pass.

    Args:
        compiled: The policy.
        release: The priced release.
        pruned: Whether to look only at rules that no other rule implies.
    """
    rules = compiled.release_rules
    witness = compiled.pruned_alone.witness if pruned else None
    return all(
        _alone(compiled, rule, alone).allowed
        for rule, alone in _constraining(rules, witness, release, compiled)
    )


def _constraining(
    rules: RuleSet,
    witness: Sequence[int] | None,
    release: RecordedRelease,
    compiled: CompiledPolicy,
) -> Iterator[tuple[Rule, Total]]:
    """Yield each rule that a release falls under and no other implies, and its loss."""
    vocabulary = compiled.policy.vocabulary

    @cache
    def loss(place: int, unit: str) -> Loss:
        return charged(release.mechanisms[place], unit, vocabulary)

    for number, about in rules.finder.matching(facts_of(release, vocabulary)).items():
        if witness is None or witness[number] < 0:
            rule = rules[number]
            yield rule, total_of(loss(place, rule.unit) for place in about)


def over_history(balances: Balances, rule: Rule, alone: Total) -> RuleLoss:
    """Return what a rule says to a further loss on top of all it was charged."""
    compiled = balances.compiled
    before = balances.total(rule)
    own_filter = compiled.filter_of(rule.budget)
    return RuleLoss(
        rule=rule,
        allowed=own_filter.admits(before.joined(alone)),
        before=before,
        alone=alone,
        own_filter=own_filter,
        filter_name=compiled.policy.filter_name,
        report_delta=compiled.report_delta(rule.budget),
    )


def _alone(compiled: CompiledPolicy, rule: Rule, alone: Total) -> RuleLoss:
    """Check a rule for single releases: a batch whose parameters are fixed."""
    budget = rule.budget
    delta_cap = _whole_delta(budget)
    allowed = isinstance(budget, Unlimited) or (
        alone.units(DELTA) <= delta_cap and fixed_figure(budget, alone) <= limit(budget)
    )
    return RuleLoss(
        rule=rule,
        allowed=allowed,
        before=Total(),
        alone=alone,
        own_filter=Filter((), delta_cap, enforced=not isinstance(budget, Unlimited)),
        filter_name=compiled.policy.filter_name,
        report_delta=compiled.report_delta(rule.budget),
    )


def _whole_delta(budget: Budget) -> int:
    if isinstance(budget, ApproxBudget):
        return floor_units(budget.delta, DELTA_UNIT)
    return 0


def _uncovered(compiled: CompiledPolicy, release: RecordedRelease) -> Iterator[str]:
    finders = (compiled.rules.finder, compiled.release_rules.finder)
    facts = facts_of(release, compiled.policy.vocabulary)
    for mechanism, one in zip(release.mechanisms, facts, strict=True):
        if not any(finder.bases(one) and finder.contexts(one) for finder in finders):
            yield str(mechanism.description.get("name", "?"))
