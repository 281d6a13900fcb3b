"""Noise in batches: bounds against mpmath, and all that few random digits can yield.

With a source that serves digits from a list, a trial is a tree of digits. So its exact
probabilities are counted, up to those of the lists that were not followed further.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from budget import examples
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from oracle.accounting import MP, Real, real

from modicum.core.errors import InvariantError
from modicum.engines import noise_batches as module
from modicum.engines import noise_cells
from modicum.engines.noise_batches import DRAW_MAX, NoiseBatches
from modicum.engines.noise_cells import borders, cell, cell_table

#: Probabilities next to 1 differ from their digits only behind the 60th.
FINE: Any = mpmath.MPContext()
FINE.dps = 150

NOISES = st.sampled_from(["gaussian", "laplace"])
#: Scales of cells, as they occur: any below 128.
CELL_SCALES = st.one_of(st.fractions(Fraction(1, 10**6), 1), st.fractions(1, 127)).map(
    lambda one: Fraction(float(one))
)


def weight(noise: str, scale: Fraction, size: int) -> Real:
    """Return f of a size: in proportion to its probability."""
    if noise == "laplace":
        return MP.exp(-size / real(scale))
    return MP.exp(-(MP.mpf(size) ** 2) / (2 * real(scale) ** 2))


@cache
def summed(noise: str, scale: Fraction) -> list[Real]:
    """Return the sums of f below 0, 1, 2, ..., until nothing is left."""
    sums = [MP.mpf(0)]
    while (more := weight(noise, scale, len(sums) - 1)) > MP.mpf(10) ** -60:
        sums.append(sums[-1] + more)
    return sums


def digits_of(number: Real, bits: int) -> int:
    """Return the first binary digits of a number below 1."""
    return int(number * 2**bits)


# --- cells ----------------------------------------------------------------------------


@settings(max_examples=examples(40), deadline=None)
@example("laplace", Fraction(1, 2**1074), 32)
@example("gaussian", Fraction(1, 2**1074), 8)
@example("gaussian", Fraction(127), 32)
@example("laplace", Fraction(127), 32)
@given(NOISES, CELL_SCALES, st.sampled_from([1, 2, 5, 8, 32, 64, 128]))
def test_borders_are_around_the_truth(noise: str, scale: Fraction, bits: int) -> None:
    low, high = borders(noise, scale, bits)
    sums = summed(noise, scale)
    for place, (least, most) in enumerate(zip(low, high, strict=True), start=1):
        # Beyond what the oracle sums, nothing is left.
        truth = sums[min(place, len(sums) - 1)] / sums[-1] * 2**bits
        assert least <= truth < most + 1
        assert most - least <= 1
    assert low == sorted(low)
    assert high == sorted(high)
    # Nothing is certain to be in the tail, and hardly anything is in it.
    assert low[-1] >= 2**bits - 1
    tail = 1 - sums[min(len(low), len(sums) - 1)] / sums[-1]
    assert tail < MP.mpf(2) ** -(bits + 1)


@settings(max_examples=examples(40), deadline=None)
@given(NOISES, st.fractions(1, 8), st.integers(8, 32))
def test_borders_hold_whatever_is_rounded(
    noise: str, scale: Fraction, bits: int
) -> None:
    sums = summed(noise, scale)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise_cells, "_GUARD", 12)
        low, high = borders.__wrapped__(noise, scale, bits)
    assert low != high, "so much is rounded that it shows"
    for place, (least, most) in enumerate(zip(low, high, strict=True), start=1):
        assert least <= sums[place] / sums[-1] * 2**bits < most + 1


@settings(max_examples=examples(40), deadline=None)
@given(NOISES, CELL_SCALES, st.integers(1, 10))
def test_cells_are_those_of_the_digits(noise: str, scale: Fraction, bits: int) -> None:
    scale = min(scale, Fraction(20))
    words = np.arange(2**bits)
    found, unknown = cell_table(noise, scale, bits).cells(words)
    sums = summed(noise, scale)
    ends = [one / sums[-1] * 2**bits for one in sums[1:]]
    for word in words.tolist():
        first, last = bisect_right(ends, word), bisect_left(ends, word + 1)
        one = cell(noise, scale, word, bits)
        if one is None:
            assert word in unknown
        else:
            assert word not in unknown
            assert first == last == one == found[word]
    # Only digits beside a border are left open: itself, or a unit next to it.
    beside = {int(end) + off for end in ends for off in (-1, 0, 1)}
    assert set(unknown.tolist()) <= beside


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(100)])
def test_looking_up_is_searching(noise: str, scale: Fraction) -> None:
    table = cell_table(noise, scale, 32)
    rng = np.random.default_rng(1)
    near = np.concatenate([table.low[:, np.newaxis] + np.arange(-2, 3)]).ravel()
    words = np.concatenate([near, rng.integers(0, 2**32, examples(2000))])
    words = words[(words >= 0) & (words < 2**32)]
    found, unknown = table.cells(words)
    open_ = set(unknown.tolist())
    for place, word in enumerate(words.tolist()):
        one = cell(noise, scale, word, 32)
        assert (one is None) == (place in open_)
        assert one in {None, found[place]}
    assert open_, "borders are among them"


# --- digits on demand -----------------------------------------------------------------


class Served:
    """A source of the given numbers, each of as many bytes as are asked for."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.left = list(numbers)

    def __call__(self, size: int) -> bytes:
        if not self.left:
            raise IndexError
        return self.left.pop(0).to_bytes(size, "little")


def on_the_way(number: Real, bits: int, lists: int, off: int) -> list[int]:
    """Return a number's digits in lists of so many, moved by units of the last."""
    whole = digits_of(number, bits * lists) + off
    return [whole >> bits * (lists - 1 - one) & (2**bits - 1) for one in range(lists)]


def as_number(words: Sequence[int]) -> Real:
    """Return the number below 1 that has these digits, 32 in each list."""
    return MP.fsum(MP.mpf(one) / 2 ** (32 * n) for n, one in enumerate(words, start=1))


@settings(max_examples=examples(60), deadline=None)
@given(NOISES, CELL_SCALES, st.data())
def test_slivers_around_borders_are_decided_by_more_digits(
    noise: str, scale: Fraction, data: st.DataObject
) -> None:
    batches = NoiseBatches(noise, scale)
    low, high = borders(noise, scale, 32)
    place = data.draw(st.integers(1, len(low)))
    sums = summed(noise, scale)
    end = sums[min(place, len(sums) - 1)] / sums[-1]
    assume(end < 1)
    # Two or four times the digits; -1 and 0 are below the border, 1 is above it.
    lists, off = data.draw(st.sampled_from([2, 4])), data.draw(st.sampled_from([-1, 1]))
    words = on_the_way(end, 32, lists, off)
    assume(low[place - 1] <= words[0] <= high[place - 1])
    truth = bisect_right(sums, as_number(words) * sums[-1]) - 1
    # If these do not decide either, the next ones are 0.
    source = batches._random = Served([*words, *[0] * 12])
    assert batches._drawn_cells(1).tolist() == [truth]
    assert len(source.left) <= 12, "all digits up to the border were needed"


@settings(max_examples=examples(150), deadline=None)
@example("gaussian", Fraction(2**50), 900, 2**44 - 1)
@example("laplace", Fraction(2**50), 0, 2**44 - 1)
@example("gaussian", Fraction(2**50), 0, 1)
@example("gaussian", Fraction(128), 10**5, 1)
@given(
    noise=NOISES,
    scale=st.one_of(
        st.integers(128, 2**50), st.floats(128, 2**50), st.floats(128, 2000)
    ).map(Fraction),
    cell=st.one_of(st.integers(0, 1000), st.integers(0, 2**17)),
    place=st.integers(0, 2**44),
)
def test_trials_count_by_their_exact_probability(
    noise: str, scale: Fraction, cell: int, place: int
) -> None:
    batches = NoiseBatches(noise, scale)
    place %= 2**batches._width_bits
    start = cell * 2**batches._width_bits
    e: Fraction = place / scale
    if noise == "gaussian":
        e = ((start + place) ** 2 - start**2) / (2 * scale**2)
    chance = FINE.exp(-FINE.mpf(e.numerator) / e.denominator)
    # U is the probability itself in so many lists of digits, or some units beside it.
    for lists, off in product((1, 2, 4), (-3, -1, 0, 1, 3)):
        words = on_the_way(chance, 32, lists, off)
        if not 0 <= words[0] < 2**32:
            continue
        batches._random = Served([*words, *[0] * 12])
        (counts,) = batches._accepted(np.array([cell]), np.array([place]))
        assert counts == (as_number(words) < chance)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("scale", [Fraction(128), Fraction(2**50)])
def test_floats_decide_nearly_always(noise: str, scale: Fraction) -> None:
    batches = NoiseBatches(noise, scale)
    rows = examples(40_000)
    asked = Counter[int]()
    decided = batches._decided

    def noted(word: int, decide: Any) -> Any:
        asked[word] += 1
        return decided(word, decide)

    batches._decided = noted  # type: ignore[method-assign]
    assert len(batches.trials(rows)) > 0.98 * rows
    assert sum(asked.values()) <= 20 + rows / 2000


# --- all that can happen --------------------------------------------------------------


def outcomes(
    batches: NoiseBatches, bits: int, least: Fraction
) -> tuple[dict[int | None, Fraction], Fraction]:
    """Return the least probability of each outcome of a trial, and what is not known.

    Args:
        batches: The sampler.
        bits: Digits of the numbers that it asks for; some may have fewer.
        least: Lists of digits that are rarer than this are not followed further.
    """
    found: dict[int | None, Fraction] = {}
    unknown = Fraction(0)
    lists: list[tuple[Fraction, tuple[int, ...]]] = [(Fraction(1), ())]
    while lists:
        chance, numbers = lists.pop()
        batches._random = Served(numbers)
        try:
            ends = batches.trials(1).tolist()
        except IndexError:
            if chance < least:
                unknown += chance
            else:
                one = chance / 2**bits
                lists += [(one, (*numbers, n)) for n in range(2**bits)]
        else:
            end = ends[0] if ends else None
            found[end] = found.get(end, Fraction(0)) + chance
    return found, unknown


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize(
    ("scale", "cells", "bits"),
    [
        (Fraction(1, 2), 64, 1),
        (Fraction(1, 2), 64, 3),
        (Fraction(3), 64, 2),
        (Fraction(5, 2), 1, 2),  # Cells of 2.
        (Fraction(4), 1, 3),  # Cells of 4.
        (Fraction(7), 2, 2),
    ],
)
def test_trials_have_exactly_their_probabilities(
    noise: str, scale: Fraction, cells: int, bits: int
) -> None:
    batches = NoiseBatches(noise, scale, bits=bits, cells=cells)
    width = 2**batches._width_bits
    assert (width > 1) == (cells < 64)
    words = max(bits, batches._width_bits + 1)
    found, unknown = outcomes(batches, words, Fraction(1, 2**12))
    assert unknown < Fraction(1, 4)
    total = summed(noise, scale / width)[-1] * 2 * width
    for x in range(-100, 101):
        truth = weight(noise, scale, abs(x)) / total
        least = real(found.get(x, Fraction(0)))
        # Both ways: no outcome is too frequent, and what it lacks is not known yet.
        assert least <= truth + MP.mpf(10) ** -40
        assert truth - MP.mpf(10) ** -40 <= least + real(unknown)
    assert sum(found.values()) + unknown == 1


def test_faults_are_found_by_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials that always count have other probabilities than these."""
    everything = lambda self, cells, _: np.ones(len(cells), np.bool_)  # noqa: E731
    monkeypatch.setattr(NoiseBatches, "_accepted", everything)
    with pytest.raises(AssertionError):
        test_trials_have_exactly_their_probabilities("laplace", Fraction(5, 2), 1, 2)


# --- draws ----------------------------------------------------------------------------


def drawn(batches: NoiseBatches, number: int) -> Iterator[int]:
    for batch in batches.draws(number):
        yield from batch


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_draws_are_as_many_as_asked_for(
    noise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_A_TIME", 7)
    for number in (0, 1, 7, 8, 100):
        batches = list(NoiseBatches(noise, Fraction(1, 8)).draws(number))
        assert sum(map(len, batches)) == number
        assert all(len(batch) <= 7 for batch in batches), "a run may be interrupted"
        assert all(type(one) is int for batch in batches for one in batch)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("scale", [Fraction(1, 2**1074), Fraction(1, 2**30)])
def test_tiny_noise_is_0(noise: str, scale: Fraction) -> None:
    assert set(drawn(NoiseBatches(noise, scale), 5000)) == {0}


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_largest_noise_fits(noise: str) -> None:
    found = list(drawn(NoiseBatches(noise, Fraction(2**50)), 5000))
    assert 2**49 < max(map(abs, found)) < DRAW_MAX
    assert min(found) < 0 < max(found)


def test_digits_come_from_the_system() -> None:
    assert NoiseBatches("laplace", Fraction(1))._random is os.urandom


def test_too_few_bytes_are_no_noise() -> None:
    batches = NoiseBatches("laplace", Fraction(1), lambda size: b"\0" * (size - 1))
    with pytest.raises(InvariantError, match="bytes"):
        list(batches.draws(5))


def test_other_noise_is_a_bug() -> None:
    with pytest.raises(InvariantError):
        NoiseBatches("uniform", Fraction(1))
