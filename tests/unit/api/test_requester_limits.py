"""One identity may reserve only so much within some days, however it is split."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from samples.reserved import DAY, POLICY, Ledger, release

from modicum.api.local import submit
from modicum.api.local.plans import commit
from modicum.api.local.plans.requests import Handed, read_request
from modicum.core.document import from_python
from modicum.core.errors import Code, ConflictError, InputError, Problem
from modicum.ledger import ChainBreakError
from modicum.policy.changes.differences import differences
from modicum.policy.compiler import CompiledPolicy, compile_text
from modicum.policy.rule_lookup import Place
from modicum.policy.rule_profile import rule_profiles
from modicum.policy.rules import Stage
from modicum.system.clock import add_seconds

LIMIT = """per_release:
  - {name: week, when: "true", unit: user, budget: {rho: 0.3}, requester_days: 7}
"""


def refused(ledger: Ledger, name: str, *, by: str = "ann", rho: str = "0.1") -> Problem:
    with pytest.raises(ConflictError) as caught:
        ledger.by(by).submit(release(name, rho))
    (problem,) = caught.value.problems
    assert problem.code is Code.SPLIT_TOO_FAR
    return problem


@pytest.mark.spec("LED-28")
def test_a_release_in_parts_costs_its_requester_as_much_as_the_whole() -> None:
    ledger = Ledger(LIMIT)
    ann = ledger.by("ann")
    assert not ann.check(release("whole", "0.35")).allowed
    for name in ("part-1", "part-2"):
        ann.submit(release(name, "0.15"), publish=True)
    before = ann.state().seq
    problem = refused(ledger, "part-3")
    assert problem.message == (
        "`ann` reserved rho = 0.3 within 7 days under rule `week`, and this release"
        " adds rho = 0.1: one identity may reserve rho = 0.3 in that time"
    )
    assert problem.notes == (
        "it fits on 2026-05-08, if nothing else is reserved until then",
        "nothing was written",
    )
    assert ann.state().seq == before
    refused(ledger, "part-3", by=" Ann")
    assert ledger.by("bob").submit(release("other", "0.3")).allowed
    ledger.clock.time = add_seconds(ledger.clock.time, 7 * DAY)
    assert ann.submit(release("part-3", "0.1")).allowed
    ledger.audit()


@pytest.mark.spec("LED-28")
def test_what_was_canceled_or_has_expired_does_not_count() -> None:
    ledger = Ledger(LIMIT)
    ann = ledger.by("ann")
    ann.submit(release("a", "0.2"))
    ann.cancel("a", reason="a mistake")
    ann.submit(release("b", "0.3"), reserve_seconds=60)
    refused(ledger, "c")
    ledger.clock.time = add_seconds(ledger.clock.time, 120)
    assert ann.submit(release("c", "0.3")).allowed
    ledger.audit()


ROUNDS = """rotation: {active: 1, opened_by: [officer]}
roles: {officer: [olga], analyst: [ann]}
"""


def in_rounds(more: str) -> Ledger:
    """Return a ledger whose first round is open, and reads one user group."""
    ledger = Ledger(LIMIT)
    grouped = POLICY.replace(
        "population:", "population:\n  groups: {immutable: [user]}"
    )
    ledger.policy = compile_text((grouped + LIMIT + more).encode(), "policy.yaml")
    olga = ledger.by("olga")
    olga.init()
    olga.rounds.open()
    return ledger


def grouped(name: str, rho: str) -> dict[str, Any]:
    return {**release(name, rho), "groups": 1}


def planned(ledger: Ledger, who: str, *names: str) -> tuple[str, ...]:
    """Let somebody plan and commit releases; return their ids."""
    by = ledger.by(who)
    requests = [
        read_request(Handed(name, None, partial(from_python, one)), by.policy())
        for name in names
        for one in [grouped(name, "0.3")]
    ]
    return by.rounds.commit(by.rounds.plan(requests)).releases


@pytest.mark.spec("LED-28")
def test_plans_of_who_may_open_rounds_reserve_more_and_do_not_count() -> None:
    ledger = in_rounds(ROUNDS)
    assert planned(ledger, "olga", "p", "q") == ("p", "q")
    assert ledger.by("olga").submit(grouped("own", "0.3")).allowed
    with pytest.raises(ConflictError, match="`olga` reserved"):
        ledger.by("olga").submit(grouped("more", "0.1"))
    ledger.audit()


@pytest.mark.spec("LED-28")
@pytest.mark.parametrize("rounds", ["", ROUNDS])
def test_plans_of_others_count_and_are_refused(rounds: str) -> None:
    ledger = in_rounds(rounds)
    assert planned(ledger, "ann", "p") == ("p",)
    with pytest.raises(ConflictError, match="`ann` reserved"):
        planned(ledger, "ann", "q")
    with pytest.raises(ConflictError, match="`ann` reserved"):
        ledger.by("ann").submit(grouped("r", "0.1"))
    ledger.audit()


def test_an_audit_finds_plans_that_count() -> None:
    ledger = in_rounds("")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(commit, "split_refusal", lambda *_: None)
        planned(ledger, "olga", "p", "q")
    with pytest.raises(ChainBreakError, match="`q` reserves more"):
        ledger.audit()


def test_a_clock_that_steps_back_over_midnight_forgets_nothing() -> None:
    ledger = Ledger(LIMIT)
    ann = ledger.by("ann")
    ann.submit(release("a", "0.3"), publish=True)
    late = add_seconds(ledger.clock.time, 7 * DAY)
    for clock, fits in (("T00:00:05", True), ("T23:59:50", False)):
        day = late[:10] if fits else add_seconds(late, -DAY)[:10]
        ledger.clock.time = f"{day}{clock}.000000Z"
        found = ann.check(release("b", "0.3"))
        assert any("is refused now" in one for one in found.notices) == (not fits)
    refused(ledger, "b")
    with pytest.raises(ConflictError):
        ann.submit(release("b", "0.3"))
    ledger.audit()


def test_a_check_knows_what_has_expired() -> None:
    ledger = Ledger(LIMIT)
    ann = ledger.by("ann")
    ann.submit(release("held", "0.1", "FR"), reserve_seconds=60)
    ann.submit(release("a", "0.3", "CH"), publish=True)
    ledger.clock.time = add_seconds(ledger.clock.time, 120)
    for country, fits in (("CH", False), ("FR", True)):
        found = ann.check(release("b", "0.3", country))
        assert any("is refused now" in one for one in found.notices) == (not fits)


def test_it_says_on_which_day_a_release_fits() -> None:
    ledger = Ledger(LIMIT.replace('"true"', "'\"pay\" in m.attributes'"))
    ann = ledger.by("ann")
    ann.submit(release("age", "0.3"), publish=True)  # Another attribute.
    for number in range(3):
        ledger.clock.time = add_seconds(ledger.clock.time, DAY)
        ann.submit(paying(f"r-{number}", 0.1), publish=True)
    with pytest.raises(ConflictError) as caught:
        ann.submit(paying("r", 0.2))
    # The first two of three have to drop out.
    assert caught.value.problems[0].notes[0].startswith("it fits on 2026-05-10, ")
    ledger.clock.time = "2026-05-09T23:59:00.000000Z"
    with pytest.raises(ConflictError):
        ann.submit(paying("r", 0.2))
    ledger.clock.time = "2026-05-10T00:01:00.000000Z"
    assert ann.submit(paying("r", 0.2)).allowed
    ledger.audit()


def paying(name: str, rho: float) -> dict[str, Any]:
    written = release(name, str(rho))
    written["mechanisms"][0]["attributes"] = ["pay"]
    return written


def test_an_audit_finds_what_a_writer_let_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(submit, "split_refusal", lambda *_: None)
    ledger = Ledger(LIMIT)
    ann = ledger.by("ann")
    ann.submit(release("a", "0.2"), publish=True)
    ledger.audit()
    ann.submit(release("b", "0.2"), publish=True)
    with pytest.raises(ChainBreakError, match="within `requester_days`"):
        ledger.audit()
    # Later entries hide nothing.
    ledger.by("bob").submit(release("c", "0.1"))
    with pytest.raises(ChainBreakError, match="`b` reserves more"):
        ledger.audit()


def compiled(rules: str) -> CompiledPolicy:
    return Ledger(rules).policy


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("0", Code.OUT_OF_RANGE),
        ("32", Code.OUT_OF_RANGE),
        ("1.5", Code.OUT_OF_RANGE),
        ("[7]", Code.NOT_A_NUMBER),
    ],
)
def test_other_numbers_of_days_are_refused(given: str, code: Code) -> None:
    with pytest.raises(InputError) as caught:
        compiled(LIMIT.replace("7", given))
    assert caught.value.code is code


def test_a_rule_over_history_has_no_days() -> None:
    text = Ledger("").policy.policy.text.replace(
        "{rho: 1}", "{rho: 1}, requester_days: 7"
    )
    with pytest.raises(InputError, match="`requester_days` is for `per_release`"):
        compile_text(text.encode(), "policy.yaml")


def test_the_filter_must_be_proven_for_what_is_summed() -> None:
    summed = LIMIT.replace("{rho: 0.3}", "{eps: 30, delta: 1e-6}")
    summed += "dp: {filter: as-published}\n"
    alone = summed.replace(", requester_days: 7", "")
    compiled(alone)
    with pytest.raises(InputError) as caught:
        compiled(summed)
    assert "(rule week)" in caught.value.problems[0].message


def test_a_policy_compares_its_days_with_those_of_another() -> None:
    longer, none = LIMIT.replace("7", "9"), LIMIT.replace(", requester_days: 7", "")
    for old, new, expected in (
        (LIMIT, longer, ("tighter", "`week`: 7 -> 9")),
        (longer, LIMIT, ("looser", "`week`: 9 -> 7")),
        (LIMIT, none, ("looser", "`week`: 7 -> none")),
        (none, LIMIT, ("tighter", "`week`: none -> 7")),
        (LIMIT, LIMIT.replace("week", "w"), ("looser", "`week`: 7 -> none")),
    ):
        found = [
            (one.verdict.value, one.text)
            for one in differences(compiled(old), compiled(new)).declared
            if one.subject == "requester_days"
        ]
        assert expected in found


def test_a_rule_says_that_it_sums() -> None:
    (found,) = rule_profiles(compiled(LIMIT), [Place(Stage.RELEASE, 0)])
    assert found.promise == (
        "everything, in each release alone, and in all of one identity within 7 days,"
        " stays within {rho: 0.3} for each user"
    )


def test_a_tighter_limit_on_each_release_replaces_no_sum() -> None:
    cap = '  - {name: cap, when: "true", unit: user, budget: {rho: 0.1}}\n'
    assert compiled(LIMIT + cap).pruned_alone.kept == (0, 1)
    alone = LIMIT.replace(", requester_days: 7", "")
    assert compiled(alone + cap).pruned_alone.kept == (1,)


def test_a_past_release_neither_counts_nor_hides_others() -> None:
    ledger = Ledger(LIMIT)
    ledger.by("ann").submit(release("a", "0.3"), publish=True)
    past = {**release("past", "0.3"), "released_on": "2019-04-01"}
    ledger.by("bob").backfill(past)
    # Each `by` reads the log anew.
    refused(ledger, "b")
    assert ledger.by("bob").submit(release("c", "0.3")).allowed
    ledger.audit()
