"""One identity holds only so much reserved and not started, and only for so long."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import partial

import pytest
from samples.reserved import DAY, POLICY, Ledger, release

from modicum.api.local import submit
from modicum.api.local.plans.requests import Handed, read_request
from modicum.core.document import from_python
from modicum.core.errors import Code, ConflictError, InputError
from modicum.ledger import ChainBreakError, ReleaseStatus, State
from modicum.ledger.replay.fold import Followed
from modicum.ledger.replay.snapshot import Snapshot, read_snapshot, write_snapshot
from modicum.policy.compiler import compile_text
from modicum.system.clock import add_seconds


def refused(work: Callable[[], object]) -> ConflictError:
    with pytest.raises(ConflictError) as caught:
        work()
    assert caught.value.code is Code.HELD_TOO_MUCH
    return caught.value


@pytest.mark.spec("LED-23")
def test_one_identity_holds_a_share_and_the_refusal_says_what_helps() -> None:
    ledger = Ledger()
    ann = ledger.by("ann")
    assert ann.submit(release("a", "0.1")).status == "reserved"
    assert ann.submit(release("b", "0.15")).status == "reserved"
    before = ann.state().seq
    (problem,) = refused(lambda: ann.submit(release("c", "0.01"))).problems
    assert problem.message == (
        "`ann` already holds rho = 0.25 reserved and not started under rule `all`,"
        " and this release adds rho = 0.01: one identity may hold rho = 0.25"
    )
    assert "reserved and not started: `a`, `b`" in problem.notes
    assert "start or cancel one" in problem.help
    assert ann.state().seq == before
    # Others are not bounded by what she holds.
    assert ledger.by("bob").submit(release("d", "0.2")).status == "reserved"
    ledger.audit()


@pytest.mark.parametrize("step", ["start", "void"])
def test_what_is_started_or_given_up_is_held_no_more(step: str) -> None:
    ledger = Ledger()
    ann = ledger.by("ann")
    ann.submit(release("a", "0.2"))
    refused(lambda: ann.submit(release("b", "0.1")))
    if step == "start":
        ann.start("a")
    else:  # Whoever does it.
        ledger.by("olga").cancel("a", reason="held for too long")
    assert ann.submit(release("b", "0.1")).status == "reserved"
    ledger.audit()


def test_a_single_release_may_take_more_for_a_day() -> None:
    ledger = Ledger()
    ann = ledger.by("ann")
    large = ann.submit(release("large", "0.6"), reserve_seconds=30 * DAY)
    assert large.status == "reserved"
    assert ledger.lasts("large") == DAY
    assert any("reserved until" in one for one in large.notices)
    refused(lambda: ann.submit(release("small", "0.001")))
    ledger.audit()


def test_a_reservation_stands_no_longer_than_the_policy_lets_it() -> None:
    ledger = Ledger()
    ann = ledger.by("ann")
    long = ann.submit(release("long", "0.1"), reserve_seconds=30 * DAY)
    assert long.status == "reserved"
    assert ledger.lasts("long") == 7 * DAY
    short = ann.submit(release("short", "0.1"), reserve_seconds=60)
    assert ledger.lasts("short") == 60
    assert not any("reserved until" in one for one in short.notices)
    ledger.audit()


def test_cells_are_told_apart() -> None:
    ann = Ledger().by("ann")
    ann.submit(release("a", "0.2", "CH"))
    # Alone too much for a share, in cells in which she holds nothing.
    assert ann.submit(release("b", "0.3", "DE", "FR")).status == "reserved"
    message = refused(lambda: ann.submit(release("c", "0.1", "CH"))).problems[0].message
    assert "under rule `all` in country CH," in message
    refused(lambda: ann.submit(release("d", "0.001", "FR")))


def test_what_is_out_already_is_counted_whatever_is_held() -> None:
    ledger = Ledger()
    ann = ledger.by("ann")
    ann.submit(release("a", "0.2"))
    assert ann.submit(release("out", "0.3"), publish=True).status == "published"
    ledger.audit()


def test_a_check_tells_that_submitting_is_refused() -> None:
    ledger = Ledger()
    ann = ledger.by("ann")
    ann.submit(release("a", "0.2"))
    result = ann.check(release("b", "0.1"))
    assert result.allowed
    assert any("submitting is refused now: `ann`" in one for one in result.notices)
    assert not ledger.by("bob").check(release("b", "0.1")).notices
    # What ran out is given back by whoever writes next.
    ledger.clock.time = add_seconds(ledger.clock.time, 8 * DAY)
    assert not ann.check(release("b", "0.1")).notices
    assert ann.submit(release("b", "0.1")).status == "reserved"


@pytest.mark.spec("LED-23")
def test_capitals_and_blanks_are_no_other_identity() -> None:
    ledger = Ledger()
    ledger.by("ann").submit(release("a", "0.2"))
    for name in ("Ann", " ann"):
        refused(partial(ledger.by(name).submit, release("b", "0.1")))
    ledger.audit()


def test_without_the_key_nothing_is_bounded() -> None:
    ledger = Ledger(bound="")
    ann = ledger.by("ann")
    for name in "abc":
        ann.submit(release(name, "0.3"), reserve_seconds=90 * DAY)
        assert ledger.lasts(name) == 90 * DAY
    ledger.audit()


def test_a_plan_reserves_more_and_nobody_holds_it() -> None:
    ledger = Ledger()
    olga = ledger.by("olga")
    olga.init()
    olga.rounds.open()
    active = olga.policy()
    request = [
        read_request(Handed(one["release"], None, partial(from_python, one)), active)
        for one in (release("p", "0.3"), release("q", "0.3"))
    ]
    done = olga.rounds.commit(olga.rounds.plan(request), reserve_seconds=30 * DAY)
    assert done.releases == ("p", "q")
    assert ledger.lasts("p") == ledger.lasts("q") == 7 * DAY
    assert not olga.state().holders.of("olga")
    assert olga.submit(release("own", "0.25")).status == "reserved"
    ledger.audit()


@pytest.mark.parametrize(
    ("rhos", "days"), [(("0.2", "0.1"), 1), (("0.3",), 7)], ids=["share", "time"]
)
def test_an_audit_finds_what_was_held_beyond_the_share(
    rhos: tuple[str, ...], days: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submit, "seconds_held", lambda one, *_: one.reserve_seconds)
    ledger = Ledger()
    ann = ledger.by("ann")
    for number, rho in enumerate(rhos):
        ann.submit(release(f"r-{number}", rho), reserve_seconds=days * DAY)
    last = ann.state().seq
    with pytest.raises(ChainBreakError, match="than the policy allows one identity"):
        ledger.audit()
    # Started in a later turn, it was held all the same.
    ann.start(f"r-{len(rhos) - 1}")
    with pytest.raises(ChainBreakError, match=f"{last}"):
        ledger.audit()


def test_an_audit_finds_what_was_reserved_for_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(submit, "seconds_held", lambda one, *_: one.reserve_seconds)
    ledger = Ledger()
    ledger.by("ann").submit(release("a", "0.1"), reserve_seconds=8 * DAY)
    with pytest.raises(ChainBreakError, match="for longer than is possible"):
        ledger.audit()


def test_a_snapshot_knows_the_holders() -> None:
    ledger = Ledger()
    ann = ledger.by("ann")
    ann.submit(release("a", "0.1"))
    ledger.by("bob").submit(release("b", "0.1"))
    found = read_snapshot(write_snapshot(Snapshot(ann.state())))
    assert found is not None
    assert found.state.holders.by == {"a": "ann", "b": "bob"}
    assert [*found.state.holders.of("ann")] == ["a"]
    assert found.state.releases["a"].status is ReleaseStatus.RESERVED


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("{share: 0}", Code.OUT_OF_RANGE),
        ("{share: 1.5}", Code.OUT_OF_RANGE),
        ("{share: nan}", Code.NOT_A_NUMBER),
        ("{days: 0}", Code.OUT_OF_RANGE),
        ("{days: 91}", Code.OUT_OF_RANGE),
        ("{hours: 3}", Code.UNKNOWN_KEY),
        ("{data_sets: {visits: 1}}", Code.WRONG_TYPE),
        ("{data_sets: {visits: {}}}", Code.MISSING_KEY),
        ("{data_sets: {visits: {share: 2}}}", Code.OUT_OF_RANGE),
        ("{data_sets: {visits: {share: 0.5, days: 3}}}", Code.UNKNOWN_KEY),
        ("[1]", Code.WRONG_TYPE),
    ],
)
def test_a_bound_that_says_something_else_is_refused(written: str, code: Code) -> None:
    text = f"{POLICY}reservations: {written}\n"
    with pytest.raises(InputError) as caught:
        compile_text(text.encode(), "policy.yaml")
    assert code in {one.code for one in caught.value.problems}


def test_balances_that_are_used_no_more_are_freed_at_once() -> None:
    ledger = Ledger()
    gc.disable()
    try:
        followed = Followed(ledger.policy, State())
        freed = weakref.ref(followed)
        del followed
        assert freed() is None
    finally:
        gc.enable()
