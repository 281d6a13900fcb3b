"""Theorem 5.1, applied to all rules at once.

Rule i is superfluous if another rule j is about everything that i is about, for a
unit whose losses are no smaller, within a budget that is no looser (j *covers* i).
Of rules that cover each other, the first one stays.

For every chain of budgets, each rule looks for the least *key* among the rules that
it may be covered by: the place of the budget in the chain, then how wide the rule's
scope is, then its number. What it finds decides for the whole chain. If the place is
not below the threshold of the rule's own budget, nothing in the chain covers it. If
the rule finds another one, that one covers it; and the rule does not cover it in
turn, unless it is the later one of two that are equal in all: a tighter budget would
have come first, and so would a wider scope under the same budget. If the rule finds
itself, every other rule with its budget that covers it is equal and later.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from modicum.accounting import Budget, Filter
from modicum.core.errors import check
from modicum.policy.pruning.chains import Chains, Integers, chains_of
from modicum.policy.pruning.comparison import scopes_of
from modicum.policy.pruning.contexts import NOWHERE, Scopes
from modicum.policy.pruning.logic import Logic
from modicum.policy.rules import RuleSet
from modicum.release import Vocabulary

#: In place of a witness: the rule is kept.
KEPT = -1


def roots(covered_by: Integers) -> Integers:
    """Return for each rule the kept rule at the end of its chain of witnesses.

    Covering is transitive, so the last rule of a chain covers all others. A cycle of
    rules that cover each other occurs only where some implication stayed undecided; its
    first rule is kept, and so nothing is lost.

    Args:
        covered_by: For each rule the number of another one, or `KEPT`.

    Returns:
        For each rule the number of a kept rule, or `KEPT`.
    """
    found = covered_by.copy()
    # Every round doubles the steps; a chain without a circle is no longer than this.
    for _ in range(covered_by.size.bit_length()):
        unsettled = np.flatnonzero((found >= 0) & (found[found] >= 0))
        if not unsettled.size:
            return found
        found[unsettled] = found[found[unsettled]]
    unsettled = np.flatnonzero((found >= 0) & (found[found] >= 0))
    return roots(_opened(covered_by, unsettled)) if unsettled.size else found


def _opened(covered_by: Integers, unsettled: Integers) -> Integers:
    """Return the chains with the first rule of every circle kept."""
    opened = covered_by.copy()
    settled: set[int] = set()
    for start in unsettled.tolist():
        path: dict[int, None] = {}
        here = start
        while here not in path and here not in settled:
            path[here] = None
            here = int(covered_by[here])
        if here in path:
            walked = list(path)
            opened[min(walked[walked.index(here) :])] = KEPT
        settled.update(path)
    return opened


#: The key where there is no rule.
_NONE = np.iinfo(np.int64).max


def witnesses(
    rules: RuleSet,
    order: Mapping[str, frozenset[str]],
    filters_of: Callable[[Sequence[Budget]], Sequence[Filter]],
    vocabulary: Vocabulary,
) -> Sequence[int]:
    """Return for each rule the number of a kept rule that covers it, or `KEPT`.

    Args:
        rules: The rules.
        order: For each unit, the units whose rules may cover a rule of it.
        filters_of: The filters of budgets, one for each, for comparing.
        vocabulary: The vocabulary of predicates.
    """
    if not len(rules):
        return array("q")
    scopes = scopes_of(rules, Logic(vocabulary))
    limit, chains = _limits(rules, filters_of)
    found = _Search(rules, order, scopes, chains.limit[limit]).witnesses(chains)
    return array("q", roots(found).tobytes())


def _limits(
    rules: RuleSet, filters_of: Callable[[Sequence[Budget]], Sequence[Filter]]
) -> tuple[Integers, Chains]:
    """Return, for each base rule and context, the number of its budget; and chains."""
    rows: dict[int, int] = {}
    firsts: list[int] = []
    row = np.empty(len(rules.bases), np.int64)
    for place, base in enumerate(rules.bases):
        # Equal budgets under different identities only make the table longer.
        number = rows.setdefault(id(base.budget), len(rows))
        if number == len(firsts):
            firsts.append(place)
        row[place] = number
    numbers: dict[int, int] = {}
    budgets: list[Budget] = []
    table = np.empty((len(firsts), len(rules.contexts)), np.int64)
    for place, first in enumerate(firsts):
        for context in range(len(rules.contexts)):
            budget = rules.budget(first, context)
            number = numbers.setdefault(id(budget), len(numbers))
            if number == len(budgets):
                budgets.append(budget)
            table[place, context] = number
    return table[row], chains_of(filters_of(budgets))


class _Search:
    """Searches for the cover of each rule, one chain of budgets after the other."""

    def __init__(
        self,
        rules: RuleSet,
        order: Mapping[str, frozenset[str]],
        scopes: Scopes,
        limit: Integers,
    ) -> None:
        numbers: dict[str, int] = {}
        each = [numbers.setdefault(base.unit, len(numbers)) for base in rules.bases]
        self._larger = [
            [n for other, n in numbers.items() if other == unit or other in order[unit]]
            for unit in numbers
        ]
        self._scopes = scopes
        self._limit = limit.ravel()
        self._node = scopes.node.ravel()
        self._unit = np.repeat(np.array(each, np.int64), len(rules.contexts))
        self._number = np.arange(len(rules), dtype=np.int64)
        self._somewhere = self._node != NOWHERE
        self._keys, self._number_bits, self._low_bits = self._ranked()

    def _ranked(self) -> tuple[Integers, int, int]:
        """Return keys without a place in a chain, and the bits of numbers and keys.

        A rule that implies fewer others is wider, if one of two implies the other.
        """
        breadth = self._scopes.breadth()
        breadth = np.append(breadth, self._scopes.size + 1)  # Of `NOWHERE`: the most.
        units = np.array([len(larger) for larger in self._larger], np.int64)
        level = breadth[self._node] + units[self._unit]
        number_bits = self._number.size.bit_length()
        keys = level << number_bits | self._number
        return keys, number_bits, number_bits + int(level.max()).bit_length()

    def witnesses(self, chains: Chains) -> Integers:
        """Return for each rule another one that covers it, or `KEPT`."""
        check(
            self._low_bits + len(chains.chain).bit_length() < 63,
            "a rule's place, scope and number fit into one integer",
        )
        chain_of = chains.chain[self._limit]
        keys = chains.place[self._limit] << self._low_bits | self._keys
        found = np.full(self._number.size, KEPT, np.int64)
        for chain, thresholds in enumerate(chains.thresholds):
            least = self._least(keys, np.flatnonzero(chain_of == chain))
            other = least & ((1 << self._number_bits) - 1)
            covered = (least >> self._low_bits) < thresholds[self._limit]
            covered &= other != self._number
            found[covered] = other[covered]
        return found

    def _least(self, keys: Integers, rules: Integers) -> Integers:
        """Return for each rule the least key of those that may cover it."""
        shape = len(self._larger), self._scopes.size
        table = np.full(shape, _NONE, np.int64)
        real = rules[self._somewhere[rules]]
        np.minimum.at(table, (self._unit[real], self._node[real]), keys[real])
        whole = np.full(shape[0], _NONE, np.int64)
        np.minimum.at(whole, self._unit[rules], keys[rules])
        by_unit = np.stack([table[larger].min(axis=0) for larger in self._larger])
        # What no mechanism matches implies everything; it is looked up as -1.
        nowhere = np.array([[whole[larger].min()] for larger in self._larger])
        best = np.append(self._scopes.least(by_unit), nowhere, axis=1)
        return best[self._unit, self._node]
