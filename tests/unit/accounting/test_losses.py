"""Losses and totals: what may be stored, summed and taken back."""

from __future__ import annotations

import pytest

from modicum.accounting import COORDINATES, INFINITE, Loss, Total
from modicum.accounting.losses import total_of
from modicum.core.errors import Code, InvariantError


def loss(*first: int) -> Loss:
    return Loss(first + (0,) * (COORDINATES - len(first)))


@pytest.mark.spec("ACC-1")
@pytest.mark.parametrize("length", [0, 1, COORDINATES - 1, COORDINATES + 1])
def test_a_loss_has_exactly_its_coordinates(length: int) -> None:
    with pytest.raises(InvariantError, match="ACC-1"):
        Loss((0,) * length)


@pytest.mark.parametrize("value", [-1, INFINITE + 1])
def test_a_coordinate_lies_between_nothing_and_infinity(value: int) -> None:
    with pytest.raises(InvariantError, match="ACC-1") as caught:
        loss(value)
    assert caught.value.code is Code.INTERNAL


def test_the_ends_are_allowed() -> None:
    assert loss(0, INFINITE).coordinates[:2] == (0, INFINITE)


def test_the_sum_of_nothing_is_zero() -> None:
    assert total_of([]) == Total()
    assert all(Total().units(index) == 0 for index in range(COORDINATES))


@pytest.mark.spec("ACC-3")
def test_infinite_entries_are_counted_and_not_added() -> None:
    total = total_of([loss(5, INFINITE), loss(INFINITE, INFINITE), loss(7, 1)])
    assert total.finite[:3] == (12, 1, 0)
    assert total.infinite[:3] == (1, 2, 0)
    assert (total.units(0), total.units(1), total.units(2)) == (INFINITE, INFINITE, 0)


def test_taking_an_infinite_entry_back_restores_the_finite_sum() -> None:
    total = total_of([loss(5), loss(INFINITE)]).minus(loss(INFINITE))
    assert total == total_of([loss(5)])
    assert total.units(0) == 5


def test_a_finite_sum_saturates_where_it_is_read_and_not_where_it_is_kept() -> None:
    half = loss(2**61)
    assert total_of([half]).units(0) == 2**61
    whole = total_of([half, half])
    assert whole.units(0) == INFINITE
    assert whole.plus(half).finite[0] == 3 * 2**61
    assert whole.plus(half).units(0) == INFINITE
    assert total_of([loss(2**62 - 1), loss(1)]).units(0) == INFINITE
    assert total_of([loss(2**62 - 2), loss(1)]).units(0) == 2**62 - 1
    many = total_of([loss(INFINITE - 1)] * 100)
    for _ in range(99):
        many = many.minus(loss(INFINITE - 1))
    assert many.units(0) == INFINITE - 1


@pytest.mark.spec("ACC-3")
@pytest.mark.parametrize(
    "other", [loss(6), loss(0, 1), loss(INFINITE), loss(5, 0, INFINITE)]
)
def test_what_was_not_added_is_not_taken_back(other: Loss) -> None:
    with pytest.raises(InvariantError, match="ACC-3: only what was added"):
        total_of([loss(5)]).minus(other)


def test_joining_totals_is_adding_all_their_losses() -> None:
    ours, theirs = [loss(1, INFINITE), loss(2)], [loss(4), loss(INFINITE)]
    assert total_of(ours).joined(total_of(theirs)) == total_of(ours + theirs)
