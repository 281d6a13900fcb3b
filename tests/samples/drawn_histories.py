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
#: Names of attributes, and of a label.
ATTRIBUTES, LABELS = "pqr", ("reach", "scope")


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
    """An attribute that divides the population; or attributes; or a label.

    Attributes:
        values: Its values, or the names of attributes.
        was: What those of the policy before may be now.
        kept: The definitions of the units that are said to keep their value.
    """

    values: tuple[str, ...] = ()
    was: Mapping[str, tuple[str, ...]] = {}
    kept: frozenset[str] = frozenset()


class Words(NamedTuple):
    """What a policy declares.

    Attributes:
        units: The units.
        divisions: By name, what divides the population.
        attributes: The attributes of the data.
        static: Those of them that have no time.
        label: A label.
        names: Its name, and its name before if that was another one.
    """

    units: Chosen
    divisions: Mapping[str, Division] = {}
    attributes: Division = Division()
    static: frozenset[str] = frozenset()
    label: Division = Division()
    names: tuple[str, ...] = LABELS[:1]


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
    if rng.random() < 0.15:
        return Division()
    found = re_keyed(rng, before, VALUES)
    kept = {one for one in sorted(before.kept) if rng.random() < 0.7}
    kept |= {facts for facts, _ in units.values() if rng.random() < 0.4}
    return found._replace(kept=frozenset(kept))


def re_keyed(
    rng: random.Random, before: Division, values: str, most: int = 2
) -> Division:
    """Return the next names of values, each of which was one of some, or is new.

    Args:
        rng: The dice.
        before: Those of the policy before, without any at first.
        values: The names to draw from.
        most: How many a value may have become at most.
    """
    if before.values and rng.random() < 0.4:
        return before
    now = tuple(rng.sample(values, rng.randint(2, 3)))
    was = {one: some for one, some in before.was.items() if {*some} <= {*now}}
    was = was if rng.random() < 0.5 else {}
    for one in values:
        if rng.random() < 0.5:
            many = min(rng.choice((1, 1, 1, 2)), most)
            was[one] = tuple(sorted(rng.sample(now, many)))
    return Division(now, was)


def words(rng: random.Random, past: Sequence[Words] = ()) -> Words:
    """Return the words of the next policy; it may be one that was before."""
    if len(past) > 1 and rng.random() < 0.3:
        return rng.choice(past[:-1])
    before = past[-1] if past else Words({})
    units = chosen(rng, before.units)
    divisions = {
        name: divided(rng, units, before.divisions.get(name, Division()))
        for name in DIVIDING
    }
    attributes = re_keyed(rng, before.attributes, ATTRIBUTES)
    names = before.names
    if past and rng.random() < 0.3:
        names = LABELS[names[0] == LABELS[0]], names[0]
    return Words(
        units,
        divisions,
        attributes,
        frozenset(one for one in attributes.values if rng.random() < 0.05),
        re_keyed(rng, before.label, VALUES, most=1),
        names,
    )


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
    attributes = (
        f"{one}: [low, {{}}{', static' * (one in own.static)}]"
        for one in own.attributes.values
    )
    former = "".join(f", former_name: {one}" for one in own.names[1:])
    values = {old: now for old, (now,) in own.label.was.items()}
    return (
        f"modicum: policy/v1\nname: p\nunits: {{{', '.join(written)}}}\n"
        f"schema: {{attributes: {{{', '.join(attributes)}}},"
        f" was: {flow(own.attributes.was)}}}\n"
        f"labels: {{{own.names[0]}: {{values: {flow(own.label.values)},"
        f" default: {own.label.values[0]}, was: {flow(values)}{former}}}}}\n"
        f"population: {{{divided}}}\n" + ruled([*own.units][:1])
    )


def flow(values: Iterable[str] | Mapping[str, str | Iterable[str]]) -> str:
    """Return a list or a mapping as YAML."""
    if isinstance(values, Mapping):
        items = (
            f"{key}: {one if isinstance(one, str) else flow(one)}"
            for key, one in values.items()
        )
        return f"{{{', '.join(items)}}}"
    return f"[{', '.join(values)}]"


class Matter(NamedTuple):
    """What the mechanisms have in common that a rule is about.

    Attributes:
        attribute: They read it, or do not.
        is_read: Whether they do.
        value: They have this value of the label; None for any.
    """

    attribute: str
    is_read: bool
    value: str | None

    def text(self, label: str) -> str:
        """Return the predicate of the rule."""
        reads = f'"{self.attribute}" in m.attributes'
        text = reads if self.is_read else f"!({reads})"
        return text if self.value is None else f'{text} && m.{label} == "{self.value}"'

    def holds(self, attribute: str, value: str) -> bool:
        """Return whether it is about a mechanism that reads one attribute."""
        reads = (attribute == self.attribute) == self.is_read
        return reads and self.value in (None, value)


def matter(rng: random.Random, own: Words) -> Matter:
    """Return what some rule of a policy is about."""
    attribute = rng.choice(own.attributes.values)
    value = rng.choice((None, *own.label.values))
    return Matter(attribute, rng.random() < 0.7, value)


def ruled(units: Sequence[str], some: str = "false") -> str:
    """Return rules for some units; what holds of history does not depend on them.

    Args:
        units: The units.
        some: What one more rule, for the first of these, is about.
    """
    rules = [f"{{name: of-{one}, when: 'true', unit: {one}" for one in units]
    rules.append(f"{{name: some, when: '{some}', unit: {units[0]}")
    return f"policies: [{', '.join(f'{one}, budget: {{eps: 9}}}}' for one in rules)}]\n"


def partitions(own: Words) -> Iterator[str]:
    """Yield the divisions of a policy as it writes them."""
    for name, (values, was, kept) in own.divisions.items():
        if values:
            units = (one for one, (facts, _) in own.units.items() if facts in kept)
            facts = f"values: {flow(values)}, immutable: {flow(units)}"
            yield f"{name}: {{{facts}, was: {flow(was)}}}"


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
    attribute = rng.choice(sorted(vocabulary.attributes))
    ((label, own),) = vocabulary.labels.items()
    named = rng.choice(DAYS) if len(clocks_of(units)) == 1 else None
    day = None
    span = None
    if named is not None and rng.random() < 0.5:
        span = ((ordinal(named),) * 2,)
        if attribute not in vocabulary.population.static:
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
        (attribute,),
        {label: rng.choice(own.values)},
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
        compiled: The last policy, with a rule for each of its units, and one for some
            mechanisms.
        matter: What these have in common.
    """

    texts: list[str]
    eras: list[Vocabulary]
    past: list[tuple[int, Past]]
    compiled: CompiledPolicy
    matter: Matter

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
        about = matter(rng, own[-1])
        rules = ruled([*own[-1].units], about.text(own[-1].names[0]))
        whole = texts[-1].partition("policies:")[0] + rules
        compiled = compile_text(whole.encode(), "p")
        eras = [found for text in texts[:-1] if (found := vocabulary_of(text))]
        now = compiled.policy.vocabulary
        for _ in range(2):
            past = [*releases(rng, eras)]
            yield History(texts, [*eras, now], past, compiled, about)


def releases(
    rng: random.Random, eras: Sequence[Vocabulary]
) -> Iterator[tuple[int, Past]]:
    """Yield releases, each with the place of its policy; at least one."""
    for place, vocabulary in enumerate(eras):
        for _ in range(rng.randint(0 if place else 1, 3)):
            yield place, release(rng, vocabulary, is_new=rng.random() < 0.7)
