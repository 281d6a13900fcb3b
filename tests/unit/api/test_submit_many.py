"""A batch is decided as its releases would be one after the other, and stored once."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.small import NOON, POLICY, compiled, counts, workspace

from modicum.api.local import (
    Decision,
    Submission,
    Workspace,
    prepared,
)
from modicum.api.local import (
    balances as book,
)
from modicum.api.ports.storage import StoredAnswer
from modicum.core.errors import (
    Code,
    ConflictError,
    ModicumError,
    Problem,
    StaleError,
    UnavailableError,
    VerificationError,
)
from modicum.ledger import Balances, Record, RecordedRelease
from modicum.system.clock import FixedClock, add_seconds

SMALL = compiled()
MINUTE = 60


class Shelf:
    """A store in memory, which counts what is asked of it and fails when told to."""

    name = "memory"

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.commits = 0
        self.fails: str | None = None
        self.snapshot: bytes | None = None
        self._pending: list[Record] = []

    def exists(self) -> bool:
        return bool(self.records)

    def read(self, after: int, limit: int | None = None) -> Iterator[Record]:
        end = len(self.records) if limit is None else after + limit
        return iter(self.records[after:end])

    def record(self, seq: int) -> Record | None:
        return self.records[seq - 1] if 0 < seq <= len(self.records) else None

    def close(self) -> None:
        pass

    def load_snapshot(self) -> bytes | None:
        return self.snapshot

    def save_snapshot(self, data: bytes) -> None:
        self.snapshot = data

    def append(self, records: Sequence[Record]) -> None:
        self._pending = list(records)

    def answered(self, keys: Collection[str]) -> Mapping[str, StoredAnswer]:
        return {}

    def keep(self, answers: Sequence[StoredAnswer], *, forget_before: str) -> None:
        raise AssertionError

    @contextmanager
    def turn(self) -> Iterator[Shelf]:
        self._pending = []
        yield self
        fails, self.fails = self.fails, None
        if fails == "before":
            raise UnavailableError(Problem(Code.LEDGER_UNWRITABLE, "disk full"))
        self.records += self._pending
        self.commits += bool(self._pending)
        if fails == "after":
            raise UnavailableError(Problem(Code.LEDGER_UNWRITABLE, "no answer"))


def on_shelf(shelf: Shelf, clock: FixedClock | None = None, **more: Any) -> Workspace:
    return Workspace(
        shelf, clock or FixedClock(NOON), policy=SMALL, actor="tester", **more
    )


def random_submission(rng: random.Random) -> Submission:
    """Return a release that may be new, again, changed, allowed or not."""
    rho = rng.choice(["0.0005", "0.002", "0.006", "0.012"])
    attributes = tuple(
        rng.sample(["age", "diagnosis", "steps"], rng.choice([0, 1, 1, 2]))
    )
    release = counts(
        f"r-{rng.randrange(8)}", rho=rho, attributes=attributes, ml="black-box"
    )
    return prepared(
        release,
        SMALL,
        publish=rng.random() < 0.3,
        reserve_seconds=rng.choice([MINUTE, 10 * MINUTE]),
    )


def shown(answer: Decision | ModicumError) -> object:
    return (
        str(answer)
        if isinstance(answer, ModicumError)
        else (answer.to_dict(), str(answer))
    )


def one_by_one(ws: Workspace, submissions: Sequence[Submission]) -> list[object]:
    if not submissions:
        ws.submit_many([])  # A turn takes back what ran out, if nothing else.
    return [shown(answer) for one in submissions for answer in ws.submit_many([one])]


@pytest.mark.spec("LED-14")
@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_batch_is_the_same_as_one_after_the_other(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(book, "LATEST_MAX", seed % 2 * 1000)
        compare_batches(random.Random(seed))


def compare_batches(rng: random.Random) -> None:
    """Run a random history twice: in batches, and one by one."""
    clock = FixedClock(NOON)
    together, apart = Shelf(), Shelf()
    batches, singles = on_shelf(together, clock), on_shelf(apart, clock)
    for number in range(rng.randint(1, 6)):
        clock.time = add_seconds(NOON, 3 * MINUTE * number)
        batch = [random_submission(rng) for _ in range(rng.randint(0, 7))]
        commits = together.commits
        answers = batches.submit_many(batch)
        assert [shown(one) for one in answers] == one_by_one(singles, batch)
        assert together.commits <= commits + 1
        for open_one in list(batches.state().open):
            if rng.random() < 0.3:
                verb = rng.choice(["start", "cancel"])
                more = {"reason": "test"} if verb == "cancel" else {}
                for ws in (batches, singles):
                    getattr(ws, verb)(open_one, **more)
    assert together.records == apart.records
    if together.records:
        assert batches.verify() == singles.verify()
        assert on_shelf(together).state().digest() == batches.state().digest()


@pytest.mark.spec("LED-14")
def test_each_decision_sees_those_before_it_and_mistakes_stay_in_place() -> None:
    shelf = Shelf()
    ws = on_shelf(shelf)
    ws.submit(counts("old", rho="0.001"))
    other = compiled(POLICY.replace("name: small", "name: other"))
    answers = ws.submit_many(
        [
            prepared(counts("a", rho="0.012"), SMALL),
            prepared(counts("b", rho="0.012"), SMALL),
            prepared(counts("old", rho="0.002"), SMALL),
            prepared(counts("c"), other),
            prepared(counts("a", rho="0.012"), SMALL, publish=True),
            prepared(counts("d", rho="0.0001"), SMALL),
        ]
    )
    kinds = [
        type(one).__name__ if isinstance(one, ModicumError) else one.status
        for one in answers
    ]
    assert kinds == [
        "reserved",
        "denied",
        "ConflictError",
        "StaleError",
        "published",
        "reserved",
    ]
    assert shelf.commits == 2
    assert ws.verify().entries == len(shelf.records) == 7


@pytest.mark.spec("LED-11")
def test_a_batch_of_mistakes_does_not_begin_a_ledger() -> None:
    shelf = Shelf()
    strict = compiled(
        POLICY + 'approvals: [{when: "true", need: 1, from: [officer]}]\n'
    )
    ws = Workspace(shelf, FixedClock(NOON), policy=strict)
    answers = ws.submit_many([prepared(counts("a"), strict)])
    assert [type(one).__name__ for one in answers] == ["ApprovalError"]
    assert shelf.records == []
    assert ws.submit_many([]) == []
    assert ws.state().seq == 0
    assert shelf.commits == 0


@pytest.mark.spec("LED-8")
@pytest.mark.parametrize("fails", ["before", "after"])
def test_what_came_of_an_unknown_outcome_is_in_the_log(fails: str) -> None:
    shelf = Shelf()
    ws = on_shelf(shelf)
    ws.submit(counts("old", rho="0.001"))
    batch = [
        prepared(counts("a", rho="0.006"), SMALL),
        prepared(counts("b", rho="0.02"), SMALL),
        prepared(counts("c", rho="0.004"), SMALL, publish=True),
    ]
    shelf.fails = fails
    with pytest.raises(UnavailableError):
        ws.submit_many(batch)
    assert ws.state().seq == len(shelf.records) == (2 if fails == "before" else 7)
    again = ws.submit_many(batch)
    stored = fails == "after"
    assert [(one.status, one.retry) for one in again if isinstance(one, Decision)] == [
        ("reserved", stored),
        ("denied", False),
        ("published", stored),
    ]
    assert on_shelf(shelf).state().digest() == ws.state().digest()
    ws.verify()


class Broken(BaseException):
    """What nobody expects, such as an interrupt from the keyboard."""


@pytest.mark.spec("LED-8")
@pytest.mark.parametrize("verb", ["read", "check", "retry", "submit", "again"])
@pytest.mark.parametrize("kind", [Broken, KeyboardInterrupt, MemoryError])
def test_what_breaks_off_midway_leaves_nothing_half_done(
    verb: str, kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, shelf = FixedClock(NOON), Shelf()
    ws, other = on_shelf(shelf, clock), on_shelf(shelf, clock)
    ws.submit(counts("a", rho="0.002"), reserve_seconds=MINUTE)
    ws.submit(counts("b", rho="0.002"))
    if verb in ("read", "submit"):
        other.submit(counts("c", rho="0.002"))
    if verb != "again":
        clock.time = add_seconds(NOON, MINUTE)
    ask = ws.submit if verb in ("submit", "again") else ws.check
    about = "b" if verb in ("retry", "again") else "d"

    def breaking(balances: Balances, release: RecordedRelease, day: int = 0) -> None:
        raise kind

    with monkeypatch.context() as patch:
        patch.setattr(Balances, "charge", breaking)
        with pytest.raises(kind):
            ask(counts(about, rho="0.002"))
    assert ws.standings() == on_shelf(shelf, clock).standings()
    assert ws.state().digest() == on_shelf(shelf, clock).state().digest()
    ws.submit(counts("f", rho="0.002"))
    assert ws.standings() == on_shelf(shelf, clock).standings()


def test_a_mistake_of_the_caller_does_not_cost_another_reading() -> None:
    shelf = Shelf()
    ws = on_shelf(shelf)
    ws.submit(counts("a"))
    reads: list[int] = []
    whole = shelf.read

    def counted(after: int, limit: int | None = None) -> Iterator[Record]:
        reads.append(after)
        return whole(after, limit)

    shelf.read = counted  # type: ignore[method-assign]
    for _ in range(3):
        with pytest.raises(ConflictError):
            ws.submit(counts("a", rho="0.002"))
        with pytest.raises(ModicumError):
            ws.start("unknown")
    assert 0 not in reads
    assert len(reads) >= 6


@pytest.mark.spec("LED-4")
def test_what_ran_out_is_taken_back_once_before_anything_is_decided() -> None:
    clock, shelf = FixedClock(NOON), Shelf()
    ws = on_shelf(shelf, clock)
    ws.submit(counts("a", rho="0.008"), reserve_seconds=MINUTE)
    ws.submit(counts("b", rho="0.008"), reserve_seconds=MINUTE)
    clock.time = add_seconds(NOON, MINUTE)
    batch = [prepared(counts(name, rho="0.008"), SMALL) for name in ("c", "d", "a")]
    answers = ws.submit_many(batch)
    assert [one.status for one in answers if isinstance(one, Decision)] == [
        "reserved",
        "reserved",
    ]
    assert isinstance(answers[2], ConflictError)
    kinds = [one.payload.count(b"release-expired") for one in shelf.records]
    assert kinds == [0, 0, 0, 1, 1, 0, 0]


@pytest.mark.spec("LED-15")
def test_times_never_fall_whatever_the_clock_does() -> None:
    clock, shelf = FixedClock(NOON), Shelf()
    ws = on_shelf(shelf, clock)
    ws.submit(counts("a", rho="0.015"), reserve_seconds=MINUTE)
    clock.time = add_seconds(NOON, -3600)
    slow = on_shelf(shelf, clock)
    decision = slow.submit(counts("b", rho="0.001"), reserve_seconds=MINUTE)
    assert decision.expires_at == add_seconds(NOON, MINUTE)
    assert slow.verify().entries == 3
    assert not slow.check(counts("c", rho="0.015")).allowed


def test_a_stale_policy_is_told_before_anything_is_priced() -> None:
    shelf = Shelf()
    on_shelf(shelf).init()
    other = compiled(POLICY.replace("name: small", "name: other"))
    ws = Workspace(shelf, FixedClock(NOON), policy=other)
    with pytest.raises(StaleError):
        ws.prepare(counts("a"))


@pytest.mark.spec("LED-5")
@pytest.mark.parametrize("kept", [0, 2, 1000])
def test_a_release_of_an_entry_is_read_back_whole(
    tmp_path: Path, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book, "LATEST_MAX", kept)
    ws = workspace(tmp_path)
    for number in range(5):
        ws.submit(counts(f"r-{number}", rho="0.0001"), publish=bool(number % 2))
    for identifier, standing in ws.state().releases.items():
        found = ws.release_of(standing)
        assert isinstance(found, RecordedRelease)
        assert (found.id, found.content) == (identifier, standing.content)
        again = ws.submit(
            counts(identifier, rho="0.0001"), publish=identifier in ("r-1", "r-3")
        )
        assert again.retry


def test_a_release_that_is_not_what_was_read_is_not_handed_out() -> None:
    shelf, other = Shelf(), Shelf()
    for where, name in ((shelf, "a"), (other, "b")):
        on_shelf(where).submit(counts(name), publish=True)
    ws = on_shelf(shelf)
    (standing,) = ws.state().releases.values()
    ws._live.book._latest.clear()
    for records in (other.records, shelf.records[:1]):
        shelf.records = records
        with pytest.raises(VerificationError, match="differs from what was read"):
            ws.release_of(standing)


# --- snapshots --------------------------------------------------------------------


def busy(ws: Workspace, rng: random.Random, count: int) -> None:
    for _ in range(count):
        ws.submit_many([random_submission(rng) for _ in range(3)])
        for one in list(ws.state().open):
            if rng.random() < 0.4:
                ws.cancel(one, reason="test")


@pytest.mark.spec("LED-16")
@settings(max_examples=examples(15), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_start_from_a_snapshot_is_a_start_from_the_log(seed: int) -> None:
    rng = random.Random(seed)
    shelf = Shelf()
    writer = on_shelf(shelf, snapshots=shelf, snapshot_every=10**9)
    busy(writer, rng, rng.randint(1, 3))
    writer.save_snapshot()
    made = list(shelf.records)
    busy(writer, rng, rng.randint(0, 2))
    from_log, from_snapshot = on_shelf(shelf), on_shelf(shelf, snapshots=shelf)
    assert shelf.snapshot is not None
    reads: list[int] = []
    whole = shelf.read

    def counted(after: int, limit: int | None = None) -> Iterator[Record]:
        reads.append(after)
        return whole(after, limit)

    shelf.read = counted  # type: ignore[method-assign]
    reviewed = rng.random() < 0.5
    if reviewed:
        from_snapshot.state()  # Goes on without balances: those are older now.
    standings = from_snapshot.standings()
    behind = len(shelf.records) > len(made)
    assert (0 in reads) == (reviewed and behind)  # Else balances came with it.
    assert standings == from_log.standings() == writer.standings()
    assert from_snapshot.state().digest() == from_log.state().digest()
    batch = [random_submission(rng) for _ in range(5)]
    head = list(shelf.records)
    answers = [shown(one) for one in from_snapshot.submit_many(batch)]
    after, shelf.records = shelf.records, head
    assert answers == [shown(one) for one in from_log.submit_many(batch)]
    assert after == shelf.records


@pytest.mark.spec("LED-16")
def test_a_snapshot_of_another_log_or_damaged_is_not_used() -> None:
    shelf, other = Shelf(), Shelf()
    for where, rho in ((shelf, "0.001"), (other, "0.002")):
        ws = on_shelf(where, snapshots=where)
        for number in range(3):
            ws.submit(counts(f"r-{number}", rho=rho))
        ws.save_snapshot()
    own = on_shelf(shelf).state().digest()
    good = shelf.snapshot
    assert good is not None
    assert other.snapshot is not None
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    for where, data in (
        (shelf, other.snapshot),
        (shelf, bytes(flipped)),
        (shelf, good[:-1]),
        (shelf, b""),
    ):
        where.snapshot = data
        digest = on_shelf(where, snapshots=where).state().digest()
        assert digest == own == on_shelf(where).state().digest()
    # A snapshot ahead of the log tells that entries were lost: nothing is decided.
    for records in (shelf.records[:2], []):
        cut = Shelf()
        cut.records, cut.snapshot = records, good
        ws = on_shelf(cut, snapshots=cut)
        for attempt in (ws.state, lambda ws=ws: ws.submit(counts("r-9", rho="0.001"))):
            with pytest.raises(VerificationError) as caught:
                attempt()
            assert caught.value.code is Code.LEDGER_BROKEN
        assert cut.records == records


@pytest.mark.spec("LED-16")
def test_snapshots_are_written_now_and_then_and_only_by_turns() -> None:
    shelf = Shelf()
    ws = on_shelf(shelf, snapshots=shelf, snapshot_every=4)
    seen = []
    for number in range(8):
        ws.submit(counts(f"r-{number}", rho="0.0001"))
        seen.append(shelf.snapshot)
    assert seen[:2] == [None, None]
    assert len(set(seen) - {None}) == 2
    before = shelf.snapshot
    reader = on_shelf(shelf, snapshots=shelf, snapshot_every=1)
    reader.check(counts("x"))
    reader.standings()
    assert shelf.snapshot is before


@pytest.mark.spec("LED-16")
def test_a_snapshot_that_cannot_be_kept_costs_nothing() -> None:
    shelf = Shelf()

    def full(data: bytes) -> None:
        raise UnavailableError(Problem(Code.LEDGER_UNWRITABLE, "disk full"))

    shelf.save_snapshot = full  # type: ignore[method-assign]
    ws = on_shelf(shelf, snapshots=shelf, snapshot_every=1)
    assert ws.submit(counts("a")).status == "reserved"
    assert ws.submit(counts("b")).status == "reserved"
    assert on_shelf(shelf).state().digest() == ws.state().digest()
    with pytest.raises(UnavailableError):
        ws.save_snapshot()


def test_a_snapshot_under_another_policy_gives_its_state_and_no_balances() -> None:
    shelf = Shelf()
    ws = on_shelf(shelf, snapshots=shelf)
    ws.submit(counts("a", rho="0.008"))
    ws.save_snapshot()
    tighter = compiled(POLICY.replace("high: 1.0", "high: 0.9"))
    other = Workspace(shelf, FixedClock(NOON), policy=tighter, snapshots=shelf)
    plain = Workspace(shelf, FixedClock(NOON), policy=tighter)
    assert other.standings() == plain.standings()
