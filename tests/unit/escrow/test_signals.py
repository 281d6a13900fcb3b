"""What a signal tells of a score."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modicum.escrow.programs import STEPS, Range
from modicum.escrow.signals import score_text
from modicum.sandbox.scores import on_grid

ENDS = st.fractions(-1000, 1000, max_denominator=1000)


@pytest.mark.parametrize(
    ("score", "low", "high", "text"),
    [
        (0.123456789, 0, 1, "0.123456789"),
        (0.1, 0, 1, "0.1"),
        (1.0, 0, 1, "1"),
        (0.0, -1, 1, "0"),
        (-0.3, -1, 1, "-0.3"),
        (12.3456789, 0, 100, "12.3456789"),
        (2.0, Fraction(1, 3), 3, "2"),
        (1234567.0, 0, 10**12, "1235000"),
    ],
)
def test_a_score_has_the_digits_that_its_grid_has(
    score: float, low: Fraction, high: Fraction, text: str
) -> None:
    assert score_text(Fraction(score), Range(Fraction(low), Fraction(high))) == text


@given(low=ENDS, width=st.fractions("0.001", 1000), step=st.integers(0, STEPS - 1))
def test_different_steps_have_different_texts(
    low: Fraction, width: Fraction, step: int
) -> None:
    span = Range(low, low + width)
    texts = []
    for one in (step, step + 1):
        score = Fraction(on_grid(float(low + one * width / STEPS), span))
        text = score_text(score, span)
        assert abs(Fraction(text) - score) <= width / STEPS
        # A decimal with no more places than it takes to tell steps from each other.
        places = len(text.partition(".")[2])
        assert places == 0 or Fraction(1, 10 ** (places - 1)) > width / STEPS
        texts.append(text)
    assert texts[0] != texts[1]
