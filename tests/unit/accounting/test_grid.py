"""The storage format: an index that moved would misread every ledger."""

from __future__ import annotations

from fractions import Fraction

import pytest

from modicum.accounting import COORDINATES, GRID_VERSION, INFINITE, ORDERS
from modicum.accounting.grid import DELTA, coordinate_name, order_index

PUBLISHED = (1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 8, 16, 32, 64, 10**6, 10**10)


@pytest.mark.spec("ACC-1")
def test_the_grid_is_the_stored_one() -> None:
    """Changing this list needs a new GRID_VERSION, never another expectation."""
    assert GRID_VERSION == "grid-v1"
    assert [coordinate_name(index) for index in range(COORDINATES)] == [
        *("eps", "rho", "mu2"),
        *("rdp(1.25)", "rdp(1.5)", "rdp(1.75)", "rdp(2)", "rdp(2.5)", "rdp(3)"),
        *("rdp(4)", "rdp(5)", "rdp(6)", "rdp(8)", "rdp(12)", "rdp(16)", "rdp(24)"),
        *("rdp(32)", "rdp(48)", "rdp(64)", "rdp(96)", "rdp(128)", "rdp(192)"),
        *("rdp(256)", "rdp(512)", "rdp(1024)", "rdp(1e+06)", "rdp(1e+10)"),
        "delta",
    ]
    assert INFINITE == 2**62


def test_the_orders_rise_and_include_the_published_ones() -> None:
    assert list(ORDERS) == sorted(set(ORDERS))
    assert min(ORDERS) > 1
    assert {Fraction(order) for order in PUBLISHED} <= set(ORDERS)


def test_every_order_has_the_index_of_its_name() -> None:
    for position, order in enumerate(ORDERS):
        assert order_index(order) == 3 + position
        assert coordinate_name(order_index(order)) == f"rdp({float(order):g})"
    assert order_index(ORDERS[-1]) + 1 == DELTA


def test_an_order_off_the_grid_is_an_error() -> None:
    with pytest.raises(ValueError, match="not in"):
        order_index(Fraction(7))
