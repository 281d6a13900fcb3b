"""Governing over HTTP: signed here, once each, and only what was looked at."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from samples.remote import BEFORE, Cutter, answering
from samples.small import POLICY, counts

import modicum as mo
from modicum.api.local import Workspace
from modicum.client import retry_connection
from modicum.client.workspace import RemoteWorkspace
from modicum.core.ed25519 import verify_signature
from modicum.ledger import event_of
from modicum.ledger.log.approval_statement import statement_bytes
from modicum.ledger.log.events import ApprovalGiven
from modicum.policy.compiler import compile_text
from modicum.storage.proofs.signing_keys import SigningKey, make_key

ASKING = (
    POLICY
    + """
roles: {officer: [olga, pavel]}
approvals:
  - {when: 'release.audience == "public"', need: 1, from: [officer]}
activation: {need: 1, from: [officer]}
"""
)
PUBLIC = counts("r-1", audience="public", dataset="visits")


class World:
    """A ledger that a server keeps, people who ask it, and what cuts them off."""

    def __init__(self, folder: Path, url: str, key: SigningKey) -> None:
        self.folder = folder
        self.key = key
        self.cutter = Cutter(int(url.rpartition(":")[2]))
        self._known: dict[str, RemoteWorkspace] = {}

    def of(self, name: str) -> RemoteWorkspace:
        if name not in self._known:
            self._known[name] = mo.connect(self.cutter.url, token=f"{BEFORE}{name}")
        return self._known[name]

    def here(self, name: str = "petra") -> Workspace:
        return mo.open(self.folder / "ledger.db", actor=name)

    def written(self) -> Counter[str]:
        return Counter(
            event_of(one, one.seq).body.kind for one in self.here().records()
        )

    def close(self) -> None:
        for one in self._known.values():
            one.close()
        self.cutter.close()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(retry_connection, "WAIT_SECONDS", 0.001)
    key = make_key(tmp_path / "olga.pem")
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"{ASKING}keys: {{olga: {key.public.hex()}}}\n")
    with answering(tmp_path / "ledger.db", policy=policy) as url:
        found = World(tmp_path, url, key)
        try:
            yield found
        finally:
            found.close()


def last(world: World) -> ApprovalGiven:
    """Return what was said last, as it stands in the log."""
    *_, record = world.here().records()
    body = event_of(record, record.seq).body
    assert isinstance(body, ApprovalGiven)
    return body


# --- signing --------------------------------------------------------------------------


@pytest.mark.parametrize("release", [PUBLIC, "r-1"])
def test_a_key_signs_here_and_stays_here(world: World, release: Any) -> None:
    file = world.folder / "olga.pem"
    world.of("ann").governance.request(PUBLIC, reason="x")
    office = world.of("olga").governance
    with pytest.raises(mo.ModicumError) as caught:
        office.approve(release, reason="fine")
    assert caught.value.code.value == "MOD607"
    vote = office.approve(release, reason=" fine ", key=file)
    assert (vote.key, vote.approves) == (world.key.public.hex(), True)
    assert vote.decision is not None
    assert vote.decision.allowed
    body = last(world)
    policy = world.here().policy().policy.digest
    message = statement_bytes(body, by="olga", policy=policy, key=body.key)
    assert json.loads(message)["reason"] == "fine"
    assert verify_signature(world.key.public, message, bytes.fromhex(body.signature))
    secret = file.read_text().splitlines()[1].encode()
    raw = world.key._private.private_bytes_raw()
    sent = b"".join(world.cutter.seen)
    for one in (secret, raw, raw.hex().encode()):
        assert one not in sent
    assert world.of("ann").submit(PUBLIC).status == "reserved"


def test_a_policy_is_signed_in_the_same_way(world: World) -> None:
    text = world.here().policy().policy.text
    other = compile_text(text.replace("name: small", "name: other").encode(), "o.yaml")
    world.of("pavel").governance.propose_policy(other, reason="x")
    office = world.of("olga").governance
    with pytest.raises(mo.ModicumError) as caught:
        office.approve_policy(other, reason="fine")
    assert caught.value.code.value == "MOD607"
    file = str(world.folder / "olga.pem")
    vote = office.approve_policy(other.policy.digest[:12], reason="fine", key=file)
    assert (vote.key, last(world).key) == (world.key.public.hex(),) * 2
    assert vote.preview is not None
    assert vote.preview.successor.policy.digest == other.policy.digest
    refused = office.reject_policy(other, reason="no", key=file)
    assert (refused.approves, refused.key) == (False, world.key.public.hex())


def test_another_release_than_was_looked_at_is_not_agreed_to(world: World) -> None:
    world.of("ann").governance.request(PUBLIC, reason="x")
    other = counts("r-1", rho="0.002", audience="public", dataset="visits")
    office = world.of("pavel").governance
    before = world.written()
    for verb in (office.approve, office.reject):
        with pytest.raises(mo.StaleError):
            verb(other, reason="fine")
        with pytest.raises(mo.StaleError):
            verb("r-1", reason="fine", content="0" * 64)
    assert world.written() == before


def test_who_named_no_head_signs_again_at_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.of("ann").governance.request(PUBLIC, reason="x")
    olga = world.of("olga")
    heads = iter(range(3))
    original = RemoteWorkspace.head

    def moving(ws: RemoteWorkspace) -> Any:
        found = original(ws)
        for number in heads:  # Something comes in between, three times.
            world.here("dara").governance.annotate(f"remark {number}")
            break
        return found

    monkeypatch.setattr(RemoteWorkspace, "head", moving)
    file = world.folder / "olga.pem"
    head = original(olga).head
    world.here("dara").governance.annotate("meanwhile")
    with pytest.raises(mo.StaleError):
        olga.governance.approve("r-1", reason="x", head=head, key=file)
    with pytest.raises(mo.StaleError):
        olga.governance.approve("r-1", reason="x", head=head[:12], key=file)
    assert olga.governance.approve("r-1", reason="x", key=file).approves
    assert list(heads) == []


def test_a_key_that_is_none_says_nothing(world: World) -> None:
    world.of("ann").governance.request(PUBLIC, reason="x")
    before = len(world.cutter.seen)
    (world.folder / "none.pem").write_text("no key")
    (world.folder / "none.pem").chmod(0o600)
    with pytest.raises(mo.InputError):
        world.of("olga").governance.approve(
            "r-1", reason="x", key=world.folder / "none.pem"
        )
    assert len(world.cutter.seen) == before


# --- each step once -------------------------------------------------------------------


def steps(world: World) -> list[tuple[str, Callable[[], Any]]]:
    """Return what writes, and the event that it writes."""
    ann, dara, petra = (world.of(one) for one in ("ann", "dara", "petra"))
    olga, pavel = (world.of(one).governance for one in ("olga", "pavel"))
    text = world.here().policy().policy.text
    other = compile_text(text.replace("name: small", "name: other").encode(), "o.yaml")
    shown = {"disclosure": "d", "what": "x", "attributes": ["age"], "reason": "x"}
    return [
        ("release-requested", lambda: ann.governance.request(PUBLIC, reason="x")),
        ("approval-given", lambda: pavel.approve(PUBLIC, reason="x")),
        ("approval-given", lambda: pavel.reject("r-1", reason="x")),
        (
            "request-withdrawn",
            lambda: ann.governance.withdraw_request("r-1", reason="x"),
        ),
        ("annotated", lambda: dara.governance.annotate("x")),
        ("disclosure-recorded", lambda: dara.governance.disclose(shown)),
        ("round-opened", petra.rounds.open),
        ("policy-proposed", lambda: dara.governance.propose_policy(other, reason="x")),
        ("approval-given", lambda: pavel.approve_policy(other, reason="x")),
        ("policy-activated", lambda: olga.activate(other, reason="x")),
    ]


@pytest.mark.parametrize("cut", ["before", "half", "after", "torn"])
def test_each_step_is_taken_once(world: World, cut: str) -> None:
    world.cutter.only = b"idempotency-key"
    for kind, step in steps(world):
        before = world.written()
        world.cutter.plan = [cut, cut]
        found = step()
        assert world.cutter.plan == []
        assert world.written() - before == Counter({kind: 1})
        assert getattr(found, "repeated", False) is False
    keys = [
        re.search(rb"(?i)idempotency-key: (\S+)", one)[1]  # type: ignore[index]
        for one in world.cutter.seen
        if b"idempotency-key" in one.lower()
    ]
    assert sorted(Counter(keys).values()) == [3] * len(steps(world))


def test_a_plan_is_committed_once(world: World, tmp_path: Path) -> None:
    petra = world.of("petra")
    petra.rounds.open()
    lines = [counts(f"w-{number}", dataset="visits") for number in range(3)]
    (tmp_path / "w.jsonl").write_text("\n".join(map(json.dumps, lines)))
    plan = petra.rounds.plan(
        mo.requests.load(tmp_path / "w.jsonl", policy=petra.policy())
    )
    world.cutter.only = b"idempotency-key"
    world.cutter.plan = ["after", "torn"]
    done = petra.rounds.commit(plan)
    assert done.releases == plan.accepted
    assert world.written()["release-reserved"] == 3
    assert world.written()["plan-committed"] == 1


def test_who_never_hears_is_told_that_nobody_knows(world: World) -> None:
    world.cutter.only = b"idempotency-key"
    world.cutter.plan = ["after"] * retry_connection.ATTEMPTS_MAX
    with pytest.raises(mo.UnavailableError) as caught:
        world.of("petra").rounds.open(unlocked={"user": Fraction(1, 2)})
    problem = caught.value.problems[0]
    assert "it is unknown whether it has opened the round" in problem.notes
    assert problem.help.startswith("check the ledger before you repeat it")
    assert world.of("petra").rounds.present() is not None


# --- who may --------------------------------------------------------------------------


def test_who_may_not_read_the_ledger_is_told_of_what_waits_only(world: World) -> None:
    ann, dara = world.of("ann"), world.of("dara")
    ann.governance.request(PUBLIC, reason="x")
    assert len(dara.governance.requests()) == 1
    assert [one.missing for one in ann.governance.approval_states(PUBLIC)] == [1]
    assert ann.governance.votes("r-1") == ()
    other = counts("r-2", audience="public", dataset="visits")
    for work in (
        lambda: ann.governance.approval_states(other),
        lambda: ann.governance.votes("r-2"),
        ann.state,
        lambda: list(ann.records()),
        lambda: ann.record(1),
        ann.verify,
        lambda: ann.as_of(1),
        ann.rounds.remainders,
        lambda: ann.governance.annotate("x"),
        ann.rounds.open,
        lambda: ann.audits.export(world.folder / "a.bundle"),
    ):
        with pytest.raises(mo.AccessError):
            work()
    assert not (world.folder / "a.bundle").exists()
    with mo.connect(world.cutter.url, token=f"{BEFORE}lee") as lee:
        assert lee.governance.requests() == ()
        with pytest.raises(mo.InputError):
            lee.governance.withdraw_request("r-1", reason="x")
