"""Going on after a loss: who may, what is refused, and what is brought back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from oracle.audit_sums import UnsupportedError
from oracle.auditor import audit as audited
from samples.first_version import strange_log
from samples.lost import RULES, Restored
from samples.postgres import Cluster
from samples.small import NOON, compiled, counts
from samples.witnesses import buckets

from modicum.api.local import Workspace
from modicum.api.local.balances import Entry
from modicum.api.local.governance.gaps import (
    BroughtBack,
    accept,
    ask_to_accept,
    bring_back,
)
from modicum.api.local.plans.plan import Outcome
from modicum.api.local.plans.requests import Handed, read_request
from modicum.api.local.submit import prepared_backfill
from modicum.api.ports.storage import Store
from modicum.core.canonical import decode, encode
from modicum.core.document import from_python
from modicum.core.errors import (
    ApprovalError,
    Code,
    ConflictError,
    InputError,
    ModicumError,
    UnavailableError,
    UsageError,
    VerificationError,
)
from modicum.ledger import (
    GENESIS,
    ChainBreakError,
    Event,
    Record,
    ReleaseStatus,
    State,
    audit,
    event_of,
    seal,
)
from modicum.ledger.log.days import day_of
from modicum.ledger.log.escrow_events import FlowBegun, FlowReleased
from modicum.ledger.log.events import (
    Body,
    GapClosed,
    LedgerResumed,
    LossAcceptanceRequested,
    LostEntriesFound,
    PastRecorded,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
    ResumeRequested,
)
from modicum.ledger.replay.fold import fold
from modicum.ops.backup.restore import Heads, restore
from modicum.ops.backup.resume import exported_records
from modicum.reports.limitations import lost_entries
from modicum.storage.factory import open_store
from modicum.storage.proofs.bundles import export_bundle
from modicum.storage.proofs.ledger_log import open_log
from modicum.storage.witness.factory import witnessed
from modicum.storage.witness.store import WitnessedStore
from modicum.system.clock import add_seconds
from modicum.system.files import write_whole

TRACKED = """
modicum: policy/v1
name: tracked
units: {user: {id: user_id}}
schema: {attributes: {diagnosis: low, steps: low}}
policies:
  - {name: watched, when: "true", unit: user, budget: unlimited}
  - {name: own, when: '"steps" in m.attributes', unit: user, budget: {rho: 1}}
unmatched: allow
per_release:
  - {name: week, when: "true", unit: user, budget: {rho: 0.05}, requester_days: 7}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return folders of a ledger that forgot, that went on, and that has all again."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "forgot").mkdir()
    place = forgetful(folder / "forgot", RULES)
    shutil.copytree(place.folder, folder / "resumed")
    place = Restored(folder / "resumed", None)
    place.resumed()
    shutil.copytree(place.folder, folder / "closed")
    place = Restored(folder / "closed", None)
    assert place.bring_back(place.folder / "full.db").closed
    return folder


@pytest.fixture
def lost(made: Path, tmp_path: Path) -> Restored:
    """Return a ledger that forgot some of what was spent; `full.db` has it."""
    shutil.copytree(made / "forgot", tmp_path, dirs_exist_ok=True)
    return Restored(tmp_path, None)


@pytest.fixture
def gone_on(made: Path, tmp_path: Path) -> Restored:
    """Return it after two people agreed to go on."""
    shutil.copytree(made / "resumed", tmp_path, dirs_exist_ok=True)
    return Restored(tmp_path, None)


def forgetful(
    folder: Path, policy: str, more: Callable[[Workspace], object] = lambda _: None
) -> Restored:
    place = Restored(folder, policy)
    ws = place.workspace()
    for name in ("kept", "begun", "dropped"):
        ws.submit(counts(name))
    place.keep("older.db")
    ws.start("begun")
    ws.cancel("dropped", reason="called off")
    ws.submit(counts("gone", rho="0.002"), publish=True)
    more(ws)
    place.keep("full.db")
    place.restore(folder / "older.db")
    return place


def lost_twice(place: Restored) -> list[str]:
    """Go on, lose that an entry follows, and go on again; return both gaps."""
    place.resumed()
    place.keep("older.db")
    place.workspace().governance.annotate("something is lost again")
    place.keep("again.db")
    place.restore(place.folder / "older.db")
    return [*place.resumed().state().planning.gaps.open]


def bring(place: Restored, head: str, source: str) -> BroughtBack:
    records = exported_records(str(place.folder / source))
    return place.workspace().turn(
        lambda entry: bring_back(entry, records, head), deciding=True
    )


def forged(place: Restored, *bodies: Body, actor: str = "ann") -> list[Record]:
    """Return the log with further entries, of the time of its last one."""
    records = list(open_store(place.path).read(0))
    at = event_of(records[-1], len(records)).at
    for body in bodies:
        event = Event(at, actor, body)
        records.append(seal(event, len(records) + 1, records[-1].hash))
    return records


def unsound(records: Sequence[Record], why: str) -> None:
    """Check that both auditors refuse a log."""
    with pytest.raises(ChainBreakError, match=why):
        audit(records)
    assert independently(records)


def refusal(attempt: Callable[[], object]) -> Code:
    with pytest.raises(ModicumError) as caught:
        attempt()
    return caught.value.code


def independently(records: Sequence[Record]) -> list[str]:
    """Return what the other auditor finds wrong."""
    rows = [(one.seq, one.payload, one.hash) for one in records]
    return audited(lambda: rows).mistakes


def sound(place: Restored) -> None:
    """Check that an audit finds nothing wrong, nor the other one if it can."""
    ws = place.workspace()
    ws.verify()
    with suppress(UnsupportedError):
        assert independently([*ws.records()]) == []


def spent(ws: Workspace) -> dict[str, Any]:
    return {one.rule.id: one.before for one in ws.standings()}


def whole(place: Restored) -> Workspace:
    store = open_store(place.folder / "full.db")
    return Workspace(store, place.clock, policy=None, actor="eve")


# --- who may --------------------------------------------------------------------


@pytest.mark.spec("LED-32")
def test_one_person_cannot_ask_and_agree(lost: Restored) -> None:
    assert refusal(lambda: lost.resume("bob", agree=True)) is Code.RELEASE_CONFLICT
    asked = lost.resume("ann", agree=False)
    assert (asked.outcome, asked.seq) == ("asked", 5)
    assert lost.resume("ann", agree=False).seq == 5  # Once more adds nothing.
    for name in ("ann", " ANN "):
        with pytest.raises(ApprovalError, match="another person must agree"):
            lost.resume(name, agree=True)
    assert refusal(lost.workspace().state) is Code.LEDGER_BEHIND  # Until then.
    done = lost.resume("bob", agree=True)
    assert (done.outcome, done.seq) == ("resumed", 6)
    full = list(open_store(lost.folder / "full.db").read(0))[-1]
    assert (done.lost.seq, done.lost.head) == (full.seq, full.hash)
    body = event_of([*lost.workspace().records()][-1], 6).body
    assert isinstance(body, LedgerResumed)
    assert (body.seq, body.head) == (full.seq, full.hash)
    with pytest.raises(UsageError, match="nothing is lost"):
        lost.resume("ann", agree=False)


OFFICERS = """
roles: {officer: [olga]}
activation: {need: 1, from: [officer]}
"""


@pytest.mark.spec("LED-32", "LED-35")
def test_those_who_may_approve_a_policy_agree(tmp_path: Path) -> None:
    place = forgetful(tmp_path, RULES + OFFICERS)
    place.resume("ann", agree=False)
    with pytest.raises(ApprovalError, match="without a role"):
        place.resume("bob", agree=True)
    place.resume("olga", agree=True)
    place.workspace("olga").turn(lambda entry: ask_to_accept(entry, "known"))
    bob, olga = place.workspace("bob"), place.workspace("olga")
    with pytest.raises(ApprovalError, match="without a role"):
        bob.turn(lambda entry: accept(entry, "known"))
    with pytest.raises(ApprovalError, match="another person must agree"):
        olga.turn(lambda entry: accept(entry, "known"))
    records = list(olga.records())
    for body in (LedgerResumed, GapClosed):
        head = records[-1].seq + 1
        gap = next(iter(olga.state().planning.gaps.open))
        forged: Body = GapClosed(gap, accepted=True, reason="x")
        cut = records
        if body is LedgerResumed:
            cut, asked = records[:5], event_of(records[4], 5).body
            assert isinstance(asked, ResumeRequested)
            forged = LedgerResumed(asked.seq, asked.head, "x")
            head = 6
        event = Event(event_of(cut[-1], cut[-1].seq).at, "bob", forged)
        with pytest.raises(ChainBreakError, match="without a role"):
            audit([*cut, seal(event, head, cut[-1].hash)])


def test_a_witness_of_another_ledger_is_not_used(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one = forgetful(tmp_path / "one", RULES)
    two = forgetful(tmp_path / "two", RULES + "# another\n")
    line = (two.folder / "head").read_bytes()
    (one.folder / "head").write_bytes(line)
    with pytest.raises(VerificationError, match="is not of the ledger"):
        one.resume("ann", agree=False)


def test_a_witness_with_some_digits_is_not_enough(lost: Restored) -> None:
    record = list(open_store(lost.folder / "full.db").read(0))[-1]
    (lost.folder / "head").write_text(f"{record.seq}:{record.hash[:12]}\n")
    with pytest.raises(UsageError, match="only the first digits"):
        lost.resume("ann", agree=False)


# --- crashes --------------------------------------------------------------------


@pytest.mark.spec("LED-32")
def test_a_crash_before_the_witness_knows_is_made_good(
    lost: Restored, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost.resume("ann", agree=False)
    with monkeypatch.context() as patch:

        def killed(*_: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(WitnessedStore, "resume", killed)
        with pytest.raises(KeyboardInterrupt):
            lost.resume("bob", agree=True)
    assert refusal(lost.workspace().state) is Code.LEDGER_BEHIND
    done = lost.resume("ann", agree=False)  # Anybody may: two people agreed.
    assert (done.outcome, done.seq) == ("resumed", 6)
    assert len(lost.workspace().state().planning.gaps.open) == 1


@pytest.mark.spec("LED-33")
def test_a_crash_while_entries_are_brought_back_leaves_the_gap(
    gone_on: Restored, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:

        def killed(_: Entry) -> None:
            raise KeyboardInterrupt

        patch.setattr(Entry, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            gone_on.bring_back(gone_on.folder / "full.db")
    assert gone_on.workspace().state().planning.gaps.open
    assert gone_on.bring_back(gone_on.folder / "full.db").closed
    assert spent(gone_on.workspace()) == spent(whole(gone_on))


@pytest.mark.spec("LED-32")
def test_a_witness_that_moved_on_is_not_overwritten(lost: Restored) -> None:
    lost.resume("ann", agree=False)
    store = lost.store()
    assert isinstance(store, WitnessedStore)
    known = store.lost()
    assert known is not None
    head = lost.folder / "head"
    newer = head.read_bytes().replace(b'"seq":', b'"seq":1')
    write_whole(head, [newer])
    with pytest.raises(VerificationError, match="another head by now"):
        store.resume(known)
    assert head.read_bytes() == newer


@pytest.mark.spec("LED-30")
def test_the_ledger_that_was_lost_is_refused_afterwards(lost: Restored) -> None:
    before = lost.store()
    lost.restore(lost.folder / "full.db")
    assert before.record(1)  # A process that knows what was there.
    lost.restore(lost.folder / "older.db")
    lost.resumed()
    with pytest.raises(VerificationError, match="has an earlier one"), before.turn():
        pass
    lost.restore(lost.folder / "full.db")
    assert refusal(lost.workspace().state) is Code.LEDGER_BEHIND


# --- what is refused ------------------------------------------------------------


@pytest.mark.spec("LED-33")
def test_rules_for_single_releases_count_as_full(tmp_path: Path) -> None:
    place = forgetful(tmp_path, TRACKED)
    ws = place.resumed()
    decision = ws.submit(counts("new", rho="1e-9"))
    assert decision.verdict.blocking == ("week",)
    assert "every" not in decision.status
    assert "are lost" in decision.explain()
    steps = ws.submit(counts("other", rho="1e-9", attributes=("steps",)))
    assert steps.verdict.blocking == ("week", "own")
    assert ws.verify().decisions
    assert place.bring_back(place.folder / "full.db").closed
    assert place.workspace().submit(counts("new", rho="1e-9")).allowed


@pytest.mark.spec("LED-33")
def test_a_flow_of_an_escrow_is_refused(gone_on: Restored) -> None:
    state = gone_on.workspace().state()
    for body in (FlowBegun("d" * 64, 1), FlowReleased("d" * 64, "amir")):
        with pytest.raises(ConflictError) as caught:
            state.apply(Event(state.at, "ann", body), "e" * 64)
        assert caught.value.code is Code.GAP_OPEN


@pytest.mark.spec("LED-33")
def test_a_plan_has_nothing_to_spend(tmp_path: Path) -> None:
    text = RULES + "roles: {officer: [olga]}\n"
    place = Restored(tmp_path, text)
    ws = place.workspace()
    ws.init()
    ws.rounds.open("r-1")
    asked = counts("planned", rho="0.001")
    handed = Handed("planned", None, partial(from_python, {**asked, "utility": 1}))
    requests = [read_request(handed, compiled(text))]
    assert ws.rounds.plan(requests).accepted == ("planned",)
    ask, agree = (9, "d" * 64, "x"), place.workspace("bob")
    ws.turn(lambda entry: entry.add(ResumeRequested(*ask)))
    agree.turn(lambda entry: entry.add(LedgerResumed(*ask)))
    plan = ws.rounds.plan(requests)
    assert plan.accepted == ()
    assert [one.outcome for one in plan.outcomes] == [Outcome.LEFT_OUT]
    decision = ws.check(counts("planned", rho="1e-9"))
    assert {one.share for one in decision.verdict.losses} == {0}
    assert ws.backfill(counts("past")).status == "recorded"


@pytest.mark.spec("LED-33")
def test_status_and_verification_say_what_is_lost(gone_on: Restored) -> None:
    from modicum.api.local.views.ledger import status_view

    ws = gone_on.workspace()
    (problem,) = status_view(ws).problems
    assert problem.code == Code.GAP_OPEN.value
    assert "are lost" in problem.message
    gaps = ws.verify().gaps
    (gap,) = gaps.open.values()
    assert gap.text().startswith("entries up to 9 ")
    assert "entries up to 9 " in "".join(map(str, lost_entries(gaps)))


# --- bringing back --------------------------------------------------------------


@pytest.mark.spec("LED-34")
@pytest.mark.parametrize("kind", ["ledger", "bundle", "lines", "end"])
def test_entries_come_from_a_ledger_a_bundle_or_lines(
    gone_on: Restored, kind: str
) -> None:
    source = gone_on.folder / "full.db"
    records = list(open_store(source).read(0))
    if kind == "bundle":
        source = gone_on.folder / "full.zip"
        export_bundle(open_log(gone_on.folder / "full.db"), source)
    elif kind in {"lines", "end"}:
        source = gone_on.folder / "full.jsonl"
        kept = records[4:] if kind == "end" else records
        source.write_bytes(b"".join(one.payload + b"\n" for one in kept))
    done = gone_on.bring_back(source)
    assert (done.recorded, done.closed) == (("gone",), True)
    assert set(done.moved) == {"begun", "dropped"}
    assert spent(gone_on.workspace()) == spent(whole(gone_on))
    standing = gone_on.workspace().state().releases
    assert standing["begun"].status is ReleaseStatus.STARTED
    assert standing["dropped"].status is ReleaseStatus.CANCELED
    assert standing["kept"].status is ReleaseStatus.RESERVED
    # A retry of what was lost has the answer that it counts.
    again = gone_on.workspace().submit(counts("gone", rho="0.002"), publish=True)
    assert (again.retry, again.status) == (True, "recorded")


def changed(record: Record, key: str, value: object) -> Record:
    plain: Any = decode(record.payload)
    plain["event"][key] = value
    return Record(record.seq, encode(plain), "")


@pytest.mark.spec("LED-34")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda all_: all_[:-1], "does not lead to entry 9"),
        (lambda all_: all_[:6] + all_[7:], "another number|its number"),
        (lambda all_: all_[5:], "its first entry follows none"),
        (lambda all_: all_[:4], "does not lead to entry 9"),
        (lambda all_: [*all_[:6], Record(7, b"\xff", "")], "that is no entry"),
        (
            lambda all_: [*all_[:6], changed(all_[6], "actor", "eve"), *all_[7:]],
            "it does not follow the entry before it",
        ),
        (
            lambda all_: [*all_[:8], changed(all_[8], "actor", "eve")],
            "does not lead to entry 9",
        ),
    ],
    ids=["short", "hole", "late", "nothing", "bytes", "changed", "another-end"],
)
def test_a_forged_or_incomplete_file_is_refused(
    gone_on: Restored, change: Callable[[Sequence[Record]], Sequence[Record]], why: str
) -> None:
    ws = gone_on.workspace()
    before = ws.state().seq
    records = change(list(open_store(gone_on.folder / "full.db").read(0)))
    source = gone_on.folder / "changed.jsonl"
    source.write_bytes(b"".join(one.payload + b"\n" for one in records))
    with pytest.raises(ModicumError, match=why):
        gone_on.bring_back(source)
    after = gone_on.workspace().state()
    assert after.seq == before
    assert after.planning.gaps.open


@pytest.mark.spec("LED-34")
def test_what_is_lost_counts_on_its_day_and_for_who_made_it(tmp_path: Path) -> None:
    def more(ws: Workspace) -> None:
        ws.submit(counts("week", rho="0.03"))

    place = forgetful(tmp_path, TRACKED, more)
    place.resumed()
    place.clock.time = add_seconds(place.clock.time, 3 * 86_400)
    assert place.bring_back(place.folder / "full.db", "bob").closed
    ann, bob = place.workspace("ann"), place.workspace("bob")
    day = whole(place).state().releases["week"].day
    assert ann.state().releases["week"].day == day
    another = counts("another", rho="0.03")
    with pytest.raises(ConflictError) as caught:
        ann.submit(another)
    assert caught.value.code is Code.SPLIT_TOO_FAR
    assert bob.submit(another).allowed
    assert bob.verify().decisions


@pytest.mark.spec("LED-34")
def test_releases_of_another_policy_wait_until_it_is_active(tmp_path: Path) -> None:
    successor = RULES.replace("rho: 2", "rho: 2.5")

    def more(ws: Workspace) -> None:
        ws.governance.activate(compiled(successor), reason="more room")
        person = Workspace(
            ws._store,
            ws._clock,
            policy=None,
            actor="ann",
        )
        person.submit(counts("under-it", rho="0.003"))

    place = forgetful(tmp_path, RULES, more)
    place.resumed()
    first = place.bring_back(place.folder / "full.db")
    assert (first.recorded, first.closed) == (("gone",), False)
    assert (first.policies, first.missing) == (
        (compiled(successor).policy.digest,),
        (),
    )
    place.workspace().governance.activate(compiled(successor), reason="again")
    assert not place.workspace().check(counts("new")).allowed
    second = place.bring_back(place.folder / "full.db")
    # It may have narrowed limits, and more than it may be lost: people judge that.
    assert (second.recorded, second.closed) == (("under-it",), False)
    assert (second.missing, second.uncounted) == ((), ("policy-activated",))
    assert not place.workspace().check(counts("new")).allowed
    place.workspace("ann").turn(lambda entry: ask_to_accept(entry, "it is active"))
    place.workspace("bob").turn(lambda entry: accept(entry, "so it is"))
    assert spent(place.workspace()) == spent(whole(place))
    sound(place)


@pytest.mark.spec("LED-34")
def test_an_id_with_other_contents_keeps_the_gap_open(gone_on: Restored) -> None:
    ws = gone_on.workspace()
    ws.backfill(counts("gone", rho="0.001"))  # It was 0.002.
    done = gone_on.bring_back(gone_on.folder / "full.db")
    assert (done.missing, done.closed) == (("gone",), False)
    assert not gone_on.workspace().check(counts("new")).allowed


@pytest.mark.spec("LED-34")
def test_a_past_release_that_was_recorded_before_is_skipped(tmp_path: Path) -> None:
    past = counts("past", released_on="2026-04-01")
    place = forgetful(tmp_path, RULES, lambda ws: ws.backfill(past))
    place.resumed().backfill(past)
    done = place.bring_back(place.folder / "full.db")
    assert (done.recorded, done.closed) == (("gone",), True)
    assert spent(place.workspace()) == spent(whole(place))
    sound(place)


@pytest.mark.spec("LED-34")
def test_a_reservation_that_is_recorded_by_hand_keeps_the_gap_open(
    gone_on: Restored,
) -> None:
    """It would not count for who reserved it."""
    gone_on.workspace().backfill(counts("gone", rho="0.002"))
    done = gone_on.bring_back(gone_on.folder / "full.db")
    assert (done.recorded, done.missing, done.closed) == ((), ("gone",), False)
    sound(gone_on)


@pytest.mark.spec("LED-34")
def test_a_stated_day_does_not_move_a_reservation(tmp_path: Path) -> None:
    dated = counts("dated", released_on="2020-01-01")

    def more(ws: Workspace) -> None:
        ws.submit(dated)
        ws.backfill({**dated, "release": "past"})

    place = forgetful(tmp_path, RULES, more)
    place.resumed()
    place.clock.time = add_seconds(place.clock.time, 3 * 86_400)
    assert place.bring_back(place.folder / "full.db").closed
    now, then = (one.state().releases for one in (place.workspace(), whole(place)))
    for name in ("dated", "past", "gone"):
        assert now[name].day == then[name].day
    assert now["dated"].day != now["past"].day
    sound(place)


@pytest.mark.spec("LED-28", "LED-34")
def test_a_lost_past_release_counts_for_nobody(tmp_path: Path) -> None:
    place = forgetful(
        tmp_path, TRACKED, lambda ws: ws.backfill(counts("past", rho="0.04"))
    )
    place.resumed()
    assert place.bring_back(place.folder / "full.db", "bob").closed
    for name in ("ann", "bob"):
        ws = place.workspace(name)
        assert ws.submit(counts(f"by-{name}", rho="0.03")).allowed
    sound(place)


@pytest.mark.spec("LED-28", "LED-34")
def test_what_was_lost_counts_no_longer_than_its_days(tmp_path: Path) -> None:
    place = forgetful(
        tmp_path, TRACKED, lambda ws: ws.submit(counts("week", rho="0.03"))
    )
    place.clock.time = add_seconds(place.clock.time, 13 * 3600)
    beside = Workspace(open_store(place.path), place.clock, policy=None, actor="ann")
    beside.submit(counts("later", rho="0.001"), publish=True)
    place.resumed()
    assert place.bring_back(place.folder / "full.db").closed
    place.clock.time = add_seconds(place.clock.time, 7 * 86_400 - 13 * 3600)
    assert place.workspace().submit(counts("another", rho="0.04")).allowed
    sound(place)


@pytest.mark.spec("LED-34")
@pytest.mark.parametrize("changes", [True, False])
def test_a_second_file_says_nothing_of_what_was_found(
    tmp_path: Path, *, changes: bool
) -> None:
    successor = RULES.replace("rho: 2", "rho: 2.5")

    def more(ws: Workspace) -> None:
        ws.governance.activate(compiled(successor), reason="more room")
        other = Workspace(ws._store, ws._clock, policy=None, actor="ann")
        other.submit(counts("under-it", rho="0.003"))
        other.governance.annotate("the end")

    place = forgetful(tmp_path, RULES, more)
    place.resumed()
    assert not place.bring_back(place.folder / "full.db").closed
    place.workspace().governance.activate(compiled(successor), reason="again")
    records = list(open_store(place.folder / "full.db").read(0))
    there = next(
        place_ for place_, one in enumerate(records) if b'"under-it"' in one.payload
    )
    plain: Any = decode(records[there].payload)
    for one in plain["event"]["body"]["release"]["mechanisms"]:
        one["losses"] = {}
    records[there : there + 1] = (
        [Record(records[there].seq, encode(plain), "")] if changes else []
    )
    source = place.folder / "changed.jsonl"
    source.write_bytes(b"".join(one.payload + b"\n" for one in records))
    assert place.bring_back(source).recorded == ("under-it",)
    assert spent(place.workspace()) == spent(whole(place))
    sound(place)


def roles_with(owned: str) -> str:
    return RULES + f"roles: {{officer: [olga, omar]}}\nowners: {{{owned}}}\n"


@pytest.mark.spec("LED-32", "LED-35")
@pytest.mark.parametrize(
    ("asks", "agrees"), [("bot", "olga"), ("olga", "BOT"), ("bot", "job")]
)
def test_who_answers_for_a_program_is_no_other_person(
    tmp_path: Path, asks: str, agrees: str
) -> None:
    place = forgetful(tmp_path, roles_with("bot: [olga], job: [olga, omar]"))
    place.resume(asks, agree=False)
    with pytest.raises(ApprovalError, match="another person must agree"):
        place.resume(agrees, agree=True)
    asked = event_of([*open_store(place.path).read(0)][-1], 5)
    place.resume("ann", agree=True)
    place.workspace(asks).turn(lambda entry: ask_to_accept(entry, "known"))
    with pytest.raises(ApprovalError, match="another person must agree"):
        place.workspace(agrees).turn(lambda entry: accept(entry, "known"))
    records = list(place.workspace().records())
    assert isinstance(asked.body, ResumeRequested)
    lost = asked.body
    for cut, body in (
        (records, GapClosed(lost.head, accepted=True, reason="x")),
        (records[:5], LedgerResumed(lost.seq, lost.head, "x")),
    ):
        event = Event(asked.at, agrees, body)
        forged = [*cut, seal(event, len(cut) + 1, cut[-1].hash)]
        with pytest.raises(ChainBreakError, match="another person must agree"):
            audit(forged)
        assert independently(forged)
    place.workspace("ann").turn(lambda entry: accept(entry, "known"))
    sound(place)


@pytest.mark.spec("LED-34")
def test_a_lost_round_keeps_the_gap_open(tmp_path: Path) -> None:
    place = forgetful(tmp_path, RULES, lambda ws: ws.rounds.open("r-1"))
    place.resumed()
    done = place.bring_back(place.folder / "full.db")
    assert (done.closed, done.uncounted) == (False, ("round-opened",))
    gap = done.gap.head
    records = list(place.workspace().records())
    closed = Event(
        event_of(records[-1], len(records)).at, "ann", GapClosed(gap, False, "")
    )
    forged = [*records, seal(closed, len(records) + 1, records[-1].hash)]
    with pytest.raises(ChainBreakError, match="not all that was lost"):
        audit(forged)
    assert independently(forged)


@pytest.mark.spec("LED-33")
def test_with_two_gaps_nothing_is_given_back_until_both_are_known(
    lost: Restored,
) -> None:
    first, second = lost_twice(lost)
    done = bring(lost, first, "full.db")
    assert (done.recorded, done.moved, done.closed) == (("gone",), ("begun",), False)
    assert done.missing == ("dropped",)
    sound(lost)
    ws = lost.workspace()
    (at,) = (one.moved for one in (done.gap.releases["dropped"],))
    for step in (ReleaseStarted("dropped"), ReleaseVoided("dropped", "x", at)):
        with pytest.raises(ConflictError) as caught:
            ws.state().apply(Event(ws.state().at, "ann", step), "e" * 64)
        assert caught.value.code is Code.GAP_OPEN
    # Everything is settled once the other one is known.
    assert bring(lost, second, "again.db").moved == ("dropped",)
    assert not lost.workspace().state().planning.gaps.open
    sound(lost)


@pytest.mark.spec("LED-34")
def test_a_reservation_of_after_the_loss_is_not_started(lost: Restored) -> None:
    beside = Workspace(open_store(lost.path), lost.clock, policy=None, actor="ann")
    beside.submit(counts("gone", rho="0.002"))
    lost.resumed()
    done = lost.bring_back(lost.folder / "full.db")
    assert (done.missing, done.closed) == (("gone",), False)
    assert "gone" not in done.moved
    sound(lost)


@pytest.mark.spec("LED-34")
def test_a_release_that_was_made_again_is_another_one(lost: Restored) -> None:
    beside = Workspace(open_store(lost.path), lost.clock, policy=None, actor="ann")
    beside.submit(counts("gone", rho="0.002"), publish=True)
    beside.start("begun")
    lost.resumed()
    done = lost.bring_back(lost.folder / "full.db")
    assert (done.missing, done.closed) == (("gone",), False)
    assert done.uncounted == ("release `begun` was started in both logs",)


@pytest.mark.spec("LED-34")
def test_what_no_release_counts_is_for_people(tmp_path: Path) -> None:
    leak = {"disclosure": "leak", "what": "a table", "attributes": "all", "reason": "x"}
    place = forgetful(tmp_path, RULES, lambda ws: ws.governance.disclose(leak))
    place.resumed()
    done = place.bring_back(place.folder / "full.db")
    assert (done.recorded, done.closed) == (("gone",), False)
    assert done.uncounted == ("disclosure-recorded",)


@pytest.mark.spec("LED-32", "LED-33", "LED-34")
def test_a_ledger_in_postgresql_goes_on(lost: Restored, postgres: Cluster) -> None:
    lost.path = postgres.new_ledger()
    restore(str(lost.folder / "older.db"), lost.path, Heads())
    assert refusal(lost.workspace().state) is Code.LEDGER_BEHIND
    ws = lost.resumed()
    assert not ws.check(counts("new", rho="1e-9")).allowed
    assert refusal(lambda: ws.start("kept")) is Code.GAP_OPEN
    assert lost.bring_back(lost.folder / "full.db").closed
    assert spent(lost.workspace()) == spent(whole(lost))
    sound(lost)


@pytest.mark.spec("LED-32")
def test_a_ledger_may_be_lost_again(lost: Restored) -> None:
    lost.resumed()
    lost.keep("older.db")
    lost.workspace().governance.annotate("something is lost again")
    lost.restore(lost.folder / "older.db")
    ws = lost.resumed()
    assert len(ws.state().planning.gaps.open) == 2
    with pytest.raises(InputError, match="several gaps"):
        lost.bring_back(lost.folder / "full.db")


# --- accepting ------------------------------------------------------------------


@pytest.mark.spec("LED-35")
def test_two_people_accept_a_loss(gone_on: Restored) -> None:
    ann, bob = gone_on.workspace("ann"), gone_on.workspace("bob")
    with pytest.raises(ConflictError, match="nobody has asked"):
        bob.turn(lambda entry: accept(entry, "it was a test"))
    with pytest.raises(InputError, match="needs a reason"):
        ann.turn(lambda entry: ask_to_accept(entry, " "))
    ann.turn(lambda entry: ask_to_accept(entry, "it was a test"))
    assert not ann.check(counts("new")).allowed
    with pytest.raises(ApprovalError, match="another person must agree"):
        ann.turn(lambda entry: accept(entry, "it was a test"))
    bob.turn(lambda entry: accept(entry, "so it was"))
    assert ann.check(counts("new")).allowed
    assert ann.submit(counts("new")).allowed
    gaps = ann.verify().gaps
    assert gaps.accepted == (11,)
    assert "accepted that with entry 11" in "".join(map(str, lost_entries(gaps)))
    with pytest.raises(InputError, match="no such gap"):
        gone_on.bring_back(gone_on.folder / "full.db")


# --- what is known is not given up -----------------------------------------------


LABELED = """
modicum: policy/v1
name: small
units: {user: {id: user_id}}
labels:
  ml: {values: [none, black-box], default: none}
schema: {attributes: {diagnosis: low}}
policies:
  - {name: plain, when: 'm.ml == "none"', unit: user, budget: {rho: 2}}
  - {name: boxed, when: 'm.ml == "black-box"', unit: user, budget: {rho: 2}}
"""
BOXED = LABELED.replace("default: none", "default: black-box")


@pytest.mark.spec("LED-34")
@pytest.mark.parametrize("by_hand", [True, False])
def test_a_record_that_counts_elsewhere_closes_no_gap(
    tmp_path: Path, *, by_hand: bool
) -> None:
    """Its contents are the same, and its labels follow from another policy."""
    asked = counts("past", rho="1.9")

    def more(ws: Workspace) -> None:
        ws.backfill(asked)
        ws.submit(counts("other", rho="0.004"), publish=True)

    place = forgetful(tmp_path, LABELED, more)
    place.resumed()
    place.workspace().governance.activate(compiled(BOXED), reason="x")
    if by_hand:
        place.workspace().backfill(asked)
        place.workspace().governance.activate(compiled(LABELED), reason="x")
        done = place.bring_back(place.folder / "full.db")
        assert (done.missing, done.closed) == (("past",), False)
        assert place.workspace().state().planning.gaps.open
        sound(place)
        return
    gap = next(iter(place.workspace().state().planning.gaps.open))
    first = place.bring_back(place.folder / "full.db")
    assert (first.recorded, first.closed) == ((), False)
    one = first.gap.releases["other"]
    release = prepared_backfill(counts("other", rho="0.004"), compiled(BOXED)).release
    assert release.content == one.content
    digest = compiled(BOXED).policy.digest
    body = PastRecorded(release, digest, (), one.at, one.by)
    unsound(forged(place, body), "no lost entry is about")
    unsound(forged(place, GapClosed(gap, False, "")), "not all that was lost")


@pytest.mark.spec("LED-33", "LED-34")
def test_nobody_starts_again_what_lost_entries_started(lost: Restored) -> None:
    first, second = lost_twice(lost)
    bring(lost, second, "again.db")
    ws = lost.workspace()
    assert refusal(lambda: ws.start("begun")) is Code.GAP_OPEN
    done = bring(lost, first, "full.db")
    assert {*done.moved} == {"begun", "dropped"}
    with pytest.raises(ConflictError):
        lost.workspace("job").start("begun")
    moved = done.gap.releases["begun"].moved
    unsound(forged(lost, ReleaseStarted("kept", moved)), "none is lost")
    sound(lost)


@pytest.mark.spec("LED-33")
def test_a_start_names_the_lost_one(lost: Restored) -> None:
    first, _ = lost_twice(lost)
    gap = bring(lost, first, "full.db").gap
    records = list(open_store(lost.path).read(0))
    there = next(
        seq
        for seq, one in enumerate(records)
        if isinstance(event_of(one, one.seq).body, ReleaseStarted)
    )
    moved = gap.releases["begun"].moved
    for at in ("", add_seconds(moved, 1)):
        body = ReleaseStarted("begun", at)
        event = Event(event_of(records[there], there + 1).at, "ann", body)
        bad = [*records[:there], seal(event, there + 1, records[there - 1].hash)]
        unsound(bad, "nothing may be spent")


def agreed(place: Restored, gap: str) -> None:
    place.workspace("ann").turn(lambda entry: ask_to_accept(entry, "x", gap))
    place.workspace("bob").turn(lambda entry: accept(entry, "x", gap), deciding=True)


@pytest.mark.spec("LED-35")
def test_accepting_first_records_all_that_is_known(lost: Restored) -> None:
    first, second = lost_twice(lost)

    def find(entry: Entry) -> None:  # Without the releases, as a crash never leaves it.
        records = open_store(lost.folder / "full.db").read(4)
        texts = tuple(one.payload.decode() for one in records)
        entry.add(LostEntriesFound(first, texts))

    lost.workspace().turn(find)
    closes = GapClosed(first, True, "x")
    records = forged(lost, LossAcceptanceRequested(first, "x"))
    event = Event(event_of(records[-1], len(records)).at, "bob", closes)
    bad = [*records, seal(event, len(records) + 1, records[-1].hash)]
    unsound(bad, "may have started")
    agreed(lost, second)
    releases = lost.workspace().state().releases
    assert releases["gone"].status is ReleaseStatus.RECORDED
    # The entries that are not found may have started what others canceled.
    for name in ("kept", "begun", "dropped"):
        assert releases[name].status is ReleaseStatus.STARTED
    assert not lost.workspace().state().planning.gaps.open
    sound(lost)


@pytest.mark.spec("LED-35")
def test_accepting_waits_for_the_policies_of_what_was_found(tmp_path: Path) -> None:
    other = RULES.replace("rho: 2", "rho: 2.5")
    place = forgetful(tmp_path, RULES)
    gap = next(iter(place.resumed().state().planning.gaps.open))
    place.workspace().governance.activate(compiled(other), reason="x")
    assert not place.bring_back(place.folder / "full.db").closed
    with pytest.raises(ConflictError, match="not recorded yet"):
        agreed(place, gap)
    place.workspace().governance.activate(compiled(RULES), reason="x")
    place.workspace("bob").turn(lambda entry: accept(entry, "x"), deciding=True)
    assert place.workspace().state().planning.gaps.closed == {gap: 0}
    assert spent(place.workspace()) == spent(whole(place))
    sound(place)


@pytest.mark.spec("LED-34")
def test_what_an_audit_would_refuse_is_not_recorded(tmp_path: Path) -> None:
    """Lost entries of version 1 describe what this version cannot price."""
    place = Restored(tmp_path, None)
    log = strange_log(3)
    for name, records in (("full.db", log), ("older.db", log[:2])):
        with open_store(tmp_path / name).turn() as turn:
            turn.append(records)
    place.restore(tmp_path / "full.db")
    place.workspace().turn(lambda _: None)
    place.restore(tmp_path / "older.db")
    place.resumed()
    done = place.bring_back(tmp_path / "full.db")
    assert done.missing
    assert (done.recorded, done.closed) == ((), False)
    place.workspace().verify()


@pytest.mark.spec("LED-34")
@pytest.mark.parametrize("at_once", [True, False])
def test_overlapping_gaps_are_both_closed(lost: Restored, *, at_once: bool) -> None:
    """The lost log went on meanwhile: the second gap has the entries of the first."""
    source = open_store(lost.folder / "full.db")
    longer = Workspace(source, lost.clock, policy=None, actor="ann")
    longer.submit(counts("last", rho="0.003"))
    first, second = source.read(8)

    def go_on(end: Record) -> None:
        (lost.folder / "head").unlink()
        for name, kind in (("ann", ResumeRequested), ("bob", LedgerResumed)):
            body = kind(end.seq, end.hash, "x")
            lost.workspace(name).turn(partial(Entry.add, body=body))

    go_on(first)
    if at_once:
        go_on(second)
    done = bring(lost, first.hash, "full.db")
    assert done.recorded == ("gone",)
    assert {*done.moved} == ({"begun"} if at_once else {"begun", "dropped"})
    if not at_once:
        go_on(second)
    done = bring(lost, second.hash, "full.db")
    assert (done.missing, done.uncounted, done.closed) == ((), (), True)
    assert not lost.workspace().state().planning.gaps.open
    assert spent(lost.workspace()) == spent(whole(lost))
    sound(lost)


DAILY = """
modicum: policy/v1
name: daily
units:
  user: {id: user_id}
  user-day: {id: user_id, time: {column: at, period: day}, within: user}
schema: {attributes: {diagnosis: low}}
policies: [{name: daily, when: "true", unit: user-day, budget: {rho: 2}}]
"""


def daily(rho: str, **more: str) -> dict[str, Any]:
    asked = counts("past", rho=rho)
    asked["mechanisms"][0]["cost"]["user-day"] = {"rho": float(rho)}
    asked["mechanisms"][0].update(more)
    return asked


@pytest.mark.spec("LED-34")
@pytest.mark.parametrize("older", [True, False])
def test_a_lost_correction_is_made_again(tmp_path: Path, *, older: bool) -> None:
    def correct(place: Restored) -> None:
        now = daily("0.01", periods="2026-04-01")
        place.workspace("ann").governance.redescribe(now, reason="it read one day")
        place.workspace("bob").governance.approve("past", reason="so it did")

    place = Restored(tmp_path, DAILY)
    place.workspace().init()
    if not older:
        place.keep("older.db")
    place.workspace().backfill(daily("0.01"))
    if older:
        place.keep("older.db")
    correct(place)
    place.keep("full.db")
    place.restore(tmp_path / "older.db")
    place.resumed()
    done = place.bring_back(tmp_path / "full.db")
    assert (done.missing, done.closed) == ((("past",), False) if older else ((), True))
    if older:
        correct(place)
        assert place.bring_back(tmp_path / "full.db").closed
    assert spent(place.workspace()) == spent(whole(place))
    sound(place)


APPROVED = """
roles: {officer: [olga, otto]}
approvals: [{when: 'true', need: 1, from: [officer]}]
"""


@pytest.mark.spec("LED-34")
@pytest.mark.parametrize("withdraws", [True, False])
def test_a_lost_refusal_keeps_the_gap_open(tmp_path: Path, *, withdraws: bool) -> None:
    place = Restored(tmp_path, RULES + APPROVED)
    place.workspace("ann").init()
    place.workspace("ann").governance.request(counts("asked"), reason="x")
    place.workspace("olga").governance.approve("asked", reason="x")
    place.keep("older.db")
    if withdraws:
        place.workspace("ann").governance.withdraw_request("asked", reason="x")
    else:
        place.workspace("otto").governance.reject("asked", reason="no")
    place.keep("full.db")
    place.restore(tmp_path / "older.db")
    place.resumed()
    done = place.bring_back(tmp_path / "full.db")
    why = "request-withdrawn" if withdraws else "refusal of release `asked`"
    assert (done.uncounted, done.closed) == ((why,), False)
    assert refusal_or_denied(place)
    unsound(forged(place, GapClosed(done.gap.head, False, "")), "not all that was")
    sound(place)


def refusal_or_denied(place: Restored) -> bool:
    return not place.workspace("ann").submit(counts("asked")).allowed


@pytest.mark.spec("LED-32", "LED-35")
def test_a_request_of_another_person_replaces_one(tmp_path: Path) -> None:
    """Else the only one who may agree could ask, and nobody could go on."""
    place = forgetful(tmp_path, RULES + OFFICERS)
    place.resume("olga", agree=False)
    place.resume("bob", agree=False)
    place.resume("olga", agree=True)
    for name in ("olga", "bob"):
        place.workspace(name).turn(lambda entry: ask_to_accept(entry, "x"))
    place.workspace("olga").turn(lambda entry: accept(entry, "x"))
    assert not place.workspace().state().planning.gaps.open
    sound(place)


@pytest.mark.spec("LED-34")
def test_both_auditors_refuse_what_stands_for_nothing(gone_on: Restored) -> None:
    release = prepared_backfill(counts("gone", rho="0.002"), compiled(RULES)).release
    other = prepared_backfill(counts("gone", rho="0.001"), compiled(RULES)).release
    digest = compiled(RULES).policy.digest
    gap = next(iter(gone_on.workspace().state().planning.gaps.open))
    texts = tuple(
        one.payload.decode() for one in open_store(gone_on.folder / "full.db").read(4)
    )
    lost_ = event_of(next(iter(open_store(gone_on.folder / "full.db").read(6))), 7)
    found = LostEntriesFound(gap, texts)
    assert isinstance(lost_.body, ReleaseReserved)
    why = "no lost entry is about"
    audit(forged(gone_on, found, PastRecorded(release, digest, (), lost_.at, "ann")))
    for body in (
        PastRecorded(release, digest, (), "", "ann"),
        PastRecorded(other, digest, (), lost_.at, "ann"),
        PastRecorded(release, digest, (), lost_.at, ""),
    ):
        unsound(forged(gone_on, found, body), why)
    unsound(forged(gone_on, PastRecorded(release, digest, (), "", "ann")), why)


@pytest.mark.spec("LED-34")
def test_both_auditors_refuse_entries_that_were_not_lost(gone_on: Restored) -> None:
    gap = next(iter(gone_on.workspace().state().planning.gaps.open))
    records = list(open_store(gone_on.path).read(0))
    full = list(open_store(gone_on.folder / "full.db").read(0))
    event = event_of(full[-1], full[-1].seq)
    later = seal(event, len(records) + 1, records[-1].hash)
    other = seal(event, full[-1].seq, full[-3].hash)
    another = replace(event, actor="eve")
    ends = [*full[4:-1], seal(another, full[-1].seq, full[-2].hash)]
    for lost_, why in (
        ([later], "do not follow an entry of this log"),
        ([*full[4:-2], other], "they are not the lost entries"),
        (ends, "not the entries that the witness knows of"),
    ):
        texts = tuple(one.payload.decode() for one in lost_)
        unsound(forged(gone_on, LostEntriesFound(gap, texts)), why)


def test_entries_are_found_without_a_copy_of_all_before(gone_on: Restored) -> None:
    gaps = gone_on.workspace().state().planning.gaps
    (gap,) = gaps.open.values()
    records = list(open_store(gone_on.folder / "full.db").read(4))
    state = State()
    for record in gone_on.workspace().records():
        fold(state, record)
    before = state.planning.gaps.open[gap.head].releases
    for one in records:
        body = LostEntriesFound(gap.head, (one.payload.decode(),))
        state.apply(Event(state.at, "ann", body), "e" * 64)
    now = state.planning.gaps.open[gap.head]
    assert now.releases is before
    assert now.is_complete
    assert {*before} == {"begun", "dropped", "gone"}


@pytest.mark.spec("LED-34")
def test_both_auditors_refuse_to_close_what_was_started_twice(lost: Restored) -> None:
    beside = Workspace(open_store(lost.path), lost.clock, policy=None, actor="zed")
    beside.start("begun")
    lost.resumed()
    done = lost.bring_back(lost.folder / "full.db")
    assert done.uncounted == ("release `begun` was started in both logs",)
    unsound(forged(lost, GapClosed(done.gap.head, False, "")), "not all that was lost")


# --- what an audit finds --------------------------------------------------------


def rewritten(
    records: Sequence[Record], change: Callable[[Event], Event | None]
) -> list[Record]:
    found: list[Record] = []
    for record in records:
        event = change(event_of(record, record.seq))
        if event is not None:
            head = found[-1].hash if found else GENESIS
            found.append(seal(event, len(found) + 1, head))
    return found


def without(kind: type[Body]) -> Callable[[Event], Event | None]:
    return lambda event: None if isinstance(event.body, kind) else event


def with_body(
    kind: type[Body], change: Callable[[Any], Body]
) -> Callable[[Event], Event | None]:
    def changed_(event: Event) -> Event:
        if not isinstance(event.body, kind):
            return event
        return Event(event.at, event.actor, change(event.body))

    return changed_


def by(kind: type[Body], actor: str) -> Callable[[Event], Event | None]:
    def changed_(event: Event) -> Event:
        same = isinstance(event.body, kind)
        return Event(event.at, actor if same else event.actor, event.body)

    return changed_


@pytest.mark.spec("LED-32", "LED-33", "LED-34")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (without(ResumeRequested), "nobody asked to go on"),
        (by(LedgerResumed, " Ann"), "another person must agree"),
        (
            with_body(
                LedgerResumed, lambda one: LedgerResumed(one.seq + 1, one.head, "")
            ),
            "nobody asked to go on",
        ),
        (without(LostEntriesFound), "stands for|expires|nothing may be spent|no lost"),
        (without(PastRecorded), "not all that was lost"),
        (without(ReleaseStarted), "not all that was lost"),
        (without(ReleaseVoided), "not all that was lost"),
        (
            with_body(
                LostEntriesFound,
                lambda one: LostEntriesFound(one.gap, one.entries[:-1]),
            ),
            "nothing may be spent",
        ),
        (
            with_body(
                LostEntriesFound,
                lambda one: LostEntriesFound(one.gap, one.entries[1:]),
            ),
            "do not follow an entry of this log",
        ),
        (
            with_body(
                PastRecorded,
                lambda one: PastRecorded(
                    one.release, one.policy, (), "2026-05-02T12:00:00.000000Z", "ann"
                ),
            ),
            "no lost entry is about",
        ),
        (
            with_body(PastRecorded, lambda one: PastRecorded(one.release, one.policy)),
            "not all that was lost",
        ),
        (with_body(LedgerResumed, lambda one: one), ""),
    ],
)
def test_an_audit_finds_a_gap_that_was_closed_too_early(
    made: Path, change: Callable[[Event], Event | None], why: str
) -> None:
    log = open_store(made / "closed" / "ledger.db").read(0)
    records = rewritten(list(log), change)
    if not why:  # What says no less is no fault.
        audit(records)
        return
    with pytest.raises(ChainBreakError, match=why):
        audit(records)


@pytest.mark.spec("LED-33")
def test_an_audit_finds_what_was_spent_in_a_gap(gone_on: Restored) -> None:
    ws = gone_on.workspace()
    records = list(ws.records())
    reserved = event_of(records[1], 2).body
    assert isinstance(reserved, ReleaseReserved)
    at = event_of(records[-1], 6).at
    other = whole(gone_on)
    other.submit(counts("new"))
    body = next(
        one.body
        for one in (event_of(each, each.seq) for each in other.records())
        if isinstance(one.body, ReleaseReserved) and one.body.release.id == "new"
    )
    spent_ = seal(Event(at, "ann", body), 7, records[-1].hash)
    with pytest.raises(ChainBreakError, match="does not follow from the policy"):
        audit([*records, spent_])
    for step in (ReleaseStarted("kept"), ReleaseVoided("kept", "x")):
        taken = seal(Event(at, "ann", step), 7, records[-1].hash)
        with pytest.raises(ChainBreakError, match="nothing may be spent"):
            audit([*records, taken])


@pytest.mark.spec("LED-35")
def test_nobody_accepts_a_loss_alone(gone_on: Restored) -> None:
    ws = gone_on.workspace()
    (gap,) = ws.state().planning.gaps.open
    state = State()
    for record in ws.records():
        fold(state, record)
    asking, closing = LossAcceptanceRequested(gap, "x"), GapClosed(gap, True, "x")
    for name in ("kept", "begun", "dropped"):
        started = ReleaseStarted(name, state.planning.gaps.open[gap].at)
        state.apply(Event(state.at, "ann", started), "d" * 64)
    with pytest.raises(ConflictError, match="nobody but"):
        state.apply(Event(state.at, "ann", closing), "e" * 64)
    state.apply(Event(state.at, "ann", asking), "e" * 64)
    with pytest.raises(ConflictError, match="nobody but"):
        state.apply(Event(state.at, "ANN", closing), "f" * 64)
    state.apply(Event(state.at, "bob", closing), "f" * 64)
    assert state.planning.gaps.accepted == (11,)


@pytest.mark.spec("LED-35")
def test_what_lost_entries_may_have_started_is_not_given_back(
    gone_on: Restored,
) -> None:
    """The file is gone: nobody can prove what became of the reservations."""
    before = spent(gone_on.workspace())
    gone_on.clock.time = add_seconds(gone_on.clock.time, 2 * 86_400)
    (gap,) = gone_on.workspace().state().planning.gaps.open
    records = forged(gone_on, LossAcceptanceRequested(gap, "x"))
    event = Event(
        event_of(records[-1], len(records)).at, "bob", GapClosed(gap, True, "")
    )
    bad = [*records, seal(event, len(records) + 1, records[-1].hash)]
    unsound(bad, "may have started")
    agreed(gone_on, gap)
    ws = gone_on.workspace()
    ws.governance.annotate("nothing expires with this turn")
    for name in ("kept", "begun", "dropped"):
        assert ws.state().releases[name].status is ReleaseStatus.STARTED
    assert spent(ws) == before
    sound(gone_on)


@pytest.mark.spec("LED-33")
def test_nobody_starts_what_was_found_not_to_be_started(gone_on: Restored) -> None:
    (gap,) = gone_on.workspace().state().planning.gaps.open.values()
    texts = tuple(
        one.payload.decode() for one in open_store(gone_on.folder / "full.db").read(4)
    )
    start = ReleaseStarted("dropped", gap.at)
    audit(forged(gone_on, start))
    assert independently(forged(gone_on, start)) == []
    every = LostEntriesFound(gap.head, texts)
    kept = ReleaseStarted("kept", gap.at)
    unsound(forged(gone_on, every, kept), "nothing may be spent")
    unsound(forged(gone_on, ReleaseStarted("kept", "2026")), "nothing may be spent")


@pytest.mark.spec("LED-34")
def test_a_lost_entry_of_no_time_is_refused(gone_on: Restored) -> None:
    (gap,) = gone_on.workspace().state().planning.gaps.open
    full = list(open_store(gone_on.folder / "full.db").read(0))
    bodies = [event_of(one, one.seq).body for one in full[4:]]
    (gone,) = (one for one in bodies if isinstance(one, ReleaseReserved))
    stands = PastRecorded(gone.release, gone.policy, (), "yesterday", "ann")
    texts = tuple(one.payload.decode() for one in full[4:])
    with pytest.raises(ChainBreakError, match="is unreadable"):
        audit(forged(gone_on, LostEntriesFound(gap, texts), stands))
    at = event_of(full[-1], full[-1].seq).at
    again = seal(Event(at, "ann", stands), 5, full[3].hash).payload.decode()
    with pytest.raises(ChainBreakError, match="is unreadable"):
        audit(forged(gone_on, LostEntriesFound(gap, (again,))))


@pytest.mark.spec("LED-34")
@pytest.mark.parametrize("ahead", [True, False])
def test_what_two_clocks_dated_counts_for_longer(
    tmp_path: Path, *, ahead: bool
) -> None:
    """Nothing shows whether the old clock was ahead, or the new one is behind."""
    place = Restored(tmp_path, TRACKED)
    ws = place.workspace()
    ws.submit(counts("before", rho="0.001"))
    place.keep("older.db")
    days = 9 * 365 if ahead else 150
    place.clock.time = later = add_seconds(NOON, days * 86_400)
    ws.submit(counts("lost", rho="0.04"), publish=True)
    ws.backfill(counts("past", rho="0.001"))
    place.keep("full.db")
    place.restore(place.folder / "older.db")
    place.clock.time = NOON
    place.resumed()
    assert place.bring_back(place.folder / "full.db").closed
    state = place.workspace().state()
    assert state.at == NOON
    assert {state.releases[one].day for one in ("lost", "past")} == {day_of(later)}
    assert (
        state.releases["before"].status is ReleaseStatus.CANCELED
    )  # It expired there.
    place.clock.time = later if not ahead else add_seconds(NOON, 8 * 86_400)
    again = counts("again", rho="0.04")
    assert refusal(lambda: place.workspace().submit(again)) is Code.SPLIT_TOO_FAR
    assert place.workspace("bob").submit(again).allowed
    sound(place)


@pytest.mark.spec("LED-34", "LED-35")
@pytest.mark.parametrize("early", [False, True])
def test_entries_of_which_some_are_missing_give_nothing_back(
    gone_on: Restored, early: bool
) -> None:
    """Until the last one is found, anybody who writes the store can forge them."""
    (gap,) = gone_on.workspace().state().planning.gaps.open
    log = list(open_store(gone_on.path).read(0))
    seq = 3 if early else 5
    void = Event(event_of(log[1], 2).at, "ann", ReleaseVoided("kept", "x"))
    text = seal(void, seq, log[seq - 2].hash).payload.decode()
    found = LostEntriesFound(gap, (text,))
    records = forged(gone_on, found, LossAcceptanceRequested(gap, "x"))
    closes = Event(event_of(log[-1], len(log)).at, "bob", GapClosed(gap, True, "x"))
    closed = seal(closes, len(records) + 1, records[-1].hash)
    unsound([*records, closed], "may have started")
    gone_on.workspace().turn(lambda entry: entry.add(found))
    agreed(gone_on, gap)
    known = gone_on.workspace().state().releases
    for name in ("kept", "begun", "dropped"):
        assert known[name].status is ReleaseStatus.STARTED
    sound(gone_on)


@pytest.mark.spec("LED-34")
def test_what_is_in_both_logs_is_not_found(gone_on: Restored) -> None:
    """Else a reservation before it would pass for one of after the loss."""
    (gap,) = gone_on.workspace().state().planning.gaps.open
    full = list(open_store(gone_on.folder / "full.db").read(0))
    for first, last in ((3, "was not lost"), (4, "was not lost"), (5, "")):
        texts = tuple(one.payload.decode() for one in full[first - 1 :])
        log = forged(gone_on, LostEntriesFound(gap, texts))
        if last:
            unsound(log, last)
        else:
            audit(log)
            assert independently(log) == []


@pytest.mark.spec("LED-35")
def test_who_accepts_knows_what_was_found(gone_on: Restored) -> None:
    (gap,) = gone_on.workspace().state().planning.gaps.open
    full = list(open_store(gone_on.folder / "full.db").read(4))
    ask = LossAcceptanceRequested(gap, "nothing was spent")
    found = LostEntriesFound(gap, (full[0].payload.decode(),))
    at = event_of(forged(gone_on)[-1], len(forged(gone_on))).at
    starts = [
        ReleaseStarted(name, gone_on.workspace().state().planning.gaps.open[gap].at)
        for name in ("kept", "begun", "dropped")
    ]
    for more, why in (((found,), "nobody but"), ((), "")):
        records = forged(gone_on, *starts, ask, *more)
        event = Event(at, "bob", GapClosed(gap, True, "x"))
        log = [*records, seal(event, len(records) + 1, records[-1].hash)]
        if why:
            unsound(log, why)
        else:
            audit(log)
            assert independently(log) == []


@pytest.mark.spec("LED-35")
def test_people_accept_without_a_policy_that_nobody_activates(tmp_path: Path) -> None:
    other = RULES.replace("rho: 2", "rho: 2.5")
    place = forgetful(tmp_path, RULES)
    place.resumed()
    place.workspace().governance.activate(compiled(other), reason="x")
    (policy,) = place.bring_back(place.folder / "full.db").policies
    place.workspace().turn(lambda entry: ask_to_accept(entry, "x"))
    bob = place.workspace("bob")
    for wrong in ((), ("",), (policy[:11],), ("0" * 12,)):
        with pytest.raises(ConflictError, match="not recorded yet"):
            bob.turn(partial(accept, reason="x", without=wrong), deciding=True)
    bob.turn(partial(accept, reason="x", without=(policy[:12],)), deciding=True)
    assert "gone" not in place.workspace().state().releases
    assert place.workspace().state().planning.gaps.accepted
    sound(place)


@pytest.mark.spec("LED-33", "POL-22")
def test_a_reservation_that_is_due_in_a_gap_counts_for_a_new_policy(
    gone_on: Restored,
) -> None:
    later = add_seconds(gone_on.clock.time, 3 * 86_400)
    state = gone_on.workspace().state()
    assert state.counted_seqs(later) == [2, 3, 4]
    assert state.releases.counted_seqs(later) == []


@pytest.mark.spec("LED-32")
@pytest.mark.parametrize("lost_entries", [1, 5])
def test_a_witness_that_keeps_lines_is_replaced_by_another(
    tmp_path: Path, lost_entries: int
) -> None:
    class InBucket(Restored):
        witness = "s3://ledgers/heads/one"

        def store(self) -> Store:
            return witnessed(open_store(self.path), self.witness)

    with buckets():
        place = InBucket(tmp_path, RULES)
        ws = place.workspace()
        ws.submit(counts("kept"))
        older = place.keep("older.db")
        for number in range(lost_entries):
            ws.submit(counts(f"gone-{number}"))
        place.keep("full.db")
        place.restore(older)
        assert place.resume("ann", agree=False).outcome == "asked"
        for _ in range(2):
            done = place.resume("bob", agree=True)
            assert (done.outcome, done.is_followed) == ("resumed", False)
        with pytest.raises(VerificationError, match="known head"):
            place.workspace().state()
        place.witness = "s3://ledgers/heads/two"
        assert not place.workspace().check(counts("new", rho="1e-9")).allowed
        assert place.bring_back(tmp_path / "full.db").closed
        assert spent(place.workspace()) == spent(whole(place))


def test_lost_entries_are_split_among_entries(gone_on: Restored) -> None:
    from modicum.api.local.governance import gaps

    records = list(open_store(gone_on.folder / "full.db").read(4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaps, "_ENTRIES_MAX", 2)
        assert gone_on.bring_back(gone_on.folder / "full.db").closed
    log = list(gone_on.workspace().records())
    found = [
        body
        for body in (event_of(one, one.seq).body for one in log)
        if isinstance(body, LostEntriesFound)
    ]
    assert [len(one.entries) for one in found] == [2, 2, 1]
    texts = [text for one in found for text in one.entries]
    assert texts == [one.payload.decode() for one in records]
    assert json.loads(texts[-1])["seq"] == records[-1].seq
    audit(log)


def test_an_unavailable_witness_asks_for_nothing(lost: Restored) -> None:
    (lost.folder / "head").unlink()
    lost.folder.joinpath("head").mkdir()
    with pytest.raises(UnavailableError):
        lost.resume("ann", agree=False)
