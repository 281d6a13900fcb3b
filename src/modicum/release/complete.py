"""Completing losses: what is proven for one unit, from what is stated for others.

A change of one unit is made by some number of changes of another (`units.all_steps`);
what these cost together is a matter of group privacy, applied to the whole curve
before it is rounded into a loss.
"""

from __future__ import annotations

from collections.abc import Mapping

from modicum.accounting import INFINITE, Loss
from modicum.accounting.grid import DELTA, EPS
from modicum.accounting.group_privacy import group
from modicum.core.record import dataclass
from modicum.release.unit_losses import Stated
from modicum.release.units import Relation
from modicum.release.vocabulary import Vocabulary

#: Numbers of steps by (unit that changes, unit of the steps).
Steps = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Proven:
    """A loss that is proven for a unit.

    Attributes:
        loss: The loss.
        source: What it was proven from, in words.
    """

    loss: Loss
    source: str


def completed(
    unit: str, given: Mapping[str, Stated], steps: Steps, vocabulary: Vocabulary
) -> Proven | None:
    """Return the best loss that is proven for a unit, or None if none is.

    What is stated for the unit itself is kept, unless something derived is nowhere
    more. Where neither has a delta, the less holds in every coordinate. If nothing is
    stated, a loss without a delta is preferred to one with a delta; among the latter
    the one of the least eps is taken.

    Args:
        unit: The unit.
        given: What is stated, by unit.
        steps: How many changes of one unit make one of another.
        vocabulary: Its units, in order, and their relations.
    """
    derived = [
        _derived(
            given[other],
            other,
            count,
            (vocabulary.relation(unit), vocabulary.relation(other)),
        )
        for other in vocabulary.units
        if other != unit
        and other in given
        and (count := steps.get((unit, other))) is not None
    ]
    useful = [proven for proven in derived if says_something(proven.loss)]
    own = given.get(unit)
    if own is not None:
        return _best(Proven(own.curve.loss(), own.source), useful)
    exact = [proven for proven in useful if not proven.loss.coordinates[DELTA]]
    if exact:
        return _best(exact[0], exact[1:])
    return min(useful, key=_eps_and_delta, default=None)


def says_something(loss: Loss) -> bool:
    """Return whether a loss bounds anything: some measure, with a delta below 1.

    Args:
        loss: A loss; where nothing is proven, all measures are infinite.
    """
    return any(value < INFINITE for value in loss.coordinates[:DELTA])


def better(first: Loss, second: Loss) -> Loss:
    """Return the better of two losses that are both proven for the same change.

    Args:
        first: The one that is kept if neither is everywhere at most the other and
            a delta forbids to mix them: eps at one delta and at another are no
            guarantee together.
        second: The other one.
    """
    if nowhere_more(first, second):
        return first
    if nowhere_more(second, first):
        return second
    if first.coordinates[DELTA] or second.coordinates[DELTA]:
        return first
    return Loss(tuple(map(min, first.coordinates, second.coordinates)))


def nowhere_more(loss: Loss, other: Loss) -> bool:
    """Return whether a loss is at most another one, in every coordinate.

    Args:
        loss: The one.
        other: The other.
    """
    pairs = zip(loss.coordinates, other.coordinates, strict=True)
    return all(mine <= most for mine, most in pairs)


def _derived(
    stated: Stated, other: str, count: int, relations: tuple[Relation, Relation]
) -> Proven:
    words = _words(other, count, *relations)
    return Proven(group(stated.curve, count).loss(), words)


def _words(other: str, count: int, change: Relation, step: Relation) -> str:
    if count > 1 and step == "add-remove" != change:
        pairs = f"{count // 2} removals and {count // 2} additions"
        return (
            f"{count} x {other}, {'1 removal and 1 addition' if count == 2 else pairs}"
        )
    if count > 1:
        return f"{count} x {other}"
    return {
        "add-remove": other,
        "substitute": f"{other}, substitution",
        "any-change": f"{other}, any change",
    }[step]


def _best(own: Proven, others: list[Proven]) -> Proven:
    for other in others:
        loss = better(own.loss, other.loss)
        if loss == own.loss:
            continue
        source = f"{own.source} or {other.source}, whichever is less"
        own = Proven(loss, other.source if loss == other.loss else source)
    return own


def _eps_and_delta(proven: Proven) -> tuple[int, int]:
    return proven.loss.coordinates[EPS], proven.loss.coordinates[DELTA]
