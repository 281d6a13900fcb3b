"""Discrete noise, selection, sparse vector and votes: vectors, ends and mistakes."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from oracle import mechanisms as oracle
from oracle.accounting import MP, kl_discrete, real
from oracle.mechanisms import value

from modicum.accounting import COORDINATES, INFINITE
from modicum.accounting.amounts import INFINITY, Amount
from modicum.accounting.curves import Curve
from modicum.accounting.grid import DELTA, EPS, FIRST_ORDER, MU2, RHO
from modicum.accounting.mechanisms import (
    declared_pure,
    declared_renyi,
    discrete_gaussian,
    discrete_laplace,
    exponential,
    gaussian,
    laplace,
    pate_data_dependent,
    pate_gnmax,
    report_noisy_max,
    sparse_vector,
    sparse_vector_one_threshold,
)
from modicum.accounting.mechanisms.pate_data_dependent import pate_gnmax_data_dependent
from modicum.core.errors import Code, InputError

ONE = Fraction(1)
HALF = Fraction(1, 2)

VECTORS: dict[str, dict[str, Any]] = json.loads(
    (
        Path(__file__).parents[2] / "golden" / "theory_vectors_mechanisms.json"
    ).read_text()
)

Inputs = Mapping[str, Fraction]


def mechanism_eps(given: Inputs) -> Amount:
    return exponential(eps=given["eps"]).rho


def sparse_one(given: Inputs) -> Amount:
    curve = sparse_vector(
        eps_threshold=given["eps1"], eps_queries=given["eps2"], positives=1
    )
    return curve.at(given["alpha"])


def vote(given: Inputs) -> Amount:
    return pate_gnmax(sigma=given["sigma"]).at(given["alpha"])


def agreed_vote(given: Inputs) -> Amount:
    return pate_gnmax_data_dependent(
        q=given["q"], sigma=given["sigma"], order=given["alpha"]
    )


COMPUTED: Mapping[str, Callable[[Inputs], Amount]] = {
    "bounded_range_zcdp": mechanism_eps,
    "svt_rdp_bound": sparse_one,
    "gnmax_rdp": vote,
    "gnmax_rdp_data_dependent": agreed_vote,
}


@pytest.mark.parametrize(
    ("name", "case"),
    [(name, case) for name in COMPUTED for case in VECTORS[name]["cases"]],
)
def test_the_value_is_the_vector(name: str, case: dict[str, Any]) -> None:
    given = {k: Fraction(str(v)) for k, v in case["in"].items() if k != "applied"}
    found, truth = Fraction(COMPUTED[name](given)), Fraction(case["out_str"])
    assert abs(found - truth) <= truth / 10**9
    assert found >= truth * (1 - Fraction(1, 10**17)), "the vectors have 20 digits"


# --- discrete noise -----------------------------------------------------------


def test_one_step_of_discrete_laplace_is_randomized_response() -> None:
    """Its noise tells only whether the outcome is left of the step or right of it."""
    for scale in (Fraction(1, 3), ONE, Fraction(20)):
        noise = discrete_laplace(sensitivity_l1=1, scale=scale).loss()
        assert noise == declared_pure(eps=1 / scale).loss()


def test_fine_discrete_laplace_is_laplace() -> None:
    """A thousand billion steps for the sensitivity, far below a ledger unit."""
    steps = 10**12
    fine = discrete_laplace(sensitivity_l1=steps, scale=Fraction(steps)).loss()
    smooth = laplace(sensitivity_l1=ONE, scale=ONE).loss()
    pairs = zip(fine.coordinates, smooth.coordinates, strict=True)
    assert all(abs(a - b) <= 1 for a, b in pairs)


def test_coarse_discrete_laplace_costs_more_than_laplace() -> None:
    """The formula of continuous noise would understate it."""
    noise = discrete_laplace(sensitivity_l1=1, scale=ONE)
    assert noise.at(Fraction(2)) > laplace(sensitivity_l1=ONE, scale=ONE).at(
        Fraction(2)
    )


@pytest.mark.parametrize("scale", [Fraction(10**30), Fraction(10**100, 3)])
def test_wide_discrete_laplace_keeps_its_digits(scale: Fraction) -> None:
    """1 - exp(-1/scale) has lost 30, or 100, digits that must be paid for."""
    shift = 3 * int(scale)
    fine = discrete_laplace(sensitivity_l1=shift, scale=scale)
    smooth = laplace(sensitivity_l1=Fraction(shift), scale=scale)
    for order in (Fraction(1001, 1000), Fraction(2), Fraction(64)):
        assert abs(value(fine.at(order)) - value(smooth.at(order))) < MP.mpf(10) ** -29
    assert abs(value(fine.rho) - value(smooth.rho)) < MP.mpf(10) ** -29


@pytest.mark.parametrize(
    ("shift", "scale"), [(10**8, ONE), (1, Fraction(10**600)), (10**400, ONE)]
)
def test_discrete_laplace_beyond_its_digits_is_charged_as_pure(
    shift: int, scale: Fraction
) -> None:
    noise = discrete_laplace(sensitivity_l1=shift, scale=scale)
    assert noise.loss() == declared_pure(eps=shift / scale).loss()


def test_discrete_gaussian_is_not_known_to_be_gaussian_dp() -> None:
    discrete = discrete_gaussian(sensitivity_l2=ONE, sigma=Fraction(2)).loss()
    smooth = gaussian(rho=Fraction(1, 8)).loss()
    assert discrete.coordinates[MU2] == INFINITE
    assert smooth.coordinates[MU2] < INFINITE
    for index in (EPS, RHO, *range(FIRST_ORDER, COORDINATES)):
        assert discrete.coordinates[index] == smooth.coordinates[index]


# --- selection ----------------------------------------------------------------


def test_bounded_range_is_worth_a_factor_of_four() -> None:
    eps = Fraction(1, 100)
    ratio = value(declared_pure(eps=eps).rho) / value(exponential(eps=eps).rho)
    assert MP.mpf("3.99") < ratio < 4


def test_a_large_eps_takes_the_rho_of_pure_eps() -> None:
    """From about 8 on, eps**2/8 is the larger one."""
    assert exponential(eps=Fraction(7)).rho == Fraction(49, 8)
    assert exponential(eps=Fraction(9)).rho < Fraction(9)


@pytest.mark.parametrize("eps", [Fraction(1, 10**12), Fraction(99, 10**14)])
def test_the_curve_of_a_tiny_eps_meets_its_limit(eps: Fraction) -> None:
    for order in (Fraction(5, 4), Fraction(64)):
        limit = order * eps * eps / 8
        found = value(exponential(eps=eps).at(order))
        assert abs(found - real(limit)) < MP.mpf(10) ** -30


def test_permute_and_flip_has_no_bounded_range() -> None:
    """Its price as an exponential mechanism would be less than half the truth."""
    even, apart = [ONE, ONE], [Fraction(2), Fraction(0)]
    p = oracle.permute_and_flip(even, ONE)
    q = oracle.permute_and_flip(apart, ONE)
    truth = kl_discrete(p, q)
    assert truth > 2 * value(exponential(eps=ONE).rho)
    assert truth <= value(report_noisy_max(eps=ONE, noise="exponential").rho)


def test_only_gumbel_noise_is_the_exponential_mechanism() -> None:
    pure = declared_pure(eps=ONE).loss()
    assert report_noisy_max(eps=ONE, noise="gumbel").loss() == (
        exponential(eps=ONE).loss()
    )
    assert report_noisy_max(eps=ONE, noise="laplace").loss() == pure
    assert report_noisy_max(eps=ONE, noise="exponential").loss() == pure


# --- the sparse vector technique ----------------------------------------------


def test_every_positive_is_charged() -> None:
    one = sparse_vector(eps_threshold=HALF, eps_queries=HALF, positives=1)
    ten = sparse_vector(eps_threshold=HALF, eps_queries=HALF, positives=10)
    assert ten.eps == 10 * one.eps == 10
    for order in (Fraction(5, 4), Fraction(8)):
        assert abs(value(ten.at(order)) - 10 * value(one.at(order))) < 1e-40


def test_one_threshold_for_all_is_pure_only() -> None:
    curve = sparse_vector_one_threshold(eps_threshold=HALF, eps_queries=HALF)
    assert curve.loss() == declared_pure(eps=ONE).loss()


def test_a_costly_threshold_makes_the_stagewise_bound_the_better_one() -> None:
    curve = sparse_vector(
        eps_threshold=Fraction(4), eps_queries=Fraction(1, 100), positives=1
    )
    pure = declared_pure(eps=Fraction(401, 100))
    assert curve.at(Fraction(2)) < pure.at(Fraction(2))


# --- votes --------------------------------------------------------------------


def test_a_vote_moves_two_counts() -> None:
    curve = pate_gnmax(sigma=Fraction(40))
    assert (curve.rho, curve.mu2) == (Fraction(1, 1600), Fraction(2, 1600))
    assert curve.eps == INFINITY


def test_pitfall_24_a_bound_by_the_votes_can_never_enter_a_ledger() -> None:
    """It depends on private votes: a number without a curve cannot be charged."""
    found = pate_gnmax_data_dependent(q=HALF, sigma=ONE, order=Fraction(2))
    assert isinstance(found, Decimal)
    assert not hasattr(found, "loss")
    for name, function in inspect.getmembers(pate_data_dependent, inspect.isfunction):
        if function.__module__ == pate_data_dependent.__name__:
            assert inspect.signature(function).return_annotation == "Decimal", name
    assert not hasattr(pate_data_dependent, "Curve")
    assert "never" in (pate_data_dependent.__doc__ or "")


@pytest.mark.parametrize(
    ("q", "order"),
    [
        (ONE, Fraction(2)),  # The winner may be anyone.
        (Fraction(999, 1000), Fraction(2)),  # An order of the theorem is below 1.
        (Fraction(1, 10), Fraction(10**6)),  # The order asked for is too large.
        (HALF, Fraction(2)),  # q is too large for the theorem.
    ],
)
def test_votes_that_are_not_agreed_cost_what_any_votes_cost(
    q: Fraction, order: Fraction
) -> None:
    sigma = Fraction(3)
    found = pate_gnmax_data_dependent(q=q, sigma=sigma, order=order)
    assert abs(Fraction(found) - order / sigma**2) < order / 10**50


def test_votes_that_are_certain_cost_nothing() -> None:
    found = pate_gnmax_data_dependent(q=Fraction(0), sigma=ONE, order=Fraction(2))
    assert found == 0


# --- declared divergences -----------------------------------------------------


def test_divergences_alone_imply_no_other_measure() -> None:
    curve = declared_renyi({Fraction(2): HALF, Fraction(8): Fraction(3, 2)})
    assert (curve.eps, curve.rho, curve.mu2) == (INFINITY, INFINITY, INFINITY)
    assert curve.at(Fraction(9)) == INFINITY
    assert curve.at(Fraction(8)) == Fraction(3, 2)


def test_divergences_with_eps_are_at_most_those_of_pure_eps() -> None:
    curve = declared_renyi({Fraction(2): Fraction(1, 10)}, eps=ONE)
    pure = declared_pure(eps=ONE)
    assert curve.at(Fraction(2)) == Fraction(1, 10)
    assert curve.at(Fraction(64)) == pure.at(Fraction(64))
    assert (curve.eps, curve.rho, curve.mu2) == (pure.eps, pure.rho, pure.mu2)


def test_a_divergence_bounds_all_lower_orders() -> None:
    curve = declared_renyi({Fraction(2): ONE, Fraction(8): HALF})
    assert curve.at(Fraction(2)) == HALF


# --- ends and mistakes --------------------------------------------------------


@pytest.mark.parametrize(
    "curve",
    [
        discrete_laplace(sensitivity_l1=0, scale=ONE),
        discrete_gaussian(sensitivity_l2=Fraction(0), sigma=ONE),
        exponential(eps=Fraction(0)),
        report_noisy_max(eps=Fraction(0), noise="gumbel"),
        report_noisy_max(eps=Fraction(0), noise="laplace"),
        declared_renyi({Fraction(2): Fraction(0)}, eps=Fraction(0)),
    ],
)
def test_what_reveals_nothing_costs_nothing(curve: Curve) -> None:
    assert curve.loss().coordinates == (0,) * COORDINATES


@pytest.mark.parametrize(
    "curve",
    [
        discrete_laplace(sensitivity_l1=1, scale=Fraction(10**40)),
        exponential(eps=Fraction(1, 10**40)),
        sparse_vector(
            eps_threshold=Fraction(1, 10**40),
            eps_queries=Fraction(1, 10**40),
            positives=1,
        ),
        pate_gnmax(sigma=Fraction(10**40)),
    ],
)
def test_what_reveals_anything_costs_something(curve: Curve) -> None:
    assert all(units >= 1 for units in curve.loss().coordinates[:DELTA])


@pytest.mark.parametrize("eps", [10**7, 10**7 + 1, 10**300])
def test_what_does_not_fit_is_infinite(eps: int) -> None:
    for curve in (
        discrete_laplace(sensitivity_l1=eps, scale=ONE),
        exponential(eps=Fraction(eps)),
        report_noisy_max(eps=Fraction(eps), noise="laplace"),
        sparse_vector(eps_threshold=Fraction(eps), eps_queries=ONE, positives=1),
        pate_gnmax(sigma=Fraction(1, eps)),
    ):
        assert set(curve.loss().coordinates[:DELTA]) == {INFINITE}


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: discrete_laplace(sensitivity_l1=-1, scale=ONE), "-1"),
        (lambda: discrete_laplace(sensitivity_l1=1, scale=Fraction(0)), "scale is 0"),
        (lambda: discrete_gaussian(sensitivity_l2=-ONE, sigma=ONE), "-1"),
        (lambda: discrete_gaussian(sensitivity_l2=ONE, sigma=-HALF), "-1/2"),
        (lambda: exponential(eps=-HALF), "-1/2"),
        (lambda: report_noisy_max(eps=-HALF, noise="laplace"), "-1/2"),
        (
            lambda: sparse_vector(eps_threshold=ONE, eps_queries=ONE, positives=0),
            "positives is 0",
        ),
        (
            lambda: sparse_vector_one_threshold(
                eps_threshold=Fraction(0), eps_queries=ONE
            ),
            "threshold is 0",
        ),
        (lambda: pate_gnmax(sigma=Fraction(0)), "sigma is 0"),
        (
            lambda: pate_gnmax_data_dependent(
                q=Fraction(2), sigma=ONE, order=Fraction(2)
            ),
            "q is 2",
        ),
        (
            lambda: pate_gnmax_data_dependent(q=HALF, sigma=ONE, order=ONE),
            "order is 1",
        ),
        (lambda: declared_renyi({}), "empty"),
        (lambda: declared_renyi({ONE: ONE}), "order is 1"),
        (lambda: declared_renyi({Fraction(2): -ONE}), "divergence is -1"),
        (lambda: declared_renyi({Fraction(2): ONE}, eps=-ONE), "eps is -1"),
    ],
)
def test_what_makes_no_sense_is_a_mistake_that_names_the_value(
    call: Callable[[], object], named: str
) -> None:
    with pytest.raises(InputError, match=named) as caught:
        call()
    assert caught.value.code is Code.OUT_OF_RANGE
    assert caught.value.problems[0].help


def test_noise_of_an_unknown_kind_is_a_mistake() -> None:
    with pytest.raises(InputError, match="'cauchy'") as caught:
        report_noisy_max(eps=ONE, noise="cauchy")  # type: ignore[arg-type]
    assert caught.value.code is Code.UNKNOWN_CHOICE
