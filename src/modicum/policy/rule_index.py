"""Matching: which rules match the mechanisms of a release.

An inverted index leads from each attribute to the base rules about it; the few base
rules with their own predicate are evaluated. A context is found by evaluating each
setting once. Nothing is done for rules that do not match.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from modicum.policy.predicates import Constant, Facts, Predicate, ReadsAny, holds


class RuleIndex:
    """Finds the rules that a mechanism falls under, by number.

    Args:
        bases: The predicate of each base rule.
        extensions: For each extension, the predicates of its settings.
    """

    def __init__(
        self, bases: Sequence[Predicate], extensions: Sequence[Sequence[Predicate]]
    ) -> None:
        self._always: list[int] = []
        self._by_attribute: dict[str, list[int]] = {}
        self._asked: list[tuple[int, Predicate]] = []
        for place, one in enumerate(bases):
            match one:
                case Constant(value=True):
                    self._always.append(place)
                case Constant():
                    pass
                case ReadsAny(attributes=attributes):
                    for attribute in attributes:
                        self._by_attribute.setdefault(attribute, []).append(place)
                case predicate:
                    self._asked.append((place, predicate))
        self._settings = tuple(tuple(settings) for settings in extensions)
        self._contexts = prod(map(len, self._settings))

    def bases(self, facts: Facts) -> set[int]:
        """Return the base rules that a mechanism falls under, by number."""
        found = set(self._always)
        for attribute in facts.attributes:
            found.update(self._by_attribute.get(attribute, ()))
        found.update(place for place, one in self._asked if holds(one, facts))
        return found

    def contexts(self, facts: Facts) -> list[int]:
        """Return the contexts that a mechanism is in, by number, rising."""
        reached = [
            [place for place, one in enumerate(settings) if holds(one, facts)]
            for settings in self._settings
        ]
        numbers = []
        for places in product(*reached):
            number = 0
            for place, settings in zip(places, self._settings, strict=True):
                number = number * len(settings) + place
            numbers.append(number)
        return numbers

    def matching(self, facts: Sequence[Facts]) -> dict[int, tuple[int, ...]]:
        """Return the rules that any mechanism matches, and which ones.

        Args:
            facts: The facts about each mechanism of a release, in order.

        Returns:
            By number of the rule, rising: the positions of its mechanisms, from 0.
        """
        found: dict[int, list[int]] = {}
        for place, one in enumerate(facts):
            contexts = self.contexts(one)
            for base in self.bases(one):
                first = base * self._contexts
                for context in contexts:
                    found.setdefault(first + context, []).append(place)
        return {number: tuple(found[number]) for number in sorted(found)}
