"""What filters admit at a glance, and at length, against what each of them says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from budget import examples
from hypothesis import event, given, settings
from hypothesis import strategies as st

from modicum.accounting import COORDINATES, INFINITE, Filter, Loss, Total
from modicum.accounting.grid import DELTA, EPS, RHO
from modicum.ledger.cells.family import Spent
from modicum.ledger.cells.sums import Sums, of_loss, saturated
from modicum.ledger.decision.limits import Limits

UNITS = st.sampled_from([0, 1, 5, 6, 10, 2**61, INFINITE - 1, INFINITE])
CAPS = st.sampled_from([0, 5, 6, 11, 2**61, INFINITE - 1, INFINITE])
LOOKED_AT = (EPS, RHO, 7, 8)


class Filters:
    """Stands for a policy whose budgets are the numbers of filters."""

    def __init__(self, filters: Sequence[Filter]) -> None:
        self._filters = filters

    def filter_of(self, budget: int) -> Filter:
        return self._filters[budget]


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    if not draw(st.integers(0, 5)):
        return Filter((), 0, enforced=False)
    columns = draw(st.lists(st.sampled_from(LOOKED_AT), unique=True, max_size=3))
    caps = tuple((column, draw(CAPS)) for column in sorted(columns))
    delta_cap = min(draw(CAPS), 10**18)  # No delta is above 1.
    return Filter(caps, delta_cap, every=draw(st.booleans()))


@st.composite
def losses(draw: st.DrawFn) -> Loss:
    units = [0] * COORDINATES
    for column in (*LOOKED_AT, DELTA):
        units[column] = draw(UNITS)
    return Loss(tuple(units))


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(filters(), min_size=1, max_size=4), st.data())
def test_a_glance_admits_only_what_every_filter_admits(
    some: list[Filter], data: st.DataObject
) -> None:
    budgets = data.draw(st.permutations(range(len(some))))
    limits = Limits(Filters(some))  # type: ignore[arg-type]
    numbers = np.array([limits.place(one) for one in budgets])  # type: ignore[arg-type]
    alone, sums, before = data.draw(losses()), Sums(), []
    for _ in budgets:
        past = data.draw(st.lists(losses(), max_size=2))
        line, total = sums.begin(1), Total()
        for loss in past:
            sums.add(line, of_loss(loss))
            total = total.plus(loss)
        before.append(total)
    lines = np.arange(1, 1 + len(budgets))[:, None]
    spent = Spent(sums, None, lines)
    expected = [
        some[budget].admits(total.plus(alone))
        for budget, total in zip(budgets, before, strict=True)
    ]
    found = limits.admit(numbers, spent, saturated(of_loss(alone)))
    assert found[:, 0].tolist() == expected
    together = spent.at(np.zeros(len(budgets), np.int64)).table + of_loss(alone).table
    glance = limits.admit_at_a_glance(numbers, together)
    event(f"at a glance: {glance}; in truth: {all(expected)}")
    assert all(expected) or not glance


def test_a_glance_sees_what_is_within_the_first_cap() -> None:
    limits = Limits(Filters([Filter(((EPS, 0), (RHO, 5)), 3)]))  # type: ignore[arg-type]
    numbers = np.array([limits.place(0)])  # type: ignore[arg-type]
    within = [0] * COORDINATES
    within[EPS], within[RHO], within[DELTA] = INFINITE, 5, 3
    for column, over in ((RHO, 6), (DELTA, 4), (RHO, INFINITE), (DELTA, INFINITE)):
        units = list(within)
        units[column] = over
        assert limits.admit_at_a_glance(numbers, of_loss(Loss(tuple(within))).table)
        assert not limits.admit_at_a_glance(numbers, of_loss(Loss(tuple(units))).table)
