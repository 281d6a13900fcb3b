"""Pricing: the loss of every mechanism, for every privacy unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from modicum.accounting import Loss
from modicum.core.reading import Problems
from modicum.release.complete import Steps, completed
from modicum.release.missing import missing
from modicum.release.model import Mechanism, Release
from modicum.release.stated import Stated, refuse_halves, stated
from modicum.release.units import Relation, all_steps
from modicum.release.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class PricedMechanism:
    """A mechanism with its labels completed and its loss for every unit.

    Attributes:
        mechanism: The description.
        labels: A value for every label of the vocabulary, defaults filled in.
        losses: A loss for every unit of the vocabulary.
        neighbors: By unit, the relation that its loss is proven under.
        sources: By unit, what its loss was proven from: `declared`, `computed`,
            `31 x user-day`, `user, any change` …
    """

    mechanism: Mechanism
    labels: Mapping[str, str]
    losses: Mapping[str, Loss]
    neighbors: Mapping[str, Relation] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PricedRelease:
    """A release whose every mechanism is priced for every unit.

    Attributes:
        release: The description.
        labels: A value for every label, for the release as a whole.
        mechanisms: The priced mechanisms, in the order of the description.
    """

    release: Release
    labels: Mapping[str, str]
    mechanisms: tuple[PricedMechanism, ...]


def price(release: Release, vocabulary: Vocabulary) -> PricedRelease:
    """Return the release with the loss of each mechanism for each unit.

    Args:
        release: The description.
        vocabulary: Its units are the ones that must be priced; the relation of each
            is the one that its sensitivities and declared costs must hold under.

    Raises:
        InputError: If a loss is neither declared nor derivable for some unit, or a
            declared cost is below the one computed from the parameters.
    """
    found = Problems()
    steps = all_steps(vocabulary.unit_facts)
    priced: list[PricedMechanism] = []
    for mechanism in release.mechanisms:
        with found.guard():
            priced.append(_priced(mechanism, steps, vocabulary))
    found.raise_any()
    return PricedRelease(release, _completed(release.labels, vocabulary), tuple(priced))


def _priced(
    mechanism: Mechanism, steps: Steps, vocabulary: Vocabulary
) -> PricedMechanism:
    refuse_halves(mechanism)
    found = Problems()
    given: dict[str, Stated] = {}
    wrong: set[str] = set()
    for unit in vocabulary.units:
        wrong.add(unit)  # Until it turns out well.
        with found.guard():
            own = stated(mechanism, unit, vocabulary.relation(unit))
            wrong.discard(unit)
            if own is not None:
                given[unit] = own
    losses: dict[str, Loss] = {}
    sources: dict[str, str] = {}
    for unit in vocabulary.units:
        if wrong & {unit, *(other for one, other in steps if one == unit)}:
            continue  # It may be well when the mistake is mended.
        proven = completed(unit, given, steps, vocabulary)
        with found.guard():
            if proven is None:
                raise missing(mechanism, unit, given, steps, vocabulary)
            losses[unit], sources[unit] = proven.loss, proven.source
    found.raise_any()
    return PricedMechanism(
        mechanism,
        _completed(mechanism.labels, vocabulary),
        losses,
        {unit: vocabulary.relation(unit) for unit in vocabulary.units},
        sources,
    )


def _completed(given: Mapping[str, str], vocabulary: Vocabulary) -> dict[str, str]:
    return {
        name: given.get(name, label.default)
        for name, label in vocabulary.labels.items()
    }
