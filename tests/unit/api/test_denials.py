"""The same denial again adds no entry; whatever else came in between, it does."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from samples.small import NOON, compiled, counts

from modicum.api.local import Decision, Workspace
from modicum.api.local.repeated_denials import Denials
from modicum.api.local.submit import prepared
from modicum.core.errors import ConflictError
from modicum.ledger import Event, Record, event_of, seal
from modicum.ledger.log.events import Annotated, ReleaseDenied
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

#: What may stand between two denials that are one.
BETWEEN = {
    "release-denied",
    "release-started",
    "release-posted",
    "approval-given",
    "release-requested",
    "request-withdrawn",
    "policy-proposed",
    "annotated",
}


def told_already(log: Sequence[Event], denial: Event) -> int | None:
    """Return the entry that tells of a denial, the slow and obvious way."""
    assert isinstance(denial.body, ReleaseDenied)
    for seq in range(len(log), max(len(log) - 1000, 0), -1):
        one = log[seq - 1]
        body = one.body
        if (
            isinstance(body, ReleaseDenied)
            and body.release.id == denial.body.release.id
        ):
            same = (one.actor, one.at[:10], body) == (
                denial.actor,
                denial.at[:10],
                denial.body,
            )
            return seq if same else None
        if body.kind not in BETWEEN:
            return None
    return None


class Ledger:
    """A ledger, used by one who stays, and by others who begin with a snapshot."""

    def __init__(self, folder: Path) -> None:
        self.clock = FixedClock(NOON)
        self.store = SqliteStore(folder / "ledger.db", wait_seconds=20)
        self.stays = {name: self.opened(name) for name in ("ann", "bob")}
        self.stays["ann"].submit(counts("first", rho="0.015"), publish=True)

    def opened(self, actor: str) -> Workspace:
        return Workspace(
            self.store,
            self.clock,
            policy=compiled(),
            actor=actor,
            snapshots=self.store,
            snapshot_every=1,
        )

    def by(self, actor: str, *, anew: bool) -> Workspace:
        return self.opened(actor) if anew else self.stays[actor]

    def log(self) -> list[Event]:
        return [event_of(one, one.seq) for one in self.store.read(0)]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["submit", "submit", "submit", "batch"])
        | st.sampled_from(["take", "start", "cancel", "note", "tomorrow"]),
        st.sampled_from(["ann", "bob"]),
        st.sampled_from(["x", "y"]),
        st.sampled_from(["0.015", "0.014"]),
        st.booleans(),
    ),
    min_size=2,
    max_size=14,
)


X = ("submit", "ann", "x", "0.015", False)
TOMORROW = ("tomorrow", "ann", "x", "", False)


@pytest.mark.spec("LED-6")
@settings(deadline=None, max_examples=20, phases=[Phase.explicit, Phase.generate])
@given(STEPS)
@example([X, X])
@example([X, TOMORROW, X, X])
@example([X, ("submit", "bob", "x", "0.015", False), X])
@example([X, ("submit", "ann", "x", "0.014", False), X])
@example(
    [("take", "ann", "x", "0.015", False), X, ("cancel", "ann", "x", "", False), X]
)
@example([X, ("note", "ann", "x", "", False), ("submit", "ann", "x", "0.015", True)])
def test_a_denial_is_added_unless_the_log_tells_of_it(
    steps: list[tuple[str, str, str, str, bool]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder))
        taken: list[str] = []
        for number, (kind, actor, name, rho, anew) in enumerate(steps):
            space = ledger.by(actor, anew=anew)
            if kind == "submit":
                submit(ledger, space, actor, [counts(name, rho=rho)])
            elif kind == "batch":
                both = [counts(name, rho=rho), counts("z", rho="0.016")]
                submit(ledger, space, actor, [*both, counts(name, rho=rho)])
            elif kind == "take":
                taken.append(f"small-{number}")
                space.submit(counts(taken[-1], rho="0.00000001"))
            elif kind in ("cancel", "start") and taken:
                with suppress(ConflictError):  # It may have run out.
                    if kind == "cancel":
                        space.cancel(taken.pop(), reason="not needed")
                    else:
                        space.start(taken.pop())
            elif kind == "note":
                space.governance.annotate("hello")
            elif kind == "tomorrow":
                ledger.clock.time = ledger.clock.after(ledger.clock.time, 86_400 // 2)
        assert ledger.opened("audra").verify().entries == len(ledger.log())
        ledger.store.close()


def submit(
    ledger: Ledger, space: Workspace, actor: str, releases: list[dict[str, object]]
) -> None:
    """Submit what is denied, and hold what is added against the log."""
    expected_blocking = [space.check(one).blocking for one in releases]
    before = ledger.log()
    batch = [prepared(one, compiled()) for one in releases]
    answers = space.submit_many(batch)
    after = ledger.log()
    expected = list(before)
    # What ran out in the meantime is taken back first.
    for event in after[len(before) :]:
        if event.body.kind != "release-expired":
            break
        expected.append(event)
    at = max(ledger.clock.now(), expected[-1].at)
    digest = compiled().policy.digest
    for answer, one, blocking in zip(answers, batch, expected_blocking, strict=True):
        assert isinstance(answer, Decision)
        assert (answer.status, answer.blocking) == ("denied", blocking)
        entries = [re.search(r"with entry (\d+)", notice) for notice in answer.notices]
        denial = Event(at, actor, ReleaseDenied(one.release, digest, blocking))
        known = told_already(expected, denial)
        assert [int(one[1]) for one in entries if one] == ([known] if known else [])
        if known is None:
            expected.append(denial)
    assert expected == after


@pytest.mark.spec("LED-6")
@pytest.mark.parametrize(("between", "same"), [(0, True), (999, True), (1000, False)])
@pytest.mark.parametrize("followed", [True, False])
def test_a_denial_is_looked_for_among_the_last_thousand_entries(
    tmp_path: Path, between: int, followed: bool, same: bool
) -> None:
    ledger = Ledger(tmp_path)
    ledger.stays["bob"].submit(counts("x", rho="0.015"))
    (denial,) = [one for one in ledger.log() if isinstance(one.body, ReleaseDenied)]
    records: list[Record] = []
    events = [denial, *[Event(NOON, "ann", Annotated("", "hello"))] * between]
    for number, event in enumerate(events, 7):
        records.append(seal(event, number, records[-1].hash if records else "0" * 64))
    denials = Denials(from_start=followed)
    if followed:
        for record, event in zip(records, events, strict=True):
            denials.follow(record.seq, event)
    head = records[-1].seq
    found = denials.same(
        denial, head, lambda after: [one for one in records if one.seq > after]
    )
    assert found == (7 if same else None)
    ledger.store.close()


def test_what_is_out_and_denied_is_told_to_be_counted_nowhere(tmp_path: Path) -> None:
    ws = Ledger(tmp_path).stays["ann"]
    remarks = {
        publish: [
            one
            for one in ws.submit(counts("x", rho="0.015"), publish=publish).notices
            if "not charged" in one
        ]
        for publish in (False, True, True)
    }
    assert not remarks[False]
    (remark,) = remarks[True]
    assert remark.endswith("release backfill")
    passes = ws.submit(counts("y", rho="1e-6"), publish=True)
    assert (passes.status, passes.notices) == ("published", ())
    assert ws.backfill(counts("x", rho="0.015")).status == "recorded"
