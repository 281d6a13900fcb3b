"""Rules that history exceeds: by how much, because of what, and what would fit.

All rules are looked at, also those that others imply: once a rule is exceeded, it
implies nothing any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from modicum.accounting import INFINITE, Budget, Total
from modicum.accounting.budgets import budget_text
from modicum.accounting.grid import DELTA, coordinate_name
from modicum.accounting.losses import total_of
from modicum.core.errors import Code, Mark, Problem
from modicum.core.exact import DELTA_UNIT, LOSS_UNIT
from modicum.ledger import Balances, RecordedRelease, RuleLoss
from modicum.ledger.amounts import amounts
from modicum.ledger.balances import charges, facts_of
from modicum.ledger.decide import over_history
from modicum.policy import CompiledPolicy, Rule
from modicum.policy.rule_profile import budget_place
from modicum.workspace.explain import amount_text
from modicum.workspace.fitting import readable, smallest_budget


@dataclass(frozen=True, slots=True)
class Contributor:
    """What one release takes of a rule.

    Attributes:
        release: Its id.
        units: Its loss on the coordinate that decides, or its own delta, in ledger
            units; `INFINITE` if no bound is proven.
        share: Which part of the sum that is; None if the sum is infinite.
    """

    release: str
    units: int
    share: Fraction | None


@dataclass(frozen=True, slots=True)
class Conflict:
    """A rule that history exceeds, so that it denies whatever matches it.

    Attributes:
        loss: What the rule was charged, and what it admits.
        coordinate: What its contributors are measured by.
        contributors: The releases that it is about, largest first.
        fits: The smallest budget of the same measure that history fits in; None if
            there is none.
        mark: Where the rule's budget stands in the policy.
    """

    loss: RuleLoss
    coordinate: int
    contributors: tuple[Contributor, ...]
    fits: Budget | None
    mark: Mark | None

    @property
    def rule(self) -> Rule:
        """The rule."""
        return self.loss.rule

    @property
    def problem(self) -> Problem:
        """The conflict as a mistake of the policy: where, by what, and the remedy."""
        found = amounts(self.loss)
        spent = amount_text(found.together, found.scale)
        limit = amount_text(found.limit, found.scale)
        if self.fits is None:
            remedy = "no budget of this measure fits; leave the rule as it was"
        else:
            fits = readable(self.fits, self.loss.filter_name, self.loss.before)
            remedy = f"keep at least {budget_text(fits)} for this rule"
        return Problem(
            Code.POLICY_CONFLICT,
            f"releases already made exceed the rule {self.rule.id}",
            self.mark,
            label=f"{found.measure} is {spent} already, more than {limit}",
            notes=(f"made by {contributors_text(self.contributors, self.coordinate)}",),
            help=remedy,
        )


def conflicts(
    counted: Sequence[RecordedRelease], compiled: CompiledPolicy
) -> tuple[Conflict, ...]:
    """Return the rules over history that these releases exceed, in the policy's order.

    Args:
        counted: The releases whose loss counts.
        compiled: The policy.
    """
    balances = Balances(compiled, counted)
    exceeded = [loss for loss in charged_rules(counted, balances) if not loss.allowed]
    spent = contributors([loss.rule for loss in exceeded], counted, compiled)
    name = compiled.policy.filter_name
    return tuple(
        Conflict(
            loss,
            decisive(loss),
            shares(spent[loss.rule.id], decisive(loss)),
            smallest_budget(loss.rule.budget, name, loss.before),
            budget_place(loss.rule, compiled.policy),
        )
        for loss in exceeded
    )


def charged_rules(
    releases: Iterable[RecordedRelease], balances: Balances
) -> Iterator[RuleLoss]:
    """Yield how every rule stands that one of the releases falls under.

    Args:
        releases: The releases.
        balances: What the rules were charged.
    """
    compiled = balances.compiled
    rules: dict[str, Rule] = {}
    for release in releases:
        facts = facts_of(release, compiled.policy.vocabulary)
        rules.update((rule.id, rule) for rule, _ in compiled.rules.matching(facts))
    for identifier in sorted(rules, key=lambda one: compiled.rules.number(one) or 0):
        yield over_history(balances, rules[identifier], Total())


def decisive(loss: RuleLoss) -> int:
    """Return the coordinate that a rule stands or falls by: own deltas, or a sum."""
    total, own_filter = loss.together, loss.own_filter
    nearest = own_filter.nearest(total)
    if nearest is None or total.units(DELTA) > own_filter.delta_cap:
        return DELTA
    return nearest[0]


def contributors(
    rules: Iterable[Rule],
    releases: Iterable[RecordedRelease],
    compiled: CompiledPolicy,
) -> dict[str, list[tuple[str, Total]]]:
    """Return, by rule, what each release that falls under it is charged.

    Args:
        rules: The rules over history to look at.
        releases: The releases.
        compiled: The policy of the rules.
    """
    found: dict[str, list[tuple[str, Total]]] = {rule.id: [] for rule in rules}
    if not found:
        return found
    for release in releases:
        for rule, losses in charges(
            compiled.rules, release, compiled.policy.vocabulary
        ):
            if rule.id in found:
                found[rule.id].append((release.id, total_of(losses)))
    return found


def contributors_text(
    spent: Sequence[Contributor], coordinate: int, most: int = 5
) -> str:
    """Return the largest contributors in words.

    Args:
        spent: The contributors, largest first.
        coordinate: What they are measured by.
        most: How many of them to name.
    """
    scale = DELTA_UNIT if coordinate == DELTA else LOSS_UNIT
    named = [
        f"{one.release} ({coordinate_name(coordinate)}"
        f" {amount_text(one.units, scale)}{_percent(one.share)})"
        for one in spent[:most]
    ]
    left = len(spent) - len(named)
    return ", ".join(named) + (f" and {left} more" if left else "")


def _percent(share: Fraction | None) -> str:
    return "" if share is None else f", {share.numerator * 100 // share.denominator} %"


def shares(
    spent: Iterable[tuple[str, Total]], coordinate: int
) -> tuple[Contributor, ...]:
    """Return what releases take of a sum, the largest first.

    Args:
        spent: Ids of releases, and what each was charged.
        coordinate: The coordinate of the sum.
    """
    amounts = [(release, total.units(coordinate)) for release, total in spent]
    whole = sum(units for _, units in amounts)
    finite = whole < INFINITE
    found = [
        Contributor(
            release, units, Fraction(units, whole) if finite and whole else None
        )
        for release, units in amounts
    ]
    return tuple(sorted(found, key=lambda one: -one.units))
