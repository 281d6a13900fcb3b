"""The published filter, when it is proven; and the filters of one theorem each."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from oracle import accounting as oracle
from oracle.accounting import MP, real
from samples import prices

from modicum.accounting import COORDINATES, INFINITE, ORDERS, ApproxBudget, Loss, Total
from modicum.accounting.filters.advanced_composition import AdvancedCompositionFilter
from modicum.accounting.filters.budget import figure, filter_for, limit
from modicum.accounting.filters.coordinates import (
    CoordinateFilter,
    basic_filter,
    gdp_filter,
    renyi_filter,
    zcdp_filter,
)
from modicum.accounting.filters.prototype import (
    PUBLISHED_ORDERS,
    is_proven,
    live_orders,
    mironov_cap,
    wasted_share,
)
from modicum.accounting.grid import DELTA, order_index
from modicum.core.errors import Code, InputError

DELTA_1E7 = Fraction(1, 10**7)
ONE = Fraction(1)
GOLDEN = Path(__file__).parents[2] / "golden" / "theory_vectors_filters.json"
VECTORS: dict[str, Any] = json.loads(GOLDEN.read_text())


def at_orders(**units: int) -> Total:
    """A total that is finite at some orders only: `r8=5` is 5 units at order 8."""
    finite, infinite = [0] * COORDINATES, [1] * COORDINATES
    infinite[DELTA] = 0
    for name, value in units.items():
        index = order_index(Fraction(name[1:]))
        finite[index], infinite[index] = value, 0
    return Total(tuple(finite), tuple(infinite))


# --- as published --------------------------------------------------------------------


def test_the_published_orders_are_the_papers_and_on_the_grid() -> None:
    papers = ["1.5", "1.75", "2", "2.5", "3", "4", "5", "6", "8", "16", "32", "64"]
    assert [Fraction(n) for n in papers] == list(PUBLISHED_ORDERS[:12])
    assert PUBLISHED_ORDERS[12:] == (Fraction(10**6), Fraction(10**10))
    assert set(PUBLISHED_ORDERS) <= set(ORDERS)


def test_the_caps_are_the_published_ones() -> None:
    """B(alpha) = max(0, 3 - ln(1e7)/(alpha - 1)), to the six digits of the paper."""
    caps = dict(filter_for(ApproxBudget(Fraction(3), DELTA_1E7), "as-published").caps)
    shown = {8: 697415, 16: 1925460, 32: 2480061, 64: 2744157, 10**6: 2999984}
    for order, millionths in shown.items():
        assert (caps[order_index(Fraction(order))] + 5 * 10**5) // 10**6 == millionths
    assert len(caps) == 6, "six of the fourteen can ever matter"


@pytest.mark.parametrize(
    ("eps", "live", "share", "proven"),
    [(3, 6, "0.09", True), (20, 12, "0.93", True), (22, 13, "1.23", False)],
)
def test_what_mironovs_conversion_wastes_pays_up_to_about_eps_20(
    eps: int, live: int, share: str, proven: bool
) -> None:
    found = live_orders(PUBLISHED_ORDERS, Fraction(eps), DELTA_1E7)
    assert len(found) == live
    assert f"{wasted_share(found):.2f}" == share
    assert is_proven(found) == proven


@pytest.mark.spec("ACC-13")
@pytest.mark.parametrize(
    ("eps", "delta", "words"),
    [
        ("22", DELTA_1E7, "would need 1.23 times delta"),
        ("10", Fraction(1, 100), "would need 1.62 times delta"),
        ("1e-9", DELTA_1E7, "leaves no Renyi order a budget"),
    ],
)
def test_a_budget_for_which_it_is_not_proven_is_refused(
    eps: str, delta: Fraction, words: str
) -> None:
    with pytest.raises(InputError, match=words) as caught:
        filter_for(ApproxBudget(Fraction(eps), delta), "as-published")
    assert caught.value.code is Code.OUT_OF_RANGE
    assert "or choose" in caught.value.problems[0].help


def test_the_condition_is_decided_on_the_safe_side_of_one() -> None:
    """Two orders whose shares sum to just 1: s falls from 1 to 0 as the order grows."""
    low, high = Fraction(1001, 1000), Fraction(100)
    first = Fraction(11, 10)
    left = 1 - share(first)
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (middle, high) if share(middle) > left else (low, middle)
        low, high = low.limit_denominator(10**30), high.limit_denominator(10**30)
    assert is_proven((first, high + Fraction(1, 10**20)))
    assert not is_proven((first, low - Fraction(1, 10**20)))


def share(order: Fraction) -> Any:
    a = real(order)
    return (a - 1) ** (a - 1) / a**a


def test_the_published_filter_needs_one_order_and_admits_no_delta() -> None:
    budget = ApproxBudget(Fraction(3), DELTA_1E7)
    limits = filter_for(budget, "as-published")
    cap = mironov_cap(Fraction(16), Fraction(3), DELTA_1E7)
    for units in (cap, cap + 1):
        total = at_orders(r16=units)
        assert limits.admits(total) == (units == cap)
        assert (figure(budget, "as-published", total) <= limit(budget)) == (
            units == cap
        )
    own_delta = Loss((0,) * DELTA + (1,))
    assert limits.admits(Total())
    assert not limits.admits(Total().plus(own_delta))
    assert not limits.admits(at_orders(r6=0)), "order 6 is not live"


# --- one theorem each ----------------------------------------------------------------


@pytest.mark.parametrize("case", VECTORS["whitehouse_filter_eps"]["cases"])
def test_the_advanced_filter_spends_what_the_vectors_say(case: dict[str, Any]) -> None:
    losses = [prices.declared_pure(eps=Fraction(text)) for text in case["in"]["eps"]]
    slack = Fraction(case["in"]["delta_slack"])
    truth = MP.mpf(case["out_str"]) * 10**12
    spent = AdvancedCompositionFilter(ONE, slack, Fraction(0))
    for loss in losses:
        spent = spent.after(loss)
    assert truth - MP.mpf("1e-6") <= spent.spent <= truth + 1 + MP.mpf("1e-6")
    at_limit = Fraction(spent.spent, 10**12)
    for eps, held in ((at_limit, True), (at_limit - Fraction(1, 10**12), False)):
        limits = AdvancedCompositionFilter(eps, slack, Fraction(0))
        for loss in losses[:-1]:
            assert limits.admits(loss)
            limits = limits.after(loss)
        assert limits.admits(losses[-1]) == held


def test_the_advanced_filter_has_a_second_limit_for_deltas() -> None:
    loss = prices.declared_pure(eps=Fraction(1, 100), delta=Fraction(1, 10**9))
    limits = AdvancedCompositionFilter(ONE, DELTA_1E7, Fraction(2, 10**9))
    assert limits.after(loss).admits(loss)
    assert not limits.after(loss).after(loss).admits(loss)


def test_the_advanced_filter_never_forgets_a_loss_without_eps() -> None:
    limits = AdvancedCompositionFilter(Fraction(10**7), DELTA_1E7, Fraction(0))
    over = limits.after(prices.gaussian(rho=ONE))
    assert limits.spent == 0
    assert over.spent == INFINITE
    assert not over.admits(prices.declared_pure(eps=Fraction(0)))
    assert "sum eps_i^2 / 2 <= eps" in limits.theorem


FILTERS_BY_THEOREM: list[tuple[CoordinateFilter, Loss, Loss]] = [
    (
        basic_filter(eps=ONE, delta=DELTA_1E7),
        prices.declared_pure(eps=ONE, delta=DELTA_1E7),
        prices.declared_pure(eps=Fraction(1, 10**12)),
    ),
    (
        zcdp_filter(rho=Fraction(1, 2)),
        prices.gaussian(rho=Fraction(1, 2)),
        prices.gaussian(rho=Fraction(1, 10**12)),
    ),
    (
        renyi_filter(order=Fraction(8), limit=ONE),
        prices.gaussian(rho=Fraction(1, 8)),
        prices.gaussian(rho=Fraction(1, 10**12)),
    ),
    (
        gdp_filter(mu=Fraction(3)),
        prices.declared_gdp(mu=Fraction(3)),
        prices.declared_gdp(mu=Fraction(1, 10**6)),
    ),
]


@pytest.mark.parametrize(
    ("limits", "most", "bit"),
    FILTERS_BY_THEOREM,
    ids=lambda value: type(value).__name__,
)
def test_a_filter_of_one_theorem_holds_to_the_last_unit(
    limits: CoordinateFilter, most: Loss, bit: Loss
) -> None:
    assert limits.spent == 0
    assert limits.admits(most)
    full = limits.after(most)
    assert full.holds
    assert full.spent == limits.cap
    assert not full.admits(bit)
    assert not full.after(bit).holds
    nothing_proven = Loss((INFINITE,) * DELTA + (0,))
    assert not limits.admits(nothing_proven)
    assert any(year in limits.theorem for year in ("2016", "2021", "2022", "2023"))


def test_a_delta_beyond_the_limit_is_refused_by_each() -> None:
    for limits, _, _ in FILTERS_BY_THEOREM:
        assert not limits.admits(Loss((0,) * DELTA + (limits.delta_cap + 1,)))
        assert limits.admits(Loss((0,) * DELTA + (limits.delta_cap,)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: basic_filter(eps=Fraction(0)),
        lambda: basic_filter(eps=ONE, delta=ONE),
        lambda: zcdp_filter(rho=ONE, delta=Fraction(-1)),
        lambda: gdp_filter(mu=Fraction(-1)),
        lambda: renyi_filter(order=Fraction(7), limit=ONE),
        lambda: renyi_filter(order=Fraction(8), limit=Fraction(-1)),
        lambda: AdvancedCompositionFilter(Fraction(0), DELTA_1E7, Fraction(0)),
        lambda: AdvancedCompositionFilter(ONE, Fraction(0), Fraction(0)),
        lambda: AdvancedCompositionFilter(ONE, ONE, Fraction(0)),
        lambda: AdvancedCompositionFilter(ONE, DELTA_1E7, Fraction(-1)),
    ],
)
def test_what_is_not_a_limit_is_refused(make: Any) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.code is Code.OUT_OF_RANGE


def test_the_published_cap_is_the_tight_cap_at_the_wasted_share() -> None:
    for order in PUBLISHED_ORDERS:
        s = Fraction(MP.nstr(share(order), 45))
        for eps, delta in ((ONE, DELTA_1E7), (Fraction(17), Fraction(1, 300))):
            tight = oracle.renyi_cap(order, eps, delta * s) * 10**12
            assert abs(mironov_cap(order, eps, delta) + MP.mpf("0.5") - tight) < 1
