"""What unlocking promises, against groups whose every step is kept by hand.

P1 to P4 are the properties of Appendix A of Cohere (Küchler et al. 2024). The paper
proves them for an even number of rounds and one scalar budget. Here each is tried for
even and odd numbers, for whole ledger units, and for vectors of which one order must
hold; where it holds only under a condition, that condition is tested from both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.planner import AtOnce, Rotation, Schedule, Unlocking
from modicum.planner.outlook import available

# --- the oracle: groups that remember what was unlocked and consumed --------------

Vector = tuple[Fraction, ...]


def steps(rounds: int, slack: Fraction) -> list[Fraction]:
    """The steps as Appendix A words them, in parts of budget / rounds."""
    half = rounds // 2
    middle = [Fraction(1)] * (rounds % 2)
    return [1 + slack] * half + middle + [1 - slack] * half


@dataclass
class Group:
    """One group: its budget by order, and what of it was unlocked and consumed."""

    budget: Vector
    left_steps: list[Fraction]
    unlocked: Vector
    consumed: Vector

    def unlock(self) -> None:
        part = self.left_steps.pop(0)
        self.unlocked = tuple(
            u + b * part for u, b in zip(self.unlocked, self.budget, strict=True)
        )

    def left(self) -> Vector:
        return tuple(u - c for u, c in zip(self.unlocked, self.consumed, strict=True))

    def holds_with(self, cost: Vector) -> bool:
        """Whether some order is within what is unlocked."""
        return any(c <= left for c, left in zip(cost, self.left(), strict=True))

    def consume(self, cost: Vector) -> None:
        self.consumed = tuple(c + d for c, d in zip(self.consumed, cost, strict=True))


class Groups:
    """The groups that are active, the oldest first, and all that were."""

    def __init__(
        self, rounds: int, slack: Fraction, budget: Vector, *, warm: bool
    ) -> None:
        self.rounds, self.slack, self.budget = rounds, slack, budget
        self.active: list[Group] = []
        self.retired: list[Group] = []
        if warm:  # Groups of all ages that nothing was taken from.
            for age in range(rounds - 1, 0, -1):
                self._activate()
                for _ in range(age):
                    self.active[-1].unlock()

    def _activate(self) -> None:
        zero = tuple(Fraction(0) for _ in self.budget)
        parts = [part / self.rounds for part in steps(self.rounds, self.slack)]
        self.active.append(Group(self.budget, parts, zero, zero))

    def next_round(self) -> None:
        while self.active and not self.active[0].left_steps:
            self.retired.append(self.active.pop(0))
        self._activate()
        for group in self.active:
            group.unlock()

    def left(self) -> Vector:
        """What is available of each order in all groups; below 0 if one is over."""
        return tuple(map(min, zip(*(g.left() for g in self.active), strict=True)))

    def fits(self, cost: Vector) -> bool:
        return all(group.holds_with(cost) for group in self.active)

    def consume(self, cost: Vector) -> None:
        for group in self.active:
            group.consume(cost)

    def all(self) -> list[Group]:
        return self.retired + self.active


# --- the planner's own words for the same -----------------------------------------


def planned_left(
    schedule: Schedule, budget: Vector, costs: Sequence[Vector], *, warm: bool
) -> list[Vector]:
    """What the planner says each active group has left, the oldest first.

    `costs` are those of the rounds so far; the next round has the number after them.
    """
    rotation = Rotation(active=schedule.rounds, horizon=1)
    shift = schedule.rounds - 1 if warm else 0  # Rounds in which nothing was asked.
    history = [tuple(Fraction(0) for _ in budget)] * shift + list(costs)
    now = len(history) + 1
    found = []
    for group in rotation.active_groups(now):
        share = schedule.share(rotation.age(group, now))
        spent = history[rotation.activation(group) - 1 :]
        found.append(
            tuple(
                share * total - sum((cost[i] for cost in spent), Fraction(0))
                for i, total in enumerate(budget)
            )
        )
    return found


# --- what is drawn ----------------------------------------------------------------

slacks = st.fractions(0, 1, max_denominator=20)
budgets = st.fractions(Fraction(1, 10), 10, max_denominator=30)
parts = st.fractions(0, 1, max_denominator=8)


@dataclass(frozen=True)
class Case:
    """A schedule, and what part of the available budget each round asks for."""

    rounds: int
    slack: Fraction
    total: Fraction
    asked: tuple[Fraction, ...]
    warm: bool

    @property
    def schedule(self) -> Unlocking:
        return Unlocking(self.rounds, self.slack)

    @property
    def least(self) -> Fraction:
        return (1 - self.slack) * self.total / self.rounds

    @property
    def most(self) -> Fraction:
        return (1 + self.slack) * self.total / self.rounds

    def groups(self) -> Groups:
        return Groups(self.rounds, self.slack, (self.total,), warm=self.warm)

    def play(self, *, at_least: bool = False) -> Iterator[tuple[Groups, Fraction]]:
        """Yield groups and the cost they are about to be charged, round by round.

        With `at_least`, every round is charged the least that is promised, or more.
        """
        groups = self.groups()
        for part in self.asked:
            groups.next_round()
            (left,) = groups.left()
            low = min(self.least, left) if at_least else Fraction(0)
            cost = low + part * (left - low)
            yield groups, cost
            groups.consume((cost,))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rounds = draw(st.integers(1, 9))
    count = draw(st.integers(1, 2 * rounds + 3))
    # Greedy and idle rounds in a row are where limits are met.
    some = st.one_of(parts, st.sampled_from([Fraction(0), Fraction(1)]))
    asked = draw(st.lists(some, min_size=count, max_size=count))
    return Case(rounds, draw(slacks), draw(budgets), tuple(asked), draw(st.booleans()))


# --- one scalar budget ------------------------------------------------------------


@given(st.integers(1, 40), slacks)
@settings(max_examples=examples(200))
def test_shares_are_the_sums_of_the_steps(rounds: int, slack: Fraction) -> None:
    schedule = Unlocking(rounds, slack)
    parts = [part / rounds for part in steps(rounds, slack)]
    assert list(schedule.steps()) == parts
    for age in range(rounds + 3):
        assert schedule.share(age) == sum(parts[:age], Fraction(0))


@given(cases())
@settings(max_examples=examples(80))
def test_the_planner_and_the_groups_agree_on_what_is_left(case: Case) -> None:
    costs: list[Vector] = []
    for groups, cost in case.play():
        planned = planned_left(case.schedule, (case.total,), costs, warm=case.warm)
        assert planned == [group.left() for group in groups.active]
        costs.append((cost,))


@given(cases())
@settings(max_examples=examples(80))
def test_p1_no_group_is_over_its_budget(case: Case) -> None:
    for groups, cost in case.play():
        assert cost >= 0
        for group in groups.all():
            assert group.consumed <= group.unlocked <= group.budget
        for group in groups.retired:
            assert group.unlocked == group.budget


@given(cases())
@settings(max_examples=examples(80))
def test_p2_what_is_available_lies_between_least_and_most(case: Case) -> None:
    """P2.1 and P2.2, whatever earlier rounds took; so for odd numbers of rounds."""
    for groups, cost in case.play():
        (left,) = groups.left()
        assert case.least <= left <= case.most
        assert cost <= case.most
    assert case.schedule.most * case.total <= case.most
    assert case.schedule.least * case.total >= case.least
    if case.rounds > 1:  # With one round, all of it is there, in that round.
        assert case.schedule.most * case.total == case.most
        assert case.schedule.least * case.total == case.least


@given(st.integers(1, 14), slacks, st.booleans())
@settings(max_examples=examples(60))
def test_p3_1_using_everything_repeats_the_steps(
    rounds: int, slack: Fraction, warm: bool
) -> None:
    """With an odd number of rounds, an even part stands in the middle."""
    case = Case(rounds, slack, Fraction(1), (Fraction(1),) * (3 * rounds), warm)
    taken = tuple(cost for _, cost in case.play())
    assert taken == case.schedule.steps() * 3
    assert available(case.schedule, 3 * rounds, use=Fraction(1)) == taken


@given(st.integers(1, 14), slacks, st.booleans())
@settings(max_examples=examples(60))
def test_p3_2_an_even_part_fits_in_every_round(
    rounds: int, slack: Fraction, warm: bool
) -> None:
    case = Case(rounds, slack, Fraction(1), (), warm)
    groups, even, there = case.groups(), Fraction(1, rounds), []
    for _ in range(3 * rounds):
        groups.next_round()
        there.append(groups.left()[0])
        assert there[-1] >= even
        groups.consume((even,))
    assert available(case.schedule, 3 * rounds, use=even) == tuple(there)


@given(cases())
@settings(max_examples=examples(80))
def test_p4_only_the_newest_and_the_oldest_group_matter(case: Case) -> None:
    """From the round on whose oldest group saw as many rounds as a group is active."""
    costs: list[Fraction] = []
    for groups, cost in case.play(at_least=True):
        (left,) = groups.left()
        if len(costs) >= case.rounds - 1:
            recent = sum(costs[len(costs) - case.rounds + 1 :], Fraction(0))
            assert left == min(case.total - recent, case.most)
        costs.append(cost)


def test_p4_does_not_hold_before() -> None:
    """In the first rounds groups in between matter: nothing was allocated before."""
    case = Case(12, Fraction(2, 5), Fraction(12), (Fraction(1),) * 7, warm=True)
    seen = [(groups.left()[0], cost) for groups, cost in case.play()]
    assert seen == [(Fraction(7, 5),) * 2] * 6 + [(Fraction(3, 5),) * 2]
    assert min(12 - 6 * Fraction(7, 5), case.most) == Fraction(7, 5)


def test_p4_needs_at_least_the_least_in_every_round() -> None:
    """A group in between has less than the oldest one if a round took little."""
    case = Case(4, Fraction(1, 2), Fraction(4), (), warm=False)
    groups, costs = case.groups(), [Fraction(0), Fraction(3, 2), Fraction(3, 2)]
    assert costs[0] < case.least
    for cost in costs:
        groups.next_round()
        assert groups.fits((cost,))
        groups.consume((cost,))
    groups.next_round()
    assert min(case.total - sum(costs, Fraction(0)), case.most) == 1
    assert groups.left() == (Fraction(1, 2),)  # The group of age 3: 3.5 - 3.


@given(cases())
@settings(max_examples=examples(60))
def test_at_once_promises_a_life_and_nothing_for_a_round(case: Case) -> None:
    schedule = AtOnce(case.rounds)
    assert [schedule.share(age) for age in (0, 1, case.rounds + 1)] == [0, 1, 1]
    taken = available(schedule, 3 * case.rounds, use=Fraction(1))
    assert taken == (1, *[0] * (case.rounds - 1)) * 3


# --- whole ledger units -----------------------------------------------------------


@given(st.integers(1, 12), slacks, st.integers(0, 2**62), st.data())
@settings(max_examples=examples(80))
def test_caps_in_whole_units_keep_all_promises(
    rounds: int, slack: Fraction, total: int, data: st.DataObject
) -> None:
    schedule = Unlocking(rounds, slack)
    caps = [schedule.cap(total, age) for age in range(rounds + 3)]
    assert caps == sorted(caps)
    assert caps[0] == 0
    assert caps[rounds:] == [total] * 3
    for age, cap in enumerate(caps):
        exact = total * schedule.share(age)
        assert cap <= exact < cap + 1
    low = (1 - slack) * total / rounds
    high = (1 + slack) * total / rounds
    costs: list[int] = []
    for _ in range(2 * rounds):
        left = min(
            caps[age] - sum(costs[len(costs) - age + 1 :]) if age > 1 else caps[1]
            for age in range(1, min(rounds, len(costs) + 1) + 1)
        )
        assert int(low) <= left <= high
        costs.append(data.draw(st.sampled_from([0, left, left // 2, int(low)])))
    assert all(
        sum(costs[start : start + rounds]) <= total for start in range(len(costs))
    )


@given(st.integers(1, 12), slacks, st.integers(0, 10**6))
@settings(max_examples=examples(60))
def test_an_even_part_fits_in_whole_units(
    rounds: int, slack: Fraction, total: int
) -> None:
    schedule = Unlocking(rounds, slack)
    for age in range(1, rounds + 1):
        assert schedule.cap(total, age) >= age * (total // rounds)


# --- vectors: some order holds ----------------------------------------------------


@dataclass(frozen=True)
class Vectors:
    """A budget of several orders, and the requests of each round."""

    rounds: int
    slack: Fraction
    budget: Vector
    requests: tuple[tuple[Vector, ...], ...]

    def groups(self) -> Groups:
        return Groups(self.rounds, self.slack, self.budget, warm=False)

    def part(self, share: Fraction) -> Vector:
        return tuple(share * total / self.rounds for total in self.budget)


@st.composite
def vectors(draw: st.DrawFn) -> Vectors:
    rounds = draw(st.integers(1, 7))
    orders = draw(st.integers(1, 4))
    budget = tuple(draw(budgets) for _ in range(orders))
    # In parts of an even share; some orders are charged more than a whole life has.
    parts = st.one_of(st.fractions(0, 2, max_denominator=6), st.just(Fraction(9)))
    request = st.tuples(*(parts for _ in range(orders)))
    asked = draw(
        st.lists(st.lists(request, max_size=3), min_size=1, max_size=2 * rounds + 2)
    )
    scaled = tuple(
        tuple(
            tuple(p * b / rounds for p, b in zip(one, budget, strict=True))
            for one in requests
        )
        for requests in asked
    )
    return Vectors(rounds, draw(slacks), budget, scaled)


@given(vectors())
@settings(max_examples=examples(80))
def test_vectors_p1_and_p2_hold_for_some_order_of_each_group(case: Vectors) -> None:
    """P1, P2.1 and P2.2; which order it is may differ from group to group."""
    schedule = Unlocking(case.rounds, case.slack)
    groups, costs = case.groups(), list[Vector]()
    promised = case.part(1 - case.slack)
    for requests in case.requests:
        groups.next_round()
        planned = planned_left(schedule, case.budget, costs, warm=False)
        assert planned == [group.left() for group in groups.active]
        for group in groups.active:
            assert group.holds_with(promised)
        assert groups.fits(promised)
        taken = tuple(Fraction(0) for _ in case.budget)
        for cost in requests:
            if groups.fits(cost):
                groups.consume(cost)
                taken = tuple(t + c for t, c in zip(taken, cost, strict=True))
        costs.append(taken)
        most = case.part(1 + case.slack)
        assert any(t <= m for t, m in zip(taken, most, strict=True))
        for group in groups.all():
            assert any(
                c <= b for c, b in zip(group.consumed, group.budget, strict=True)
            )


@given(vectors())
@settings(max_examples=examples(40))
def test_vectors_p3_2_an_even_part_of_every_order_fits(case: Vectors) -> None:
    groups = case.groups()
    for _ in range(3 * case.rounds):
        groups.next_round()
        assert groups.fits(case.part(Fraction(1)))
        groups.consume(case.part(Fraction(1)))


@given(vectors(), st.integers(0, 3))
@settings(max_examples=examples(40))
def test_vectors_p3_1_holds_for_the_one_order_that_lives(
    case: Vectors, index: int
) -> None:
    """If every other order is beyond its budget from the first cost on."""
    alive = index % len(case.budget)
    groups, taken = case.groups(), []
    for _ in range(3 * case.rounds):
        groups.next_round()
        left = groups.left()[alive]
        cost = tuple(
            left if i == alive else 2 * total for i, total in enumerate(case.budget)
        )
        more = tuple(
            c + Fraction(1, 10**9) if i == alive else c for i, c in enumerate(cost)
        )
        assert groups.fits(cost)
        assert not groups.fits(more)
        groups.consume(cost)
        taken.append(left / case.budget[alive])
    assert tuple(taken) == Unlocking(case.rounds, case.slack).steps() * 3


@given(st.integers(1, 9), slacks, budgets, st.data())
@settings(max_examples=examples(40))
def test_vectors_p4_holds_for_orders_that_stay_between_least_and_most(
    rounds: int, slack: Fraction, total: Fraction, data: st.DataObject
) -> None:
    """Also for an order that is over its budget, where less than nothing is left."""
    groups = Groups(rounds, slack, (total,), warm=False)
    least, most = (1 - slack) * total / rounds, (1 + slack) * total / rounds
    costs: list[Fraction] = []
    for _ in range(3 * rounds):
        groups.next_round()
        if len(costs) >= rounds - 1 and rounds > 1:
            recent = sum(costs[len(costs) - rounds + 1 :], Fraction(0))
            assert groups.left() == (min(total - recent, most),)
        costs.append(least + data.draw(parts) * (most - least))
        groups.consume((costs[-1],))


def test_vectors_p4_does_not_hold_for_an_order_that_is_charged_more() -> None:
    """Another order may hold meanwhile, so nothing keeps this one below the most."""
    rounds, slack = 12, Fraction(2, 5)
    case = Vectors(rounds, slack, (Fraction(12), Fraction(12)), ())
    groups, least = case.groups(), Fraction(3, 5)
    costs = [least] * 11 + [Fraction(5)]
    for cost in costs:
        groups.next_round()
        assert groups.fits((least, cost))
        groups.consume((least, cost))
    groups.next_round()
    formula = min(12 - sum(costs[-11:], Fraction(0)), Fraction(7, 5))
    assert formula == 1
    assert groups.left()[1] == Fraction(-11, 5)  # The group of age 2: 2.8 - 5.


def test_vectors_groups_may_live_by_different_orders() -> None:
    """So no single order need have the least in every group, yet the least fits."""
    case = Vectors(3, Fraction(0), (Fraction(3), Fraction(3)), ())
    groups = case.groups()
    for cost in ((Fraction(0), Fraction(5)), (Fraction(2), Fraction(0))):
        groups.next_round()
        assert groups.fits(cost)
        groups.consume(cost)
    groups.next_round()
    assert groups.left() == (Fraction(0), Fraction(-2))
    assert groups.fits((Fraction(1), Fraction(1)))
    assert not groups.fits((Fraction(2), Fraction(1)))
    assert not groups.fits((Fraction(1), Fraction(3)))


@pytest.mark.parametrize("rounds", [2, 5])
def test_the_oracle_notices_a_wrong_schedule(rounds: int) -> None:
    """The comparison is not empty: one step too many unlocked is seen."""
    slack, total = Fraction(1, 2), (Fraction(1),)
    wrong = Unlocking(rounds, slack / 2)
    groups = Groups(rounds, slack, total, warm=True)
    groups.next_round()
    planned = planned_left(wrong, total, [], warm=True)
    assert planned != [group.left() for group in islice(groups.active, rounds)]
