"""Histories of policies that change the meaning of names, and releases between them.

Units are renamed, redefined, added and dropped, with other relations and claims; there
are devices, weeks, months, releases of one day, and samples, of which one unit loses
less than others. The values that divide the population are renamed, merged, split and
swapped; units are said to keep them from the start, later, or not any more. A policy
may come back.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from fractions import Fraction
from functools import cache
from typing import NamedTuple, TypeAlias

from oracle.past_values import Value, contains

from modicum.accounting import Loss
from modicum.accounting.curves import pure_curve
from modicum.ledger import RecordedRelease
from modicum.ledger.log.recorded_release import RecordedMechanism
from modicum.ledger.replay.migration import Migration
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text
from modicum.policy.past_units import vocabulary_of
from modicum.release import Part, Unit, Vocabulary
from modicum.release.parts import Box, in_order
from modicum.release.periods import overlaps
from modicum.release.units import all_steps, clocks_of, kinds

DAYS = ("2026-01-01", "2026-01-02", "2026-01-05", "2026-02-01")
DEFINITIONS = (
    "id: uid",
    "id: hh",
    "id: dev",
    "id: uid, time: {column: at, period: day}",
    "id: uid, time: {column: at, period: week}",
    "id: uid, time: {column: at, period: month}",
    "id: uid, time: {column: seen, period: month}",
    "id: dev, time: {column: at, period: day}",
)
#: Which ids may be said to lie in which.
INSIDE = {"uid": ("hh",), "dev": ("uid", "hh")}
DIVIDING = ("region", "ward")
VALUES = "ABC"


class Held(NamedTuple):
    """A policy that was activated."""

    text: str
    seq: int
    entails: bool = True


#: Units by name: the definition, and the relation.
Chosen: TypeAlias = dict[str, tuple[str, str]]
FATES = (
    *("same", "same", "same", "same", "renamed", "renamed"),
    *("redefined", "another relation", "dropped"),
)
#: Of a substitution follows little: it is rare.
LIKELY = ("add-remove",) * 4 + ("any-change",) * 4 + ("substitute",)


class Division(NamedTuple):
    """An attribute that divides the population.

    Attributes:
        values: Its values.
        was: What values of the policy before may be now.
        kept: The definitions of the units that are said to keep them.
    """

    values: tuple[str, ...] = ()
    was: Mapping[str, tuple[str, ...]] = {}
    kept: frozenset[str] = frozenset()


class Words(NamedTuple):
    """What a policy declares: units, divisions, and whether `page` is timeless."""

    units: Chosen
    divisions: Mapping[str, Division]
    is_static: bool


def chosen(rng: random.Random, before: Chosen | None = None) -> Chosen:
    """Return units; those of a later policy are mostly the same, or renamed."""
    names = rng.sample("abcde", 5)
    found: Chosen = {}
    for name, (facts, relation) in (before or {}).items():
        fate = rng.choice(FATES)
        if fate != "dropped":
            found[names.pop() if fate == "renamed" else name] = (
                rng.choice(DEFINITIONS) if fate == "redefined" else facts,
                rng.choice(LIKELY) if fate == "another relation" else relation,
            )
    if not any(facts == "id: uid" for facts, _ in found.values()):
        found[names.pop()] = "id: uid", rng.choice(LIKELY)
    if len(found) < 2 or rng.random() < 0.3:
        found[names.pop()] = rng.choice(DEFINITIONS), rng.choice(LIKELY)
    return found


def divided(rng: random.Random, units: Chosen, before: Division) -> Division:
    """Return what a division is under the next policy; without values, it is none."""
    fate = rng.choice(("same", "same", "re-keyed", "re-keyed", "re-keyed", "dropped"))
    if fate == "dropped":
        return Division()
    values, was = before.values, before.was
    if fate == "re-keyed" or not values:
        values = tuple(rng.sample(VALUES, rng.randint(2, 3)))
        old = {one: now for one, now in was.items() if {*now} <= {*values}}
        was = old if rng.random() < 0.5 else {}
        was |= {
            one: tuple(sorted(rng.sample(values, rng.choice((1, 1, 1, 2)))))
            for one in VALUES
            if rng.random() < 0.5
        }
    kept = {one for one in sorted(before.kept) if rng.random() < 0.7}
    kept |= {facts for facts, _ in units.values() if rng.random() < 0.4}
    return Division(values, was, frozenset(kept))


def words(rng: random.Random, past: Sequence[Words] = ()) -> Words:
    """Return the words of the next policy; it may be one that was before."""
    if len(past) > 1 and rng.random() < 0.2:
        return rng.choice(past[:-1])
    before = past[-1] if past else Words({}, {}, is_static=False)
    units = chosen(rng, before.units)
    divisions = {
        name: divided(rng, units, before.divisions.get(name, Division()))
        for name in DIVIDING
    }
    return Words(units, divisions, is_static=rng.random() < 0.1)


def policy(rng: random.Random, own: Words) -> str:
    """Return a policy with these words, and some claims about its units."""
    written = []
    for name, (facts, relation) in own.units.items():
        id_ = facts.partition(",")[0].removeprefix("id: ")
        within = [
            wide
            for wide, (other, _) in own.units.items()
            if wide != name
            and "time" not in other
            and (
                other.removeprefix("id: ") in INSIDE.get(id_, ())
                or (other.removeprefix("id: ") == id_ and "time" in facts)
            )
            and rng.random() < 0.7
        ]
        more = f", neighbors: {relation}"
        if within:
            more += f", within: [{', '.join(within)}]"
        sizes = [
            f"{one}: {rng.randint(1, 3)}"
            for one in within
            if "time" not in facts and rng.random() < 0.7
        ]
        if sizes:
            more += f", groups: {{{', '.join(sizes)}}}"
        written.append(f"{name}: {{{facts}{more}}}")
    divided = f"partition_by: {{{', '.join(partitions(own))}}}"
    return (
        f"modicum: policy/v1\nname: p\nunits: {{{', '.join(written)}}}\n"
        f"schema: {{attributes: {{page: [low, {{}}{', static' * own.is_static}]}}}}\n"
        f"population: {{{divided}}}\n" + ruled([*own.units][:1])
    )


def ruled(units: Iterable[str]) -> str:
    """Return rules for some units; what holds of history does not depend on them."""
    rules = (
        f"{{name: of-{one}, when: 'true', unit: {one}, budget: {{eps: 9}}}}"
        for one in units
    )
    return f"policies: [{', '.join(rules)}]\n"


def partitions(own: Words) -> Iterator[str]:
    """Yield the divisions of a policy as it writes them."""
    for name, (values, was, kept) in own.divisions.items():
        if values:
            units = (one for one, (facts, _) in own.units.items() if facts in kept)
            steps = (f"{old}: [{', '.join(now)}]" for old, now in was.items())
            yield (
                f"{name}: {{values: [{', '.join(values)}],"
                f" immutable: [{', '.join(units)}], was: {{{', '.join(steps)}}}}}"
            )


class Past(NamedTuple):
    """A release, as it was recorded and as the oracle knows it.

    Attributes:
        recorded: The first.
        stated: By unit, as it was defined then, what one change of it costs.
        day: The column of a time, and the only day that it reads; None for all.
    """

    recorded: RecordedRelease
    stated: tuple[tuple[Unit, int], ...]
    day: tuple[str, str] | None

    def reads(self, row: Mapping[str, str], values: Mapping[str, Value]) -> bool:
        """Return whether it reads a row that has some values then."""
        where = self.recorded.mechanisms[0].part.where or ((),)
        on = self.day is None or row[self.day[0]] == self.day[1]
        return on and any(
            all(contains(some, values[name]) for name, some in box) for box in where
        )


def release(rng: random.Random, vocabulary: Vocabulary, *, is_new: bool) -> Past:
    """Return a release that states losses for some units; others follow.

    Args:
        rng: The dice.
        vocabulary: That of its policy.
        is_new: Whether it names the derived losses, as since version 6.
    """
    units = vocabulary.unit_facts
    named = rng.choice(DAYS) if len(clocks_of(units)) == 1 else None
    day = None
    span = None
    if named is not None and rng.random() < 0.5:
        span = ((ordinal(named),) * 2,)
        if not vocabulary.population.static:
            day = next(iter(clocks_of(units))), named
    many = rng.randint(1, len(units))
    stated = {one: rng.randint(1, 6) for one in rng.sample([*units], many)}
    sampled = [one for one, facts in units.items() if facts.neighbors == "add-remove"]
    if sampled and rng.random() < 0.4:  # It costs that unit less than all others.
        stated[rng.choice(sampled)] = 1
    steps = all_steps(units, None if day is None else overlaps(kinds(units), span))
    eps = dict(stated)
    for (unit, one), count in steps.items():
        if unit not in stated and one in stated:
            eps[unit] = min(eps.get(unit, 10**6), count * stated[one])
    losses = {unit: loss_of(each) for unit, each in eps.items()}
    mechanism = RecordedMechanism(
        {},
        ("page",),
        {},
        losses,
        Part(where(rng, vocabulary), span, None),
        neighbors={
            unit: units[unit].neighbors
            for unit in losses
            if units[unit].neighbors != "add-remove"
        },
        derived=tuple(sorted(losses.keys() - stated.keys())) if is_new else None,
    )
    return Past(
        RecordedRelease("r", "", {}, {}, (mechanism,)),
        tuple((units[one], cost) for one, cost in stated.items()),
        day,
    )


def where(rng: random.Random, vocabulary: Vocabulary) -> tuple[Box, ...] | None:
    """Return a part of the population, of one box or of two."""
    boxes = {
        tuple(
            (name, tuple(sorted(rng.sample(one.values or (), rng.randint(1, 2)))))
            for name, one in sorted(vocabulary.population.partitions.items())
            if rng.random() < 0.7
        )
        for _ in range(rng.choice((1, 1, 2)))
    }
    return None if () in boxes else in_order(boxes)


@cache
def loss_of(eps: int) -> Loss:
    return pure_curve(Fraction(eps)).loss()


def ordinal(day: str) -> int:
    return date.fromisoformat(day).toordinal()


class History(NamedTuple):
    """Policies that replaced each other, and releases under all but the last.

    Attributes:
        texts: The policies.
        eras: Their words.
        past: The releases, each with the place of its policy.
        compiled: The last policy, with a rule for each of its units.
    """

    texts: list[str]
    eras: list[Vocabulary]
    past: list[tuple[int, Past]]
    compiled: CompiledPolicy

    def held(self) -> list[Held]:
        """Return the policies but the last; the releases of each follow it."""
        return [Held(text, 10 * place) for place, text in enumerate(self.texts[:-1])]

    def migrated(self, held: Sequence[Held]) -> list[RecordedRelease]:
        """Return the releases in the words of the last policy."""
        migration = Migration(held, self.eras[-1], self.texts[-1])
        return [
            migration.release(one.recorded, 10 * place + 5) for place, one in self.past
        ]


def histories(rng: random.Random, many: int) -> Iterator[History]:
    """Yield histories, two of the same policies each: most of the time is reading."""
    for _ in range(many // 2):
        own: list[Words] = []
        for _ in range(rng.randint(2, 4)):
            own.append(words(rng, own))
        texts: list[str] = []
        for place, one in enumerate(own):
            again = own.index(one)
            texts.append(policy(rng, one) if again == place else texts[again])
        whole = texts[-1].partition("policies:")[0] + ruled(own[-1].units)
        compiled = compile_text(whole.encode(), "p")
        eras = [found for text in texts[:-1] if (found := vocabulary_of(text))]
        now = compiled.policy.vocabulary
        for _ in range(2):
            yield History(texts, [*eras, now], [*releases(rng, eras)], compiled)


def releases(
    rng: random.Random, eras: Sequence[Vocabulary]
) -> Iterator[tuple[int, Past]]:
    """Yield releases, each with the place of its policy; at least one."""
    for place, vocabulary in enumerate(eras):
        for _ in range(rng.randint(0 if place else 1, 3)):
            yield place, release(rng, vocabulary, is_new=rng.random() < 0.7)
