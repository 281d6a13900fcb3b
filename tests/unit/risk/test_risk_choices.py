"""What a choice is told with, what it costs, and what must not be."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples.influences import Scripted, Silent, influence, merged

from modicum.accounting.conversions.profiles import gaussian_delta
from modicum.accounting.curves import Curve
from modicum.accounting.mechanisms import (
    discrete_laplace,
    sparse_vector,
    sparse_vector_one_threshold,
)
from modicum.accounting.named_mechanisms import curve_of_kind, kind_named
from modicum.core.errors import InvariantError
from modicum.risk.choice import Charge, Choice, Claim, Selection
from modicum.risk.indicator import Indicator
from modicum.risk.losses import person_deltas, person_losses
from modicum.risk.noise import GaussianNoise, LaplaceNoise
from modicum.risk.profile import Profile
from modicum.risk.selection.data_independent import data_independent
from modicum.risk.selection.find_release import (
    find_and_release,
    find_and_release_published,
)
from modicum.risk.selection.priorities import Priority, by_priority
from modicum.risk.selection.private_selection import private_selection
from modicum.risk.selection.published import find_from_rdr
from modicum.risk.selection.rows import CLASSICAL, LESS_THAN_NOISE, UNPROVEN
from modicum.risk.selection.sparse_vector import PrivateSearch
from modicum.risk.selection.spread import STEPS, Spread
from modicum.risk.selection.thresholds import (
    GroupsAlike,
    RatioAtLeast,
    Statistic,
    Threshold,
    VarianceAtMost,
)

COUNT = LaplaceNoise(Fraction(1))
DELTA = Fraction(1, 10**9)
CLASSIC = GaussianNoise(Fraction(1), DELTA, 1, "published")
HALVES = merged(influence([[], [1.0]]), [500, 500])


@pytest.mark.spec("RSK-1")
def test_the_claims_have_these_texts() -> None:
    assert [claim.value for claim in Claim] == [
        "dp",
        "controller-only advice",
        "experimental",
    ]


@pytest.mark.spec("RSK-1")
def test_a_promise_without_a_price_cannot_be_made_nor_a_price_without_a_promise() -> (
    None
):
    release = Charge(COUNT.described(Fraction(1)))
    with pytest.raises(InvariantError):
        Choice(Fraction(1), Claim.DP, "m", "w")
    with pytest.raises(InvariantError):
        Choice(Fraction(1), Claim.DP, "m", "w", charge=Charge(None))
    with pytest.raises(InvariantError):
        Choice(None, Claim.DP, "m", "w", charge=release)
    for claim in (Claim.ADVICE, Claim.EXPERIMENTAL):
        with pytest.raises(InvariantError):
            Choice(Fraction(1), claim, "m", "w", charge=release)


@pytest.mark.spec("RSK-1")
def test_what_is_not_dp_prints_no_number() -> None:
    found = find_from_rdr(Indicator(HALVES, COUNT), [RatioAtLeast.of("0.3")])
    assert found.epsilon == 2
    assert repr(found) == (
        "<Choice find-epsilon-from-rdr: controller only: not for release>"
    )
    assert str(found) == repr(found)


@pytest.mark.spec("RSK-7")
def test_the_price_of_a_selection_is_no_less_than_that_of_its_discrete_noise() -> None:
    """Why it is not priced as with continuous noise: that would be too little."""
    half = Fraction(1, 2)
    spent = Selection(half, half)
    assert spent.described() == {
        "kind": "sparse-vector-one-threshold",
        "eps-threshold": "0.5",
        "eps-queries": "0.5",
    }
    one, none = Fraction(1), Fraction(1, 10**9)
    threshold = discrete_laplace(sensitivity_l1=1, scale=one)
    continuous = sparse_vector(eps_threshold=one, eps_queries=none, positives=1)
    priced = sparse_vector_one_threshold(eps_threshold=one, eps_queries=none)
    for order in (Fraction(3, 2), Fraction(2), Fraction(16)):
        assert continuous.at(order) < threshold.at(order) <= priced.at(order)


@pytest.mark.spec("RSK-7")
def test_what_is_charged_can_be_priced() -> None:
    """By the table of kinds, as it is described: each at what it promises."""
    search = PrivateSearch.of(Silent(), Fraction(3, 4))
    for noise in (COUNT, LaplaceNoise(Fraction(7, 3), 2), CLASSIC):
        choice = private_selection(
            HALVES,
            noise,
            tau=0.5,
            allowance=600,
            search=search,
            own_rows_only=True,
        )
        assert choice.charge is not None
        assert choice.charge.selection is not None
        selected = _price(choice.charge.selection.described())
        assert selected.eps == Fraction(3, 4)
        assert choice.charge.release is not None
        assert choice.epsilon is not None
        result = dict(choice.charge.release)
        change = Fraction(result.pop("l1", "") or result.pop("l2"))
        paid = _price({**result, "sensitivity": str(change)})
        if isinstance(noise, LaplaceNoise):
            assert paid.eps <= choice.epsilon
            assert paid.eps >= choice.epsilon * (1 - Fraction(1, 10**18))
        else:
            mu2 = (change / Fraction(result["sigma"])) ** 2
            assert paid.rho == mu2 / 2
            assert gaussian_delta(mu2, choice.epsilon) <= noise.delta


def _price(result: Mapping[str, str]) -> Curve:
    kind = kind_named(result["kind"])
    values = {name: Fraction(text) for name, text in result.items() if name != "kind"}
    return curve_of_kind(kind, values)


def test_json_holds_plain_values() -> None:
    noise = GaussianNoise(Fraction(1), DELTA, 3)
    choice = data_independent(noise, tau="0.9", candidates=[1, "0.5", 100])
    result = json.loads(json.dumps(choice.to_dict(), allow_nan=False))
    assert result["epsilon"] == 1
    assert result["claim"] == "dp"
    assert [row["passes"] for row in result["rows"]] == [True, True, False]
    assert result["charge"]["release"]["kind"] == "gaussian"
    assert result["charge"]["selection"] is None
    assert result["uncapped"] > 1
    sigma = Fraction(result["charge"]["release"]["sigma"])
    assert gaussian_delta(1 / sigma**2, Fraction(1)) <= DELTA


@pytest.mark.spec("RSK-5")
def test_without_candidates_the_closed_form_is_chosen() -> None:
    assert data_independent(COUNT, tau="0.25").epsilon == 3
    assert data_independent(LaplaceNoise(Fraction(7), 6), tau="0.75").epsilon == 2
    refusal = data_independent(COUNT, tau=1)
    assert refusal.epsilon is None
    assert refusal.claim is Claim.DP
    assert refusal.charge is None
    wide = GaussianNoise(Fraction(1), DELTA, 1, "published")
    broken = data_independent(wide, tau="0.1")
    assert broken.epsilon is None  # It would be 64, which this noise does not reach.
    assert broken.uncapped is not None
    assert broken.uncapped > 60
    assert UNPROVEN in broken.caveats


@pytest.mark.parametrize(
    ("tau", "epsilon"),
    [("0.95", 0.343), ("0.75", 0.944), ("0.5", 1.84), ("0.25", 3.98), ("0.05", 20.0)],
)
def test_the_expectation_allows_more_than_its_bound(tau: str, epsilon: float) -> None:
    """A count: the published bound is loose, so its epsilons are small."""
    near = [
        Fraction(round(epsilon * factor, 6)).limit_denominator(10**6)
        for factor in (0.995, 1.005)
    ]
    people = Indicator(HALVES, COUNT, "exact")
    for choice in (
        data_independent(COUNT, tau=tau, candidates=near, form="exact"),
        find_from_rdr(people, [RatioAtLeast.of(tau)], candidates=near),
    ):
        assert choice.epsilon == near[0]
        assert [row.passes for row in choice.rows] == [True, False]


def test_groups_are_compared_by_their_statistic() -> None:
    """Nobody in a hundred moves the answer, but one: the median does not see her."""
    everybody: list[list[float]] = [*([] for _ in range(199)), [1.0]]
    groups = {"a": list(range(100)), "b": list(range(100, 200))}
    seen = Indicator(influence(everybody, groups=groups), COUNT)
    found = {}
    statistics: tuple[Statistic, ...] = ("max", "p99", "median")
    for statistic in statistics:
        threshold = GroupsAlike.of("0.5", ["a", "b"], statistic)
        found[statistic] = find_from_rdr(seen, [threshold]).epsilon
    assert found == {"max": 1, "p99": 10, "median": 10}
    both: list[Threshold] = [
        GroupsAlike.of("0.5", ["a", "b"], "max"),
        RatioAtLeast.of("0.75"),
    ]
    assert find_from_rdr(seen, both).epsilon == Fraction(3, 10)


def test_no_variance_is_none_where_people_are_alike() -> None:
    """Also in floats: three tenths do not average to a tenth."""
    alike = merged(influence([[0.1]]), [3])
    for noise in (COUNT, CLASSIC):
        found = find_from_rdr(Indicator(alike, noise), [VarianceAtMost.of(0)])
        assert found.epsilon == 10
    unlike = find_from_rdr(Indicator(HALVES, COUNT), [VarianceAtMost.of(0)])
    assert unlike.epsilon is None
    assert unlike.claim is Claim.ADVICE


def test_the_variance_is_over_the_square_of_the_greatest() -> None:
    """Half at 1/e, half at 1 + 1/e: (1/2 e/(1 + e))**2 is 1/16 at 1."""
    seen = Indicator(HALVES, COUNT)
    assert find_from_rdr(seen, [VarianceAtMost.of("0.0625")]).epsilon == 1
    assert find_from_rdr(seen, [VarianceAtMost.of("0.0624")]).epsilon == Fraction(9, 10)


def test_the_published_search_is_the_published_test_without_noise() -> None:
    search = PrivateSearch.of(Silent(), 1)
    seen = Indicator(HALVES, COUNT)
    spread = Spread.of("0.0625", 1000)
    found = find_and_release_published(seen, spread, search=search)
    assert found.epsilon == 1
    assert {
        row.epsilon: row.passes for row in found.rows if row.passes is not None
    } == {
        **{Fraction(e): False for e in range(2, 11)},
        Fraction(1): True,
    }
    none = merged(influence([[]]), [0])
    empty = find_and_release_published(Indicator(none, COUNT), spread, search=search)
    assert empty.epsilon == 10


def test_the_published_noise_has_the_published_scale() -> None:
    """1/(n eps') and 2/(n eps'') on the variance, which is counted in 1/(n STEPS)."""
    draws = Scripted([0, 0])
    search = PrivateSearch.of(draws, 1, [1])
    spread = Spread.of("0.0625", 1000)
    find_and_release_published(Indicator(HALVES, COUNT), spread, search=search)
    first, second = search.spent.eps_threshold, search.spent.eps_queries
    in_variance = [scale / (1000 * STEPS) for scale in draws.scales]
    assert in_variance == [1 / (1000 * first), 2 / (1000 * second)]
    assert float(second / first) == pytest.approx(2 ** (2 / 3), rel=1e-5)


def test_caveats_say_what_is_weak() -> None:
    advice = find_from_rdr(Indicator(HALVES, CLASSIC), [RatioAtLeast.of("0.5")])
    assert CLASSICAL in advice.caveats
    search = PrivateSearch.of(Silent(), 1)
    for tau, weak in (("1e-6", True), ("0.1", False)):
        spread = Spread.of(tau, 1000)
        for choice in (
            find_and_release(HALVES, COUNT, spread, search=search, own_rows_only=True),
            find_and_release_published(Indicator(HALVES, COUNT), spread, search=search),
        ):
            assert (LESS_THAN_NOISE in choice.caveats) == weak
    for allowance, weak in ((1, True), (100, False)):
        choice = private_selection(
            HALVES,
            CLASSIC,
            tau=0.5,
            allowance=allowance,
            search=search,
            own_rows_only=True,
        )
        assert (LESS_THAN_NOISE in choice.caveats) == weak
        assert UNPROVEN in choice.caveats
        unproven = [row for row in choice.rows if not CLASSIC.proven(row.epsilon)]
        assert unproven
        assert all(row.passes is False for row in unproven)


@pytest.mark.spec("RSK-11")
@given(
    st.dictionaries(st.text(max_size=3), st.integers(1, 50), min_size=1, max_size=7),
    st.fractions(Fraction(1, 10**6), 20),
)
def test_a_cap_is_split_and_kept(weights: dict[str, int], cap: Fraction) -> None:
    requests = {name: Priority.of(weight, COUNT) for name, weight in weights.items()}
    found = by_priority(cap, requests)
    shares = {name: choice.epsilon for name, choice in found.items()}
    total = Fraction(0)
    for name, share in shares.items():
        assert share is not None
        exact = cap * weights[name] / sum(weights.values())
        assert 0 <= exact - share < Fraction(1, 10**12)
        total += share
        charge = found[name].charge
        assert charge is not None
        assert charge.release is not None
        assert 1 / Fraction(charge.release["scale"]) <= share
        assert found[name].claim is Claim.DP
    assert total <= cap


@pytest.mark.spec("RSK-11")
def test_a_share_that_the_noise_does_not_reach_is_refused() -> None:
    found = by_priority(40, {"a": Priority.of(3, CLASSIC), "b": Priority.of(1, COUNT)})
    assert found["a"].epsilon is None
    assert found["a"].charge is None
    assert found["b"].epsilon == 10


@pytest.mark.spec("RSK-4")
@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=6, unique=True),
    st.fractions(Fraction(1, 1000), 50),
    st.sampled_from([Fraction(1), Fraction(1, 3), Fraction(99_999)]),
)
def test_nobodys_loss_is_understated(
    distances: list[float], epsilon: Fraction, sensitivity: Fraction
) -> None:
    values = np.array(sorted(distances))
    profile = Profile(values, np.arange(1, len(values) + 1))
    found = person_losses(profile, LaplaceNoise(sensitivity), epsilon=epsilon)
    assert found.total == profile.total
    for rank in range(1, profile.total + 1):
        share = rank / profile.total
        exact = epsilon * Fraction(profile.quantile(share)) / sensitivity
        result = Fraction(found.quantile(share))
        assert (
            exact <= result <= exact * (1 + Fraction(1, 10**15)) + Fraction(1, 2**1070)
        )


@pytest.mark.spec("RSK-4")
@given(
    st.fractions(Fraction(1, 1000), 50),
    st.fractions(Fraction(1, 1000), 10**6),
    st.just(1.0) | st.floats(0, 1),
)
def test_who_moves_no_more_than_anybody_can_loses_no_more_than_epsilon(
    epsilon: Fraction, sensitivity: Fraction, share: float
) -> None:
    most = float(sensitivity)
    most = most if most <= sensitivity else math.nextafter(most, 0)
    profile = Profile(np.array([most * share]), np.array([1]))
    result = person_losses(profile, LaplaceNoise(sensitivity), epsilon=epsilon).greatest
    assert Fraction(math.nextafter(result, 0)) < epsilon


@pytest.mark.spec("RSK-4")
def test_who_moves_as_much_as_anybody_can_loses_epsilon() -> None:
    for epsilon, sensitivity in ((1.0, 1), (0.1, 1), (0.5, 3), (7.0, 99_999)):
        values = np.array([float(sensitivity), np.nextafter(sensitivity, np.inf)])
        noise = LaplaceNoise(Fraction(sensitivity))
        found = person_losses(
            Profile(values, np.array([1, 1])), noise, epsilon=Fraction(str(epsilon))
        )
        assert found.least == epsilon
        assert found.greatest > epsilon  # She moves it farther.


@pytest.mark.spec("RSK-4")
def test_everybodys_delta_is_that_of_her_own_noise() -> None:
    noise = GaussianNoise(Fraction(1), Fraction(1, 1000))
    people = influence([[1.0], [0.5], [], [0.3, 0.4]]).profile("l2")
    one = Fraction(1)
    mus = person_losses(people, noise, epsilon=one)
    found = person_deltas(mus, epsilon=one)
    assert found.total == 4
    assert found.least == 0.0
    sigma = noise.width(one)
    half = gaussian_delta((Fraction(1, 2) / sigma) ** 2, one)
    assert half <= Fraction(found.quantile(0.5)) <= half * (1 + Fraction(1, 10**12))
    assert found.greatest == pytest.approx(1e-3, rel=1e-9)
    huge = Profile(np.array([1e8]), np.array([1]))
    assert person_deltas(huge, epsilon=one).greatest == 1.0


@pytest.mark.spec("RSK-2")
def test_each_coordinate_has_noise_whether_it_moves_or_not() -> None:
    """Three coordinates at scale 1, of which one moves by 1: 3 + exp(-1)."""
    seen = Indicator(influence([[1.0]]), LaplaceNoise(Fraction(1), 3), "exact")
    assert seen.quantile(1.0, Fraction(1)) == pytest.approx(3 + np.exp(-1))


@pytest.mark.spec("RSK-2")
def test_indicators_that_are_equal_in_floats_are_counted_together() -> None:
    people = merged(influence([[1e-9], [2e-9]]), [3, 4])
    wide = Indicator(people, GaussianNoise(Fraction(1), DELTA))
    found = wide.profile(Fraction(1, 1000))
    assert len(wide.distances.values) == 2
    assert found.people.tolist() == [7]
    assert wide.variance(Fraction(1, 1000)) == 0.0
