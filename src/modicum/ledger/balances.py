"""Balances: what every rule of one policy has been charged. A fold of the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from modicum.accounting import Loss, Total
from modicum.accounting.losses import total_of
from modicum.ledger.charged import charged
from modicum.ledger.events import RecordedMechanism, RecordedRelease
from modicum.policy import CompiledPolicy, Rule, RuleSet
from modicum.policy.predicates import Facts, Scope
from modicum.release import Vocabulary
from modicum.release.vocabulary import METADATA


class Balances:
    """The exact sum that each rule has been charged, under one policy.

    Mutable, and owned by one caller. Until population segments, periods and groups
    exist, a rule has one cell: its unit, for everybody, for all time.
    """

    def __init__(
        self, compiled: CompiledPolicy, releases: Iterable[RecordedRelease] = ()
    ) -> None:
        self.compiled = compiled
        self._totals: dict[str, Total] = {}
        for release in releases:
            self.charge(release)

    def total(self, rule: Rule) -> Total:
        """Return what a rule has been charged so far."""
        return self._totals.get(rule.id, _NOTHING)

    def charge(self, release: RecordedRelease, day: int = 0) -> None:
        """Add a release to every rule that it falls under."""
        for rule, losses in charges(self.compiled.rules, release, self._vocabulary):
            self._totals[rule.id] = self.total(rule).joined(total_of(losses))

    def take_back(self, release: RecordedRelease, day: int = 0) -> None:
        """Undo `charge` for a release that was given up before it started."""
        for rule, losses in charges(self.compiled.rules, release, self._vocabulary):
            total = self.total(rule)
            for loss in losses:
                total = total.minus(loss)
            self._totals[rule.id] = total

    @property
    def _vocabulary(self) -> Vocabulary:
        return self.compiled.policy.vocabulary


_NOTHING = Total()


def charges(
    rules: RuleSet, release: RecordedRelease, vocabulary: Vocabulary
) -> Iterator[tuple[Rule, list[Loss]]]:
    """Yield each rule that a release falls under, and the losses it is charged.

    A mechanism whose loss for the rule's unit was never stated and does not follow
    (the unit is newer than the release) is charged an infinite one.
    """

    @cache
    def loss(place: int, unit: str) -> Loss:
        return charged(release.mechanisms[place], unit, vocabulary)

    for rule, about in rules.matching(facts_of(release, vocabulary)):
        yield rule, [loss(place, rule.unit) for place in about]


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
