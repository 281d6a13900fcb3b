"""The outlook, against users who are spread one round after the other."""

from __future__ import annotations

from fractions import Fraction

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.core.errors import Code, InputError
from modicum.planner import AtOnce, Choice, Rotation, Unlocking, look_ahead
from modicum.planner.outlook import (
    JOINING_MAX,
    OUTLOOK_ROUNDS_MAX,
    available,
    steady_from,
)


def choice(active: int, horizon: int, slack: Fraction = Fraction(2, 5)) -> Choice:
    return Choice("one", Rotation(active, horizon), Unlocking(active, slack))


def group_sizes(horizon: int, joining: list[int], last: int) -> list[Fraction]:
    """How large groups are if those who join are spread evenly over the next ones."""
    sizes = [Fraction(0)] * (last + horizon + 2)
    for round_ in range(last + 1):
        joined = joining[round_] if round_ < len(joining) else joining[-1]
        for group in range(round_ + 1, round_ + horizon + 1):
            sizes[group] += Fraction(joined, horizon)
    return sizes


@given(
    st.integers(1, 6),
    st.integers(1, 12),
    st.lists(st.integers(0, 1000), min_size=1, max_size=8),
    st.integers(1, 40),
)
@settings(max_examples=examples(80))
def test_users_are_those_of_the_active_groups(
    active: int, horizon: int, joining: list[int], rounds: int
) -> None:
    found = look_ahead(choice(active, horizon), joining, rounds=rounds)
    sizes = group_sizes(horizon, joining, rounds)
    assert [one.round for one in found.rounds] == list(range(1, rounds + 1))
    for one in found.rounds:
        groups = [g for g in range(1, rounds + 1) if 0 <= one.round - g < active]
        assert one.groups == len(groups)
        assert one.users == sum(sizes[g] for g in groups)
        assert one.users_newest == sizes[groups[-1]]
        assert one.users_oldest == sizes[groups[0]]


@given(
    st.integers(1, 6),
    st.integers(1, 12),
    st.lists(st.integers(0, 3), min_size=1, max_size=8),
)
@settings(max_examples=examples(80))
def test_it_is_steady_from_the_round_that_is_said(
    active: int, horizon: int, joining: list[int]
) -> None:
    first = steady_from(Rotation(active, horizon), joining)
    found = look_ahead(choice(active, horizon), joining, rounds=first + 20)
    assert found.steady_from == first
    assert all(one.users == found.users_steady for one in found.rounds[first - 1 :])
    sizes = group_sizes(horizon, joining, first + 20)
    final = Fraction(joining[-1])
    oldest = first - active + 1
    assert all(size == final for size in sizes[oldest : first + 20])


def test_it_is_not_steady_before() -> None:
    for joining in ([5], [50, 5], [0, 5], [5, 5, 9, 5]):
        found = look_ahead(choice(3, 8), joining, rounds=40)
        assert found.rounds[found.steady_from - 2].users != found.users_steady


def test_the_weekly_example_of_two_years() -> None:
    """Once steady, as many users are active as join in as many rounds as are active."""
    found = look_ahead(choice(12, 104), [60480], rounds=116)
    assert found.steady_from == 115
    assert found.users_steady == 12 * 60480
    assert found.rounds[0].users == Fraction(60480, 104)
    assert [one.greedy * 12 for one in found.rounds[:13]] == (
        [Fraction(7, 5)] * 6 + [Fraction(3, 5)] * 6 + [Fraction(7, 5)]
    )
    assert [one.balanced * 12 for one in found.rounds[10:13]] == [Fraction(7, 5), 1, 1]
    assert found.unlocked[5] == Fraction(7, 10)


@given(st.integers(1, 8), st.fractions(0, 1, max_denominator=9), st.fractions(0, 1))
@settings(max_examples=examples(80))
def test_available_is_what_the_fullest_group_has(
    rounds: int, slack: Fraction, use: Fraction
) -> None:
    for schedule in (Unlocking(rounds, slack), AtOnce(rounds)):
        found = available(schedule, 3 * rounds, use=use)
        used = [min(use, most) for most in found]
        for now, most in enumerate(found):
            left = [
                schedule.share(now - born + 1) - sum(used[born:now])
                for born in range(max(0, now - rounds + 1), now + 1)
            ]
            assert most == min(left)


@pytest.mark.parametrize(
    ("joining", "rounds"),
    [
        ([], 5),
        ([1, -1], 5),
        ([1, JOINING_MAX + 1], 5),
        ([1], 0),
        ([1], OUTLOOK_ROUNDS_MAX + 1),
    ],
)
def test_numbers_out_of_range(joining: list[int], rounds: int) -> None:
    with pytest.raises(InputError) as caught:
        look_ahead(choice(12, 104), joining, rounds=rounds)
    assert caught.value.code is Code.OUT_OF_RANGE


def test_a_group_is_unlocked_for_as_long_as_it_is_active() -> None:
    with pytest.raises(InputError) as caught:
        Choice("one", Rotation(active=12), Unlocking(11, Fraction(0)))
    assert "11 rounds" in caught.value.problems[0].message
