"""Scores of blocks of people, and their noisy mean: differentially private.

People are divided into blocks; the program runs on the exact answers about each block
alone; scores are clamped to their declared range, and their mean gets noise. This is
`sample and aggregate` with the mean as the aggregate (Nissim, Raskhodnikova & Smith
2007, "Smooth sensitivity and sampling in private data analysis"), on disjoint blocks.

**What is proven.** Let a row's block be a function of its id and of a key that is
independent of the data, and let the score of a block be any function of the block's
rows, in [low, high]. Tables are neighbors if only rows of one id differ: then all that
differs lies in one block, and one score changes, by at most high - low. So the mean of
B scores changes by at most (high - low) / B, whatever the query and the program do. It
holds for each key, and so for one that is drawn at random.

A unit's instances are identified by their ids and periods, and no relation of the
ledger changes anything outside one of them, or its id: a replacement takes over the id.
So this bound holds for each unit with the id of the blocks, timed or not, under any of
the relations (docs/spec/release.md). For a unit with another id it does not hold by
itself; what follows for one is found when the release is priced.

**No floats.** A score is a whole number of steps of its range, 0 to `STEPS`; the sum of
all is one integer that changes by at most `STEPS`, and discrete noise is added to that.
Everything after that is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import brief, number_text
from modicum.escrow.programs import STEPS, Range
from modicum.query.intervals import gaussian_scale, laplace_scale
from modicum.query.request import Noise

#: One block gains nothing, and the sandbox runs once for each.
BLOCKS_MIN: Final = 2
BLOCKS_MAX: Final = 1000
#: The score of a block without one: the middle of its range. It must not depend on
#: other blocks, nor be left out: that would change the number of scores.
MIDDLE: Final = STEPS // 2
#: The change of the sum of all scores by one id, in steps.
SENSITIVITY: Final = STEPS


@dataclass(frozen=True, slots=True)
class ByBlocks:
    """The parameters of a differentially private score on exact answers.

    Attributes:
        number: The number of blocks; each has a separate run.
        loss: The loss per instance of the unit: ε of `laplace`, ρ of `gaussian`.
        unit: The privacy unit that is divided, one without a period; empty for the
            only one of the policy.
        noise: The kind of noise.

    Raises:
        InputError: If there are too few blocks or too many, or the loss is not
            positive.
    """

    number: int
    loss: Fraction
    unit: str = ""
    noise: Noise = "laplace"

    def __post_init__(self) -> None:
        if not BLOCKS_MIN <= self.number <= BLOCKS_MAX:
            raise InputError(
                Problem(
                    Code.OUT_OF_RANGE,
                    f"people are split into {BLOCKS_MIN} to {BLOCKS_MAX} blocks,"
                    f" and not into {self.number}",
                )
            )
        if self.noise not in {"laplace", "gaussian"}:
            raise InputError(
                Problem(
                    Code.UNKNOWN_CHOICE,
                    "the noise of a score is laplace or gaussian",
                )
            )
        if self.loss <= 0 or "/" in number_text(self.loss):
            raise InputError(
                Problem(
                    Code.OUT_OF_RANGE,
                    f"invalid loss of a score: {brief(self.loss)}",
                    help="give a decimal above 0: eps of laplace, rho of gaussian",
                )
            )

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on the sum of all scores, in steps."""
        if self.noise == "laplace":
            return laplace_scale(SENSITIVITY, self.loss)
        return gaussian_scale(SENSITIVITY**2, self.loss)


def steps_of(score: float | None, span: Range) -> int:
    """Return a score as a whole number of steps above the minimum, 0 to `STEPS`.

    The result lies there for any input: the proof assumes nothing about sandboxes.

    Args:
        score: The score of a block; None if it has none.
        span: The range of scores; others are moved to the nearest end.

    Examples:
        >>> span = Range(Fraction(0), Fraction(2))
        >>> [steps_of(one, span) for one in (0.0, 0.5, 7.0, None, float("nan"))]
        [0, 250000000, 1000000000, 500000000, 500000000]
    """
    if score is None or not math.isfinite(score):
        return MIDDLE
    above = span.clamp(Fraction(score)) - span.low
    return round(above * STEPS / span.width)


def sum_of(scores: Iterable[float | None], span: Range) -> int:
    """Return the sum of the scores of all blocks, in steps.

    One id moves it by at most `SENSITIVITY`.
    """
    return sum(steps_of(one, span) for one in scores)


def mean_of(total: int, number: int, span: Range) -> Fraction:
    """Return the mean given by a sum of steps, in the range and on its grid.

    The sum includes its noise. If noise moves it out of the range, the result is the
    nearest end.

    Args:
        total: The sum, with noise.
        number: The number of blocks.
        span: The range of scores.

    Examples:
        >>> mean_of(2 * STEPS, 4, Range(Fraction(0), Fraction(1)))
        Fraction(1, 2)
        >>> mean_of(-17, 4, Range(Fraction(0), Fraction(1)))
        Fraction(0, 1)
    """
    steps = min(max(round(Fraction(total, number)), 0), STEPS)
    return span.low + steps * span.width / STEPS


def in_scores(steps: Fraction, number: int, span: Range) -> Fraction:
    """Return how much a change of the sum moves the mean.

    Args:
        steps: The change, in steps.
        number: The number of blocks.
        span: The range of scores.

    Examples:
        >>> in_scores(Fraction(SENSITIVITY), 20, Range(Fraction(0), Fraction(1)))
        Fraction(1, 20)
    """
    return steps / STEPS * span.width / number
