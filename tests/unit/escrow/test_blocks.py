"""Scores of blocks: what one person moves, in all small tables, and what it costs."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product

import pytest
from oracle import blocks as oracle

from modicum.accounting import mechanisms
from modicum.accounting.grid import EPS, RHO
from modicum.core.errors import InputError
from modicum.core.rationals import LOSS_UNIT
from modicum.escrow.blocks import (
    BLOCKS_MAX,
    SENSITIVITY,
    ByBlocks,
    in_scores,
    mean_of,
    steps_of,
    sum_of,
)
from modicum.escrow.programs import STEPS, Range

SPANS = [
    Range(Fraction(0), Fraction(1)),
    Range(Fraction(-1, 3), Fraction(7)),
    Range(Fraction(10**12), Fraction(10**12) + Fraction(1, 1000)),
]
#: Scores that a sandbox tells, and ones that it never should.
TOLD = [None, math.nan, math.inf, -math.inf, -5.0, 0.0, 1e-300, 0.4, 1 / 3, 7.0, 1e308]


# --- how far one person moves it -----------------------------------------------------


def mean_here(
    people: oracle.People,
    blocks: tuple[int, ...],
    number: int,
    score: oracle.Score,
    span: Range,
) -> tuple[int, Fraction]:
    """Return the sum in steps, and the mean, as modicum has them."""
    found = [
        score(frozenset((who, what) for who, what in people.items()
                        if blocks[who] == block))
        for block in range(number)
    ]  # fmt: skip
    total = sum_of(found, span)
    return total, span.low + in_scores(Fraction(total), number, span)


@pytest.mark.spec("ESC-10")
@pytest.mark.parametrize("number", [2, 3, 5])
@pytest.mark.parametrize("span", SPANS)
def test_the_worst_change_of_one_person_is_the_width_by_the_blocks(
    number: int, span: Range
) -> None:
    """Of all tables, all ways to divide them, and worst programs: it is reached."""
    values, ends = ("a", "b"), (span.low, span.high)
    dice = random.Random(7)
    contents = [frozenset(one.items()) for one in oracle.tables(2, values)]
    programs = [
        dict(zip(contents, dice.choices(TOLD, k=len(contents)), strict=True))
        for _ in range(3)
    ]
    # The worst program tells somebody from everybody else.
    programs += [{one: 1e99 if one == contents[4] else -1e99 for one in contents}]
    reached = Fraction(0)
    for found, blocks in product(programs, product(range(number), repeat=2)):
        for people in oracle.tables(2, values):
            here = mean_here(people, blocks, number, found.__getitem__, span)
            assert here[1] == oracle.mean(
                people, blocks, number, found.__getitem__, ends
            )
            for who in (0, 1):
                for other in oracle.neighbors(people, who, values):
                    there = mean_here(other, blocks, number, found.__getitem__, span)
                    assert abs(here[0] - there[0]) <= SENSITIVITY
                    reached = max(reached, abs(here[1] - there[1]))
    assert reached == span.width / number
    assert reached == in_scores(Fraction(SENSITIVITY), number, span)


@pytest.mark.spec("ESC-10")
@pytest.mark.parametrize("span", SPANS)
def test_whatever_a_sandbox_tells_is_a_step_of_the_range(span: Range) -> None:
    for score in TOLD:
        steps = steps_of(score, span)
        assert 0 <= steps <= STEPS
        if score is None or not math.isfinite(score):
            assert 2 * steps == STEPS
        else:
            nearest = span.clamp(Fraction(score))
            off = abs(span.low + steps * span.width / STEPS - nearest)
            assert off <= span.width / STEPS / 2
    assert steps_of(float(span.high) * 2 + 1, span) == STEPS
    assert steps_of(float(span.low) - 1, span) == 0


@pytest.mark.parametrize("number", [2, 7])
@pytest.mark.parametrize("span", SPANS)
def test_what_is_told_is_the_mean_on_the_grid_and_in_the_range(
    number: int, span: Range
) -> None:
    assert mean_of(0, number, span) == span.low
    assert mean_of(number * STEPS, number, span) == span.high
    assert mean_of(number * STEPS + 10**30, number, span) == span.high
    assert mean_of(-(10**30), number, span) == span.low
    for total in (1, STEPS // 3, number * STEPS - 1):
        result = mean_of(total, number, span)
        exact = span.low + span.width * Fraction(total, number * STEPS)
        assert abs(result - exact) <= span.width / STEPS / 2
        assert ((result - span.low) * STEPS / span.width).denominator == 1


# --- what it costs --------------------------------------------------------------------


@pytest.mark.spec("ESC-11")
@pytest.mark.parametrize("loss", ["0.001", "0.1", "1", "7.3"])
def test_its_noise_costs_what_is_asked_and_hardly_less(loss: str) -> None:
    epsilon = Fraction(loss)
    laplace = mechanisms.discrete_laplace(
        sensitivity_l1=SENSITIVITY, scale=ByBlocks(2, epsilon).scale
    )
    gaussian = mechanisms.discrete_gaussian(
        sensitivity_l2=Fraction(SENSITIVITY),
        sigma=ByBlocks(2, epsilon, noise="gaussian").scale,
    )
    for curve, place in ((laplace, EPS), (gaussian, RHO)):
        found = Fraction(curve.loss().coordinates[place], LOSS_UNIT)
        assert (
            epsilon * Fraction(9999, 10000) < found <= epsilon + Fraction(1, LOSS_UNIT)
        )


@pytest.mark.parametrize("number", [-1, 0, 1, BLOCKS_MAX + 1])
def test_there_are_at_least_two_blocks(number: int) -> None:
    with pytest.raises(InputError, match="blocks"):
        ByBlocks(number, Fraction(1))


@pytest.mark.parametrize("loss", [Fraction(0), Fraction(-1), Fraction(1, 3)])
def test_a_loss_is_a_decimal_above_0(loss: Fraction) -> None:
    with pytest.raises(InputError, match="invalid loss"):
        ByBlocks(2, loss)


def test_noise_is_laplace_or_gaussian() -> None:
    with pytest.raises(InputError, match="laplace or gaussian"):
        ByBlocks(2, Fraction(1), noise="none")  # type: ignore[arg-type]
