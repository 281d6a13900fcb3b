"""Filters: their constants, their edges, and what a budget admits exactly."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from oracle import accounting as oracle
from samples import prices

from modicum.accounting import (
    COORDINATES,
    FILTERS,
    INFINITE,
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
from modicum.accounting.conversions import renyi_cap, zcdp_cap
from modicum.accounting.filters import figure, fixed_figure, limit
from modicum.accounting.grid import DELTA, EPS, MU2, RHO, order_index
from modicum.accounting.losses import total_of

ONE = Fraction(1)
DELTA_1E7 = Fraction(1, 10**7)
APPROX = ApproxBudget(ONE, DELTA_1E7)


def at(delta: int = 0, **coordinates: int) -> Total:
    """A total with a few finite coordinates; the others are infinite."""
    names = {"eps": EPS, "rho": RHO, "mu2": MU2, "rdp8": order_index(Fraction(8))}
    finite, infinite = [0] * COORDINATES, [1] * COORDINATES
    for name, value in coordinates.items():
        finite[names[name]], infinite[names[name]] = value, 0
    finite[DELTA], infinite[DELTA] = delta, 0
    return Total(tuple(finite), tuple(infinite))


# --- constants -----------------------------------------------------------------------


@pytest.mark.spec("ACC-5")
def test_the_filters_are_the_documented_ones() -> None:
    found = {
        name: (shares.mechanisms, shares.rho, dict(shares.orders))
        for name, shares in FILTERS.items()
    }
    documented = {
        name: (mechanisms, rho, {Fraction(n): share for n, share in orders.items()})
        for name, (mechanisms, rho, orders) in oracle.SHARES.items()
    }
    assert found == documented


@pytest.mark.parametrize("name", sorted(FILTERS))
def test_the_shares_of_delta_sum_to_at_most_one(name: str) -> None:
    shares = FILTERS[name]
    spent = [shares.mechanisms, shares.rho, *(share for _, share in shares.orders)]
    assert all(share >= 0 for share in spent)
    assert sum(spent) <= 1


def test_an_unknown_filter_is_an_error() -> None:
    with pytest.raises(KeyError):
        filter_for(APPROX, "combined-v2")


def test_a_filter_is_a_constant_of_its_name() -> None:
    """Which coordinates count does not depend on eps or delta, but for empty ones."""
    wide = filter_for(ApproxBudget(Fraction(50), Fraction(1, 100)), "combined-v1")
    orders = [order_index(Fraction(n)) for n in (4, 8, 16, 32, 64, 128)]
    assert [index for index, _ in wide.caps] == [EPS, RHO, *orders]
    narrow = filter_for(APPROX, "combined-v1")
    assert {index for index, _ in narrow.caps} < {index for index, _ in wide.caps}


# --- exact caps ----------------------------------------------------------------------


def test_the_caps_of_the_combined_filter_use_its_shares() -> None:
    caps = dict(filter_for(APPROX, "combined-v1").caps)
    assert caps[EPS] == 10**12
    assert caps[RHO] == zcdp_cap(ONE, DELTA_1E7 / 2)
    for order in (32, 64, 128):
        index = order_index(Fraction(order))
        assert caps[index] == renyi_cap(Fraction(order), ONE, DELTA_1E7 / 24)
    assert order_index(Fraction(8)) not in caps, "it can admit nothing at this delta"


@pytest.mark.parametrize(
    ("name", "units"),
    [("combined-v1", 25 * 10**9), ("zcdp-v1", 25 * 10**9), ("basic-v1", 10**11)],
)
def test_delta_of_mechanisms_is_a_second_cap(name: str, units: int) -> None:
    limits = filter_for(APPROX, name)
    assert limits.delta_cap == units
    assert limits.admits(at(eps=0, delta=units))
    assert not limits.admits(at(eps=0, delta=units + 1))


def test_a_share_of_delta_below_a_unit_is_rounded_down() -> None:
    tiny = ApproxBudget(ONE, Fraction(5, 10**18))
    assert filter_for(tiny, "combined-v1").delta_cap == 1
    assert filter_for(tiny, "basic-v1").delta_cap == 5


@pytest.mark.parametrize(
    ("budget", "within", "beyond"),
    [
        (PureBudget(ONE), at(eps=10**12), at(eps=10**12 + 1, rho=0, mu2=0)),
        (ZcdpBudget(ONE), at(rho=10**12), at(rho=10**12 + 1, eps=0, mu2=0)),
        (GdpBudget(Fraction(3)), at(mu2=9 * 10**12), at(mu2=9 * 10**12 + 1, eps=0)),
        (PureBudget(Fraction(1, 3)), at(eps=333_333_333_333), at(eps=333_333_333_334)),
    ],
)
def test_a_limit_holds_to_the_last_unit(
    budget: Budget, within: Total, beyond: Total
) -> None:
    limits = filter_for(budget, "combined-v1")
    assert limits.admits(within)
    assert not limits.admits(beyond)
    assert figure(budget, "combined-v1", within) <= limit(budget)
    assert figure(budget, "combined-v1", beyond) > limit(budget)


@pytest.mark.parametrize(
    "budget", [PureBudget(ONE), ZcdpBudget(ONE), GdpBudget(ONE)], ids=repr
)
def test_a_measure_without_delta_admits_none(budget: Budget) -> None:
    limits = filter_for(budget, "basic-v1")
    assert limits.admits(at(eps=0, rho=0, mu2=0))
    assert not limits.admits(at(eps=0, rho=0, mu2=0, delta=1))
    assert fixed_figure(budget, at(eps=5, rho=5, mu2=5)) == 5
    assert fixed_figure(budget, at(eps=0, rho=0, mu2=0, delta=1)) == INFINITE


@pytest.mark.spec("ACC-5")
def test_one_coordinate_within_its_cap_is_enough_and_two_nearly_are_not() -> None:
    limits = filter_for(APPROX, "combined-v1")
    cap = dict(limits.caps)[RHO]
    assert limits.admits(at(rho=cap))
    assert not limits.admits(at(rho=cap + 1, eps=10**12 + 1))
    assert limits.admits(at(rho=cap + 1, eps=10**12))


def test_infinity_is_not_within_a_cap_that_is_larger_than_infinity() -> None:
    """A coordinate ends at 2^62 units, about 4.6 million."""
    nothing_proven = at()
    for budget in (
        PureBudget(Fraction(10**7)),
        ZcdpBudget(Fraction(10**7)),
        GdpBudget(Fraction(3000)),
        ApproxBudget(Fraction(10**7), DELTA_1E7),
    ):
        assert not filter_for(budget, "combined-v1").admits(nothing_proven), budget


def test_unlimited_admits_everything_and_has_no_scale_end() -> None:
    limits = filter_for(Unlimited(), "combined-v1")
    assert limits == Filter((), 0, enforced=False)
    assert limits.admits(at())
    assert limits.nearest(at()) is None
    assert limit(Unlimited()) == INFINITE
    assert figure(Unlimited(), "combined-v1", at(eps=7)) == 7
    assert fixed_figure(Unlimited(), at(eps=7, delta=3)) == 7


# --- what is shown -------------------------------------------------------------------


def test_nearest_is_the_coordinate_filled_least() -> None:
    limits = Filter(((EPS, 100), (RHO, 10)), delta_cap=0)
    assert limits.nearest(at(eps=50, rho=4)) == (RHO, 10)
    assert limits.nearest(at(eps=30, rho=4)) == (EPS, 100)
    assert limits.nearest(at(eps=150, rho=30)) == (EPS, 100)
    assert limits.nearest(at(rho=30)) == (RHO, 10)
    large = Filter(((EPS, 10**12), (RHO, 1)), delta_cap=0)
    assert large.nearest(at(rho=10**9)) == (RHO, 1), "the infinite is never nearest"


def test_a_cap_of_zero_is_filled_by_nothing_only() -> None:
    limits = Filter(((EPS, 0), (RHO, 10)), delta_cap=0)
    assert limits.nearest(at(eps=0, rho=5)) == (EPS, 0)
    assert limits.nearest(at(eps=1, rho=500)) == (RHO, 10)
    assert limits.admits(at(eps=0))
    assert not limits.admits(at(eps=1))
    tiny = filter_for(ApproxBudget(Fraction(1, 10**9), Fraction(1, 10**18)), "zcdp-v1")
    assert dict(tiny.caps)[RHO] == 0
    assert tiny.admits(at(rho=0))
    assert not tiny.admits(at(rho=1))


def test_one_gaussian_release_alone_weighs_less_than_on_the_filters_scale() -> None:
    """Alone it may use the whole delta: 0.7600; in a history its half of it."""
    total = total_of([prices.gaussian(rho=Fraction("0.012012"))])
    alone = fixed_figure(APPROX, total)
    shown = figure(APPROX, "combined-v1", total)
    assert round(alone / 10**12, 4) == 0.7600
    truth = oracle.zcdp_epsilon(Fraction("0.012012"), DELTA_1E7 / 2)
    assert truth * 10**12 <= shown <= (truth + 1e-6) * 10**12
    assert alone < shown


def test_a_mechanism_with_more_delta_than_the_budget_weighs_infinitely() -> None:
    loss = prices.declared_pure(eps=Fraction(1, 2), delta=2 * DELTA_1E7)
    total = total_of([loss])
    assert fixed_figure(APPROX, total) == INFINITE
    assert fixed_figure(replace(APPROX, delta=2 * DELTA_1E7), total) == 5 * 10**11


def test_a_limit_is_never_infinite_unless_there_is_none() -> None:
    for budget in (
        PureBudget(Fraction(10**9)),
        ApproxBudget(Fraction(10**9), DELTA_1E7),
        ZcdpBudget(Fraction(10**9)),
        GdpBudget(Fraction(10**9)),
    ):
        assert limit(budget) == INFINITE - 1


def test_adding_and_taking_back_a_release_changes_nothing() -> None:
    limits = filter_for(APPROX, "combined-v1")
    before = total_of([prices.gaussian(rho=Fraction("0.01"))])
    too_much = Loss((INFINITE,) * DELTA + (0,))
    assert limits.admits(before)
    assert not limits.admits(before.plus(too_much))
    assert limits.admits(before.plus(too_much).minus(too_much))
