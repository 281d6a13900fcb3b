"""Sums in 64 bits, against Python's own integers."""

from __future__ import annotations

import numpy as np
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.accounting import COORDINATES, INFINITE, Loss, Total
from modicum.core.errors import InvariantError
from modicum.ledger.cells.sums import Sums, added, nothing, of_loss

UNITS = st.sampled_from(
    [0, 1, 2, 10**12, 2**61, INFINITE - 2, INFINITE - 1, INFINITE]
) | st.integers(0, INFINITE)


@st.composite
def losses(draw: st.DrawFn) -> Loss:
    first = draw(st.lists(UNITS, min_size=3, max_size=3))
    return Loss((*first, *[draw(UNITS)] * (COORDINATES - 3)))


def same(total: Total, expected: Total) -> None:
    for index in range(COORDINATES):
        assert total.units(index) == expected.units(index)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(losses(), min_size=1, max_size=6), st.data())
def test_sums_are_those_of_python(some: list[Loss], data: st.DataObject) -> None:
    expected, table = Total(), Sums()
    line = table.begin(1)
    summed = nothing(1)
    for loss in some:
        expected = expected.plus(loss)
        summed = added(summed, of_loss(loss))
        table.add(line, of_loss(loss))
    same(summed.total(0), expected)
    same(table[line].total(0), expected)
    for loss in data.draw(st.permutations(some)):
        table.take_back(line, of_loss(loss))
        expected = expected.minus(loss)
        same(table[line].total(0), expected)
    assert table[line].total(0) == Total()
    assert table[np.zeros(1, dtype=np.int64)].total(0) == Total()


@settings(max_examples=examples(100), deadline=None)
@given(losses(), losses())
def test_more_than_was_added_is_not_taken_back(one: Loss, other: Loss) -> None:
    table = Sums()
    line = table.begin(1)
    table.add(line, of_loss(one))
    before = table[line].total(0)
    value = [
        a * INFINITE + b for b, a in zip(before.finite, before.infinite, strict=True)
    ]
    if all(had >= less for had, less in zip(value, other.coordinates, strict=True)):
        table.take_back(line, of_loss(other))
        return
    with pytest.raises(InvariantError):
        table.take_back(line, of_loss(other))
    assert table[line].total(0) == before


def test_copies_of_a_line_go_their_own_way() -> None:
    table = Sums()
    (line,) = table.begin(1).tolist()
    one = of_loss(Loss((5,) * COORDINATES))
    table.add(np.array([line]), one)
    copies = table.copy(np.full(200, line))
    table.add(copies[:1], one)
    assert table[copies].rest[:3, 0].tolist() == [10, 5, 5]
    assert table[np.array([line])].rest[0, 0] == 5
