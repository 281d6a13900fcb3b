"""Samplers of noise, audited from outside; and audits of faults, which must be found.

Few draws are OpenDP's, many are made in batches: both are audited. Nobody can seed the
samplers, so that a sound one may fail here by bad luck: with a probability below one in
a million for all audits of a run together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np
import pytest
from budget import counted, examples, seed
from oracle.noise_laws import drawn, law
from oracle.sampler_audit import (
    Mechanism,
    Outputs,
    Priced,
    binomial_bound,
    loss_found,
    mean_bound,
    rejects,
)

from modicum.engines.noise import BATCHED_MIN, NoiseSampler, opendp_draws, priced
from modicum.query.key_selection import tail

#: How often a sampler is asked about each of two neighbors; half of it is held out.
DRAWS = 100_000
#: How probable it is that anything sound is rejected in a run, at most.
LUCK = 1e-6

Apart = tuple[int, ...]
SCALES: dict[str, Fraction] = {"laplace": Fraction(4), "gaussian": Fraction(4)}


def said(noise: str, apart: Apart, scale: Fraction) -> Priced:
    """Return what neighbors are priced at that are so far apart."""
    if noise == "laplace":
        moved = Fraction(sum(apart))
        return Priced(noise, priced(noise, scale, moved), apart)
    squared = sum(one * one for one in apart)
    return Priced(noise, Fraction(squared) / (2 * scale * scale), apart)


Sampler = Callable[[str, Fraction, int], Iterable[int]]


def batched(noise: str, scale: Fraction, number: int) -> Iterable[int]:
    """Return what answers people who ask for many numbers."""
    assert number >= BATCHED_MIN
    return NoiseSampler().add(noise, scale, [0] * number)


SAMPLERS: tuple[Sampler, ...] = (opendp_draws, batched)


def mechanism_of(sampler: Sampler, noise: str, scale: Fraction) -> Mechanism:
    """Return what answers people."""

    def answer(exact: Apart, number: int) -> Outputs:
        result = list(sampler(noise, scale, number * len(exact)))
        draws = np.array(result, dtype=np.int64).reshape(number, len(exact))
        return around(exact, draws)

    return answer


def stand_in(noise: str, scale: Fraction, rng: np.random.Generator) -> Mechanism:
    """Return a quick sampler of the same law, which can be seeded."""

    def answer(exact: Apart, number: int) -> Outputs:
        draws = drawn(noise, scale, number * len(exact), rng)
        return around(exact, draws.reshape(number, len(exact)))

    return answer


def around(exact: Apart, draws: Outputs) -> Outputs:
    """Return draws around an answer."""
    found: Outputs = draws + np.array(exact, dtype=np.int64)
    return found


CASES = [
    (noise, apart) for noise in ("laplace", "gaussian") for apart in ((4,), (3, 3))
]


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(("noise", "apart"), CASES)
def test_a_sampler_gives_away_no_more_than_is_priced(
    noise: str, apart: Apart, sampler: Sampler
) -> None:
    scale = SCALES[noise]
    draws = max(DRAWS // 4, examples(DRAWS))
    cost = said(noise, apart, scale)
    mechanism = mechanism_of(sampler, noise, scale)
    found = loss_found(mechanism, cost, draws, LUCK / len(CASES) / 4)
    assert found <= cost.loss
    # And the audit sees most of what is there. Of ρ, 25,000 draws show 0.66 with a
    # standard deviation of 0.03, and 100,000 show 0.85; of ε, both show more.
    assert found >= cost.loss * (Fraction(3, 5) if draws >= DRAWS else Fraction(1, 2))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(50)])
def test_draws_follow_the_law_term_by_term(noise: str, scale: Fraction) -> None:
    number = examples(20_000)
    most, chances = law(noise, scale)
    for draws in (
        *(np.array(list(one(noise, scale, number))) for one in SAMPLERS),
        drawn(noise, scale, number, np.random.default_rng(int(seed()))),
    ):
        # At every border, as many lie below as the law says: exact bounds, all at once.
        below = np.cumsum(chances)
        borders = range(-min(most, int(6 * scale) + 3), min(most, int(6 * scale) + 3))
        for border in borders:
            hits = int((draws <= border).sum())
            error = LUCK / 36 / len(borders)
            true = below[border + most]
            assert binomial_bound(hits, number, error, upper=False) <= true + 1e-12
            assert true - 1e-12 <= binomial_bound(hits, number, error, upper=True)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_keys_of_one_id_are_told_as_rarely_as_is_priced(sampler: Sampler) -> None:
    # Fewer draws could not tell the thresholds apart every time.
    scale, threshold, number = Fraction(2), 5, counted(20_000)
    result = sum(1 + one >= threshold for one in sampler("laplace", scale, number))
    chance = float(tail(scale, threshold - 1))
    assert binomial_bound(result, number, LUCK / 100, upper=False) <= chance
    # One that forgets the threshold itself is another by more than the bounds leave.
    less = float(tail(scale, threshold))
    assert binomial_bound(result, number, LUCK / 100, upper=False) > less


# --- faults ---------------------------------------------------------------------------


def _too_little(noise: str, scale: Fraction, rng: np.random.Generator) -> Mechanism:
    return stand_in(noise, scale * Fraction(4, 5), rng)


def _one_too_far(noise: str, scale: Fraction, rng: np.random.Generator) -> Mechanism:
    """A change moves the answer by one more than was thought."""
    sound = stand_in(noise, scale, rng)
    return lambda exact, number: sound(
        tuple(
            one + (place == 0) if any(exact) else 0 for place, one in enumerate(exact)
        ),
        number,
    )


def _wrong_unit(noise: str, scale: Fraction, rng: np.random.Generator) -> Mechanism:
    """The noise hides a day of a person; the price is told for a week."""
    sound = stand_in(noise, scale, rng)
    return lambda exact, number: sound(tuple(7 * one for one in exact), number)


def _drawn_once(noise: str, scale: Fraction, rng: np.random.Generator) -> Mechanism:
    """Both parts of an answer get the same draw."""

    def answer(exact: Apart, number: int) -> Outputs:
        draws = drawn(noise, scale, number, rng)[:, np.newaxis]
        return around(exact, np.repeat(draws, len(exact), axis=1))

    return answer


def _one_sided(noise: str, scale: Fraction, rng: np.random.Generator) -> Mechanism:
    """Noise that is never below 0."""

    def answer(exact: Apart, number: int) -> Outputs:
        draws = np.abs(drawn(noise, scale, number * len(exact), rng))
        return around(exact, draws.reshape(number, len(exact)))

    return answer


Fault = Callable[[str, Fraction, np.random.Generator], Mechanism]
FAULTS: list[tuple[Fault, Apart]] = [
    *(
        (fault, apart)
        for fault in (_too_little, _one_too_far, _wrong_unit, _one_sided)
        for apart in ((4,), (3, 3))
    ),
    (_drawn_once, (3, -3)),
]


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("fault", "apart"), FAULTS)
def test_faults_are_rejected(noise: str, fault: Fault, apart: Apart) -> None:
    rounds = examples(4)
    scale = SCALES[noise]
    found = sum(
        rejects(
            fault(noise, scale, np.random.default_rng((int(seed()), number))),
            said(noise, tuple(map(abs, apart)), scale)
            if fault is not _drawn_once
            else Priced(noise, said(noise, (3, 3), scale).loss, apart),
            DRAWS,
            LUCK / len(CASES) / 2,
        )
        for number in range(rounds)
    )
    assert found >= 0.95 * rounds


@pytest.mark.parametrize(("noise", "apart"), CASES)
def test_sound_noise_passes_every_time(noise: str, apart: Apart) -> None:
    scale = SCALES[noise]
    for number in range(examples(4)):
        rng = np.random.default_rng((int(seed()), number))
        mechanism = stand_in(noise, scale, rng)
        assert not rejects(mechanism, said(noise, apart, scale), DRAWS, LUCK)


def test_bounds_hold_as_often_as_they_say() -> None:
    rng = np.random.default_rng(int(seed()))
    rounds, missed = counted(300), [0, 0]
    possible = np.array([0.0, 1.0])
    for _ in range(rounds):
        values = (rng.random(400) < 0.1).astype(float)
        missed[0] += binomial_bound(int(values.sum()), 400, 0.1, upper=False) > 0.1
        counts = np.array([400 - values.sum(), values.sum()]).astype(np.int64)
        missed[1] += mean_bound(possible, counts, 0.1) > 0.1
    assert 0.02 * rounds <= missed[0] <= 0.15 * rounds
    assert missed[1] <= 0.1 * rounds
