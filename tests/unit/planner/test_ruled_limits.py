"""What rules limit, as clauses of which each must hold at some coordinate."""

from __future__ import annotations

from fractions import Fraction

import pytest

from modicum.accounting import Filter, Loss, RenyiBudget, Unlimited, filter_for
from modicum.accounting.grid import COORDINATES, DELTA, EPS, RHO, order_index
from modicum.planner import Unlocking
from modicum.planner.rounds.rule_problem import NEVER
from modicum.planner.simulation.scenario import rule_limits


def loss(**known: int) -> Loss:
    units = [0] * COORDINATES
    for index, amount in known.items():
        units[int(index[1:])] = amount
    return Loss(tuple(units))


@pytest.mark.spec("PLAN-10")
def test_every_way_to_limit_is_a_list_of_clauses() -> None:
    four, eight = order_index(Fraction(4)), order_index(Fraction(8))
    either = Filter(((EPS, 10), (RHO, 20)), delta_cap=5)
    both = Filter(((four, 30), (eight, 40)), delta_cap=0, every=True)
    free = Filter((), 0, enforced=False)
    losses = [
        loss(**{f"c{EPS}": 1, f"c{RHO}": 4, f"c{four}": 1, f"c{eight}": 1}),
        loss(**{f"c{EPS}": 3, f"c{RHO}": 2, f"c{four}": 2, f"c{eight}": 2}),
    ]
    plain = rule_limits(losses, [either, free, both])
    assert plain.coordinates == (EPS, RHO, four, eight)
    assert plain.first.tolist() == [0, 1, 1, 3]
    assert plain.total.tolist() == [
        [10, 20, NEVER, NEVER],
        [NEVER, NEVER, 30, NEVER],
        [NEVER, NEVER, NEVER, 40],
    ]
    assert plain.costs.tolist() == [[1, 4, 1, 1], [3, 2, 2, 2]]
    clauses = plain.clauses(Unlocking(2, Fraction(0)))
    assert clauses.most == 2
    assert clauses.caps[0].tolist() == [[5, 10, NEVER, NEVER], [10, 20, NEVER, NEVER]]
    own = [*losses, loss(**{f"c{DELTA}": 3})]
    with_delta = rule_limits(own, [either, free, both])
    assert with_delta.first.tolist() == [0, 2, 2, 5]
    assert with_delta.total[[1, 4], -1].tolist() == [5, 0]
    assert with_delta.total[[0, 2, 3], -1].tolist() == [NEVER] * 3


def test_coordinates_are_left_out_rule_by_rule() -> None:
    """A coordinate that never decides for one rule may decide for another."""
    losses = [loss(**{f"c{EPS}": 2, f"c{RHO}": 2})]
    low, high = Filter(((EPS, 10), (RHO, 20)), 0), Filter(((EPS, 30), (RHO, 20)), 0)
    found = rule_limits(losses, [low, high])
    assert found.total.tolist() == [[NEVER, 20], [30, NEVER]]
    assert rule_limits(losses, [low]).coordinates == (RHO,)


def test_no_limit_at_all() -> None:
    free = rule_limits([loss()], [Filter((), 0, enforced=False)])
    assert (free.coordinates, free.total.shape) == ((EPS,), (0, 1))
    assert not filter_for(Unlimited(), "combined-v2").enforced
    orders = ((Fraction(4), Fraction(1)), (Fraction(8), Fraction(2)))
    assert filter_for(RenyiBudget(orders), "combined-v2").every
