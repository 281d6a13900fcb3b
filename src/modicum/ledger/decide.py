"""The decision: every matching rule is checked, all or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from modicum.accounting import ApproxBudget, Budget, Filter, Total, Unlimited
from modicum.accounting.filters.budget_filters import fixed_figure, limit
from modicum.accounting.grid import DELTA
from modicum.accounting.losses import total_of
from modicum.core.exact import DELTA_UNIT, floor_units
from modicum.ledger.balances import Balances, charges, facts_of
from modicum.ledger.events import RecordedRelease
from modicum.policy import CompiledPolicy, Rule
from modicum.policy.match import rule_holds


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


def decide(balances: Balances, release: RecordedRelease) -> Verdict:
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


def over_history(balances: Balances, rule: Rule, alone: Total) -> RuleLoss:
    """Return what a rule says to a further loss on top of all it was charged."""
    compiled = balances.compiled
    before = balances.total(rule)
    own_filter = compiled.filter_of(rule)
    return RuleLoss(
        rule=rule,
        allowed=own_filter.admits(before.joined(alone)),
        before=before,
        alone=alone,
        own_filter=own_filter,
        filter_name=compiled.policy.filter_name,
        report_delta=compiled.report_delta(rule),
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
        report_delta=compiled.report_delta(rule),
    )


def _whole_delta(budget: Budget) -> int:
    if isinstance(budget, ApproxBudget):
        return floor_units(budget.delta, DELTA_UNIT)
    return 0


def _uncovered(compiled: CompiledPolicy, release: RecordedRelease) -> Iterator[str]:
    rules = (*compiled.release_rules, *compiled.rules)
    facts = facts_of(release, compiled.policy.vocabulary)
    for mechanism, one in zip(release.mechanisms, facts, strict=True):
        if not any(rule_holds(rule, one) for rule in rules):
            yield str(mechanism.description.get("name", "?"))
