"""Pruning against theorem 5.1, on random policies of every sort."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from functools import cache

import pytest
from budget import counted, seed
from oracle.pruning import Theorem, matched, mechanisms

from modicum.accounting import (
    ApproxBudget,
    Budget,
    Filter,
    GdpBudget,
    Loss,
    PureBudget,
    Total,
    Unlimited,
    ZcdpBudget,
    filter_for,
)
from modicum.accounting.budgets import RenyiBudget
from modicum.accounting.curves import Curve
from modicum.accounting.filters.comparison import no_looser, no_looser_alone
from modicum.accounting.grid import DELTA, EPS, INFINITE, MU2, RHO, order_index
from modicum.accounting.mechanisms import declared_pure, declared_zcdp
from modicum.policy.budget_maps import BudgetMap, Same
from modicum.policy.model import Setting
from modicum.policy.predicates import (
    All,
    Any,
    BoundAtMost,
    Constant,
    LabelIn,
    Not,
    Predicate,
    ReadsAny,
    ReadsAtLeast,
    Scope,
    TextIn,
    TextPasses,
    TextTest,
)
from modicum.policy.pruning import comparison
from modicum.policy.pruning.chains import chains_of
from modicum.policy.pruning.comparison import scopes_of
from modicum.policy.pruning.logic import Logic
from modicum.policy.pruning.result import prune, prune_alone
from modicum.policy.rules import BaseRule, RuleSet, Stage
from modicum.release import Vocabulary
from modicum.release.vocabulary import Label

FILTER = "zcdp-v1"
ATTRIBUTES = ("age", "city", "pay", "sex")
UNITS = ("day", "week", "month", "user")
VOCABULARY = Vocabulary(
    attributes=frozenset(ATTRIBUTES),
    labels={"ml": Label(("none", "box"), "none")},
    units=UNITS,
    neighbors="add-remove",
)
PURPOSE = (Scope.RELEASE, "purpose")
EVERYTHING = mechanisms(
    VOCABULARY, {PURPOSE: ("ads", "care", "call", "other")}, {"user": (None, 2, 9, 20)}
)

LIMITS = [Fraction(n, 2) for n in (1, 2, 4)]
DELTAS = [Fraction(1, 10**6), Fraction(1, 10**9), Fraction(3, 10**20)]
BUDGETS: list[Budget] = [
    Unlimited(),
    *map(PureBudget, LIMITS),
    *(ApproxBudget(eps, delta) for eps in LIMITS for delta in DELTAS),
    *(ZcdpBudget(rho / 20) for rho in (*LIMITS, Fraction(1, 5))),
    *map(GdpBudget, LIMITS),
    *(
        RenyiBudget(tuple(zip((Fraction(2), Fraction(8)), most, strict=False)))
        for most in ((LIMITS[0],), LIMITS[:2], LIMITS[1:], (LIMITS[2], LIMITS[2]))
    ),
    RenyiBudget(((Fraction(8), LIMITS[1]),)),
]


# --- what a budget admits, asked of every corner -------------------------------------

_WATCHED = (EPS, RHO, MU2, order_index(Fraction(2)), order_index(Fraction(8)))


@cache
def tighter(first: Budget, second: Budget) -> bool:
    """Whether no total is within the first and not within the second.

    If there is one, there is one each of whose coordinates is at a cap of the first,
    at one of the second, just beyond it, or infinite.
    """
    filters = [filter_for(one, FILTER) for one in (first, second)]
    values = {
        index: {INFINITE}.union(
            *((cap, cap + 1) for one in filters for at, cap in one.caps if at == index)
        )
        for index in _WATCHED
    }
    deltas = {0, *(one.delta_cap for one in filters), INFINITE}
    totals: list[list[tuple[int, int]]] = [[]]
    for index in _WATCHED:
        totals = [[*total, (index, v)] for total in totals for v in values[index]]
    for total in totals:
        for delta in deltas:
            finite = [0] * (DELTA + 1)
            for index, value in (*total, (DELTA, delta)):
                finite[index] = value
            whole = Total(tuple(finite))
            if filters[0].admits(whole) and not filters[1].admits(whole):
                return False
    return True


# --- random policies -----------------------------------------------------------------


class Author:
    """Writes policies at random, with a taste for repeating itself."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.seen: list[Predicate] = []

    def reads(self) -> Predicate:
        count = self.dice.choice((0, 1, 1, 2, 2, 3, 4))
        return ReadsAny(frozenset(self.dice.sample(ATTRIBUTES, count)))

    def atom(self) -> Predicate:
        dice = self.dice
        scope = dice.choice(list(Scope))
        values = frozenset(dice.sample(("none", "box"), dice.choice((0, 1, 1, 1, 2))))
        texts = frozenset(dice.sample(("ads", "care"), dice.choice((1, 2))))
        return dice.choice(
            (
                self.reads(),
                self.reads(),
                LabelIn(scope, "ml", values),
                LabelIn(scope, "ml", values),
                TextIn(*PURPOSE, texts),
                TextPasses(*PURPOSE, TextTest.STARTS_WITH, "ca"),
                BoundAtMost("user", dice.choice((None, 2, 9))),
                ReadsAtLeast(dice.choice((0, 1, 2, 3, 5))),
                Constant(dice.random() < 0.7),
            )
        )

    def predicate(self, depth: int = 2) -> Predicate:
        if self.seen and self.dice.random() < 0.3:
            return self.dice.choice(self.seen)
        shape = self.dice.random()
        if depth == 0 or shape < 0.5:
            made = self.atom()
        elif shape < 0.65:
            made = Not(self.predicate(depth - 1))
        else:
            kind = All if shape < 0.85 else Any
            count = self.dice.choice((0, 2, 2, 3))
            made = kind(tuple(self.predicate(depth - 1) for _ in range(count)))
        self.seen.append(made)
        return made

    def setting(self, number: int) -> Setting:
        label = LabelIn(self.dice.choice(list(Scope)), "ml", frozenset({"none"}))
        made = self.dice.choice(
            (Constant(value=True), label, label, Not(label), self.predicate(1))
        )
        return Setting(f"s{number}", made, BudgetMap(Same(), None), None)

    def rules(self) -> RuleSet:
        dice = self.dice
        pool = dice.sample(BUDGETS, dice.choice((1, 3, 6)))
        units = dice.sample(UNITS, dice.choice((1, 2, 4)))
        extensions = [
            [self.setting(n) for n in range(dice.choice((1, 2, 2, 3)))]
            for _ in range(dice.choice((0, 1, 1, 2)))
        ]
        bases = [
            BaseRule(
                Stage.HISTORY,
                f"rule-{number}",
                dice.choice(units),
                self.reads() if dice.random() < 0.5 else self.predicate(),
                dice.choice(pool),
                None,
            )
            for number in range(dice.choice((1, 4, 8, 12)))
        ]
        contexts = 1
        for settings in extensions:
            contexts *= len(settings)
        budgets = {one: tuple(dice.choices(pool, k=contexts)) for one in pool}
        return RuleSet(bases, extensions, budgets)

    def order(self) -> dict[str, frozenset[str]]:
        """Return a partial order of the units, closed under going on."""
        larger = {unit: {unit} for unit in UNITS}
        for place in reversed(range(len(UNITS))):
            for other in UNITS[place + 1 :]:
                if self.dice.random() < 0.4:
                    larger[UNITS[place]] |= larger[other]
        return {unit: frozenset(found) for unit, found in larger.items()}


def random_policies(count: int) -> list[tuple[RuleSet, Mapping[str, frozenset[str]]]]:
    dice = random.Random(f"{seed()} pruning")
    authors = [Author(random.Random(dice.random())) for _ in range(count)]
    return [(author.rules(), author.order()) for author in authors]


def filter_of(budget: Budget) -> Filter:
    return filter_for(budget, FILTER)


# --- the comparison ------------------------------------------------------------------


@pytest.mark.spec("POL-2")
def test_pruning_is_theorem_5_1() -> None:
    count = counted(300)
    met: Counter[str] = Counter()
    for rules, order in random_policies(count):
        theorem = Theorem(rules, order, tighter, EVERYTHING)
        pruned = prune(rules, order, filter_of, VOCABULARY)
        kept = theorem.kept()
        assert kept == list(theorem.kept_by_definition())
        assert list(pruned.kept) == kept
        for rule, witness in enumerate(pruned.witness):
            if witness >= 0:
                assert pruned.witness[witness] < 0
                assert theorem.covers(witness, rule)
                met["crossing units"] += rules[rule].unit != rules[witness].unit
                met["mutual"] += theorem.covers(rule, witness)
        met["rules"] += len(rules)
        met["kept"] += len(kept)
        met["policies"] += 1
    assert met["policies"] >= 300
    assert min(met["crossing units"], met["mutual"]) >= count // 2
    assert met["rules"] // 10 < met["kept"] < met["rules"] // 2


def test_pruning_for_releases_alone_is_theorem_5_1() -> None:
    pruned_rules = 0
    for rules, order in random_policies(counted(60)):
        theorem = Theorem(rules, order, no_looser_alone, EVERYTHING)
        pruned = prune_alone(rules, order, VOCABULARY)
        assert list(pruned.kept) == theorem.kept()
        pruned_rules += len(rules) - len(pruned.kept)
    assert pruned_rules > 100


def test_every_sort_of_scope_was_compared() -> None:
    met: Counter[str] = Counter()
    for rules, _ in random_policies(100):
        scopes = scopes_of(rules, Logic(VOCABULARY))
        plain = scopes.plain * len(rules.contexts)
        met["plain"] += plain
        met["tied"] += scopes.size - plain
        met["plain implies tied"] += int((scopes.ties.targets < plain).sum())
        met["nowhere"] += int((scopes.node < 0).sum())
    assert len(met) == 4
    assert min(met.values()) > 100, met


def test_without_room_for_ties_pruning_stays_true_and_only_misses_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(comparison, "TIED_MAX", 0)
    missed = 0
    for rules, order in random_policies(counted(40)):
        theorem = Theorem(rules, order, tighter, EVERYTHING)
        pruned = prune(rules, order, filter_of, VOCABULARY)
        for rule, witness in enumerate(pruned.witness):
            assert witness < 0 or theorem.covers(witness, rule)
        kept = set(pruned.kept)
        assert all(pruned.witness[w] < 0 for w in pruned.witness if w >= 0)
        missed += len(kept) - len(theorem.kept())
        assert len(kept) >= len(theorem.kept())
    assert missed > 0


# --- chains --------------------------------------------------------------------------


def test_thresholds_say_what_is_no_looser() -> None:
    dice = random.Random(f"{seed()} chains")
    pairs = 0
    for _ in range(counted(60)):
        filters = [random_filter(dice) for _ in range(dice.choice((1, 5, 20)))]
        chains = chains_of(filters)
        for first, a in zip(filters, chains.limit, strict=True):
            for second, b in zip(filters, chains.limit, strict=True):
                below = chains.place[a] < chains.thresholds[chains.chain[a], b]
                assert below == no_looser(first, second), (first, second)
                same = no_looser(first, second) and no_looser(second, first)
                assert (a == b) == same
                pairs += 1
    assert pairs > 1000


def random_filter(dice: random.Random) -> Filter:
    caps = tuple(
        (dice.choice((EPS, RHO, MU2)), dice.choice((-1, 0, 1, 2, INFINITE)))
        for _ in range(dice.choice((0, 1, 1, 2, 3)))
    )
    return Filter(
        caps,
        dice.choice((-1, 0, 0, 0, 1, INFINITE)),
        enforced=dice.random() > 0.1,
        every=dice.random() < 0.5,
    )


# --- decisions -----------------------------------------------------------------------


def random_losses(
    dice: random.Random, order: Mapping[str, frozenset[str]]
) -> dict[str, Loss]:
    """Return a loss for each unit; a larger unit in the order loses no less."""
    own = {
        unit: dice.choice((zcdp, pure))(Fraction(dice.randrange(1, 200), 1000)).loss()
        for unit in UNITS
    }
    return {
        unit: Loss(
            tuple(
                max(each)
                for each in zip(
                    *(own[u].coordinates for u in UNITS if unit in order[u]),
                    strict=True,
                )
            )
        )
        for unit in UNITS
    }


def pure(size: Fraction) -> Curve:
    return declared_pure(eps=size)


def zcdp(size: Fraction) -> Curve:
    return declared_zcdp(rho=size / 10)


def test_decisions_under_pruned_and_all_rules_are_the_same() -> None:
    """A history that no rule denied yet, and one mechanism after the other."""
    decided: Counter[bool] = Counter()
    for number, (rules, order) in enumerate(random_policies(counted(100))):
        dice = random.Random(f"{seed()} {number}")
        pruned = prune(rules, order, filter_of, VOCABULARY)
        about = matched(rules, EVERYTHING)
        filters = [filter_of(rule.budget) for rule in rules]
        units = [rule.unit for rule in rules]
        totals = [Total()] * len(rules)
        for _ in range(10):
            place = dice.randrange(len(EVERYTHING))
            losses = random_losses(dice, order)
            after = {
                rule: totals[rule].plus(losses[units[rule]])
                for rule, bits in enumerate(about)
                if bits >> place & 1
            }
            denying = {n for n, total in after.items() if not filters[n].admits(total)}
            assert bool(denying) == any(n in denying for n in pruned.kept)
            assert {pruned.witness[n] for n in denying} - {-1} <= denying
            decided[not denying] += 1
            if not denying:
                for rule, total in after.items():
                    totals[rule] = total
    assert sum(decided.values()) >= 1000
    assert min(decided.values()) > 100, decided
