"""Unlocking: the published lists, Equation 1 word for word, mistakes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.core.errors import Code, InputError
from modicum.planner import AtOnce, Unlocking


@pytest.mark.parametrize(
    ("rounds", "listed"),
    [
        (6, "1.2 2.4 3.6 4.4 5.2 6.0"),
        (7, "1.2 2.4 3.6 4.6 5.4 6.2 7.0"),
    ],
)
def test_the_published_lists(rounds: int, listed: str) -> None:
    schedule = Unlocking(rounds, Fraction("0.2"))
    shares = [schedule.share(age) * rounds for age in range(1, rounds + 1)]
    assert shares == [Fraction(text) for text in listed.split()]


@given(st.integers(1, 60), st.fractions(0, 1))
@settings(max_examples=examples(100))
def test_equation_1(rounds: int, slack: Fraction) -> None:
    schedule = Unlocking(rounds, slack)
    for age in range(1, rounds + 1):
        total = Fraction(age)
        for _ in range(1, min(age, rounds // 2) + 1):
            total += slack
        for _ in range((rounds + 1) // 2 + 1, age + 1):
            total -= slack
        assert schedule.share(age) == total / rounds


@given(st.integers(1, 60), st.fractions(0, 1))
@settings(max_examples=examples(60))
def test_shares_rise_from_nothing_to_everything(rounds: int, slack: Fraction) -> None:
    for schedule in (Unlocking(rounds, slack), AtOnce(rounds)):
        shares = [schedule.share(age) for age in range(rounds + 4)]
        assert shares == sorted(shares)
        assert shares[0] == 0
        assert shares[rounds:] == [1] * 4
        assert sum(schedule.steps()) == 1
        assert len(schedule.steps()) == rounds
        assert schedule.most == max(schedule.steps())


def test_no_slack_is_even_and_full_slack_is_all_in_the_first_half() -> None:
    nothing, half = Fraction(0), Fraction(1, 2)
    assert Unlocking(4, nothing).steps() == (Fraction(1, 4),) * 4
    assert Unlocking(4, Fraction(1)).steps() == (half, half, nothing, nothing)
    assert Unlocking(1, Fraction(1)).steps() == (Fraction(1),)


def test_caps_are_rounded_down_and_may_be_beyond_a_machine_word() -> None:
    schedule = Unlocking(3, Fraction(0))
    assert [schedule.cap(100, age) for age in range(5)] == [0, 33, 66, 100, 100]
    assert schedule.cap(10**30 + 1, 1) == (10**30 - 1) // 3
    assert AtOnce(3).cap(100, 1) == 100
    assert AtOnce(3).cap(100, 0) == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: Unlocking(0, Fraction(0)),
        lambda: Unlocking(1041, Fraction(0)),
        lambda: Unlocking(12, Fraction(-1, 10**9)),
        lambda: Unlocking(12, 1 + Fraction(1, 10**9)),
        lambda: AtOnce(0),
        lambda: Unlocking(12, Fraction(0)).share(-1),
        lambda: Unlocking(12, Fraction(0)).cap(-1, 1),
        lambda: AtOnce(12).cap(1, -1),
    ],
)
def test_numbers_out_of_range(make: Any) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.code is Code.OUT_OF_RANGE
    assert caught.value.problems[0].help
