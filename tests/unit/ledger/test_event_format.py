"""Every kind of event as stored data: one form, read strictly, old ones for good."""

from __future__ import annotations

import copy
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import replace
from samples.kinds import BODIES, SHA, small
from samples.small import NOON, counts, workspace
from samples.stored import (
    before_seventh,
    before_sixth,
    read_before_seventh,
    read_before_sixth,
    to_plain,
)

from modicum.core.canonical import decode, encode
from modicum.ledger import (
    GENESIS,
    Event,
    Record,
    State,
    audit,
    event_of,
    read_record,
    seal,
)
from modicum.ledger.log.chain import ChainBreakError
from modicum.ledger.log.codec import from_plain
from modicum.ledger.log.days import day_of
from modicum.ledger.log.escrow_events import (
    EscrowBody,
)
from modicum.ledger.log.events import (
    EVENT_VERSION,
    KINDS,
    ApprovalGiven,
    Body,
    GapBody,
    PastRecorded,
    PastRedescribed,
    PolicyActivated,
    PolicyProposed,
    ReleaseDenied,
    ReleaseRequested,
    ReleaseReserved,
    RequestWithdrawn,
    day_of_release,
)
from modicum.ledger.log.recorded_release import (
    RecordedMechanism,
    RecordedRelease,
)
from modicum.ledger.proof.repricing import Unpriced
from modicum.ledger.replay.fold import fold
from modicum.release import EVERYTHING
from modicum.system.clock import FixedClock

OLD_LEDGER = Path(__file__).parents[2] / "golden" / "ledgers" / "v1.db"
OLD_HEAD = "41bef02409f803abbef8b96f4faff7fbcfa4b8de1d37f05dad548bb805dc7b11"


def plain_of(body: Body) -> dict[str, Any]:
    return copy.deepcopy(to_plain(Event(NOON, "tester", body)))


def test_every_kind_is_among_the_examples() -> None:
    assert {type(body) for body in BODIES} == set(KINDS)


@pytest.mark.spec("LED-1")
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.kind)
def test_every_kind_of_event_survives_the_round_trip(body: Body) -> None:
    event = Event(NOON, "tester", body)
    assert read_record(seal(event, 7, "a" * 64), 7, "a" * 64) == event


@pytest.mark.spec("LED-1")
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.kind)
def test_a_field_too_few_too_many_or_of_another_form_is_refused(body: Body) -> None:
    def refused(plain: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=r"field|mechanism|losses|a part|kind"):
            from_plain(plain)

    for name in plain_of(body)["body"]:
        without = plain_of(body)
        del without["body"][name]
        refused(without)
        others: tuple[object, ...] = (None, 7.5, ["x", 1], {"x": []}, -1, True)
        for other in others:
            changed = plain_of(body)
            if type(changed["body"][name]) is not type(other):
                changed["body"][name] = other
                refused(changed)
    more = plain_of(body)
    more["body"]["more"] = 1
    refused(more)


@pytest.mark.parametrize(
    ("body", "name", "value"),
    [
        (BODIES[0], "digest", "D" * 64),
        (BODIES[2], "expires_at", "2026-02-30T00:00:00.000000Z"),
        (BODIES[2], "expires_at", "2026-02-03 00:00:00.000000Z"),
        (BODIES[2], "expires_at", "2026-02-03T24:00:00.000000Z"),
        (BODIES[2], "expires_at", "2026-02-03T23:60:00.000000Z"),
        (BODIES[2], "expires_at", "2026-02-03T23:59:60.000000Z"),
        (BODIES[11], "subject", "round"),
        (BODIES[14], "unlocked", {"user": 10**6 + 1}),
        (BODIES[18], "head", ""),
        (BODIES[18], "head", "d" * 63),
        (BODIES[18], "head", "D" * 64),
        (BODIES[18], "key", ""),
        (BODIES[18], "key", "d" * 65),
        (BODIES[18], "signature", ""),
        (BODIES[18], "signature", "d" * 64),
        (BODIES[18], "signature", "x" * 128),
        (BODIES[19], "policy", ""),
        (BODIES[21], "digest", ""),
    ],
)
def test_a_value_that_cannot_be_is_refused(body: Body, name: str, value: Any) -> None:
    plain = plain_of(body)
    plain["body"][name] = value
    with pytest.raises(ValueError, match=r"field|range|day"):
        from_plain(plain)


# --- version 1 ------------------------------------------------------------------


def old_records(path: Path = OLD_LEDGER) -> list[Record]:
    with closing(
        sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    ) as connection:
        rows = connection.execute("SELECT seq, payload, hash FROM events ORDER BY seq")
        return [Record(*row) for row in rows]


@pytest.mark.spec("LED-12")
def test_a_ledger_of_version_1_verifies_and_its_decisions_follow() -> None:
    report = audit(old_records())
    assert (report.entries, report.decisions, report.head) == (13, 6, OLD_HEAD)
    assert report.unpriced == Unpriced()  # Each has a price today, and was compared.
    state = State()
    events = [fold(state, record)[0] for record in old_records()]
    assert {event.version for event in events} == {1}
    assert [policy.reason for policy in state.policies] == [""]


@pytest.mark.spec("LED-12")
def test_a_ledger_of_version_1_goes_on_in_this_one(tmp_path: Path) -> None:
    shutil.copy(OLD_LEDGER, tmp_path / "ledger.db")
    ws = workspace(tmp_path, policy=None)
    before = ws.state().seq
    units = ws.policy().policy.vocabulary.units
    cost = {unit: {"rho": 1e-6} for unit in units}
    one = {"mechanism": "declared", "attributes": [], "cost": cost}
    ws.submit({"release": "after", "mechanisms": [one]})
    versions = [
        decode(record.payload)["event"]["v"]  # type: ignore[index, call-overload]
        for record in ws.records()
    ]
    assert versions[:13] == [1] * 13
    assert set(versions[13:]) == {EVENT_VERSION}
    assert ws.state().seq > before
    assert ws.verify().entries == len(versions)


# --- version 2 ------------------------------------------------------------------

SECOND_LEDGER = OLD_LEDGER.with_name("v2.db")
SECOND_HEAD = "0fae819b60e8ce572b89d8aa0b414778511145cd10cd8e47257d6542c0fbdbf7"
#: The kinds that came with version 3, and what it added to an older one.
THIRD = (ReleaseRequested, RequestWithdrawn, PolicyProposed)
FOURTH: tuple[type[Body], ...] = get_args(EscrowBody)
FIFTH = (PastRedescribed,)
SEVENTH: tuple[type[Body], ...] = get_args(GapBody)
THIRD_FIELDS = {"head": "", "key": "", "signature": ""}


def second(plain: dict[str, Any]) -> dict[str, Any]:
    """Return an event of this version as version 2 wrote it."""
    plain["v"] = 2
    before_sixth(plain)
    if plain["kind"] == ApprovalGiven.kind:
        for name in THIRD_FIELDS:
            del plain["body"][name]
    return plain


@pytest.mark.spec("LED-12")
def test_a_ledger_of_version_2_verifies_and_its_decisions_follow() -> None:
    records = old_records(SECOND_LEDGER)
    report = audit(records)
    assert (report.entries, report.decisions, report.head) == (26, 5, SECOND_HEAD)
    assert (report.approvals, report.signed) == (4, 0)
    events = [read_record(one, one.seq, prev) for one, prev in linked(records)]
    assert {event.version for event in events} == {2}
    assert {type(event.body) for event in events} == set(KINDS) - {
        *THIRD,
        *FOURTH,
        *FIFTH,
        *SEVENTH,
    }
    # Written as it was then, each gives the very bytes again.
    for (record, prev), event in zip(linked(records), events, strict=True):
        plain = second(copy.deepcopy(to_plain(event)))
        whole: Any = {"seq": record.seq, "prev": prev, "event": plain}
        assert encode(whole) == record.payload


def linked(records: list[Record]) -> list[tuple[Record, str]]:
    return list(zip(records, [GENESIS, *(one.hash for one in records)], strict=False))


@pytest.mark.spec("LED-12")
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.kind)
def test_version_2_has_what_it_had_and_nothing_else(body: Body) -> None:
    plain = second(plain_of(body))
    if isinstance(body, (*THIRD, *FOURTH, *FIFTH, *SEVENTH)):
        with pytest.raises(ValueError, match="unknown kind"):
            from_plain(plain)
        return
    then = body
    if isinstance(body, ApprovalGiven):
        then = replace(body, head="", key="", signature="")
    assert from_plain(plain) == Event(NOON, "tester", read_before_sixth(then), 2)
    for name in THIRD_FIELDS:
        more = second(plain_of(body))
        more["body"][name] = ""
        with pytest.raises(ValueError, match="unknown fields"):
            from_plain(more)


@pytest.mark.spec("LED-12")
def test_a_ledger_of_version_2_goes_on_in_this_one(tmp_path: Path) -> None:
    shutil.copy(SECOND_LEDGER, tmp_path / "ledger.db")
    ws = workspace(tmp_path, policy=None)
    ws.submit(counts("after", rho="1e-9", groups=[2]))
    events = [read_record(one, one.seq, prev) for one, prev in linked([*ws.records()])]
    assert [event.version for event in events[:26]] == [2] * 26
    assert {event.version for event in events[26:]} == {EVENT_VERSION}
    assert ws.verify().entries == len(events) > 26


# --- version 3 ------------------------------------------------------------------

THIRD_LEDGER = OLD_LEDGER.with_name("v3.db")
THIRD_HEAD = "662a74b3e6ffcb0492f697a7d8964bef5118ddfc8a933b20b25919e7e4438e17"


@pytest.mark.spec("LED-12")
def test_a_ledger_of_version_3_verifies_and_its_decisions_follow() -> None:
    records = old_records(THIRD_LEDGER)
    report = audit(records)
    assert (report.entries, report.decisions, report.head) == (13, 2, THIRD_HEAD)
    assert (report.approvals, report.signed) == (3, 1)
    events = [read_record(one, one.seq, prev) for one, prev in linked(records)]
    assert {event.version for event in events} == {3}
    assert {*THIRD} <= {type(event.body) for event in events}
    for (record, prev), event in zip(linked(records), events, strict=True):
        whole: Any = {"seq": record.seq, "prev": prev}
        whole["event"] = before_sixth({**to_plain(event), "v": 3})
        assert encode(whole) == record.payload


@pytest.mark.spec("LED-12")
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.kind)
def test_version_3_has_all_but_what_came_with_version_4(body: Body) -> None:
    plain = before_sixth({**plain_of(body), "v": 3})
    if isinstance(body, (*FOURTH, *FIFTH, *SEVENTH)):
        with pytest.raises(ValueError, match="unknown kind"):
            from_plain(plain)
    else:
        assert from_plain(plain) == Event(NOON, "tester", read_before_sixth(body), 3)


# --- version 4 ------------------------------------------------------------------


@pytest.mark.spec("LED-12")
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.kind)
def test_version_4_has_all_but_what_came_with_version_5(body: Body) -> None:
    plain = before_sixth({**plain_of(body), "v": 4})
    if isinstance(body, (*FIFTH, *SEVENTH)):
        with pytest.raises(ValueError, match="unknown kind"):
            from_plain(plain)
    else:
        assert from_plain(plain) == Event(NOON, "tester", read_before_sixth(body), 4)


# --- version 5 ------------------------------------------------------------------

FIFTH_LEDGER = OLD_LEDGER.with_name("v5.db")
FIFTH_HEAD = "92b5744f909e59a0f90fd047d8c1b127439adb4202cc6546edc89332bde93d95"


@pytest.mark.spec("LED-12")
@pytest.mark.spec("LED-26")
def test_a_ledger_of_version_5_verifies_and_its_decisions_follow() -> None:
    """Its policy leaves gaps, and what no rule limits was allowed then."""
    records = old_records(FIFTH_LEDGER)
    report = audit(records)
    assert (report.entries, report.decisions, report.head) == (6, 5, FIFTH_HEAD)
    events = [read_record(one, one.seq, prev) for one, prev in linked(records)]
    assert {event.version for event in events} == {5}
    kinds = [event.body.kind for event in events[1:]]
    assert kinds == ["release-reserved"] * 3 + ["release-denied"] * 2
    for (record, prev), event in zip(linked(records), events, strict=True):
        whole: Any = {"seq": record.seq, "prev": prev}
        whole["event"] = before_sixth({**to_plain(event), "v": 5})
        assert encode(whole) == record.payload


SWAPPED_LEDGER = OLD_LEDGER.with_name("v5-swapped-values.db")
SWAPPED_HEAD = "761aafb93ff324bf77305601ad8d46ea7cb90b4980077bf62613271ee0f7e081"


@pytest.mark.spec("LED-12")
@pytest.mark.spec("POL-14")
def test_a_ledger_of_version_5_whose_values_were_swapped_verifies() -> None:
    """Its second policy swaps EU and US. Two more raise limits, and keep `was`.

    Version 5 took the last of them for a second swap that may have been made: it denies
    `r-6`, and that is what its ledger says.
    """
    report = audit(old_records(SWAPPED_LEDGER))
    assert (report.entries, report.decisions, report.head) == (13, 7, SWAPPED_HEAD)
    assert report.understated == ()


@pytest.mark.spec("LED-12")
@pytest.mark.spec("LED-26")
def test_a_ledger_of_version_5_goes_on_and_denies_what_no_rule_limits(
    tmp_path: Path,
) -> None:
    shutil.copy(FIFTH_LEDGER, tmp_path / "ledger.db")
    ws = workspace(
        tmp_path, policy=None, clock=FixedClock("2026-11-01T13:00:00.000000Z")
    )

    def costing_little(release: str, *attributes: str) -> dict[str, Any]:
        one = counts(release, attributes=attributes)
        cost = {"cost": {"user": {"eps": 1e-9}}, "mechanism": "declared"}
        one["mechanisms"][0].update(cost)
        return one

    denied = ws.submit(costing_little("rows-again"))
    assert (denied.allowed, denied.blocking) == (False, ())
    assert denied.verdict.unmatched == ("counts",)
    assert ws.submit(costing_little("ages-again", "age")).allowed
    assert ws.verify().decisions == 7
    events = [read_record(one, one.seq, prev) for one, prev in linked([*ws.records()])]
    assert [event.version for event in events[6:]] == [EVENT_VERSION] * 2


@pytest.mark.spec("LED-26")
@pytest.mark.parametrize("allowed", [True, False])
def test_what_no_rule_limits_follows_from_the_version_of_the_entry(
    *, allowed: bool
) -> None:
    """The same decision is right in version 5, and breaks a log in version 6."""
    records = old_records(FIFTH_LEDGER)
    events = [read_record(one, one.seq, prev) for one, prev in linked(records)]
    place = next(
        number
        for number, event in enumerate(events)
        if event.body.kind == "release-reserved" and number
    )
    body: Any = events[place].body
    if not allowed:
        body = ReleaseDenied(body.release, body.policy, (), ("count",))
    last = seal(replace(events[place], body=body), place + 1, records[place - 1].hash)
    log = [*records[:place], last]
    if not allowed:
        assert audit(log).decisions == 1
        return
    with pytest.raises(ChainBreakError, match="does not follow"):
        audit(log)


@pytest.mark.spec("LED-12")
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.kind)
def test_version_5_has_all_but_what_came_with_version_6(body: Body) -> None:
    plain = {**plain_of(body), "v": 5}
    if isinstance(body, SEVENTH):
        with pytest.raises(ValueError, match="unknown kind"):
            from_plain(plain)
        return
    then = before_sixth(copy.deepcopy(plain))
    if plain != then:
        with pytest.raises(ValueError, match="unknown fields"):
            from_plain(plain)
    assert from_plain(then) == Event(NOON, "tester", read_before_sixth(body), 5)
    if before_seventh(plain) != then:
        with pytest.raises(ValueError, match="is missing"):
            from_plain({**then, "v": 6})


# --- version 6 ------------------------------------------------------------------

SIXTH_LEDGER = OLD_LEDGER.with_name("v6.db")
SIXTH_HEAD = "235777d2d4e7430f9c7e48489e4cc2e48b3f1bd3981a6aef629662f619b34ee3"


@pytest.mark.spec("LED-12")
def test_a_ledger_of_version_6_verifies_and_goes_on(tmp_path: Path) -> None:
    records = old_records(SIXTH_LEDGER)
    report = audit(records)
    assert (report.entries, report.decisions, report.head) == (8, 3, SIXTH_HEAD)
    for record, prev in linked(records):
        event = read_record(record, record.seq, prev)
        whole: Any = {"seq": record.seq, "prev": prev}
        whole["event"] = before_seventh({**to_plain(event), "v": 6})
        assert encode(whole) == record.payload
    shutil.copy(SIXTH_LEDGER, tmp_path / "ledger.db")
    ws = workspace(
        tmp_path, policy=None, clock=FixedClock("2026-11-30T13:00:00.000000Z")
    )
    ws.submit(counts("after", rho="0.01"))
    assert event_of([*ws.records()][-1], 9).version == EVENT_VERSION
    assert ws.verify().entries == 9


@pytest.mark.spec("LED-12")
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.kind)
def test_version_6_has_all_but_what_came_with_version_7(body: Body) -> None:
    plain = {**plain_of(body), "v": 6}
    if isinstance(body, (*SEVENTH, PastRecorded)):
        with pytest.raises(ValueError, match=r"unknown kind|unknown fields"):
            from_plain(plain)
    if not isinstance(body, SEVENTH):
        then = before_seventh(plain)
        assert from_plain(then) == Event(NOON, "tester", read_before_seventh(body), 6)


# --- version 1, event by event ------------------------------------------------------

#: What version 2 added to a kind of version 1, and what an old event has instead.
LATER: dict[type[Body], dict[str, Any]] = {
    PolicyActivated: {"reason": "", "accepted": ()},
    ReleaseReserved: {"approved_by": ()},
    PastRecorded: {"assumptions": ()},
}


def old(plain: dict[str, Any]) -> dict[str, Any]:
    """Return an event of this version as version 1 wrote it."""
    plain["v"] = 1
    before_sixth(plain)
    for kind, later in LATER.items():
        if plain["kind"] == kind.kind:
            for name in later:
                del plain["body"][name]
    if "release" in plain["body"] and isinstance(plain["body"]["release"], dict):
        del plain["body"]["release"]["given"]
        for mechanism in plain["body"]["release"]["mechanisms"]:
            mechanism["sampling"] = None
    return plain


@pytest.mark.spec("LED-12")
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.kind)
def test_version_1_has_what_it_had_and_nothing_else(body: Body) -> None:
    known = any(
        decode(record.payload)["event"]["kind"] == body.kind  # type: ignore[index, call-overload]
        for record in old_records()
    )
    plain = old(plain_of(body))
    release = getattr(body, "release", None)
    whole = not isinstance(release, RecordedRelease) or all(
        one.part == EVERYTHING for one in release.mechanisms
    )
    if known and whole:
        then = replace(read_before_sixth(body), **LATER.get(type(body), {}))
        assert from_plain(plain).body == then
        plain["body"]["accepted"] = []
        with pytest.raises(ValueError, match="unknown fields"):
            from_plain(plain)
    else:
        with pytest.raises(ValueError, match=r"unknown kind|version 1"):
            from_plain(plain)


@pytest.mark.parametrize("version", [0, EVENT_VERSION + 1, True, "2", None])
def test_other_versions_are_refused(version: object) -> None:
    plain = plain_of(BODIES[4]) | {"v": version}
    with pytest.raises(ValueError, match="version"):
        from_plain(plain)


# --- days -----------------------------------------------------------------------


def test_a_release_counts_as_made_on_the_day_of_its_entry() -> None:
    assert day_of("2026-05-01T23:59:59.999999Z") + 1 == day_of("2026-05-02T00")
    assert day_of_release(ReleaseReserved(small(), SHA, NOON), NOON) == day_of(NOON)


@pytest.mark.parametrize(
    ("released_on", "day"),
    [("2019-03-07", "2019-03-07"), ("spring 2019", NOON), ("", NOON), (None, NOON)],
)
def test_a_past_release_counts_as_made_when_it_says_it_was(
    released_on: str | None, day: str
) -> None:
    metadata = {} if released_on is None else {"released_on": released_on}
    one = small()
    past = RecordedRelease(one.id, one.content, one.labels, metadata, one.mechanisms)
    assert day_of_release(PastRecorded(past, SHA), NOON) == day_of(day)


def test_a_float_or_a_key_that_is_no_text_never_gets_into_a_record() -> None:
    for wrong in ({"sigma": 1.5}, {1: "x"}, {"deep": [{"a": [2.0]}]}):
        one = small()
        described = RecordedMechanism(wrong, (), {}, {})  # type: ignore[arg-type]
        release = RecordedRelease(one.id, one.content, {}, {}, (described,))
        with pytest.raises(TypeError):
            seal(Event(NOON, "t", ReleaseReserved(release, SHA, NOON)), 1, GENESIS)
    with pytest.raises(ValueError, match="plain"):
        decode(encode({"x": 1}).replace(b"1", b"1.5"))
