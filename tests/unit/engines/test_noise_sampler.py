"""The sampler: what it refuses before rows are read, and that it adds as told."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction

import pytest
from budget import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from modicum.core.errors import Code, InputError, InvariantError, UnavailableError
from modicum.engines import noise as module
from modicum.engines.noise import BATCHED_MIN, SCALE_MAX, NoiseSampler, priced
from modicum.query.intervals import gaussian_scale, laplace_scale
from modicum.query.sensitivity import root

SAMPLER = NoiseSampler()
LOSSES = st.fractions(Fraction(1, 10**6), 100)
#: A scale has 20 digits, so it may cost so much less than allowed.
LESS = Fraction(1, 2**17)
#: A root that is rounded up looks so much dearer than it is.
MORE = Fraction(1, 2**38)


class Fake:
    """A measurement that draws and prices as it is told."""

    def __init__(
        self,
        drawn: Sequence[int] = (),
        price: float = 1.0,
        measure: str = "MaxDivergence",
    ) -> None:
        self._drawn, self._price, self.output_measure = drawn, price, f"{measure}()"

    def __call__(self, zeros: list[int]) -> list[int]:
        assert set(zeros) <= {0}
        return list(self._drawn)

    def map(self, moved: float) -> float:
        return self._price * moved


def instead(monkeypatch: pytest.MonkeyPatch, fake: object) -> None:
    monkeypatch.setattr(module, "_measurement", lambda _noise, _scale: fake)


def must_cost(noise: str, scale: Fraction, moved: Fraction, loss: Fraction) -> None:
    """Hold a scale to OpenDP's own price, or to being refused if it is too large."""
    if scale > SCALE_MAX:
        with pytest.raises(InputError, match="too large to be drawn"):
            SAMPLER.check(noise, scale, moved)
        return
    SAMPLER.check(noise, scale, moved)
    found = module._measurement(noise, scale).map(module._moved(noise, moved))
    assert loss * (1 - LESS) <= Fraction(found) <= loss * (1 + MORE)


@settings(max_examples=examples(60), deadline=None)
@example(l1=2**40, eps=Fraction(1, 2**10))
@example(l1=2**40, eps=Fraction(1, 2**10 + 1))
@given(l1=st.integers(1, 2**40), eps=LOSSES)
def test_laplace_noise_costs_what_is_priced(l1: int, eps: Fraction) -> None:
    must_cost("laplace", laplace_scale(l1, eps), Fraction(l1), eps)


@settings(max_examples=examples(60), deadline=None)
@example(squared=2**90, rho=Fraction(1, 2**11))
@example(squared=2**90, rho=Fraction(1, 2**12))
@given(squared=st.integers(1, 2**90), rho=LOSSES)
def test_gaussian_noise_costs_what_is_priced(squared: int, rho: Fraction) -> None:
    must_cost("gaussian", gaussian_scale(squared, rho), Fraction(*root(squared)), rho)


@settings(max_examples=examples(60), deadline=None)
@given(
    noise=st.sampled_from(["gaussian", "laplace"]),
    scale=st.integers(1, 2**20).map(lambda n: Fraction(n, 64)),
    off=st.sampled_from([Fraction(1023, 1024), Fraction(1025, 1024)]),
)
def test_another_scale_than_the_priced_one_is_refused(
    noise: str, scale: Fraction, off: Fraction
) -> None:
    other = module._measurement(noise, scale * off)
    with pytest.MonkeyPatch.context() as patch:
        instead(patch, other)
        with pytest.raises(InputError) as caught:
            SAMPLER.check(noise, scale, Fraction(3))
    assert caught.value.code is Code.ENGINE_FAILED


def test_the_price_is_that_of_the_formulas() -> None:
    assert priced("laplace", Fraction(20), Fraction(5)) == Fraction(1, 4)
    assert priced("gaussian", Fraction(20), Fraction(10)) == Fraction(1, 8)


def test_another_measure_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    instead(monkeypatch, Fake(price=0.5))
    SAMPLER.check("laplace", Fraction(2), Fraction(3))
    instead(monkeypatch, Fake(price=0.5, measure="ZeroConcentratedDivergence"))
    with pytest.raises(InputError, match="prices"):
        SAMPLER.check("laplace", Fraction(2), Fraction(3))
    instead(monkeypatch, Fake(price=float("inf")))
    with pytest.raises(InputError):
        SAMPLER.check("laplace", Fraction(2), Fraction(3))


@pytest.mark.parametrize(
    "scale", [Fraction(0), Fraction(-1), Fraction(1, 3), 1 + Fraction(1, 2**60)]
)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_scales_that_no_float_holds_are_refused(noise: str, scale: Fraction) -> None:
    for act in (
        lambda: SAMPLER.check(noise, scale, Fraction(1)),
        lambda: SAMPLER.add(noise, scale, [1]),
    ):
        with pytest.raises(InputError, match="not a positive float") as caught:
            act()
        assert caught.value.code is Code.DOES_NOT_FIT


def test_noise_that_could_outgrow_its_integers_is_refused() -> None:
    SAMPLER.check("laplace", Fraction(SCALE_MAX), Fraction(1))
    with pytest.raises(InputError, match="too large to be drawn"):
        SAMPLER.check("laplace", Fraction(SCALE_MAX) * 2, Fraction(1))
    with pytest.raises(InputError, match="too large to be drawn"):
        SAMPLER.add("gaussian", Fraction(10) ** 400, [1])


@pytest.mark.parametrize(
    ("noise", "moved"),
    [
        ("laplace", Fraction(1, 2)),
        ("laplace", Fraction(2**63)),
        ("gaussian", Fraction(2) ** 513),
    ],
)
def test_sensitivities_that_are_not_taken(noise: str, moved: Fraction) -> None:
    with pytest.raises(InputError, match="a sensitivity of"):
        SAMPLER.check(noise, Fraction(8), moved)


def test_other_noise_is_a_bug() -> None:
    with pytest.raises(InvariantError):
        SAMPLER.add("uniform", Fraction(8), [1])


# --- adding ---------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_numbers_of_any_size_keep_their_noise(noise: str) -> None:
    values = [0, 2**63 - 1, -(2**63), 10**38, -(10**38)]
    for value, result in zip(
        values, SAMPLER.add(noise, Fraction(1, 2**30), values), strict=True
    ):
        assert result == value  # Noise of so small a scale is 0.
    far = SAMPLER.add(noise, Fraction(2**40), [2**63 - 1] * 40)
    assert any(one > 2**63 for one in far)
    assert any(one < 2**63 for one in far)
    assert all(isinstance(one, int) for one in far)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_each_number_has_a_draw_of_its_own(noise: str) -> None:
    result = SAMPLER.add(noise, Fraction(2**40), [0] * 1000)
    assert len(set(result)) >= 999  # Two are the same once in a million runs.
    assert set(result) != set(SAMPLER.add(noise, Fraction(2**40), [0] * 1000))


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_many_draws_are_made_in_batches_and_few_by_opendp(
    noise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no(*_: object) -> None:
        raise AssertionError

    few, many = [7] * (BATCHED_MIN - 1), [10**30] * BATCHED_MIN
    with monkeypatch.context() as patch:
        patch.setattr(module, "NoiseBatches", no)
        assert len(SAMPLER.add(noise, Fraction(1), few)) == len(few)
        assert SAMPLER.add(noise, Fraction(1), []) == []
    monkeypatch.setattr(module, "opendp_draws", no)
    found = SAMPLER.add(noise, Fraction(2**40), many)
    assert len(set(found)) >= BATCHED_MIN - 1
    assert all(type(one) is int and abs(one - 10**30) < 2**62 for one in found)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_batches_refuse_the_same_scales(noise: str) -> None:
    values = [1] * BATCHED_MIN
    for scale in (
        Fraction(0),
        Fraction(1, 3),
        Fraction(2**50 + 1),
        Fraction(10) ** 400,
    ):
        refused: list[str] = []
        for number in (1, BATCHED_MIN):
            with pytest.raises(InputError) as caught:
                SAMPLER.add(noise, scale, values[:number])
            refused.append(caught.value.render())
        assert refused[0] == refused[1]
    with pytest.raises(InvariantError):
        SAMPLER.add("uniform", Fraction(8), values)


# --- when the library fails -----------------------------------------------------------


@pytest.mark.parametrize("drawn", [[2**63 - 1], [-(2**63)], [], [1, 2]])
def test_what_is_no_draw_is_not_told(
    drawn: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    instead(monkeypatch, Fake(drawn))
    with pytest.raises(UnavailableError) as caught:
        SAMPLER.add("laplace", Fraction(1), [12345])
    assert caught.value.code is Code.ENGINE_FAILED
    assert "12345" not in caught.value.render()


def test_failures_say_nothing_of_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(Fake):
        def __call__(self, zeros: list[int]) -> list[int]:
            message = "31337 of 12345"
            raise RuntimeError(message)

    instead(monkeypatch, Failing())
    with pytest.raises(UnavailableError) as caught:
        SAMPLER.add("laplace", Fraction(1), [12345])
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert "31337" not in caught.value.render()


def test_without_the_library_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(InputError, match="OpenDP") as caught:
        SAMPLER.check("laplace", Fraction(1), Fraction(1))
    assert caught.value.code is Code.NOT_SUPPORTED
    assert "modicum[query]" in caught.value.problems[0].help
