"""Many rules on one long line: what is asked, what was charged, and what is left."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from budget import examples, seed

from modicum.core.errors import InputError, InvariantError
from modicum.planner.allocation.greedy import GREEDY
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.allocation.problem import Integers, Problem
from modicum.planner.rounds.line_accounts import (
    Charged,
    LineDemands,
    charged_by,
    demands_of,
)
from modicum.planner.rounds.periods import ALWAYS, Slots, Tracked
from modicum.planner.rounds.ring import Ranges
from modicum.planner.rounds.rule_problem import (
    NEVER,
    Accounts,
    Batch,
    Clauses,
    RuledHistory,
    ruled_problem,
)

#: Rule 0 has one clause, rule 1 one for each coordinate, and rule 2 none.
CLAUSES = np.array([0, 1, 3, 3])
GROUPS = 3


def clauses(rng: Random) -> Clauses:
    whole = [[rng.randint(5, 20) for _ in range(2)] for _ in range(3)]
    caps = [
        [[cap * age // GROUPS for cap in one] for age in (1, 2, 3)] for one in whole
    ]
    found = np.array(caps, np.int64)
    found[1, :, 1] = NEVER
    found[2, :, 0] = NEVER
    return Clauses(CLAUSES, found)


class Line:
    """Three rules, each with three accounts on a ring of some elements."""

    def __init__(self, name: str) -> None:
        rng = self.rng = Random(f"{seed()}/{name}")
        self.size = rng.randint(1, 7)
        about = [[rng.random() < 0.7 for _ in range(GROUPS)] for _ in range(3)]
        self.accounts = Accounts(self.size, np.array(about))
        self.clauses = clauses(rng)

    def batch(self) -> Batch:
        rng, count = self.rng, self.rng.randint(0, 6)
        pairs = [
            (request, account)
            for request in range(count)
            for account in rng.sample(range(9), rng.randint(0, 4))
        ]
        owner, account = np.array(pairs, np.int64).reshape(-1, 2).T
        ranges = Ranges(
            self.size,
            np.array([rng.randrange(self.size) for _ in range(count)], np.int64),
            np.array([rng.randint(1, self.size) for _ in range(count)], np.int64),
        )
        costs = [[rng.choice((0, 1, 2, 50)) for _ in range(2)] for _ in range(count)]
        return Batch(
            demands_of(ranges, owner, account),
            np.array(costs, np.int64).reshape(count, 2),
            np.ones(count, np.int64),
        )


def elements(demands: LineDemands, request: int) -> set[int]:
    runs = range(int(demands.first[request]), int(demands.first[request + 1]))
    return {e for k in runs for e in range(int(demands.start[k]), int(demands.stop[k]))}


@pytest.mark.parametrize(
    ("start", "width", "accounts", "expected"),
    [
        (0, 10, [0, 2], [(0, 10), (20, 30)]),
        (7, 10, [1], [(10, 20)]),
        (3, 2, [1], [(13, 15)]),
        (8, 2, [0], [(8, 10)]),
        (8, 4, [0, 3], [(0, 2), (8, 10), (30, 32), (38, 40)]),
    ],
)
def test_a_part_of_the_ring_in_some_accounts(
    start: int, width: int, accounts: list[int], expected: list[tuple[int, int]]
) -> None:
    ranges = Ranges(10, np.array([start]), np.array([width]))
    demands = demands_of(ranges, np.zeros(len(accounts), np.int64), np.array(accounts))
    assert (
        list(zip(demands.start.tolist(), demands.stop.tolist(), strict=True))
        == expected
    )
    assert demands.first.tolist() == [0, len(expected)]


@pytest.mark.spec("PLAN-3")
def test_what_a_round_charges_element_by_element() -> None:
    for n in range(examples(60)):
        line = Line(f"charged/{n}")
        batch = line.batch()
        count = len(batch.costs)
        accepted = np.array([line.rng.random() < 0.6 for _ in range(count)], np.bool_)
        charged = charged_by(batch.asks, batch.costs, accepted)
        expected = np.zeros((9 * line.size + 2, 2), np.int64)
        for request in np.flatnonzero(accepted).tolist():
            expected[sorted(elements(batch.asks, request))] += batch.costs[request]
        found = charged.at(np.arange(9 * line.size + 2))
        assert found.tolist() == expected.tolist()


@pytest.mark.spec("PLAN-3", "PLAN-10")
def test_every_clause_of_every_rule_has_left_what_is_open_less_what_was_charged() -> (
    None
):
    for n in range(examples(60)):
        line = Line(f"left/{n}")
        history = RuledHistory()
        past: list[tuple[Batch, np.ndarray]] = []
        for _ in range(line.rng.randint(0, 4)):
            batch = line.batch()
            accepted = np.array(
                [line.rng.random() < 0.6 for _ in batch.costs], np.bool_
            )
            history.add(batch, accepted, line.clauses)
            past.insert(0, (batch, accepted))
        assert len(history.rounds) < GROUPS
        batch = line.batch()
        problem = ruled_problem(batch, line.clauses, line.accounts, history)
        assert _found(problem, batch) == _expected(line, batch, past)


def _found(problem: Problem, batch: Batch) -> dict[int, set[tuple[int, ...]]]:
    """Return the rows at each element that somebody asks for."""
    cuts = batch.asks.cuts().tolist()
    covered = sorted(
        {e for i in range(problem.requests) for e in elements(batch.asks, i)}
    )
    pieces = sorted({sum(cut <= e for cut in cuts) for e in covered})
    assert len(pieces) == problem.places
    found: dict[int, set[tuple[int, ...]]] = {}
    for element in covered:
        place = pieces.index(sum(cut <= element for cut in cuts))
        demanding = {i for i in range(problem.requests) if place in _places(problem, i)}
        assert demanding == {
            i for i in range(problem.requests) if element in elements(batch.asks, i)
        }
        rows = range(int(problem.row_first[place]), int(problem.row_first[place + 1]))
        found.setdefault(place, set()).update(
            (int(problem.block[row]), *problem.left[row].tolist()) for row in rows
        )
    return found


def _places(problem: Problem, request: int) -> set[int]:
    runs = range(int(problem.run_first[request]), int(problem.run_first[request + 1]))
    return {
        p
        for k in runs
        for p in range(int(problem.run_start[k]), int(problem.run_stop[k]))
    }


def _expected(
    line: Line, batch: Batch, past: list[tuple[Batch, np.ndarray]]
) -> dict[int, set[tuple[int, ...]]]:
    cuts = batch.asks.cuts().tolist()
    covered = {e for i in range(len(batch.costs)) for e in elements(batch.asks, i)}
    pieces = sorted({sum(cut <= e for cut in cuts) for e in covered})
    found: dict[int, set[tuple[int, ...]]] = {}
    for element in covered:
        rows = found.setdefault(
            pieces.index(sum(cut <= element for cut in cuts)), set()
        )
        rule, slot = divmod(element // line.size, 3)
        own = range(CLAUSES[rule], CLAUSES[rule + 1])
        for group in np.flatnonzero(line.accounts.about[slot]).tolist():
            for number, clause in enumerate(own):
                caps = line.clauses.caps[clause, group]
                gone = _gone(line, element, past[:group])
                left = [
                    NEVER if cap == NEVER else cap - used
                    for cap, used in zip(caps.tolist(), gone, strict=True)
                ]
                rows.add((group * 2 + number, *left))
    return found


def _gone(line: Line, element: int, past: list[tuple[Batch, np.ndarray]]) -> list[int]:
    most = np.maximum(line.clauses.caps.max(axis=(0, 1)), 0) + 1
    total = np.zeros(2, np.int64)
    for batch, accepted in past:
        for request in np.flatnonzero(accepted).tolist():
            if element in elements(batch.asks, request):
                total += np.minimum(batch.costs[request], most)
    return [int(one) for one in total]


@pytest.mark.spec("PLAN-3")
def test_sums_that_would_wrap_are_refused() -> None:
    demands = LineDemands(np.array([0, 1, 2]), np.array([0, 0]), np.array([1, 1]))
    with pytest.raises(InvariantError, match="PLAN-3"):
        charged_by(demands, np.full((2, 1), 2**61), np.ones(2, np.bool_))
    history = RuledHistory()
    for _ in range(2):
        history.rounds.append(Charged(np.array([0]), np.array([[2**61]])))
    caps = np.ones((1, 3, 1), np.int64)
    one = Clauses(np.array([0, 1]), caps)
    batch = Batch(demands, np.zeros((2, 1), np.int64), np.ones(2, np.int64))
    with pytest.raises(InvariantError, match="PLAN-3"):
        ruled_problem(batch, one, Accounts(1, np.ones((1, 3), np.bool_)), history)


@pytest.mark.spec("PLAN-10")
def test_a_share_of_a_narrow_budget_counts_as_one_of_the_widest() -> None:
    """By the shares of each rule's own budget, the second would be tried first."""
    wide, narrow = 20, 3
    caps = np.array([[[wide]], [[narrow]]], np.int64)
    both = Clauses(np.array([0, 1, 2]), caps)
    # The first falls under both rules, the second under the wide one alone.
    costs = np.array([[2], [4]], np.int64)
    ranges = Ranges(1, np.zeros(2, np.int64), np.ones(2, np.int64))
    demands = demands_of(ranges, np.array([0, 0, 1]), np.array([0, 1, 0]))
    accounts = Accounts(1, np.ones((1, 1), np.bool_))
    batch = Batch(demands, costs, np.ones(2, np.int64))
    problem = ruled_problem(batch, both, accounts, RuledHistory())
    assert problem.full.tolist() == [[wide]]
    # Of what was left of the wide budget, only one of them fits.
    scarce = replace(problem, left=np.where(problem.left == wide, 5, problem.left))
    by_rule = [max(Fraction(2, wide), Fraction(2, narrow)), Fraction(4, wide)]
    assert by_rule[1] < by_rule[0]
    accepted = GREEDY["dpf"](scarce, NumpyEngine(scarce))
    assert accepted.tolist() == [True, False]
    # The narrow rule is held all the same.
    too_much = replace(problem, costs=np.array([[4], [4]], np.int64))
    assert GREEDY["dpf"](too_much, NumpyEngine(too_much)).tolist() == [False, True]


def test_a_round_without_requests() -> None:
    line = Line("nobody")
    nobody = np.empty(0, np.int64)
    batch = Batch(
        LineDemands(np.zeros(1, np.int64), nobody, nobody), nobody.reshape(0, 2), nobody
    )
    problem = ruled_problem(batch, line.clauses, line.accounts, RuledHistory())
    assert (problem.requests, problem.places, len(problem.left)) == (0, 0, 0)


# --- months ---------------------------------------------------------------------------


@pytest.mark.spec("PLAN-10")
def test_months_near_the_present_have_an_account_each() -> None:
    tracked = Tracked(1, 2)
    months: Integers = np.arange(95, 106)
    cells = tracked.cell(months, np.array(100)).tolist()
    assert cells == [0, 0, 0, 0, 1, 2, 3, 4, 5, 5, 5][: len(months)]
    assert tracked.cells == 6


@pytest.mark.spec("PLAN-10")
def test_groups_of_one_month_share_their_accounts() -> None:
    slots = Slots(Tracked(0, 1), 100, 102)
    assert len(slots) == 1 + 3 * 4
    about = slots.about(np.array([101, 101, 100]))
    assert about[ALWAYS].tolist() == [True, True, True]
    assert about[1:5].tolist() == [[False, False, True]] * 4
    assert about[5:9].tolist() == [[True, True, False]] * 4
    assert not about[9:].any()
    assert slots.of_period(np.array([99, 100, 101, 102]), 100).tolist() == [1, 2, 3, 4]
    assert slots.of_period(np.array([99, 100, 101, 102]), 101).tolist() == [5, 5, 6, 7]
    assert slots.of_all(102).tolist() == [9, 10, 11, 12]


def test_no_fewer_months_than_none_are_tracked() -> None:
    with pytest.raises(InputError, match="-1 periods before"):
        Tracked(-1, 0)
