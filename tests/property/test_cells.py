"""Every decision of random histories, against an oracle that tries every point.

The oracle itself is held against cases that were worked out by hand.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from typing import TypeAlias

import pytest
from budget import counted, examples, seed
from msgspec.structs import replace
from oracle.cells import DenseLedger, Judgment, Turns, period_number
from samples import divided

from modicum.accounting import COORDINATES, INFINITE, Loss, Total
from modicum.accounting.filters.budget import filter_for
from modicum.accounting.filters.unlock_schedule import Unlocking
from modicum.accounting.grid import RHO
from modicum.ledger import Balances, RuleLoss, decide
from modicum.ledger.cells import segments
from modicum.ledger.decision.balances import ReservedRelease
from modicum.ledger.decision.unlocked_shares import Locked
from modicum.ledger.log.events import GroupActivated, GroupRetired, RoundOpened
from modicum.ledger.log.recorded_release import RecordedMechanism, RecordedRelease
from modicum.ledger.state.rounds import Planning
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_policy, compile_text
from modicum.policy.model import Retired, RotationRule
from modicum.policy.rules import Stage
from modicum.release import Part, Relation
from modicum.release.parts import Box, Span
from modicum.release.units import RELATIONS

#: How many random histories are lived through.
HISTORIES = 2000 if examples(1) > 1 else max(40, examples(60))
#: More segments than any of these histories needs.
ENDLESS = 10**6
ONE = 10**12
NOVEMBER = date(2026, 11, 1).toordinal()

POLICY = """
modicum: policy/v1
name: divided
units:
  user: {{id: user_id, neighbors: {relation}}}
  user-day: {{id: user_id, time: {{column: at, period: day}}}}
  user-month: {{id: user_id, time: {{column: at, period: month}}}}
schema: {{attributes: {{age: low, birth: [low, {{}}, static]}}}}
population:
  partition_by:
    country: {{values: [CH, DE, FR], immutable: [user]}}
    shard: {{range: [0, 9]}}
  time_detail: {{user-day: {detail}}}
policies:
  - {{name: by-user, when: "true", unit: user, budget: {{rho: 1}}}}
  - {{name: by-day, when: "true", unit: user-day, budget: {{rho: 1}}}}
  - {{name: by-month, when: "true", unit: user-month, budget: {{rho: 1}}}}
"""


def policy(relation: Relation = "add-remove", detail: int = 1000) -> CompiledPolicy:
    text = POLICY.format(relation=relation, detail=detail)
    return compile_text(text.encode(), "policy.yaml")


def loss(rho: int) -> Loss:
    coordinates = [INFINITE] * COORDINATES
    coordinates[RHO], coordinates[-1] = rho, 0
    return Loss(tuple(coordinates))


def release(
    identifier: str,
    *boxes: Box,
    rho: int = ONE,
    periods: tuple[Span, ...] | None = None,
    relation: Relation = "add-remove",
    attributes: tuple[str, ...] = ("age",),
    groups: tuple[Span, ...] | None = None,
) -> RecordedRelease:
    units = ("user", "user-day", "user-month", "home")
    neighbors = {} if relation == "add-remove" else {"user": relation}
    one = RecordedMechanism(
        description={"name": "m", "kind": "declared"},
        attributes=attributes,
        labels={},
        losses=dict.fromkeys(units, loss(rho)),
        part=Part(where=boxes or None, periods=periods, groups=groups),
        neighbors=neighbors,
    )
    return RecordedRelease(identifier, "0" * 64, {}, {}, (one,))


CH: Box = (("country", ("CH",)),)
DE: Box = (("country", ("DE",)),)
EAST: Box = (("country", ("CH",)), ("shard", ((0, 4),)))


# --- the oracle, against cases worked out by hand -------------------------------------


def test_disjoint_cells_compose_in_parallel() -> None:
    ledger = DenseLedger(policy())
    ledger.add(release("ch", CH), NOVEMBER)
    # The country of a user-day is not declared immutable, nor that of a larger unit.
    assert ledger.blocking(release("de", DE), NOVEMBER) == ("by-day", "by-month")
    assert ledger.blocking(release("two", CH), NOVEMBER)[0] == "by-user"
    assert ledger.blocking(release("all"), NOVEMBER)[0] == "by-user"
    # Nor is the shard of a user: a box of it is charged for the country.
    assert ledger.blocking(release("east", EAST), NOVEMBER)[0] == "by-user"


def test_days_of_a_month_add_up_in_the_month_and_nowhere_else() -> None:
    ledger = DenseLedger(policy())
    fits = ONE // 30
    for day in range(30):
        daily = release(f"d{day}", CH, rho=fits, periods=((NOVEMBER + day,) * 2,))
        assert ledger.blocking(daily, NOVEMBER + day) == ()
        ledger.add(daily, NOVEMBER + day)
    assert ONE - 30 * fits == 10
    today = ((NOVEMBER, NOVEMBER),)
    over = release("over", DE, rho=11, periods=today)
    assert ledger.blocking(over, NOVEMBER) == ("by-month",)
    full = release("full", DE, rho=10, periods=today)
    assert ledger.blocking(full, NOVEMBER) == ()
    december = release("dec", DE, periods=((NOVEMBER + 30, NOVEMBER + 60),))
    assert ledger.blocking(december, NOVEMBER) == ()
    both = release("both", DE, rho=11, periods=((NOVEMBER + 29, NOVEMBER + 30),))
    assert ledger.blocking(both, NOVEMBER) == ("by-month",)
    # What has no time reads every month, whatever days the release names.
    birth = release("birth", DE, rho=11, periods=december.mechanisms[0].part.periods,
                    attributes=("birth",))  # fmt: skip
    assert ledger.blocking(birth, NOVEMBER) == ("by-month",)


@pytest.mark.parametrize(("rho", "second", "allowed"), [
    # To substitute within Switzerland: 4 rho. From there to Germany: rho + rho.
    (ONE // 4, ONE // 4, True),
    (ONE // 4, ONE // 4 + 1, False),  # 4 rho within Germany.
    (0, ONE // 4, True),
])  # fmt: skip
def test_a_pair_of_cells_of_add_remove_losses(
    rho: int, second: int, allowed: bool
) -> None:
    ledger = DenseLedger(policy("substitute"))
    first = release("ch", CH, rho=rho)
    ledger.add(first, NOVEMBER)
    blocking = ledger.blocking(release("de", DE, rho=second), NOVEMBER)
    assert ("by-user" not in blocking) == allowed


def test_a_pair_of_cells_of_substitution_losses_adds_them() -> None:
    ledger = DenseLedger(policy("substitute"))
    ledger.add(release("ch", CH, rho=ONE // 2, relation="substitute"), NOVEMBER)
    half = release("de", DE, rho=ONE // 2, relation="substitute")
    assert "by-user" not in ledger.blocking(half, NOVEMBER)
    more = release("de", DE, rho=ONE // 2 + 1, relation="substitute")
    assert "by-user" in ledger.blocking(more, NOVEMBER)
    ledger.add(half, NOVEMBER)
    # Any two of three countries make a pair; nobody is in all three.
    france: Box = (("country", ("FR",)),)
    third = release("fr", france, rho=ONE // 2, relation="substitute")
    assert "by-user" not in ledger.blocking(third, NOVEMBER)
    more = release("fr", france, rho=ONE // 2 + 1, relation="substitute")
    assert "by-user" in ledger.blocking(more, NOVEMBER)
    ledger.remove("ch")
    ledger.remove("de")
    assert "by-user" not in ledger.blocking(more, NOVEMBER)


def test_periods_long_ago_are_not_told_apart() -> None:
    ledger = DenseLedger(policy(detail=3))
    old = ((NOVEMBER - 40, NOVEMBER - 40),)
    ledger.add(release("old", CH, periods=old), NOVEMBER)
    elsewhere = ((NOVEMBER - 20, NOVEMBER - 20),)
    late = NOVEMBER + 31  # Another month, so that only the rule by day can deny.
    assert "by-day" in ledger.blocking(release("x", periods=elsewhere), NOVEMBER)
    assert "by-day" in ledger.blocking(release("x", periods=elsewhere), NOVEMBER - 19)
    # What was told apart when it was charged stays so: here 30 days before November.
    assert "by-day" not in ledger.blocking(
        release("x", periods=((NOVEMBER - 2, NOVEMBER + 2),)), NOVEMBER
    )
    assert "by-day" in ledger.blocking(
        release("x", periods=((NOVEMBER - 2, NOVEMBER + 2),)), late
    )


@pytest.mark.parametrize("day", [date(2026, 12, 27), date(2027, 1, 3)])
def test_weeks_begin_on_monday(day: date) -> None:
    sunday, monday = day.toordinal(), day.toordinal() + 1
    assert period_number("week", sunday) + 1 == period_number("week", monday)
    assert period_number("week", monday) == period_number("week", monday + 6)


# --- production, against the oracle ---------------------------------------------------


@dataclass
class Tally:
    """What was tried."""

    seen: Counter[str] = field(default_factory=Counter)

    def note(self, judged: list[Judgment], denied: bool) -> None:
        self.seen["decisions"] += 1
        self.seen["denials"] += denied
        self.seen["rules"] += len(judged)
        self.seen["denied in some cells, admitted in others"] += any(
            one.denied and one.admitted for one in judged
        )


#: A sum before and one together, as far as a rule looks at them.
Pair: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


def pairs(judged: Judgment) -> set[Pair]:
    """Return the sums of the places that may have decided."""
    found = judged.admitted if judged.allowed else judged.denied
    return {(whole(before), whole(together)) for before, together in found}


def whole(sums: dict[int, float]) -> tuple[int, ...]:
    return tuple(int(min(one, INFINITE)) for one in sums.values())


def shown(judged: Judgment, result: RuleLoss) -> Pair:
    """Return the sums that a verdict shows, at the same coordinates."""
    before, _ = (judged.admitted or judged.denied)[0]
    return units(result.before, before), units(result.together, before)


def units(total: Total, watched: dict[int, float]) -> tuple[int, ...]:
    return tuple(total.units(index) for index in watched)


def agree(
    balances: Balances, ledger: DenseLedger, new: RecordedRelease, day: int
) -> list[Judgment]:
    verdict = decide(balances, new, day)
    judged = ledger.judge(new, day)
    assert [one.rule.id for one in verdict.losses] == [one.rule.id for one in judged]
    for result, one in zip(verdict.losses, judged, strict=True):
        assert result.allowed == one.allowed, (one.rule.id, result, one)
        assert shown(one, result) in pairs(one), (one.rule.id, result, one)
        assert bool(result.cells_denying) == bool(one.denied)
        if result.rule.stage is Stage.HISTORY and result.compared is not None:
            assert left(result) == least_left(one, result), (one.rule.id, result, one)
        assert (result.locked is not None) == (result.share == 0 and not result.allowed)
        if result.locked is not None:
            assert_locked(ledger, result.rule.unit, result.locked)
    denied = tuple(one.rule.id for one in judged if not one.allowed)
    assert verdict.blocking == denied
    unmatched = ledger.unmatched(new, day)
    assert verdict.unmatched == unmatched
    assert verdict.allowed == (not denied and not unmatched)
    return judged


def left(result: RuleLoss) -> float:
    """Return what a verdict shows to be left of the limit."""
    assert result.compared is not None
    together = result.together.units(result.compared)
    cap = dict(result.own_filter.caps)[result.compared]
    return cap - together if together < INFINITE else -math.inf


def least_left(judged: Judgment, result: RuleLoss) -> float:
    """Return what is left where it is least: at places that deny, if one does."""
    assert result.compared is not None
    places = judged.denied or judged.admitted
    whole = dict(filter_for(result.rule.budget, result.filter_name).caps)[
        result.compared
    ]
    return min(
        math.floor(whole * share) - together[result.compared]
        if together[result.compared] < INFINITE
        else -math.inf
        for (_, together), share in zip(places, judged.shares, strict=True)
    )


def assert_locked(ledger: DenseLedger, unit: str, locked: Locked) -> None:
    """Check what is said of why nothing is unlocked."""
    turns, rotation = ledger.turns, ledger.compiled.policy.rotation
    assert locked.unit == (turns.of_unit(unit) == 0)
    if locked.unit:
        return
    assert rotation is not None
    groups = range(divided.GROUPS + 2)
    open_ = [one for one in groups if turns.of_group(rotation, one)]
    assert [one for one in groups if within(one, locked.open)] == open_
    named = (*locked.ahead, *locked.never, *locked.closed)
    assert named
    assert not any(within(one, named) for one in open_)
    retired = [one for one in groups if within(one, locked.closed)]
    assert set(retired) <= turns.began.keys()


def within(number: int, spans: Iterable[Span]) -> bool:
    return any(low <= number <= high for low, high in spans)


HOMES = """
modicum: policy/v1
name: homes
units:
  home: {{id: home_id}}
  user: {{id: user_id, neighbors: {relation}, within: home}}
schema: {{attributes: {{age: low}}}}
population: {{groups: {{immutable: [home]}}}}
policies: [{{name: by-user, when: "true", unit: user, budget: {{rho: 1}}}}]
"""


@pytest.mark.spec("DEC-5")
@pytest.mark.parametrize("relation", RELATIONS)
def test_who_moves_to_another_home_may_come_into_another_group(
    relation: Relation,
) -> None:
    compiled = compile_text(HOMES.format(relation=relation).encode(), "policy.yaml")
    balances, ledger = Balances(compiled), DenseLedger(compiled)
    first = release("first", groups=((0, 0),), relation=relation)
    balances.charge(first, NOVEMBER)
    ledger.add(first, NOVEMBER)
    second = release("second", groups=((1, 1),), relation=relation)
    (judged,) = agree(balances, ledger, second, NOVEMBER)
    assert judged.allowed == (relation == "add-remove")


@pytest.mark.spec("DEC-3")
def test_the_cell_that_is_shown_is_one_that_denies() -> None:
    compiled = policy()
    balances, ledger = Balances(compiled), DenseLedger(compiled)
    for old in (release("all", CH, rho=INFINITE), release("some", DE, rho=ONE // 2)):
        balances.charge(old, NOVEMBER)
        ledger.add(old, NOVEMBER)
    endless = release("new", CH, rho=INFINITE).mechanisms
    little = release("new", DE, rho=ONE // 4).mechanisms
    both = replace(release("new"), mechanisms=(*endless, *little))
    agree(balances, ledger, both, NOVEMBER)


@dataclass
class Life:
    """A random history, in production and in the oracle's own books."""

    rng: random.Random
    compiled: CompiledPolicy
    balances: Balances
    ledger: DenseLedger
    releases: divided.Releases
    brought: list[ReservedRelease] = field(default_factory=list)
    day: int = divided.DAWN

    @classmethod
    def begin(cls, what: str, number: int, segments_max: int = ENDLESS) -> Life:
        rng = random.Random(f"{what} {seed()} {number}")
        compiled = divided.policy(rng)
        return cls(
            rng,
            compiled,
            Balances(compiled, segments_max=segments_max),
            DenseLedger(compiled),
            divided.Releases(rng, compiled),
        )

    def asks(self) -> Iterator[RecordedRelease]:
        """Yield what is asked for; charge it afterward by `let_in`."""
        for number in range(self.rng.randint(10, 25)):
            self.day += self.rng.choice([0, 0, 1, 1, 3, 20])
            yield self.releases.make(number, self.day)

    def let_in(self, new: RecordedRelease) -> None:
        self.brought.append(ReservedRelease(new, self.day))
        self.balances.charge(new, self.day)
        self.ledger.add(new, self.day)

    def give_up(self, chance: float) -> None:
        """Void something that counts, or let it run out."""
        counted = [place for place, one in enumerate(self.brought) if one.counts]
        if counted and self.rng.random() < chance:
            place = self.rng.choice(counted)
            old = self.brought[place]
            self.brought[place] = old._replace(counts=False)
            self.balances.take_back(old.release, old.day)
            self.ledger.remove(old.release.id)


@pytest.mark.soak
@pytest.mark.spec("DEC-1")
def test_decisions_are_those_of_an_oracle_that_tries_every_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(segments, "BOXES_MAX", ENDLESS)
    tally = Tally()
    for number in range(HISTORIES):
        life = Life.begin("cells", number)
        for new in life.asks():
            judged = agree(life.balances, life.ledger, new, life.day)
            denied = not all(one.allowed for one in judged)
            tally.note(judged, denied)
            if not denied or life.rng.random() < 0.08:  # It may have happened already.
                life.let_in(new)
            life.give_up(0.15)
        # What the log alone says, is what was kept all along.
        again = Balances(life.compiled, life.brought, segments_max=ENDLESS)
        agree(again, life.ledger, life.releases.make(99, life.day), life.day)
    print("; ".join(f"{count} {what}" for what, count in tally.seen.items()))
    decisions = tally.seen["decisions"]
    assert decisions * 3 // 10 < tally.seen["denials"] < decisions * 7 // 10
    assert tally.seen["denied in some cells, admitted in others"] > decisions // 20


@dataclass
class Turning:
    """Rounds and user groups, as the log tells of them and as the oracle does."""

    rng: random.Random
    planning: Planning = field(default_factory=Planning)
    turns: Turns = field(default_factory=Turns)

    def go_on(self, units: Iterable[str]) -> None:
        """Open a round, perhaps; let groups come and go in it."""
        if not self.turns.opened or self.rng.random() < 0.25:
            self._open(units)
        present = f"round {len(self.turns.opened)}"
        for group in range(divided.GROUPS + 2):
            active = group in self.turns.began and group not in self.turns.ended
            if group not in self.turns.began and self.rng.random() < 0.3:
                self.planning.activate(GroupActivated(group, present))
                self.turns.began[group] = len(self.turns.opened)
            elif active and self.rng.random() < 0.05:
                self.planning.retire(GroupRetired(group, present))
                self.turns.ended.add(group)

    def _open(self, units: Iterable[str]) -> None:
        before = self.turns.opened[-1] if self.turns.opened else {}
        now = {
            unit: max(share, before.get(unit, Fraction(0)))
            for unit in units
            if unit in before or self.rng.random() < 0.2
            for share in [Fraction(self.rng.choice([1, 2, 3]), 3)]
        }
        millionths = {unit: int(share * 10**6) for unit, share in now.items()}
        exact = {unit: Fraction(one, 10**6) for unit, one in millionths.items()}
        self.turns.opened.append(exact)
        self.planning.open_round(
            RoundOpened(f"round {len(self.turns.opened)}", millionths)
        )


def turning(compiled: CompiledPolicy, rng: random.Random) -> CompiledPolicy:
    """Return a policy under which user groups take turns."""
    schedule = Unlocking(rng.choice([1, 2, 3, 5]), Fraction(rng.choice([0, 1, 2]), 2))
    rule = RotationRule(schedule, rng.choice(list(Retired)))
    return compile_policy(replace(compiled.policy, rotation=rule))


def unlocked(ledger: DenseLedger) -> DenseLedger:
    """Return the same ledger, with all limits unlocked."""
    found = copy(ledger)
    found.compiled = compile_policy(replace(ledger.compiled.policy, rotation=None))
    found.turns = Turns()
    return found


@pytest.mark.soak
@pytest.mark.spec("DEC-11")
def test_as_much_is_unlocked_as_an_oracle_finds_at_every_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(segments, "BOXES_MAX", ENDLESS)
    tally = Tally()
    partly, held_back, locked = 0, 0, 0
    for number in range(HISTORIES // 2):
        life = Life.begin("turning", number)
        if life.rng.random() < 0.9:
            life.compiled = turning(life.compiled, life.rng)
        units = life.compiled.policy.vocabulary.units
        turn = Turning(life.rng)
        balances = Balances(life.compiled, segments_max=ENDLESS, planning=turn.planning)
        life.balances = balances
        life.ledger = DenseLedger(life.compiled, turn.turns)
        for new in life.asks():
            turn.go_on(units)
            judged = agree(balances, life.ledger, new, life.day)
            losses = decide(balances, new, life.day).losses
            shares = [one.share for one in losses]
            locked += any(one.locked is not None for one in losses)
            partly += any(0 < share < 1 for share in shares)
            denied = not all(one.allowed for one in judged)
            held_back += denied and not unlocked(life.ledger).blocking(new, life.day)
            tally.note(judged, denied)
            if not denied or life.rng.random() < 0.08:
                life.let_in(new)
            life.give_up(0.15)
        again = Balances(
            life.compiled, life.brought, segments_max=ENDLESS, planning=turn.planning
        )
        agree(again, life.ledger, life.releases.make(99, life.day), life.day)
    print("; ".join(f"{count} {what}" for what, count in tally.seen.items()))
    print(f"{partly} partly unlocked; {held_back} allowed, were everything unlocked")
    decisions = tally.seen["decisions"]
    assert decisions // 5 < tally.seen["denials"] < decisions * 9 // 10
    assert partly > decisions // 5
    assert locked > decisions // 20
    assert held_back > decisions // 20


@pytest.mark.spec("DEC-11")
def test_too_few_segments_never_unlock_more() -> None:
    decisions, allowed, stricter = 0, 0, 0
    for number in range(counted(30)):
        life = Life.begin("capped turns", number)
        life.compiled = turning(life.compiled, life.rng)
        turn = Turning(life.rng)
        few = Balances(life.compiled, segments_max=3, planning=turn.planning)
        life.balances = few
        life.ledger = DenseLedger(life.compiled, turn.turns)
        for new in life.asks():
            turn.go_on(life.compiled.policy.vocabulary.units)
            verdict = decide(few, new, life.day)
            denied = set(life.ledger.blocking(new, life.day))
            assert denied <= set(verdict.blocking)
            decisions += 1
            stricter += denied < set(verdict.blocking)
            allowed += verdict.allowed and bool(few.rounded)
            if verdict.allowed:
                life.let_in(new)
            life.give_up(0.15)
    print(f"{decisions} decisions, {stricter} stricter; {allowed} allowed when rounded")
    assert 0 < stricter < decisions // 2
    assert allowed > counted(5)


@pytest.mark.spec("DEC-11")
def test_groups_that_nobody_reads_hold_nobody_back() -> None:
    """Though they lie in the same segment, and none is cut any more."""
    policy_ = HOMES.replace("home", "user").replace(", within: user", "")
    lines = [one for one in policy_.splitlines() if "user: {{id: user_id}}" not in one]
    text = "\n".join(lines).format(relation="add-remove")
    compiled = compile_text(text.encode(), "policy.yaml")
    rule = RotationRule(Unlocking(1, Fraction(0)), Retired.CLOSED)
    compiled = compile_policy(replace(compiled.policy, rotation=rule))
    planning = Planning()
    planning.open_round(RoundOpened("first", {}))
    for group in (1, 2):
        planning.activate(GroupActivated(group, "first"))
    balances = Balances(compiled, segments_max=1, planning=planning)
    for groups in ((1, 1), (2, 2), (1, 2)):
        new = release("some", rho=ONE // 4, groups=(groups,))
        verdict = decide(balances, new, NOVEMBER)
        assert verdict.allowed
        assert verdict.rounded == ("user",)
        balances.charge(new, NOVEMBER)
    assert not decide(balances, release("x", rho=ONE // 2, groups=((1, 1),))).allowed
    for groups in ((3, 3), (0, 1), (1, 3)):
        assert not decide(balances, release("x", rho=1, groups=(groups,))).allowed


@pytest.mark.spec("DEC-1")
def test_too_few_segments_deny_more_and_never_less() -> None:
    rounded, decisions, stricter = 0, 0, 0
    for number in range(counted(15)):
        life = Life.begin("capped", number, segments_max=3)
        for new in life.asks():
            verdict = decide(life.balances, new, life.day)
            denied = set(life.ledger.blocking(new, life.day))
            assert denied <= set(verdict.blocking)
            decisions += 1
            stricter += denied < set(verdict.blocking)
            if verdict.allowed:
                life.let_in(new)
            life.give_up(0.15)
        rounded += bool(life.balances.rounded)
    print(f"{rounded} histories rounded; {stricter} of {decisions} decisions stricter")
    assert rounded > counted(3)
    assert 0 < stricter < decisions // 2
