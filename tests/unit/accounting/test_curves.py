"""Single mechanisms: the ends of each curve, and the oracle's own formulas."""

from __future__ import annotations

from fractions import Fraction

import pytest
from oracle import accounting as oracle
from oracle.accounting import MP, real
from samples import prices

from modicum.accounting import COORDINATES, INFINITE, ORDERS, Loss
from modicum.accounting.amounts import INFINITY, Amount
from modicum.accounting.curves import Curve
from modicum.accounting.grid import DELTA, EPS, FIRST_ORDER, MU2, RHO
from modicum.core.rationals import LOSS_UNIT

ONE = Fraction(1)


# --- the best of several bounds ---------------------------------------------------


@pytest.mark.parametrize(
    ("eps", "rho", "mu2", "renyi", "least"),
    [
        ("0.5", 9, 9, 9, "0.5"),
        (9, "0.25", 9, 9, "0.5"),
        (9, 9, "0.5", 9, "0.5"),
        (9, 9, 9, "0.5", "0.5"),
        (INFINITY, INFINITY, 1, INFINITY, 1),
        (INFINITY, INFINITY, INFINITY, "0.5", "0.5"),
    ],
)
def test_the_divergence_is_the_least_of_all_bounds(
    eps: Amount, rho: Amount, mu2: Amount, renyi: Amount, least: str
) -> None:
    """At order 2: eps, 2 rho, mu**2, and the curve's own bound."""
    eps, rho, mu2, own = (
        one if one is INFINITY else Fraction(one) for one in (eps, rho, mu2, renyi)
    )
    curve = Curve(eps, rho, mu2, lambda _: own)
    assert curve.at(Fraction(2)) == Fraction(least)
    place = FIRST_ORDER + ORDERS.index(Fraction(2))
    pure = INFINITE if eps is INFINITY else int(eps * LOSS_UNIT)
    assert curve.loss().coordinates[place] == min(Fraction(least) * LOSS_UNIT, pure)


# --- the oracle itself -----------------------------------------------------------


@pytest.mark.parametrize("eps", [Fraction(1, 10), ONE, Fraction(5, 2)])
@pytest.mark.parametrize("alpha", [Fraction(5, 4), Fraction(2), Fraction(8)])
def test_the_laplace_formula_is_the_integral(eps: Fraction, alpha: Fraction) -> None:
    shift = real(eps)
    found = oracle.renyi_by_integration(
        lambda x: MP.exp(-abs(x)) / 2,
        lambda x: MP.exp(-abs(x - shift)) / 2,
        alpha,
        [-MP.inf, 0, shift, MP.inf],
    )
    assert abs(found - oracle.laplace_renyi(eps, alpha)) < 1e-18


@pytest.mark.parametrize("alpha", [Fraction(5, 4), Fraction(2), Fraction(8)])
def test_the_gaussian_formula_is_the_integral(alpha: Fraction) -> None:
    """Sensitivity 1, sigma 2: rho = 1/8, and alpha * rho at each order."""
    found = oracle.renyi_by_integration(
        lambda x: MP.npdf(x, 0, 2),
        lambda x: MP.npdf(x, 1, 2),
        alpha,
        [-60, -20, 0, 20, 60],
    )
    assert abs(found - real(alpha) / 8) < 1e-18


@pytest.mark.parametrize("eps", [Fraction(1, 100), ONE, Fraction(20)])
def test_the_gaussian_of_a_pure_mechanism_hides_as_much(eps: Fraction) -> None:
    """At mu = 2 PhiInv(e^eps/(1+e^eps)) the Gaussian's error rates pass through
    the corner of the eps-DP ones, so mu is sound, and no smaller mu is."""
    mu = MP.sqrt(oracle.pure_mu2(eps))
    corner = 1 / (1 + MP.exp(real(eps)))
    assert abs(oracle.normal_tail(mu / 2) - corner) < corner * MP.mpf(10) ** -40


# --- ends --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loss",
    [
        prices.laplace(sensitivity_l1=Fraction(0), scale=ONE),
        prices.gaussian(rho=Fraction(0)),
        prices.randomized_response(truth=Fraction(1, 2), values=2, answers=9),
        prices.randomized_response(truth=Fraction(1, 3), values=3, answers=1),
    ],
)
def test_a_mechanism_that_reveals_nothing_costs_nothing(loss: Loss) -> None:
    assert loss.coordinates == (0,) * COORDINATES


@pytest.mark.parametrize(
    "loss",
    [
        prices.laplace(sensitivity_l1=Fraction(1, 10**40), scale=ONE),
        prices.declared_pure(eps=Fraction(1, 10**40)),
        prices.gaussian(rho=Fraction(1, 10**60)),
        prices.declared_gdp(mu=Fraction(1, 10**60)),
    ],
)
@pytest.mark.spec("ACC-2")
def test_a_mechanism_that_reveals_anything_costs_something(loss: Loss) -> None:
    """Losses round up: what is greater than 0 is at least one unit."""
    assert all(units >= 1 for units in loss.coordinates[:DELTA])


def test_several_answers_are_summed_before_they_are_rounded() -> None:
    """mu2 is rounded once, like every other coordinate."""
    truth = Fraction(1, 2) + Fraction(1, 10**9)
    loss = prices.randomized_response(truth=truth, values=2, answers=1000)
    eps = MP.log(real(truth) / real(1 - truth))
    exact = 1000 * oracle.pure_mu2(Fraction(str(MP.nstr(eps, 45)))) * 10**12
    assert exact <= loss.coordinates[MU2] <= exact + 1


@pytest.mark.parametrize("eps", [10**7, 10**7 + 1, 5 * 10**6, 10**20, 10**300])
def test_what_does_not_fit_is_infinite_and_never_wraps(eps: int) -> None:
    for loss in (
        prices.laplace(sensitivity_l1=Fraction(eps), scale=ONE),
        prices.declared_pure(eps=Fraction(eps)),
        prices.gaussian(rho=Fraction(eps)),
        prices.declared_zcdp(rho=Fraction(eps)),
        prices.declared_gdp(mu=Fraction(eps)),
    ):
        assert set(loss.coordinates[:DELTA]) == {INFINITE}
        assert loss.coordinates[DELTA] == 0


def test_the_smooth_formulas_meet_the_limit_where_they_are_cut() -> None:
    """On both sides of eps = 1e7 everything but mu2 is eps, up to its own size."""
    small = Fraction(46, 10)  # 4.6 million and the cap: largest that is stored
    loss = prices.declared_pure(eps=small * 10**6).coordinates
    assert loss[EPS] == 46 * 10**17
    assert loss[RHO] == 46 * 10**17
    assert loss[MU2] == INFINITE


@pytest.mark.spec("ACC-4")
def test_an_infinite_coordinate_stands_where_nothing_is_proven() -> None:
    gaussian = prices.gaussian(rho=ONE).coordinates
    zcdp = prices.declared_zcdp(rho=ONE).coordinates
    gdp = prices.declared_gdp(mu=ONE).coordinates
    assert [gaussian[EPS], zcdp[EPS], gdp[EPS]] == [INFINITE] * 3
    assert [gaussian[MU2], zcdp[MU2], gdp[MU2]] == [2 * 10**12, INFINITE, 10**12]


def test_noise_twice_as_wide_costs_less_everywhere() -> None:
    narrow = prices.laplace(sensitivity_l1=ONE, scale=ONE).coordinates
    wide = prices.laplace(sensitivity_l1=ONE, scale=Fraction(2)).coordinates
    assert all(w < n for w, n in zip(wide[:DELTA], narrow[:DELTA], strict=True))


def test_laplace_costs_less_than_what_is_only_known_to_be_as_private() -> None:
    laplace = prices.laplace(sensitivity_l1=ONE, scale=ONE).coordinates
    pure = prices.declared_pure(eps=ONE).coordinates
    assert laplace[EPS] == pure[EPS]
    assert all(a < b for a, b in zip(laplace[3:15], pure[3:15], strict=True))
    assert laplace[RHO] < pure[RHO]


@pytest.mark.spec("ACC-4")
def test_delta_is_kept_apart_and_rounded_up() -> None:
    third = Fraction(1, 3 * 10**17)
    with_delta = prices.declared_pure(eps=ONE, delta=third).coordinates
    assert with_delta[:DELTA] == prices.declared_pure(eps=ONE).coordinates[:DELTA]
    assert with_delta[DELTA] == 4


def test_answers_add_up_before_rounding() -> None:
    one = prices.randomized_response(truth=Fraction(3, 4), values=2, answers=1)
    ten = prices.randomized_response(truth=Fraction(3, 4), values=2, answers=10)
    assert one.coordinates[EPS] == 1_098_612_288_669  # ln 3
    assert ten.coordinates[EPS] == 10_986_122_886_682
    assert len(ten.coordinates[FIRST_ORDER:DELTA]) == len(ORDERS)
