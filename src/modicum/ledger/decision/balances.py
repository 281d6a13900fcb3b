"""Balances: the charge of every cell of one policy. A fold of the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from modicum.accounting import Loss, Total
from modicum.ledger.cells.axes import Region, Space, space_of
from modicum.ledger.cells.family import Cost, Family, MechanismCost, ReleaseCosts
from modicum.ledger.cells.partition import Integers
from modicum.ledger.cells.segments import SEGMENTS_MAX
from modicum.ledger.cells.sums import Amounts
from modicum.ledger.decision.charges import charged, moved
from modicum.ledger.decision.limits import Limits, budget_of
from modicum.ledger.decision.rule_matching import Matched, Matching, facts_of
from modicum.ledger.decision.unlocked_shares import WHOLE, Unlocked
from modicum.ledger.log.codec import likeness
from modicum.ledger.log.recorded_release import RecordedMechanism, RecordedRelease
from modicum.ledger.state.rounds import Planning
from modicum.policy import CompiledPolicy, Rule, RuleSet
from modicum.release import Part, Vocabulary
from modicum.release.memo import Memo

__all__ = [
    "Balances",
    "Charges",
    "ReservedRelease",
    "charges",
    "facts_of",
    "reserved_releases",
]

#: Maximum number of cached readings and charges.
REMEMBERED_MAX = 10_000


class ReservedRelease(NamedTuple):
    """A release as recorded in the ledger.

    Attributes:
        release: The release.
        day: The day of its event, as an ordinal.
        counts: Whether its loss is spent; if not, it only cuts segments.
    """

    release: RecordedRelease
    day: int = 0
    counts: bool = True


def reserved_releases(
    releases: Iterable[RecordedRelease], day: int = 0
) -> Iterator[ReservedRelease]:
    """Yield releases as if all were recorded on one day, and all count."""
    return (ReservedRelease(release, day) for release in releases)


class Charges(NamedTuple):
    """The requests of a release to the rules of one unit.

    Attributes:
        family: The cells of the unit.
        inquiry: The release in the family's numbers.
    """

    family: Family
    inquiry: ReleaseCosts


class Balances:
    """The exact sum charged to each cell of each rule, under one policy.

    Mutable, and owned by one caller.

    Args:
        compiled: The policy.
        history: All accepted releases, in the order of the log.
        segments_max: How many segments the instances of a unit are divided into at
            most; beyond, releases are charged to whole segments.
        planning: Rounds and user groups up to the same head, updated by the caller.
            Empty by default.

    Attributes:
        compiled: The policy.
        limits: The limits of its rules.
        unlocked: The unlocked fractions.
    """

    def __init__(
        self,
        compiled: CompiledPolicy,
        history: Iterable[ReservedRelease] = (),
        *,
        segments_max: int = SEGMENTS_MAX,
        planning: Planning | None = None,
    ) -> None:
        self.compiled = compiled
        self.limits = Limits(compiled)
        self.unlocked = Unlocked(compiled.policy.rotation, planning or Planning())
        self._segments_max = segments_max
        self._vocabulary = compiled.policy.vocabulary
        self._matching = Matching(compiled)
        self._families = {
            unit: Family(space_of(unit, self._vocabulary), segments_max)
            for unit in self._vocabulary.units
        }
        #: Cache of decisions of single-release rules, used by `decide`.
        self.alone: dict[tuple[object, ...], Any] = {}
        self._readings: Memo[object, MechanismCost] = Memo(REMEMBERED_MAX)
        self._costs: Memo[object, Cost] = Memo(REMEMBERED_MAX)
        #: Costs of mechanisms, by their bytes; this cache avoids most of the work.
        self._known: Memo[object, tuple[Cost, bool]] = Memo(REMEMBERED_MAX)
        self._regions: dict[object, tuple[Region, ...]] = {}
        #: The last request: a decision is mostly followed by a charge.
        self._last: tuple[RecordedRelease, int, tuple[Charges, ...]] | None = None
        self._filters: dict[object, Integers] = {}
        for one in history:
            if one.counts:
                self.charge(one.release, one.day)
            else:
                self.note(one.release, one.day)

    @property
    def rounded(self) -> tuple[str, ...]:
        """Units for which something was charged to more than it reads."""
        return tuple(unit for unit, one in self._families.items() if one.rounded)

    def dump(self) -> dict[str, bytes]:
        """Return all cells as bytes, by unit; equal balances give equal bytes."""
        from modicum.ledger.cells.codec import dump

        rules = self.compiled.rules
        return {unit: dump(one, rules) for unit, one in self._families.items()}

    @classmethod
    def restored(
        cls,
        compiled: CompiledPolicy,
        dumped: Mapping[str, bytes],
        planning: Planning | None = None,
    ) -> Balances:
        """Return the balances that were dumped under the same policy.

        Args:
            compiled: The policy.
            dumped: The result of `dump`.
            planning: Rounds and user groups up to the same head.

        Raises:
            ValueError: If that cannot be.
        """
        from modicum.ledger.cells.codec import restore

        balances = cls(compiled, planning=planning)
        if list(dumped) != list(balances._families):
            raise ValueError("the cells are of other units")
        for unit, family in balances._families.items():
            restore(family, compiled.rules, dumped[unit])
        return balances

    def copied(self, dumped: Mapping[str, bytes] | None = None) -> Balances:
        """Return a mutable copy of the balances, with the same rounds and groups.

        Args:
            dumped: The present result of `dump`, if available.
        """
        found = Balances.restored(self.compiled, dumped or self.dump())
        found.unlocked = self.unlocked
        return found

    def family(self, unit: str) -> Family:
        """Return the cells of a unit."""
        return self._families[unit]

    def filters(self, numbers: tuple[int, ...], share: Fraction = WHOLE) -> Integers:
        """Return the numbers, in `limits`, of the filters of rules over history."""
        # A share is slow to look up; mostly there is but one.
        key = numbers if share is WHOLE else (numbers, share)
        found = self._filters.get(key)
        if found is None:
            budgets = (budget_of(self.compiled, one) for one in numbers)
            places = [self.limits.place(budget, share) for budget in budgets]
            if len(self._filters) >= REMEMBERED_MAX:
                self._filters.clear()
            found = np.array(places, dtype=np.int64)
            self._filters[key] = found
        return found

    def cells(self, rule: Rule) -> tuple[Amounts, list[int | None]]:
        """Return the charge of each cell of a rule, and its segment.

        Cells without a charge are combined into one, without a segment.
        """
        number = self.compiled.rules.number(rule.id)
        assert number is not None
        return self._families[rule.unit].cells(number)

    def total(self, rule: Rule) -> Total:
        """Return the charge of a rule with only one cell."""
        (found,) = self.cells(rule)[0].totals()
        return found

    def charges_of(self, release: RecordedRelease, day: int) -> tuple[Charges, ...]:
        """Return the requests of a release to the rules over history, by unit."""
        last = self._last
        if last is None or last[0] is not release or last[1] != day:
            matched = self._matching.of(release).over_history
            charges = self._charges(matched, self._families, release, day)
            last = self._last = release, day, charges
        return last[2]

    def costs_of(
        self, release: RecordedRelease, day: int
    ) -> Iterator[tuple[Matched, tuple[MechanismCost, ...]]]:
        """Yield the rules over history that match a release, and its mechanisms' costs.

        Args:
            release: The release.
            day: The day of its event, as an ordinal.
        """
        for matched in self._matching.of(release).over_history:
            each = (self._reading(one, matched.unit, day) for one in release.mechanisms)
            yield matched, tuple(each)

    def rules_of(self, release: RecordedRelease) -> Iterator[int]:
        """Yield the numbers of the rules over history that a release falls under."""
        for _, rules in self._matching.of(release).over_history:
            for _, numbers in rules:
                yield from numbers

    def uncovered(self, release: RecordedRelease) -> tuple[str, ...]:
        """Return the names of the mechanisms that no rule over history limits."""
        return tuple(
            str(release.mechanisms[place].description.get("name", "?"))
            for place in self._matching.of(release).uncovered
        )

    def unmatched(self, release: RecordedRelease) -> tuple[str, ...]:
        """Return the mechanisms because of which the policy denies a release.

        They are the uncovered ones, unless it says `unmatched: allow`.
        """
        allowed = self.compiled.policy.allows_unmatched
        return () if allowed else self.uncovered(release)

    def single_release_rules(
        self, release: RecordedRelease, day: int
    ) -> tuple[object, ...]:
        """Return all that rules for single releases look at, as objects.

        Equal releases give the same objects, as long as they are remembered.
        """
        matched = self._matching.of(release).alone
        readings = [
            self._reading(one, unit, day)
            for unit, _ in matched
            for one in release.mechanisms
        ]
        return matched, *readings

    def single_release_mechanisms(
        self, release: RecordedRelease
    ) -> Mapping[int, tuple[int, ...]]:
        """Return by single-release rule the positions of the mechanisms it matches."""
        return {
            number: about
            for one in self._matching.of(release).alone
            for about, numbers in one.rules
            for number in numbers
        }

    def single_release_costs(
        self, release: RecordedRelease, day: int
    ) -> tuple[Charges, ...]:
        """Return the requests of a release to the single-release rules, by unit."""
        matched = self._matching.of(release).alone
        fresh = {
            one.unit: Family(self._families[one.unit].space, self._segments_max)
            for one in matched
        }
        return self._charges(matched, fresh, release, day)

    def charge(self, release: RecordedRelease, day: int = 0) -> None:
        """Charge a release to every cell that it touches.

        Args:
            release: The release.
            day: The day of its event, as an ordinal.
        """
        charges, self._last = self.charges_of(release, day), None
        for family, inquiry in charges:
            family.charge(inquiry)

    def take_back(self, release: RecordedRelease, day: int = 0) -> None:
        """Undo `charge` for a release that was canceled before it started.

        Raises:
            InvariantError: If it was never charged.
        """
        charges, self._last = self.charges_of(release, day), None
        for family, inquiry in charges:
            family.take_back(inquiry)

    def note(self, release: RecordedRelease, day: int = 0) -> None:
        """Cut segments as `charge` would, and charge nothing.

        So balances do not depend on whether a release was canceled before or after they
        were built.
        """
        self._last = None
        matched = self._matching.of(release).over_history
        for unit, _ in matched:
            family = self._families[unit]
            readings = [self._reading(one, unit, day) for one in release.mechanisms]
            family.note([region for one in readings for region in one.regions])

    def _charges(
        self,
        matched: tuple[Matched, ...],
        families: dict[str, Family],
        release: RecordedRelease,
        day: int,
    ) -> tuple[Charges, ...]:
        found = []
        for unit, rules in matched:
            readings = [self._reading(one, unit, day) for one in release.mechanisms]
            family = families[unit]
            found.append(Charges(family, family.inquiry(readings, rules)))
        return tuple(found)

    def _reading(
        self, mechanism: RecordedMechanism, unit: str, day: int
    ) -> MechanismCost:
        """Return the cost and regions of a mechanism for a unit."""
        space = self._families[unit].space
        alike = unit, likeness(mechanism)
        known = self._known.get(alike)
        if known is None:
            known = self._known.keep(alike, self._cost(mechanism, space))
        cost, timeless = known
        part = mechanism.undivided.get(unit, mechanism.part)
        today = 0 if space.detail is None else day
        key = unit, part, cost, timeless, today
        found = self._readings.get(key)
        if found is None:
            regions = self._regions_of(part, space, day, timeless=timeless)
            everywhere = all(region is None for region in regions)
            found = self._readings.keep(key, MechanismCost(regions, cost, everywhere))
        return found

    def _cost(self, mechanism: RecordedMechanism, space: Space) -> tuple[Cost, bool]:
        """Return the cost of a mechanism for a unit, and whether it concerns all time.

        Mechanisms of many kinds cost the same: they share one cost.
        """
        vocabulary = self._vocabulary
        timeless = not vocabulary.population.static.isdisjoint(mechanism.attributes)
        loss = there = charged(mechanism, space.unit, vocabulary)
        if space.pairs:
            there = moved(mechanism, space.unit, vocabulary)
        key = loss.coordinates, there.coordinates
        known = self._costs.get(key)
        if known is None:
            known = self._costs.keep(key, Cost(loss, there))
        return known, timeless

    def _regions_of(
        self, part: Part, space: Space, day: int, *, timeless: bool
    ) -> tuple[Region, ...]:
        """Return the points at which a mechanism that reads a part is charged."""
        key = space.unit, part, timeless, day if space.detail is not None else 0
        found = self._regions.get(key)
        if found is None:
            if len(self._regions) >= REMEMBERED_MAX:
                self._regions.clear()
            found = space.regions(part, day, timeless=timeless)
            self._regions[key] = found
        return found


def charges(
    rules: RuleSet, release: RecordedRelease, vocabulary: Vocabulary
) -> Iterator[tuple[Rule, list[Loss]]]:
    """Yield each rule that a release falls under, and the losses it is charged.

    Wherever it is charged at all, a rule is charged no more than their sum.
    A mechanism whose loss for the rule's unit was never stated and does not follow
    (the unit is newer than the release) is charged an infinite one.
    """
    for rule, about in rules.matching(facts_of(release, vocabulary)):
        yield (
            rule,
            [charged(release.mechanisms[one], rule.unit, vocabulary) for one in about],
        )
