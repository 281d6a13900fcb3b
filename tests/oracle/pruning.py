"""Theorem 5.1 of DPolicy read literally: every pair of rules, over every mechanism."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations, product

from modicum.accounting import Budget
from modicum.policy.predicates import Facts, Scope, holds
from modicum.policy.rules import RuleSet
from modicum.release import Vocabulary

#: By scope and name, every text that may be written there.
Texts = Mapping[tuple[Scope, str], Sequence[str]]


def mechanisms(
    vocabulary: Vocabulary, texts: Texts, bounds: Mapping[str, Sequence[int | None]]
) -> list[Facts]:
    """Return every mechanism that there can be."""
    labels = {
        (scope, name): label.values
        for scope in Scope
        for name, label in vocabulary.labels.items()
    }
    names = sorted(vocabulary.attributes)
    subsets = chain.from_iterable(combinations(names, n) for n in range(len(names) + 1))
    return [
        Facts(
            frozenset(read),
            dict(zip(labels, values, strict=True)),
            dict(zip(texts, written, strict=True)),
            {
                unit: bound
                for unit, bound in zip(bounds, most, strict=True)
                if bound is not None
            },
        )
        for read, values, written, most in product(
            list(subsets),
            list(product(*labels.values())),
            list(product(*texts.values())),
            list(product(*bounds.values())),
        )
    ]


def matched(rules: RuleSet, everything: Sequence[Facts]) -> list[int]:
    """Return for each rule, as bits, which of all mechanisms it is about."""
    known = {
        predicate: sum(
            1 << place
            for place, facts in enumerate(everything)
            if holds(predicate, facts)
        )
        for predicate in chain(
            (base.predicate for base in rules.bases),
            *(context.predicates for context in rules.contexts),
        )
    }
    found = []
    for base, context in product(rules.bases, rules.contexts):
        bits = known[base.predicate]
        for predicate in context.predicates:
            bits &= known[predicate]
        found.append(bits)
    return found


class Theorem:
    """Which rule covers which.

    Args:
        rules: The rules.
        order: For each unit, the units whose rules may cover a rule of it.
        tighter: Whether the budget of the first rule is no looser than the second's.
        everything: Every mechanism that there can be.
    """

    def __init__(
        self,
        rules: RuleSet,
        order: Mapping[str, frozenset[str]],
        tighter: Callable[[Budget, Budget], bool],
        everything: Sequence[Facts],
    ) -> None:
        self._about = matched(rules, everything)
        self._units = [rule.unit for rule in rules]
        self._budgets = [rule.budget for rule in rules]
        self._order = order
        self._tighter = tighter

    def covers(self, wide: int, narrow: int) -> bool:
        """Return whether `wide` denies whatever `narrow` denies."""
        return (
            not self._about[narrow] & ~self._about[wide]
            and self._units[wide] in self._order[self._units[narrow]]
            and self._tighter(self._budgets[wide], self._budgets[narrow])
        )

    def kept(self) -> list[int]:
        """Take rules away one by one, the last first, while another covers them."""
        left = dict.fromkeys(range(len(self._about)))
        for rule in reversed(range(len(self._about))):
            if any(other != rule and self.covers(other, rule) for other in left):
                del left[rule]
        return list(left)

    def kept_by_definition(self) -> Iterator[int]:
        """Yield what nothing else covers, and the first of what covers each other."""
        for rule in range(len(self._about)):
            others = [
                other
                for other in range(len(self._about))
                if other != rule and self.covers(other, rule)
            ]
            if all(self.covers(rule, other) and other > rule for other in others):
                yield rule
