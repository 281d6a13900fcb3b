"""Decisions with cells, by trying every single point. Slow and obvious.

A point is a value of every attribute that divides a unit, a period of the unit, and a
user group. What a policy allows is read off its own words: nothing is cut into
segments, nothing is kept between decisions, and no sum is ever taken back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from itertools import product
from typing import TypeAlias, TypeVar

from modicum.accounting import ApproxBudget, Filter, Loss, Total, Unlimited
from modicum.accounting.filters.budget import fixed_figure, limit
from modicum.accounting.grid import DELTA, INFINITE
from modicum.accounting.losses import total_of
from modicum.core.rationals import DELTA_UNIT, floor_units
from modicum.ledger.decision.charges import charged
from modicum.ledger.decision.rule_matching import facts_of
from modicum.ledger.log.recorded_release import RecordedMechanism, RecordedRelease
from modicum.policy import CompiledPolicy, Rule
from modicum.policy.model import Retired, RotationRule
from modicum.policy.predicates import Facts, holds
from modicum.policy.rules import Stage
from modicum.release import Vocabulary
from modicum.release.parts import FIRST_DAY, LAST_DAY, Box, Span, Values
from modicum.release.units import Period

T = TypeVar("T")

#: What stands for the periods, or the groups, that nobody names.
REST = "rest"
#: A value of a partitioning attribute.
Value: TypeAlias = "str | int"
#: A sum of losses, by coordinate: whole numbers, or infinity.
Sums: TypeAlias = "dict[int, float]"


@dataclass(frozen=True)
class Charged:
    """A mechanism of a release, and the day of the event that brought it in."""

    mechanism: RecordedMechanism
    facts: Facts
    day: int


@dataclass(frozen=True)
class Place:
    """Where a rule looks: the mechanisms that pay in full, and those that pay a move.

    Two places of a cell with the same mechanisms are one, if as much is unlocked.
    """

    whole: frozenset[int]
    moved: frozenset[int]
    share: Fraction = Fraction(1)


@dataclass
class Turns:
    """Whose turn it is: what was told of rounds and user groups, one after the other.

    Attributes:
        opened: For each round, what part of its limits each unit may have used.
        began: In which round a group became active; the first one is 1.
        ended: The groups that are active no more.
    """

    opened: list[dict[str, Fraction]] = field(default_factory=list)
    began: dict[int, int] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)

    def of_unit(self, unit: str) -> Fraction:
        return self.opened[-1].get(unit, Fraction(1)) if self.opened else Fraction(1)

    def of_group(self, rotation: RotationRule, group: object) -> Fraction:
        if group not in self.began:
            return Fraction(0)
        assert isinstance(group, int)
        age = len(self.opened) - self.began[group] + 1
        rounds, slack = rotation.schedule.rounds, rotation.schedule.slack
        if group in self.ended or age > rounds:
            return Fraction(rotation.retired is Retired.FIRST_COME)
        unlocked = Fraction(0)
        for step in range(1, min(age, rounds) + 1):
            early, late = step <= rounds // 2, step > rounds - rounds // 2
            unlocked += (1 + slack * (early - late)) / rounds
        return unlocked


@dataclass(frozen=True)
class Judgment:
    """What a rule says: at every touched place, the sums before and together.

    Attributes:
        shares: What part of its limit each of them may have used: of those that deny,
            or, if none does, of all.
    """

    rule: Rule
    allowed: bool
    denied: tuple[tuple[Sums, Sums], ...]
    admitted: tuple[tuple[Sums, Sums], ...]
    shares: tuple[Fraction, ...]


class DenseLedger:
    """The releases that count, and what every rule says to a further one."""

    def __init__(self, compiled: CompiledPolicy, turns: Turns | None = None) -> None:
        self.compiled = compiled
        self.turns = turns or Turns()
        self.vocabulary: Vocabulary = compiled.policy.vocabulary
        self._counted: dict[str, list[Charged]] = {}
        self._losses: dict[tuple[int, str], Loss] = {}
        self._seen: list[RecordedRelease] = []  # Keeps what `_losses` is keyed by.

    def add(self, release: RecordedRelease, day: int) -> None:
        self._counted[release.id] = self._read(release, day)

    def remove(self, release: str) -> None:
        del self._counted[release]

    def unmatched(self, release: RecordedRelease, day: int) -> tuple[str, ...]:
        """Return the mechanisms that deny it, as no rule over history limits them."""
        limits = [
            rule
            for rule in self.compiled.rules
            if not isinstance(rule.budget, Unlimited)
        ]
        denied = not self.compiled.policy.allows_unmatched
        return tuple(
            str(one.mechanism.description["name"])
            for one in self._read(release, day)
            if denied and not any(falls(one, rule) for rule in limits)
        )

    def judge(self, release: RecordedRelease, day: int) -> list[Judgment]:
        """Return what each rule says that the release falls under, in their order."""
        new = self._read(release, day)
        before = [one for some in self._counted.values() for one in some]
        found = []
        for rules, history in (
            (self.compiled.release_rules, []),
            (self.compiled.rules, before),
        ):
            everything = [*history, *new]
            places: dict[str, list[Place]] = {}
            for rule in rules:
                about = {n for n, one in enumerate(everything) if falls(one, rule)}
                mine = {n for n in about if n >= len(history)}
                if not mine:
                    continue
                if rule.unit not in places:
                    places[rule.unit] = self.places(rule.unit, everything)
                found.append(
                    self._judged(rule, everything, about, mine, places[rule.unit])
                )
        return found

    def blocking(self, release: RecordedRelease, day: int) -> tuple[str, ...]:
        return tuple(one.rule.id for one in self.judge(release, day) if not one.allowed)

    def _read(self, release: RecordedRelease, day: int) -> list[Charged]:
        self._seen.append(release)
        facts = facts_of(release, self.vocabulary)
        return [
            Charged(mechanism, about, day)
            for mechanism, about in zip(release.mechanisms, facts, strict=True)
        ]

    # --- the rule ---

    def _judged(
        self,
        rule: Rule,
        everything: Sequence[Charged],
        about: set[int],
        mine: set[int],
        places: Iterable[Place],
    ) -> Judgment:
        denied: list[tuple[Sums, Sums]] = []
        admitted: list[tuple[Sums, Sums]] = []
        shares: dict[bool, list[Fraction]] = {True: [], False: []}
        watched = watched_by(self.compiled.filter_of(rule.budget))
        known = {
            Place(one.whole & about, one.moved & about, one.share) for one in places
        }
        for place in known:
            touched = (place.whole | place.moved) & mine
            if not touched:
                continue
            old = Place(place.whole - mine, place.moved - mine)
            before = self._sums(rule.unit, everything, old, watched)
            together = self._sums(rule.unit, everything, place, watched)
            losses = self._losses_at(rule, everything, place)
            passes = self._admits(rule, together, losses, place.share)
            (admitted if passes else denied).append((before, together))
            shares[passes].append(place.share)
        decide = tuple(shares[not denied])
        return Judgment(rule, not denied, tuple(denied), tuple(admitted), decide)

    def _admits(
        self, rule: Rule, together: Sums, losses: Iterable[Loss], share: Fraction
    ) -> bool:
        if rule.stage is Stage.HISTORY:
            return admits(self.compiled.filter_of(rule.budget), together, share)
        return admits_alone(rule, total_of(losses))

    def _sums(
        self,
        unit: str,
        everything: Sequence[Charged],
        place: Place,
        watched: Sequence[int],
    ) -> Sums:
        losses = [self._loss(everything[n].mechanism, unit) for n in place.whole]
        losses += [self._moved(everything[n].mechanism, unit) for n in place.moved]
        return {
            index: sum(_number(loss.coordinates[index]) for loss in losses)
            for index in watched
        }

    def _losses_at(
        self, rule: Rule, everything: Sequence[Charged], place: Place
    ) -> Iterator[Loss]:
        for n in place.whole:
            yield self._loss(everything[n].mechanism, rule.unit)
        for n in place.moved:
            yield self._moved(everything[n].mechanism, rule.unit)

    def _loss(self, mechanism: RecordedMechanism, unit: str) -> Loss:
        key = (id(mechanism), unit)
        if key not in self._losses:
            self._losses[key] = charged(mechanism, unit, self.vocabulary)
        return self._losses[key]

    def _moved(self, mechanism: RecordedMechanism, unit: str) -> Loss:
        """Return what it costs that an instance comes into the part, or leaves it."""
        bounds = any(
            unit in self.vocabulary.bounding(other) for other in self.vocabulary.units
        )
        recorded = mechanism.losses.get(unit)
        relation = mechanism.neighbors.get(unit, "add-remove")
        if recorded is not None and relation == "add-remove" and not bounds:
            return recorded
        return self._loss(mechanism, unit)

    # --- the points ---

    def places(self, unit: str, everything: Sequence[Charged]) -> list[Place]:
        """Return every place of a unit that differs in who reads it."""
        segments = readers(self.segments(unit), everything, self.lies_in)
        periods = self._period_readers(unit, everything)
        groups = {
            (
                frozenset(
                    n
                    for n, one in enumerate(everything)
                    if in_group(one.mechanism.part.groups, group)
                ),
                self._share(unit, group),
            )
            for group in self.groups(unit, everything)
        }
        apart = self.vocabulary.relation(unit) != "add-remove"
        found = set()
        for first, period, (group, share) in product(segments, periods, groups):
            here = first & period & group
            if not apart:
                found.add(Place(here, frozenset(), share))
                continue
            for second in segments:
                there = second & period & group
                found.add(Place(here & there, here ^ there, share))
        return list(found)

    def _share(self, unit: str, group: Value) -> Fraction:
        rotation, everybody = self.compiled.policy.rotation, self.turns.of_unit(unit)
        if rotation is None or group == REST:
            return everybody
        return everybody * self.turns.of_group(rotation, group)

    def segments(self, unit: str) -> list[dict[str, Value]]:
        """Return every combination of values that an instance of a unit may have."""
        over = self.vocabulary.covers.get(unit, frozenset({unit}))
        axes: dict[str, Sequence[Value]] = {}
        for name, partition in self.vocabulary.population.partitions.items():
            if over & set(partition.immutable):
                axes[name] = partition.values or range(
                    partition.low, partition.high + 1
                )
        return [dict(zip(axes, at, strict=True)) for at in product(*axes.values())]

    def lies_in(self, one: Charged, at: dict[str, Value]) -> bool:
        where = one.mechanism.part.where
        return where is None or any(self._in_box(box, at) for box in where)

    def _in_box(self, box: Box, at: dict[str, Value]) -> bool:
        return all(_has(values, at[name]) for name, values in box if name in at)

    def groups(self, unit: str, everything: Sequence[Charged]) -> Sequence[Value]:
        """Return every group that somebody names, and one for all the others."""
        whose = self.vocabulary.covers
        if self.vocabulary.relation(unit) != "add-remove":
            # An instance that changes may come to lie in a larger one of another key.
            whose = self.vocabulary.owners
        over = whose.get(unit, frozenset({unit}))
        if not over & self.vocabulary.population.grouped:
            return [REST]
        named = {
            group
            for one in everything
            for low, high in one.mechanism.part.groups or ()
            for group in range(low, high + 1)
        }
        named |= set(self.turns.began)
        return [*sorted(named), max(named, default=0) + 1]

    def _period_readers(
        self, unit: str, everything: Sequence[Charged]
    ) -> set[frozenset[int]]:
        units = self.vocabulary.unit_facts
        period = units[unit].period if unit in units else None
        clocks = {one.column for one in units.values() if one.period is not None}
        if period is None or len(clocks) > 1:  # Nobody knows by which clock.
            return {frozenset(range(len(everything)))}
        detail = self.vocabulary.population.time_detail.get(unit)
        dense = dense_periods(everything, period, detail)
        reads = [self._periods_read(one, period, detail, dense) for one in everything]
        return {
            frozenset(n for n, read in enumerate(reads) if at in read) for at in dense
        }

    def _periods_read(
        self, one: Charged, period: Period, detail: int | None, dense: Sequence[int]
    ) -> set[int]:
        """Return the periods that a mechanism is charged for."""
        spans = one.mechanism.part.periods
        static = self.vocabulary.population.static
        if spans is None or static & set(one.mechanism.attributes):
            return set(dense)
        read = {
            at
            for at in dense
            for first, last in spans
            if period_number(period, first) <= at <= period_number(period, last)
        }
        if detail is None:
            return read
        now = period_number(period, one.day)
        first, last = now - detail + 1, now + detail - 1
        past = {at for at in dense if at < first}
        future = {at for at in dense if at > last}
        # Beyond the window nothing is told apart.
        return (
            read
            | (past if read & past else set())
            | (future if read & future else set())
        )


def falls(one: Charged, rule: Rule) -> bool:
    return all(holds(part, one.facts) for part in (rule.predicate, *rule.settings))


def readers(
    points: Iterable[T],
    everything: Sequence[Charged],
    reads: Callable[[Charged, T], bool],
) -> set[frozenset[int]]:
    """Return, for points that differ in it, which mechanisms read them."""
    return {
        frozenset(n for n, one in enumerate(everything) if reads(one, at))
        for at in points
    }


def in_group(spans: tuple[Span, ...] | None, group: object) -> bool:
    if spans is None or group == REST:
        return True
    assert isinstance(group, int)
    return any(low <= group <= high for low, high in spans)


def _has(values: Values, value: Value) -> bool:
    for one in values:
        if isinstance(one, str):
            if one == value:
                return True
        elif isinstance(value, int) and one[0] <= value <= one[1]:
            return True
    return False


# --- time -----------------------------------------------------------------------------


def period_number(period: Period, day: int) -> int:
    """Return the running number of the period that a day lies in."""
    on = date.fromordinal(day)
    match period:
        case "day":
            return day
        case "week":  # Numbered by their Mondays; ISO weeks begin on Monday.
            return (day - on.isoweekday() + 1) // 7
        case "month":
            return on.year * 12 + on.month
        case "quarter":
            return on.year * 4 + (on.month + 2) // 3
        case "year":
            return on.year


def dense_periods(
    everything: Sequence[Charged], period: Period, detail: int | None
) -> Sequence[int]:
    """Return every period from before the first to after the last that is named."""
    named = {period_number(period, one.day) for one in everything}
    for one in everything:
        for span in one.mechanism.part.periods or ():
            named |= {
                period_number(period, d) for d in span if d not in (FIRST_DAY, LAST_DAY)
            }
    reach = detail or 0
    return range(min(named) - reach - 1, max(named) + reach + 2)


# --- the filter -----------------------------------------------------------------------


def _number(units: int) -> float:
    return math.inf if units >= INFINITE else units


def watched_by(own: Filter) -> list[int]:
    """Return the coordinates that a filter looks at, and delta."""
    return [*(index for index, _ in own.caps), DELTA]


def admits(own: Filter, sums: Sums, share: Fraction = Fraction(1)) -> bool:
    """Return whether a share of a filter holds: one coordinate, or every, and delta."""
    if not own.enforced:
        return True
    if sums[DELTA] > own.delta_cap * share:
        return False
    within = [
        sums[index] <= cap * share and sums[index] < INFINITE for index, cap in own.caps
    ]
    if own.every:
        return False not in within
    return True in within


def admits_alone(rule: Rule, total: Total) -> bool:
    """Return whether a release alone is within a budget: no filter is involved."""
    budget = rule.budget
    if isinstance(budget, Unlimited):
        return True
    most = (
        floor_units(budget.delta, DELTA_UNIT) if isinstance(budget, ApproxBudget) else 0
    )
    within = total.units(DELTA) <= most
    return within and fixed_figure(budget, total) <= limit(budget)
