"""Re-keying of old releases to the policy that counts them now.

There is no other way from a recorded loss to a cell. Where an attribute that divides
the population was since refined, coarsened, renamed or dropped, a release is charged to
all values that its own may correspond to now. Periods of another clock, or beside an
attribute that had no time then, become all of time. Where units are defined otherwise,
each has the loss that the recorded ones prove for it. Where attributes were renamed, a
release reads all those that its own may be now. Where instances were not yet known to
keep a value, it is charged to every value.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from msgspec import structs

from modicum.ledger.decision.charges import entailed
from modicum.ledger.log.chain import ChainBreakError
from modicum.ledger.log.recorded_release import RecordedMechanism, RecordedRelease
from modicum.ledger.state.past_vocabulary import Held, is_entailed
from modicum.release import EVERYTHING, Part, Partition, Population, Vocabulary
from modicum.release.entailment import Entailment, entailment
from modicum.release.parts import in_order, merged
from modicum.release.population import Was

#: Maximum number of cached parts.
_REMEMBERED_MAX = 10_000


class Migration:
    """Re-keys releases of a log to one policy.

    Args:
        policies: The policies that were activated up to a head, oldest first.
        vocabulary: That of the policy that counts now: the last of these policies, or
            one that would take its place.
        text: The text of that policy. Without it, only parts are re-keyed.
    """

    def __init__(
        self,
        policies: Sequence[Held],
        vocabulary: Vocabulary,
        text: str | None = None,
    ) -> None:
        self._policies = tuple(policies)
        self._vocabulary = vocabulary
        self._text = text
        self._entails = text is not None and is_entailed(policies, text)
        self._seqs = [one.seq for one in policies]
        present = vocabulary.population
        chain = [
            present if one.text == text else _population_of(one) for one in policies
        ]
        if not chain or chain[-1] != present:
            chain.append(present)
        self._chain = [
            _ambiguous(one) if one in chain[: max(place - 1, 0)] else one
            for place, one in enumerate(chain)
        ]
        self._parts: dict[tuple[Part, int], Part] = {}
        self._entailments: dict[int, Entailment | None] = {}
        self._unclaimed: dict[int, tuple[frozenset[str], bool]] = {}
        self._renamed: dict[int, Mapping[str, frozenset[str]]] = {}

    def release(self, release: RecordedRelease, seq: int) -> RecordedRelease:
        """Return a release in the present vocabulary."""
        held = self._held(seq)
        found, names = self._entailment(held), self._names(held)
        if found is None and not names:
            if held == len(self._chain) - 1 and not self._chain[-1].static:
                return release  # It used the present vocabulary.
            if all(one.part == EVERYTHING for one in release.mechanisms):
                return release
        mechanisms = tuple(
            self._mechanism(
                _named(
                    one if found is None else entailed(one, found, self._vocabulary),
                    names,
                ),
                seq,
            )
            for one in release.mechanisms
        )
        return (
            release
            if mechanisms == release.mechanisms
            else structs.replace(release, mechanisms=mechanisms)
        )

    def part(self, part: Part, seq: int) -> Part:
        """Return a part in the present vocabulary.

        Args:
            part: The part, in the vocabulary of the policy active then.
            seq: The number of its entry.
        """
        held = self._held(seq)
        if part.where is None or held == len(self._chain) - 1:
            return part
        found = self._parts.get((part, held))
        if found is None:
            if len(self._parts) >= _REMEMBERED_MAX:
                self._parts.clear()
            from modicum.release.part_migration import re_expressed

            found = self._parts[part, held] = re_expressed(part, self._chain[held:])
        return found

    def _entailment(self, held: int) -> Entailment | None:
        """Return what losses under an earlier policy prove; None for themselves."""
        if not self._entails or held >= len(self._policies):
            return None
        if held not in self._entailments:
            policy, now = self._policies[held], self._vocabulary.unit_facts
            found: Entailment | None = None
            if policy.text != self._text:
                from modicum.policy.past_units import vocabulary_of

                past = vocabulary_of(policy.text)
                if past is None:
                    raise ChainBreakError(policy.seq, "its policy cannot be read")
                if past.unit_facts != now:
                    found = entailment(past.unit_facts, now)
            self._entailments[held] = found
        return self._entailments[held]

    def _names(self, held: int) -> Mapping[str, frozenset[str]]:
        """Return by attribute of an earlier policy those that it may be now."""
        if held not in self._renamed:
            since = self._policies[held:]
            is_same = all(one.text == self._text for one in since)
            self._renamed[held] = {} if is_same else _renamed(since, self._vocabulary)
        return self._renamed[held]

    def _held(self, seq: int) -> int:
        """Return the place of the policy that held when an entry was made."""
        return max(bisect_right(self._seqs, seq) - 1, 0)

    def _mechanism(self, one: RecordedMechanism, seq: int) -> RecordedMechanism:
        part = self.part(one.part, seq)
        if self._entails:
            part = self._as_claimed(part, self._held(seq))
        if part.periods is not None and not self._tells_time(one, self._held(seq)):
            part = replace(part, periods=None)
        return one if part is one.part else one.over(part)

    def _as_claimed(self, part: Part, held: int) -> Part:
        """Return a part without what no claim since then says that instances keep."""
        if part.where is None and part.groups is None:
            return part
        if held not in self._unclaimed:
            self._unclaimed[held] = _unclaimed(self._chain[held:], self._vocabulary)
        names, groups = self._unclaimed[held]
        if not names and not groups:
            return part
        where = part.where
        if where is not None and names:
            boxes = {
                tuple(pair for pair in box if pair[0] not in names) for box in where
            }
            where = None if () in boxes else in_order(boxes)
        return Part(where, part.periods, None if groups else part.groups)

    def _tells_time(self, one: RecordedMechanism, held: int) -> bool:
        """Return whether the periods of a mechanism still have the same meaning."""
        since = self._chain[held:]
        return all(
            population.clocks == since[0].clocks
            and population.static.isdisjoint(one.attributes)
            for population in since
        )


def _population_of(policy: Held) -> Population:
    from modicum.policy.past_units import population_of

    return population_of(policy.text)


def _unclaimed(
    since: Sequence[Population], vocabulary: Vocabulary
) -> tuple[frozenset[str], bool]:
    """Return what is claimed to be immutable now, and was not always since a policy.

    Args:
        since: The division of the population by each policy since then.
        vocabulary: That of the present policy.

    Returns:
        The partitioning attributes, and whether user groups are another one. A claim
        about a unit is one about each unit that it covers.
    """
    around = [
        vocabulary.covers.get(unit, frozenset()) | {unit} for unit in vocabulary.units
    ]
    names = set()
    for name, partition in vocabulary.population.partitions.items():
        fixed = [units for units in around if units & {*partition.immutable}]
        for population in since:
            then = population.partitions.get(name)
            claimed = frozenset() if then is None else frozenset(then.immutable)
            if not all(units & claimed for units in fixed):
                names.add(name)
    grouped = [units for units in around if units & vocabulary.population.grouped]
    groups = any(
        not units & population.grouped for population in since for units in grouped
    )
    return frozenset(names), groups


def _named(
    one: RecordedMechanism, names: Mapping[str, frozenset[str]]
) -> RecordedMechanism:
    """Return a mechanism that reads the attributes that its own may be now."""
    if names.keys().isdisjoint(one.attributes):
        return one
    now = {name for old in one.attributes for name in names.get(old, (old,))}
    return replace(one, attributes=tuple(sorted(now)))


def _renamed(
    policies: Sequence[Held], vocabulary: Vocabulary
) -> Mapping[str, frozenset[str]]:
    """Return by attribute of the first policy its further names by now.

    An entry of `was` that the policy before already had is not applied again: a later
    attribute of the former name is another one.
    """
    from modicum.policy.past_units import vocabulary_of

    steps = [vocabulary_of(one.text) for one in policies]
    known = [one.renamed for one in steps if one is not None]
    found: dict[str, set[str]] = {}
    for before, after in pairwise([*known, vocabulary.renamed]):
        new = {old: now for old, now in after.items() if before.get(old) != now}
        for names in found.values():
            names |= {now for old in names & new.keys() for now in new[old]}
        for old, now in new.items():
            found.setdefault(old, set()).update(now)
    present = vocabulary.attributes
    return {old: frozenset(now | ({old} & present)) for old, now in found.items()}


def _ambiguous(population: Population) -> Population:
    """Return a division that was reintroduced after another one.

    Whether its migration step applied again is unknown. So an old value that is still a
    value is charged as itself as well as its successors.
    """
    partitions = {
        name: replace(one, was=tuple(_either(was, one) for was in one.was))
        for name, one in population.partitions.items()
    }
    return structs.replace(population, partitions=partitions)


def _either(was: Was, partition: Partition) -> Was:
    if partition.values is not None:
        known = {*was.now, *was.old} & {*partition.values}
        return Was(was.old, tuple(sorted(one for one in known if isinstance(one, str))))
    spans = [one for one in (*was.now, *was.old) if not isinstance(one, str)]
    inside = [
        (max(low, partition.low), min(high, partition.high))
        for low, high in spans
        if low <= partition.high and high >= partition.low
    ]
    return Was(was.old, merged(inside))
