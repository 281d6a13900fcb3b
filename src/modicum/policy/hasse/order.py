"""The order of the rules: who is charged for all that another one is charged for."""

from __future__ import annotations

from collections.abc import Sequence

from modicum.policy.predicates import Predicate
from modicum.policy.pruning.logic import Logic
from modicum.policy.rules import RuleSet
from modicum.policy.vacuous_rules import AboutNothing
from modicum.release import Vocabulary


class RuleOrder:
    """Says of two rules whether one stands below the other.

    A rule stands below another one if every mechanism it is about is one that the
    other is about too, and its unit is the other's or is covered by it.

    Args:
        rules: The rules, all of one stage.
        vocabulary: The words that their predicates are about, and the units.
    """

    def __init__(self, rules: RuleSet, vocabulary: Vocabulary) -> None:
        self._rules = rules
        self._vocabulary = vocabulary
        self._logic = Logic(vocabulary)
        #: The rules that no mechanism can fall under.
        self.nothing = AboutNothing(rules, self._logic)
        self._implied: dict[tuple[int, Predicate], bool] = {}

    def above(self, numbers: Sequence[int]) -> list[int]:
        """Return for each rule those above it and itself, by place, as bits."""
        return [
            sum(
                1 << place
                for place, upper in enumerate(numbers)
                if lower == upper or self.is_below(lower, upper)
            )
            for lower in numbers
        ]

    def is_below(self, lower: int, upper: int) -> bool:
        """Return whether a rule stands below another; True only if it is proven."""
        covers = self._vocabulary.covers
        own, other = self._unit(lower), self._unit(upper)
        if own != other and other not in covers.get(own, frozenset()):
            return False
        return lower in self.nothing or all(
            self._implies(lower, wide) for wide in self._parts(upper)
        )

    def _unit(self, number: int) -> str:
        return self._rules.bases[number // len(self._rules.contexts)].unit

    def _parts(self, number: int) -> tuple[Predicate, ...]:
        base, context = divmod(number, len(self._rules.contexts))
        predicate = self._rules.bases[base].predicate
        return (predicate, *self._rules.contexts[context].predicates)

    def _implies(self, number: int, wide: Predicate) -> bool:
        found = self._implied.get((number, wide))
        if found is None:
            found = self._logic.implies(self._parts(number), wide)
            self._implied[number, wide] = found
        return found
