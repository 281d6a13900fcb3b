"""Which of two filters is tighter, against every total of a small grid."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product

import pytest
from budget import counted, seed

from modicum.accounting import (
    ApproxBudget,
    Budget,
    GdpBudget,
    PureBudget,
    Total,
    Unlimited,
    ZcdpBudget,
    filter_for,
)
from modicum.accounting.budgets import RenyiBudget
from modicum.accounting.filters.budget import FILTERS, Filter, fixed_figure, limit
from modicum.accounting.filters.comparison import (
    ANYTHING,
    NOTHING,
    no_looser,
    no_looser_alone,
    reduced,
)
from modicum.accounting.grid import DELTA, EPS, INFINITE, MU2, RHO
from modicum.accounting.mechanisms import (
    declared_gdp,
    declared_pure,
    declared_zcdp,
    laplace,
)
from modicum.core.rationals import DELTA_UNIT, floor_units

COORDINATES = (EPS, RHO, MU2)
#: Every cap below is a value, and infinity is beyond all of them.
VALUES = (0, 1, 2, INFINITE - 1, INFINITE)
CAPS = (-1, 0, 1, 2, INFINITE - 1, INFINITE, INFINITE + 5)
DELTA_VALUES = (0, 1, 2, INFINITE)
DELTA_CAPS = (-1, 0, 1, 2, INFINITE, INFINITE + 3)

MILLIONTH, BILLIONTH = Fraction(1, 10**6), Fraction(1, 10**9)


def all_totals() -> Iterator[Total]:
    for values in product(VALUES, repeat=len(COORDINATES)):
        for delta in DELTA_VALUES:
            finite = [0] * (DELTA + 1)
            for index, value in (
                *zip(COORDINATES, values, strict=True),
                (DELTA, delta),
            ):
                finite[index] = value
            yield Total(tuple(finite))


TOTALS = list(all_totals())


def admitted(one: Filter) -> int:
    """Return, as bits, which totals a filter admits."""
    return sum(1 << place for place, total in enumerate(TOTALS) if one.admits(total))


def random_filter(dice: random.Random) -> Filter:
    caps = tuple(
        (dice.choice(COORDINATES), dice.choice(CAPS))
        for _ in range(dice.choice((0, 1, 1, 2, 2, 3, 4)))
    )
    return Filter(
        caps,
        dice.choice((0, 0, 1, dice.choice(DELTA_CAPS))),
        enforced=dice.random() > 0.05,
        every=dice.random() < 0.5,
    )


def some_filters(count: int) -> list[tuple[Filter, int]]:
    dice = random.Random(f"{seed()} filters")
    drawn = [random_filter(dice) for _ in range(count)]
    return [(one, admitted(one)) for one in drawn]


def test_a_filter_is_no_looser_exactly_if_the_other_admits_as_much() -> None:
    met = {True: 0, False: 0}
    found = some_filters(counted(200))
    for (first, within), (second, beyond) in product(found[:1000], found[:200]):
        expected = within & ~beyond == 0
        assert no_looser(first, second) == expected, (first, second)
        met[expected] += 1
    assert min(met.values()) > 5_000


def test_filters_that_admit_the_same_have_one_form() -> None:
    forms: dict[int, Filter] = {}
    for one, within in some_filters(counted(300)):
        form = reduced(one)
        assert admitted(form) == within
        assert forms.setdefault(within, form) == form
        assert reduced(form) == form
    assert len(set(forms.values())) == len(forms) > 50


def test_the_ends_of_the_order() -> None:
    usual = Filter(((EPS, 1),), 0)
    assert no_looser(NOTHING, usual)
    assert not no_looser(usual, NOTHING)
    assert no_looser(usual, ANYTHING)
    assert not no_looser(ANYTHING, usual)
    assert no_looser(ANYTHING, ANYTHING)


@pytest.mark.parametrize("name", sorted(set(FILTERS) - {"as-published"}))
def test_a_larger_budget_is_no_tighter(name: str) -> None:
    """Caps are monotone in eps and in delta, so pruning may compare them."""
    steps = [Fraction(n, 10) for n in (1, 2, 5, 10, 30)]
    for eps, more in pairwise(steps):
        for delta in (BILLIONTH, MILLIONTH):
            tight = filter_for(ApproxBudget(eps, delta), name)
            assert no_looser(tight, filter_for(ApproxBudget(more, delta), name))
            assert not no_looser(filter_for(ApproxBudget(more, delta), name), tight)
        tight = filter_for(ApproxBudget(eps, BILLIONTH), name)
        assert no_looser(tight, filter_for(ApproxBudget(eps, MILLIONTH), name))


def test_across_measures_only_what_a_coordinate_proves() -> None:
    def admits(budget: Budget) -> Filter:
        return filter_for(budget, "zcdp-v1")

    approx = admits(ApproxBudget(Fraction(1), MILLIONTH))
    cap = dict(approx.caps)[RHO]
    assert no_looser(admits(ZcdpBudget(Fraction(cap, 10**12))), approx)
    assert not no_looser(admits(ZcdpBudget(Fraction(cap + 1, 10**12))), approx)
    assert no_looser(admits(PureBudget(Fraction(1))), approx)
    # A stored loss may know less of eps than of rho.
    assert not no_looser(
        admits(PureBudget(Fraction(1))), admits(ZcdpBudget(Fraction(9)))
    )
    assert not no_looser(approx, admits(PureBudget(Fraction(9))))


# --- one release alone ---------------------------------------------------------------

SINGLE: list[Budget] = [
    Unlimited(),
    PureBudget(Fraction(1)),
    PureBudget(Fraction(2)),
    ApproxBudget(Fraction(1), MILLIONTH),
    ApproxBudget(Fraction(1), Fraction(1, 10**300)),
    ApproxBudget(Fraction(2), BILLIONTH),
    ZcdpBudget(Fraction(1)),
    ZcdpBudget(Fraction(2)),
    GdpBudget(Fraction(1)),
    GdpBudget(Fraction(2)),
    RenyiBudget(((Fraction(2), Fraction(1)),)),
    RenyiBudget(((Fraction(2), Fraction(1)), (Fraction(8), Fraction(3)))),
    RenyiBudget(((Fraction(2), Fraction(2)), (Fraction(8), Fraction(3)))),
]


def by_parameters(first: Budget, second: Budget) -> bool:
    match first, second:
        case _, Unlimited():
            return True
        case (PureBudget(eps=a), PureBudget(eps=b) | ApproxBudget(eps=b)):
            return a <= b
        case ApproxBudget(eps=a, delta=c), ApproxBudget(eps=b, delta=d):
            return a <= b and c <= d
        case ZcdpBudget(rho=a), ZcdpBudget(rho=b):
            return a <= b
        case GdpBudget(mu=a), GdpBudget(mu=b):
            return a <= b
        case RenyiBudget(limits=a_limits), RenyiBudget(limits=b_limits):
            mine = dict(a_limits)
            return all(order in mine and mine[order] <= r for order, r in b_limits)
        case _:
            return False


@pytest.mark.parametrize("first", SINGLE, ids=str)
def test_alone_budgets_compare_by_their_parameters(first: Budget) -> None:
    for second in SINGLE:
        assert no_looser_alone(first, second) == by_parameters(first, second), second


def lets_pass(budget: Budget, alone: Total) -> bool:
    """Say what the ledger says to one release by itself."""
    if isinstance(budget, Unlimited):
        return True
    delta = budget.delta if isinstance(budget, ApproxBudget) else Fraction(0)
    within = alone.units(DELTA) <= floor_units(delta, DELTA_UNIT)
    return within and fixed_figure(budget, alone) <= limit(budget)


def test_what_passes_alone_passes_a_looser_budget() -> None:
    dice = random.Random(f"{seed()} alone")
    passed = 0
    for _ in range(counted(15)):
        size = Fraction(dice.randrange(1, 250), 100)
        curve = dice.choice(
            (
                declared_pure(eps=size),
                declared_zcdp(rho=size),
                declared_gdp(mu=size),
                laplace(sensitivity_l1=size, scale=Fraction(1)),
            )
        )
        alone = Total().plus(curve.loss())
        verdicts = {one: lets_pass(one, alone) for one in SINGLE}
        for first, second in product(SINGLE, SINGLE):
            if verdicts[first] and no_looser_alone(first, second):
                assert verdicts[second], (first, second, curve)
                passed += first != second
    assert passed > 50
