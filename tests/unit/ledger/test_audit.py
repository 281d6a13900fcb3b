"""An audit finds claims that do not hold, however well they are chained."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from samples.audited import described_anew
from samples.small import NOON, POLICY, compiled, counts

from modicum.core.document import from_python
from modicum.ledger import GENESIS, Event, Record, RecordedRelease, audit, seal
from modicum.ledger.deciding.balances import Balances
from modicum.ledger.deciding.decide import decide
from modicum.ledger.log.chain import ChainBreakError
from modicum.ledger.log.events import (
    Annotated,
    ApprovalGiven,
    Body,
    DisclosureRecorded,
    PastRecorded,
    PlanCommitted,
    PolicyActivated,
    ReleaseDenied,
    ReleaseExpired,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
    RoundOpened,
    day_of,
)
from modicum.ledger.log.recorded import RecordedMechanism, record_release
from modicum.ledger.proof.consistency import RESERVATION_MAX
from modicum.policy import CompiledPolicy
from modicum.release import EVERYTHING, Part, parse_release, price
from modicum.workspace.bringing_in import RESERVATION_SECONDS_MAX

ROOT = Path(__file__).parents[3]
SMALL = compiled()
TIGHTER = compiled(POLICY.replace("high: 1.0", "high: 0.1").replace("small", "tight"))
ASKING = compiled(
    POLICY
    + "roles: {officer: [olga, pavel]}\n"
    + 'approvals: [{when: "true", need: 1, from: [officer],'
    + " requester_may_approve: false}]\n"
)
GUARDED = compiled(
    POLICY
    + "roles: {officer: [olga, pavel]}\n"
    + "activation: {need: 2, from: [officer], requester_may_approve: true}\n"
)
LATER = "2026-05-02T12:00:00.000000Z"


def release(
    identifier: str = "r-1", rho: str = "0.001", under: CompiledPolicy = SMALL
) -> RecordedRelease:
    vocabulary = under.policy.vocabulary
    node = from_python(counts(identifier, rho=rho, ml="black-box"))
    return record_release(price(parse_release(node, vocabulary), vocabulary))


def activated(policy: CompiledPolicy, *accepted: str) -> PolicyActivated:
    said = policy.policy
    return PolicyActivated(said.digest, said.name, said.text, "why", accepted)


def reserved(one: RecordedRelease, *by: str, under: CompiledPolicy = SMALL) -> Body:
    return ReleaseReserved(one, under.policy.digest, LATER, by)


def word(
    content: str, *, approves: bool = True, roles: tuple[str, ...] = ("officer",)
) -> ApprovalGiven:
    return ApprovalGiven("release", "r-1", content, approves, roles, "fine")


def events(*said: Body | tuple[str, Body]) -> list[Event]:
    """Return events at noon, by `tester` unless another actor is named."""
    return [
        Event(NOON, *one) if isinstance(one, tuple) else Event(NOON, "tester", one)
        for one in said
    ]


def chained(said: Sequence[Event]) -> list[Record]:
    records: list[Record] = []
    previous = GENESIS
    for seq, event in enumerate(said, 1):
        records.append(seal(event, seq, previous))
        previous = records[-1].hash
    return records


def holds(said: Sequence[Event]) -> int:
    records = chained(said)
    report = audit(records)
    assert report == audit(iter(records), again=lambda: records)
    return report.decisions


def breaks(said: Sequence[Event], why: str) -> None:
    records = chained(said)
    for again in (None, lambda: records):
        with pytest.raises(ChainBreakError, match=why) as caught:
            audit(records, again=again)
        assert caught.value.seq == len(said)


# --- what a release says twice --------------------------------------------------


def with_mechanism(one: RecordedRelease, **changes: Any) -> RecordedRelease:
    (mechanism,) = one.mechanisms
    return replace(one, mechanisms=(replace(mechanism, **changes),))


def described(one: RecordedRelease, **changes: Any) -> Mapping[str, Any]:
    return {**one.mechanisms[0].description, **changes}


ONE = release()
YEARS = Part(where=((("year", ((1990, 1995),)),),))
TWIN: RecordedMechanism = ONE.mechanisms[0]


@pytest.mark.spec("LED-17")
@pytest.mark.parametrize(
    "forged",
    [
        with_mechanism(ONE, attributes=()),
        with_mechanism(ONE, attributes=("age",)),
        with_mechanism(ONE, description=described(ONE, attributes=["age"])),
        with_mechanism(ONE, labels={"ml": "none"}),
        with_mechanism(ONE, labels={}),
        with_mechanism(ONE, labels={"ml": "black-box", "more": "x"}),
        with_mechanism(ONE, description=described(ONE, labels={})),
        with_mechanism(ONE, description=described(ONE, labels={"ml": "grey"})),
        with_mechanism(ONE, description=described(ONE, labels=None)),
        with_mechanism(
            ONE, labels={"ml": "x"}, description=described(ONE, labels={"ml": "x"})
        ),
        with_mechanism(ONE, part=YEARS),
        with_mechanism(ONE, description=described(ONE, periods=[["2026-01-01", None]])),
        replace(ONE, labels={}),
        replace(ONE, labels={"ml": "grey"}),
        replace(ONE, mechanisms=(TWIN, TWIN)),
        replace(ONE, mechanisms=()),
        replace(ONE, content="0" * 64),
        replace(ONE, metadata={"purpose": "press"}),
        replace(ONE, given=()),
        replace(ONE, given=None),
        replace(ONE, given=("more",)),
        replace(ONE, labels={"ml": "none"}),
        with_mechanism(ONE, description=described(ONE, name=["counts"])),
        with_mechanism(ONE, description=described(ONE, kind=["gaussian"])),
        with_mechanism(ONE, description=described(ONE, kind=None)),
        with_mechanism(ONE, description=described(ONE, kind="laplace")),
        described_anew(
            with_mechanism(
                ONE,
                attributes=("nonsense",),
                description=described(ONE, attributes=["nonsense"]),
            )
        ),
    ],
)
def test_a_release_that_contradicts_itself_is_found(forged: RecordedRelease) -> None:
    assert holds(events(activated(SMALL), reserved(ONE))) == 1
    digest = SMALL.policy.digest
    for body in (
        ReleaseReserved(forged, digest, LATER),
        ReleaseDenied(forged, digest, ("global @standard",)),
        PastRecorded(forged, digest),
    ):
        breaks(events(activated(SMALL), body), "`r-1`: ")


@pytest.mark.spec("LED-17")
def test_a_label_is_given_where_it_is_not_the_default() -> None:
    node = from_python(counts("r-1"))
    vocabulary = SMALL.policy.vocabulary
    plain = record_release(price(parse_release(node, vocabulary), vocabulary))
    assert plain.given == ()
    assert ONE.given == ("ml",)
    assert holds(events(activated(SMALL), reserved(plain))) == 1
    assert described_anew(plain) == plain
    assert described_anew(ONE) == ONE
    forged = replace(plain, labels={"ml": "black-box"})
    breaks(events(activated(SMALL), reserved(forged)), "not the digest")
    twice = replace(ONE, given=("ml", "ml"))
    breaks(events(activated(SMALL), reserved(twice)), "not the digest")


@pytest.mark.spec("LED-17")
def test_a_reservation_for_no_time_or_too_long_is_found() -> None:
    assert RESERVATION_MAX.total_seconds() == RESERVATION_SECONDS_MAX
    for until in (NOON, "2026-05-01T11:59:59.999999Z", "2026-07-30T12:00:00.000001Z"):
        late = ReleaseReserved(ONE, SMALL.policy.digest, until)
        breaks(events(activated(SMALL), late), "nobody can ask for")
    last = ReleaseReserved(ONE, SMALL.policy.digest, "2026-07-30T12:00:00.000000Z")
    assert holds(events(activated(SMALL), last)) == 1


@pytest.mark.spec("LED-17")
def test_a_denial_of_what_stands_is_found() -> None:
    huge = release(rho="3")
    digest = SMALL.policy.digest
    denial = ReleaseDenied(
        huge, digest, decide(Balances(SMALL), huge, day_of(NOON)).blocking
    )
    assert holds(events(activated(SMALL), denial, PastRecorded(huge, digest))) == 1
    breaks(events(activated(SMALL), PastRecorded(huge, digest), denial), "stands")


# --- times ------------------------------------------------------------------------


@pytest.mark.spec("LED-15")
def test_a_time_that_falls_is_found() -> None:
    said = events(activated(SMALL), reserved(ONE), ReleaseStarted("r-1"))
    assert holds(said) == 1
    said[1] = replace(said[1], at="2026-05-01T11:59:59.999999Z")
    breaks(said[:2], "older than the entry before")


# --- approvals ----------------------------------------------------------------------


@pytest.mark.spec("LED-17")
def test_a_reservation_without_the_approval_it_needs_is_found() -> None:
    one = release(under=ASKING)
    other = release(rho="0.002", under=ASKING)
    begun = activated(ASKING)

    def booked(*by: str) -> Body:
        return reserved(one, *by, under=ASKING)

    agreed = ("olga", word(one.content))
    assert holds(events(begun, agreed, booked("olga"))) == 1
    taken_back = ("olga", word(one.content, approves=False))
    for said in (
        (begun, booked()),
        (begun, booked("olga")),
        (begun, ("olga", word(other.content)), booked("olga")),
        (begun, agreed, taken_back, booked("olga")),
        (begun, agreed, ("olga", booked("olga"))),
    ):
        breaks(events(*said), "without approval")
    for by in ((), ("pavel",), ("olga", "pavel")):
        breaks(events(begun, agreed, booked(*by)), "names others")


@pytest.mark.spec("LED-17")
@pytest.mark.parametrize(
    ("actor", "roles"), [("eve", ("officer",)), ("olga", ("boss",)), ("olga", ())]
)
def test_a_word_in_a_role_of_others_is_found(
    actor: str, roles: tuple[str, ...]
) -> None:
    said = events(activated(ASKING), (actor, word("c" * 64, roles=roles)))
    breaks(said, "not theirs")


@pytest.mark.spec("LED-17")
def test_an_approval_names_what_it_is_about() -> None:
    one = release(under=ASKING)
    begun, booked = activated(ASKING), reserved(one, "olga", under=ASKING)
    other = replace(word(one.content), id="r-2")
    breaks(events(begun, ("olga", other), booked), "under another id")
    breaks(
        events(begun, ("olga", word(one.content)), ("pavel", other)),
        "its id is not that",
    )
    digest = SMALL.policy.digest
    policy = ApprovalGiven("policy", "0" * 64, digest, True, ("officer",), "fine")
    breaks(events(activated(GUARDED), ("olga", policy)), "its id is not that")


@pytest.mark.spec("LED-17")
def test_what_was_approved_cannot_be_replaced_by_something_else() -> None:
    harmless = release(rho="0.0001", under=ASKING)
    big = replace(release(rho="0.004", under=ASKING), content=harmless.content)
    agreed = ("olga", word(harmless.content))
    said = events(activated(ASKING), agreed, reserved(big, "olga", under=ASKING))
    breaks(said, "not the digest")


# --- policies -----------------------------------------------------------------------


@pytest.mark.spec("LED-17")
def test_a_policy_that_others_must_agree_to_is_not_activated_by_one() -> None:
    digest = SMALL.policy.digest

    def agreed(actor: str) -> tuple[str, Body]:
        body = ApprovalGiven("policy", digest, digest, True, ("officer",), "fine")
        return actor, body

    begun, then = activated(GUARDED), activated(SMALL)
    assert holds(events(begun, agreed("olga"), agreed("pavel"), then)) == 0
    breaks(events(begun, agreed("olga"), then), "activated without approval")


@pytest.mark.spec("LED-17")
def test_what_a_policy_accepts_is_what_history_newly_exceeds() -> None:
    big = release("big", rho="0.015")
    begun = (activated(SMALL), reserved(big), ReleaseStarted("big"))
    exceeded = ("attr:diagnosis @black-box",)
    then = activated(TIGHTER, *exceeded)
    assert holds(events(*begun, then)) == 1
    for accepted in ((), ("global @standard",), (*exceeded, "global @standard")):
        breaks(events(*begun, activated(TIGHTER, *accepted)), "history exceeds")
    breaks(events(activated(SMALL, "global @standard")), "history exceeds")
    # What was exceeded before need not be accepted again, and may be.
    renamed = compiled(TIGHTER.policy.text.replace("name: tight", "name: again"))
    assert holds(events(*begun, then, activated(renamed))) == 1
    assert holds(events(*begun, then, activated(renamed, *exceeded))) == 1


@pytest.mark.spec("LED-3")
def test_decisions_follow_from_what_came_before_a_policy() -> None:
    big, small = release("big", rho="0.015"), release("small", rho="0.00001")
    under = TIGHTER.policy.digest
    exceeded = "attr:diagnosis @black-box"
    begun = (activated(SMALL), reserved(big), ReleaseStarted("big"))
    then = activated(TIGHTER, exceeded)
    denied = ReleaseDenied(small, under, (exceeded,))
    assert holds(events(*begun, then, denied)) == 2
    breaks(
        events(*begun, then, ReleaseReserved(small, under, LATER)), "does not follow"
    )
    # Given up under the later policy, it is taken back there, too.
    open_one = (activated(SMALL), reserved(big), then, ReleaseVoided("big", "test"))
    assert holds(events(*open_one, ReleaseReserved(small, under, LATER))) == 2


@pytest.mark.spec("LED-17")
def test_nothing_comes_before_the_first_policy() -> None:
    for first in (word("c" * 64), Annotated("", "x"), RoundOpened("one", {})):
        breaks(events(first), "before any policy")


@pytest.mark.spec("LED-17")
def test_a_policy_has_its_name_and_a_reason_to_replace_another() -> None:
    begun, then = activated(SMALL), activated(TIGHTER)
    assert holds(events(replace(begun, reason=""), then)) == 0
    breaks(events(replace(begun, name="approved")), "the name it names")
    for reason in ("", "  "):
        breaks(events(begun, replace(then, reason=reason)), "without a reason")


@pytest.mark.spec("LED-17")
def test_a_plan_of_what_is_not_there_is_found() -> None:
    begun = (activated(SMALL), reserved(ONE))
    opened = RoundOpened("one", {"user": 10})
    plan = PlanCommitted("plan", "one", "0" * 64, ("r-1",))
    assert holds(events(*begun, opened, plan)) == 1
    ghost = replace(plan, releases=("r-1", "ghost"))
    breaks(events(*begun, opened, ghost), "not there")
    breaks(events(*begun, replace(opened, unlocked={"nobody": 1})), "does not have")


@pytest.mark.spec("LED-3")
def test_the_state_at_any_entry_is_told() -> None:
    records = chained(events(activated(SMALL), reserved(ONE), ReleaseStarted("r-1")))
    found = audit(records, states_at=(1, 3, 9)).states
    assert found == {
        1: audit(records[:1]).state_digest,
        3: audit(records).state_digest,
    }


def test_a_lawless_step_is_found() -> None:
    first = RoundOpened("one", {"user": 10})
    breaks(events(activated(SMALL), first, first), "cannot happen here")
    told = DisclosureRecorded("x", "a table", (), EVERYTHING, "law", {})
    breaks(events(activated(SMALL), told, told), "cannot happen here")
    breaks(events(activated(SMALL), ReleaseExpired("r-1")), "cannot happen here")


# --- the same everywhere --------------------------------------------------------------

DIGEST = """
import sqlite3, sys
from modicum.ledger import Record, audit
from modicum.ledger.following.folding import followed_from, loss_changes, fold
from modicum.ledger.following.snapshot import Snapshot, write_snapshot
from modicum.ledger import State
from modicum.policy.compile import compile_text
rows = sqlite3.connect(sys.argv[1]).execute("SELECT seq, payload, hash FROM events")
records = [Record(*row) for row in rows]
state = State()
for record in records:
    fold(state, record)
compiled = compile_text(state.policy.text.encode(), "active")
balances = followed_from(compiled, state, loss_changes(records, state))
snapshot = Snapshot(state, state.policy.digest, balances.balances.dump())
import hashlib
print(audit(records).state_digest, hashlib.sha256(write_snapshot(snapshot)).hexdigest())
"""


@pytest.mark.spec("LED-3")
def test_the_same_log_gives_the_same_digest_in_every_process() -> None:
    ledger = ROOT / "tests" / "golden" / "ledgers" / "v1.db"
    found = set()
    for seed in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        environment["PYTHONPATH"] = str(ROOT / "src")
        done = subprocess.run(
            [sys.executable, "-c", DIGEST, str(ledger)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1
