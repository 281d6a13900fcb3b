"""The policy engine at 220,896 rules, beside compiled loops over all of them.

Run it with `python bench/policy.py`, or with `--quick`. It needs numba: the reference
is compiled, and runs on two threads.

*Pruning.* The reference decides about every pair of rules, by subsets of bits, a table
of contexts, one of units and one of budgets, and leaves a rule as soon as another one
covers it. All of these tables are made before its clock starts. Ours starts from the
rules as the compiler makes them. Both must keep the same rules. Times are processor
seconds, divided by the threads; the best of eight runs counts for ours.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TypeVar

import numba
import numpy as np
from numpy.typing import NDArray
from policy_matching import matching

from modicum.accounting import (
    ApproxBudget,
    Budget,
    Filter,
    GdpBudget,
    PureBudget,
    ZcdpBudget,
    filter_for,
)
from modicum.accounting.budgets import RenyiBudget, with_parameter
from modicum.accounting.filters.comparison import no_looser
from modicum.policy.budget_maps import BudgetMap, Same
from modicum.policy.model import Setting
from modicum.policy.predicates import Constant, LabelIn, ReadsAny, Scope
from modicum.policy.pruning.result import prune
from modicum.policy.rules import BaseRule, RuleSet, Stage
from modicum.release import Vocabulary
from modicum.release.vocabulary import Label

SEED = 20261121
FILTER = "combined-v2"
UNITS = ("user-day", "user-week", "user-month", "user")
#: The units that cover each one.
LARGER = {
    "user-day": frozenset(UNITS),
    "user-week": frozenset({"user-week", "user"}),
    "user-month": frozenset({"user-month", "user"}),
    "user": frozenset({"user"}),
}
#: What the settings of each extension do to a budget, the narrowest first.
FACTORS = {
    "training": (Fraction(1), *(Fraction(n, 2) for n in (3, 4, 6, 8, 12))),
    "audience": (Fraction(1), *(Fraction(n, 2) for n in (3, 4, 6))),
}

Bits = NDArray[np.uint64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]


# --- a large policy ------------------------------------------------------------------


@dataclass(frozen=True)
class Large:
    """A policy of four units, with a rule for everything, attributes and categories.

    Attributes:
        vocabulary: Its words.
        rules: Its rules, as the compiler would make them.
    """

    vocabulary: Vocabulary
    rules: RuleSet


def large_policy(attributes: int, categories: int) -> Large:
    """Return a policy of 4 * (1 + attributes + 3 * categories) * 24 rules.

    Args:
        attributes: How many attributes the data has; each joins up to 3 categories.
        categories: How many categories there are, of three cumulative levels.
    """
    dice = random.Random(f"{SEED} {attributes}")  # noqa: S311 - a workload
    names = [f"attribute-{number}" for number in range(attributes)]
    predicates = [Constant(value=True)]
    predicates += [ReadsAny(frozenset({name})) for name in names]
    members: list[list[set[str]]] = [[set(), set(), set()] for _ in range(categories)]
    for name in names:
        for category in dice.sample(range(categories), dice.choice((0, 1, 2, 3))):
            joined = dice.choice((0, 1, 2))
            for level in range(joined, 3):
                members[category][level].add(name)
    predicates += [ReadsAny(frozenset(one)) for levels in members for one in levels]
    labels = {
        name: Label(tuple(f"level-{n}" for n in range(len(each))), "level-0")
        for name, each in FACTORS.items()
    }
    pool = base_budgets()
    bases = [
        BaseRule(
            Stage.HISTORY, f"{unit}:{number}", unit, predicate, dice.choice(pool), None
        )
        for unit in UNITS
        for number, predicate in enumerate(predicates)
    ]
    extensions = [
        [
            Setting(value, _up_to(name, label, n), BudgetMap(Same(), None), None)
            for n, value in enumerate(label.values)
        ]
        for name, label in labels.items()
    ]
    vocabulary = Vocabulary(frozenset(names), labels, UNITS, "add-remove")
    return Large(vocabulary, RuleSet(bases, extensions, in_contexts(pool)))


def _up_to(name: str, label: Label, number: int) -> LabelIn:
    return LabelIn(Scope.MECHANISM, name, frozenset(label.values[: number + 1]))


def base_budgets() -> list[Budget]:
    """Return two dozen budgets in five measures."""
    steps = [Fraction(n, 4) for n in (2, 3, 5, 8, 12, 20)]
    deltas = [Fraction(1, 10**9), Fraction(1, 10**6)]
    return [
        *(ApproxBudget(eps, delta) for eps in steps[1:] for delta in deltas),
        *(PureBudget(eps) for eps in steps[:4]),
        *(ZcdpBudget(eps * eps / 20) for eps in steps[:5]),
        *(GdpBudget(eps / 4) for eps in steps[:3]),
        *(RenyiBudget(((Fraction(2), e / 9), (Fraction(8), e / 3))) for e in steps[:3]),
    ]


def in_contexts(budgets: list[Budget]) -> dict[Budget, tuple[Budget, ...]]:
    """Return each budget in every context; equal ones are one object."""
    known: dict[Budget, Budget] = {}
    found: dict[Budget, tuple[Budget, ...]] = {}
    for budget in budgets:
        row = [_scaled(budget, a * b) for a, b in product(*FACTORS.values())]
        found[budget] = tuple(known.setdefault(one, one) for one in row)
    return found


def _scaled(budget: Budget, factor: Fraction) -> Budget:
    if isinstance(budget, RenyiBudget):
        return RenyiBudget(tuple((order, r * factor) for order, r in budget.limits))
    value = budget.mu if isinstance(budget, GdpBudget) else None
    if value is None:
        value = budget.rho if isinstance(budget, ZcdpBudget) else budget.eps
    return with_parameter(budget, value * factor)


def filter_of(budget: Budget) -> Filter:
    """Return what a budget admits."""
    return filter_for(budget, FILTER)


# --- pruning: the reference ----------------------------------------------------------


@dataclass(frozen=True)
class Tables:
    """What the reference looks at: columns of the rules, and tables.

    Attributes:
        unit: Of each rule.
        context: Of each rule.
        base: The predicate of each rule.
        budget: Of each rule.
        units: Whether rules of one unit may be covered by rules of another.
        contexts: Whether one context implies another.
        bits: For each predicate its attributes as bits.
        budgets: Whether one budget is no looser than another.
    """

    unit: NDArray[np.int8]
    context: NDArray[np.int8]
    base: NDArray[np.int32]
    budget: NDArray[np.int16]
    units: Flags
    contexts: Flags
    bits: Bits
    budgets: Flags


def tables_of(large: Large) -> Tables:
    """Return the rules as the reference wants them."""
    rules = large.rules
    place = {name: n for n, name in enumerate(sorted(large.vocabulary.attributes))}
    words = len(place) // 64 + 1  # One bit more: only `true` covers all attributes.
    bits = np.zeros((len(rules.bases), words), np.uint64)
    for row, base in zip(bits, rules.bases, strict=True):
        if isinstance(base.predicate, Constant):
            row[:] = np.uint64(2**64 - 1)
        else:
            assert isinstance(base.predicate, ReadsAny)
            for name in base.predicate.attributes:
                word, bit = divmod(place[name], 64)
                row[word] |= np.uint64(1 << bit)
    within = [
        [
            all(
                isinstance(a, LabelIn)
                and isinstance(b, LabelIn)
                and a.values <= b.values
                for a, b in zip(one.predicates, other.predicates, strict=True)
            )
            for other in rules.contexts
        ]
        for one in rules.contexts
    ]
    numbers: dict[Budget, int] = {}
    pairs = list(product(range(len(rules.bases)), range(len(rules.contexts))))
    budget = [numbers.setdefault(rules.budget(b, e), len(numbers)) for b, e in pairs]
    filters = [filter_of(one) for one in numbers]
    return Tables(
        unit=np.array([UNITS.index(rules.bases[b].unit) for b, _ in pairs], np.int8),
        context=np.array([e for _, e in pairs], np.int8),
        base=np.array([b for b, _ in pairs], np.int32),
        budget=np.array(budget, np.int16),
        units=np.array([[other in LARGER[one] for other in UNITS] for one in UNITS]),
        contexts=np.array(within),
        bits=bits,
        budgets=np.array([[no_looser(a, b) for b in filters] for a in filters]),
    )


@numba.njit(inline="always")
def _subset(bits: Bits, narrow: int, wide: int) -> bool:
    for word in range(bits.shape[1]):
        if bits[narrow, word] & ~bits[wide, word]:
            return False
    return True


@numba.njit(inline="always")
def _covers(t: Tables, j: int, i: int) -> bool:
    return (
        t[4][t[0][i], t[0][j]]
        and t[5][t[1][i], t[1][j]]
        and t[7][t[3][j], t[3][i]]
        and _subset(t[6], t[2][i], t[2][j])
    )


@numba.njit(parallel=True)
def _all_pairs(t: Tables, chosen: Integers) -> Flags:
    kept = np.ones(chosen.size, np.bool_)
    for place in numba.prange(chosen.size):
        i = chosen[place]
        for j in range(t[0].size):
            if j != i and _covers(t, j, i) and (j < i or not _covers(t, i, j)):
                kept[place] = False
                break
    return kept


def reference(tables: Tables, chosen: Integers) -> Flags:
    """Return which of the chosen rules are kept, of all rules."""
    columns = tuple(getattr(tables, name) for name in Tables.__dataclass_fields__)
    found: Flags = _all_pairs(columns, chosen)
    return found


# --- pruning: both sides --------------------------------------------------------------


Answer = TypeVar("Answer")


def timed(run: Callable[[], Answer]) -> tuple[float, Answer]:
    """Return the processor seconds that a call takes, of all threads, and its answer.

    Other work on the machine does not count as it would by the clock on the wall.
    """
    start = time.process_time()
    answer = run()
    return time.process_time() - start, answer


def compare_pruning(large: Large, *, runs: int) -> None:
    """Print a row of the table; fail if the two sides do not keep the same rules."""
    tables = tables_of(large)
    rules = len(large.rules)
    reference(tables, np.arange(10))  # Compiles.
    ours: list[float] = []
    theirs = 0.0
    # In turns: ours, then a part of theirs.
    for part in np.array_split(np.arange(rules), runs):
        seconds, pruned = timed(
            lambda: prune(large.rules, LARGER, filter_of, large.vocabulary)
        )
        ours.append(seconds)
        seconds, kept = timed(lambda part=part: reference(tables, part))  # type: ignore[misc]
        theirs += seconds / numba.get_num_threads()
        if not np.array_equal(np.asarray(pruned.witness)[part] < 0, kept):
            message = "the two sides do not keep the same rules"
            raise AssertionError(message)
    best = min(ours)
    print(
        f"| {rules:,} | {len(tables.budgets)} | {len(pruned.kept) / rules:.1%} "
        f"| {best * 1000:.1f} ms | {theirs:.2f} s | {theirs / best:.0f} |",
        flush=True,
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 20,256 rules")
    quick = parser.parse_args().quick
    sizes = [(12, 3), (120, 30)] if quick else [(12, 3), (120, 30), (1400, 300)]
    print(f"seed {SEED}; {numba.get_num_threads()} threads for the reference\n")
    print("## Pruning\n")
    print("| rules | budgets | kept | ours | all pairs, compiled | ratio |")
    print("|---|---|---|---|---|---|")
    for attributes, categories in sizes:
        compare_pruning(large_policy(attributes, categories), runs=8)
    print("\n## Matching and checking\n")
    matching(quick=quick)


if __name__ == "__main__":
    main()
