"""Charges under the present policy for losses recorded earlier.

A recorded loss was proven for one neighboring relation of one unit. The present policy
may have another relation, other units, or an order between them. All is done on the
recorded integers: decisions and balances never price anything. Whether a record covers
its description is checked by an audit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from modicum.accounting import COORDINATES, INFINITE, ORDERS, Loss
from modicum.accounting.grid import DELTA, EPS, FIRST_ORDER, MU2, RHO
from modicum.ledger.log.recorded_release import RecordedMechanism
from modicum.release import Vocabulary
from modicum.release.completion import better, nowhere_more
from modicum.release.entailment import Entailment
from modicum.release.units import INSIDE, MOVING, SAME, Reach, Relation, changes

#: The loss for a unit that nothing is known about.
UNKNOWN = Loss((INFINITE,) * COORDINATES)


def entailed(
    mechanism: RecordedMechanism,
    found: Entailment,
    vocabulary: Vocabulary,
    *,
    is_derived_proven: bool = True,
) -> RecordedMechanism:
    """Return a mechanism with the losses that it has for the units of another policy.

    A unit that nothing is proven for has no loss.

    Args:
        mechanism: The mechanism as it was recorded.
        found: What losses under its policy prove under the other one.
        vocabulary: The other policy's units and their relations.
        is_derived_proven: Whether losses that follow from other units still do, as far
            as claims about units are concerned.
    """
    derived = mechanism.losses if mechanism.derived is None else mechanism.derived
    proven = {
        unit: loss
        for unit, loss in mechanism.losses.items()
        if (is_derived_proven and not found.weaker) or unit not in derived
    }
    losses: dict[str, Loss] = {}
    neighbors: dict[str, Relation] = {}
    for unit in vocabulary.units:
        own = found.same.get(unit, "")
        if own in proven:
            losses[unit] = proven[own]
            neighbors[unit] = mechanism.neighbors.get(own, "add-remove")
            continue
        neighbors[unit] = vocabulary.relation(unit)
        loss = UNKNOWN
        for source in found.sources[unit]:
            recorded = mechanism.neighbors.get(source.unit, "add-remove")
            count = source.steps(neighbors[unit], recorded)
            if count is not None and source.unit in proven:
                loss = better(loss, of_changes(proven[source.unit], count))
        if loss != UNKNOWN:
            losses[unit] = loss
    kept = {unit: neighbors[unit] for unit in losses if neighbors[unit] != "add-remove"}
    if mechanism.derived is not None:
        # The description states numbers by the names of then.
        renamed = {unit for unit in losses if found.same.get(unit) != unit}
        derived = tuple(sorted({*derived, *renamed} & losses.keys()))
        mechanism = replace(mechanism, derived=derived)
    return replace(mechanism, losses=losses, neighbors=kept)


def charged(mechanism: RecordedMechanism, unit: str, vocabulary: Vocabulary) -> Loss:
    """Return the charge of a mechanism to a rule of a unit.

    It is never below what is proven for the unit's present relation, and, in every
    coordinate, never above the charge of a unit that bounds it (see
    `Vocabulary.bounding`): then a rule of the smaller unit can be implied by one of the
    larger.

    Args:
        mechanism: The mechanism as it was recorded.
        unit: The unit.
        vocabulary: The present policy's units, their order and relations.
    """
    if vocabulary.independent and not mechanism.neighbors:
        return mechanism.losses.get(unit, UNKNOWN)
    return charged_by_unit(mechanism, vocabulary).get(unit, UNKNOWN)


def moved(mechanism: RecordedMechanism, unit: str, vocabulary: Vocabulary) -> Loss:
    """Return the charge of a unit where an instance leaves a mechanism's data.

    That is, where only one of two neighbors has the instance in the part of the
    population that is read: for a loss proven for adding or removing it, that is one
    step, though the change as a whole may be two.

    Args:
        mechanism: The mechanism as it was recorded.
        unit: The unit; its relation may be any.
        vocabulary: The present policy's units, their order and relations.
    """
    own = mechanism.losses.get(unit)
    recorded = mechanism.neighbors.get(unit, "add-remove")
    # A unit that bounds others must be charged no less than they are.
    bounds = any(unit in vocabulary.bounding(one) for one in vocabulary.units)
    if own is None or recorded != "add-remove" or bounds:
        return charged(mechanism, unit, vocabulary)
    return own


def charged_by_unit(
    mechanism: RecordedMechanism, vocabulary: Vocabulary
) -> dict[str, Loss]:
    """Return `charged` for every unit of the vocabulary.

    Args:
        mechanism: The mechanism as it was recorded.
        vocabulary: The present policy's units, their order and relations.
    """
    proven: dict[str, Loss] = {}
    # Units that cover another one are covered by fewer themselves: they come first.
    for unit in sorted(vocabulary.units, key=lambda one: len(_above(one, vocabulary))):
        loss = _recorded(mechanism, unit, vocabulary)
        for cover in _changing(unit, vocabulary):
            loss = _at_most(loss, proven[cover])
        proven[unit] = loss
    return _raised(proven, vocabulary)


def _raised(proven: Mapping[str, Loss], vocabulary: Vocabulary) -> dict[str, Loss]:
    """Raise the losses of covering units to the charge of the unit.

    It is needed only if two units that cover a third have a delta each, and neither
    loss is below the other: the third cannot be below both, and still be proven.
    """
    charges = dict(proven)
    for unit in vocabulary.units:
        for cover in _changing(unit, vocabulary):
            if not nowhere_more(proven[unit], charges[cover]):
                pairs = zip(
                    proven[unit].coordinates, charges[cover].coordinates, strict=True
                )
                charges[cover] = Loss(tuple(map(max, pairs)))
    return charges


def _at_most(loss: Loss, cover: Loss) -> Loss:
    """Return a proven loss that is nowhere above that of a unit that covers this one.

    Both are proven for this unit, since a change of it is one of the cover.
    """
    found = better(loss, cover)
    return found if nowhere_more(found, cover) else cover


def _recorded(mechanism: RecordedMechanism, unit: str, vocabulary: Vocabulary) -> Loss:
    """Return the loss proven by the records for a unit's present relation.

    That is its own, or, if it has none, that of the units that cover it.
    """
    if unit in mechanism.losses:
        return _converted(mechanism, unit, SAME, vocabulary.relation(unit))
    found = UNKNOWN
    for cover in vocabulary.units:
        if cover in _above(unit, vocabulary) and cover in mechanism.losses:
            reach = INSIDE if cover in vocabulary.owners[unit] else MOVING
            loss = _converted(mechanism, cover, reach, vocabulary.relation(unit))
            found = better(found, loss)
    return found


def _converted(
    mechanism: RecordedMechanism, unit: str, reach: Reach, present: Relation
) -> Loss:
    recorded = mechanism.neighbors.get(unit, "add-remove")
    count = changes(reach, present, recorded)
    return UNKNOWN if count is None else of_changes(mechanism.losses[unit], count)


def of_changes(loss: Loss, count: int) -> Loss:
    """Return the cost of several changes, given that of one; no delta is known.

    k eps; k**2 rho; (k mu)**2; at every order the least that one of these proves.

    Args:
        loss: The cost of one change.
        count: The number of changes k, >= 1.
    """
    if count == 1:
        return loss
    if loss.coordinates[DELTA]:
        return UNKNOWN
    eps = _times(count, loss.coordinates[EPS])
    rho = _times(count * count, loss.coordinates[RHO])
    mu2 = _times(count * count, loss.coordinates[MU2])
    orders = (
        # Orders are rational, so their multiples are rounded up.
        min(
            eps,
            _times(order.numerator, rho, order.denominator),
            _times(order.numerator, mu2, 2 * order.denominator),
        )
        for order in ORDERS
    )
    found = [0] * COORDINATES
    found[EPS], found[RHO], found[MU2] = eps, min(rho, eps), mu2
    found[FIRST_ORDER:DELTA] = orders
    return Loss(tuple(found))


def _times(factor: int, units: int, divisor: int = 1) -> int:
    if units >= INFINITE:
        return INFINITE
    return min(-(-factor * units // divisor), INFINITE)


def _above(unit: str, vocabulary: Vocabulary) -> frozenset[str]:
    """Return the units that cover a unit, without itself."""
    return vocabulary.covers.get(unit, frozenset()) - {unit}


def _changing(unit: str, vocabulary: Vocabulary) -> list[str]:
    """Return the units whose charge is never below that of a unit, in file order."""
    bounding = vocabulary.bounding(unit)
    return [cover for cover in vocabulary.units if cover in bounding]
