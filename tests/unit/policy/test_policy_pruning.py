"""Pruning: the corners in which the published algorithm goes wrong, and some more."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from modicum.accounting import (
    ApproxBudget,
    Budget,
    Filter,
    PureBudget,
    Unlimited,
    ZcdpBudget,
    filter_for,
)
from modicum.policy.budget_maps import BudgetMap, Same
from modicum.policy.model import Setting
from modicum.policy.predicates import (
    All,
    Any,
    Constant,
    LabelIn,
    Not,
    Predicate,
    ReadsAny,
    ReadsAtLeast,
    Scope,
)
from modicum.policy.pruning.algorithm import roots
from modicum.policy.pruning.chains import Integers, grouped
from modicum.policy.pruning.comparison import Readers
from modicum.policy.pruning.logic import Logic
from modicum.policy.pruning.result import prune, prune_alone
from modicum.policy.rules import BaseRule, RuleSet, Stage
from modicum.release import Vocabulary
from modicum.release.vocabulary import Label

VOCABULARY = Vocabulary(
    attributes=frozenset("abcdef"),
    labels={"ml": Label(("none", "box"), "none")},
    units=("day", "user"),
    neighbors="add-remove",
)
APART = {"day": frozenset({"day"}), "user": frozenset({"user"})}
NESTED = {"day": frozenset({"day", "user"}), "user": frozenset({"user"})}

TRUE, FALSE = Constant(value=True), Constant(value=False)


def reads(names: str) -> ReadsAny:
    return ReadsAny(frozenset(names))


def ml(*values: str, scope: Scope = Scope.MECHANISM) -> LabelIn:
    return LabelIn(scope, "ml", frozenset(values))


def eps(value: float, delta: float | None = None) -> Budget:
    if delta is None:
        return PureBudget(Fraction(value))
    return ApproxBudget(Fraction(value), Fraction(str(delta)))


def filter_of(budget: Budget) -> Filter:
    return filter_for(budget, "combined-v2")


def policy(
    rules: Sequence[tuple[str, Predicate, Budget]],
    *extensions: Sequence[tuple[Predicate, float]],
) -> RuleSet:
    """Return rules by unit, predicate and budget; settings multiply pure budgets."""
    bases = [
        BaseRule(Stage.HISTORY, f"rule-{n}", unit, predicate, budget, None)
        for n, (unit, predicate, budget) in enumerate(rules)
    ]
    factors = [1.0]
    settings = []
    for extension in extensions:
        factors = [a * b for a in factors for _, b in extension]
        settings.append(
            [
                Setting(f"s{n}", predicate, BudgetMap(Same(), None), None)
                for n, (predicate, _) in enumerate(extension)
            ]
        )
    budgets = {
        budget: tuple(
            eps(float(budget.eps) * factor)
            if isinstance(budget, PureBudget)
            else budget
            for factor in factors
        )
        for _, _, budget in rules
    }
    return RuleSet(bases, settings, budgets)


def witnesses(rules: RuleSet, order: dict[str, frozenset[str]] = APART) -> list[int]:
    return list(prune(rules, order, filter_of, VOCABULARY).witness)


# --- budgets -------------------------------------------------------------------------


def test_a_budget_passed_over_on_the_way_still_counts() -> None:
    """Top-down with one inherited budget keeps the leaf: the deltas cross."""
    rules = policy(
        [
            ("user", TRUE, eps(5, 1e-7)),
            ("user", reads("ab"), eps(4, 1e-5)),
            ("user", reads("a"), eps(6, 1e-6)),
        ]
    )
    assert witnesses(rules) == [-1, -1, 0]


def test_of_equal_rules_the_first_stays() -> None:
    rules = policy([("user", reads("a"), eps(1))] * 3)
    assert witnesses(rules) == [-1, 0, 0]


def test_predicates_that_mean_the_same_are_equal() -> None:
    both = Any((reads("a"), reads("b")))
    rules = policy([("user", both, eps(1)), ("user", reads("ab"), eps(1))])
    assert witnesses(rules) == [-1, 0]


def test_budgets_that_admit_the_same_are_equal_across_measures() -> None:
    tiny = ZcdpBudget(Fraction(1, 3)), ZcdpBudget(Fraction(333333333333, 10**12))
    rules = policy([("user", TRUE, budget) for budget in tiny])
    assert witnesses(rules) == [-1, 0]


def test_a_tighter_budget_on_more_prunes_and_on_less_does_not() -> None:
    wide, narrow = ("user", reads("ab"), eps(1)), ("user", reads("a"), eps(2))
    assert witnesses(policy([narrow, wide])) == [1, -1]
    tight = ("user", reads("a"), eps(0.5))
    assert witnesses(policy([tight, wide])) == [-1, -1]


def test_a_witness_is_kept_itself() -> None:
    rules = policy([("user", reads("abcdef"[:n]), eps(n)) for n in range(1, 7)])
    assert witnesses(rules) == [-1] * 6
    rules = policy([("user", reads("abcdef"[:n]), eps(9 - n)) for n in range(1, 7)])
    assert witnesses(rules) == [5] * 5 + [-1]


def test_unlimited_is_pruned_by_anything_and_prunes_only_itself() -> None:
    rules = policy(
        [
            ("user", TRUE, Unlimited()),
            ("user", TRUE, eps(9)),
            ("user", reads("a"), Unlimited()),
        ]
    )
    assert witnesses(rules) == [1, -1, 1]


# --- units ---------------------------------------------------------------------------


def test_units_are_crossed_only_where_the_caller_says_so() -> None:
    rules = policy([("day", TRUE, eps(1)), ("user", TRUE, eps(1))])
    assert witnesses(rules, NESTED) == [1, -1]
    assert witnesses(rules, APART) == [-1, -1]


def test_budgets_that_cross_between_units_keep_the_least_of_each() -> None:
    rules = policy(
        [
            ("user", reads("a"), eps(5)),
            ("day", reads("a"), eps(2)),
            ("user", reads("a"), eps(4)),
            ("day", reads("a"), eps(3)),
        ]
    )
    assert witnesses(rules, NESTED) == [2, -1, -1, 1]


# --- scopes --------------------------------------------------------------------------


def test_what_nothing_matches_is_covered_by_anything() -> None:
    rules = policy(
        [
            ("user", reads(""), eps(2)),
            ("user", All((reads("a"), FALSE)), eps(1)),
            ("user", reads("b"), eps(2)),
            ("day", FALSE, eps(2)),
        ]
    )
    assert witnesses(rules) == [1, -1, -1, -1]
    assert witnesses(rules, NESTED) == [1, -1, -1, 1]


def test_a_context_nothing_matches_is_covered_by_any_other() -> None:
    rules = policy(
        [("user", reads("a"), eps(1))],
        [(ml("none"), 3), (TRUE, 4)],
        [(ml("box"), 1), (TRUE, 1)],
    )
    # none and box; none; box; everything.
    assert witnesses(rules) == [1, -1, 3, -1]


def test_a_predicate_that_shares_a_label_with_contexts_is_taken_as_a_whole() -> None:
    rules = policy(
        [
            ("user", Any((ml("box"), reads("a"))), eps(1)),
            ("user", reads("a"), eps(1)),
        ],
        [(ml("none"), 1), (TRUE, 2)],
    )
    # In "none" both are about reading a: equal. Elsewhere the first is about more.
    assert witnesses(rules) == [-1, -1, 0, 1]


def test_counting_attributes_is_understood() -> None:
    rules = policy(
        [
            ("user", ReadsAtLeast(1), eps(1)),
            ("user", reads("abc"), eps(2)),
            ("user", ReadsAtLeast(4), eps(3)),
            ("user", reads("abcdef"), eps(1)),
            ("user", Not(ReadsAtLeast(2)), eps(1)),
        ]
    )
    assert witnesses(rules) == [-1, 0, 0, 0, -1]


@pytest.mark.parametrize("count", range(8))
def test_readers_and_counts(count: int) -> None:
    sets = [frozenset("abcdef"[:n]) for n in range(1, 7)]
    logic = Logic(VOCABULARY)
    readers = Readers(dict(enumerate(sets)), logic)
    wide = ReadsAtLeast(count)
    assert readers.implying((), wide) == (list(range(6)) if count <= 1 else [])
    if count <= 6:
        # So many of six are read: one of a set, unless enough are outside of it.
        expected = [n for n, one in enumerate(sets) if 6 - len(one) < count]
        assert readers.implied_by((wide,)) == expected


# --- the rest ------------------------------------------------------------------------


def test_no_rules() -> None:
    assert witnesses(policy([])) == []


def test_rules_for_releases_alone() -> None:
    rules = policy(
        [
            ("user", TRUE, eps(1)),
            ("user", reads("a"), eps(1, 1e-9)),
            ("user", reads("a"), ZcdpBudget(Fraction(5))),
            ("user", reads("b"), eps(2, 1e-9)),
            ("user", reads("b"), eps(2, 1e-12)),
        ]
    )
    pruned = prune_alone(rules, APART, VOCABULARY)
    assert list(pruned.witness) == [-1, 0, -1, 0, 0]
    assert pruned.kept == (0, 2)


@pytest.mark.parametrize(
    ("covered_by", "expected"),
    [
        ([-1, 0, 1, 2], [-1, 0, 0, 0]),
        ([1, 2, 0], [-1, 0, 0]),
        ([2, 0, 1, 1, -1, 4], [-1, 0, 0, 0, -1, 4]),
        ([1, 0, 3, 2, 2, 4], [-1, 0, -1, 2, 2, 2]),
        ([], []),
    ],
)
def test_witnesses_of_witnesses(covered_by: list[int], expected: list[int]) -> None:
    assert roots(np.array(covered_by, np.int64)).tolist() == expected


def test_lists_are_grouped_by_their_target() -> None:
    def numbers(*values: int) -> Integers:
        return np.array(values, np.int64)

    lists = grouped(numbers(3, 1, 3, 3), numbers(0, 1, 2, 3))
    assert lists.targets.tolist() == [1, 3]
    assert lists.lengths.tolist() == [1, 3]
    assert lists.least(np.array([[9, 5, 7, 8], [1, 2, 3, 4]])).tolist() == [
        [5, 7],
        [2, 1],
    ]


def test_numpy_is_loaded_only_when_rules_are_pruned() -> None:
    script = "import sys, modicum.policy.pruning; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
