"""The decision: every matching rule is checked in every cell, all or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from modicum.accounting import Total
from modicum.accounting.filters.budget import Filter
from modicum.accounting.grid import DELTA, INFINITE
from modicum.ledger.cells.axes import Space
from modicum.ledger.cells.family import Charge, Family, ReleaseCosts, Spent
from modicum.ledger.cells.partition import Integers
from modicum.ledger.cells.segments import Overlay, SegmentsThen
from modicum.ledger.cells.sums import Amounts, saturated
from modicum.ledger.decision.balances import Balances, facts_of
from modicum.ledger.decision.limits import Limits
from modicum.ledger.decision.single_release import (
    Alone,
    RuleLoss,
    allows_alone,
    remembered_alone,
)
from modicum.ledger.decision.unlocked_shares import Locked, Shares
from modicum.ledger.log.events import causes
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.policy import CompiledPolicy, Rule
from modicum.policy.predicates import holds

#: Up to this number of rules, sums are compared as whole lines; beyond it, by column.
_FEW = 64
#: More than any cell has left.
_ANYTHING = np.iinfo(np.int64).max


class _Findings(NamedTuple):
    """The decisions of rules that the same mechanisms match, before formatting.

    Attributes:
        charge: The request of the release.
        allowed: Whether every cell of every rule admits it.
        denying: By rule, how many cells do not.
        worst: By rule, the place of the cell that decides.
        before: By rule, the charge of that cell before.
        space: The space of the unit.
        overlay: The regions of the release.
        segments: The segments as they were.
        unlocked: The unlocked fraction of each cell's limits.
        locked: By place of a cell that decides, why nothing of them may have been.
    """

    charge: Charge
    allowed: bool
    denying: Integers
    worst: Integers
    before: Amounts
    space: Space
    overlay: Overlay
    segments: SegmentsThen
    unlocked: Shares
    locked: Mapping[int, Locked]

    def denied(self) -> Iterator[int]:
        """Yield the numbers of the rules that deny."""
        return (self.charge.numbers[place] for place in np.flatnonzero(self.denying))

    def rule_losses(
        self, compiled: CompiledPolicy, release: RecordedRelease
    ) -> Iterator[tuple[int, RuleLoss]]:
        """Yield the decision of each rule about the release, with its number."""
        charge = self.charge
        for place, number in enumerate(charge.numbers):
            rule, worst = compiled.rules[number], int(self.worst[place])
            box = self.segments.box(self.overlay, int(charge.places[worst]))
            share, alone = self.unlocked.at(worst), charge.alone.total(worst)
            own_filter = compiled.filter_of(rule.budget).unlocked(share)
            of_others = bool(self.denying[place]) and own_filter.admits(alone)
            yield (
                number,
                RuleLoss(
                    rule=rule,
                    allowed=not self.denying[place],
                    before=self.before.total(place),
                    alone=alone,
                    own_filter=own_filter,
                    filter_name=compiled.policy.filter_name,
                    report_delta=compiled.report_delta(rule.budget),
                    cell=self.space.text(box),
                    cells_denying=int(self.denying[place]),
                    share=share,
                    locked=self.locked.get(worst) if self.denying[place] else None,
                    undated=undated(release, rule, self.space, compiled)
                    if of_others
                    else (),
                ),
            )


#: The fields of `_Findings` from `allowed` to `before`.
_Summary: TypeAlias = tuple[bool, Integers, Integers, Amounts]


class Verdict:
    """The decision of the rules of a policy about a release.

    Attributes:
        allowed: Whether every rule allows the release, and nothing in it is unmatched.
        uncovered: Names of the mechanisms that no rule over history limits.
        unmatched: Those of them that deny the release: all, unless the policy says
            `unmatched: allow`.
    """

    def __init__(
        self,
        compiled: CompiledPolicy,
        release: RecordedRelease,
        alone: Alone,
        findings: tuple[_Findings, ...],
        uncovered: tuple[str, ...],
    ) -> None:
        self._compiled = compiled
        self._release = release
        self.uncovered = uncovered
        self.unmatched = () if compiled.policy.allows_unmatched else uncovered
        self._alone = alone
        self._findings = findings
        rules_allow = alone.allowed and all(one.allowed for one in findings)
        self.allowed = rules_allow and not self.unmatched

    @cached_property
    def losses(self) -> tuple[RuleLoss, ...]:
        """One entry for each rule that it falls under, in the policy's order.

        First the rules for single releases, then those over history.
        """
        numbered = [
            each
            for one in self._findings
            for each in one.rule_losses(self._compiled, self._release)
        ]
        numbered.sort(key=itemgetter(0))
        return (*self._alone.losses, *(loss for _, loss in numbered))

    @cached_property
    def blocking(self) -> tuple[str, ...]:
        """The ids of the rules that deny, in the policy's order."""
        if self.allowed:
            return ()
        rules = self._compiled.rules
        return (
            *(one.rule.id for one in self._alone.losses if not one.allowed),
            *map(rules.rule_id, sorted(chain(*(f.denied() for f in self._findings)))),
        )

    @property
    def causes(self) -> tuple[str, ...]:
        """What denies it, for people."""
        return causes(self.blocking, self.unmatched)

    @cached_property
    def rounded(self) -> tuple[str, ...]:
        """Units with too many cells, so that more cells are charged than are read.

        Then a rule may deny what an exact account would allow; never the reverse.
        """
        units = (one.space.unit for one in self._findings if one.overlay.rounded)
        return tuple(dict.fromkeys((*self._alone.rounded, *units)))


def decide(balances: Balances, release: RecordedRelease, day: int = 0) -> Verdict:
    """Return the decision of every matching rule about a release.

    A release is allowed if and only if, for every rule that one of its mechanisms
    matches, and every cell of the rule that these touch, the rule's filter still holds
    after adding the release; and if each of its mechanisms matches a rule over history
    with a limit, unless the policy says `unmatched: allow`.

    Args:
        balances: The charges before, under the policy to decide by.
        release: The priced release.
        day: The day on which it is decided, as an ordinal.
    """
    findings = tuple(
        _findings(balances, family, inquiry, charge)
        for family, inquiry in balances.charges_of(release, day)
        for charge in inquiry.charges
    )
    alone = remembered_alone(balances, release, day)
    uncovered = balances.uncovered(release)
    return Verdict(balances.compiled, release, alone, findings, uncovered)


def undated(
    release: RecordedRelease, rule: Rule, space: Space, compiled: CompiledPolicy
) -> tuple[str, ...]:
    """Return the mechanisms that a rule charges to every period, as they name none."""
    vocabulary = compiled.policy.vocabulary
    static = vocabulary.population.static
    conditions = (rule.predicate, *rule.settings)
    return tuple(
        str(one.description.get("name", "?"))
        for one, facts in zip(
            release.mechanisms, facts_of(release, vocabulary), strict=True
        )
        if space.charges_every_period(
            one.part, timeless=not static.isdisjoint(one.attributes)
        )
        and all(holds(predicate, facts) for predicate in conditions)
    )


def _findings(
    balances: Balances, family: Family, inquiry: ReleaseCosts, charge: Charge
) -> _Findings:
    """Return the decisions of some rules of one unit, in the cells of a release."""
    spent, limits = family.spent(inquiry, charge), balances.limits
    overlay, then = inquiry.overlay, family.segments.then()
    unlocked = balances.unlocked.pieces(family.space, inquiry, then, charge.places)
    filters = [balances.filters(charge.numbers, one) for one in unlocked.shares]
    findings = None
    if len(filters) == 1:
        findings = _at_a_glance(limits, filters[0], spent, charge)
    if findings is None:
        findings = _closely(limits, filters, spent, charge, unlocked.of_piece)
    allowed, _, worst, _ = findings
    locked = {
        place: balances.unlocked.locked(
            family.space, inquiry, then, int(charge.places[place])
        )
        for place in (() if allowed else np.unique(worst).tolist())
        if not unlocked.at(place)
    }
    return _Findings(charge, *findings, family.space, overlay, then, unlocked, locked)


def _at_a_glance(
    limits: Limits, filters: Integers, spent: Spent, charge: Charge
) -> _Summary | None:
    """Return the decisions if all rules plainly allow a release; else None.

    Most releases touch one cell of few rules, and all of these allow them.
    """
    if len(charge.places) != 1 or len(filters) > _FEW:
        return None
    none: Integers = np.zeros(len(filters), dtype=np.int64)
    before = spent.at(none)
    if not limits.admit_at_a_glance(filters, before.table + charge.alone.table):
        return None
    return True, none, none, before


def _closely(
    limits: Limits,
    filters: Sequence[Integers],
    spent: Spent,
    charge: Charge,
    of_piece: Integers | None,
) -> _Summary:
    """Return the decisions of rules in every cell that a release touches."""
    alone = saturated(charge.alone)
    if of_piece is None:
        admitted = limits.admit(filters[0], spent, alone)
    else:
        admitted = np.zeros(spent.lines.shape, dtype=np.bool_)
        for number, own in enumerate(filters):
            here = of_piece == number
            admitted[:, here] = limits.admit(own, spent.within(here), alone[here])
    allowed = bool(admitted.all())
    none: Integers = np.zeros(len(charge.numbers), dtype=np.int64)
    worst = none
    if len(charge.places) > 1:
        left = limits.left(filters, of_piece, spent, alone)
        # A denying cell precedes all allowing ones.
        denies = np.any(~admitted, axis=1, keepdims=True)
        worst = np.where(admitted & denies, _ANYTHING, left).argmin(axis=1)
    denying = none if allowed else (~admitted).sum(axis=1)
    return allowed, denying, worst, spent.at(worst)


def admits(balances: Balances, release: RecordedRelease, day: int = 0) -> bool:
    """Return whether every rule over history allows a release.

    Args:
        balances: The charges before, under the policy to decide by.
        release: The priced release.
        day: The day on which it is decided, as an ordinal.
    """
    return all(
        _findings(balances, family, inquiry, charge).allowed
        for family, inquiry in balances.charges_of(release, day)
        for charge in inquiry.charges
    )


def denied_on_top(
    balances: Balances, release: RecordedRelease, day: int = 0
) -> Iterator[RuleLoss]:
    """Yield the decisions of rules that deny a release in cells charged before.

    A cell that it alone is too much for does not count.

    Args:
        balances: The charges before, under the policy to decide by.
        release: The priced release.
        day: The day on which it is decided, as an ordinal.
    """
    for family, inquiry in balances.charges_of(release, day):
        for charge in inquiry.charges:
            charged = family.spent(inquiry, charge).charged()
            for rule, pieces in enumerate(charged):
                if not pieces.any():
                    continue
                part = charge._replace(
                    numbers=charge.numbers[rule : rule + 1],
                    rows=charge.rows[rule : rule + 1],
                    places=charge.places[pieces],
                    alone=charge.alone.taken(pieces),
                )
                found = _findings(balances, family, inquiry, part)
                if not found.allowed:
                    yield from (
                        loss
                        for _, loss in found.rule_losses(balances.compiled, release)
                    )


def verdict_over_history(balances: Balances, rule: Rule) -> RuleLoss:
    """Return the status of a rule: whether each of its cells is within its limit."""
    compiled, family = balances.compiled, balances.family(rule.unit)
    own_filter = compiled.filter_of(rule.budget)
    cells, segments = balances.cells(rule)
    place, denying = fullest_cell(own_filter, cells)
    segment = segments[place]
    return RuleLoss(
        rule=rule,
        allowed=not denying,
        before=cells.total(place),
        alone=Total(),
        own_filter=own_filter,
        filter_name=compiled.policy.filter_name,
        report_delta=compiled.report_delta(rule.budget),
        cell="" if segment is None else family.space.text(family.box(segment)),
        cells_denying=denying,
    )


def fullest_cell(own: Filter, cells: Amounts) -> tuple[int, int]:
    """Return the first of the fullest cells, and how many are over the limit.

    Args:
        own: The limit.
        cells: The charge of each cell.
    """
    units = saturated(cells)
    low, high = _fullness_bounds(own, units)
    # Fractions are slow: only cells that may be the fullest are compared exactly.
    near = np.flatnonzero(high >= low.max()).tolist()
    totals = [cells.total(one) for one in near]
    exact = {total: own.fullness(total) for total in dict.fromkeys(totals)}
    shares = [exact[total] for total in totals]
    return near[shares.index(max(shares))], len(units) - _admitted(own, units)


def _admitted(own: Filter, units: Integers) -> int:
    """Return how many of some sums a limit admits, as `Filter.admits` does."""
    if not own.enforced:
        return len(units)
    within = [units[:, index] <= min(cap, INFINITE - 1) for index, cap in own.caps]
    every = (np.all if own.every else np.any)(within, axis=0) if within else own.every
    return int(np.count_nonzero(every & (units[:, DELTA] <= own.delta_cap)))


def _fullness_bounds(own: Filter, units: Integers) -> tuple[Integers, Integers]:
    """Return a lower and an upper bound of `Filter.fullness` of each sum, in 2**-30.

    `INFINITE` means infinite as a lower bound, and unknown as an upper one.
    """
    lows, highs = [], []
    for index, cap in own.caps:
        taken = units[:, index]
        if cap <= 0:
            low = high = np.where(taken == 0, 0, INFINITE)
        else:
            # Both lose the bits that the cap has beyond 31.
            shift = max(cap.bit_length() - 31, 0)
            small, most = np.minimum(taken >> shift, 1 << 31), cap >> shift
            low = (small << 30) // (most + 1)
            high = np.where(small < 1 << 31, ((small + 1 << 30) // most) + 1, INFINITE)
        infinite = taken >= INFINITE
        lows.append(np.where(infinite, INFINITE, low))
        highs.append(np.where(infinite, INFINITE, high))
    if not own.caps:
        lows = highs = [np.zeros(len(units), np.int64)]
    decides = np.max if own.every else np.min
    low, high = decides(lows, axis=0), decides(highs, axis=0)
    beyond = units[:, DELTA] > own.delta_cap
    return np.where(beyond, INFINITE, low), np.where(beyond, INFINITE, high)


def allows(balances: Balances, release: RecordedRelease, day: int = 0) -> bool:
    """Return whether every binding rule allows a release, and it is not unmatched.

    That is `decide(...).allowed`, unless a unit has more segments than are
    distinguished, or distant periods: then an implied rule may deny alone, since it is
    charged for more than was read.

    Args:
        balances: The charges before, under the policy to decide by.
        release: The priced release.
        day: The day on which it is decided, as an ordinal.
    """
    witness = balances.compiled.pruned.witness
    # Rules are pruned by their final limits, not by unlocked ones.
    pruned = balances.unlocked.whole
    denied = (
        number
        for family, inquiry in balances.charges_of(release, day)
        for charge in inquiry.charges
        for number in _findings(balances, family, inquiry, charge).denied()
    )
    implied = (pruned and witness[number] >= 0 for number in denied)
    limited = not balances.unmatched(release)
    return limited and allows_alone(balances, release, day) and all(implied)
