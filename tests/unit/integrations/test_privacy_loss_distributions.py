"""The adapter to privacy loss distributions, against integrals and direct sums.

The oracle composes with the definition: the delta of one more mechanism is the mean,
over its privacy loss, of the delta that the rest has at what is left of epsilon.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.accounting.amounts import decimal_of, is_infinite
from modicum.accounting.batch_format import Part, merged
from modicum.accounting.conversions.epsilon_delta import curve_epsilon
from modicum.accounting.conversions.moments import renyi_offset
from modicum.accounting.mechanisms import ACCOUNT_KINDS as KINDS
from modicum.accounting.named_mechanisms import complete_values
from modicum.core.errors import Code, InputError, InvariantError
from modicum.integrations.pld import batch, mechanisms
from modicum.integrations.pld.batch import batch_curve, batch_delta, batch_epsilon

Real = Any
Delta = Callable[[Real], Real]

mp.mp.dps = 30
DELTA = Fraction(1, 10**6)


def part(kind: str, times: int = 1, **values: object) -> Part:
    named = {k.replace("_", "-"): Fraction(str(v)) for k, v in values.items()}
    return Part(kind, tuple(complete_values(KINDS[kind], named).items()), times)


# --- the oracle: one direction of a mechanism is its losses, with masses -------------


def of_atoms(atoms: list[tuple[Real, Real]], rest: Delta) -> Delta:
    return lambda eps: mp.fsum(p * rest(eps - loss) for loss, p in atoms)


def nothing(eps: Real) -> Real:
    return max(mp.mpf(0), -mp.expm1(eps))


def response_atoms(truth: Real, values: int) -> list[tuple[Real, Real]]:
    other = (1 - truth) / (values - 1)
    eps = mp.log(truth / other)
    return [(eps, truth), (-eps, other), (mp.mpf(0), (values - 2) * other)]


def discrete_atoms(weight: Callable[[int], Real], shift: int, reach: int) -> list[Any]:
    total = mp.fsum(weight(k) for k in range(-reach, reach + 1))
    return [
        (mp.log(weight(k) / weight(k - shift)), weight(k) / total)
        for k in range(-reach, reach + 1)
    ]


def gaussian_delta(mu: Real) -> Delta:
    return lambda eps: (
        mp.ncdf(mu / 2 - eps / mu) - mp.exp(eps) * mp.ncdf(-mu / 2 - eps / mu)
    )


def of_laplace(e: Real, rest: Delta) -> Delta:
    """Return the delta after Laplace noise of that pure epsilon, and the rest."""

    def density(loss: Real, eps: Real) -> Real:
        return mp.exp((loss - e) / 2) / 4 * rest(eps - loss)

    def at(eps: Real) -> Real:
        kinks = sorted({-e, e, *(k for k in (eps - e, eps, eps + e) if -e < k < e)})
        middle = mp.quad(lambda loss: density(loss, eps), kinks)
        return rest(eps - e) / 2 + mp.exp(-e) / 2 * rest(eps + e) + middle

    return at


def of_step(q: Real, s: Real, *, removed: bool, rest: Delta) -> Delta:
    """Return the delta after a step of DP-SGD and the rest, by integration.

    With the instance the noise is a mixture of N(0, s^2) and N(1, s^2); without, it is
    N(0, s^2) alone.
    """

    def without(x: Real) -> Real:
        return mp.npdf(x, 0, s)

    def with_it(x: Real) -> Real:
        return (1 - q) * mp.npdf(x, 0, s) + q * mp.npdf(x, 1, s)

    def at(eps: Real) -> Real:
        def integrand(x: Real) -> Real:
            loss = mp.log(1 - q + q * mp.exp((2 * x - 1) / (2 * s * s)))
            if removed:
                return with_it(x) * rest(eps - loss)
            return without(x) * rest(eps + loss)

        points = [-9 * s, 0, 1, 3, 5, 9 * s + 1]
        cross = mp.exp(eps if removed else -eps) - 1 + q
        if cross > 0:  # Where the loss is eps, the last step of all has a kink.
            points.append(s * s * mp.log(cross / q) + mp.mpf(1) / 2)
        inside = sorted({x for x in points if points[0] <= x <= 9 * s + 1})
        return mp.quad(integrand, inside)

    return at


def check_epsilon(parts: list[Part], true: list[Delta], delta: Fraction) -> None:
    """Epsilon is never too low, and little too high."""
    found = mp.mpf(decimal_of(batch_epsilon(parts, delta)).__str__())
    exact = mp.mpf(delta.numerator) / delta.denominator
    assert max(d(found) for d in true) <= exact
    below = found * mp.mpf("0.997") - mp.mpf("0.0011")
    assert below <= 0 or max(d(below) for d in true) > exact


# --- against the oracle ---------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 7, 1000])
@pytest.mark.parametrize("delta", [Fraction(1, 10**4), Fraction(1, 10**8)])
def test_gaussian_noise(times: int, delta: Fraction) -> None:
    sigma = 3 * times
    mu = mp.sqrt(times) / sigma
    check_epsilon([part("gaussian", times, sigma=sigma)], [gaussian_delta(mu)], delta)
    one = part("gdp", times, mu=Fraction(1, sigma))
    check_epsilon([one], [gaussian_delta(mu)], delta)


@settings(max_examples=examples(12), deadline=None)
@given(
    st.fractions(Fraction(51, 100), Fraction(95, 100), max_denominator=100),
    st.integers(2, 4),
    st.integers(1, 4),
    st.sampled_from([Fraction(1, 10), Fraction(1, 10**5)]),
)
def test_randomized_response(
    truth: Fraction, values: int, times: int, delta: Fraction
) -> None:
    exact = mp.mpf(truth.numerator) / truth.denominator
    true: Delta = nothing
    for _ in range(times):
        true = of_atoms(response_atoms(exact, values), true)
    one = part("randomized-response", times, truth=truth, values=values)
    check_epsilon([one], [true], delta)
    many = part("randomized-response", truth=truth, values=values, answers=times)
    assert batch_epsilon([one], delta) == batch_epsilon([many], delta)


@settings(max_examples=examples(6), deadline=None)
@given(
    st.fractions(Fraction(1, 20), Fraction(2), max_denominator=20),
    st.sampled_from([Fraction(1, 20), Fraction(1, 10**4)]),
)
def test_pure_mechanisms_are_no_worse_than_two_answers(
    eps: Fraction, delta: Fraction
) -> None:
    e = mp.mpf(eps.numerator) / eps.denominator
    atoms = [(e, 1 / (1 + mp.exp(-e))), (-e, 1 / (1 + mp.exp(e)))]
    true = of_atoms(atoms, of_atoms(atoms, of_atoms(atoms, nothing)))
    check_epsilon([part("pure", 3, eps=eps)], [true], delta)


@settings(max_examples=examples(3), deadline=None)
@given(
    st.fractions(Fraction(1, 5), Fraction(3, 2), max_denominator=20),
    st.sampled_from([Fraction(1, 10), Fraction(1, 10**4)]),
)
def test_laplace_noise(eps: Fraction, delta: Fraction) -> None:
    e = mp.mpf(eps.numerator) / eps.denominator
    true = (
        of_laplace(e, of_laplace(e, nothing))
        if delta < Fraction(1, 20)
        else (of_laplace(e, nothing))
    )
    times = 2 if delta < Fraction(1, 20) else 1
    with mp.workdps(16):
        check_epsilon([part("laplace", times, scale=1 / eps)], [true], delta)


@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize("size", [Fraction(3, 4), Fraction(2)])
def test_discrete_noise(shift: int, size: Fraction) -> None:
    s = mp.mpf(size.numerator) / size.denominator
    with mp.workdps(15):
        laplace = discrete_atoms(lambda k: mp.exp(-abs(k) / s), shift, int(40 * s) + 4)
        normal = discrete_atoms(
            lambda k: mp.exp(-mp.mpf(k * k) / (2 * s * s)), shift, int(13 * s) + 1
        )
        for kind, name, atoms in (
            ("discrete-laplace", "scale", laplace),
            ("discrete-gaussian", "sigma", normal),
        ):
            one = part(kind, 2, sensitivity=shift, **{name: size})
            true = of_atoms(atoms, of_atoms(atoms, nothing))
            check_epsilon([one], [true], Fraction(1, 10**5))


def step_delta(q: Real, s: Real, *, removed: bool) -> Delta:
    """Return the delta of one step: the loss exceeds eps on one side of a point."""

    def without(x: Real) -> Real:
        return mp.ncdf(x / s)

    def with_it(x: Real) -> Real:
        return (1 - q) * mp.ncdf(x / s) + q * mp.ncdf((x - 1) / s)

    def at(eps: Real) -> Real:
        cross = mp.exp(eps if removed else -eps) - 1 + q
        x = s * s * mp.log(cross / q) + mp.mpf(1) / 2 if cross > 0 else -mp.inf
        if removed:
            return (1 - with_it(x)) - mp.exp(eps) * (1 - without(x))
        return without(x) - mp.exp(eps) * with_it(x)

    return at


@pytest.mark.parametrize(
    ("rate", "noise", "steps"),
    [("0.1", "1", 1), ("0.01", "0.7", 1), ("0.5", "2", 1), ("0.1", "1", 2)],
)
def test_steps_on_samples_in_both_directions(rate: str, noise: str, steps: int) -> None:
    q, s = mp.mpf(rate), mp.mpf(noise)
    with mp.workdps(15):
        true = []
        for removed in (True, False):
            last = nothing if steps == 1 else step_delta(q, s, removed=removed)
            true.append(of_step(q, s, removed=removed, rest=last))
        one = part("dp-sgd", sampling_rate=rate, noise_multiplier=noise, steps=steps)
        check_epsilon([one], true, Fraction(1, 1000))


def test_mixed_kinds() -> None:
    atoms = response_atoms(mp.mpf("0.7"), 2)
    mu = mp.mpf("0.5")
    true = of_atoms(atoms, of_atoms(atoms, gaussian_delta(mu)))
    parts = [
        part("gaussian", sigma=2),
        part("randomized-response", 2, truth="0.7"),
    ]
    check_epsilon(parts, [true], DELTA)
    exact = true(mp.mpf(1))
    found = batch_delta(parts, Fraction(1))
    assert exact <= float(found) <= float(exact) * 1.01


# --- the curve of a batch -----------------------------------------------------------


@pytest.mark.parametrize("times", [1, 50])
def test_the_curve_of_gaussian_noise(times: int) -> None:
    sigma = 2 * times
    mu = mp.sqrt(times) / sigma
    parts = [part("gaussian", times, sigma=sigma)]
    delta, true = Fraction(1, 10**5), gaussian_delta(mu)
    curve = batch_curve(parts, delta=Fraction(1, 10**9))
    assert 0 < curve.delta <= Fraction(1, 10**9)
    for order in (Fraction(5, 4), Fraction(2), Fraction(8), Fraction(64)):
        divergence = curve.at(order)
        assert float(divergence) <= float(order) * float(mu) ** 2 / 2 * (1 + 1e-9)
        eps = decimal_of(divergence) + renyi_offset(order, delta - curve.delta)
        assert true(mp.mpf(str(max(eps, 0)))) <= mp.mpf(float(delta))


def test_the_curve_of_steps_beats_the_sum_at_large_orders() -> None:
    steps = part("dp-sgd", sampling_rate="0.01", noise_multiplier=1, steps=1000)
    curve = batch_curve([steps], delta=Fraction(1, 10**9))
    assert curve.at(Fraction(24)) < steps.curve.at(Fraction(24))
    sides = batch.batch_loss((steps,)).sides
    assert len(sides) == 2
    for order in (Fraction(3, 2), Fraction(8), Fraction(64)):
        for side in sides:
            cut = side.cut(1e-9)
            a = float(order)
            direct = np.log((cut.mass * np.exp((a - 1) * cut.losses)).sum()) / (a - 1)
            assert float(curve.at(order)) >= min(direct, float(steps.curve.at(order)))
    fixed = batch_epsilon([steps], DELTA)
    assert curve_epsilon(curve, DELTA).units >= float(fixed) * 1e12


def test_the_curve_is_charged_by_the_ledger() -> None:
    curve = batch_curve([part("laplace", 30, scale=10)])
    loss = curve.loss().coordinates
    assert list(loss[3:-1]) == sorted(loss[3:-1])
    assert loss[-1] > 0
    rho = 30 * float(part("laplace", scale=10).curve.rho)
    assert float(curve.rho) == pytest.approx(rho)


# --- counts, sums and limits --------------------------------------------------------


def test_counts_are_counted() -> None:
    one = part("randomized-response", truth="0.75")
    ten = part("randomized-response", 10, truth="0.75")
    assert merged([one] * 10) == (ten,)
    assert batch_epsilon([one] * 10, DELTA) == batch_epsilon([ten], DELTA)
    assert float(batch_epsilon([ten], DELTA)) > 9 * float(batch_epsilon([one], DELTA))


@settings(max_examples=examples(8), deadline=None)
@given(
    st.sampled_from(["laplace", "gaussian", "discrete-laplace", "exponential"]),
    st.integers(1, 30),
    st.integers(1, 10),
)
def test_more_runs_never_cost_less(kind: str, times: int, size: int) -> None:
    name = {"gaussian": "sigma", "exponential": "eps"}.get(kind, "scale")
    given_ = {name: Fraction(1, size) if kind == "exponential" else size}
    few, more = part(kind, times, **given_), part(kind, times + 1, **given_)
    assert float(batch_epsilon([few], DELTA)) <= float(batch_epsilon([more], DELTA))


def test_what_floats_cannot_resolve_is_infinite() -> None:
    many = part("gaussian", 10**4, sigma=300)
    assert is_infinite(batch_epsilon([many], Fraction(1, 10**18)))
    assert not is_infinite(batch_epsilon([many], Fraction(1, 10**9)))


def test_a_batch_that_reveals_nothing() -> None:
    assert batch_epsilon([part("randomized-response", truth="0.5")], DELTA) == 0
    assert batch_epsilon([], DELTA) == 0
    assert batch_delta([], Fraction(0)) <= Fraction(1, 10**14)


@pytest.mark.parametrize(
    "one",
    [
        part("zcdp", rho="0.1"),
        part("discrete-gaussian", sigma=3, sensitivity="1.5"),
        part("pure", eps=5000),
        part("gaussian", sigma="0.0001"),
    ],
    ids=lambda one: one.kind,
)
def test_what_has_no_distribution_is_refused(one: Part) -> None:
    with pytest.raises(InputError) as caught:
        batch_epsilon([one], DELTA)
    assert caught.value.problems[0].code is Code.NOT_SUPPORTED


def test_a_part_that_lacks_a_parameter_is_refused() -> None:
    whole = Part("dp-sgd", (("noise-multiplier", Fraction(1)),))
    with pytest.raises(InputError, match="sampling-rate"):
        batch_epsilon([whole], DELTA)


@pytest.mark.parametrize("delta", ["0", "1", "-0.1"])
def test_delta_out_of_range(delta: str) -> None:
    with pytest.raises(InputError, match="not between 0 and 1"):
        batch_epsilon([part("pure", eps=1)], Fraction(delta))
    with pytest.raises(InputError, match="negative"):
        batch_delta([part("pure", eps=1)], Fraction(-1))


# --- a library that is missing, or wrong --------------------------------------------


@pytest.fixture
def forgotten() -> None:
    batch.batch_loss.cache_clear()
    mechanisms.loss_of.cache_clear()


@pytest.mark.usefixtures("forgotten")
def test_without_the_library_there_is_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    with pytest.raises(InputError) as caught:
        batch_epsilon([part("pure", eps=1)], DELTA)
    assert "pip install 'modicum[pld]'" in caught.value.problems[0].help


@pytest.mark.usefixtures("forgotten")
def test_a_composition_that_forgets_runs_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = mechanisms.library().PrivacyLossDistribution
    monkeypatch.setattr(library, "self_compose", lambda self, times, tail: self)
    with pytest.raises(InvariantError, match="every run is counted"):
        batch_epsilon([part("gaussian", 10, sigma=5)], DELTA)


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (np.nan, "a mass is a number"),
        (-0.25, "a mass is not below 0"),
        (0.0, "the masses sum to at least 1"),
    ],
)
def test_a_distribution_that_is_none_is_caught(
    spoil: float, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = mechanisms.library()
    right = library.from_laplace_mechanism

    def wrong(*args: Any, **kwargs: Any) -> Any:
        found = right(*args, **kwargs)
        dense = found._pmf_remove.to_dense_pmf()
        dense._probs[-1] = spoil
        return library.PrivacyLossDistribution(dense)

    monkeypatch.setattr(library, "from_laplace_mechanism", wrong)
    with pytest.raises(InvariantError, match=message):
        batch_epsilon([part("laplace", scale=2)], DELTA)
