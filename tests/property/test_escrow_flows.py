"""People in an escrow, in any order: nothing leaves without its approvals, nothing
that has them is stuck, and nothing is opened but for what they approved.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.escrow import Plain, contract_of, permits
from samples.escrows import PROGRAM, World, query
from samples.stored import to_plain

from modicum.api.local.escrow.actions import EscrowActions
from modicum.api.local.escrow.proposal import Purpose
from modicum.core.errors import ModicumError
from modicum.ledger import event_of
from modicum.ledger.state.flow import Flow

ANALYSTS = ("amir", "bea")
OWNERS = ("olga", "pavel")
EVERYBODY = (*ANALYSTS, *OWNERS)
STEPS = 150


@dataclass
class Story:
    """What happens to an escrow, and what it should have been."""

    world: World
    random: random.Random
    seen: Counter[str] = field(default_factory=Counter)
    number: int = 0

    def log(self) -> list[Plain]:
        records = self.world.workspace("auditor").records()
        return [to_plain(event_of(one, one.seq)) for one in records]

    def step(self) -> None:
        flows = self.world.office("amir").contracts()
        verb = self.random.choices(
            (self.ask, self.say, self.run, self.receive), weights=(2, 6, 3, 2)
        )[0]
        verb(list(flows))
        self.world.clock.time = self.world.clock.after(self.world.clock.time, 3600)

    def ask(self, flows: list[Flow]) -> None:
        self.number += 1
        heading = Purpose(
            f"c-{self.number}",
            "to know",
            lasts_seconds=self.random.choice((7200, 10**6, 10**6)),
            recipients=self.random.choice(((), (), ("bea",), ("amir", "olga"))),
        )
        done = [one for one in flows if one.results]
        tasks = [one for one in done if one.contract.flow == "task"]
        some = tasks if tasks and self.luck(0.6) else done
        chosen = self.random.choice(some) if some else None
        likely = chosen.contract.analyst if chosen else "amir"
        by = likely if self.random.random() < 0.8 else self.random.choice(EVERYBODY)
        office = self.world.office(by)
        opened = len(self.world.equipment.vault.opened)
        try:
            if chosen is None or self.random.random() < 0.2:
                text = query(f"r-{self.number}", "0.05")
                exact = self.random.random() < 0.7
                plain = Purpose(heading.id, heading.reason, heading.lasts_seconds)
                office.submit_query(plain, [text], exact=exact)
            else:
                self.follow(office, heading, chosen)
        except ModicumError:
            self.seen["not asked"] += 1
        assert len(self.world.equipment.vault.opened) == opened

    def follow(self, office: EscrowActions, heading: Purpose, flow: Flow) -> None:
        name = flow.contract.id
        plain = Purpose(heading.id, heading.reason, heading.lasts_seconds)
        if flow.contract.flow == "query":
            if self.luck(0.35):
                office.submit_output(heading, name)
            else:
                office.submit_task(plain, name, PROGRAM)
        elif self.luck(0.35):
            office.submit_signal(heading, name)
        else:
            width = self.random.choice((None, Fraction(1, 20), Fraction(1, 2)))
            office.submit_raw_signal(heading, name, width=width)

    def say(self, flows: list[Flow]) -> None:
        if not flows:
            return
        name = self.one_of(flows, consented=False).contract.id
        office = self.world.office(self.random.choice((*OWNERS * 3, "bea")))
        with suppress(ModicumError):
            if self.random.random() < 0.95:
                office.approve(name, reason="ok")
            else:
                office.reject(name, reason="no")

    def run(self, flows: list[Flow]) -> None:
        if not flows:
            return
        computing = [one for one in flows if one.computes and not one.results]
        flow = self.one_of(computing or flows, consented=True)
        log, contract = self.log(), flow.contract
        opened = len(self.world.equipment.vault.opened)
        try:
            denied = self.world.office("amir").run(contract.id).denied
            ran = denied is None
        except ModicumError:
            denied, ran = None, False
        found = self.world.equipment.vault.opened[opened:]
        body = {"contract": contract.digest, "run": flow.runs + 1}
        new = {"kind": "flow-begun", "actor": "amir", "body": body}
        charged = [*log, *self.started(contract.digest, log)]
        may = permits(charged, {**new, "at": self.world.clock.time})
        assert ran == may or denied is not None, contract.id
        assert ran or not found
        allowed = [f"data/{one.id}/{one.number}" for one in contract.data.values()]
        if contract.flow == "task":
            allowed = [
                one
                for one in found
                if one.startswith((f"result/{contract.parent}/", "code/"))
            ]
        assert [*found] == [one for one in found if one in allowed]
        self.seen[f"ran {contract.flow}" if ran else "not run"] += 1

    def one_of(self, flows: list[Flow], *, consented: bool) -> Flow:
        """Return a contract, most often an open one that has consent, or has none."""
        state = self.world.workspace("auditor").state()
        likely = [
            one
            for one in flows
            if not one.withdrawn
            and self.world.clock.time < one.contract.expires_at
            and state.escrow.consents(
                one, state.approvals.get(("contract", one.contract.digest), ())
            ).given
            is consented
        ]
        return self.random.choice(likely if likely and self.luck(0.8) else flows)

    def luck(self, chance: float) -> bool:
        return self.random.random() < chance

    def started(self, digest: str, log: list[Plain]) -> list[Plain]:
        """Return what a run adds before it begins: what it charges starts."""
        contract = contract_of(log, digest)
        assert contract is not None
        events: list[Plain] = []
        charges = contract["terms"].get("charges", ())
        for release, content, _ in charges:
            one = {"release": {"id": release, "content": content}}
            reserved = {"kind": "release-reserved", "actor": "amir", "at": ""}
            events.append({**reserved, "body": one})
        for release, _, _ in charges:
            started = {"kind": "release-started", "actor": "amir"}
            at = self.world.clock.time
            events.append({**started, "at": at, "body": {"release": release}})
        return events

    def receive(self, flows: list[Flow]) -> None:
        if not flows:
            return
        out = [one for one in flows if not one.computes]
        contract = self.random.choice(out[-4:] or flows).contract
        to = self.random.choice(
            (*contract.recipients, *contract.recipients, *EVERYBODY)
        )
        log = self.log()
        opened = len(self.world.equipment.vault.opened)
        try:
            received = self.world.office(to).receive(contract.id)
        except ModicumError:
            received = None
        got = received is not None
        found = self.world.equipment.vault.opened[opened:]
        identifier = f"contract/{contract.digest}"
        tells = {"kind": "disclosure-recorded", "body": {"id": identifier}}
        body = {"contract": contract.digest, "to": to}
        new = {"kind": "flow-released", "actor": to, "body": body}
        may = permits([*log, tells], {**new, "at": self.world.clock.time})
        assert got == may, (contract.id, to)
        if not got:
            assert found == []
            self.seen["not received"] += 1
            return
        assert received is not None
        (place,) = found
        exact = contract.flow == "raw-signal"
        assert place.startswith(f"result/{contract.parent}/")
        assert place.endswith("/exact" if exact else "/private")
        assert received.private is not exact
        kept = [one["kind"] for one in self.log()]
        assert "flow-released" in kept[len(log) :]
        if exact:
            assert any(
                one["kind"] == "disclosure-recorded" and one["body"]["id"] == identifier
                for one in self.log()
            )
        self.seen[f"received {contract.flow}"] += 1


def live_through(seed: int) -> Counter[str]:
    with TemporaryDirectory() as folder:
        world = World(Path(folder))
        world.register()
        story = Story(world, random.Random(seed))
        for _ in range(STEPS):
            story.step()
        assert world.workspace("auditor").verify().entries == len(story.log())
        return story.seen


@settings(max_examples=examples(30, plain=4), deadline=None)
@given(st.integers(0, 2**32))
def test_nothing_leaves_without_its_approvals_and_nothing_approved_is_stuck(
    seed: int,
) -> None:
    live_through(seed)


def test_what_is_lived_through_comes_to_every_end() -> None:
    seen: Counter[str] = Counter()
    for seed in range(8):
        seen += live_through(seed)
    for what in ("query", "task"):
        assert seen[f"ran {what}"] >= 3, seen
    for what in ("output", "signal", "raw-signal"):
        assert seen[f"received {what}"] >= 1, seen
    assert seen["not run"] >= 3, seen
    assert seen["not received"] >= 3, seen
