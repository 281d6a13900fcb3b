"""Filters against their definitions, and against adaptive adversaries, enumerated."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import isqrt
from typing import Any

import pytest
from budget import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracle import accounting as oracle
from oracle.accounting import MP, Real, real
from samples import prices

from modicum.accounting import (
    COORDINATES,
    FILTERS,
    INFINITE,
    ORDERS,
    ApproxBudget,
    Loss,
    Total,
    filter_for,
)
from modicum.accounting.budgets import RenyiBudget
from modicum.accounting.conversions.profiles import gaussian_mu2_cap
from modicum.accounting.filters.advanced_composition import AdvancedCompositionFilter
from modicum.accounting.filters.budget import Filter, Shares, figure, limit
from modicum.accounting.filters.prototype import (
    PUBLISHED_ORDERS,
    is_proven,
    live_orders,
    mironov_cap,
    mironov_epsilon,
    wasted_share,
)
from modicum.accounting.grid import DELTA, EPS, MU2, RHO, order_index
from modicum.core.errors import InputError

pytestmark = pytest.mark.soak

UNIT = Fraction(1, 10**12)
SHARED = sorted(name for name, named in FILTERS.items() if isinstance(named, Shares))


def quick(n: int) -> settings:
    return settings(max_examples=examples(n), deadline=None)


def magnitudes(low: int, high: int) -> st.SearchStrategy[Fraction]:
    """Rationals of every size from 10^low to 10^high, alike likely."""
    return st.builds(
        lambda mantissa, exponent: Fraction(mantissa) * Fraction(10) ** exponent,
        st.integers(1000, 9999),
        st.integers(low - 3, high - 4),
    )


whole_epsilons = magnitudes(-2, 2).map(lambda eps: max(1, eps // UNIT) * UNIT)
deltas = magnitudes(-15, -1)
orders = st.sampled_from(ORDERS)


def only(index: int, units: int) -> Total:
    """A total that is finite in one coordinate."""
    finite, infinite = [0] * COORDINATES, [1] * COORDINATES
    finite[index], infinite[index] = units, 0
    infinite[DELTA] = 0
    return Total(tuple(finite), tuple(infinite))


# --- admits, nearest, figure and limit say the same ------------------------------


@quick(60)
@given(
    st.sampled_from([*SHARED, "as-published"]),
    whole_epsilons,
    deltas,
    st.sampled_from([-1, 0, 1, 2]),
)
def test_at_the_edge_of_every_cap_together_exceeds_the_limit_exactly_if_denied(
    name: str, eps: Fraction, delta: Fraction, away: int
) -> None:
    budget = ApproxBudget(eps, delta)
    try:
        limits = filter_for(budget, name)
    except InputError:
        assume(False)
    for index, cap in limits.caps:
        total = only(index, max(0, cap + away))
        admitted = max(0, cap + away) <= cap
        nearest = limits.nearest(total)
        assert limits.admits(total) == admitted
        assert nearest is not None
        assert (total.units(nearest[0]) <= nearest[1]) == admitted
        assert (figure(budget, name, total) <= limit(budget)) == admitted


@quick(150)
@given(
    st.dictionaries(orders, magnitudes(-13, 7), min_size=1, max_size=4),
    st.data(),
)
def test_a_renyi_budget_says_no_exactly_if_one_order_is_over(
    limits: dict[Fraction, Fraction], data: st.DataObject
) -> None:
    budget = RenyiBudget(tuple(sorted(limits.items())))
    own = filter_for(budget, "combined-v2")
    finite = [0] * COORDINATES
    over = False
    for order, most in limits.items():
        cap = min(int(most // UNIT), INFINITE - 1)
        near = data.draw(st.integers(-2, 1))
        units = data.draw(st.sampled_from([0, max(0, cap + near), cap // 3]))
        finite[order_index(order)] = units
        over |= units > cap or units >= INFINITE
    total = Total(tuple(finite), (0,) * COORDINATES)

    assert own.admits(total) == (not over)
    assert (figure(budget, "combined-v2", total) > limit(budget)) == over
    nearest = own.nearest(total)
    assert nearest is not None
    assert (total.units(nearest[0]) > nearest[1]) == over


# --- the measured filter, by its definition --------------------------------------


def gaussian_epsilon(mu2: Fraction, delta: Fraction) -> Real:
    """Return the least eps with gaussian_delta(mu, eps) <= delta, by bisection."""
    mu = MP.sqrt(real(mu2))
    low, high = MP.mpf(0), MP.mpf(1)
    if oracle.gaussian_delta(mu, low) <= real(delta):
        return low
    while oracle.gaussian_delta(mu, high) > real(delta):
        high *= 2
    for _ in range(120):
        middle = (low + high) / 2
        if oracle.gaussian_delta(mu, middle) > real(delta):
            low = middle
        else:
            high = middle
    return high


@quick(40)
@given(magnitudes(-6, 2), deltas)
def test_the_gaussian_coordinate_of_combined_v2_is_exact(
    mu2: Fraction, delta: Fraction
) -> None:
    units = max(1, int(mu2 / UNIT))
    budget = ApproxBudget(Fraction(1), delta)
    shown = figure(budget, "combined-v2", only(MU2, units))
    truth = gaussian_epsilon(units * UNIT, delta / 8) * 10**12
    assert truth - MP.mpf("1e-12") <= shown
    assert shown <= truth * (1 + MP.mpf("1e-6")) + 1


@quick(60)
@given(
    st.sampled_from(["combined-v2"]),
    whole_epsilons,
    deltas,
    magnitudes(0, 2),
    magnitudes(0, 2),
)
def test_a_looser_budget_raises_every_cap(
    name: str, eps: Fraction, delta: Fraction, more: Fraction, wider: Fraction
) -> None:
    tight = filter_for(ApproxBudget(eps, delta), name)
    looser = ApproxBudget(eps * more, min(delta * wider, Fraction(99, 100)))
    loose = filter_for(looser, name)
    caps = dict(loose.caps)
    assert loose.delta_cap >= tight.delta_cap
    assert all(cap <= caps[index] for index, cap in tight.caps)


# --- as published ----------------------------------------------------------------


def share(order: Fraction) -> Real:
    a = real(order)
    return (a - 1) ** (a - 1) / a**a


@quick(60)
@given(st.sampled_from(PUBLISHED_ORDERS), magnitudes(-2, 2), deltas)
def test_mironovs_cap_is_the_tight_cap_at_the_share_it_wastes(
    order: Fraction, eps: Fraction, delta: Fraction
) -> None:
    wasted = Fraction(MP.nstr(share(order), 48))
    tight = oracle.renyi_cap(order, eps, delta * wasted) * 10**12
    cap = mironov_cap(order, eps, delta)
    assert tight - 1 - MP.mpf("1e-9") <= cap <= tight + MP.mpf("1e-9")


@quick(60)
@given(st.sampled_from(PUBLISHED_ORDERS), st.integers(0, 10**15), deltas)
def test_mironovs_epsilon_is_the_formula_rounded_up(
    order: Fraction, units: int, delta: Fraction
) -> None:
    truth = units + 10**12 * MP.log(1 / real(delta)) / real(order - 1)
    found = mironov_epsilon(order, units, delta)
    assert truth - MP.mpf("1e-12") <= found <= truth + 1 + MP.mpf("1e-12")


@quick(80)
@given(magnitudes(-3, 3), magnitudes(-15, 0).map(lambda d: min(d, Fraction(9, 10))))
def test_the_published_filter_is_refused_exactly_when_it_is_not_proven(
    eps: Fraction, delta: Fraction
) -> None:
    live = [
        order
        for order in PUBLISHED_ORDERS
        if real(eps) - MP.log(1 / real(delta)) / real(order - 1) > 0
    ]
    total = MP.fsum(share(order) for order in live)
    assert live_orders(PUBLISHED_ORDERS, eps, delta) == tuple(live)
    assert is_proven(tuple(live)) == (total <= 1)
    assert wasted_share(tuple(live)) >= Fraction(MP.nstr(total, 40))
    budget = ApproxBudget(eps, delta)
    if live and total <= 1:
        caps = dict(filter_for(budget, "as-published").caps)
        assert list(caps) == [order_index(order) for order in live]
    else:
        with pytest.raises(InputError):
            filter_for(budget, "as-published")


@quick(60)
@given(
    st.lists(magnitudes(-4, 1), min_size=1, max_size=8),
    magnitudes(-12, -1),
)
def test_the_advanced_filter_is_the_formula_rounded_up(
    epsilons: list[Fraction], slack: Fraction
) -> None:
    spent = AdvancedCompositionFilter(Fraction(1), slack, Fraction(0))
    squares = Fraction(0)
    for eps in epsilons:
        loss = prices.declared_pure(eps=eps)
        squares += (loss.coordinates[EPS] * UNIT) ** 2
        spent = spent.after(loss)
    truth = MP.sqrt(-2 * MP.log(real(slack)) * real(squares)) + real(squares) / 2
    assert truth * 10**12 <= spent.spent <= truth * 10**12 + 1 + MP.mpf("1e-12")


# --- the union bound, against adversaries that may do anything -------------------

Outcome = tuple[Fraction, Fraction]  # Its probability on the one table, on the other.


@dataclass(frozen=True)
class Mechanism:
    """A finite mechanism: outcomes on two neighboring tables, and its proven loss."""

    outcomes: tuple[Outcome, ...]
    loss: Loss


def answer(truth: Fraction) -> Mechanism:
    lie = 1 - truth
    return Mechanism(
        ((truth, lie), (lie, truth)),
        prices.randomized_response(truth=truth, values=2, answers=1),
    )


def leaky(truth: Fraction, leak: Fraction) -> Mechanism:
    """Randomized response that tells everything with a small probability."""
    eps_known = answer(truth).loss.coordinates[:DELTA]
    mixed = tuple(((1 - leak) * p, (1 - leak) * q) for p, q in answer(truth).outcomes)
    leaks = ((leak, Fraction(0)), (Fraction(0), leak))
    own = Loss((*eps_known, -(-leak.numerator * 10**18 // leak.denominator)))
    return Mechanism((*mixed, *leaks), own)


Adversary = Callable[[tuple[int, ...], list[Mechanism]], Mechanism]


def scattered(seed: int) -> Adversary:
    """An adversary that chooses as it likes, but always alike after equal answers."""

    def choose(answers: tuple[int, ...], allowed: list[Mechanism]) -> Mechanism:
        return random.Random(f"{seed} {answers}").choice(allowed)

    return choose


def greedy(answers: tuple[int, ...], allowed: list[Mechanism]) -> Mechanism:
    """Go on with the strongest after answers that speak for one table, else weakly."""
    rank = sorted(allowed, key=lambda one: one.loss.coordinates[EPS])
    return rank[-1] if answers.count(0) >= answers.count(1) else rank[0]


@dataclass(frozen=True)
class Changing:
    """A filter that may be replaced by another one before each further mechanism."""

    filters: tuple[Filter, ...]

    def admits(self, total: Total) -> bool:
        return any(one.admits(total) for one in self.filters)


def excess(
    limits: Filter | Changing,
    mechanisms: list[Mechanism],
    adversary: Adversary,
    eps: Fraction,
) -> tuple[Real, int]:
    """Return the exact delta at eps of the filtered process, and its longest run."""
    grown = MP.exp(real(eps))
    above = [MP.mpf(0), MP.mpf(0)]
    longest = 0
    open_runs: list[tuple[tuple[int, ...], Fraction, Fraction, Total]] = [
        ((), Fraction(1), Fraction(1), Total())
    ]
    while open_runs:
        answers, p, q, spent = open_runs.pop()
        allowed = [m for m in mechanisms if limits.admits(spent.plus(m.loss))]
        if not allowed or len(answers) == 9:
            above[0] += max(MP.mpf(0), real(p) - grown * real(q))
            above[1] += max(MP.mpf(0), real(q) - grown * real(p))
            longest = max(longest, len(answers))
            continue
        chosen = adversary(answers, allowed)
        charged = spent.plus(chosen.loss)
        for i, (a, b) in enumerate(chosen.outcomes):
            open_runs.append(((*answers, i), p * a, q * b, charged))
    return max(above), longest


truths = st.integers(52, 85).map(lambda n: Fraction(n, 100))
adversaries = st.one_of(st.just(greedy), st.integers(0, 10**6).map(scattered))


@quick(25)
@given(
    st.sampled_from(["combined-v1", "combined-v2", "zcdp-v1", "as-published"]),
    st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2), Fraction(3)]),
    st.sampled_from([Fraction(1, 4), Fraction(1, 20), Fraction(1, 100)]),
    truths,
    truths,
    adversaries,
)
def test_no_adaptive_adversary_gets_more_than_the_budget(
    name: str,
    eps: Fraction,
    delta: Fraction,
    first: Fraction,
    second: Fraction,
    adversary: Adversary,
) -> None:
    try:
        limits = filter_for(ApproxBudget(eps, delta), name)
    except InputError:
        assume(False)
    found, _ = excess(limits, [answer(first), answer(second)], adversary, eps)
    assert found <= real(delta)


@quick(12)
@given(
    st.sampled_from(["combined-v2", "basic-v1"]),
    st.sampled_from([Fraction(1), Fraction(2)]),
    st.integers(1, 40).map(lambda n: Fraction(n, 1000)),
    truths,
    adversaries,
)
def test_leaks_are_paid_from_the_same_delta(
    name: str, eps: Fraction, leak: Fraction, truth: Fraction, adversary: Adversary
) -> None:
    delta = Fraction(1, 10)
    limits = filter_for(ApproxBudget(eps, delta), name)
    found, _ = excess(limits, [leaky(truth, leak), answer(truth)], adversary, eps)
    assert found <= real(delta)


@pytest.mark.spec("POL-23")
@quick(12)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(FILTERS)),
            st.sampled_from([Fraction(1, 4), Fraction(1, 20), Fraction(1, 100)]),
        ),
        min_size=2,
        max_size=3,
        unique_by=lambda one: one[0],
    ),
    st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2), Fraction(3)]),
    st.integers(0, 40).map(lambda n: Fraction(n, 1000)),
    truths,
    truths,
    adversaries,
)
def test_who_changes_filters_gets_no_more_than_their_deltas_together(
    chosen: list[tuple[str, Fraction]],
    eps: Fraction,
    leak: Fraction,
    first: Fraction,
    second: Fraction,
    adversary: Adversary,
) -> None:
    try:
        filters = [filter_for(ApproxBudget(eps, delta), name) for name, delta in chosen]
    except InputError:
        assume(False)
    mechanisms = [answer(first), leaky(second, leak) if leak else answer(second)]
    found, _ = excess(Changing(tuple(filters)), mechanisms, adversary, eps)
    assert found <= real(sum((delta for _, delta in chosen), Fraction(0)))


@pytest.mark.spec("POL-23")
def test_two_filters_fail_more_often_than_one() -> None:
    """Else one delta would do for both."""
    eps, delta = Fraction(1), Fraction(1, 100)
    almost = delta - Fraction(1, 10**9)  # Sums of reals are rounded.
    weak, leak = answer(Fraction(54, 100)), leaky(Fraction(1, 2), almost)
    names = ("zcdp-v1", "basic-v1")
    each = [filter_for(ApproxBudget(eps, delta), name) for name in names]

    def choose(answers: tuple[int, ...], allowed: list[Mechanism]) -> Mechanism:
        """Run up rho while all answers agree, else let the whole delta leak."""
        wanted = leak if any(answers[:6]) else weak
        return wanted if wanted in allowed else allowed[0]

    for one in each:
        assert excess(one, [weak, leak], choose, eps)[0] <= real(delta)
    found, _ = excess(Changing(tuple(each)), [weak, leak], choose, eps)
    assert real(delta * 11 / 10) < found <= real(2 * delta)


@pytest.mark.spec("POL-23")
@quick(12)
@given(
    st.sampled_from(["combined-v1", "combined-v2", "zcdp-v1", "basic-v1"]),
    st.sampled_from([Fraction(1, 2), Fraction(1)]),
    st.sampled_from([Fraction(1, 4), Fraction(1, 20)]),
    st.integers(1, 40).map(lambda n: Fraction(n, 1000)),
    truths,
    adversaries,
)
def test_a_limit_that_is_raised_after_answers_is_the_new_limit(
    name: str,
    eps: Fraction,
    delta: Fraction,
    leak: Fraction,
    truth: Fraction,
    adversary: Adversary,
) -> None:
    """However it came there, what was released lies within the largest limit."""
    steps = ((eps / 2, delta), (eps, delta / 2), (eps, delta), (2 * eps, delta))
    raised = [filter_for(ApproxBudget(*one), name) for one in steps]
    mechanisms = [leaky(truth, leak), answer(truth)]
    found, _ = excess(Changing(tuple(raised)), mechanisms, adversary, 2 * eps)
    assert found <= real(delta)


def test_an_adversary_can_go_beyond_pure_eps_and_uses_some_delta() -> None:
    """Else the two tests above would say nothing about the shares of delta."""
    eps, delta = Fraction(1), Fraction(1, 4)
    limits = filter_for(ApproxBudget(eps, delta), "combined-v2")
    weak, strong = answer(Fraction(55, 100)), answer(Fraction(58, 100))
    found, longest = excess(limits, [weak, strong], greedy, eps)
    assert longest * strong.loss.coordinates[EPS] > eps * 10**12
    assert 0 < found <= real(delta)


@pytest.mark.parametrize(
    "broken",
    [
        Filter(((EPS, 4 * 10**12),), 0),
        Filter(((RHO, 2 * 10**12),), 0),
        Filter(((EPS, 10**12),), 5 * 10**17),
    ],
    ids=["eps", "rho", "delta"],
)
def test_the_enumeration_notices_a_filter_that_admits_too_much(broken: Filter) -> None:
    mechanisms = [leaky(Fraction(7, 10), Fraction(1, 5)), answer(Fraction(3, 4))]
    found: Any = max(
        excess(broken, mechanisms, adversary, Fraction(1))[0]
        for adversary in (greedy, scattered(1), scattered(2))
    )
    assert found > real(Fraction(1, 20))


# --- the Gaussian coordinate, against Gaussian noise that is told in bins ----------


def binned(mu: Fraction, edges: tuple[Fraction, ...]) -> Mechanism:
    """Gaussian noise of which only the bin is told: processed, so it is mu-GDP too."""
    half = real(mu) / 2
    cuts = [MP.mpf("-inf"), *map(real, edges), MP.mpf("inf")]

    def within(shift: Real) -> list[Fraction]:
        below = [MP.ncdf(cut - shift) for cut in cuts]
        return [Fraction(MP.nstr(high - low, 40)) for low, high in pairwise(below)]

    pairs = list(zip(within(-half), within(half), strict=True))
    # The first outcome speaks for the one table, the second for the other.
    pairs.insert(1, pairs.pop())
    return Mechanism(tuple(pairs), prices.declared_gdp(mu=mu))


#: The probabilities of bins are rounded to 40 digits.
ROUNDED = MP.mpf("1e-30")


def brief_root(mu2: int, steps: int) -> Fraction:
    """Return a mu of which this many fit into units of mu squared, in six digits."""
    mu = Fraction(isqrt(mu2 // steps), 10**6)
    assert steps * mu * mu * 10**12 <= mu2
    return mu


def greedy_noise(answers: tuple[int, ...], allowed: list[Mechanism]) -> Mechanism:
    """As `greedy`, by the loss that Gaussian noise has."""
    rank = sorted(allowed, key=lambda one: one.loss.coordinates[MU2])
    return rank[-1] if answers.count(0) >= answers.count(1) else rank[0]


gaussian_limits = st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2)])


@quick(12)
@given(
    gaussian_limits,
    st.sampled_from([Fraction(1, 4), Fraction(1, 20), Fraction(1, 100)]),
    st.integers(3, 9),
    st.integers(1, 3),
    st.integers(0, 2),
    st.one_of(st.just(greedy_noise), st.integers(0, 10**6).map(scattered)),
)
def test_no_adversary_gets_more_than_the_delta_of_the_gaussian_coordinate(
    eps: Fraction,
    delta: Fraction,
    steps: int,
    ratio: int,
    edge: int,
    adversary: Adversary,
) -> None:
    cap = gaussian_mu2_cap(eps, delta)
    strong = brief_root(cap, steps)
    edges = (Fraction(-edge, 2), Fraction(edge, 2)) if edge else (Fraction(0),)
    mechanisms = [binned(strong, edges), binned(strong / (ratio + 1), edges)]
    alone = Filter(((MU2, cap),), 0)
    assert excess(alone, mechanisms, adversary, eps)[0] <= real(delta) + ROUNDED
    named = filter_for(ApproxBudget(eps, delta), "combined-v2")
    assert excess(named, mechanisms, adversary, eps)[0] <= real(delta) + ROUNDED


def test_gaussian_noise_uses_most_of_the_delta_and_no_more() -> None:
    """Else the test above would say nothing; and a cap that is larger is noticed."""
    eps, delta = Fraction(1), Fraction(1, 20)
    cap = gaussian_mu2_cap(eps, delta)
    edges = tuple(Fraction(n, 2) for n in (-3, -1, 1, 3))
    one = binned(brief_root(cap, 5), edges)
    found, longest = excess(Filter(((MU2, cap),), 0), [one], greedy_noise, eps)
    assert longest == 5
    assert real(delta * 8 / 10) < found <= real(delta) + ROUNDED
    wider = Filter(((MU2, cap * 3 // 2),), 0)
    assert excess(wider, [one], greedy_noise, eps)[0] > real(delta)
