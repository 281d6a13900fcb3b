"""Re-keying of old releases to the policy that counts them now.

There is no other way from a recorded loss to a cell. Where an attribute that divides
the population was since refined, coarsened, renamed or dropped, a release is charged to
all values that its own may correspond to now. Periods of another clock, or beside an
attribute that had no time then, become all of time. Where units are defined otherwise,
each has the loss that the recorded ones prove for it. Where attributes or labels were
renamed, a release has the present names; where an attribute was split, it reads one or
more of those that it may be. Where instances were not yet known to keep a value, it is
charged to every value.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from modicum.ledger.decision.charges import entailed
from modicum.ledger.log.chain import ChainBreakError
from modicum.ledger.log.recorded_release import RecordedMechanism, RecordedRelease
from modicum.ledger.state.past_vocabulary import Held, is_entailed
from modicum.release import Part, Population, Vocabulary
from modicum.release.entailment import Entailment, entailment, is_same_unit
from modicum.release.parts import in_order

if TYPE_CHECKING:
    from modicum.release.part_migration import Step

#: Maximum number of cached parts.
_REMEMBERED_MAX = 10_000


class Migration:
    """Re-keys releases of a log to one policy.

    Args:
        policies: The policies that were activated up to a head, oldest first.
        vocabulary: That of the policy that counts now: the last of these policies, or
            one that would take its place.
        text: The text of that policy. Without it, only names and parts are re-keyed.
        entails: Whether it charges what losses prove; by default, if it does or would.
    """

    def __init__(
        self,
        policies: Sequence[Held],
        vocabulary: Vocabulary,
        text: str | None = None,
        *,
        entails: bool | None = None,
    ) -> None:
        self._seqs = [one.seq for one in policies]
        self._vocabulary = vocabulary
        if entails is None:
            entails = text is not None and is_entailed(policies, text)
        self._entails = entails
        #: The vocabularies of all policies and, last, the present one; None for one
        #: that cannot be read.
        self._eras = [
            *(vocabulary if one.text == text else _read(one) for one in policies),
            vocabulary,
        ]
        chain = [one.population if one else Population() for one in self._eras]
        self._names = _names(self._eras)
        steps = [*map(_labels, self._eras, self._eras[1:])]
        #: By policy, the maps of labels since, without the empty ones.
        self._labels = [[*filter(None, steps[place:])] for place in range(len(chain))]
        #: From here on, all are the present one; without its text, all divide alike,
        #: and have the same names.
        self._fresh = len(policies)
        while self._fresh and (
            self._eras[self._fresh - 1] is vocabulary
            or (
                text is None
                and chain[self._fresh - 1] == chain[-1]
                and not self._labels[self._fresh - 1]
                and not self._names[self._fresh - 1].now
            )
        ):
            self._fresh -= 1
        self._chain = chain
        self._steps: list[Step] | None = None
        self._parts: dict[tuple[Part, int], Part] = {}
        self._entailments: dict[int, Entailment] = {}
        self._undivided: dict[int, Mapping[str, Undivided]] = {}

    def release(self, release: RecordedRelease, seq: int) -> RecordedRelease:
        """Return a release in the present vocabulary.

        Raises:
            ChainBreakError: If its policy cannot be read, and its losses are to be
                charged to units of other definitions.
        """
        held = self._held(seq)
        if held >= self._fresh and not self._chain[-1].static:
            return release  # It used the present vocabulary.
        mechanisms = tuple(self._mechanism(one, held) for one in release.mechanisms)
        labels = self._labeled(release.labels, held)
        if mechanisms == release.mechanisms and labels is release.labels:
            return release
        return structs.replace(release, mechanisms=mechanisms, labels=labels)

    def is_renamed(self, mechanism: RecordedMechanism, seq: int) -> bool:
        """Return whether an attribute that a mechanism reads has been mapped since."""
        mapped = self._names[self._held(seq)].mapped
        return not mapped.isdisjoint(mechanism.attributes)

    def part(self, part: Part, seq: int) -> Part:
        """Return a part in the present vocabulary.

        Args:
            part: The part, in the vocabulary of the policy active then.
            seq: The number of its entry.
        """
        return self._part(part, self._held(seq))

    def _held(self, seq: int) -> int:
        """Return the place of the policy that held when an entry was made."""
        return max(bisect_right(self._seqs, seq) - 1, 0)

    def _mechanism(self, one: RecordedMechanism, held: int) -> RecordedMechanism:
        now = self._named(one, held)
        part = self._part(one.part, held)
        forgets = part.periods is not None and not self._tells_time(one, held)
        if forgets:
            part = replace(part, periods=None)
        if part is not one.part:
            now = now.over(part)
        if self._entails:
            # What reads timeless data was never priced by its days.
            timed = self._chain[held].static.isdisjoint(one.attributes)
            now = self._charged(now, held, has_lost_days=forgets and timed)
        return now

    def _part(self, part: Part, held: int) -> Part:
        if part.where is None or held >= self._fresh:
            return part
        found = self._parts.get((part, held))
        if found is None:
            if len(self._parts) >= _REMEMBERED_MAX:
                self._parts.clear()
            from modicum.release.part_migration import (
                former_steps_of,
                re_expressed,
                steps_of,
            )

            if self._steps is None:
                steps = steps_of if self._entails else former_steps_of
                self._steps = steps(self._chain)
            found = self._parts[part, held] = re_expressed(part, self._steps[held:])
        return found

    def _named(self, one: RecordedMechanism, held: int) -> RecordedMechanism:
        """Return a mechanism with the attributes and labels that its own are now."""
        labels = self._labeled(one.labels, held)
        if labels is not one.labels:
            one = replace(one, labels=labels)
        names = self._names[held].now
        if names.keys().isdisjoint(one.attributes):
            return one
        now = tuple(names.get(old, frozenset({old})) for old in one.attributes)
        some_of = now if any(len(each) > 1 for each in now) else ()
        read = tuple(sorted(frozenset().union(*now)))
        return replace(one, attributes=read, some_of=some_of)

    def _labeled(self, labels: Mapping[str, str], held: int) -> Mapping[str, str]:
        for step in self._labels[held] if labels else ():
            new = {name: step.get(name, NextLabel(name, {})) for name in labels}
            labels = {
                new[name].name: new[name].values.get(value, value)
                for name, value in labels.items()
            }
        return labels

    def _tells_time(self, one: RecordedMechanism, held: int) -> bool:
        """Return whether the periods of a mechanism still have the same meaning."""
        since = self._chain[held:]
        return all(
            population.clocks == since[0].clocks for population in since
        ) and self._names[held].static.isdisjoint(one.attributes)

    def _charged(
        self, one: RecordedMechanism, held: int, *, has_lost_days: bool
    ) -> RecordedMechanism:
        """Return a mechanism with what it is charged for the units of today."""
        past, now = self._eras[held], self._vocabulary
        if past is None:
            policy = self._seqs[held]
            raise ChainBreakError(policy, "its policy cannot be read")
        if held >= self._fresh and not has_lost_days:
            return one
        if held not in self._entailments:
            self._entailments[held] = entailment(past.unit_facts, now.unit_facts)
            self._undivided[held] = self._unclaimed(held)
        found = self._entailments[held]
        if has_lost_days or past.unit_facts != now.unit_facts:
            # A derived loss may rest on days that are not known any more.
            one = entailed(one, found, now, is_derived_proven=not has_lost_days)
        part = one.part
        if part.where is None and part.groups is None:
            return one
        undivided = {
            unit: wide
            for unit, claims in self._undivided[held].items()
            if (wide := claims.part(part)) != part
        }
        return replace(one, undivided=undivided) if undivided else one

    def _unclaimed(self, held: int) -> Mapping[str, Undivided]:
        """Return by unit what it keeps by today's claims, and not by all since."""
        now = self._vocabulary
        found: dict[str, Undivided] = {}
        for unit in now.units:
            wide = now.covers.get(unit, frozenset()) | {unit}
            claims = [_kept(one, wide, now) for one in self._eras[held:]]
            names = claims[-1].intersection(*claims)
            missing = claims[-1] - names
            if missing:
                found[unit] = Undivided(missing - {_GROUPS}, _GROUPS in missing)
        return found


#: Stands for user groups among the names of partitioning attributes.
_GROUPS = " groups"


class Undivided(NamedTuple):
    """What a release is not divided by for a unit.

    Attributes:
        names: Partitioning attributes.
        groups: Whether user groups are another one.
    """

    names: frozenset[str]
    groups: bool

    def part(self, part: Part) -> Part:
        """Return a part that does not name these."""
        where = part.where
        if where is not None:
            boxes = {
                tuple(pair for pair in box if pair[0] not in self.names)
                for box in where
            }
            where = None if () in boxes else in_order(boxes)
        return Part(where, part.periods, None if self.groups else part.groups)


def _kept(
    past: Vocabulary | None, wide: frozenset[str], now: Vocabulary
) -> frozenset[str]:
    """Return what instances of a present unit keep by the claims of a policy.

    Args:
        past: The vocabulary of the policy; None if it cannot be read.
        wide: The present unit, and those that cover it: what they keep, it keeps.
        now: The present vocabulary. Units are compared by their definitions.
    """
    if past is None:
        return frozenset()
    twins = {
        old
        for old, facts in past.unit_facts.items()
        for unit in wide
        if unit in now.unit_facts and is_same_unit(facts, now.unit_facts[unit])
    }
    around = twins.union(*(past.covers.get(one, ()) for one in twins))
    names = {
        name
        for name, one in past.population.partitions.items()
        if around & {*one.immutable}
    }
    return frozenset(names | ({_GROUPS} if around & past.population.grouped else set()))


class Names(NamedTuple):
    """What attributes of an earlier policy are today.

    Attributes:
        now: By attribute that was renamed, its names today.
        static: Attributes that have no meaningful time, or had none under a later name.
        mapped: Attributes that were renamed since, or that others became.
    """

    now: Mapping[str, frozenset[str]]
    static: frozenset[str]
    mapped: frozenset[str] = frozenset()


def _names(eras: Sequence[Vocabulary | None]) -> list[Names]:
    """Return the names for each of several policies, the last one the present.

    An entry of `was` that the policy before already had is not applied again: a later
    attribute of the former name is another one.
    """
    empty: Mapping[str, tuple[str, ...]] = {}
    found = [Names({}, eras[-1].population.static if eras[-1] else frozenset())]
    for before, after in pairwise(reversed(eras)):
        later, old = found[-1], after.renamed if after else empty
        new = {
            name: now
            for name, now in (before.renamed if before else empty).items()
            if old.get(name) != now
        }
        steps = {name: new.get(name, (name,)) for name in new.keys() | later.now.keys()}
        names = {
            name: frozenset().union(*(later.now.get(one, {one}) for one in now))
            for name, now in steps.items()
        }
        static = {name for name, now in new.items() if later.static & {*now}}
        static |= (later.static - new.keys()) | (
            after.population.static if after else frozenset()
        )
        mapped = later.mapped.union(new, *new.values())
        found.append(Names(names, frozenset(static), mapped))
    return found[::-1]


class NextLabel(NamedTuple):
    """What a label of a policy is under the next one.

    Attributes:
        name: Its name there.
        values: By value that it had, the one that it is there, where that is another.
    """

    name: str
    values: Mapping[str, str]


def _labels(old: Vocabulary | None, new: Vocabulary | None) -> Mapping[str, NextLabel]:
    """Return the labels that have another name or other values under the next policy.

    What the policy before already mapped is not mapped again, as in `_names`.
    """
    found: dict[str, NextLabel] = {}
    if old is None or new is None:
        return found
    for name, label in new.labels.items():
        own = old.labels.get(name)
        known = own is not None and own.former_name == label.former_name
        former = name if known or label.former_name is None else label.former_name
        before = old.labels.get(former)
        values = {*label.was} - {*(before.was if before else ())}
        if former != name or values:
            found[former] = NextLabel(name, dict(values))
    taken = {one.name for one in found.values()}
    gone = {one: NextLabel(f"former {one}", {}) for one in taken - found.keys()}
    return {**found, **gone}


def _read(policy: Held) -> Vocabulary | None:
    from modicum.policy.past_units import vocabulary_of

    return vocabulary_of(policy.text)
