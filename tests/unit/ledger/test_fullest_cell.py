"""The fullest cell of a rule: bounds find what exact fractions would."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
from budget import examples
from hypothesis import event, given, settings
from hypothesis import strategies as st

from modicum.accounting import (
    COORDINATES,
    INFINITE,
    ApproxBudget,
    Budget,
    GdpBudget,
    PureBudget,
    Unlimited,
    ZcdpBudget,
    filter_for,
)
from modicum.accounting.budgets import RenyiBudget
from modicum.accounting.filters.budget import Filter
from modicum.accounting.grid import DELTA
from modicum.ledger.cells.sums import Amounts
from modicum.ledger.decision.decide import fullest_cell

ONE = Fraction(1)
BUDGETS: tuple[Budget, ...] = (
    PureBudget(ONE),
    ApproxBudget(ONE, Fraction(1, 10**6)),
    ZcdpBudget(Fraction(1, 3)),
    GdpBudget(ONE),
    RenyiBudget(((Fraction(8), ONE), (Fraction(32), ONE))),
    Unlimited(),
)


def expected(own: Filter, cells: Amounts) -> tuple[int, int]:
    """Look at every cell, exactly."""
    totals = cells.totals()
    shares = [own.fullness(one) for one in totals]
    return shares.index(max(shares)), sum(not own.admits(one) for one in totals)


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    """Draw the limits of a budget, often with a part of it unlocked only."""
    budget = draw(st.sampled_from(BUDGETS))
    names = ["combined-v1", "combined-v2"]
    own = filter_for(budget, draw(st.sampled_from(names)))
    parts = [Fraction(0), Fraction(1, 10**9), Fraction(1, 3), ONE]
    return own.unlocked(draw(st.sampled_from(parts)))


@st.composite
def tables(draw: st.DrawFn, own: Filter) -> Amounts:
    """Draw charges, many of them next to a cap, or equal."""
    caps = dict(own.caps) | {DELTA: own.delta_cap}
    lines: list[list[int]] = []
    for _ in range(draw(st.integers(1, 12))):
        if draw(st.booleans()) and lines:
            line = [*lines[draw(st.integers(0, len(lines) - 1))]]
        else:
            line = [0] * 2 * COORDINATES
        for index in draw(st.lists(st.sampled_from(sorted(caps)), max_size=8)):
            cap = min(caps[index], INFINITE - 2)
            near = st.integers(max(0, cap - 2), max(0, cap + 2))
            anything = st.integers(0, INFINITE - 1)
            line[index] = draw(st.one_of(near, anything))
            line[COORDINATES + index] = draw(st.sampled_from([0, 0, 0, 1]))
        if draw(st.booleans()):  # Nearly as full as others, by another coordinate.
            decides = draw(st.sampled_from(sorted(caps)))
            off = draw(st.integers(-3, 3))
            for index, cap in caps.items():
                other = cap // 6 if own.every else cap // 2
                units = cap // 3 + off if index == decides else other
                line[index] = min(max(0, units), INFINITE - 1)
            line[DELTA] = 0
        lines.append(line)
    return Amounts(np.array(lines, dtype=np.int64))


@settings(max_examples=examples(300))
@given(st.data())
def test_bounds_find_what_fractions_find(data: st.DataObject) -> None:
    own = data.draw(filters())
    cells = data.draw(tables(own))
    found = expected(own, cells)
    event("some denied" if found[1] else "none denied")
    assert fullest_cell(own, cells) == found


def test_cells_that_are_equally_full_but_for_a_bit_are_told_apart() -> None:
    dice, own = random.Random(1), filter_for(BUDGETS[1], "combined-v2")
    for _ in range(200):
        lines = []
        for _ in range(2):
            decides, off = dice.choice(own.caps)[0], dice.randint(-3, 3)
            line = [0] * 2 * COORDINATES
            for index, cap in own.caps:
                line[index] = cap // 3 + off if index == decides else cap // 2
            lines.append(line)
        cells = Amounts(np.array(lines, dtype=np.int64))
        assert fullest_cell(own, cells) == expected(own, cells)
