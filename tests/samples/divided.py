"""Random policies over a divided population, and random releases about parts of it."""

from __future__ import annotations

import json
import random
import zlib
from dataclasses import replace
from datetime import date
from typing import Any, TypeAlias

from msgspec import structs

from modicum.accounting import COORDINATES, INFINITE, Loss
from modicum.accounting.grid import DELTA
from modicum.ledger.log.recorded_release import RecordedMechanism, RecordedRelease
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_policy, compile_text
from modicum.release.parts import FIRST_DAY, LAST_DAY, Box, Part, Span, Values, merged
from modicum.release.units import RELATIONS, Relation
from samples.ledgers import MEASURES, chance

Written: TypeAlias = dict[str, Any]

ATTRIBUTES = ("age", "gps", "pay")
#: The day on which histories begin: late in a year, and in the week of New Year.
DAWN = date(2026, 12, 20).toordinal()
#: Time units by name, with the units that may cover them.
TIMED = {
    "day": ("week", "month", "user"),
    "week": ("user",),
    "month": ("quarter", "user"),
    "quarter": ("user",),
}
DOMAINS: dict[str, Written] = {
    "country": {"values": ["CH", "DE", "FR", "IT"]},
    "birth": {"range": [1990, 1994]},
    "shard": {"range": [0, 3]},
}
GROUPS = 4


def policy(rng: random.Random) -> CompiledPolicy:
    """Return a random policy over a population that is divided in some way."""
    found = compile_text(policy_text(rng).encode(), "policy.yaml")
    grouped = frozenset(u for u in found.policy.vocabulary.units if chance(rng, 0.5))
    vocabulary = found.policy.vocabulary
    population = structs.replace(vocabulary.population, grouped=grouped)
    vocabulary = replace(vocabulary, population=population)
    return compile_policy(structs.replace(found.policy, vocabulary=vocabulary))


def policy_text(rng: random.Random) -> str:
    """Return a random policy as YAML (JSON is YAML)."""
    family = tuple(rng.sample(list(MEASURES), rng.choice([1, 2])))
    units = _units(rng)

    def budget() -> Any:
        if chance(rng, 0.03):
            return "unlimited"
        return MEASURES[rng.choice(family)](rng.choice([1, 2, 3]))

    written: Written = {
        "modicum": "policy/v1",
        "name": "divided",
        "dp": {"filter": rng.choice(["combined-v1", "combined-v2", "zcdp-v1"])},
        "units": units,
        "labels": {"ml": {"values": ["none", "all"], "default": "none"}},
        "schema": {"attributes": {one: _attribute(rng) for one in ATTRIBUTES}},
        "population": _population(rng, units),
        "policies": [
            _base_policy(rng, f"p{n}", rng.choice(list(units)), budget)
            for n in range(rng.randint(1, 4))
        ],
    }
    if chance(rng, 0.3):
        written["per_release"] = [
            _base_policy(rng, "once", rng.choice(list(units)), budget)
        ]
    text = json.dumps(written)
    # Not by the dice: what they draw next does not depend on it.
    if zlib.crc32(text.encode()) % 4:
        text = text.removesuffix("}") + ', "unmatched": "allow"}'
    return text.replace('"4":', "4:").replace('"16":', "16:")  # Orders are numbers.


def _units(rng: random.Random) -> dict[str, Written]:
    names = ["user", *(one for one in TIMED if chance(rng, 0.5))]
    units: dict[str, Written] = {}
    clock = rng.choice(["at", "at", "at", "at", "at", "seen"])
    if chance(rng, 0.5):
        units["home"] = {"id": "home_id", "neighbors": rng.choice(RELATIONS)}
    for name in names:
        facts: Written = {"id": "user_id", "neighbors": rng.choice(RELATIONS)}
        covers = [one for one in TIMED.get(name, ("home",)) if one in (*names, *units)]
        if name in TIMED:
            # A unit by another clock lies in no other timed one.
            column = clock if name == "day" else "at"
            facts["time"] = {"column": column, "period": name}
            if column != "at":
                covers = [one for one in covers if one == "user"]
        if covers and chance(rng, 0.7):
            facts["within"] = rng.sample(covers, rng.randint(1, len(covers)))
        units[name] = facts
    return units


def _population(rng: random.Random, units: dict[str, Written]) -> Written:
    chosen = rng.sample(list(DOMAINS), rng.choice([1, 1, 2]))
    detail = {name: rng.choice([1, 2, 3, 10]) for name in TIMED if name in units}
    own = {
        "partition_by": {
            name: DOMAINS[name]
            | {"immutable": [unit for unit in units if chance(rng, 0.6)]}
            for name in chosen
        }
    }
    kept = {name: many for name, many in detail.items() if chance(rng, 0.4)}
    return own | ({"time_detail": kept} if kept else {})


def _attribute(rng: random.Random) -> list[Any]:
    return ["low", {}, "static"] if chance(rng, 0.2) else ["low", {}]


def _base_policy(rng: random.Random, name: str, unit: str, budget: Any) -> Written:
    own: Written = {"name": name, "unit": unit}
    if chance(rng, 0.3):
        return own | {"for_each": "attribute", "budget": {"low": budget()}}
    when = rng.choice(["true", "true", '"age" in m.attributes', 'm.ml == "none"'])
    return own | {"when": when, "budget": budget()}


# --- releases -------------------------------------------------------------------------


class Releases:
    """Makes random releases whose losses lie near the limits of one policy."""

    def __init__(self, rng: random.Random, compiled: CompiledPolicy) -> None:
        self._rng = rng
        self._vocabulary = compiled.policy.vocabulary
        self._caps: dict[int, list[int]] = {}
        for rules in (compiled.rules, compiled.release_rules):
            for rule in rules:
                for index, cap in compiled.filter_of(rule.budget).caps:
                    self._caps.setdefault(index, []).append(cap)
        self._share = rng.choice([1, 2, 3, 4, 6])
        self._made: list[RecordedMechanism] = []

    def make(self, number: int, day: int) -> RecordedRelease:
        """Return a release, asked for on a day."""
        many = self._rng.choice([1, 1, 2, 3])
        return RecordedRelease(
            id=f"r-{number}",
            content="0" * 64,
            labels={},
            metadata={},
            mechanisms=tuple(self._some(n, day) for n in range(many)),
        )

    def _some(self, number: int, day: int) -> RecordedMechanism:
        """Return a new mechanism, or one that was there before, or almost."""
        rng = self._rng
        if self._made and chance(rng, 0.3):
            old = rng.choice(self._made)
            return rng.choice(
                [
                    old,
                    replace(old, part=self.part(day)),
                    replace(old, losses=self._losses()),
                    replace(old, attributes=self._attributes()),
                ]
            )
        self._made.append(self._mechanism(number, day))
        return self._made[-1]

    def _mechanism(self, number: int, day: int) -> RecordedMechanism:
        losses = self._losses()
        return RecordedMechanism(
            description={"name": f"m{number}", "kind": "declared"},
            attributes=self._attributes(),
            labels={"ml": self._rng.choice(["none", "all"])},
            losses=losses,
            part=self.part(day),
            neighbors={
                unit: relation
                for unit in losses
                if (relation := self._relation(unit)) != "add-remove"
            },
        )

    def _attributes(self) -> tuple[str, ...]:
        many = self._rng.choice([0, 1, 1, 2])
        return tuple(sorted(self._rng.sample(ATTRIBUTES, many)))

    def _losses(self) -> dict[str, Loss]:
        units = [one for one in self._vocabulary.units if not chance(self._rng, 0.02)]
        same = self._loss() if chance(self._rng, 0.5) else None
        return {unit: same or self._loss() for unit in units}

    def _relation(self, unit: str) -> Relation:
        if chance(self._rng, 0.6):
            return self._vocabulary.relation(unit)
        return self._rng.choice(["add-remove", "add-remove", "any-change"])

    def _loss(self) -> Loss:
        """Return a loss of round shares of limits, so that sums meet them exactly."""
        rng = self._rng
        values = []
        for index in range(COORDINATES):
            cap = rng.choice(self._caps.get(index, [0]))
            share = cap * rng.choice([0, 1, 1, 1, 2, 3]) // (2 * self._share)
            odd = rng.choice([0, 0, 0, 1, -1])
            values.append(INFINITE if chance(rng, 0.02) else max(0, share + odd))
        values[DELTA] = 10**9 if chance(rng, 0.02) else 0
        return Loss(tuple(values))

    def part(self, day: int) -> Part:
        """Return a part of the data, as it may be asked for on a day."""
        rng = self._rng
        return Part(
            where=self._where() if chance(rng, 0.85) else None,
            periods=self._periods(day) if chance(rng, 0.8) else None,
            groups=_spans(rng, 0, GROUPS) if chance(rng, 0.6) else None,
        )

    def _where(self) -> tuple[Box, ...]:
        boxes = {self._box() for _ in range(self._rng.choice([1, 1, 2, 3]))}
        return tuple(sorted(boxes, key=repr))

    def _box(self) -> Box:
        rng = self._rng
        names = sorted(self._vocabulary.population.partitions)
        named = rng.sample(names, rng.randint(1, len(names)))
        return tuple((name, self._values(name)) for name in sorted(named))

    def _values(self, name: str) -> Values:
        partition = self._vocabulary.population.partitions[name]
        if partition.values is None:
            return _spans(self._rng, partition.low, partition.high)
        many = self._rng.randint(1, len(partition.values))
        return tuple(sorted(self._rng.sample(partition.values, many)))

    def _periods(self, day: int) -> tuple[Span, ...]:
        rng = self._rng
        if chance(rng, 0.4):
            return ((day - rng.randint(0, 5),) * 2,)
        spans = list(_spans(rng, day - 40, day + 10))
        first, last = spans[0][0], spans[-1][1]
        if chance(rng, 0.1):
            spans.append((FIRST_DAY, first))
        if chance(rng, 0.1):
            spans.append((last, LAST_DAY))
        return merged(spans)


def _spans(rng: random.Random, low: int, high: int) -> tuple[Span, ...]:
    spans = []
    for _ in range(rng.choice([1, 1, 2])):
        first = rng.randint(low, high)
        spans.append((first, min(high, first + rng.choice([0, 0, 1, 2, 15]))))
    return merged(spans)
