"""Which units stay in user groups, and take turns with them."""

from __future__ import annotations

from modicum.release import Vocabulary


def grouped_through(unit: str, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the units by which every instance of a unit stays in one user group.

    An instance is in the group of the larger instance that contains it. Where instances
    change instead of being added or removed, that one must be the same in every table;
    else the change may lead from one group to another.

    Returns:
        Those of it and of the units around it that are declared to stay in a group;
        nothing if its rules add up over all groups.
    """
    changing = vocabulary.relation(unit) != "add-remove"
    around = (vocabulary.owners if changing else vocabulary.covers).get(unit)
    fixed = {unit, *(around or ())} & vocabulary.population.grouped
    return tuple(one for one in vocabulary.units if one in fixed)
