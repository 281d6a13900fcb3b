"""Rules that history exceeds: by how much, by which releases, and what would fit.

All rules are checked, including implied ones: an exceeded rule no longer implies any
other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from modicum.accounting import Budget, Total, filter_for
from modicum.accounting.budgets import budget_text
from modicum.api.local.explanation.budget_fit import readable, smallest_budget
from modicum.api.local.explanation.charges import cells_of, fullest, spent_in_each
from modicum.api.local.explanation.contributions import (
    Contributor,
    Spent,
    contributors_text,
    decisive,
    shares,
    undated_text,
)
from modicum.api.local.explanation.denial_text import amount_text
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.ledger import Balances, RecordedRelease, RuleLoss
from modicum.ledger.decision.amounts import amounts
from modicum.ledger.decision.balances import ReservedRelease, facts_of
from modicum.ledger.decision.decide import verdict_over_history
from modicum.ledger.decision.departures import Departure
from modicum.ledger.replay.past_names import departed
from modicum.ledger.state.past_filters import FilterChange, filter_change
from modicum.ledger.state.past_vocabulary import (
    Redefined,
    dropped_attributes,
    redefined_units,
)
from modicum.ledger.state.state import ActivePolicy
from modicum.policy import CompiledPolicy, Rule
from modicum.policy.rule_profile import budget_place

#: Maximum number of balances listed for a redefined unit.
_EFFECTS_MAX = 5


@dataclass(frozen=True, slots=True)
class Conflict:
    """A rule that history exceeds: it denies matching releases, in the cells over it.

    Attributes:
        loss: The loss of the rule in its fullest cell, with its limit.
        coordinate: The measure of its contributors.
        contributors: The releases that were charged in that cell, largest first.
        fits: The smallest budget of the same measure that fits the charge of every
            cell; None if there is none.
        mark: The position of the rule's budget in the policy.
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
        """The conflict as a policy mistake: position, contributors, and remedy."""
        found = amounts(self.loss)
        spent = amount_text(found.together, found.scale)
        limit = amount_text(found.limit, found.scale)
        where = f", in {self.loss.cell}" if self.loss.cell else ""
        made_by = contributors_text(self.contributors, self.coordinate)
        cause = undated_text(self.contributors)
        if self.fits is None:
            remedy = "no budget of this measure fits; leave the rule as it was"
        else:
            fits = readable(self.fits, self.loss.filter_name, self.loss.before)
            remedy = f"keep at least {budget_text(fits)} for this rule"
        return Problem(
            Code.POLICY_CONFLICT,
            f"releases already made exceed the rule {self.rule.id}",
            self.mark,
            label=f"{found.measure} is already {spent}, more than {limit}{where}",
            notes=(*([cause] if cause else ()), f"made by {made_by}"),
            help=remedy,
        )


def conflicts(
    history: Iterable[ReservedRelease], compiled: CompiledPolicy
) -> tuple[Conflict, ...]:
    """Return the rules over history that a history exceeds, in the policy's order."""
    balances = Balances(compiled, history)
    counted = _Counted(history)
    exceeded = [loss for loss in charged_rules(counted, balances) if not loss.allowed]
    worst = [fullest(cells_of(balances, one.rule), compiled) for one in exceeded]
    spent = spent_in_each(worst, history, compiled)
    return tuple(
        _conflict(balances, replace(loss, before=cell.total, cell=cell.text), own)
        for loss, cell, own in zip(exceeded, worst, spent, strict=True)
    )


def _conflict(balances: Balances, loss: RuleLoss, spent: Iterable[Spent]) -> Conflict:
    compiled, coordinate = balances.compiled, decisive(loss)
    return Conflict(
        loss,
        coordinate,
        shares(spent, coordinate),
        _smallest_for_all(balances, loss.rule),
        budget_place(loss.rule, compiled.policy),
    )


def _smallest_for_all(balances: Balances, rule: Rule) -> Budget | None:
    """Return the smallest budget that fits the charge of every cell."""
    compiled = balances.compiled
    name, found = compiled.policy.filter_name, rule.budget
    for total in balances.cells(rule)[0].totals():
        if not _fits(found, name, total):
            larger = smallest_budget(found, name, total)
            if larger is None:
                return None
            found = larger
    return found


def _fits(budget: Budget, name: str, total: Total) -> bool:
    try:
        return filter_for(budget, name).admits(total)
    except InputError:  # The filter is not proven for it.
        return False


class _Counted(Iterable[RecordedRelease]):
    """The releases of a history whose loss counts."""

    def __init__(self, history: Iterable[ReservedRelease]) -> None:
        self._history = history

    def __iter__(self) -> Iterator[RecordedRelease]:
        return (one.release for one in self._history if one.counts)


def charged_rules(
    releases: Iterable[RecordedRelease], balances: Balances
) -> Iterator[RuleLoss]:
    """Yield the loss of every rule that matches one of the releases."""
    compiled = balances.compiled
    rules: dict[str, Rule] = {}
    for release in releases:
        facts = facts_of(release, compiled.policy.vocabulary)
        rules.update((rule.id, rule) for rule, _ in compiled.rules.matching(facts))
    for identifier in sorted(rules, key=lambda one: compiled.rules.number(one) or 0):
        yield verdict_over_history(balances, rules[identifier])


#: Returns all releases, re-keyed to one policy.
_History: TypeAlias = Callable[[], Iterable[ReservedRelease]]


def _redefinition_problems(
    redefined: Sequence[Redefined],
    *policies: tuple[CompiledPolicy, _History],
) -> Iterator[Problem]:
    """Yield the redefined units of a policy, with the effect on balances.

    Args:
        redefined: The units.
        policies: The replaced policy and the new one, each with its history.
    """
    if not redefined:
        return
    before, now = (
        {
            loss.rule.id: loss
            for loss in charged_rules(
                _Counted(history()), Balances(compiled, history())
            )
        }
        for compiled, history in policies
    )
    for one in redefined:
        effect = [
            _effect(before.get(name), loss)
            for name, loss in now.items()
            if loss.rule.scope in one.rules
        ]
        more = len(effect) - _EFFECTS_MAX
        if more > 0:
            effect[_EFFECTS_MAX:] = [f"and {more} more rules"]
        yield one.problem(effect=effect)


class Questions(NamedTuple):
    """What a change of the policy does to the meaning of past releases.

    Attributes:
        names: The names by which each is accepted, in the order of the log.
        problems: Those that are not accepted.
    """

    names: tuple[str, ...]
    problems: tuple[Problem, ...]


class Past(NamedTuple):
    """The policies of a ledger, and the releases that count as spent.

    Attributes:
        policies: The policies that were activated, oldest first.
        entries: The entries of the releases, in order.
        releases: The releases as recorded, each with its entry; gone through only if
            needed.
    """

    policies: Sequence[ActivePolicy]
    entries: Sequence[int]
    releases: Iterable[tuple[RecordedRelease, int]]


def questions(
    past: Past,
    replaced: tuple[CompiledPolicy, _History],
    new: tuple[CompiledPolicy, _History],
    accept: Collection[str] = (),
) -> Questions:
    """Return what must be accepted before a policy replaces the active one.

    Args:
        past: What the ledger holds.
        replaced: The last of the past policies, and what returns all releases, re-keyed
            to it.
        new: The policy that is to be activated, likewise.
        accept: The names that are accepted.
    """
    policies, counted, recorded = past
    successor, history = new
    redefined = redefined_units(policies, counted, successor, _Counted(history()))
    dropped = dropped_attributes(
        policies, _Counted(history()), successor.policy.vocabulary
    )
    changed = filter_change(policies, counted, successor)
    others: list[Departure | FilterChange] = [
        *departed(policies, recorded, successor),
        *([changed] if changed else []),
    ]
    left = [one for one in redefined if one.name not in accept]
    return Questions(
        (*dropped, *(one.name for one in (*redefined, *others))),
        (
            *_redefinition_problems(left, replaced, new),
            *(problem for name, problem in dropped.items() if name not in accept),
            *(one.problem for one in others if one.name not in accept),
        ),
    )


def _effect(before: RuleLoss | None, now: RuleLoss) -> str:
    """Return the balance of a rule under two policies, as text."""
    own = amounts(now)
    spent, limit = (amount_text(one, own.scale) for one in (own.together, own.limit))
    was = "nothing was charged to it"
    if before is not None:
        old = amounts(before)
        was = f"{old.measure} is {amount_text(old.together, old.scale)}"
    return f"{now.rule.id}: {was} before; {own.measure} would be {spent}, of {limit}"
