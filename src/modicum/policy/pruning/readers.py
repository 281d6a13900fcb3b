"""Predicates of the form "reads one of these attributes", compared as sets.

A policy has thousands of them, one for each attribute and category. One implies
another exactly if its attributes are a subset; an index from attributes to the sets
they are in, with sets of sets as the bits of one integer, answers for all at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import and_

import numpy as np

from modicum.policy.predicates import Predicate, ReadsAny
from modicum.policy.pruning.lists import Integers
from modicum.policy.pruning.logic import Logic, Parts


class Readers:
    """Distinct sets of attributes, none empty, each standing for a predicate.

    Args:
        sets: By the number of the predicate, its attributes.
        logic: Decides about all other predicates.
    """

    def __init__(self, sets: Mapping[int, frozenset[str]], logic: Logic) -> None:
        self._sets = dict(sets)
        self._numbers = list(self._sets)
        self._logic = logic
        bits: dict[str, int] = {}
        for place, attributes in enumerate(self._sets.values()):
            one = 1 << place
            for attribute in attributes:
                bits[attribute] = bits.get(attribute, 0) | one
        self._holding = bits

    def subsets(self) -> tuple[Integers, Integers]:
        """Return all pairs of numbers where the first set is within the second."""
        narrow: list[int] = []
        wide: list[int] = []
        for number, attributes in self._sets.items():
            including = reduce(and_, (self._holding[one] for one in attributes))
            places = _places(including)
            narrow += [number] * len(places)
            wide += places
        numbers = np.array(self._numbers, np.int64)
        return np.array(narrow, np.int64), numbers[np.array(wide, np.int64)]

    def implied_by(self, parts: Parts) -> list[int]:
        """Return the numbers of the sets that a conjunction reads from.

        What the conjunction does not look at may be unread. So it implies a set
        exactly if it implies those of the set's attributes that it looks at.

        Args:
            parts: A conjunction that can be true.
        """
        found: list[int] = []
        for shared, numbers in self._alike(parts):
            if self._logic.implies(parts, ReadsAny(shared)):
                found += numbers
        return sorted(found)

    def implying(self, given: Parts, wide: Predicate) -> list[int]:
        """Return the numbers of the sets that imply a predicate, given others.

        Args:
            given: A conjunction that can be true and looks at none of the sets.
            wide: A predicate. A set with an attribute that it does not look at may
                be read by that alone, which leaves everything else open; so it
                implies the predicate exactly if nothing but `given` is needed.
        """
        if self._logic.implies(given, wide):
            return list(self._numbers)
        looked_at = self._logic.looks(wide).attributes
        found: list[int] = []
        for shared, numbers in self._alike((wide,)):
            inside = [n for n in numbers if self._sets[n] <= looked_at]
            if inside and self._logic.implies((ReadsAny(shared), *given), wide):
                found += inside
        return sorted(found)

    def _alike(self, parts: Parts) -> Iterator[tuple[frozenset[str], list[int]]]:
        """Yield groups of sets that the parts cannot tell apart.

        With each group comes what the parts look at of its first set. Attributes
        that are only counted are as good as each other, so their number decides.
        """
        looks = [self._logic.looks(part) for part in parts]
        looked_at = frozenset[str]().union(*(one.attributes for one in looks))
        named = frozenset[str]().union(*(one.named for one in looks))
        together = 0
        for attribute in looked_at:
            together |= self._holding.get(attribute, 0)
        groups: dict[tuple[frozenset[str], int], list[int]] = {}
        for place in _places(together):
            number = self._numbers[place]
            shared = self._sets[number] & looked_at
            key = shared & named, len(shared - named)
            groups.setdefault(key, []).append(number)
        for numbers in groups.values():
            yield self._sets[numbers[0]] & looked_at, numbers


def _places(bits: int) -> list[int]:
    """Return the places of the bits that are set, rising."""
    places: list[int] = []
    while bits:
        lowest = bits & -bits
        places.append(lowest.bit_length() - 1)
        bits ^= lowest
    return places
