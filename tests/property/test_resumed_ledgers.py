"""Random histories, cut at each of their entries, resumed, and brought back.

The ledger that was lost is the oracle: what the resumed one counts is never less, and
the same where nothing else was recorded and no time went by.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.auditor import audit as audited
from samples.lost import RULES, Restored
from samples.small import counts

from modicum.api.local import Workspace
from modicum.core.errors import Code, ConflictError, InputError
from modicum.ledger import ReleaseStatus
from modicum.ledger.replay.snapshot import Snapshot, read_snapshot, write_snapshot
from modicum.storage.factory import open_store
from modicum.system.clock import FixedClock, add_seconds

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["submit", "publish", "start", "cancel", "large", "past", "hours", "ahead"]
        ),
        st.integers(0, 3),
    ),
    min_size=3,
    max_size=9,
)

#: A step by which a clock is wrong.
AHEAD = 365 * 86_400
CASES = ((True, False), (False, False), (False, True))


def do(ws: Workspace, clock: FixedClock, kind: str, number: int) -> None:
    """Do something with a release; what cannot be done adds no entry."""
    name = f"submit-{number}"
    with suppress(InputError, ConflictError):
        match kind:
            case "submit":
                ws.submit(counts(name, rho="0.01"))
            case "large":
                ws.submit(counts(f"large-{number}", rho="3"))
            case "publish":
                ws.publish(name)
            case "start":
                ws.start(name)
            case "cancel":
                ws.cancel(name, reason="called off")
            case "past":
                ws.backfill(counts(f"past-{number}", rho="0.02"))
            case "ahead":
                clock.time = add_seconds(clock.time, AHEAD)
            case _:
                clock.time = add_seconds(clock.time, 9 * 3600)


def sums(ws: Workspace) -> dict[str, tuple[int, ...]]:
    """Return the charge of each rule, in every coordinate."""
    found = {}
    for one in ws.standings():
        infinite = (2**62 * n for n in one.before.infinite)
        pairs = zip(one.before.finite, infinite, strict=True)
        found[one.rule.id] = tuple(a + b for a, b in pairs)
    return found


def everything_is_refused(ws: Workspace) -> None:
    """Check that nothing is spent, kept from being spent, or given back."""
    assert not ws.check(counts("new", rho="1e-9")).allowed
    denied = ws.submit(counts("new", rho="1e-9"))
    assert not denied.allowed
    assert "are lost" in denied.explain()
    before = dict(ws.state().releases)
    for name, one in before.items():
        if one.status is ReleaseStatus.RESERVED:
            for step in (ws.start, lambda each: ws.cancel(each, reason="?")):
                with pytest.raises(ConflictError) as caught:
                    step(name)
                assert caught.value.code is Code.GAP_OPEN
    assert dict(ws.state().releases) == before  # Nothing expires, either.


def is_sound(ws: Workspace, *, gaps: int) -> None:
    """Check the audit, the other auditor, and that a snapshot has all of it."""
    assert len(ws.verify().gaps.open) == gaps
    rows = [(one.seq, one.payload, one.hash) for one in ws.records()]
    assert audited(lambda: rows).mistakes == []
    state = ws.state()
    again = read_snapshot(write_snapshot(Snapshot(state)))
    assert again is not None
    assert again.state.digest() == state.digest()
    assert again.state.planning.gaps == state.planning.gaps


@pytest.mark.spec("LED-32", "LED-33", "LED-34", "LED-35")
@settings(max_examples=examples(12, 3), deadline=None)
@given(STEPS)
def test_what_was_lost_counts_again(steps: list[tuple[str, int]]) -> None:
    with TemporaryDirectory() as folder:
        place = Restored(Path(folder), RULES)
        ws = place.workspace()
        copies: dict[int, Path] = {}
        begin, end = [("submit", 0), ("submit", 1)], [("start", 0), ("submit", 9)]
        for number, step in enumerate([*begin, *steps, *end]):
            do(ws, place.clock, *step)
            copies[ws.state().seq] = place.keep(f"copy-{number}.db")
        last = max(copies)
        jumped = AHEAD * [kind for kind, _ in steps].count("ahead")
        ended = add_seconds(place.clock.time, -jumped)
        head = (place.folder / "head").read_bytes()
        seqs = sorted(copies)[:-1]
        cuts = seqs[1], seqs[len(seqs) // 2], seqs[-1]
        # Time goes by before the ledger goes on, or something is recorded meanwhile.
        for seq, later, besides in zip(cuts, *zip(*CASES, strict=True), strict=True):
            place.clock.time = add_seconds(ended, 2 * 86_400) if later else ended
            (place.folder / "head").write_bytes(head)
            place.restore(copies[seq])
            back = place.resumed()
            everything_is_refused(back)
            if besides:
                assert back.backfill(counts("besides")).status == "recorded"
            is_sound(back, gaps=1)
            done = place.bring_back(copies[last])
            assert done.closed
            assert (done.missing, done.policies, done.uncounted) == ((), (), ())
            is_sound(back, gaps=0)
            whole = Workspace(
                open_store(copies[last]), place.clock, policy=None, actor="eve"
            )
            now, then = sums(place.workspace()), sums(whole)
            for rule, charge in then.items():
                assert all(a >= b for a, b in zip(now[rule], charge, strict=True))
            if not (later or besides or jumped):
                assert now == then
            for rho in ("1e-6", "0.01", "0.2"):
                probe = counts("probe", rho=rho)
                if place.workspace().check(probe).allowed:
                    assert whole.check(probe).allowed
