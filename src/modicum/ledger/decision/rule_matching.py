"""The rules that match a release, computed once for equal descriptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from modicum.accounting import Unlimited
from modicum.ledger.decision.limits import budget_of
from modicum.ledger.log.codec import likeness
from modicum.ledger.log.recorded_release import RecordedMechanism, RecordedRelease
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
from modicum.release.memo import Memo
from modicum.release.vocabulary import METADATA

#: Maximum number of kinds of releases cached.
REMEMBERED_MAX = 10_000


class MatchedRules(NamedTuple):
    """Rules of one unit that the same mechanisms of a release fall under.

    Attributes:
        about: The positions of the mechanisms, from 0.
        numbers: The numbers of the rules, rising.
    """

    about: tuple[int, ...]
    numbers: tuple[int, ...]


class Matched(NamedTuple):
    """The rules of one unit that match a release.

    Attributes:
        unit: The unit.
        rules: The rules, by their matching mechanisms.
    """

    unit: str
    rules: tuple[MatchedRules, ...]


class Matches(NamedTuple):
    """The rules that a release falls under, by unit.

    Attributes:
        over_history: Rules over history.
        alone: Rules that look at one release alone.
        uncovered: The positions of the mechanisms that no rule over history limits:
            they match none, or only unlimited ones.
    """

    over_history: tuple[Matched, ...]
    alone: tuple[Matched, ...]
    uncovered: tuple[int, ...]


class Matching:
    """Finds the rules of a policy that releases fall under.

    Args:
        compiled: The policy.
    """

    def __init__(self, compiled: CompiledPolicy) -> None:
        self._compiled = compiled
        self._stages = compiled.rules, compiled.release_rules
        self._vocabulary = compiled.policy.vocabulary
        #: Keys of open text: in an older policy's releases one may be a label now.
        self._texts = tuple(dict.fromkeys((*METADATA, *self._vocabulary.labels)))
        self._by_name = any(map(_looks_at_a_name, _predicates(self._stages)))
        self._found: Memo[object, Matches] = Memo(REMEMBERED_MAX)
        #: Parts of keys, by the bytes of mechanisms; much less is looked at for these.
        self._keys: Memo[bytes, object] = Memo(REMEMBERED_MAX)
        #: The last lookup: the same release is mostly looked up again next.
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
            found = self._found.keep(key, self._search(release))
        return found

    def _key(self, release: RecordedRelease) -> object:
        """Return all that predicates may look at, but names."""
        labels = release.metadata
        texts = [labels.get(name) for name in self._texts] if labels else ()
        mechanisms = [self._mechanism_key(one) for one in release.mechanisms]
        return tuple(release.labels.items()), tuple(texts), *mechanisms

    def _mechanism_key(self, one: RecordedMechanism) -> object:
        """Return all that predicates may look at in a mechanism, but its name."""
        alike = likeness(one)
        known = self._keys.get(alike)
        if known is not None:
            return known
        labels, bounds = tuple(one.labels.items()), tuple(_bounds(one).items())
        read = one.some_of or one.attributes
        key = read, labels, one.description.get("kind"), bounds
        return self._keys.keep(alike, key)

    def _search(self, release: RecordedRelease) -> Matches:
        facts = facts_of(release, self._vocabulary)
        over_history, alone = (_matched(rules, facts) for rules in self._stages)
        covered = {
            place
            for unit in over_history
            for one in unit.rules
            if any(map(self._limits, one.numbers))
            for place in one.about
        }
        uncovered = set(range(len(facts))) - covered
        return Matches(over_history, alone, tuple(sorted(uncovered)))

    def _limits(self, number: int) -> bool:
        """Return whether a rule over history has a limit."""
        return not isinstance(budget_of(self._compiled, number), Unlimited)


def _matched(rules: RuleSet, facts: tuple[Facts, ...]) -> tuple[Matched, ...]:
    """Return the rules of one stage that a release falls under."""
    contexts = len(rules.contexts)
    found: dict[str, dict[tuple[int, ...], list[int]]] = {}
    for number, about in rules.finder.matching(facts).items():
        unit = rules.bases[number // contexts].unit
        found.setdefault(unit, {}).setdefault(about, []).append(number)
    return tuple(
        Matched(
            unit,
            tuple(
                MatchedRules(one, tuple(each)) for one, each in by_mechanisms.items()
            ),
        )
        for unit, by_mechanisms in found.items()
    )


def _predicates(stages: Iterable[RuleSet]) -> Iterator[Predicate]:
    for rules in stages:
        yield from (base.predicate for base in rules.bases)
        yield from (one.predicate for each in rules.extensions for one in each)


def _looks_at_a_name(predicate: Predicate) -> bool:
    """Return whether a predicate refers to the name of a release or mechanism."""
    return any(
        isinstance(atom, TextIn | TextPasses) and atom.field in ("id", "name")
        for atom in atoms(predicate)
    )


def facts_of(release: RecordedRelease, vocabulary: Vocabulary) -> tuple[Facts, ...]:
    """Return the facts that predicates may use about each mechanism, in order.

    A label that the release does not have, or a value that the vocabulary no longer
    has, reads as the label's default. A former label that is open text now, or the
    reverse, is read as what it is now.
    """
    labels = {**release.metadata, **release.labels}
    release_labels = _read_labels(Scope.RELEASE, labels, vocabulary)
    release_texts = {
        (Scope.RELEASE, "id"): release.id,
        **{(Scope.RELEASE, key): labels[key] for key in METADATA if key in labels},
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
            some_of=one.some_of,
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
    if not stated or not isinstance(stated, Mapping):
        return {}
    return {unit: bound for unit, bound in stated.items() if isinstance(bound, int)}
