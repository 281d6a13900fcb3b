"""What a release is charged: computed, declared, or refused; against mpmath."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from modicum.accounting import INFINITE, ORDERS, Loss
from modicum.accounting.grid import DELTA, EPS, FIRST_ORDER, MU2, RHO
from modicum.core.document import from_python
from modicum.core.errors import Code, InputError, Problem
from modicum.release import Label, Vocabulary, parse_release, price

ONE_UNIT = Vocabulary(frozenset({"age"}), {}, ("user",), "add-remove")
TWO_UNITS = Vocabulary(
    frozenset({"age"}),
    {"ml": Label(("none", "black-box"), "none")},
    ("user", "day"),
    "add-remove",
)
UNIT = 10**12


def losses(
    vocabulary: Vocabulary = ONE_UNIT, /, **mechanism: object
) -> dict[str, Loss]:
    described = {"attributes": ["age"], **mechanism}
    node = from_python({"release": "r-1", "mechanisms": [described]})
    (priced,) = price(parse_release(node, vocabulary), vocabulary).mechanisms
    return dict(priced.losses)


def loss(**mechanism: object) -> tuple[int, ...]:
    return losses(ONE_UNIT, **mechanism)["user"].coordinates


def problems(
    vocabulary: Vocabulary = ONE_UNIT, /, **mechanism: object
) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        losses(vocabulary, **mechanism)
    return list(caught.value.problems)


def up(value: Any) -> int:
    """Return a loss in ledger units, rounded up."""
    return int(mpmath.ceil(value * UNIT))


def real(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


def gaussian(l2: object, sigma: object, **more: object) -> dict[str, object]:
    return {
        "mechanism": "gaussian",
        "sensitivity": {"user": {"l2": l2}},
        "sigma": sigma,
        **more,
    }


def laplace(l1: object, scale: object, **more: object) -> dict[str, object]:
    return {
        "mechanism": "laplace",
        "sensitivity": {"user": {"l1": l1}},
        "scale": scale,
        **more,
    }


def response(truth: object, bound: object = 1, **more: object) -> dict[str, object]:
    return {
        "mechanism": "randomized-response",
        "truth": truth,
        "contribution_bound": {"user": bound},
        "public_frame": True,
        **more,
    }


def declared(cost: object, **more: object) -> dict[str, object]:
    return {"mechanism": "declared", "cost": {"user": cost}, **more}


sizes = st.fractions(min_value=Fraction(1, 50), max_value=50, max_denominator=1000)


# --- computed from parameters ---


def concentrated(rho: Fraction) -> list[int]:
    """Return rho, mu2 and the Renyi divergences of exact Gaussian noise."""
    exact = [rho, 2 * rho, *(rho * order for order in ORDERS)]
    return [min(math.ceil(value * UNIT), INFINITE) for value in exact]


@settings(max_examples=60)
@given(sizes, sizes)
def test_gaussian_noise_costs_its_exact_rho(l2: Fraction, sigma: Fraction) -> None:
    found = loss(**gaussian(l2, sigma))
    assert list(found[RHO:DELTA]) == concentrated(l2**2 / (2 * sigma**2))
    assert found[EPS] == INFINITE
    assert found[DELTA] == 0


@settings(max_examples=40)
@given(sizes, sizes)
def test_laplace_noise_costs_its_curve(l1: Fraction, scale: Fraction) -> None:
    assume(l1 / scale <= 50)  # Beyond, 100 digits are not enough to round up.
    with mpmath.workdps(100):
        found = loss(**laplace(l1, scale))
        eps = real(l1 / scale)
        assert found[EPS] == -(-l1 * UNIT // scale)
        assert found[RHO] == up(eps + mpmath.exp(-eps) - 1)
        for index, order in enumerate(ORDERS, FIRST_ORDER):
            a = real(order)
            first = mpmath.exp((a - 1) * eps) * a / (2 * a - 1)
            second = mpmath.exp(-a * eps) * (a - 1) / (2 * a - 1)
            rdp = min(mpmath.log(first + second) / (a - 1), eps)
            assert found[index] == up(rdp)
        assert found[DELTA] == 0


@settings(max_examples=40)
@given(
    st.fractions(min_value=Fraction(51, 100), max_value=Fraction(99, 100)),
    st.integers(2, 6),
    st.integers(1, 9),
)
def test_randomized_response_costs_as_often_as_one_instance_answers(
    truth: Fraction, values: int, answers: int
) -> None:
    with mpmath.workdps(50):
        found = loss(**response(truth, answers, values=values))
        p, q = real(truth), real((1 - truth) / (values - 1))
        assert found[EPS] == up(answers * mpmath.log(p / q))
        for index, order in enumerate(ORDERS, FIRST_ORDER):
            if order > 200:
                continue
            a = real(order)
            moment = p**a * q ** (1 - a) + q**a * p ** (1 - a) + (values - 2) * q
            assert found[index] == up(answers * mpmath.log(moment) / (a - 1))
        assert found[DELTA] == 0


def test_two_values_are_what_is_meant_if_none_are_given() -> None:
    assert loss(**response(0.75)) == loss(**response(0.75, values=2))
    assert loss(**response(0.75)) != loss(**response(0.75, values=3))


# --- declared ---


def test_a_declared_pure_guarantee_has_the_curve_of_every_pure_mechanism() -> None:
    with mpmath.workdps(50):
        found = loss(**declared({"eps": 1}))
        assert found[EPS] == UNIT
        assert found[RHO] == up(mpmath.tanh(mpmath.mpf(1) / 2))
        assert found[MU2] < INFINITE
        assert found[DELTA] == 0
    with_delta = loss(**declared({"eps": 1, "delta": 1e-9}))
    assert with_delta[:DELTA] == found[:DELTA]
    assert with_delta[DELTA] == 10**9


def test_a_declared_rho_has_no_mu_unless_the_noise_is_gaussian() -> None:
    found = loss(**declared({"rho": 0.25}))
    assert (found[EPS], found[RHO], found[MU2]) == (INFINITE, UNIT // 4, INFINITE)
    noise = loss(mechanism="gaussian", cost={"user": {"rho": 0.25}})
    assert (noise[EPS], noise[RHO], noise[MU2]) == (INFINITE, UNIT // 4, UNIT // 2)
    assert noise[FIRST_ORDER:] == found[FIRST_ORDER:]


def test_a_declared_mu_has_the_curve_of_gaussian_noise() -> None:
    found = loss(**declared({"mu": 0.5}))
    assert (found[EPS], found[RHO], found[MU2]) == (INFINITE, UNIT // 8, UNIT // 4)
    assert found == loss(**gaussian(1, 2))


@pytest.mark.parametrize(
    "delta", ["1e-18", "1e-19", "1e-400", "0.999999999999999999999"]
)
def test_the_delta_of_a_cost_is_rounded_up(delta: str) -> None:
    found = loss(**declared({"eps": 1, "delta": Decimal(delta)}))
    assert found[DELTA] == math.ceil(Fraction(delta) * 10**18) >= 1


# --- declared beside computed ---

BESIDE = [
    # A mechanism, the measure of its cost, and the cost that its parameters imply.
    (gaussian(1, 10), "rho", Fraction(1, 200)),
    (gaussian(3, 2), "rho", Fraction(9, 8)),
    (laplace(1, 2), "eps", Fraction(1, 2)),
    (laplace(1, 3), "eps", Fraction(1, 3)),
]


@pytest.mark.spec("REL-4")
@pytest.mark.parametrize(("mechanism", "measure", "computed"), BESIDE)
def test_a_cost_below_the_computed_one_is_an_error(
    mechanism: dict[str, object], measure: str, computed: Fraction
) -> None:
    for less in (Fraction(1, UNIT), Fraction(1, 10**6), computed / 2):
        cost = {"user": {measure: computed - less}}
        (problem,) = problems(**mechanism, cost=cost)
        assert problem.code is Code.COST_TOO_LOW
        assert "`user`" in problem.message
        assert measure in problem.message


@pytest.mark.spec("REL-4")
@pytest.mark.parametrize(("mechanism", "measure", "computed"), BESIDE)
def test_a_cost_at_or_above_the_computed_one_is_charged(
    mechanism: dict[str, object], measure: str, computed: Fraction
) -> None:
    alone = loss(**mechanism)
    kind = "gaussian" if measure == "rho" else "declared"
    for more in (Fraction(0), Fraction(1, UNIT), Fraction(1)):
        cost = {"user": {measure: computed + more}}
        charged = loss(**mechanism, cost=cost)
        stated = loss(mechanism=kind, cost=cost)
        assert charged == tuple(map(max, alone, stated))
        index = RHO if measure == "rho" else EPS
        assert charged[index] == stated[index] >= alone[index]


@pytest.mark.spec("REL-4")
def test_a_cost_beside_randomized_response() -> None:
    alone = loss(**response(0.75, 2))
    eps = Fraction(alone[EPS], UNIT)
    (problem,) = problems(
        **response(0.75, 2), cost={"user": {"eps": eps - Fraction(1, UNIT)}}
    )
    assert problem.code is Code.COST_TOO_LOW
    for more in (Fraction(0), Fraction(1)):
        cost = {"user": {"eps": eps + more}}
        stated = loss(**declared(cost["user"]))
        charged = loss(**response(0.75, 2), cost=cost)
        assert charged == tuple(map(max, alone, stated))
        assert charged[EPS] == stated[EPS]


@pytest.mark.spec("REL-4")
@pytest.mark.parametrize("answers", [1, 2, 3, 4, 5, 9, 100])
def test_the_computed_cost_that_a_message_shows_would_be_accepted(answers: int) -> None:
    (problem,) = problems(**response(0.75, answers), cost={"user": {"eps": 0.001}})
    shown = Fraction(problem.message.rsplit(" ", 1)[1])
    assert loss(**response(0.75, answers), cost={"user": {"eps": shown}})


@pytest.mark.parametrize(
    ("mechanism", "cost"),
    [
        (gaussian(1, 10), {"eps": 9, "delta": 0.1}),
        (gaussian(1, 10), {"mu": 9}),
        (gaussian(1, 10), {"eps": 9}),
        (laplace(1, 2), {"rho": 9}),
        (laplace(1, 2), {"eps": 9, "delta": 0.1}),
        (laplace(1, 2), {"mu": 9}),
        (response(0.75), {"rho": 9}),
    ],
)
def test_a_cost_in_another_measure_beside_parameters_is_refused(
    mechanism: dict[str, object], cost: dict[str, object]
) -> None:
    (problem,) = problems(**mechanism, cost={"user": cost})
    assert problem.code is Code.NOT_SUPPORTED


def test_gaussian_noise_is_never_declared_pure() -> None:
    (problem,) = problems(mechanism="gaussian", cost={"user": {"eps": 1}})
    assert problem.code is Code.COST_TOO_LOW
    assert loss(mechanism="gaussian", cost={"user": {"eps": 1, "delta": 0.1}})
    assert loss(mechanism="laplace", cost={"user": {"eps": 1}})


# --- units ---


@pytest.mark.spec("REL-3")
@pytest.mark.parametrize(
    ("mechanism", "wanted"),
    [
        (gaussian(1, 10), "`sigma` and `sensitivity: {day: {l2: …}}`"),
        (laplace(1, 2), "`scale` and `sensitivity: {day: {l1: …}}`"),
        (response(0.75), "`truth` and `contribution_bound: {day: …}`"),
        (declared({"rho": 1}), "`cost: {day: …}`"),
    ],
)
def test_a_unit_without_a_cost_is_an_error(
    mechanism: dict[str, object], wanted: str
) -> None:
    (problem,) = problems(TWO_UNITS, **mechanism)
    assert problem.code is Code.COST_MISSING
    assert "mechanism `mechanism-1`" in problem.message
    assert "`day`" in problem.message
    assert wanted in problem.help


@pytest.mark.spec("REL-3")
@pytest.mark.parametrize(
    "mechanism",
    [
        {"mechanism": "declared"},
        {"mechanism": "gaussian"},
        {"mechanism": "gaussian", "sensitivity": {"user": {"l2": 1}}},
        {"mechanism": "randomized-response", "truth": 0.75},
    ],
)
def test_what_no_price_follows_from_needs_a_cost(mechanism: dict[str, object]) -> None:
    found = problems(TWO_UNITS, **mechanism)
    assert [problem.code for problem in found] == [Code.COST_MISSING] * 2


@pytest.mark.parametrize(
    ("mechanism", "missing"),
    [
        ({"mechanism": "gaussian", "sigma": 1}, "sensitivity"),
        ({"mechanism": "laplace", "scale": 1}, "sensitivity"),
        ({"mechanism": "randomized-response", "values": 3}, "truth"),
        ({"mechanism": "randomized-response", "public_frame": True}, "truth"),
        (
            {"mechanism": "randomized-response", "contribution_bound": {"user": 1}},
            "truth",
        ),
    ],
)
def test_a_parameter_that_would_be_ignored_is_an_error(
    mechanism: dict[str, object], missing: str
) -> None:
    cost = {unit: {"rho": 9} for unit in TWO_UNITS.units}
    for described in (mechanism, {**mechanism, "cost": cost}):
        (problem,) = problems(TWO_UNITS, **described)
        assert problem.code is Code.MISSING_KEY
        assert f"without `{missing}`" in problem.message


@pytest.mark.spec("REL-3")
def test_every_unit_has_a_price_of_its_own() -> None:
    found = losses(
        TWO_UNITS,
        mechanism="gaussian",
        sigma=10,
        sensitivity={"user": {"l2": 3}, "day": {"l2": 1}},
    )
    assert found["user"].coordinates == loss(**gaussian(3, 10))
    assert found["day"].coordinates == loss(**gaussian(1, 10))
    mixed = losses(
        TWO_UNITS,
        mechanism="gaussian",
        sigma=10,
        sensitivity={"day": {"l2": 1}},
        cost={"user": {"rho": 0.5}},
    )
    assert mixed["user"].coordinates[RHO] == UNIT // 2
    assert mixed["day"].coordinates == loss(**gaussian(1, 10))


# --- randomized response under add and remove ---


def test_randomized_response_without_a_public_frame_has_no_proven_price() -> None:
    for frame in ({}, {"public_frame": False}):
        described = {k: v for k, v in response(0.75).items() if k != "public_frame"}
        (problem,) = problems(**described, **frame)
        assert problem.code is Code.COST_NOT_DERIVABLE
        assert "public_frame: true" in problem.help


def test_the_remedy_without_a_public_frame_works() -> None:
    """The message says: else declare a `cost`. Whoever does that is done."""
    described = {k: v for k, v in response(0.75).items() if k != "public_frame"}
    assert loss(**described, cost={"user": {"eps": 2}}) == loss(**declared({"eps": 2}))


def test_randomized_response_with_a_cost_only_is_what_is_declared() -> None:
    found = loss(mechanism="randomized-response", cost={"user": {"eps": 2}})
    assert found == loss(**declared({"eps": 2}))


@pytest.mark.parametrize(
    ("truth", "values"), [(0.49, 2), (0.3, 3), (Fraction(1, 5), 4), (0.0000001, 10**6)]
)
def test_a_truth_below_chance_is_refused(truth: object, values: int) -> None:
    (problem,) = problems(**response(truth, values=values))
    assert problem.code is Code.OUT_OF_RANGE
    assert f"1/{values}" in problem.message


@pytest.mark.parametrize(("truth", "values"), [(0.5, 2), (Fraction(1, 3), 3)])
def test_a_truth_of_pure_chance_costs_nothing(truth: object, values: int) -> None:
    assert set(loss(**response(truth, values=values))) <= {0, 1}


# --- extremes ---


@pytest.mark.parametrize("size", ["1e-400", "1e-30", "1e30", "1e400"])
@pytest.mark.parametrize("measure", ["eps", "rho", "mu"])
def test_no_size_is_too_large_or_small_to_be_priced(size: str, measure: str) -> None:
    found = loss(**declared({measure: Decimal(size)}))
    assert all(0 <= coordinate <= INFINITE for coordinate in found)
    assert found[RHO] >= 1  # Never rounded down to nothing.


# --- noise on whole numbers --------------------------------------------------------


def test_discrete_noise_costs_its_own_curve() -> None:
    """Two-sided geometric noise leaks a little less than Laplace at every order."""
    discrete = loss(
        mechanism="discrete-laplace", scale=2, sensitivity={"user": {"l1": 3}}
    )
    laplace = loss(mechanism="laplace", scale=2, sensitivity={"user": {"l1": 3}})
    assert discrete[EPS] == laplace[EPS] == 3 * UNIT // 2
    step = mpmath.exp(mpmath.mpf(-1) / 2)

    def mass(k: int) -> Any:
        return (1 - step) / (1 + step) * step ** abs(k)

    for index, order in enumerate(ORDERS[:8], FIRST_ORDER):
        a = real(order)
        mean = mpmath.fsum(
            mass(k) ** a * mass(k - 3) ** (1 - a) for k in range(-400, 400)
        )
        truth = mpmath.log(mean) / (a - 1)
        assert truth * UNIT - mpmath.mpf("1e-3") <= discrete[index]
        assert discrete[index] <= truth * UNIT * (1 + mpmath.mpf("1e-9")) + 1


def test_discrete_gaussian_noise_has_the_rho_but_not_the_mu_of_gaussian_noise() -> None:
    given = {"sigma": 2, "sensitivity": {"user": {"l2": 1}}}
    discrete = loss(mechanism="discrete-gaussian", **given)
    gaussian = loss(mechanism="gaussian", **given)
    assert discrete[RHO] == gaussian[RHO] == UNIT // 8
    assert discrete[FIRST_ORDER:DELTA] == gaussian[FIRST_ORDER:DELTA]
    assert discrete[MU2] == discrete[EPS] == INFINITE


def test_the_sensitivity_of_discrete_laplace_noise_is_a_whole_number() -> None:
    (problem,) = problems(
        mechanism="discrete-laplace", scale=2, sensitivity={"user": {"l1": 1.5}}
    )
    assert problem.code is Code.OUT_OF_RANGE
    assert "1.5" in problem.message


def test_discrete_gaussian_noise_is_never_declared_pure() -> None:
    (problem,) = problems(mechanism="discrete-gaussian", cost={"user": {"eps": 1}})
    assert problem.code is Code.COST_TOO_LOW
