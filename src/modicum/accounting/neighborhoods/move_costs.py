"""Steps: the cost of one entry for each way that a move can affect it.

The rule is always the same. A loss proven for one native change is paid once for each
native change that the move amounts to; a change that no path of native changes composes
costs infinity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from modicum.accounting.curves import UNKNOWN, Curve
from modicum.accounting.grid import COORDINATES, DELTA, INFINITE
from modicum.accounting.group_privacy import group
from modicum.accounting.losses import Loss
from modicum.accounting.neighborhoods.entries import Entry, Part, Relation, UserPer
from modicum.accounting.neighborhoods.regions import Axis, has_complement
from modicum.core.rationals import DELTA_UNIT

_NOTHING = Loss((0,) * COORDINATES)


@dataclass(frozen=True, slots=True)
class Counts:
    """The native changes of a move of one record; None if no number suffices.

    Attributes:
        cross: If the record enters or leaves the region.
        stay: If it stays in the region and changes.
        own_stay: Whether an entry's declared cost of a record that stays holds here:
            not if the record may pass from one user's instance to another.
    """

    cross: int | None
    stay: int | None
    own_stay: bool = True


@dataclass(frozen=True, slots=True)
class Steps:
    """The cost of an entry for a move, in ledger units.

    Attributes:
        cross: The record enters or leaves the region.
        stay: The record stays in the region and changes.
    """

    cross: Loss
    stay: Loss


def record_steps(entry: Entry, counts: Counts, size: int = 1) -> Steps:
    """Return the cost of a move of one record, or of several alike, for an entry.

    Args:
        entry: The entry.
        counts: The native changes of the move of one record.
        size: The number of records that move alike, >= 1.

    Examples:
        >>> from fractions import Fraction
        >>> from modicum.accounting.grid import RHO
        >>> from modicum.accounting.mechanisms import gaussian
        >>> steps = record_steps(Entry("a", gaussian(rho=Fraction(1, 2))), Counts(1, 2))
        >>> steps.cross.coordinates[RHO], steps.stay.coordinates[RHO]
        (500000000000, 2000000000000)
    """
    cross = cost(entry.curve, counts.cross, size)
    if entry.stay is None or counts.stay == 0 or not counts.own_stay:
        return Steps(cross, cost(entry.curve, counts.stay, size))
    declared = entry.stay.loss()
    if size > 1 and declared != _NOTHING:
        # No rule is known for paths of both kinds of steps.
        return Steps(cross, cost(entry.curve, counts.stay, size))
    return Steps(cross, declared)


def record_counts(
    entry: Entry,
    axes: Mapping[str, Axis],
    *,
    changed: frozenset[str] | None = None,
    appears: bool = False,
) -> Counts:
    """Return how many native changes a move of one record amounts to.

    Args:
        entry: The entry.
        axes: The axes by name.
        changed: The attributes that differ between the record before and after;
            None if all of them may, and if the record may also belong to another
            user.
        appears: Whether the record is not there before, or after.

    Examples:
        >>> from modicum.accounting.neighborhoods.entries import Native
        >>> record_counts(Entry("a", UNKNOWN), {})
        Counts(cross=1, stay=2, own_stay=True)
        >>> record_counts(Entry("a", UNKNOWN, native=Native(Relation.SUBSTITUTE)), {})
        Counts(cross=None, stay=1, own_stay=True)
    """
    if entry.native.relation is Relation.METRIC:
        found = Counts(None, None)  # Nothing bounds how far the record moves.
    elif entry.native.unit is Part.ROW:
        found = _of_rows(entry, axes)
    elif entry.native.unit is Part.ATTRIBUTE:
        found = Counts(None, None) if appears else _of_attributes(entry, changed)
    else:
        found = _of_users(entry, changed)
    if entry.native.size_public:
        found = Counts(None, found.stay if _keeps_sizes(entry, changed) else None)
    if changed is not None and entry.reads is not None:
        used = entry.reads
        # It may bound records block by block.
        blocks = (entry.native.unit, entry.rows.per if entry.rows else None)
        used |= {block.axis for block in blocks if isinstance(block, UserPer)}
        if not used & changed:
            return Counts(found.cross, 0)  # The used part of the record is unchanged.
    of_record = entry.native.unit in {Part.ROW, Part.ATTRIBUTE}
    return replace(found, own_stay=of_record or _same_instance(entry, changed))


def _keeps_sizes(entry: Entry, changed: frozenset[str] | None) -> bool:
    """Return whether a record can change in the region by steps that keep its size."""
    if entry.native.unit is Part.ROW:
        return True
    filters = frozenset(name for box in entry.region for name in box)
    if entry.native.unit is Part.ATTRIBUTE:
        stays_in_box = len(entry.region) == 1
        return stays_in_box or (changed is not None and not filters & changed)
    # The record of a user that becomes another user's changes both users' numbers.
    return entry.native.relation is Relation.ANY and _same_instance(entry, changed)


def _same_instance(entry: Entry, changed: frozenset[str] | None) -> bool:
    unit = entry.native.unit
    return changed is not None and not (
        isinstance(unit, UserPer) and unit.axis in changed
    )


def _of_rows(entry: Entry, axes: Mapping[str, Axis]) -> Counts:
    """Removing and adding compose a substitution, but not the other way round.

    A substitution into or out of the region can stand for a removal or an addition
    if some record lies outside: it takes the place of the one that is missing.
    """
    if entry.native.relation is Relation.ADD_REMOVE:
        return Counts(1, None if entry.native.size_public else 2)
    if entry.native.relation is Relation.ANY:
        return Counts(1, 1)
    return Counts(1 if has_complement(entry.region, axes) else None, 1)


def _of_attributes(entry: Entry, changed: frozenset[str] | None) -> Counts:
    """One step for each attribute that changes and that the entry can notice."""
    if entry.reads is None:
        count = None if changed is None else len(changed)
        return Counts(count, count)
    filters = frozenset(name for box in entry.region for name in box)
    used = entry.reads if changed is None else entry.reads & changed
    noticed = used | (filters if changed is None else filters & changed)
    # Inside one box each attribute can change in turn without leaving it.
    inside = used if len(entry.region) == 1 else noticed
    return Counts(len(noticed), len(inside))


def _of_users(entry: Entry, changed: frozenset[str] | None) -> Counts:
    """One record more or less is some change of its user's records.

    A record that becomes another may pass from one instance to another, unless the
    attributes that distinguish instances are known to stay.
    """
    own = 2 if entry.native.relation is Relation.ADD_REMOVE else 1
    return Counts(own, own if _same_instance(entry, changed) else 2 * own)


def cost(curve: Curve, count: int | None, size: int = 1) -> Loss:
    """Return the cost of a move that amounts to a number of native changes.

    For several moves the cost is convex in the number of changes, so that no
    distribution of them over different places costs more than all in the worst place.

    Args:
        curve: One native change.
        count: How many changes; None if no number of them makes up the move.
        size: How many records make the move.

    Examples:
        >>> from fractions import Fraction
        >>> from modicum.accounting.grid import RHO
        >>> from modicum.accounting.mechanisms import gaussian
        >>> curve = gaussian(rho=Fraction(1, 2))
        >>> [cost(curve, count).coordinates[RHO] for count in (0, 1, 3)]
        [0, 500000000000, 4500000000000]
        >>> cost(curve, None).coordinates[RHO] == INFINITE
        True
    """
    if count is None:
        return UNKNOWN.loss()
    if size == 1:
        return group(curve, count).loss()
    return _convex(curve, count * size)


@lru_cache(maxsize=4096)
def _convex(curve: Curve, steps: int) -> Loss:
    """Return a bound for a number of steps that is convex in their number.

    Each step adds at least what the one before added, and enough to reach the bound
    of the group; where those bounds are convex themselves, they stay as they are.
    """
    total, added = [0] * COORDINATES, [0] * COORDINATES
    for size in range(1, steps + 1):
        bounds = group(curve, size).loss().coordinates
        for index, bound in enumerate(bounds):
            added[index] = max(added[index], bound - total[index])
            total[index] = min(INFINITE, total[index] + added[index])
    if total[DELTA] >= DELTA_UNIT:
        return UNKNOWN.loss()
    return Loss(tuple(total))
