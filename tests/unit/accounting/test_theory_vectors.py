"""The published vectors: numbers computed elsewhere, copied as data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from oracle import accounting as oracle
from samples import prices

from modicum.accounting import ORDERS
from modicum.accounting.conversions.moments import renyi_epsilon, zcdp_epsilon
from modicum.accounting.grid import MU2, RHO, order_index

VECTORS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "golden" / "theory_vectors.json").read_text()
)

Inputs = Mapping[str, Fraction]


def units(value: Fraction) -> int:
    assert (value * 10**12).denominator == 1
    return int(value * 10**12)


def laplace(given: Inputs) -> tuple[int, ...]:
    loss = prices.laplace(sensitivity_l1=given["eps"], scale=Fraction(1))
    return loss.coordinates


def pure(given: Inputs) -> tuple[int, ...]:
    return prices.declared_pure(eps=given["eps"]).coordinates


def gaussian(given: Inputs) -> tuple[int, ...]:
    rho = prices.gaussian_rho(sensitivity_l2=given["sensitivity"], sigma=given["sigma"])
    return prices.gaussian(rho=rho).coordinates


def survey(given: Inputs) -> tuple[int, ...]:
    """The vectors state eps; the truth probability e^eps/(e^eps+k-1) to 48 digits."""
    grown = oracle.MP.exp(oracle.real(given["eps"]))
    truth = oracle.MP.nstr(grown / (grown + int(given["k"]) - 1), 48)
    loss = prices.randomized_response(
        truth=Fraction(truth), values=int(given["k"]), answers=1
    )
    return loss.coordinates


COMPUTED: Mapping[str, Callable[[Inputs], int]] = {
    "rdp_to_eps_cks": lambda v: renyi_epsilon(v["alpha"], units(v["r"]), v["delta"]),
    "zcdp_to_eps_opt": lambda v: zcdp_epsilon(units(v["rho"]), v["delta"]),
    "pure_to_zcdp_tight": lambda v: pure(v)[RHO],
    "laplace_zcdp_tight": lambda v: laplace(v)[RHO],
    "pure_to_rdp_tight": lambda v: pure(v)[order_index(v["alpha"])],
    "laplace_rdp": lambda v: laplace(v)[order_index(v["alpha"])],
    "gaussian_rdp": lambda v: gaussian(v)[order_index(v["alpha"])],
    "krr_rdp": lambda v: survey(v)[order_index(v["alpha"])],
}


def cases(*names: str) -> list[Any]:
    return [
        pytest.param(name, case, id=f"{name}-{number}")
        for name in names
        for number, case in enumerate(VECTORS[name]["cases"])
    ]


def inputs(case: Mapping[str, Any]) -> dict[str, Fraction]:
    return {key: Fraction(value) for key, value in case["in"].items()}


@pytest.mark.parametrize(("name", "case"), cases(*COMPUTED))
def test_the_value_is_the_vector_rounded_up(name: str, case: dict[str, Any]) -> None:
    given = inputs(case)
    truth = Fraction(case["out_str"]) * 10**12
    # The vectors have 20 significant digits, and inputs that were binary floats.
    noise = Fraction(1, 100)
    alpha = given.get("alpha", ORDERS[0])
    if "rdp_to" not in name and alpha not in ORDERS:
        # Off the grid: the curve rises, so its neighbors on the grid enclose it.
        below = max(order for order in ORDERS if order < alpha)
        above = min(order for order in ORDERS if order > alpha)
        compute = COMPUTED[name]
        assert compute({**given, "alpha": below}) <= truth + 1
        assert compute({**given, "alpha": above}) >= truth
        return

    found = COMPUTED[name](given)

    assert truth - noise <= found <= truth + 1 + noise


@pytest.mark.parametrize(("name", "case"), cases("pure_to_gdp"))
def test_mu_squared_is_the_vector_squared_rounded_up(
    name: str, case: dict[str, Any]
) -> None:
    assert name == "pure_to_gdp"
    truth = Fraction(case["out_str"]) ** 2 * 10**12
    found = pure(inputs(case))[MU2]
    assert truth - Fraction(1, 100) <= found <= truth + 1 + Fraction(1, 100)


def test_every_group_that_was_copied_is_tested() -> None:
    assert set(VECTORS) == {*COMPUTED, "pure_to_gdp"}
    assert all(group["cases"] for group in VECTORS.values())
