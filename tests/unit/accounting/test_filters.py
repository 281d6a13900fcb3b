"""Filters: their constants, their edges, and what a budget admits exactly."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import pytest
from msgspec.structs import replace
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
    refuse_unproven,
)
from modicum.accounting.budgets import RenyiBudget
from modicum.accounting.conversions.moments import renyi_cap, tightest_epsilon, zcdp_cap
from modicum.accounting.conversions.profiles import gaussian_mu2_cap
from modicum.accounting.decimals import loss_units, precise
from modicum.accounting.filters.budget import Shares, figure, fixed_figure, limit
from modicum.accounting.grid import DELTA, EPS, MU2, RHO, order_index
from modicum.accounting.losses import total_of
from modicum.core.errors import Code, InputError

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


SHARED = {name: named for name, named in FILTERS.items() if isinstance(named, Shares)}

# --- constants -----------------------------------------------------------------------


@pytest.mark.spec("ACC-5")
def test_the_filters_are_the_documented_ones() -> None:
    """What stands in a ledger under a name must never change its meaning."""
    found = {
        name: (shares.mechanisms, shares.rho, shares.mu2, dict(shares.orders))
        for name, shares in SHARED.items()
    }
    documented = {
        name: (
            mechanisms,
            rho,
            Fraction(0),
            {Fraction(n): share for n, share in orders.items()},
        )
        for name, (mechanisms, rho, orders) in oracle.SHARES.items()
    }
    orders = {3: 3, 5: 4, 8: 16, 16: 1, 24: 3, 64: 1, 96: 1}
    documented["combined-v2"] = (
        Fraction(1, 4),
        Fraction(11, 64),
        Fraction(1, 8),
        {Fraction(n): Fraction(parts, 64) for n, parts in orders.items()},
    )
    assert found == documented
    assert set(FILTERS) - set(SHARED) == {"as-published"}


@pytest.mark.parametrize("name", sorted(SHARED))
def test_the_shares_of_delta_sum_to_at_most_one(name: str) -> None:
    shares = SHARED[name]
    spent = [shares.mechanisms, shares.rho, shares.mu2]
    spent += [share for _, share in shares.orders]
    assert all(share >= 0 for share in spent)
    assert sum(spent) <= 1


def test_an_unknown_filter_is_an_error() -> None:
    with pytest.raises(KeyError):
        filter_for(APPROX, "combined-v3")


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


def test_the_caps_of_the_measured_filter_use_its_shares() -> None:
    part = DELTA_1E7 / 64
    caps = dict(filter_for(APPROX, "combined-v2").caps)
    assert caps[EPS] == 10**12
    assert caps[RHO] == zcdp_cap(ONE, 11 * part)
    assert caps[MU2] == gaussian_mu2_cap(ONE, 8 * part)
    for order, parts in ((24, 3), (64, 1), (96, 1)):
        index = order_index(Fraction(order))
        assert caps[index] == renyi_cap(Fraction(order), ONE, parts * part)
    assert len(caps) == 6, "the low orders can admit nothing at this delta"


def test_the_caps_of_the_filter_for_planning_use_its_shares() -> None:
    part = DELTA_1E7 / 64
    caps = dict(filter_for(ApproxBudget(Fraction(3), DELTA_1E7), "renyi-v1").caps)
    assert caps.pop(EPS) == 3 * 10**12
    assert caps == {
        order_index(Fraction(order)): renyi_cap(Fraction(order), Fraction(3), n * part)
        for order, n in ((12, 56), (24, 4), (96, 1))
    }, "orders 3 and 6 can admit nothing here"


def test_the_filter_for_planning_refuses_every_delta_of_a_mechanism() -> None:
    limits = filter_for(ApproxBudget(Fraction(3), DELTA_1E7), "renyi-v1")
    assert limits.admits(at(eps=0, delta=0))
    assert not limits.admits(at(eps=0, delta=1))


def test_a_plan_of_samples_gets_more_from_the_filter_for_planning() -> None:
    """The reason why it exists: order 12 has nearly the cap of the whole of delta."""
    budget, order = ApproxBudget(Fraction(3), DELTA_1E7), order_index(Fraction(12))
    whole = renyi_cap(Fraction(12), Fraction(3), DELTA_1E7)
    caps = dict(filter_for(budget, "renyi-v1").caps)
    assert 0.99 * whole < caps[order] < whole


@pytest.mark.parametrize(
    "shares",
    [
        Shares(Fraction(1, 2), Fraction(1, 2), (), Fraction(1, 100)),
        Shares(Fraction(2), Fraction(-1), ()),
        Shares(Fraction(0), Fraction(0), ((Fraction(7), Fraction(1)),)),
    ],
    ids=["too much", "negative", "off the grid"],
)
def test_unsound_shares_are_noticed(shares: Shares) -> None:
    assert not shares.is_sound()
    assert all(named.is_sound() for named in SHARED.values())


@pytest.mark.parametrize(
    ("name", "units"),
    [
        ("combined-v2", 25 * 10**9),
        ("combined-v1", 25 * 10**9),
        ("zcdp-v1", 25 * 10**9),
        ("basic-v1", 10**11),
    ],
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


# --- budgets by Renyi order ----------------------------------------------------------

BY_ORDER = RenyiBudget(
    ((Fraction(8), Fraction("0.5")), (Fraction(32), Fraction("1.2")))
)


def by_order(*, eight: int, thirty_two: int, delta: int = 0) -> Total:
    finite, infinite = [0] * COORDINATES, [1] * COORDINATES
    for order, units in ((8, eight), (32, thirty_two)):
        index = order_index(Fraction(order))
        finite[index], infinite[index] = units, 0
    finite[DELTA], infinite[DELTA] = delta, 0
    return Total(tuple(finite), tuple(infinite))


@pytest.mark.parametrize(
    ("eight", "thirty_two", "admitted"),
    [
        (5 * 10**11, 12 * 10**11, True),
        (5 * 10**11 + 1, 0, False),
        (0, 12 * 10**11 + 1, False),
        (5 * 10**11 + 1, 12 * 10**11 + 1, False),
        (0, 0, True),
    ],
)
def test_every_order_of_a_renyi_budget_must_hold(
    eight: int, thirty_two: int, admitted: bool
) -> None:
    total = by_order(eight=eight, thirty_two=thirty_two)
    limits = filter_for(BY_ORDER, "combined-v1")
    assert limits.admits(total) == admitted
    assert (figure(BY_ORDER, "combined-v1", total) <= limit(BY_ORDER)) == admitted
    assert (fixed_figure(BY_ORDER, total) <= limit(BY_ORDER)) == admitted
    nearest = limits.nearest(total)
    assert nearest is not None
    assert (total.units(nearest[0]) <= nearest[1]) == admitted


def test_a_renyi_budget_is_shown_on_the_order_that_is_filled_most() -> None:
    limits = filter_for(BY_ORDER, "combined-v1")
    total = by_order(eight=4 * 10**11, thirty_two=6 * 10**11)
    assert limits.nearest(total) == (order_index(Fraction(8)), 5 * 10**11)
    assert figure(BY_ORDER, "combined-v1", total) == 96 * 10**10, "0.4/0.5 of 1.2"


def test_a_renyi_budget_admits_no_delta_and_nothing_unproven() -> None:
    limits = filter_for(BY_ORDER, "basic-v1")
    assert not limits.admits(by_order(eight=0, thirty_two=0, delta=1))
    assert not limits.admits(by_order(eight=0, thirty_two=INFINITE))
    assert fixed_figure(BY_ORDER, by_order(eight=0, thirty_two=0, delta=1)) == INFINITE


@pytest.mark.parametrize("limits", [(), ((Fraction(7), ONE),)], ids=["none", "off"])
def test_a_renyi_budget_needs_orders_of_the_grid(
    limits: tuple[tuple[Fraction, Fraction], ...],
) -> None:
    for use in (lambda b: filter_for(b, "basic-v1"), limit):
        with pytest.raises(InputError, match="orders that the ledger stores") as caught:
            use(RenyiBudget(limits))
        assert caught.value.code is Code.OUT_OF_RANGE
        assert "1.25, 1.5" in caught.value.problems[0].help


def test_a_limit_of_less_than_a_unit_admits_only_nothing() -> None:
    tiny = RenyiBudget(((Fraction(8), Fraction(1, 10**13)),))
    assert filter_for(tiny, "basic-v1").admits(by_order(eight=0, thirty_two=5))
    assert figure(tiny, "basic-v1", by_order(eight=0, thirty_two=5)) == limit(tiny) == 0
    assert not filter_for(tiny, "basic-v1").admits(by_order(eight=1, thirty_two=5))
    assert figure(tiny, "basic-v1", by_order(eight=1, thirty_two=5)) > limit(tiny)


# --- mistakes that others made -------------------------------------------------------


@pytest.mark.parametrize("name", sorted(SHARED))
def test_pitfall_4_the_best_order_after_the_fact_admits_more_than_a_filter(
    name: str,
) -> None:
    """At the whole delta the history seems to fit; nobody paid for the choice."""
    total = total_of([prices.laplace(sensitivity_l1=ONE, scale=Fraction(50))] * 90)
    seen = tightest_epsilon(total, DELTA_1E7)
    budget = ApproxBudget(Fraction(seen.units, 10**12), DELTA_1E7)
    assert seen.method != "pure"
    assert not filter_for(budget, name).admits(total)
    assert figure(budget, name, total) > limit(budget) == seen.units


def test_pitfall_5_one_sum_for_two_cells_must_hold_at_one_coordinate() -> None:
    """Two cells may each hold at their own; their maximum need not, and is refused."""
    limits = filter_for(APPROX, "combined-v2")
    pure, gaussian = at(eps=10**12), at(rho=dict(limits.caps)[RHO])
    joint = Total(
        tuple(map(max, pure.finite, gaussian.finite)),
        tuple(map(max, pure.infinite, gaussian.infinite)),
    )
    assert limits.admits(pure)
    assert limits.admits(gaussian)
    assert not limits.admits(joint)


def test_pitfall_16_nothing_proven_times_nothing_asked_is_not_zero() -> None:
    for name in FILTERS:
        limits = filter_for(APPROX, name)
        assert not limits.admits(at()), name
        assert figure(APPROX, name, at()) == INFINITE
    with pytest.raises(InvalidOperation):
        precise(loss_units)(Decimal("NaN"))


def test_pitfall_17_a_million_losses_below_a_unit_are_not_nothing() -> None:
    loss = prices.gaussian(rho=Fraction(1, 10**15))
    assert loss.coordinates[RHO] == 1
    finite = tuple(0 if c == INFINITE else 10**6 * c for c in loss.coordinates)
    infinite = tuple(10**6 if c == INFINITE else 0 for c in loss.coordinates)
    budget = ZcdpBudget(Fraction(10**6 - 1, 10**12))
    assert not filter_for(budget, "basic-v1").admits(Total(finite, infinite))


@pytest.mark.parametrize("name", sorted(SHARED))
def test_pitfall_18_mechanisms_and_conversions_share_one_delta(name: str) -> None:
    shares = SHARED[name]
    converted = shares.rho + shares.mu2 + sum(share for _, share in shares.orders)
    for delta in (DELTA_1E7, Fraction(7, 10**18), Fraction(1, 3)):
        cap = filter_for(ApproxBudget(ONE, delta), name).delta_cap
        assert Fraction(cap, 10**18) + converted * delta <= delta
    certain = Loss((0,) * DELTA + (10**18,))
    total = total_of([certain, certain])
    assert not filter_for(ApproxBudget(ONE, Fraction(99, 100)), name).admits(total)


@pytest.mark.parametrize("name", FILTERS)
def test_what_is_refused_without_caps_is_what_has_none(name: str) -> None:
    """At the extremes of budgets, nothing is left for a decision to refuse."""

    def mistake(function: Callable[[Budget, str], object], budget: Budget) -> str:
        try:
            function(budget, name)
        except InputError as error:
            return str(error)
        return ""

    for eps in (Fraction(1, 10**18), Fraction(1), Fraction(10**6), Fraction(10**30)):
        for delta in (Fraction(1, 10**40), Fraction(1, 2), 1 - Fraction(1, 10**18)):
            budget = ApproxBudget(eps, delta)
            assert mistake(refuse_unproven, budget) == mistake(filter_for, budget)
