"""Private choices: sensitivities by brute force, decisions against a slow oracle."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.risk_choices import squares, stops
from samples.influences import (
    EPSILONS,
    MOVES,
    TAUS,
    Scripted,
    influence,
    noises,
    people,
)

from modicum.risk.choice import Claim
from modicum.risk.noise import LaplaceNoise, Noise
from modicum.risk.profile import Profile
from modicum.risk.ratios import ratio_reaches
from modicum.risk.selection.find_release import find_and_release
from modicum.risk.selection.private_selection import people_exposed, private_selection
from modicum.risk.selection.sparse_vector import PrivateSearch
from modicum.risk.selection.spread import STEPS, Spread, own_distances, sum_of_squares

PERSON = st.lists(MOVES, max_size=3)
DRAWS = st.lists(st.integers(-6, 6), min_size=8, max_size=8)


def steps(moves: list[list[float]], noise: Noise, epsilon: Fraction) -> int:
    distances = own_distances(influence(moves), noise)
    return math.floor(sum_of_squares(distances, noise, epsilon=epsilon) * STEPS)


def exposed(
    moves: list[list[float]], noise: Noise, epsilon: Fraction, tau: Fraction
) -> int:
    distances = own_distances(influence(moves), noise)
    return people_exposed(distances, noise, epsilon=epsilon, tau=tau)


@pytest.mark.spec("RSK-8")
@settings(max_examples=examples(100))
@given(people(), noises(), EPSILONS, TAUS, st.randoms(use_true_random=False))
def test_whether_she_moves_it_up_or_down_makes_no_difference(
    moves: list[list[float]],
    noise: Noise,
    epsilon: Fraction,
    tau: Fraction,
    draw: random.Random,
) -> None:
    turned = [[draw.choice([-1, 1]) * move for move in one] for one in moves]
    assert exposed(turned, noise, epsilon, tau) == exposed(moves, noise, epsilon, tau)
    assert steps(turned, noise, epsilon) == steps(moves, noise, epsilon)


@pytest.mark.spec("RSK-8")
@settings(max_examples=examples(200))
@given(people(), PERSON, PERSON, noises(), EPSILONS, TAUS)
def test_one_person_changes_the_number_of_exposed_people_by_at_most_one(
    others: list[list[float]],
    one: list[float],
    other: list[float],
    noise: Noise,
    epsilon: Fraction,
    tau: Fraction,
) -> None:
    without = exposed(others, noise, epsilon, tau)
    found = [exposed([*others, rows], noise, epsilon, tau) for rows in (one, other)]
    assert all(0 <= each - without <= 1 for each in found)
    assert abs(found[0] - found[1]) <= 1


@pytest.mark.spec("RSK-9")
@settings(max_examples=examples(200))
@given(people(), PERSON, PERSON, noises(), EPSILONS)
def test_one_person_changes_the_sum_of_squares_by_at_most_its_steps(
    others: list[list[float]],
    one: list[float],
    other: list[float],
    noise: Noise,
    epsilon: Fraction,
) -> None:
    without = steps(others, noise, epsilon)
    found = [steps([*others, rows], noise, epsilon) for rows in (one, other)]
    assert all(0 <= each - without <= STEPS for each in found)
    assert abs(found[0] - found[1]) <= STEPS


@pytest.mark.spec("RSK-9")
def test_the_worst_tables_come_near_that() -> None:
    """All others as far from her as can be, at a large epsilon: the bound is needed."""
    noise, huge = LaplaceNoise(Fraction(1)), Fraction(10**6)
    changes = []
    for n in (1, 2, 10, 1000):
        alike: list[list[float]] = [[] for _ in range(n)]
        changes.append(steps([*alike, [1.0]], noise, huge) - steps(alike, noise, huge))
    assert all(change <= STEPS for change in changes)
    assert changes[-1] > 0.998 * STEPS
    every = [[0.0], [0.2], [0.5], [1.0]]
    for size in range(1, 6):
        for rest in itertools.combinations_with_replacement(every, size):
            base = steps(list(rest), noise, huge)
            for rows in every:
                assert 0 <= steps([*rest, rows], noise, huge) - base <= STEPS


@pytest.mark.spec("RSK-9")
@settings(max_examples=examples(150))
@given(people(), noises(), EPSILONS)
def test_the_sum_of_squares_is_that_of_everybody(
    moves: list[list[float]], noise: Noise, epsilon: Fraction
) -> None:
    """Up to its grid of 2**-20: n people, one after the other."""
    most, k = float(noise.sensitivity), noise.dimensions
    width = float(noise.width(epsilon))
    if isinstance(noise, LaplaceNoise):
        cut = [min(sum(min(move, most) for move in one), most) for one in moves]
        shown = [distance + k * width for distance in cut]
        top = most + k * width
    else:
        cut = [min(float(np.linalg.norm(one or [0.0])), most) for one in moves]
        shown = [math.sqrt(distance**2 + k * width**2) for distance in cut]
        top = math.sqrt(most**2 + k * width**2)
    wanted = squares([each / top for each in shown])
    distances = own_distances(influence(moves), noise)
    found = float(sum_of_squares(distances, noise, epsilon=epsilon))
    assert found == pytest.approx(wanted, abs=4 * len(moves) * 2**-20)


@pytest.mark.spec("RSK-8")
@settings(max_examples=examples(200))
@given(
    people(),
    noises(),
    TAUS,
    st.integers(0, 4),
    DRAWS,
    st.lists(EPSILONS, min_size=1, max_size=6, unique=True),
)
def test_private_selection_is_the_last_candidate_before_its_count_is_too_large(
    moves: list[list[float]],
    noise: Noise,
    tau: Fraction,
    allowance: int,
    script: list[int],
    offered: list[Fraction],
) -> None:
    draws = Scripted(script)
    choice = private_selection(
        influence(moves),
        noise,
        tau=tau,
        allowance=allowance,
        search=PrivateSearch.of(draws, 2, offered),
        own_rows_only=True,
    )
    own = own_distances(influence(moves), noise)
    everybody = np.repeat(own.values, own.people)
    wanted = None
    left = list(script)
    bound = left.pop(0) if any(map(noise.proven, offered)) else 0
    for epsilon in sorted(filter(noise.proven, offered)):
        count = sum(
            not ratio_reaches(noise, 0.0, distance, epsilon=epsilon, tau=tau)
            for distance in everybody.tolist()
        )
        if count + left.pop(0) > allowance + bound:
            break
        wanted = epsilon
    assert choice.epsilon == wanted
    assert choice.claim is Claim.DP


@pytest.mark.spec("RSK-9")
@settings(max_examples=examples(200))
@given(
    people(),
    noises(),
    st.sampled_from([Fraction(0), Fraction(1, 100), Fraction(1, 10), Fraction(1)]),
    st.integers(1, 20),
    DRAWS,
    st.lists(EPSILONS, min_size=1, max_size=6, unique=True),
)
def test_find_and_release_is_the_first_candidate_from_above_that_passes(
    moves: list[list[float]],
    noise: Noise,
    tau: Fraction,
    known: int,
    script: list[int],
    offered: list[Fraction],
) -> None:
    choice = find_and_release(
        influence(moves),
        noise,
        Spread.of(tau, known),
        search=PrivateSearch.of(Scripted(script), 2, offered),
        own_rows_only=True,
    )
    left = list(script)
    bound = left.pop(0) if any(map(noise.proven, offered)) else 0
    wanted = None
    for epsilon in sorted(filter(noise.proven, offered), reverse=True):
        # -found + noise >= -asked + noise, in steps.
        found = steps(moves, noise, epsilon)
        if found - left.pop(0) <= math.floor(tau * known * STEPS) - bound:
            wanted = epsilon
            break
    assert choice.epsilon == wanted


@pytest.mark.spec("RSK-7")
@settings(max_examples=examples(100))
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=6),
    st.lists(st.integers(-1, 1), min_size=6, max_size=6),
    st.integers(0, 30),
    st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(3)]),
)
def test_noise_of_these_scales_hides_any_change_by_the_sensitivity(
    counts: list[int], changes: list[int], threshold: int, eps: Fraction
) -> None:
    """The law of where it stops, exactly, for statistics that change either way."""
    spent = PrivateSearch.of(Scripted([]), eps).spent
    one, other = (
        stops(
            statistics,
            threshold,
            scale_threshold=1 / spent.eps_threshold,
            scale_queries=2 / spent.eps_queries,
        )
        for statistics in (counts, moved(counts, changes))
    )
    for p, q in zip(one, other, strict=True):
        assert p <= q * math.exp(float(spent.eps)) * (1 + 1e-9) + 1e-15
        assert q <= p * math.exp(float(spent.eps)) * (1 + 1e-9) + 1e-15


def moved(counts: Sequence[int], changes: Sequence[int]) -> list[int]:
    return [count + change for count, change in zip(counts, changes, strict=False)]


@pytest.mark.spec("RSK-7")
@pytest.mark.parametrize("eps", [Fraction(1, 10), Fraction(3, 2)])
def test_the_scales_that_are_asked_for_are_those_of_the_charge(eps: Fraction) -> None:
    table, noise = influence([[1.0], []]), LaplaceNoise(Fraction(1))
    for sensitivity in (1, STEPS):
        draws = Scripted([0] * 3)
        search = PrivateSearch.of(draws, eps, [1])
        if sensitivity == 1:
            choice = private_selection(
                table,
                noise,
                tau=0.5,
                allowance=5,
                search=search,
                own_rows_only=True,
            )
        else:
            spread = Spread.of(1, 2)
            choice = find_and_release(
                table, noise, spread, search=search, own_rows_only=True
            )
        assert choice.charge is not None
        spent = choice.charge.selection
        assert spent is not None
        assert spent.eps == eps
        assert draws.scales == [
            sensitivity / spent.eps_threshold,
            2 * sensitivity / spent.eps_queries,
        ]


@pytest.mark.spec("RSK-10")
@settings(max_examples=examples(100))
@given(people(), people(), noises(), st.integers(-1, 3))
def test_two_tables_with_the_same_epsilon_tell_the_same(
    one: list[list[float]], other: list[list[float]], noise: Noise, stop: int
) -> None:
    """All that a private choice shows follows from what is public and from its place.

    Noise is made so large that it alone decides where the search stops.
    """
    offered = [Fraction(1, 10), Fraction(1), Fraction(3)]
    script = [0, *[-(10**9)] * 3]
    if stop >= 0:
        script[min(stop, 2) + 1] = 10**9
    result = []
    for moves in (one, other):
        choices = [
            private_selection(
                influence(moves),
                noise,
                tau=0.9,
                allowance=2,
                search=PrivateSearch.of(Scripted(script), 1, offered),
                own_rows_only=True,
            ),
            find_and_release(
                influence(moves),
                noise,
                Spread.of("0.01", 20),
                search=PrivateSearch.of(Scripted(script), 1, offered),
                own_rows_only=True,
            ),
        ]
        result.append([(choice.to_dict(), repr(choice)) for choice in choices])
    assert result[0] == result[1]


@pytest.mark.spec("RSK-7")
@given(people(), noises())
def test_nothing_is_read_where_others_rows_matter(
    moves: list[list[float]], noise: Noise
) -> None:
    search = PrivateSearch.of(Scripted([]), 1)  # A draw would be an error.
    found = [
        private_selection(
            influence(moves),
            noise,
            tau=0.9,
            allowance=2,
            search=search,
            own_rows_only=False,
        ),
        find_and_release(
            influence(moves),
            noise,
            Spread.of(1, 2),
            search=search,
            own_rows_only=False,
        ),
    ]
    for choice in found:
        assert choice.epsilon is None
        assert choice.charge is None
        assert "rows of others" in choice.why


@pytest.mark.spec("RSK-9")
@settings(max_examples=examples(150))
@given(people(), PERSON, noises())
def test_nobodys_distance_depends_on_others_to_the_last_bit(
    others: list[list[float]], one: list[float], noise: Noise
) -> None:
    """Huge moves of somebody else, and another order of her own, change nothing."""
    alone = own_distances(influence([one]), noise).values[0]
    huge = [[1e9 / 3, 1e-3], [1e300]]
    among = own_distances(influence([*others, *huge, one[::-1]]), noise)
    assert alone in among.values.tolist()
    assert among.greatest <= float(noise.sensitivity)


@pytest.mark.spec("RSK-9")
def test_the_order_of_ones_own_moves_makes_no_difference() -> None:
    """In floats, three tenths add up to two different numbers."""
    noise = LaplaceNoise(Fraction(1), 3)
    orders = list(itertools.permutations([0.1, 0.2, 0.3]))
    assert len({sum(order) for order in orders}) > 1
    found = [own_distances(influence([order]), noise).greatest for order in orders]
    assert len(set(found)) == 1
    among = own_distances(influence(orders), noise)
    assert among.people.tolist() == [len(orders)]


@pytest.mark.spec("RSK-9")
def test_a_distance_beyond_the_sensitivity_counts_as_the_sensitivity() -> None:
    noise, one = LaplaceNoise(Fraction(1)), Fraction(1)
    people = np.array([3, 4])
    far, at = (Profile(np.array([0.0, top]), people) for top in (1.7, 1.0))
    wanted = sum_of_squares(at, noise, epsilon=one)
    assert wanted > 0
    assert sum_of_squares(far, noise, epsilon=one) == wanted
