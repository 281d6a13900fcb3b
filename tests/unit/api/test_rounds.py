"""Rounds on the ledger: what is unlocked, whose turn it is, and what is left over."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from samples import small

from modicum.accounting.grid import RHO
from modicum.api.local import Decision, Workspace
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.plans import segment_budgets
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    ModicumError,
    UsageError,
    VerificationError,
)
from modicum.ledger import Balances, RuleLoss
from modicum.ledger.log.events import (
    Body,
    GroupActivated,
    GroupRetired,
    PlanCommitted,
)
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

TURNS = """
modicum: policy/v1
name: turns
units: {patient: {id: patient_id}, visit: {id: visit_id}}
schema: {attributes: {age: low}}
population:
  groups: {immutable: [patient]}
  partition_by: {region: {values: [north, south], immutable: [patient]}}
rotation: {active: 3, slack: 0.4, retired: RETIRED}
policies:
  - {name: all, when: "true", unit: patient, budget: {rho: 1}}
  - {name: visits, when: "true", unit: visit, budget: {rho: 10}}
"""


def workspace(folder: Path, retired: str = "first-come") -> Workspace:
    found = small.workspace(folder, policy=TURNS.replace("RETIRED", retired))
    found.init()
    return found


def asks(name: str, rho: float, groups: list[object], **more: object) -> dict[str, Any]:
    cost = {"patient": {"rho": rho}, "visit": {"rho": rho}}
    one = {"name": "m", "mechanism": "gaussian", "attributes": ["age"], "cost": cost}
    return {"release": name, "groups": groups, **more, "mechanisms": [one]}


def losses_of(decision: Decision) -> list[dict[str, Any]]:
    found: Any = decision.to_dict()["losses"]
    return list(found)


def code(error: pytest.ExceptionInfo[ModicumError]) -> Code:
    return error.value.problems[0].code


@pytest.mark.spec("DEC-11")
def test_a_group_may_use_more_in_every_round(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    limits = []
    for _ in range(5):
        decision = ws.check(asks("r", 0.001, [1]))
        (loss,) = [one for one in losses_of(decision) if one["rule"] == "all"]
        limits.append((loss["limit"], loss["unlocked"], decision.allowed))
        ws.rounds.open()
    assert limits == [
        (0, 0, False),
        (0.466666666666, pytest.approx(7 / 15), True),
        (0.8, 0.8, True),
        (1, 1, True),
        (1, 1, True),  # It has retired: what is left is for whoever comes first.
    ]
    present = ws.rounds.present()
    assert present is not None
    assert [(one.group, one.age) for one in present.active] == [(3, 3), (4, 2), (5, 1)]
    assert present.retired == (1, 2)


@pytest.mark.spec("DEC-11")
def test_what_reads_several_groups_is_held_to_the_one_of_which_least_is_unlocked(
    tmp_path: Path,
) -> None:
    ws = workspace(tmp_path)
    for _ in range(3):
        ws.rounds.open()
    assert ws.check(asks("old", 0.9, [1])).allowed
    assert not ws.check(asks("both", 0.9, [{"from": 1, "to": 2}])).allowed
    assert ws.check(asks("both", 0.8, [{"from": 1, "to": 2}])).allowed
    assert not ws.check(asks("all", 0.5, [{"from": 1, "to": 3}])).allowed
    text = ws.check(asks("far", 0.1, [{"from": 1, "to": 4}])).explain()
    assert "nothing is unlocked: group 4 has not started\n" in text
    everybody = asks("everybody", 0.1, [{"from": 1, "to": 3}])
    del everybody["groups"]
    assert not ws.check(everybody).allowed
    # Visits are divided into no groups: their rule is not unlocked step by step.
    shares = {one["rule"]: one["unlocked"] for one in losses_of(ws.check(everybody))}
    assert shares == {"all": 0, "visits": 1}


def locked(ws: Workspace, *groups: object, rho: float = 0.001) -> list[str]:
    """Return why nothing is unlocked, and what helps, in the words of a denial."""
    release = asks("r", rho, list(groups))
    if not groups:
        del release["groups"]
    lines = [one.strip() for one in ws.check(release).explain(deep=False).splitlines()]
    (place,) = (n for n, one in enumerate(lines) if "nothing is unlocked" in one)
    (loss,) = [one for one in ws.check(release).verdict.losses if one.locked]
    assert loss.share == 0
    assert not loss.allowed
    return [lines[place].removeprefix("nothing is unlocked: "), lines[place + 1]]


@pytest.mark.spec("DEC-11")
def test_a_denial_says_of_which_group_nothing_is_unlocked_and_why(
    tmp_path: Path,
) -> None:
    ws = workspace(tmp_path, "closed")
    first = "the next group starts with the next round:  modicum plan open"
    assert locked(ws, 1) == ["group 1 has not started", first]
    for _ in range(4):
        ws.rounds.open()
    named = "groups: {from: 2, to: 4}"
    helps = f"name only groups that are open:  {named}"
    assert locked(ws, 1) == ["group 1 has retired (retired: closed)", helps]
    assert locked(ws, 0) == ["group 0 never starts", helps]
    later = f"wait, or name only groups that are open:  {named}"
    assert locked(ws, 3, 9) == ["group 9 has not started", later]
    assert locked(ws, {"from": 3, "to": 9}) == ["groups 5 to 9 have not started", later]
    assert locked(ws, {"from": 0, "to": 5}) == [
        "group 1 has retired (retired: closed) and group 5 has not started and"
        " group 0 never starts",
        later,
    ]
    assert locked(ws) == [
        "the release names no `groups`, and so also reads those that have not started",
        f"name those that are open:  {named}",
    ]
    # What is named in the remedy is let pass.
    assert ws.check(asks("r", 0.001, [{"from": 2, "to": 4}])).allowed
    for _ in range(3):
        ws.check(asks("cut", 0.001, [3]))
        ws.submit(asks(f"cut-{ws.state().seq}", 0.001, [4]))
    assert locked(ws)[1] == f"name those that are open:  {named}"


def test_a_denial_says_that_the_round_unlocks_nothing_of_a_unit(tmp_path: Path) -> None:
    plain = TURNS.replace("rotation: {active: 3, slack: 0.4, retired: RETIRED}\n", "")
    ws = small.workspace(tmp_path, policy=plain)
    ws.init()
    ws.rounds.open(unlocked={"patient": Fraction(0)})
    helps = "unlock a share:  modicum plan open ID --unlock patient=SHARE"
    why = ["the open round has `patient` at 0 % of every budget", helps]
    assert locked(ws) == locked(ws, 1) == why
    losses = ws.check(asks("r", 0.1, [1])).verdict.losses
    assert [one.rule.id for one in losses if one.locked] == ["all"]
    ws.rounds.open(unlocked={"patient": Fraction(1)})
    assert ws.check(asks("r", 0.1, [1])).allowed


@pytest.mark.spec("DEC-11")
def test_the_cell_is_shown_that_is_over_its_own_limit_by_the_most(
    tmp_path: Path,
) -> None:
    ws = workspace(tmp_path)
    for _ in range(3):
        ws.rounds.open()
    assert ws.submit(asks("old", 0.9, [1])).allowed
    assert ws.submit(asks("young", 0.4, [3])).allowed
    shown = [
        next(one for one in losses_of(decision) if one["rule"] == "all")
        for decision in (
            ws.check(asks("all", 0.15, [{"from": 1, "to": 3}])),
            ws.check(asks("all", 0.05, [{"from": 1, "to": 3}])),
            ws.check(asks("all", 0.12, [{"from": 1, "to": 3}])),
        )
    ]
    assert [(one["cell"], one["cells_denying"]) for one in shown] == [
        ("group 3", 2),  # 0.55 of 0.4667, and group 1 has 1.05 of 1.
        ("group 3", 0),
        ("group 3", 2),
    ]
    text = ws.check(asks("all", 0.15, [{"from": 1, "to": 3}])).explain()
    assert "2 cells deny; this one exceeds its limit by the most rho\n" in text


def test_what_retired_is_closed_if_the_policy_says_so(tmp_path: Path) -> None:
    ws = workspace(tmp_path, "closed")
    for _ in range(4):
        ws.rounds.open()
    assert not ws.check(asks("late", 0.001, [1])).allowed
    assert ws.check(asks("now", 0.001, [{"from": 2, "to": 4}])).allowed


def test_units_are_unlocked_by_hand(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    ws.rounds.open(unlocked={"visit": Fraction(1, 3)})
    assert not ws.check(asks("r", 4, [1])).allowed
    found = {
        one["rule"]: one["unlocked"] for one in losses_of(ws.check(asks("r", 0.1, [1])))
    }
    assert found == {"all": pytest.approx(7 / 15), "visits": 0.333333}
    opened = ws.rounds.open("second")  # What is not named stays as it was.
    assert dict(opened.unlocked) == {"visit": Fraction(333333, 10**6)}
    with pytest.raises(ConflictError, match="unlocks less for `visit`"):
        ws.rounds.open(unlocked={"visit": Fraction(1, 4)})
    with pytest.raises(ConflictError, match="was already opened"):
        ws.rounds.open("round-1")
    with pytest.raises(InputError) as unknown:
        ws.rounds.open(unlocked={"nobody": Fraction(1)})
    assert code(unknown) is Code.UNKNOWN_UNIT
    with pytest.raises(InputError) as beyond:
        ws.rounds.open(unlocked={"visit": Fraction(3, 2)})
    assert code(beyond) is Code.OUT_OF_RANGE
    assert len(ws.state().planning.rounds) == 2


def test_a_unit_that_a_policy_drops_stays_named(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    ws.rounds.open(unlocked={"visit": Fraction(1, 2)})
    without = TURNS.replace("RETIRED", "first-come").replace(
        ", visit: {id: visit_id}", ""
    )
    lines = [one for one in without.splitlines() if "visits" not in one]
    successor = small.compiled("\n".join(lines))
    active = small.workspace(tmp_path, policy=None)
    active.governance.activate(successor, reason="no visits any more")
    again = small.workspace(tmp_path, policy=None)
    opened = again.rounds.open()
    assert dict(opened.unlocked) == {"visit": Fraction(1, 2)}
    assert again.verify().entries == 6


def test_what_is_left_over_is_what_is_unlocked(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    ws.rounds.open(unlocked={"patient": Fraction(1, 2)})
    for _ in range(3):
        ws.rounds.open()
    (first,) = ws.rounds.remainders()
    assert first.standing.share == Fraction(1, 2)
    assert first.standing.own_filter.caps == ((1, 500_000_000_000),)
    assert ws.check(asks("fits", 0.5, [1])).allowed
    assert not ws.check(asks("over", 0.51, [1])).allowed


def test_the_rule_that_leaves_least_is_told_of_what_is_left(tmp_path: Path) -> None:
    more = '  - {name: pay, when: "true", unit: patient, budget: {rho: 0.5}}\n'
    text = TURNS.replace("RETIRED", "first-come") + more
    ws = small.workspace(tmp_path, policy=text)
    ws.init()
    for _ in range(4):
        ws.rounds.open()
    ws.submit(asks("one", 0.2, [1]))
    (first,) = ws.rounds.remainders()
    assert first.standing.rule.id == "pay"


def test_who_tries_again_opens_no_second_round(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    first = ws.rounds.open("monday")
    assert ws.rounds.open("monday") == first
    assert ws.state().seq == 3
    with pytest.raises(ConflictError):
        ws.rounds.open("monday", unlocked={"visit": Fraction(1)})
    half = {"visit": Fraction(1, 2)}
    second = ws.rounds.open("noon", unlocked=half)
    assert ws.rounds.open("noon", unlocked=half) == second
    ws.rounds.open("tuesday")
    with pytest.raises(ConflictError):
        ws.rounds.open("monday")


@pytest.mark.spec("LED-17")
@pytest.mark.parametrize(
    ("body", "why"),
    [
        (GroupActivated(7, "round-4"), "group 7 becomes active in round number 4"),
        (GroupRetired(3, "round-4"), "group 3 retires before all its rounds"),
        (PlanCommitted("p", "round-4", "0" * 64, ("ghost",)), "which does not exist"),
        (PlanCommitted("p", "round-4", "0" * 64, ("canceled",)), "which is canceled"),
    ],
)
def test_an_audit_finds_what_nobody_could_do(
    tmp_path: Path, body: Body, why: str
) -> None:
    ws = workspace(tmp_path)
    for _ in range(4):
        ws.rounds.open()
    ws.submit(asks("canceled", 0.001, [3]))
    ws.cancel("canceled", reason="test")
    assert ws.verify().entries == ws.state().seq
    ws.turn(lambda entry: entry.add(body))
    with pytest.raises(VerificationError, match=why):
        ws.verify()


def test_a_shorter_rotation_retires_at_once(tmp_path: Path) -> None:
    ws = workspace(tmp_path, "closed")
    for _ in range(3):
        ws.rounds.open()
    assert ws.check(asks("r", 0.9, [1])).allowed
    shorter = TURNS.replace("RETIRED", "closed").replace("active: 3", "active: 2")
    active = small.workspace(tmp_path, policy=None)
    active.governance.activate(small.compiled(shorter), reason="shorter")
    assert not active.check(asks("r", 0.001, [1])).allowed
    assert active.check(asks("r", 0.9, [2])).allowed
    active.rounds.open()
    assert active.verify().entries == active.state().seq


def test_what_groups_left_over_is_told(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    ws.rounds.open()
    assert ws.submit(asks("one", 0.25, [1], where={"region": "north"})).allowed
    for _ in range(4):
        ws.rounds.open()
    first, second = ws.rounds.remainders()
    assert (first.group, first.until, second.group) == (1, "round-4", 2)
    assert (first.standing.rule.id, first.standing.cell) == (
        "all",
        "region north, group 1",
    )
    used = [one.standing.before.units(1) for one in (first, second)]
    assert used == [250_000_000_000, 0]
    assert ws.submit(asks("left", 0.8, [1])).allowed is False
    assert ws.submit(asks("rest", 0.75, [1], where={"region": "north"})).allowed


def test_without_a_ledger_there_is_no_round(tmp_path: Path) -> None:
    ws = small.workspace(tmp_path)
    with pytest.raises(UsageError):
        ws.rounds.open()
    ws.init()
    assert ws.rounds.present() is None
    opened = ws.rounds.open("first")  # Without rotation no group takes turns.
    assert (opened.number, opened.active, opened.retired) == (1, (), ())
    assert ws.verify().entries == 2


def test_another_process_reads_the_same_shares_from_the_log(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    for _ in range(2):
        ws.rounds.open()
    ws.submit(asks("one", 0.5, [1]))
    ws.submit(asks("two", 0.4, [1]))
    ws.save_snapshot()
    again = small.workspace(tmp_path, policy=None)
    for release in (asks("x", 0.3, [1]), asks("x", 0.31, [1]), asks("x", 0.4, [2])):
        one, other = again.check(release), ws.check(release)
        lines = [str(each.explain()).replace("(active)", "") for each in (one, other)]
        assert lines[0] == lines[1].replace("policy.yaml", "turns ")
    assert ws.verify().decisions == 2
    assert again.as_of(3).check(asks("x", 0.1, [1])).allowed is True
    assert again.as_of(1).check(asks("x", 0.1, [1])).allowed is False


# --- what each round left, by segment ---------------------------------------------

REGIONS = ("north", "south")
#: A release: the round it came in, its rho in thousandths, its groups and its regions.
Made = tuple[int, int, list[int], tuple[str, ...]]


def live(
    folder: Path, dice: random.Random, rounds: int
) -> tuple[Workspace, list[Made]]:
    """Open rounds, and release in each of them; some releases are canceled later."""
    ws, made, dropped = workspace(folder), list[tuple[str, Made]](), set[str]()
    for number in range(1, rounds + 1):
        share = Fraction(min(number, 4), 4)
        ws.rounds.open(f"w-{number}", unlocked={"visit": share})
        present = ws.rounds.present()
        assert present is not None
        active = [one.group for one in present.active]
        for _ in range(dice.randrange(4)):
            groups = sorted(dice.sample(active, dice.randint(1, len(active))))
            regions = dice.choice((REGIONS, REGIONS[:1], REGIONS[1:]))
            rho, name = dice.randint(1, 60), f"r-{len(made)}"
            asked = asks(name, rho / 1000, [*groups], where={"region": [*regions]})
            if ws.submit(asked, reserve_seconds=86_400).allowed:
                made.append((name, (number, rho, groups, regions)))
        if made and dice.random() < 0.3:
            name = dice.choice(made)[0]
            if name not in dropped:
                ws.cancel(name, reason="called off")
                dropped.add(name)
    return ws, [one for name, one in made if name not in dropped]


def sums(made: list[Made], group: int | None, region: str, rounds: int) -> list[int]:
    """Return what was charged to a region of a group by the end of each round."""
    return [
        sum(
            rho
            for at, rho, groups, regions in made
            if at <= until and (group is None or group in groups) and region in regions
        )
        for until in range(1, rounds + 1)
    ]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("most", [26, 3])
def test_what_is_left_is_what_sums_by_hand_leave(
    tmp_path: Path, seed: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_budgets, "ROUNDS_MAX", most)
    rounds, dice = 7, random.Random(seed)
    ws, made = live(tmp_path, dice, rounds)
    rotation = ws.policy().policy.rotation
    assert rotation is not None
    share = rotation.schedule.share
    found = ws.segment_budgets("all")
    assert found.first == max(1, rounds - most + 1)
    assert found.rounds == tuple(f"w-{n}" for n in range(found.first, rounds + 1))
    life = rotation.schedule.rounds
    started = [n for n in range(1, rounds + 1) if n + life > found.first]
    assert [one.group for one in found.segments] == started
    compared = 0
    for one in found.segments:
        group = one.group
        assert group is not None
        each = [sums(made, group, region, rounds) for region in REGIONS]
        fullest = [spent for spent in each if spent[-1] == max(n[-1] for n in each)]
        answers = []
        for spent in fullest:  # Several, if they are equally full.
            left: list[Any] = []
            for at in range(found.first, rounds + 1):
                age = at - group + 1
                if 1 <= age <= life:
                    whole = 1 - Fraction(spent[at - 1], 1000) / share(age)
                    left.append(pytest.approx(float(whole), abs=1e-9))
                    compared += spent[at - 1] > 0
                else:
                    left.append(None)
            answers.append(left)
        assert list(one.left) in answers
    assert compared > 5


def test_without_groups_everybody_is_one_segment(tmp_path: Path) -> None:
    ws, made = live(tmp_path, random.Random(1), 5)
    (everybody,) = ws.segment_budgets("visits").segments
    assert everybody.group is None
    spent = sums(made, None, "north", 5)
    by_hand = [sum(rho for at, rho, _, _ in made if at <= n) for n in range(1, 6)]
    assert spent != by_hand  # Visits stay in no region: each costs everybody.
    shares = [Fraction(min(number, 4), 4) for number in range(1, 6)]
    assert everybody.left == pytest.approx(
        [1 - rho / 10_000 / one for rho, one in zip(by_hand, shares, strict=True)]
    )
    # Nothing of it can be used while nothing is unlocked; nor is it known better.
    assert ws.segment_budgets("visits").segments == (everybody,)


def test_a_share_of_nothing_leaves_nothing(tmp_path: Path) -> None:
    ws = workspace(tmp_path)
    assert ws.segment_budgets("visits").segments == ()  # No round yet.
    ws.rounds.open("w-1", unlocked={"visit": Fraction(0)})
    assert ws.segment_budgets("visits").segments[0].left == (0.0,)
    ws.rounds.open("w-2", unlocked={"visit": Fraction(1)})
    assert ws.segment_budgets("visits").segments[0].left == (0.0, 1.0)


def test_a_rule_without_a_limit_has_no_budget(tmp_path: Path) -> None:
    text = TURNS.replace("RETIRED", "closed").replace("{rho: 10}", "unlimited")
    ws = small.workspace(tmp_path, policy=text)
    ws.init()
    ws.rounds.open("w-1")
    assert ws.submit(asks("r", 0.1, [1])).allowed
    assert ws.segment_budgets("visits").segments == ()
    (left,) = ws.segment_budgets("all").segments[0].left
    assert left == pytest.approx(1 - 0.1 / float(share_of(ws, 1)), abs=1e-9)


def share_of(ws: Workspace, age: int) -> Fraction:
    rotation = ws.policy().policy.rotation
    assert rotation is not None
    return rotation.schedule.share(age)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_charged_to_more_than_is_read_is_not_left(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where segments are too many to separate, others' charges count as well."""
    defaults = Balances.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "segments_max", 2)
    ws, _ = live(tmp_path, random.Random(seed), 5)
    nearby = 0.0
    for one in ws.segment_budgets("all").segments:
        assert one.group is not None
        if one.left[-1] is None:
            continue
        cell = ws.spenders("all", groups=[one.group])
        spent = Fraction(cell.loss.before.units(RHO), 10**12)
        share = share_of(ws, 5 - one.group + 1)
        whole = max(Fraction(0), 1 - spent / share)
        assert one.left[-1] == pytest.approx(float(whole), abs=1e-9)
        nearby += cell.nearby
    assert nearby > 0


def test_an_entry_between_two_looks_is_not_taken_for_the_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws = workspace(tmp_path)
    ws.rounds.open("w-1")
    view = LedgerView(SqliteStore(tmp_path / "ledger.db"), FixedClock(small.NOON))
    before, charge = view.segment_budgets("all"), view.fullest_cell("all")
    looked = LedgerView.standings

    def disturbed(self: LedgerView) -> list[RuleLoss]:
        found = looked(self)
        name = f"r-{len(ws.state().releases)}"
        assert ws.submit(asks(name, 0.1, [1]), reserve_seconds=86_400).allowed
        return found

    monkeypatch.setattr(LedgerView, "standings", disturbed)
    during, then = view.segment_budgets("all"), view.fullest_cell("all")
    monkeypatch.undo()
    assert before.ledger.seq < during.ledger.seq < then.seq
    after, now = view.segment_budgets("all"), view.fullest_cell("all")
    assert after.segments != during.segments != before.segments
    assert now == then
    assert now.loss.before != charge.loss.before
