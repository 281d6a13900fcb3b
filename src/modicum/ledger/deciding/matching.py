"""Which rules a release falls under, found once for what is described alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from modicum.ledger.log.recorded import RecordedMechanism, RecordedRelease
from modicum.policy import CompiledPolicy, RuleSet
from modicum.policy.predicates import (
    Facts,
    Predicate,
    Scope,
    TextIn,
    TextPasses,
    atoms,
)
from modicum.release import Vocabulary
from modicum.release.vocabulary import METADATA

#: So many different kinds of releases are remembered.
REMEMBERED_MAX = 10_000


class Matched(NamedTuple):
    """Rules of one unit that the same mechanisms of a release fall under.

    Attributes:
        unit: The unit.
        about: The positions of the mechanisms, from 0.
        numbers: The numbers of the rules, rising.
    """

    unit: str
    about: tuple[int, ...]
    numbers: tuple[int, ...]


class Matches(NamedTuple):
    """The rules that a release falls under, by unit and mechanisms.

    Attributes:
        over_history: Rules over history.
        alone: Rules that look at one release alone.
    """

    over_history: tuple[Matched, ...]
    alone: tuple[Matched, ...]


class Matching:
    """Finds the rules of a policy that releases fall under.

    Args:
        compiled: The policy.
    """

    def __init__(self, compiled: CompiledPolicy) -> None:
        self._stages = compiled.rules, compiled.release_rules
        self._vocabulary = compiled.policy.vocabulary
        #: What may stand as open text: of an older policy it may be a label now.
        self._texts = tuple(dict.fromkeys((*METADATA, *self._vocabulary.labels)))
        self._by_name = any(map(_looks_at_a_name, _predicates(self._stages)))
        self._found: dict[object, Matches] = {}
        #: What was asked last: the same release is mostly asked for again next.
        self._last: tuple[RecordedRelease, Matches] | None = None

    def of(self, release: RecordedRelease) -> Matches:
        """Return the rules that a release falls under."""
        last = self._last
        if last is None or last[0] is not release:
            last = self._last = release, self._known(release)
        return last[1]

    def _known(self, release: RecordedRelease) -> Matches:
        if self._by_name:
            return self._search(release)
        key = self._key(release)
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= REMEMBERED_MAX:
                self._found.clear()
            found = self._found[key] = self._search(release)
        return found

    def _key(self, release: RecordedRelease) -> object:
        """Return all that predicates may look at, but names."""
        texts = (release.metadata.get(name) for name in self._texts)
        mechanisms = (
            (
                one.attributes,
                tuple(one.labels.items()),
                one.description.get("kind"),
                tuple(_bounds(one).items()),
            )
            for one in release.mechanisms
        )
        return tuple(release.labels.items()), tuple(texts), *mechanisms

    def _search(self, release: RecordedRelease) -> Matches:
        facts = facts_of(release, self._vocabulary)
        over_history, alone = (_matched(rules, facts) for rules in self._stages)
        return Matches(over_history, alone)


def _matched(rules: RuleSet, facts: tuple[Facts, ...]) -> tuple[Matched, ...]:
    """Return the rules of one stage that a release falls under."""
    contexts = len(rules.contexts)
    found: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for number, about in rules.finder.matching(facts).items():
        unit = rules.bases[number // contexts].unit
        found.setdefault((unit, about), []).append(number)
    return tuple(
        Matched(unit, about, tuple(numbers)) for (unit, about), numbers in found.items()
    )


def _predicates(stages: Iterable[RuleSet]) -> Iterator[Predicate]:
    for rules in stages:
        yield from (base.predicate for base in rules.bases)
        yield from (one.predicate for each in rules.extensions for one in each)


def _looks_at_a_name(predicate: Predicate) -> bool:
    """Return whether a predicate asks what one release or mechanism is called."""
    return any(
        isinstance(atom, TextIn | TextPasses) and atom.field in ("id", "name")
        for atom in atoms(predicate)
    )


def uncovered(release: RecordedRelease, matched: Iterable[Matched]) -> tuple[str, ...]:
    """Return the names of the mechanisms that no rule is about.

    Args:
        release: The release.
        matched: All rules that it falls under.
    """
    covered = {place for one in matched for place in one.about}
    if len(covered) == len(release.mechanisms):
        return ()
    return tuple(
        str(one.description.get("name", "?"))
        for place, one in enumerate(release.mechanisms)
        if place not in covered
    )


def facts_of(release: RecordedRelease, vocabulary: Vocabulary) -> tuple[Facts, ...]:
    """Return what predicates may know about each mechanism, in order.

    A label that the release does not have, or a value that the vocabulary no
    longer has, reads as the label's default. What was a label when the release was
    made and is open text now, or the other way round, is read as what it is now.
    """
    said = {**release.metadata, **release.labels}
    release_labels = _read_labels(Scope.RELEASE, said, vocabulary)
    release_texts = {
        (Scope.RELEASE, "id"): release.id,
        **{(Scope.RELEASE, key): said[key] for key in METADATA if key in said},
    }
    return tuple(
        Facts(
            attributes=frozenset(one.attributes),
            labels={
                **release_labels,
                **_read_labels(
                    Scope.MECHANISM, {**release.metadata, **one.labels}, vocabulary
                ),
            },
            texts={**release_texts, **_mechanism_texts(one)},
            bounds=_bounds(one),
        )
        for one in release.mechanisms
    )


def _read_labels(
    scope: Scope, given: Mapping[str, str], vocabulary: Vocabulary
) -> dict[tuple[Scope, str], str]:
    return {
        (scope, name): given[name] if given.get(name) in label.values else label.default
        for name, label in vocabulary.labels.items()
    }


def _mechanism_texts(one: RecordedMechanism) -> dict[tuple[Scope, str], str]:
    return {
        (Scope.MECHANISM, "name"): str(one.description.get("name", "")),
        (Scope.MECHANISM, "mechanism"): str(one.description.get("kind", "")),
    }


def _bounds(one: RecordedMechanism) -> dict[str, int]:
    stated = one.description.get("contribution_bound")
    pairs = stated.items() if isinstance(stated, Mapping) else ()
    return {unit: bound for unit, bound in pairs if isinstance(bound, int)}
