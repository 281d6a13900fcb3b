"""An audit finds claims that do not hold, however well they are chained."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from oracle.audited_people import People
from samples.audited import described_anew, key
from samples.small import NOON, POLICY, compiled, counts

from modicum.api.local.submit import RESERVATION_SECONDS_MAX
from modicum.core.document import from_python
from modicum.ledger import GENESIS, Event, Record, RecordedRelease, audit, seal
from modicum.ledger.decision.balances import Balances
from modicum.ledger.decision.decide import decide
from modicum.ledger.log.approval_statement import signed
from modicum.ledger.log.chain import ChainBreakError
from modicum.ledger.log.days import day_of
from modicum.ledger.log.events import (
    Annotated,
    ApprovalGiven,
    Body,
    DisclosureRecorded,
    PastRecorded,
    PlanCommitted,
    PolicyActivated,
    PolicyProposed,
    ReleaseDenied,
    ReleaseExpired,
    ReleaseRequested,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
    RequestWithdrawn,
    RoundOpened,
)
from modicum.ledger.log.recorded_release import RecordedMechanism, record_release
from modicum.ledger.proof.consistency import RESERVATION_MAX
from modicum.policy import CompiledPolicy
from modicum.release import EVERYTHING, Part, parse_release, price

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
    source = policy.policy
    return PolicyActivated(source.digest, source.name, source.text, "why", accepted)


def reserved(one: RecordedRelease, *by: str, under: CompiledPolicy = SMALL) -> Body:
    return ReleaseReserved(one, under.policy.digest, LATER, by)


def word(
    content: str, *, approves: bool = True, roles: tuple[str, ...] = ("officer",)
) -> ApprovalGiven:
    return ApprovalGiven("release", "r-1", content, approves, roles, "fine")


def events(*happened: Body | tuple[str, Body]) -> list[Event]:
    """Return events at noon, by `tester` unless another actor is named."""
    return [
        Event(NOON, *one) if isinstance(one, tuple) else Event(NOON, "tester", one)
        for one in happened
    ]


def looked_at(event: Event, head: str) -> Event:
    """Return an event in which who agrees or refuses looked at all before it."""
    body = event.body
    if not isinstance(body, ApprovalGiven) or body.head:
        return event
    return structs.replace(event, body=structs.replace(body, head=head))


def chained(log: Sequence[Event]) -> list[Record]:
    records: list[Record] = []
    previous = GENESIS
    for seq, event in enumerate(log, 1):
        records.append(seal(looked_at(event, previous), seq, previous))
        previous = records[-1].hash
    return records


def holds(log: Sequence[Event]) -> int:
    records = chained(log)
    report = audit(records)
    assert report == audit(iter(records), again=lambda: records)
    return report.decisions


def breaks(log: Sequence[Event], why: str) -> None:
    records = chained(log)
    for again in (None, lambda: records):
        with pytest.raises(ChainBreakError, match=why) as caught:
            audit(records, again=again)
        assert caught.value.seq == len(log)


# --- what a release says twice --------------------------------------------------


def with_mechanism(one: RecordedRelease, **changes: Any) -> RecordedRelease:
    (mechanism,) = one.mechanisms
    return structs.replace(one, mechanisms=(replace(mechanism, **changes),))


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
        structs.replace(ONE, labels={}),
        structs.replace(ONE, labels={"ml": "grey"}),
        structs.replace(ONE, mechanisms=(TWIN, TWIN)),
        structs.replace(ONE, mechanisms=()),
        structs.replace(ONE, content="0" * 64),
        structs.replace(ONE, metadata={"purpose": "press"}),
        structs.replace(ONE, given=()),
        structs.replace(ONE, given=None),
        structs.replace(ONE, given=("more",)),
        structs.replace(ONE, labels={"ml": "none"}),
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
    forged = structs.replace(plain, labels={"ml": "black-box"})
    breaks(events(activated(SMALL), reserved(forged)), "not the digest")
    twice = structs.replace(ONE, given=("ml", "ml"))
    breaks(events(activated(SMALL), reserved(twice)), "not the digest")


@pytest.mark.spec("LED-17")
def test_a_reservation_for_no_time_or_too_long_is_found() -> None:
    assert RESERVATION_MAX.total_seconds() == RESERVATION_SECONDS_MAX
    for until in (NOON, "2026-05-01T11:59:59.999999Z", "2026-07-30T12:00:00.000001Z"):
        late = ReleaseReserved(ONE, SMALL.policy.digest, until)
        breaks(events(activated(SMALL), late), "for longer than is possible")
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
    breaks(
        events(activated(SMALL), PastRecorded(huge, digest), denial), "already exists"
    )


# --- times ------------------------------------------------------------------------


@pytest.mark.spec("LED-15")
def test_a_time_that_falls_is_found() -> None:
    log = events(activated(SMALL), reserved(ONE), ReleaseStarted("r-1"))
    assert holds(log) == 1
    log[1] = structs.replace(log[1], at="2026-05-01T11:59:59.999999Z")
    breaks(log[:2], "older than the entry before")


# --- approvals ----------------------------------------------------------------------


@pytest.mark.spec("LED-17")
def test_a_reservation_without_the_approval_it_needs_is_found() -> None:
    one = release(under=ASKING)
    other = release(rho="0.002", under=ASKING)
    started = activated(ASKING)

    def booked(*by: str) -> Body:
        return reserved(one, *by, under=ASKING)

    agreed = ("olga", word(one.content))
    assert holds(events(started, agreed, booked("olga"))) == 1
    taken_back = ("olga", word(one.content, approves=False))
    for case in (
        (started, booked()),
        (started, booked("olga")),
        (started, ("olga", word(other.content)), booked("olga")),
        (started, agreed, taken_back, booked("olga")),
        (started, agreed, ("olga", booked("olga"))),
    ):
        breaks(events(*case), "without approval")
    for by in ((), ("pavel",), ("olga", "pavel")):
        breaks(events(started, agreed, booked(*by)), "names approvers")


@pytest.mark.spec("LED-17")
@pytest.mark.parametrize(
    ("actor", "roles"), [("eve", ("officer",)), ("olga", ("boss",)), ("olga", ())]
)
def test_a_word_in_a_role_of_others_is_found(
    actor: str, roles: tuple[str, ...]
) -> None:
    log = events(activated(ASKING), (actor, word("c" * 64, roles=roles)))
    breaks(log, "they do not have")


@pytest.mark.spec("LED-17")
def test_an_approval_names_what_it_is_about() -> None:
    one = release(under=ASKING)
    started, booked = activated(ASKING), reserved(one, "olga", under=ASKING)
    other = structs.replace(word(one.content), id="r-2")
    breaks(events(started, ("olga", other), booked), "under another id")
    breaks(
        events(started, ("olga", word(one.content)), ("pavel", other)),
        "its id does not match",
    )
    digest = SMALL.policy.digest
    policy = ApprovalGiven("policy", "0" * 64, digest, True, ("officer",), "fine")
    breaks(events(activated(GUARDED), ("olga", policy)), "its id does not match")


@pytest.mark.spec("LED-17")
def test_what_was_approved_cannot_be_replaced_by_something_else() -> None:
    harmless = release(rho="0.0001", under=ASKING)
    big = structs.replace(release(rho="0.004", under=ASKING), content=harmless.content)
    agreed = ("olga", word(harmless.content))
    log = events(activated(ASKING), agreed, reserved(big, "olga", under=ASKING))
    breaks(log, "not the digest")


# --- what people sign, and what waits for them ------------------------------------

SIGNING = compiled(
    POLICY
    + "roles: {officer: [olga, pavel]}\n"
    + f"keys: {{olga: {key(1).public.hex()}}}\n"
    + 'approvals: [{when: "true", need: 1, from: [officer]}]\n'
    + "activation: {need: 1, from: [officer]}\n"
)
ASKED = release(under=SIGNING)


def signed_word(head: str, by: int = 1, **changes: Any) -> ApprovalGiven:
    """Return what olga signs at a head, with one of the keys."""
    body = structs.replace(word(ASKED.content), head=head, **changes)
    policy = SIGNING.policy.digest
    return signed(body, by="olga", policy=policy, signer=key(by))


def approved(change: Callable[[ApprovalGiven], ApprovalGiven]) -> list[Event]:
    """Return a log in which olga approves what ann requests, but for a change."""
    started = events(activated(SIGNING), ("ann", asks_for(ASKED)))
    agreed = change(signed_word(chained(started)[-1].hash))
    return [*started, *events(("olga", agreed))]


def asks_for(one: RecordedRelease, under: CompiledPolicy = SIGNING) -> Body:
    return ReleaseRequested(one, under.policy.digest, "for the report")


def found_twice(log: Sequence[Event], why: str) -> None:
    """Check that the audit finds what is wrong, and so does the other auditor."""
    breaks(log, why)
    people = People()
    for one in chained(log):
        people.take(one.seq, json.loads(one.payload)["event"], one.hash)
    assert people.mistakes


@pytest.mark.spec("LED-22")
@pytest.mark.spec("POL-16")
def test_what_was_signed_holds() -> None:
    log = approved(lambda body: body)
    booked = reserved(ASKED, "olga", under=SIGNING)
    assert holds([*log, *events(("bob", booked))]) == 1
    report = audit(chained(log))
    assert (report.approvals, report.signed) == (1, 1)


@pytest.mark.spec("LED-22")
@pytest.mark.parametrize(
    "changes",
    [
        {"subject": "plan"},
        {"approves": False},
        {"roles": ("officer", "officer")},
        {"reason": "finer"},
        {"key": key(2).public.hex()},
        {"signature": "0" * 128},
    ],
)
def test_anything_else_than_what_was_signed_is_found(changes: dict[str, Any]) -> None:
    found_twice(
        approved(lambda body: structs.replace(body, **changes)), "its signature"
    )


@pytest.mark.spec("LED-22")
def test_a_signature_for_another_release_policy_or_person_is_found() -> None:
    other = release("r-1", rho="0.002", under=SIGNING)
    found_twice(
        approved(lambda body: structs.replace(body, content=other.content)),
        "its signature",
    )
    started = approved(lambda body: body)
    started[-1] = structs.replace(started[-1], actor="pavel")
    found_twice(started, "its signature")
    renamed = compiled(SIGNING.policy.text.replace("name: small", "name: other"))
    first = events(activated(renamed), ("ann", asks_for(ASKED, renamed)))
    agreed = signed_word(chained(first)[-1].hash)  # Under the policy of that name.
    found_twice([*first, *events(("olga", agreed))], "its signature")


@pytest.mark.spec("LED-22")
def test_a_signed_word_cannot_be_said_again_later() -> None:
    log = approved(lambda body: body)
    agreed = log[-1]
    refusal = events(("olga", word(ASKED.content, approves=False)))
    found_twice([*log, *refusal, agreed], "not the end")
    found_twice([*log, agreed], "not the end")
    for head in ("0" * 64, chained(log)[0].hash):
        started = events(activated(SIGNING), ("ann", asks_for(ASKED)))
        found_twice([*started, *events(("olga", signed_word(head)))], "not the end")


@pytest.mark.spec("LED-17")
def test_since_version_3_who_approves_says_what_they_looked_at() -> None:
    records = chained(events(activated(ASKING)))
    content = release(under=ASKING).content
    bare = Event(NOON, "olga", word(content))
    with pytest.raises(ChainBreakError, match="what they reviewed"):
        audit([*records, seal(bare, 2, records[-1].hash)])


@pytest.mark.spec("LED-22")
def test_between_looking_and_approving_reservations_may_expire() -> None:
    """All at one time; a word that looked into the midst of them is none."""
    ones = [release(f"x-{n}", rho="0.0001") for n in range(3)]
    started = events(activated(SMALL), *(reserved(one) for one in ones))
    activation = structs.replace(events(activated(ASKING))[0], at=LATER)
    seen = events(*(ReleaseExpired(one.id) for one in ones))
    gone = [structs.replace(one, at=LATER) for one in seen]
    before = [*started, activation, *gone]
    agreed = word(release(under=ASKING).content)
    heads = [one.hash for one in chained(before)]
    for place, fits in ((-1, True), (-4, True), (-2, False), (-3, False), (-5, False)):
        body = structs.replace(agreed, head=heads[place])
        log = [*before, Event(LATER, "olga", body)]
        if fits:
            holds(log)
        else:
            found_twice(log, "not the end")


@pytest.mark.spec("POL-16")
def test_an_approval_that_is_not_signed_as_the_policy_asks_is_not_counted() -> None:
    booked = events(("bob", reserved(ASKED, "olga", under=SIGNING)))
    started = events(activated(SIGNING))
    for vote in (
        ("olga", word(ASKED.content)),
        ("olga", signed_word(chained(started)[-1].hash, by=2)),
    ):
        found_twice([*started, *events(vote), *booked], "without approval")
    # An unsigned word takes no signed refusal back.
    refused = ("pavel", word(ASKED.content, approves=False))
    agreed = ("pavel", word(ASKED.content))
    free = events(("bob", reserved(ASKED, "pavel", under=SIGNING)))
    assert holds([*started, *events(refused, agreed), *free]) == 1


@pytest.mark.spec("LED-17")
@pytest.mark.spec("POL-11")
def test_who_requested_a_release_is_not_counted() -> None:
    one = release(under=ASKING)
    digest = ASKING.policy.digest
    request = ("olga", ReleaseRequested(one, digest, "mine"))
    gone = ("olga", RequestWithdrawn("r-1", "or not"))
    agreed = ("olga", word(one.content))
    booked = ("bob", reserved(one, "olga", under=ASKING))
    for case in ((request, agreed), (request, gone, agreed), (agreed, request, gone)):
        found_twice(events(activated(ASKING), *case, booked), "without approval")


@pytest.mark.spec("LED-17")
def test_who_proposed_a_policy_is_not_counted() -> None:
    one_of_two = compiled(SIGNING.policy.text.replace("keys:", "#"))
    new = SMALL.policy
    proposed = PolicyProposed(new.digest, new.name, new.text, "simpler")
    agreed = ApprovalGiven("policy", new.digest, new.digest, True, ("officer",), "x")
    started = (activated(one_of_two), ("pavel", proposed))
    assert holds(events(*started, ("olga", agreed), ("pavel", activated(SMALL)))) == 0
    found_twice(
        events(*started, ("pavel", agreed), ("bob", activated(SMALL))),
        "activated without approval",
    )


@pytest.mark.spec("LED-21")
def test_what_waits_is_what_it_says_it_is() -> None:
    started = activated(SIGNING)
    request = ("ann", asks_for(ASKED))
    other = release("r-1", rho="0.002", under=SIGNING)
    stands = PastRecorded(ASKED, SIGNING.policy.digest)
    free = compiled(SIGNING.policy.text.replace('[{when: "true"', '[{when: "false"'))
    cases: list[tuple[tuple[Body | tuple[str, Body], ...], str]] = [
        ((started, request, request), "cannot happen here"),
        ((started, request, ("bob", asks_for(other))), "cannot happen here"),
        (
            (started, request, ("bob", RequestWithdrawn("r-1", "x"))),
            "cannot happen here",
        ),
        ((started, ("ann", RequestWithdrawn("r-1", "x"))), "cannot happen here"),
        ((started, stands, request), "cannot happen here"),
        ((activated(free), ("ann", asks_for(ASKED, free))), "needs no approval"),
    ]
    for case, why in cases:
        found_twice(events(*case), why)
    cheap = structs.replace(other, content=ASKED.content)
    breaks(events(started, ("ann", asks_for(cheap))), "not the digest")
    breaks(events(started, ("ann", asks_for(ASKED, SMALL))), "not active")
    new = SMALL.policy
    proposed = PolicyProposed(new.digest, new.name, new.text, "simpler")
    own = SIGNING.policy
    for body, why in (
        (structs.replace(proposed, digest="0" * 64), "digest"),
        (structs.replace(proposed, name="another"), "name"),
        (structs.replace(proposed, text=own.text), "digest"),
        (PolicyProposed(own.digest, own.name, own.text, "x"), "cannot happen here"),
    ):
        found_twice(events(started, body), why)
    found_twice(events(started, proposed, proposed), "cannot happen here")
    breaks(events(started, structs.replace(proposed, text="x")), "does not compile")


# --- policies -----------------------------------------------------------------------


@pytest.mark.spec("LED-17")
def test_a_policy_that_others_must_agree_to_is_not_activated_by_one() -> None:
    digest = SMALL.policy.digest

    def agreed(actor: str) -> tuple[str, Body]:
        body = ApprovalGiven("policy", digest, digest, True, ("officer",), "fine")
        return actor, body

    started, then = activated(GUARDED), activated(SMALL)
    assert holds(events(started, agreed("olga"), agreed("pavel"), then)) == 0
    breaks(events(started, agreed("olga"), then), "activated without approval")


@pytest.mark.spec("LED-17")
def test_what_a_policy_accepts_is_what_history_newly_exceeds() -> None:
    big = release("big", rho="0.015")
    started = (activated(SMALL), reserved(big), ReleaseStarted("big"))
    exceeded = ("attr:diagnosis @black-box",)
    then = activated(TIGHTER, *exceeded)
    assert holds(events(*started, then)) == 1
    for accepted in ((), ("global @standard",), (*exceeded, "global @standard")):
        breaks(events(*started, activated(TIGHTER, *accepted)), "over their limit")
    breaks(events(activated(SMALL, "global @standard")), "over their limit")
    # What was exceeded before need not be accepted again, and may be.
    renamed = compiled(TIGHTER.policy.text.replace("name: tight", "name: again"))
    assert holds(events(*started, then, activated(renamed))) == 1
    assert holds(events(*started, then, activated(renamed, *exceeded))) == 1


@pytest.mark.spec("LED-3")
def test_decisions_follow_from_what_came_before_a_policy() -> None:
    big, small = release("big", rho="0.015"), release("small", rho="0.00001")
    under = TIGHTER.policy.digest
    exceeded = "attr:diagnosis @black-box"
    started = (activated(SMALL), reserved(big), ReleaseStarted("big"))
    then = activated(TIGHTER, exceeded)
    denied = ReleaseDenied(small, under, (exceeded,))
    assert holds(events(*started, then, denied)) == 2
    breaks(
        events(*started, then, ReleaseReserved(small, under, LATER)), "does not follow"
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
    started, then = activated(SMALL), activated(TIGHTER)
    assert holds(events(structs.replace(started, reason=""), then)) == 0
    breaks(events(structs.replace(started, name="approved")), "match its name")
    for reason in ("", "  "):
        breaks(
            events(started, structs.replace(then, reason=reason)), "without a reason"
        )


@pytest.mark.spec("LED-17")
def test_a_plan_of_what_is_not_there_is_found() -> None:
    started = (activated(SMALL), reserved(ONE))
    opened = RoundOpened("one", {"user": 10})
    plan = PlanCommitted("plan", "one", "0" * 64, ("r-1",))
    assert holds(events(*started, opened, plan)) == 1
    ghost = structs.replace(plan, releases=("r-1", "ghost"))
    breaks(events(*started, opened, ghost), "does not exist")
    breaks(
        events(*started, structs.replace(opened, unlocked={"nobody": 1})),
        "does not have",
    )


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
    result = DisclosureRecorded("x", "a table", (), EVERYTHING, "law", {})
    breaks(events(activated(SMALL), result, result), "cannot happen here")
    breaks(events(activated(SMALL), ReleaseExpired("r-1")), "cannot happen here")


# --- the same everywhere --------------------------------------------------------------

DIGEST = """
import sqlite3, sys
from modicum.ledger import Record, audit
from modicum.ledger.replay.fold import followed_from, loss_changes, fold
from modicum.ledger.replay.snapshot import Snapshot, write_snapshot
from modicum.ledger import State
from modicum.policy.compiler import compile_text
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
