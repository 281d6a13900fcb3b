"""Implication between conjunctions, decided only on the relevant parts.

Variables are the subjects of predicates: attributes, labels, open texts, bounds. Two
predicates without a common variable are independent: if both can be true, they can be
true together. So a conjunction that can be true implies a predicate exactly if those of
its parts do that are connected with the predicate, directly or through other parts; and
most questions about a policy shrink to a few distinct ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from modicum.policy.implication.search import implies, satisfiable
from modicum.policy.predicates import (
    All,
    Atom,
    BoundAtMost,
    Constant,
    LabelIn,
    Predicate,
    ReadsAny,
    ReadsAtLeast,
    TextIn,
    TextPasses,
    atoms,
)
from modicum.release import Vocabulary

#: After this many searches for a counterexample nothing more is claimed: the policy has
#: hundreds of predicates that all use the same variables, and a reader would wait for
#: minutes. What was proven until then is true.
QUESTIONS_MAX = 30_000

#: A variable of a predicate. An attribute is its name, all else a tuple.
Variable: TypeAlias = Hashable
Parts: TypeAlias = tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Footprint:
    """The variables of a predicate.

    Attributes:
        predicate: The predicate itself.
        variables: Everything; where attributes are counted, all of them.
        attributes: The attributes among these.
        named: The attributes that it names.
        counts: Whether it counts attributes.
    """

    predicate: Predicate
    variables: frozenset[Variable]
    attributes: frozenset[str]
    named: frozenset[str]
    counts: bool


class Logic:
    """Decides and caches implications.

    Args:
        vocabulary: The vocabulary of predicates.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        #: Enough wherever no attributes are counted, and much quicker.
        self._without_attributes = replace(vocabulary, attributes=frozenset())
        #: By identity: hashing a large predicate takes as long as traversing it.
        self._looks: dict[int, Footprint] = {}
        self._implied: dict[tuple[Parts, Predicate], bool] = {}
        self._possible: dict[Parts, bool] = {}
        self._questions = 0

    def looks(self, predicate: Predicate) -> Footprint:
        """Return the variables of a predicate."""
        found = self._looks.get(id(predicate))
        if found is None:
            # The cached value refers to the predicate, so that its identity is not
            # reused.
            found = self._looks[id(predicate)] = self._looks_of(predicate)
        return found

    def implies(self, parts: Parts, wide: Predicate) -> bool:
        """Return whether parts that can be true together imply a predicate.

        Returns:
            True only if it is proven.
        """
        if wide in parts:
            return True
        tied = self._connected(parts, self.looks(wide).variables)
        found = self._implied.get((tied, wide))
        if found is None:
            words = self._words_of(*tied, wide)
            found = self._may_ask() and implies(_all(tied), wide, words)
            self._implied[tied, wide] = found
        return found

    def satisfiable(self, parts: Parts) -> bool:
        """Return whether parts can be true together; False only if it is proven."""
        left = list(dict.fromkeys(parts))
        while left:
            tied = self._connected(left, self.looks(left[0]).variables) or (left[0],)
            if tied not in self._possible:
                words = self._words_of(*tied)
                can_be = not self._may_ask() or satisfiable(_all(tied), words)
                self._possible[tied] = can_be
            if not self._possible[tied]:
                return False
            left = [part for part in left if part not in tied]
        return True

    def _may_ask(self) -> bool:
        self._questions += 1
        return self._questions <= QUESTIONS_MAX

    def _words_of(self, *predicates: Predicate) -> Vocabulary:
        counts = any(self.looks(one).counts for one in predicates)
        return self._vocabulary if counts else self._without_attributes

    def _connected(self, parts: Iterable[Predicate], to: frozenset[Variable]) -> Parts:
        """Return the parts that share a variable with `to`, or with such a part."""
        reached = to
        near: list[Footprint] = []
        far = [self.looks(part) for part in parts]
        while True:
            found = [one for one in far if not reached.isdisjoint(one.variables)]
            if not found:
                return tuple(one.predicate for one in near)
            near += found
            far = [one for one in far if reached.isdisjoint(one.variables)]
            reached = reached.union(*(one.variables for one in found))

    def _looks_of(self, predicate: Predicate) -> Footprint:
        parts = list(atoms(predicate))
        named = frozenset[str]().union(
            *(atom.attributes for atom in parts if isinstance(atom, ReadsAny))
        )
        counts = any(isinstance(atom, ReadsAtLeast) for atom in parts)
        attributes = named | self._vocabulary.attributes if counts else named
        others = frozenset[Variable]().union(*map(_others, parts))
        return Footprint(predicate, attributes | others, attributes, named, counts)


def _others(atom: Atom) -> frozenset[Variable]:
    """Return the variables of a part besides attributes."""
    match atom:
        case LabelIn(scope=scope, label=label):
            return frozenset({("label", scope, label)})
        case TextIn(scope=scope, field=name) | TextPasses(scope=scope, field=name):
            return frozenset({("text", scope, name)})
        case BoundAtMost(unit=unit):
            return frozenset({("bound", unit)})
        case Constant() | ReadsAny() | ReadsAtLeast():
            return frozenset()
        case _:
            assert_never(atom)


def _all(parts: Parts) -> Predicate:
    return parts[0] if len(parts) == 1 else All(parts)
