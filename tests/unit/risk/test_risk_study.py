"""What is shown of people: against counting, and never without saying for whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, exp, hypot, inf, nan, nextafter, sqrt

import numpy as np
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.influences import influence
from samples.risk_studies import COUNT, FOUR, GAUSSIAN, STUDIES, SUM, TAU

from modicum.core.errors import InputError, InvariantError
from modicum.core.rationals import rational
from modicum.risk.choice import Claim
from modicum.risk.indicator import Indicator
from modicum.risk.noise import LaplaceNoise, Noise
from modicum.risk.profile import Profile
from modicum.risk.study.candidates import counted, group_sizes, of_any_table, of_people
from modicum.risk.study.histograms import histogram
from modicum.risk.study.rounding import at_least, at_most, near
from modicum.risk.study.study import (
    CONTROLLER_ONLY,
    STUDY_ONLY,
    Candidate,
    Observed,
    Reference,
    Spread,
    Study,
)

MOVES = st.sampled_from([0.0, 0.1, 0.25, 1.0, 1.5, 3.0, 1e6])
PEOPLE = st.lists(st.lists(MOVES, max_size=3), min_size=1, max_size=30)
EPSILON = st.sampled_from([*FOUR, Fraction(1, 3), Fraction(10)])


def ranked(numbers: Sequence[float], share: Fraction) -> float:
    return sorted(numbers)[max(1, ceil(share * len(numbers))) - 1]


def spread_of(numbers: Sequence[float]) -> list[float]:
    shares = [Fraction(0), Fraction(1, 2), Fraction(99, 100), Fraction(1)]
    return [ranked(numbers, share) for share in shares]


def told(spread: Spread | None) -> list[float | None]:
    assert spread is not None
    return [spread.least, spread.median, spread.p99, spread.greatest]


def indicator_of(moves: Sequence[float], noise: Noise, epsilon: Fraction) -> float:
    """Return one person's published indicator, by its definition."""
    width, k = float(noise.width(epsilon)), noise.dimensions
    if isinstance(noise, LaplaceNoise):
        return sum(moves) + k * width
    return hypot(*moves, sqrt(k) * width)


# --- candidates -----------------------------------------------------------------------


@settings(max_examples=examples(150))
@given(PEOPLE, EPSILON, st.sampled_from([COUNT, GAUSSIAN]), st.data())
def test_spreads_are_those_of_people_one_by_one(
    people: list[list[float]], epsilon: Fraction, noise: Noise, data: st.DataObject
) -> None:
    noise = replace(noise, dimensions=3)
    some = data.draw(st.lists(st.integers(0, len(people) - 1), unique=True))
    every = influence(people, dimensions=3, groups={"some": some})
    (found,) = of_people(Indicator(every, noise), [epsilon], groups=["some"])
    alone = [indicator_of(moves, noise, epsilon) for moves in people]
    assert told(found.rdr) == pytest.approx(spread_of(alone), rel=1e-12)
    assert found.half_width == noise.half_width(epsilon)
    if some:
        expected = spread_of([alone[place] for place in some])
        assert told(found.groups[0]) == pytest.approx(expected, rel=1e-12)
    else:
        assert found.groups == (None,)
    assert group_sizes(Indicator(every, noise), ["some"])[0].people == len(some)


@settings(max_examples=examples(60))
@given(PEOPLE, EPSILON)
def test_exact_indicators_of_several_coordinates(
    people: list[list[float]], epsilon: Fraction
) -> None:
    """The one case in which indicators do not follow from distances."""
    noise = LaplaceNoise(Fraction(1), 3)
    seen = Indicator(influence(people, dimensions=3), noise, "exact")
    (found,) = of_people(seen, [epsilon])
    b = float(1 / epsilon)
    moves = [[*one, 0.0, 0.0, 0.0][:3] for one in people]
    alone = [sum(d + b * exp(-d / b) for d in one) for one in moves]
    assert told(found.rdr) == pytest.approx(spread_of(alone), rel=1e-12)


@pytest.mark.spec("RSK-4")
@settings(max_examples=examples(150))
@given(PEOPLE, EPSILON, st.sampled_from([COUNT, SUM, GAUSSIAN]))
def test_own_losses_are_the_least_floats_that_are_no_less(
    people: list[list[float]], epsilon: Fraction, noise: Noise
) -> None:
    seen = Indicator(influence(people), noise)
    (found,) = of_people(seen, [epsilon])
    distances = [seen.distance(share) for share in (0.0, 0.5, 0.99, 1.0)]
    for loss, distance in zip(told(found.losses), distances, strict=True):
        exact = rational(distance) / noise.width(epsilon)
        assert loss is not None
        assert rational(loss) >= exact  # A float stands for its shortest decimal.
        assert loss == 0 or rational(nextafter(loss, 0)) < exact
    # The histogram of losses has the same numbers.
    bins = counted(seen, epsilon, quantity="own-loss").bins
    assert (bins[0].low, bins[-1].high) == (
        told(found.losses)[0],
        told(found.losses)[3],
    )


def test_who_moves_the_answer_by_the_sensitivity_loses_epsilon_itself() -> None:
    for epsilon in (*FOUR, Fraction(3, 10)):
        seen = Indicator(influence([[1600.0]]), SUM)
        (found,) = of_people(seen, [epsilon])
        assert at_most(told(found.losses)[3] or nan) == str(
            float(epsilon)
        ).removesuffix(".0")


def test_candidates_rise_and_stand_there_once() -> None:
    seen = Indicator(influence([[1.0]]), COUNT)
    found = of_people(seen, [Fraction(2), Fraction(1), Fraction(2)])
    assert [one.epsilon for one in found] == [1, 2]


def test_groups_that_are_not_there() -> None:
    seen = Indicator(influence([[1.0]]), COUNT)
    for ask in (
        lambda: of_people(seen, FOUR, groups=["old"]),
        lambda: group_sizes(seen, ["old"]),
    ):
        with pytest.raises(InputError, match="unknown group `old`"):
            ask()


def test_only_a_choice_that_may_be_released_holds_for_any_table() -> None:
    with pytest.raises(InputError, match="depend on rows"):
        of_any_table(STUDIES["count"].choice)
    shown = STUDIES["public"]
    assert [one.rdr and one.rdr.ratio for one in shown.candidates] == [
        pytest.approx(float(1 / (1 + one.epsilon))) for one in shown.candidates
    ]


# --- spreads and studies --------------------------------------------------------------


@given(st.lists(st.floats(0, 1e300), min_size=4, max_size=4))
def test_parts_of_the_greatest(numbers: list[float]) -> None:
    least, median, p99, greatest = sorted(numbers)
    spread = Spread(least, greatest, median, p99)
    assert spread.part(greatest) == 1
    assert 0 <= spread.ratio <= spread.part(median) <= spread.part(p99) <= 1
    if greatest:
        assert spread.ratio == least / greatest


def test_how_alike_people_are_is_unknown_if_one_is_infinite() -> None:
    assert Spread(1.0, inf).ratio == 0
    assert Spread(inf, inf).ratio == 0
    assert Spread(0.0, 0.0).ratio == 1


@pytest.mark.parametrize(
    "numbers",
    [(nan, 1.0), (2.0, 1.0), (-1.0, 1.0), (0.0, 1.0, 2.0), (0.0, 1.0, 0.5, 0.4)],
)
def test_spreads_that_are_none(numbers: tuple[float, ...]) -> None:
    with pytest.raises(InvariantError):
        Spread(*numbers)


@pytest.mark.spec("RSK-1")
def test_whatever_was_counted_says_for_whom_it_is() -> None:
    """Also beside a choice that may itself be released."""
    people, public = STUDIES["count"], STUDIES["public"]
    assert people.notice == CONTROLLER_ONLY
    assert public.notice is None
    assert replace(people, choice=public.choice).notice == CONTROLLER_ONLY
    claimed = replace(public.choice, claim=Claim.EXPERIMENTAL, charge=None)
    assert replace(public, choice=claimed).notice == STUDY_ONLY
    assert repr(people) == "<Study: controller only: not for release>"
    assert repr(public) == "<Study: public>"


def test_studies_that_contradict_themselves() -> None:
    people, public = STUDIES["two groups"], STUDIES["public"]
    bare = Spread(1.0, 2.0)
    wrong: list[tuple[Study, dict[str, object]]] = [
        (public, {"candidates": people.candidates}),
        (people, {"candidates": public.candidates}),
        (people, {"candidates": people.candidates[::-1]}),
        (people, {"candidates": people.candidates[:1] * 2}),
        (people, {"seen": Observed(5)}),
        (public, {"candidates": (Candidate(TAU, 1.0, bare, bare),)}),
        (public, {"candidates": (Candidate(TAU, 1.0, None),)}),
        (public, {"candidates": (Candidate(TAU, 1.0, Spread(1, 2, 1)),)}),
    ]
    for study, changed in wrong:
        with pytest.raises(InvariantError):
            replace(study, **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0.0, nan, inf, -inf])
def test_an_answer_that_nothing_is_a_part_of(value: float) -> None:
    with pytest.raises(InputError, match="cannot be relative to the answer"):
        Reference(value, "public")


def test_what_was_chosen_among_the_candidates() -> None:
    shown = STUDIES["count"]
    assert shown.chosen is shown.candidates[2]
    assert replace(shown, candidates=shown.candidates[:2]).chosen is None
    assert STUDIES["nobody"].chosen is None


# --- histograms -----------------------------------------------------------------------


@settings(max_examples=examples(200))
@given(
    st.lists(
        st.one_of(st.floats(0, 1e12), st.integers(0, 20).map(float)),
        max_size=80,
    )
)
def test_everybody_is_counted_once_where_she_belongs(numbers: list[float]) -> None:
    values, people = np.unique(numbers, return_counts=True)
    bins = histogram(Profile(values, people), epsilon=TAU, quantity="rdr").bins
    assert sum(one.people for one in bins) == len(numbers)
    last = bins[-1].high if bins else nan
    for one in bins:
        same = one.low == one.high
        inside = [
            x
            for x in numbers
            if (
                x == one.low
                if same
                else one.low <= x < one.high or x == one.high == last
            )
        ]
        assert len(inside) == one.people > 0
    if numbers:
        assert bins[0].low == min(numbers)
        assert last == max(numbers)
    if len(values) <= 12:
        assert [one.low for one in bins] == list(values)
    assert len(bins) <= 24


def test_a_number_on_a_border_belongs_to_the_upper_bin() -> None:
    values = np.arange(25.0)  # 24 bins, with a border at each of them.
    profile = Profile(values, np.arange(1, 26))
    bins = histogram(profile, epsilon=TAU, quantity="rdr").bins
    counts = [(one.low, one.high, one.people) for one in bins]
    assert counts == [(n, n + 1, n + 1) for n in range(23)] + [(23, 24, 24 + 25)]


def test_who_is_not_in_a_group_has_no_bar() -> None:
    profile = Profile(np.array([1.0, 2.0, 3.0]), np.array([0, 4, 0]))
    (one,) = histogram(profile, epsilon=TAU, quantity="rdr").bins
    assert (one.low, one.high, one.people) == (2.0, 2.0, 4)


def test_numbers_that_are_hardly_apart() -> None:
    values = [1.0]
    for _ in range(15):
        values.append(nextafter(values[-1], 2))
    profile = Profile(np.array(values), np.ones(16, dtype=np.int64))
    bins = histogram(profile, epsilon=TAU, quantity="rdr").bins
    assert sum(one.people for one in bins) == 16


# --- numbers in words -----------------------------------------------------------------


def parsed(text: str) -> Fraction:
    return Fraction(text.replace(",", ""))


@given(st.floats(0, allow_infinity=False))
def test_losses_round_up_and_ratios_down(value: float) -> None:
    up, down, by = parsed(at_most(value)), parsed(at_least(value)), Fraction(1, 999)
    exact = rational(value)
    assert exact <= up <= exact * (1 + by)
    assert exact * (1 - by) <= down <= exact
    assert abs(parsed(near(value)) - exact) <= exact * by


@given(st.integers(0, 9999), st.integers(-12, 12))
def test_numbers_of_four_digits_stay_as_they_are(digits: int, power: int) -> None:
    value = float(f"{digits}e{power}")
    for write in (near, at_most, at_least):
        assert parsed(write(value)) == Fraction(f"{digits}e{power}")


def test_the_largest_numbers_and_the_least() -> None:
    assert at_most(inf) == near(inf) == "infinite"
    assert at_most(1.7976931348623157e308) == "1.798e308"
    assert at_most(5e-324) == at_least(5e-324) == near(5e-324) == "5e-324"
