"""Logs with corrections: what is charged is what the descriptions of today say.

The oracle puts each description in the place of the one that it corrects, and adds up,
person by person and month by month; another one reads the stored rows alone.
"""

from __future__ import annotations

import copy
import random
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.auditor import audit
from samples import parted
from samples.parted import MONTHS, PEOPLE, POLICY, Written
from samples.small import compiled

from modicum.api.local import Workspace
from modicum.core.errors import ApprovalError
from modicum.ledger.replay.snapshot import Snapshot, read_snapshot, write_snapshot
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

#: All that past releases read was there by then.
AFTERWARDS = "2027-01-01T12:00:00.000000Z"
SEEDS = st.integers(min_value=0, max_value=2**32)


class Log:
    """A log in a folder that random people write to, and what is meant by it."""

    def __init__(self, rng: random.Random, folder: Path, near: str) -> None:
        self.rng, self.folder = rng, folder
        self.policy = POLICY.replace("NEIGHBORS", near)
        self.past: dict[str, Written] = {}
        self.others: dict[str, Written] = {}
        self.ws = self.by("ann", self.policy)
        self.number = 0
        self.corrected = 0
        self.asking: dict[str, set[str]] = {}

    def by(self, actor: str, policy: str | None = None) -> Workspace:
        """Return the ledger as somebody uses it."""
        return Workspace(
            SqliteStore(self.folder / "ledger.db", wait_seconds=20),
            FixedClock(AFTERWARDS),
            policy=None if policy is None else compiled(policy),
            actor=actor,
        )

    def some(self) -> Written:
        self.number += 1
        found = parted.some(self.rng, self.number, large=True)
        for one in found["mechanisms"]:
            one["cost"] = parted.costs(str(self.rng.choice([1, 2, 4]) / 40))
        return found

    def step(self) -> None:
        """Record a past release, correct one, or ask for one."""
        what = self.rng.choice(["record", "correct", "correct", "submit"])
        if what == "record" or not self.past:
            one = self.some()
            self.ws.backfill(one)
            self.past[one["release"]] = one
        elif what == "submit":
            one = self.some()
            if self.ws.submit(one).allowed:
                self.others[one["release"]] = one
        else:
            self.correct(self.rng.choice([*self.past]))

    def correct(self, name: str) -> None:
        """Correct a past release, mostly; else somebody thinks better of it."""
        now = copy.deepcopy(self.past[name])
        for one in now["mechanisms"]:
            one.pop("periods", None)
            if self.rng.random() < 0.8:
                one["periods"] = self.rng.sample(MONTHS, self.rng.randint(1, 2))
        people = self.rng.sample(["ann", "bob", "cleo"], 2)
        asks, agrees = (self.by(one).governance for one in people)
        request = asks.redescribe(now, reason="it reads these")
        if request is None:
            return
        requesters = self.asking.setdefault(request.request.content, set())
        requesters.add(people[0])
        if people[1] in requesters:  # They asked for the same before.
            with pytest.raises(ApprovalError):
                agrees.approve(name, reason="it does")
        if people[1] in requesters or self.rng.random() < 0.2:
            asks.withdraw_request(name, reason="it does not")
            return
        agrees.approve(name, reason="it does")
        requesters.clear()
        self.past[name] = now
        self.corrected += 1


@settings(max_examples=examples(12))
@given(SEEDS, st.sampled_from(["add-remove", "substitute"]))
def test_balances_are_those_of_the_descriptions_of_today(seed: int, near: str) -> None:
    rng = random.Random(seed)
    with TemporaryDirectory() as folder:
        log = Log(rng, Path(folder), near)
        for _ in range(rng.randint(4, 14)):
            log.step()
        policy, described = compiled(log.policy), {**log.past, **log.others}
        history = [parted.priced(one, policy) for one in described.values()]
        fresh = log.by("dora")
        for _ in range(8):
            person, month = rng.choice(PEOPLE), rng.choice(MONTHS)
            rule, about = rng.choice([("month", ""), ("pay", "pay")])
            # One followed every step, one reads the log anew.
            found, again = (
                ws.spenders(
                    f"{rule} @black-box",
                    where={"country": person[0], "birth": person[1]},
                    periods=month,
                )
                for ws in (log.ws, fresh)
            )
            assert found.loss.before == again.loss.before
            assert (found.loss.cell, found.spenders) == (
                again.loss.cell,
                again.spenders,
            )
            if near == "add-remove":  # Else a cell is a pair of people.
                expected = parted.spent(history, person, month, about)
                spent = found.loss.before.units(1)
                assert spent == sum(expected.values()) * 10**12
                assert {
                    one.release: Fraction(one.units, 10**12) for one in found.spenders
                } == expected
        rows = [(one.seq, one.payload, one.hash) for one in fresh.records()]
        findings = audit(lambda: rows)
        assert findings.mistakes == []
        assert findings.kinds["past-redescribed"] == log.corrected
        assert fresh.verify().entries == len(rows)
        state = fresh.state()
        kept = read_snapshot(write_snapshot(Snapshot(state)))
        assert kept is not None
        assert kept.state.digest() == state.digest()
        assert kept.state.redescribed == state.redescribed
