"""Mechanisms against their own outcomes: sums and integrals at 50 digits."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest
from budget import examples
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from oracle import mechanisms as oracle
from oracle.accounting import MP, Real, kl_discrete, real, renyi_discrete
from oracle.mechanisms import value, worse_way

from modicum.accounting.amounts import Amount
from modicum.accounting.curves import Curve
from modicum.accounting.decimals import precise
from modicum.accounting.mechanisms import (
    declared_renyi,
    discrete_gaussian,
    discrete_laplace,
    exponential,
    pate_gnmax,
    report_noisy_max,
    sparse_vector,
    sparse_vector_one_threshold,
)
from modicum.accounting.mechanisms.pate_data_dependent import pate_gnmax_data_dependent

pytestmark = pytest.mark.soak

#: What the oracle's sums leave uncertain; its integrals get more.
NOISE = MP.mpf(10) ** -30
INTEGRAL_NOISE = MP.mpf(10) ** -15
UNIT = MP.mpf(10) ** -12

ORDERS = [Fraction(n, 4) for n in (5, 6, 7, 10)] + [Fraction(n) for n in (2, 3, 8, 64)]
orders = st.sampled_from([Fraction(1001, 1000), *ORDERS, Fraction(300)])
few_orders = st.sampled_from([Fraction(5, 4), Fraction(2), Fraction(16)])


def quick(n: int) -> settings:
    return settings(max_examples=examples(n), deadline=None)


def rationals(low: int, high: int, per: int) -> st.SearchStrategy[Fraction]:
    return st.integers(low, high).map(lambda n: Fraction(n, per))


def alone(curve: Curve, order: Fraction) -> Amount:
    """The Renyi curve itself, where `at` would take a better bound."""
    return precise(curve.renyi)(order)


def assert_not_below(
    found: Fraction | Decimal, truth: Real, noise: Real = NOISE
) -> None:
    assert value(found) >= truth - noise


def assert_close_above(
    found: Fraction | Decimal, truth: Real, noise: Real = NOISE
) -> None:
    """At least the truth, and at most a millionth or one ledger unit above it."""
    assert_not_below(found, truth, noise)
    assert value(found) <= truth + max(truth * MP.mpf(10) ** -6, UNIT)


# --- noise on the integers ----------------------------------------------------


scales = st.one_of(rationals(1, 60, 10), rationals(1, 9, 100))


@quick(25)
@given(st.integers(1, 9), scales, orders)
@example(1, Fraction(1, 100), Fraction(5, 4))
@example(9, Fraction(6), Fraction(1001, 1000))
def test_discrete_laplace_is_the_sum_over_all_integers(
    shift: int, scale: Fraction, order: Fraction
) -> None:
    reach = 20 + 2 * shift + int(90 * scale)
    noise = oracle.discrete_laplace(scale, 0, reach)
    moved = oracle.discrete_laplace(scale, shift, reach)
    curve = discrete_laplace(sensitivity_l1=shift, scale=scale)

    assert_close_above(curve.at(order), worse_way(noise, moved, order))
    assert_close_above(curve.rho, kl_discrete(noise, moved))
    assert curve.eps == shift / scale


@quick(40)
@given(st.integers(1, 40), scales, st.integers(1, 4000))
def test_rho_of_discrete_laplace_bounds_its_curve_at_every_order(
    shift: int, scale: Fraction, percent: int
) -> None:
    """The divergence at order 1 times the order: what the zeros of a sum prove."""
    curve = discrete_laplace(sensitivity_l1=shift, scale=scale)
    order = 1 + Fraction(percent, 100)
    assert value(alone(curve, order)) <= real(order) * value(curve.rho) + NOISE


@quick(30)
@given(st.integers(1, 9), st.integers(0, 9), scales, orders)
def test_discrete_laplace_on_two_coordinates_costs_at_most_their_sum(
    one: int, other: int, scale: Fraction, order: Fraction
) -> None:
    both = discrete_laplace(sensitivity_l1=one + other, scale=scale)
    first = discrete_laplace(sensitivity_l1=one, scale=scale)
    second = discrete_laplace(sensitivity_l1=other, scale=scale)
    apart = value(first.at(order)) + value(second.at(order))
    assert apart <= value(both.at(order)) + NOISE
    assert value(first.rho) + value(second.rho) <= value(both.rho) + NOISE


@quick(15)
@given(st.integers(1, 5), rationals(2, 40, 10), orders.filter(lambda o: o <= 8))
@example(1, Fraction(1, 5), Fraction(3, 2))
def test_discrete_gaussian_costs_no_more_than_continuous(
    shift: int, sigma: Fraction, order: Fraction
) -> None:
    reach = int((order + 1) * shift + 16 * sigma) + 5
    noise = oracle.discrete_gaussian(sigma, 0, reach)
    moved = oracle.discrete_gaussian(sigma, shift, reach)
    curve = discrete_gaussian(sensitivity_l2=Fraction(shift), sigma=sigma)

    truth = worse_way(noise, moved, order)

    assert_not_below(curve.at(order), truth)
    if order.denominator == 1:
        assert_close_above(curve.at(order), truth)  # Equal at integer orders.


# --- choosing one of several --------------------------------------------------


score_lists = st.lists(rationals(-30, 30, 7), min_size=2, max_size=5)


@st.composite
def neighboring_scores(draw: st.DrawFn) -> tuple[list[Fraction], list[Fraction]]:
    scores = draw(score_lists)
    changes = draw(
        st.lists(
            st.one_of(
                st.sampled_from([Fraction(-1), Fraction(1)]), rationals(-9, 9, 9)
            ),
            min_size=len(scores),
            max_size=len(scores),
        )
    )
    return scores, [s + c for s, c in zip(scores, changes, strict=True)]


@quick(60)
@given(neighboring_scores(), rationals(1, 80, 10), orders)
def test_the_exponential_mechanism_costs_no_more_than_its_curve(
    pair: tuple[list[Fraction], list[Fraction]], eps: Fraction, order: Fraction
) -> None:
    p, q = (oracle.exponential(scores, eps) for scores in pair)
    curve = exponential(eps=eps)
    truth = worse_way(p, q, order)
    assert_not_below(curve.at(order), truth)
    assert truth <= real(order) * value(curve.rho) + NOISE
    assert oracle.largest_ratio(p, q) <= real(eps) + NOISE


@quick(25)
@given(rationals(1, 100, 10), orders)
@example(Fraction(1, 10**9), Fraction(3, 2))
@example(Fraction(1, 10**12), Fraction(2))
@example(Fraction(1, 10**13), Fraction(2))
@example(Fraction(40), Fraction(5, 4))
def test_some_pair_of_bounded_range_costs_what_the_curve_says(
    eps: Fraction, order: Fraction
) -> None:
    """Two outcomes with ratios h and h/exp(eps): the worst h, by searching for it."""
    e = real(eps)

    def negated(u: Real) -> Real:
        # h between 1 and exp(eps), close to neither end.
        high = MP.exp(e / (1 + MP.exp(-u)))
        low = high * MP.exp(-e)
        chance = (1 - low) / (high - low)
        p, q = [chance * high, (1 - chance) * low], [chance, 1 - chance]
        return -renyi_discrete(p, q, order)

    truth = -golden(negated, MP.mpf(-60), MP.mpf(60))
    assert_close_above(alone(exponential(eps=eps), order), truth)


def golden(function: oracle.Density, low: Real, high: Real) -> Real:
    """Return the smallest value of a function with one valley."""
    ratio = (MP.sqrt(5) - 1) / 2
    for _ in range(70):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if function(left) < function(right):
            high = right
        else:
            low = left
    return function((low + high) / 2)


@quick(4)
@given(
    st.lists(st.integers(-3, 3), min_size=2, max_size=3),
    st.lists(st.sampled_from([-1, 1]), min_size=3, max_size=3),
    rationals(3, 30, 10),
    few_orders,
)
def test_report_noisy_max_costs_no_more_than_its_curve(
    scores: list[int], changes: list[int], eps: Fraction, order: Fraction
) -> None:
    scale = 2 / real(eps)
    left = [MP.mpf(score) for score in scores]
    right = [score + change for score, change in zip(left, changes, strict=False)]
    kinds = (
        ("laplace", oracle.laplace_density(scale), oracle.laplace_below(scale)),
        ("gumbel", oracle.gumbel_density(scale), oracle.gumbel_below(scale)),
    )
    for noise, density, below in kinds:
        p, q = (oracle.noisy_max(s, density, below, 60 * scale) for s in (left, right))
        assert abs(sum(p) - 1) < INTEGRAL_NOISE
        curve = report_noisy_max(eps=eps, noise=noise)  # type: ignore[arg-type]
        assert_not_below(curve.at(order), worse_way(p, q, order), INTEGRAL_NOISE)


@quick(40)
@given(neighboring_scores(), rationals(1, 60, 10), orders)
def test_permute_and_flip_costs_no_more_than_its_curve(
    pair: tuple[list[Fraction], list[Fraction]], eps: Fraction, order: Fraction
) -> None:
    p, q = (oracle.permute_and_flip(scores, eps) for scores in pair)
    assert abs(sum(p) - 1) < NOISE
    curve = report_noisy_max(eps=eps, noise="exponential")
    assert_not_below(curve.at(order), worse_way(p, q, order))


# --- the sparse vector technique ----------------------------------------------


@quick(3)
@given(
    st.lists(st.integers(-2, 2), min_size=2, max_size=3),
    st.lists(st.sampled_from([-1, 0, 1]), min_size=3, max_size=3),
    st.sampled_from([(1, 1), (2, 1), (1, 3)]),
    few_orders,
    st.integers(1, 2),
)
@example([0, 0, 0], [1, -1, 1], (1, 1), Fraction(2), 1)
def test_sparse_vector_costs_no_more_than_its_curve(
    answers: list[int],
    changes: list[int],
    split: tuple[int, int],
    order: Fraction,
    positives: int,
) -> None:
    eps1, eps2 = Fraction(split[0], 2), Fraction(split[1], 2)
    near = [a + c for a, c in zip(answers, changes, strict=False)]
    curves: dict[bool, Curve] = {
        True: sparse_vector(eps_threshold=eps1, eps_queries=eps2, positives=positives),
        False: sparse_vector_one_threshold(eps_threshold=eps1, eps_queries=eps2),
    }
    for fresh, curve in curves.items():
        shared = 1 if fresh else positives
        law = {
            side: oracle.sparse_vector(
                values, 1 / real(eps1), 2 * shared / real(eps2), positives, fresh=fresh
            )
            for side, values in (("left", answers), ("right", near))
        }
        p, q = list(law["left"].values()), list(law["right"].values())
        assert abs(sum(p) - 1) < INTEGRAL_NOISE
        assert_not_below(curve.at(order), worse_way(p, q, order), INTEGRAL_NOISE)
        assert oracle.largest_ratio(p, q) <= value(curve.eps) + INTEGRAL_NOISE


# --- votes --------------------------------------------------------------------


@quick(4)
@given(
    st.lists(st.integers(0, 8), min_size=2, max_size=3),
    st.sampled_from([Fraction(1, 2), Fraction(2), Fraction(5)]),
    few_orders,
)
@example([30, 1], Fraction(2), Fraction(2))
def test_a_noisy_vote_costs_no_more_than_its_curve(
    votes: list[int], sigma: Fraction, order: Fraction
) -> None:
    """One teacher votes for another class, each way; and the bound by the votes."""
    assume(votes[0] > 0)
    laws = [vote_law(counts, sigma) for counts in moved_votes(votes)]
    curve = pate_gnmax(sigma=sigma)
    for other in laws[1:]:
        truth = worse_way(laws[0], other, order)
        assert_not_below(curve.at(order), truth, INTEGRAL_NOISE)
        wrong = MP.fsum(sorted(laws[0])[:-1])
        q = Fraction(str(MP.nstr(wrong, 30))) + Fraction(1, 10**14)
        bound = pate_gnmax_data_dependent(
            q=min(q, Fraction(1)), sigma=sigma, order=order
        )
        there = renyi_discrete(laws[0], other, order)
        assert_not_below(bound, there, INTEGRAL_NOISE)


def moved_votes(votes: list[int]) -> list[list[int]]:
    moved = [list(votes)]
    for target in range(1, len(votes)):
        counts = list(votes)
        counts[0], counts[target] = counts[0] - 1, counts[target] + 1
        moved.append(counts)
    return moved


def vote_law(counts: list[int], sigma: Fraction) -> list[Real]:
    s = real(sigma)
    root = MP.sqrt(2) * s
    law = oracle.noisy_max(
        [MP.mpf(count) for count in counts],
        lambda x: MP.exp(-(x**2) / (2 * s * s)) / (s * MP.sqrt(2 * MP.pi)),
        lambda x: MP.erfc(-x / root) / 2,
        max(counts) + 14 * s,
    )
    assert abs(sum(law) - 1) < INTEGRAL_NOISE
    return law


# --- declared divergences -----------------------------------------------------


chances = st.lists(st.integers(1, 1000), min_size=3, max_size=3)


@quick(50)
@given(
    chances,
    chances,
    st.sets(st.integers(5, 80), min_size=1, max_size=4),
    orders,
    st.booleans(),
)
def test_declared_divergences_bound_all_orders_between(
    left: list[int], right: list[int], quarters: set[int], order: Fraction, pure: bool
) -> None:
    p, q = (oracle.normalized([MP.mpf(n) for n in law]) for law in (left, right))

    def above(truth: Real) -> Fraction:
        return Fraction(str(MP.nstr(truth, 30))) + Fraction(1, 10**25)

    known = [Fraction(n, 4) for n in quarters]
    points = {o: above(worse_way(p, q, o)) for o in known}
    eps = above(oracle.largest_ratio(p, q)) if pure else None

    curve = declared_renyi(points, eps=eps)

    assert_not_below(curve.at(order), worse_way(p, q, order))
    for o in known:
        assert value(curve.at(o)) <= real(points[o])


def test_transcripts_are_all_there_is() -> None:
    """The oracle's own: probabilities of the transcripts add up by their number."""
    assert oracle.transcripts(2, 1) == ["--", "-+", "+"]
    assert len(oracle.transcripts(3, 2)) == len(
        {
            "".join(signs)[: cut + 1]
            for signs in product("-+", repeat=3)
            for cut in [
                next((i for i in range(3) if signs[: i + 1].count("+") == 2), 2)
            ]
        }
    )
