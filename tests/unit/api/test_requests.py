"""What waits for people: requests and proposals; and what they must know to agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.audited import key
from samples.small import NOON, POLICY, compiled, counts
from samples.stores import postgres_place, sqlite_place

from modicum.api.local import Workspace
from modicum.api.ports.storage import Store
from modicum.core.errors import (
    ApprovalError,
    Code,
    ConflictError,
    InputError,
    ModicumError,
    StaleError,
)
from modicum.ledger import event_of
from modicum.ledger.log.events import ApprovalGiven, ReleaseReserved
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock
from modicum.writer.service import Decider

ASKING = (
    POLICY
    + """
roles: {officer: [olga, pavel], steward: [sam]}
approvals:
  - {when: 'release.audience == "public"', need: 1, from: [officer]}
activation: {need: 1, from: [officer]}
"""
)
KEY, OTHER = key(1), key(2)
PINNED = ASKING + f"keys: {{olga: {KEY.public.hex()}}}\n"
PUBLIC = counts("r-1", audience="public")
CHANGED = counts("r-1", rho="0.002", audience="public")


@dataclass
class Ledger:
    """A ledger with a policy, to be used by several people."""

    path: Path
    clock: FixedClock

    def of(self, actor: str, policy: str | None = None) -> Workspace:
        return Workspace(
            SqliteStore(self.path, wait_seconds=20),
            self.clock,
            policy=None if policy is None else compiled(policy),
            actor=actor,
        )

    def size(self) -> int:
        return self.of("reader").state().seq

    def head(self) -> str:
        return self.of("reader").state().head

    def refused(self, kind: type[ModicumError], code: Code, verb: Any) -> str:
        """Return what is said where something is refused and nothing is written."""
        before = self.size()
        with pytest.raises(kind) as caught:
            verb()
        assert caught.value.code is code
        assert self.size() == before
        return caught.value.render()


@pytest.fixture(name="ledger")
def ledger_fixture(tmp_path: Path) -> Ledger:
    found = Ledger(tmp_path / "ledger.db", FixedClock(NOON))
    found.of("admin", ASKING).init()
    return found


# --- requests -----------------------------------------------------------------------


@pytest.mark.spec("LED-21")
def test_a_request_waits_until_the_release_is_reserved(ledger: Ledger) -> None:
    request = ledger.of("ann").governance.request(PUBLIC, reason=" for the report ")
    assert (request.repeated, request.decision.allowed) == (False, True)
    assert [one.left for one in request.approval_states] == [("olga", "pavel")]
    (waiting,) = ledger.of("olga").governance.requests()
    assert (waiting.request.by, waiting.request.seq) == ("ann", 2)
    assert (waiting.reason, waiting.complete) == ("for the report", False)
    assert waiting.release.id == "r-1"
    again = ledger.of("ann").governance.request(PUBLIC, reason="once more")
    assert again.repeated
    assert again.request == request.request
    assert ledger.size() == 2  # It spends nothing, and adds nothing again.
    vote = ledger.of("olga").governance.approve("r-1", reason="little is told")
    assert vote.decision is not None
    assert vote.decision.verdict.allowed
    assert vote.decision.approvals == ()
    assert ledger.of("olga").governance.requests()[0].complete
    assert ledger.of("ann").submit(PUBLIC).status == "reserved"
    assert ledger.of("olga").governance.requests() == ()
    ledger.refused(
        ConflictError,
        Code.RELEASE_STATE,
        lambda: ledger.of("ann").governance.request(PUBLIC, reason="again"),
    )
    assert ledger.of("reader").verify().decisions == 1


@pytest.mark.spec("LED-21")
def test_only_the_requester_changes_or_withdraws_a_request(ledger: Ledger) -> None:
    ann, bob = ledger.of("ann").governance, ledger.of("bob").governance
    ann.request(PUBLIC, reason="for the report")
    for verb in (
        lambda: bob.request(CHANGED, reason="mine"),
        lambda: bob.withdraw_request("r-1", reason="no"),
        lambda: ledger.of("Ann").governance.withdraw_request("r-1", reason="no"),
    ):
        result = ledger.refused(ConflictError, Code.RELEASE_CONFLICT, verb)
        assert "requested by `ann`" in result
    assert bob.request(PUBLIC, reason="mine, too").request.by == "ann"
    ann.request(CHANGED, reason="better")
    (waiting,) = ann.requests()
    assert (waiting.request.seq, waiting.reason) == (3, "better")
    assert ann.withdraw_request("r-1", reason="not needed").seq == 3
    assert ann.requests() == ()
    ledger.refused(
        ConflictError,
        Code.RELEASE_STATE,
        lambda: ann.withdraw_request("r-1", reason="twice"),
    )
    assert bob.request(CHANGED, reason="now mine").request.by == "bob"
    assert ledger.of("reader").verify().entries == 5


#: Every way in which a release comes in, or is told that it would.
WAYS_IN: dict[str, Any] = {
    "submit": lambda of, one: of.submit(one),
    "submit what is out": lambda of, one: of.submit(one, publish=True),
    "submit many": lambda of, one: answered(of.submit_many([of.prepare(one)])),
    "record past": lambda of, one: of.backfill(one),
    "check": lambda of, one: of.check(one),
}


def answered(answers: Any) -> Any:
    (answer,) = answers
    if isinstance(answer, ModicumError):
        raise answer
    return answer


@pytest.mark.spec("LED-21")
@pytest.mark.parametrize("way", sorted(WAYS_IN))
@pytest.mark.parametrize("audience", ["internal", "public"])
def test_nobody_brings_another_release_in_under_the_id_of_a_request(
    ledger: Ledger, way: str, audience: str
) -> None:
    ledger.of("ann").governance.request(PUBLIC, reason="for the report")
    other = counts("r-1", rho="0.002", audience=audience)
    for who in ("bob", "Ann"):
        result = ledger.refused(
            ConflictError,
            Code.RELEASE_CONFLICT,
            lambda who=who: WAYS_IN[way](ledger.of(who), other),
        )
        assert "requested by `ann`" in result
    (waiting,) = ledger.of("ann").governance.requests()
    assert waiting.request.seq == 2
    # Neither is it denied, which would be an entry about it.
    much = counts("r-1", rho="3", audience=audience)
    ledger.refused(
        ConflictError,
        Code.RELEASE_CONFLICT,
        lambda: WAYS_IN[way](ledger.of("bob"), much),
    )
    # Under an id of its own nothing keeps it out, but that people must agree to it.
    mine = counts("r-2", rho="0.002", audience="internal")
    assert WAYS_IN[way](ledger.of("bob"), mine).allowed


@pytest.mark.spec("LED-21")
@pytest.mark.parametrize("way", sorted({*WAYS_IN} - {"submit many"}))
def test_a_decider_refuses_the_id_of_a_request_like_a_workspace(
    ledger: Ledger, way: str
) -> None:
    ledger.of("ann").governance.request(PUBLIC, reason="for the report")
    other = counts("r-1", rho="0.002", audience="internal")
    with Decider(SqliteStore(ledger.path), ledger.clock, actor="bob") as decider:
        result = ledger.refused(
            ConflictError, Code.RELEASE_CONFLICT, lambda: WAYS_IN[way](decider, other)
        )
    assert "requested by `ann`" in result


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob"]),
        st.sampled_from(["request", "withdraw", "submit", "record"]),
        st.sampled_from([PUBLIC, CHANGED]),
    ),
    max_size=6,
)


@pytest.mark.spec("LED-21")
@settings(max_examples=examples(40))
@given(STEPS)
def test_a_request_keeps_its_id_for_who_asks_and_for_what_is_asked(
    steps: list[tuple[str, str, Any]],
) -> None:
    with TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.db", FixedClock(NOON))
        ledger.of("admin", ASKING).init()
        for one in (PUBLIC, CHANGED):
            ledger.of("olga").governance.approve(one, reason="both are fine")
        waits: tuple[str, Any] | None = None
        stands: Any = None
        for who, verb, one in steps:
            # The oracle: who may do what, said as plainly as LED-5 and LED-21 say it.
            taken = stands is not None and (verb in ("request", "withdraw"))
            other = stands is not None and stands != one
            none = verb == "withdraw" and waits is None
            own = waits is None or waits[0] == who
            same = waits is not None and waits[1] == one and verb != "withdraw"
            refused = taken or other or none or not (own or same)
            assert done(ledger.of(who), verb, one) is not refused, (who, verb, waits)
            if refused:
                continue
            if verb == "request":
                waits = waits if same else (who, one)
            else:
                waits = None
                stands = stands if verb == "withdraw" else one
            found = ledger.of("olga").governance.requests()
            assert [one.request.by for one in found] == ([waits[0]] if waits else [])
        assert ledger.of("reader").verify().entries == ledger.size()


def done(of: Workspace, verb: str, one: Any) -> bool:
    """Return whether something could be done; else its conflict left no trace."""
    before = of.state().seq
    try:
        if verb == "request":
            of.governance.request(one, reason="please")
        elif verb == "withdraw":
            of.governance.withdraw_request("r-1", reason="not now")
        elif verb == "submit":
            of.submit(one)
        else:
            of.backfill(one)
    except ConflictError:
        assert of.state().seq == before
        return False
    return True


@pytest.mark.spec("POL-11")
def test_who_ever_asked_for_a_release_does_not_approve_it(ledger: Ledger) -> None:
    olga = ledger.of("olga").governance
    olga.request(PUBLIC, reason="mine")

    def agreed() -> str:
        return ledger.refused(
            ApprovalError,
            Code.NEEDS_APPROVAL,
            lambda: olga.approve(PUBLIC, reason="fine"),
        )

    assert "the requester cannot approve it" in agreed()
    olga.withdraw_request("r-1", reason="let ann ask")
    ledger.of("ann").governance.request(PUBLIC, reason="for olga")
    assert "the requester cannot approve it" in agreed()
    olga.approve(CHANGED, reason="other contents was never hers")


def test_what_needs_no_approval_or_would_be_denied_is_not_requested(
    ledger: Ledger,
) -> None:
    ann = ledger.of("ann").governance
    for release, kind, code in (
        (counts("r-2"), ApprovalError, Code.NEEDS_APPROVAL),
        (
            counts("r-2", rho="3", audience="public"),
            ConflictError,
            Code.WOULD_BE_DENIED,
        ),
        (counts("r-2", attributes=("x",)), InputError, Code.UNKNOWN_ATTRIBUTE),
    ):
        ledger.refused(kind, code, lambda one=release: ann.request(one, reason="x"))
    ledger.refused(
        InputError, Code.MISSING_KEY, lambda: ann.request(PUBLIC, reason=" ")
    )


# --- decided again at the moment of approval ----------------------------------------


@pytest.mark.spec("LED-22")
def test_nobody_approves_what_would_be_denied_now(ledger: Ledger) -> None:
    much = counts("r-1", rho="0.01", audience="public")
    ledger.of("ann").governance.request(much, reason="the report")
    assert ledger.of("bob").submit(counts("r-2", rho="0.01")).allowed
    olga = ledger.of("olga").governance
    for named in ("r-1", much):
        result = ledger.refused(
            ConflictError,
            Code.WOULD_BE_DENIED,
            lambda one=named: olga.approve(one, reason="fine"),
        )
        assert "attr:diagnosis" in result
    olga.reject("r-1", reason="nothing is left")  # That is always possible.
    ledger.of("bob").cancel("r-2", reason="given up")
    assert olga.approve("r-1", reason="now it fits").decision is not None
    assert ledger.of("ann").submit(much).allowed


@pytest.mark.spec("LED-22")
def test_what_expired_is_not_counted_when_somebody_approves(ledger: Ledger) -> None:
    much = counts("r-1", rho="0.01", audience="public")
    ledger.of("ann").governance.request(much, reason="the report")
    ledger.of("bob").submit(counts("r-2", rho="0.01"), reserve_seconds=60)
    seen = ledger.head()
    ledger.clock.time = "2026-05-01T13:00:00.000000Z"
    # Who looked before it expired has seen all that counts now.
    vote = ledger.of("olga").governance.approve("r-1", reason="fine", head=seen)
    assert vote.seq == 5
    assert ledger.of("reader").verify().approvals == 1


@pytest.mark.spec("LED-22")
def test_who_looked_at_an_earlier_ledger_looks_again(ledger: Ledger) -> None:
    ann, olga = ledger.of("ann"), ledger.of("olga").governance
    ann.governance.request(PUBLIC, reason="the report")
    seen = ledger.head()
    ann.governance.annotate("another entry")
    for head in (seen, seen[:12], "0" * 64, ledger.head()[:11], ""):
        result = ledger.refused(
            StaleError,
            Code.REVIEW_AGAIN,
            lambda head=head: olga.approve("r-1", reason="fine", head=head),
        )
        assert "review again" in result
    new = ASKING.replace("name: small", "name: new")
    ledger.refused(
        StaleError,
        Code.REVIEW_AGAIN,
        lambda: olga.approve_policy(compiled(new), reason="fine", head=seen),
    )
    olga.approve("r-1", reason="fine", head=ledger.head()[:12].upper())
    olga.approve_policy(compiled(new), reason="fine", head=ledger.head())


@pytest.mark.spec("LED-22")
def test_what_was_requested_under_another_policy_is_requested_again(
    ledger: Ledger,
) -> None:
    ann, olga = ledger.of("ann").governance, ledger.of("olga").governance
    ann.request(PUBLIC, reason="the report")
    new = compiled(ASKING.replace("high: 1.0", "high: 0.9"))
    olga.approve_policy(new, reason="caution")
    ledger.of("admin").governance.activate(new, reason="caution")
    (waiting,) = ann.requests()
    assert (waiting.current, waiting.complete, waiting.approval_states) == (
        False,
        False,
        (),
    )
    ledger.refused(
        StaleError, Code.POLICY_STALE, lambda: olga.approve("r-1", reason="fine")
    )
    olga.reject("r-1", reason="not like this")
    assert not ann.request(PUBLIC, reason="still").repeated
    assert ann.requests()[0].current
    assert ann.requests()[0].approval_states[0].refused == ("olga",)
    olga.approve("r-1", reason="fine")


# --- policies -------------------------------------------------------------------------


@pytest.mark.spec("LED-21")
def test_a_policy_is_proposed_read_and_approved_by_its_digest(ledger: Ledger) -> None:
    new = compiled(ASKING.replace("name: small", "name: new"))
    digest = new.policy.digest
    pavel, olga = ledger.of("pavel").governance, ledger.of("olga").governance
    done = pavel.propose_policy(new, reason="a better name")
    assert (done.repeated, done.approval_states[0].left) == (False, ("olga",))
    assert olga.propose_policy(new, reason="the same").repeated
    (waiting,) = olga.proposals()
    assert (waiting.text, waiting.reason) == (new.policy.text, "a better name")
    assert olga.proposed(digest[:12]).policy.digest == digest
    result = ledger.refused(
        ApprovalError,
        Code.NEEDS_APPROVAL,
        lambda: pavel.approve_policy(digest, reason="mine"),
    )
    assert "the requester cannot approve it" in result
    vote = olga.approve_policy(digest[:12], reason="fine")
    assert vote.preview is not None
    assert vote.preview.conflicts == ()
    assert olga.proposals()[0].complete
    assert pavel.activate(new, reason="a better name").changed
    assert olga.proposals() == ()
    for name in (digest, digest[:11], "0" * 64):
        ledger.refused(
            InputError,
            Code.UNKNOWN_CHOICE,
            lambda name=name: olga.approve_policy(name, reason="late"),
        )
    ledger.refused(
        ConflictError,
        Code.POLICY_STALE,
        lambda: pavel.propose_policy(new, reason="again"),
    )
    assert ledger.of("reader").verify().entries == 4


def test_what_needs_nobody_is_not_proposed(tmp_path: Path) -> None:
    found = Ledger(tmp_path / "ledger.db", FixedClock(NOON))
    found.of("admin", POLICY).init()
    result = found.refused(
        ApprovalError,
        Code.NEEDS_APPROVAL,
        lambda: found.of("ann").governance.propose_policy(
            compiled(ASKING), reason="more eyes"
        ),
    )
    assert "needs no approval" in result


# --- signatures -----------------------------------------------------------------------


class Forged:
    """A key whose owner signed something else."""

    public = KEY.public

    def signature_of(self, message: bytes) -> bytes:
        return KEY.signature_of(message + b" ")


class Broken:
    """What is no key at all."""

    public = b"short"

    def signature_of(self, message: bytes) -> bytes:
        return message[:3]


@pytest.mark.spec("POL-16")
def test_of_whom_the_policy_names_keys_only_signed_words_count(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db", FixedClock(NOON))
    ledger.of("admin", PINNED).init()
    ledger.of("ann").governance.request(PUBLIC, reason="the report")
    olga = ledger.of("olga").governance
    for signer in (None, OTHER, Forged(), Broken()):
        ledger.refused(
            ApprovalError,
            Code.NOT_SIGNED,
            lambda signer=signer: olga.approve("r-1", reason="fine", key=signer),
        )
    pavel = ledger.of("pavel").governance
    for signer in (Forged(), Broken()):  # A wrong signature is refused of anybody.
        for verb in (pavel.approve, pavel.reject):
            ledger.refused(
                ApprovalError,
                Code.NOT_SIGNED,
                lambda verb=verb, signer=signer: verb("r-1", reason="x", key=signer),
            )
    olga.reject("r-1", reason="not without a key")
    vote = olga.approve("r-1", reason="fine", key=KEY)
    assert (vote.key, vote.approval_states[0].agreed) == (KEY.public.hex(), ("olga",))
    assert olga.approve("r-1", reason="fine", key=KEY).repeated
    assert olga.votes("r-1")[-1].key == KEY.public.hex()
    assert ledger.of("ann").submit(PUBLIC).allowed
    report = ledger.of("reader").verify()
    assert (report.approvals, report.signed) == (2, 1)


@pytest.mark.spec("POL-16")
def test_an_unsigned_word_counts_no_more_once_a_key_is_named(ledger: Ledger) -> None:
    olga = ledger.of("olga").governance
    olga.approve(PUBLIC, reason="fine")
    assert not olga.approve(PUBLIC, reason="fine", key=OTHER).repeated
    new = compiled(PINNED)
    olga.approve_policy(new, reason="sign from now on")
    ledger.of("admin").governance.activate(new, reason="sign from now on")
    assert olga.approval_states(PUBLIC)[0].left == ("olga", "pavel")
    with pytest.raises(ApprovalError):
        ledger.of("ann").submit(PUBLIC)
    olga.approve(PUBLIC, reason="fine", key=KEY)
    assert ledger.of("ann").submit(PUBLIC).allowed
    assert ledger.of("reader").verify().signed == 2


# --- both stores, several clients ----------------------------------------------------


@pytest.fixture(name="store", params=["sqlite", "postgres"])
def store_fixture(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "postgres":
        yield postgres_place(request.getfixturevalue("postgres")).open()
    else:
        yield sqlite_place(tmp_path / "ledger.db", keep_open=True).open()


@pytest.mark.spec("LED-21")
@pytest.mark.spec("LED-22")
def test_a_decider_asks_people_as_a_workspace_does(store: Store) -> None:
    with Decider(store, FixedClock(NOON), policy=compiled(PINNED)) as decider:
        decider.submit(counts("r-0"))
        with pytest.raises(ApprovalError):
            decider.submit(PUBLIC, actor="ann")
        decider.governance("ann").request(PUBLIC, reason="the report")
        office = decider.governance("olga")
        (waiting,) = office.requests()
        seen = decider.governance("olga").requests()[0].request.seq
        assert seen == waiting.request.seq == 3
        with pytest.raises(StaleError):
            office.approve("r-1", reason="fine", key=KEY, head="0" * 64)
        office.approve("r-1", reason="fine", key=KEY)
        assert decider.submit(PUBLIC, actor="ann").status == "reserved"
        assert decider.governance("olga").requests() == ()
        bodies = [event_of(one, one.seq).body for one in store.read(0)]
        (vote,) = [one for one in bodies if isinstance(one, ApprovalGiven)]
        assert vote.key == KEY.public.hex()
        assert isinstance(bodies[-1], ReleaseReserved)
        ws = Workspace(store, FixedClock(NOON), actor="reader", snapshots=store)
        assert ws.verify().signed == 1
        ws.save_snapshot()


@pytest.mark.spec("LED-16")
def test_what_waits_survives_a_snapshot(ledger: Ledger) -> None:
    new = compiled(ASKING.replace("name: small", "name: new"))
    ledger.of("ann").governance.request(PUBLIC, reason="x")
    ledger.of("ann").governance.propose_policy(new, reason="x")
    ledger.of("olga").governance.approve("r-1", reason="x", key=KEY)
    store = SqliteStore(ledger.path)
    first = Workspace(store, ledger.clock, actor="x", snapshots=store)
    first.state()
    first.save_snapshot()
    again = Workspace(store, ledger.clock, actor="x", snapshots=store).state()
    assert again.waiting == first.state().waiting
    assert again.approvals == first.state().approvals
    assert again.digest() == first.state().digest()
