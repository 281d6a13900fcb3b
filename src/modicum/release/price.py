"""Pricing: the loss of every mechanism, for every privacy unit."""

from __future__ import annotations

from collections.abc import Mapping

from modicum.accounting import Loss
from modicum.core.reader import Problems
from modicum.release.completion import Steps, completed
from modicum.release.model import Mechanism, Release
from modicum.release.periods import overlaps
from modicum.release.priced_release import PricedMechanism, PricedRelease
from modicum.release.unit_losses import Stated, refuse_halves, refuse_selection, stated
from modicum.release.units import all_steps, kinds
from modicum.release.vocabulary import Vocabulary


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
    priced: list[PricedMechanism] = []
    for mechanism in release.mechanisms:
        with found.guard():
            priced.append(price_mechanism(mechanism, vocabulary))
    found.raise_any()
    return PricedRelease(
        release, with_defaults(release.labels, vocabulary), tuple(priced)
    )


def steps_of(mechanism: Mechanism, vocabulary: Vocabulary) -> Steps:
    """Return how many changes of one unit make one of another, as a mechanism sees it.

    Timeless data may be joined to rows of any day: a mechanism that reads it is not
    limited to the named periods.
    """
    days = mechanism.part.periods
    units = vocabulary.unit_facts
    timeless = not vocabulary.population.static.isdisjoint(mechanism.attributes)
    within = None
    if days is not None and not timeless and len(vocabulary.clocks) == 1:
        within = overlaps(kinds(units), days)
    known = vocabulary.steps.get(within)
    if known is not None:
        return known
    return vocabulary.steps.keep(within, all_steps(units, within))


def price_mechanism(mechanism: Mechanism, vocabulary: Vocabulary) -> PricedMechanism:
    """Return a mechanism with its loss for each unit.

    Raises:
        InputError: As `price` does.
    """
    refuse_halves(mechanism)
    refuse_selection(mechanism)
    if mechanism.sampling is not None:
        from modicum.release.sample_price import refuse_unproven

        refuse_unproven(mechanism, vocabulary)
    steps = steps_of(mechanism, vocabulary)
    found = Problems()
    given: dict[str, Stated] = {}
    wrong: set[str] = set()
    for unit in vocabulary.units:
        wrong.add(unit)  # Until proven otherwise.
        with found.guard():
            own = stated(mechanism, unit, vocabulary)
            wrong.discard(unit)
            if own is not None:
                given[unit] = own
    losses: dict[str, Loss] = {}
    sources: dict[str, str] = {}
    for unit in vocabulary.units:
        if wrong & {unit, *(other for one, other in steps if one == unit)}:
            continue  # It may be right once the mistake is corrected.
        proven = completed(unit, given, steps, vocabulary)
        with found.guard():
            if proven is None:
                from modicum.release.completion import missing

                raise missing(mechanism, unit, given, steps, vocabulary)
            losses[unit], sources[unit] = proven.loss, proven.source
    found.raise_any()
    return PricedMechanism(
        mechanism,
        with_defaults(mechanism.labels, vocabulary),
        losses,
        {unit: vocabulary.relation(unit) for unit in vocabulary.units},
        sources,
    )


def with_defaults(given: Mapping[str, str], vocabulary: Vocabulary) -> dict[str, str]:
    """Return a value for every label, the default where none is given.

    Args:
        given: The given labels.
        vocabulary: All labels.
    """
    return {
        name: given.get(name, label.default)
        for name, label in vocabulary.labels.items()
    }
