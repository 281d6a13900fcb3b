"""Compares the predicates of a rule set, and builds its nodes.

A policy has thousands of them, one for each attribute and category. One implies another
exactly if its attributes are a subset; an index from attributes to the sets they are
in, with sets of sets as the bits of one integer, decides for all at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import reduce
from operator import and_

import numpy as np

from modicum.policy.predicates import Predicate, ReadsAny
from modicum.policy.pruning.chains import Integers, Lists, Pairs
from modicum.policy.pruning.contexts import NOWHERE, Contexts, Scopes
from modicum.policy.pruning.logic import Logic, Parts
from modicum.policy.rules import RuleSet


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

        Attributes that the conjunction ignores may be unread. So it implies a set
        exactly if it implies those of the set's attributes that it uses.
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
            wide: A predicate. A set with an attribute that it does not use may be
                satisfied by that alone, which leaves everything else open; so it
                implies the predicate exactly if nothing but `given` is needed.
        """
        if self._logic.implies(given, wide):
            return list(self._numbers)
        considered = self._logic.looks(wide).attributes
        found: list[int] = []
        for shared, numbers in self._alike((wide,)):
            inside = [n for n in numbers if self._sets[n] <= considered]
            if inside and self._logic.implies((ReadsAny(shared), *given), wide):
                found += inside
        return sorted(found)

    def _alike(self, parts: Parts) -> Iterator[tuple[frozenset[str], list[int]]]:
        """Yield groups of sets that the parts cannot distinguish.

        With each group comes the part of its first set that the parts use. Attributes
        that are only counted are interchangeable, so their number decides.
        """
        looks = [self._logic.looks(part) for part in parts]
        considered = frozenset[str]().union(*(one.attributes for one in looks))
        named = frozenset[str]().union(*(one.named for one in looks))
        together = 0
        for attribute in considered:
            together |= self._holding.get(attribute, 0)
        groups: dict[tuple[frozenset[str], int], list[int]] = {}
        for place in _places(together):
            number = self._numbers[place]
            shared = self._sets[number] & considered
            key = shared & named, len(shared - named)
            groups.setdefault(key, []).append(number)
        for numbers in groups.values():
            yield self._sets[numbers[0]] & considered, numbers


def _places(bits: int) -> list[int]:
    """Return the places of the bits that are set, rising."""
    places: list[int] = []
    while bits:
        lowest = bits & -bits
        places.append(lowest.bit_length() - 1)
        bits ^= lowest
    return places


#: With more tied nodes than this, predicates are all treated as plain ones: results are
#: true, but an implication may be missed.
TIED_MAX = 4000


def scopes_of(rules: RuleSet, logic: Logic) -> Scopes:
    """Return the nodes of the rules and their order.

    Args:
        rules: The rules.
        logic: Decides implications.
    """
    return _Comparison(rules, logic).scopes()


class _Comparison:
    """Sorts the distinct predicates of a rule set into plain and tied ones."""

    def __init__(self, rules: RuleSet, logic: Logic) -> None:
        self._logic = logic
        self._settings: list[Parts] = [
            tuple(setting.predicate for setting in settings)
            for settings in rules.extensions
        ]
        self._contexts = Contexts(self._settings, logic)
        self._possible = self._contexts.possible()
        self._predicates: list[Predicate] = []
        self._kinds = self._distinct(rules)
        tied = self._tied_kinds()
        self._plain = [
            kind
            for kind, predicate in enumerate(self._predicates)
            if kind not in tied and self._can_be_true(predicate)
        ]
        self._tied = [
            (kind, context)
            for kind in sorted(tied)
            for context in np.flatnonzero(self._possible).tolist()
            if logic.satisfiable(
                (self._predicates[kind], *self._contexts.parts(context))
            )
        ]
        self._others = {
            place: self._predicates[kind]
            for place, kind in enumerate(self._plain)
            if not isinstance(self._predicates[kind], ReadsAny)
        }
        self._readers = Readers(dict(self._sets()), logic)

    def scopes(self) -> Scopes:
        """Return the nodes and their order."""
        return Scopes(
            node=self._nodes()[self._kinds],
            size=self._plain_nodes + len(self._tied),
            plain=len(self._plain),
            contexts=self._contexts,
            wider=self._wider(),
            ties=self._ties(),
        )

    # --- predicates and nodes ---

    def _distinct(self, rules: RuleSet) -> Integers:
        """Number the distinct predicates; return the number for each base rule."""
        known: dict[Hashable, int] = {}
        kinds = np.empty(len(rules.bases), dtype=np.int64)
        for place, base in enumerate(rules.bases):
            predicate = base.predicate
            # A set remembers its hash, a predicate does not.
            key = predicate.attributes if isinstance(predicate, ReadsAny) else predicate
            kind = known.setdefault(key, len(known))
            if kind == len(self._predicates):
                self._predicates.append(predicate)
            kinds[place] = kind
        return kinds

    def _tied_kinds(self) -> frozenset[int]:
        """Return the predicates that look at something that a context looks at."""
        considered = frozenset[Hashable]().union(
            *(
                self._logic.looks(one).variables
                for settings in self._settings
                for one in settings
            )
        )
        if not considered:
            return frozenset()
        tied = frozenset(
            kind
            for kind, predicate in enumerate(self._predicates)
            if not considered.isdisjoint(self._looked_at(predicate))
        )
        return tied if len(tied) * len(self._contexts) <= TIED_MAX else frozenset()

    def _looked_at(self, predicate: Predicate) -> frozenset[Hashable]:
        if isinstance(predicate, ReadsAny):
            return predicate.attributes
        return self._logic.looks(predicate).variables

    def _can_be_true(self, predicate: Predicate) -> bool:
        if isinstance(predicate, ReadsAny):
            return bool(predicate.attributes)
        return self._logic.satisfiable((predicate,))

    @property
    def _plain_nodes(self) -> int:
        return len(self._plain) * len(self._contexts)

    def _nodes(self) -> Integers:
        """Return the node of each predicate in each context."""
        nodes = np.full(
            (len(self._predicates), len(self._contexts)), NOWHERE, dtype=np.int64
        )
        if self._plain:
            count = len(self._plain)
            steps = np.arange(len(self._contexts)) * count
            nodes[self._plain] = np.arange(count)[:, None] + steps
        nodes[:, ~self._possible] = NOWHERE
        for number, place in enumerate(self._tied, self._plain_nodes):
            nodes[place] = number
        return nodes

    def _sets(self) -> Iterator[tuple[int, frozenset[str]]]:
        for place, kind in enumerate(self._plain):
            predicate = self._predicates[kind]
            if isinstance(predicate, ReadsAny):
                yield place, predicate.attributes

    # --- the order ---

    def _wider_others(self, parts: Parts) -> list[int]:
        """Return the plain predicates, readers aside, that a conjunction implies."""
        return [
            place
            for place, wide in self._others.items()
            if self._logic.implies(parts, wide)
        ]

    def _narrower(self, given: Parts, wide: Predicate) -> list[int]:
        """Return the plain predicates that imply a predicate in a given context."""
        return self._readers.implying(given, wide) + [
            place
            for place, narrow in self._others.items()
            if self._logic.implies((narrow, *given), wide)
        ]

    def _wider(self) -> Lists:
        pairs = Pairs([self._readers.subsets()])
        for place, predicate in self._others.items():
            pairs.add(self._readers.implying((), predicate), [place])
            parts = (predicate,)
            pairs.add([place], self._readers.implied_by(parts))
            pairs.add([place], self._wider_others(parts))
        return pairs.lists()

    def _ties(self) -> Lists:
        numbers = {at: n for n, at in enumerate(self._tied, self._plain_nodes)}
        pairs = Pairs([])
        for place, number in numbers.items():
            pairs.add([number], self._implied_by_tied(place, numbers))
        for kind in {kind: None for kind, _ in self._tied}:
            self._add_implying(pairs, kind, numbers)
        return pairs.lists()

    def _implied_by_tied(
        self, place: tuple[int, int], numbers: dict[tuple[int, int], int]
    ) -> list[int]:
        """Return the nodes that a tied node implies."""
        parts = (self._predicates[place[0]], *self._contexts.parts(place[1]))
        contexts = self._contexts.implied_by(parts)
        plain = self._readers.implied_by(parts) + self._wider_others(parts)
        kinds = [
            kind
            for kind in {kind: None for kind, _ in self._tied}
            if self._logic.implies(parts, self._predicates[kind])
        ]
        found = [e * len(self._plain) + p for e in contexts for p in plain]
        tied = [(kind, e) for e in contexts for kind in kinds]
        return found + [numbers[one] for one in tied if one in numbers]

    def _add_implying(
        self, pairs: Pairs, kind: int, numbers: dict[tuple[int, int], int]
    ) -> None:
        """Add the plain nodes that imply the nodes of a tied predicate.

        A plain predicate looks at nothing that contexts look at, so in a context it
        implies another context exactly if its own context does.
        """
        for place in np.flatnonzero(self._possible).tolist():
            parts = self._contexts.parts(place)
            wide = [(kind, e) for e in self._contexts.implied_by(parts)]
            narrow = self._narrower(parts, self._predicates[kind])
            pairs.add(
                [place * len(self._plain) + p for p in narrow],
                [numbers[one] for one in wide if one in numbers],
            )
