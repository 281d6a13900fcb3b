"""The sums of every rule at every point, in arrays of whole numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from modicum.accounting.grid import COORDINATES, DELTA, INFINITE
from modicum.policy import CompiledPolicy
from modicum.policy.predicates import Facts, Scope, holds
from oracle.audit_points import Bools, Extent, Numbers, Plain, Points


class UnsupportedError(Exception):
    """The log holds something that this auditor does not know how to check."""


@dataclass(frozen=True)
class _Charge:
    """What one mechanism adds: to these rules, so much, at these points."""

    rules: Numbers
    loss: Numbers
    points: Bools


#: What a release adds, by unit.
Charges: TypeAlias = Sequence[tuple[str, Sequence[_Charge]]]


class Sums:
    """The exact sums of every rule over history, at every point of its unit."""

    def __init__(self, compiled: CompiledPolicy, extent: Extent) -> None:
        if len(compiled.release_rules):
            raise UnsupportedError("rules for single releases")
        if compiled.policy.rotation is not None:
            raise UnsupportedError("user groups that take turns")
        self._compiled = compiled
        self._vocabulary = compiled.policy.vocabulary
        self._matching: dict[str, list[int]] = {}
        rules = list(compiled.rules)
        self._ids = [rule.id for rule in rules]
        self._predicates = [(rule.predicate, *rule.settings) for rule in rules]
        self._limited = {
            number
            for number, rule in enumerate(rules)
            if compiled.filter_of(rule.budget).enforced
        }
        self._units = {
            unit: _UnitSums(compiled, unit, extent)
            for unit in dict.fromkeys(rule.unit for rule in rules)
        }

    def add(self, charges: Charges, sign: int = 1) -> None:
        for unit, found in charges:
            self._units[unit].add(found, sign)

    def exceeded(self, charges: Charges, *, full: bool = False) -> tuple[str, ...]:
        """Return the rules that a release would exceed somewhere, in their order.

        Args:
            charges: What it adds.
            full: Whether every limit is 0 now.
        """
        over = [
            rule
            for unit, found in charges
            for rule in self._units[unit].exceeded(found, full=full)
        ]
        return tuple(self._ids[rule] for rule in sorted(over))

    def above(
        self, share: Fraction, held: Sequence[Charges], charges: Charges
    ) -> tuple[bool, bool]:
        """Return whether a share of a limit is exceeded where a release adds to it.

        Args:
            share: The part of every limit.
            held: What each other release adds.
            charges: What the release adds.

        Returns:
            Whether it is anywhere, and whether it is where another one adds to it.
        """
        found = [
            self._units[unit].above(
                share, [one for adds in held for one in dict(adds).get(unit, ())], own
            )
            for unit, own in charges
        ]
        return any(one for one, _ in found), any(one for _, one in found)

    def unmatched(self, release: Plain) -> tuple[str, ...]:
        """Return the mechanisms that deny a release, as no rule limits them."""
        if re.search(r"\bunmatched\"?\s*:\s*\"?allow", self._compiled.policy.text):
            return ()
        return tuple(
            mechanism["description"]["name"]
            for number, mechanism in enumerate(release["mechanisms"])
            if not self._limited.intersection(self._rules_about(release, number))
        )

    def charges(self, release: Plain, day: int) -> Charges:
        """Return what a release adds, on the day that it is charged on."""
        return list(self._charges(release, day))

    def _charges(
        self, release: Plain, day: int
    ) -> Iterator[tuple[str, Sequence[_Charge]]]:
        about = [
            self._rules_about(release, number)
            for number in range(len(release["mechanisms"]))
        ]
        for unit, sums in self._units.items():
            found = []
            for mechanism, rules in zip(release["mechanisms"], about, strict=True):
                own = sums.own_rules(rules)
                if len(own):
                    found.append(sums.charge(own, mechanism, day))
            if found:
                yield unit, found

    def _rules_about(self, release: Plain, number: int) -> list[int]:
        mechanism = release["mechanisms"][number]
        described = mechanism["description"]
        key = json.dumps(
            [
                mechanism["attributes"],
                mechanism["labels"],
                release["labels"],
                release["metadata"],
                described["name"],
                described["kind"],
                described["contribution_bound"],
            ]
        )
        if key not in self._matching:
            facts = self._facts(release, mechanism)
            self._matching[key] = [
                rule
                for rule, parts in enumerate(self._predicates)
                if all(holds(part, facts) for part in parts)
            ]
        return self._matching[key]

    def _facts(self, release: Plain, mechanism: Plain) -> Facts:
        """Return what predicates may see; none of these policies asks for the id."""
        if "release.id" in self._compiled.policy.text:
            raise UnsupportedError("a predicate about ids")
        labels = {}
        for name, label in self._vocabulary.labels.items():
            of_release = {**release["metadata"], **release["labels"]}
            of_mechanism = {**release["metadata"], **mechanism["labels"]}
            for scope, given in (
                (Scope.RELEASE, of_release),
                (Scope.MECHANISM, of_mechanism),
            ):
                value = given.get(name)
                labels[scope, name] = value if value in label.values else label.default
        texts = {(Scope.RELEASE, key): one for key, one in release["metadata"].items()}
        texts[Scope.MECHANISM, "name"] = mechanism["description"]["name"]
        texts[Scope.MECHANISM, "mechanism"] = mechanism["description"]["kind"]
        bounds = dict(mechanism["description"]["contribution_bound"])
        return Facts(frozenset(mechanism["attributes"]), labels, texts, bounds)


class _UnitSums:
    """The sums of the rules of one unit."""

    def __init__(self, compiled: CompiledPolicy, unit: str, extent: Extent) -> None:
        vocabulary = compiled.policy.vocabulary
        self._unit = unit
        self._relation = vocabulary.relation(unit)
        if any(vocabulary.bounding(one) for one in vocabulary.units):
            raise UnsupportedError("units whose losses bound each other")
        self._rules = np.array(
            [n for n, rule in enumerate(compiled.rules) if rule.unit == unit]
        )
        self._row = {int(rule): row for row, rule in enumerate(self._rules)}
        self.points = Points(compiled, unit, extent)
        self._read_filters(compiled)
        shape = len(self._rules), self.points.count
        self._sums = [np.zeros(shape, np.int64) for _ in self._watched]

    def _read_filters(self, compiled: CompiledPolicy) -> None:
        filters = [
            compiled.filter_of(compiled.rules[int(n)].budget) for n in self._rules
        ]
        named = {index for one in filters for index, _ in one.caps}
        self._watched = [*sorted(named), DELTA]
        shape = len(filters), len(self._watched)
        self._caps = np.zeros(shape, np.int64)
        self._named = np.zeros(shape, np.bool_)
        for row, one in enumerate(filters):
            for index, cap in (*one.caps, (DELTA, one.delta_cap)):
                self._caps[row, self._watched.index(index)] = cap
                self._named[row, self._watched.index(index)] = True
        self._every = np.array([one.every for one in filters])
        self._enforced = np.array([one.enforced for one in filters])
        # More than any cap is as good as infinite, and can be added and taken back.
        self._beyond = self._caps.max(axis=0) + 1
        if self._beyond.max() > 2**44:  # Half a million of them can be added.
            raise UnsupportedError("huge budgets")

    def own_rules(self, rules: Iterable[int]) -> Numbers:
        return np.array([self._row[n] for n in rules if n in self._row], np.int64)

    def charge(self, rules: Numbers, mechanism: Plain, day: int) -> _Charge:
        relation = mechanism.get("neighbors", {}).get(self._unit, "add-remove")
        if relation != self._relation:
            raise UnsupportedError(f"a loss under {relation}")
        stored = mechanism["losses"][self._unit]
        if len(stored) != COORDINATES:
            raise UnsupportedError("another grid")
        values = (_units(stored[index]) for index in self._watched)
        loss = [min(v, int(b)) for v, b in zip(values, self._beyond, strict=True)]
        return _Charge(
            rules, np.array(loss, np.int64), self.points.read_by(mechanism, day)
        )

    def add(self, charges: Sequence[_Charge], sign: int) -> None:
        for one in charges:
            place = one.rules[:, None], np.flatnonzero(one.points)
            for sums, loss in zip(self._sums, one.loss, strict=True):
                if loss:
                    sums[place] += sign * loss

    def above(
        self, share: Fraction, held: Sequence[_Charge], own: Sequence[_Charge]
    ) -> tuple[bool, bool]:
        """Return whether a share is exceeded anywhere, and where others add to it."""
        by_own, by_others = np.zeros((2, *self._sums[0].shape), np.bool_)
        sums = [np.zeros_like(one) for one in self._sums]
        for charges, touched in ((held, by_others), (own, by_own)):
            for one in charges:
                place = np.ix_(one.rules, np.flatnonzero(one.points))
                touched[place] = True
                for total, loss in zip(sums, one.loss, strict=True):
                    total[place] += loss
        caps = self._caps * share.numerator // share.denominator
        within = [one <= cap[:, None] for one, cap in zip(sums, caps.T, strict=True)]
        over = by_own & ~self._admitted(np.arange(len(caps)), within)
        return bool(over.any()), bool((over & by_others).any())

    def exceeded(self, charges: Sequence[_Charge], *, full: bool) -> list[int]:
        """Return the rules that would be exceeded at a point that is touched."""
        caps = np.zeros_like(self._caps) if full else self._caps
        rules = np.unique(np.concatenate([one.rules for one in charges]))
        points = np.flatnonzero(np.any([one.points for one in charges], axis=0))
        place = rules[:, None], points
        places = [
            (np.searchsorted(rules, one.rules)[:, None], here)
            for one in charges
            for here in [np.flatnonzero(one.points[points])]
        ]
        touched = np.zeros((len(rules), len(points)), np.bool_)
        for own in places:
            touched[own] = True
        within = []
        for number, sums in enumerate(self._sums):
            together = sums[place]
            for one, own in zip(charges, places, strict=True):
                together[own] += one.loss[number]
            within.append(together <= caps[rules, number][:, None])
        over = touched & ~self._admitted(rules, within)
        return [int(n) for n in self._rules[rules[over.any(axis=1)]]]

    def _admitted(self, rules: Numbers, within: Sequence[Bools]) -> Bools:
        *measures, delta = within
        one_holds, all_hold = np.zeros_like(delta), np.ones_like(delta)
        for held, named in zip(measures, self._named[rules].T, strict=False):
            one_holds |= held & named[:, None]
            all_hold &= held | ~named[:, None]
        enough: Bools = np.where(self._every[rules][:, None], all_hold, one_holds)
        admitted: Bools = (enough & delta) | ~self._enforced[rules][:, None]
        return admitted


def _units(stored: Any) -> int:
    return INFINITE if stored == "inf" else int(stored)
