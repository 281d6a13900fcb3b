"""Rounds that are planned on a ledger's balances, against `decide` itself.

What the problem of a round says is held against deciding one request after the other,
in both directions; plans are replayed, and searched for what they left over.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from budget import counted, examples, seed
from msgspec import structs
from samples import divided, ledgers
from samples.ledgers import chance

from modicum.accounting import COORDINATES, INFINITE, Loss
from modicum.accounting.filters.unlock_schedule import Unlocking
from modicum.accounting.grid import DELTA
from modicum.ledger import Balances, RecordedRelease, decide
from modicum.ledger.log.events import GroupActivated, GroupRetired, RoundOpened
from modicum.ledger.log.recorded_release import RecordedMechanism
from modicum.ledger.state.rounds import Planning
from modicum.planner.allocation.engine import EngineOf
from modicum.planner.allocation.numba_kernel import NumbaEngine
from modicum.planner.allocation.numpy_kernel import NumpyEngine
from modicum.planner.allocation.optimum import BestEachRound
from modicum.planner.ledger_round.cancellation import Means
from modicum.planner.ledger_round.coordinates import open_engine
from modicum.planner.ledger_round.denial_reasons import obstacles
from modicum.planner.ledger_round.plan import ON_LEDGER, RoundPlan, plan_round
from modicum.planner.ledger_round.presolve import Reason, left_out
from modicum.planner.ledger_round.problem import RoundProblem, problem_of
from modicum.planner.verification import verify
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_policy
from modicum.policy.model import Retired, RotationRule
from modicum.policy.rules import Stage
from modicum.release import Part
from modicum.release.units import RELATIONS

MILLION = 10**6


@dataclass(frozen=True)
class Round:
    """A random round on a ledger with a history."""

    rng: random.Random
    balances: Balances
    planning: Planning
    requests: tuple[RecordedRelease, ...]
    weights: tuple[int, ...]
    day: int

    def copy(self) -> Balances:
        return self.balances.copied()

    def problem(self) -> RoundProblem:
        return problem_of(self.copy(), self.requests, self.weights, self.day)

    def allowed(self, numbers: Sequence[int]) -> bool:
        """Return whether requests are all allowed, one after the other."""
        balances = self.copy()
        for number in numbers:
            if not decide(balances, self.requests[number], self.day).allowed:
                return False
            balances.charge(self.requests[number], self.day)
        return True

    def among(self, numbers: Sequence[int]) -> Round:
        """Return the round with some of its requests."""
        return replace(
            self,
            requests=tuple(self.requests[one] for one in numbers),
            weights=tuple(self.weights[one] for one in numbers),
        )


# --- what is drawn --------------------------------------------------------------------


def rounds(what: str, count: int, most: int) -> Iterator[Round]:
    """Yield so many random rounds of at most so many requests."""
    for number in range(count):
        yield some_round(random.Random(f"{what} {seed()} {number}"), most)


def some_round(rng: random.Random, most: int) -> Round:
    compiled, planning = some_policy(rng)
    frozen = chance(rng, 0.1)
    balances = Balances(
        compiled, planning=planning, segments_max=rng.randint(2, 9) if frozen else 10**4
    )
    make = maker(rng, compiled, planning)
    day = divided.DAWN
    for number in range(rng.choice([0, 3, 8])):
        day += rng.choice([0, 1, 5])
        old = make(number, day)
        if chance(rng, 0.15) and not decide(balances, old, day).allowed:
            balances.note(old, day)
        elif decide(balances, old, day).allowed or chance(rng, 0.1):
            balances.charge(old, day)
    requests = tuple(some_requests(rng, most, lambda n: make(100 + n, day), balances))
    weights = tuple(rng.choice([0, 1, 1, 2, 3, 5, 9]) for _ in requests)
    return Round(rng, balances, planning, requests, weights, day)


def some_requests(
    rng: random.Random,
    most: int,
    make: Callable[[int], RecordedRelease],
    balances: Balances,
) -> Iterator[RecordedRelease]:
    """Yield requests; most of those that do not even fit alone are not asked for."""
    kept = 0
    for number in range(4 * most):
        request = make(number)
        if decide(balances, request, divided.DAWN).allowed or chance(rng, 0.04):
            yield request
            kept += 1
        if kept == most:
            return


def some_policy(rng: random.Random) -> tuple[CompiledPolicy, Planning]:
    """Return a policy, and rounds and groups under it."""
    kind = rng.choice(["crowded", "crowded", "divided", "plain"])
    if kind == "plain":
        compiled = ledgers.compiled_from(ledgers.policy_text(rng))
    elif kind == "divided":
        compiled = divided.policy(rng)
    else:
        compiled = ledgers.compiled_from(crowded_policy(rng))
    planning = Planning()
    if chance(rng, 0.35):
        schedule = Unlocking(rng.randint(2, 4), Fraction(rng.randint(0, 4), 5))
        rule = RotationRule(schedule, rng.choice(list(Retired)))
        compiled = compile_policy(structs.replace(compiled.policy, rotation=rule))
    if compiled.policy.rotation is not None or chance(rng, 0.25):
        opened(rng, compiled, planning)
    return compiled, planning


def crowded_policy(rng: random.Random) -> str:
    """Return a policy of which many rules of all units may deny."""
    relation = rng.choice(RELATIONS)
    units: dict[str, dict[str, object]] = {
        "home": {"id": "home_id"},
        "user": {"id": "user_id", "within": "home"},
        "day": {
            "id": "user_id",
            "within": "user",
            "time": {"column": "at", "period": "day"},
        },
    }
    domain = {"values": ["CH", "DE", "FR"], "immutable": ["user", "home", "day"]}
    several: list[object] = [{"rho": 1}, {"rdp": {"4": 1, "16": 2}}]
    budgets = [{"eps": 1, "delta": 1e-7}] if chance(rng, 0.5) else several
    rules = [
        {
            "name": f"p{number}",
            "unit": rng.choice(list(units)),
            "when": rng.choice(["true", "true", '"age" in m.attributes']),
            "budget": rng.choice(budgets),
        }
        for number in range(rng.randint(3, 6))
    ]
    written = {
        "modicum": "policy/v1",
        "name": "crowded",
        "dp": {"filter": rng.choice(["combined-v2", "zcdp-v1", "basic-v1"])},
        "units": {name: {**one, "neighbors": relation} for name, one in units.items()},
        "schema": {"attributes": {one: ["low", {}] for one in divided.ATTRIBUTES}},
        "population": {
            "partition_by": {"country": domain},
            "groups": {"immutable": [rng.choice(list(units))]},
        },
        "policies": rules,
    }
    return json.dumps(written).replace('"4":', "4:").replace('"16":', "16:")


class Crowd:
    """Makes releases of which a few at a time fit under one crowded policy."""

    def __init__(
        self, rng: random.Random, compiled: CompiledPolicy, groups: Sequence[int]
    ) -> None:
        self._rng, self._compiled, self._groups = rng, compiled, groups
        filters = [compiled.filter_of(rule.budget) for rule in compiled.rules]
        self._caps: dict[int, int] = {DELTA: min(one.delta_cap for one in filters)}
        for index, cap in (each for one in filters for each in one.caps):
            self._caps[index] = min(cap, self._caps.get(index, cap))
        self._most = rng.choice([1, 3, 3])

    def make(self, number: int, day: int) -> RecordedRelease:
        many = self._rng.randint(1, self._most)
        mechanisms = tuple(self._mechanism(day) for _ in range(many))
        return RecordedRelease(f"r-{number}", "0" * 64, {}, {}, mechanisms)

    def _mechanism(self, day: int) -> RecordedMechanism:
        rng, units = self._rng, self._compiled.policy.vocabulary.units
        same = self._loss() if chance(rng, 0.5) else None
        low = rng.choice(self._groups or [0])
        spans = ((low, low + (low + 1 in self._groups and chance(rng, 0.5))),)
        countries = tuple(sorted(rng.sample(["CH", "DE", "FR"], rng.randint(1, 2))))
        today = ((day - rng.randint(0, 1), day),)
        return RecordedMechanism(
            description={"name": "m", "kind": "declared"},
            attributes=tuple(rng.sample(divided.ATTRIBUTES, 1)),
            labels={},
            losses={unit: same or self._loss() for unit in units},
            part=Part(
                where=((("country", countries),),) if chance(rng, 0.7) else None,
                periods=today if chance(rng, 0.6) else None,
                groups=spans if self._groups or chance(rng, 0.3) else None,
            ),
            neighbors={
                unit: relation
                for unit in units
                if (relation := self._compiled.policy.vocabulary.relation(unit))
                != "add-remove"
            },
        )

    def _loss(self) -> Loss:
        rng, coordinates = self._rng, [0] * COORDINATES
        for index, cap in self._caps.items():
            parts = [0, 0, 1, 2] if index == DELTA else [0, 1, 1, 2, 3]
            part = cap * rng.choice(parts) // (4 * self._most)
            odd = rng.choice([0, 0, 0, 1]) * (part > 0)
            coordinates[index] = INFINITE if chance(rng, 0.1) else part + odd
        if coordinates[DELTA] == INFINITE:
            coordinates[DELTA] = 0
        return Loss(tuple(coordinates))


def opened(rng: random.Random, compiled: CompiledPolicy, planning: Planning) -> None:
    """Open some rounds; groups come and go."""
    units = [one for one in compiled.policy.vocabulary.units if chance(rng, 0.4)]
    share, group = 0, 0
    for number in range(rng.randint(1, 4)):
        share = rng.randint(max(share, MILLION // 3), MILLION)
        planning.open_round(RoundOpened(f"o{number}", dict.fromkeys(units, share)))
        for _ in range(rng.choice([0, 1, 2])):
            planning.activate(GroupActivated(group, f"o{number}"))
            group += 1
        active = [one for one, each in planning.groups.items() if not each.until]
        if active and chance(rng, 0.2):
            planning.retire(GroupRetired(active[0], f"o{number}"))


def maker(
    rng: random.Random, compiled: CompiledPolicy, planning: Planning
) -> Callable[[int, int], RecordedRelease]:
    """Return what makes random releases, near the limits of a policy."""
    if not compiled.policy.vocabulary.population.partitions:
        return lambda number, _: ledgers.release(rng, number)
    groups = list(planning.groups)
    if compiled.policy.name == "crowded":
        return Crowd(rng, compiled, groups).make
    releases, part = divided.Releases(rng, compiled), rng.choice([1, 1, 2])

    def make(number: int, day: int) -> RecordedRelease:
        made = releases.make(number, day)
        if groups and chance(rng, 0.8):
            low = rng.choice(groups)
            spans = ((low, min(low + rng.choice([0, 1]), groups[-1])),)
            made = changed(
                made, lambda one: replace(one, part=replace(one.part, groups=spans))
            )
        return changed(made, lambda one: smaller(one, part))

    return make


def changed(
    made: RecordedRelease, change: Callable[[RecordedMechanism], RecordedMechanism]
) -> RecordedRelease:
    return structs.replace(made, mechanisms=tuple(map(change, made.mechanisms)))


def smaller(one: RecordedMechanism, part: int) -> RecordedMechanism:
    """Return a mechanism whose finite losses are some part of what they were."""
    return replace(
        one,
        losses={
            unit: Loss(
                tuple(
                    units if units == INFINITE else units // part
                    for units in loss.coordinates
                )
            )
            for unit, loss in one.losses.items()
        },
    )


# --- what the problem says is what the ledger says ------------------------------------


def subsets(rng: random.Random, count: int) -> Iterator[tuple[int, ...]]:
    """Yield everybody, and some of them, in the order of the batch."""
    yield tuple(range(count))
    for _ in range(12):
        part = rng.choice([0.3, 0.6, 0.8])
        yield tuple(number for number in range(count) if chance(rng, part))


def test_a_set_of_requests_fits_if_and_only_if_the_ledger_allows_it() -> None:
    seen: Counter[str] = Counter()
    for one in rounds("problem", examples(34), 7):
        found = one.problem()
        exact = set(np.flatnonzero(found.exact).tolist())
        seen["requests"] += len(found.numbers)
        seen["exact"] += len(exact)
        seen["two clauses"] += bool(found.problem.block.any())
        seen["two units"] += len({unit for unit, _ in found.coordinates}) > 1
        for some in subsets(one.rng, found.problem.requests):
            fits = not verify(found.problem, some)
            allowed = one.allowed(found.numbers[list(some)].tolist())
            assert allowed or not fits, "the problem is never looser than the ledger"
            if exact.issuperset(some):
                assert fits == allowed
                seen["exact sets that fit"] += fits
                seen["exact sets that do not"] += not fits
            else:
                seen["stricter"] += allowed and not fits
    assert 2 * seen["exact"] > seen["requests"] > examples(100), seen
    assert seen["exact sets that fit"] > examples(100), seen
    assert seen["exact sets that do not"] > examples(20), seen
    for what in ("two clauses", "two units", "stricter"):
        assert seen[what], (what, seen)


def test_who_is_left_out_says_why() -> None:
    seen: Counter[Reason] = Counter()
    for one in rounds("left out", counted(16), 6):
        found = one.problem()
        out = [each.request for each in found.left_out]
        assert sorted([*out, *found.numbers.tolist()]) == [*range(len(one.requests))]
        assert all(one.allowed([number]) for number in found.numbers.tolist())
        for each in found.left_out:
            seen[each.reason] += 1
            allowed = one.allowed([each.request])
            assert allowed == each.verdict.allowed == (each.reason is Reason.UNCOVERED)
            result = each.verdict.losses
            single = any(
                not loss.allowed and loss.rule.stage is Stage.RELEASE for loss in result
            )
            assert single == (each.reason is Reason.SINGLE)
            if each.reason is Reason.UNCOVERED:
                seen[denied_instead(one, each.request)] += 1
    assert set(seen) == set(Reason), seen


def denied_instead(one: Round, number: int) -> Reason:
    """Return why a request is left out if what no rule limits is denied."""
    strict = structs.replace(one.balances.compiled.policy, allows_unmatched=False)
    fresh = Balances(compile_policy(strict))
    (found,) = left_out(fresh, [one.requests[number]], one.day)
    assert found.verdict.unmatched
    return found.reason


# --- plans ----------------------------------------------------------------------------


def plan(one: Round, name: str, engine_of: EngineOf = NumpyEngine) -> RoundPlan:
    return plan_round(
        one.balances,
        one.requests,
        one.weights,
        ON_LEDGER[name](),
        one.day,
        Means(engine_of),
    )


def test_the_ledger_allows_every_plan_and_nothing_more() -> None:
    seen: Counter[str] = Counter()
    for one in rounds("plans", examples(5), 8):
        before = one.balances.dump()
        for name in ON_LEDGER:
            found = plan(one, name)
            assert one.balances.dump() == before, "nothing is charged"
            explained(one, found, replayed(one, found))
            batch = chosen(name, found)
            if found.round.exact.all():
                assert batch <= set(found.accepted)
            seen["exact"] += bool(found.round.exact.all())
            seen["accepted"] += len(found.accepted)
            seen["added"] += len(set(found.accepted) - batch)
            seen["rejected"] += len(found.round.numbers) - len(found.accepted)
    assert seen["accepted"] > examples(60), seen
    assert seen["rejected"] > examples(15), seen
    assert seen["exact"] > examples(5), seen


def chosen(name: str, found: RoundPlan) -> set[int]:
    """Return what an allocator accepts of a round, by itself."""
    problem = found.problem
    if not problem.places:
        return set(found.round.numbers.tolist())
    accepted = ON_LEDGER[name]()(problem, open_engine(problem, NumpyEngine))
    return set(found.round.numbers[accepted].tolist())


def replayed(one: Round, found: RoundPlan) -> Balances:
    """Check that the ledger allows a plan to the last, and then nothing else."""
    balances = one.copy()
    for number in found.accepted:
        assert decide(balances, one.requests[number], one.day).allowed
        balances.charge(one.requests[number], one.day)
    out = {each.request: each.reason for each in found.left_out}
    for number in set(range(len(one.requests))) - set(found.accepted):
        if out.get(number) is not Reason.UNCOVERED:
            assert not decide(balances, one.requests[number], one.day).allowed
    return balances


def explained(one: Round, found: RoundPlan, after: Balances) -> None:
    """Check what is said of the requests that a plan does not accept."""
    out = {each.request for each in found.left_out}
    for number in set(range(len(one.requests))) - set(found.accepted):
        if number in out:
            continue
        assert one.allowed([number])
        result = obstacles(found, number)
        assert result
        if found.round.exact.all():
            blocking = set(decide(after, one.requests[number], one.day).blocking)
            assert {each.rule for each in result} <= blocking


def test_all_engines_make_the_same_plan() -> None:
    for one in rounds("engines", examples(4), 8):
        for name in ON_LEDGER:
            first = plan(one, name)
            again = plan(one, name, NumbaEngine)
            assert again.accepted == first.accepted


def most(one: Round) -> int:
    """Return the most that may be accepted, by deciding every subset."""

    def search(number: int, balances: Balances) -> int:
        if number == len(one.requests):
            return 0
        without = search(number + 1, balances)
        request = one.requests[number]
        if not decide(balances, request, one.day).allowed:
            return without
        copy = balances.copied()
        copy.charge(request, one.day)
        return max(without, one.weights[number] + search(number + 1, copy))

    return search(0, one.copy())


def test_the_exact_solver_is_as_good_as_trying_everything() -> None:
    better = tried = 0
    for one in rounds("optimum", counted(12), 6):
        found = one.problem()
        exact = one.among(found.numbers[found.exact].tolist())
        if not exact.problem().exact.all():
            continue
        plans = {
            name: plan_round(
                exact.balances, exact.requests, exact.weights, solver, exact.day
            )
            for name, solver in (
                ("best", BestEachRound(gap=0)),
                ("first", ON_LEDGER["fcfs"]()),
            )
        }
        worth = {
            name: sum(exact.weights[number] for number in each.accepted)
            for name, each in plans.items()
        }
        assert worth["best"] == most(exact)
        tried += 1
        better += worth["best"] > worth["first"]
    assert tried > counted(5)
    assert better
