"""The two questions of a compiled policy about its rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from modicum.accounting import Budget, Filter
from modicum.accounting.filters.comparison import filters_alone
from modicum.policy.rules import RuleSet
from modicum.release import Vocabulary


@dataclass(frozen=True, slots=True)
class Pruned:
    """For each rule, whether another one makes it redundant.

    Attributes:
        witness: For each rule, by number, -1 if it is kept, else the number of a
            kept rule that denies whatever it denies.
    """

    witness: Sequence[int]

    @property
    def kept(self) -> tuple[int, ...]:
        """The numbers of the rules that are kept, rising."""
        return tuple(n for n, witness in enumerate(self.witness) if witness < 0)


def prune(
    rules: RuleSet,
    order: Mapping[str, frozenset[str]],
    filter_of: Callable[[Budget], Filter],
    vocabulary: Vocabulary,
) -> Pruned:
    """Return which rules over history are redundant, each with its witness.

    Args:
        rules: The rules; a budget in a context depends on nothing of the base rule
            but its budget.
        order: For each unit, the units whose rules may prune a rule of it: itself,
            and those whose losses are proven to be at least its own. Transitive.
        filter_of: The filter of a budget; equal budgets have equal filters.
        vocabulary: The vocabulary of predicates.
    """
    # Imported here: the search uses NumPy, and most commands do not need it.
    from modicum.policy.pruning.algorithm import witnesses

    def filters_of(budgets: Sequence[Budget]) -> Sequence[Filter]:
        return tuple(map(filter_of, budgets))

    return Pruned(witnesses(rules, order, filters_of, vocabulary))


def prune_alone(
    rules: RuleSet, order: Mapping[str, frozenset[str]], vocabulary: Vocabulary
) -> Pruned:
    """Return which single-release rules are redundant.

    Args:
        rules: The rules, each held against one release by itself.
        order: As for `prune`.
        vocabulary: The vocabulary of predicates.
    """
    from modicum.policy.pruning.algorithm import witnesses

    return Pruned(witnesses(rules, order, filters_alone, vocabulary))
