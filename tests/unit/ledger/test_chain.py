"""The chain: one encoding, one hash, and nothing can be changed unseen."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples.small import NOON, compiled, counts

from modicum.core.canonical import decode, digest, encode
from modicum.core.document import from_python
from modicum.core.errors import Code
from modicum.ledger import GENESIS, ChainBreakError, Event, Record, read_record, seal
from modicum.ledger.log.events import (
    EVENT_VERSION,
    Body,
    PastRecorded,
    PolicyActivated,
    ReleaseDenied,
    ReleaseExpired,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
)
from modicum.ledger.log.recorded_release import RecordedRelease, record_release
from modicum.release import parse_release, price

VOCABULARY = compiled().policy.vocabulary


def recorded(identifier: str = "r-1") -> RecordedRelease:
    node = from_python(counts(identifier, audience="press"))
    return record_release(price(parse_release(node, VOCABULARY), VOCABULARY))


BODIES: tuple[Body, ...] = (
    PolicyActivated("d" * 64, "small", "modicum: policy/v1\n# é ☃\n"),
    ReleaseReserved(recorded(), "d" * 64, NOON),
    ReleaseStarted("r-1"),
    ReleasePosted("r-1"),
    ReleaseVoided("r-1", "not needed"),
    ReleaseExpired("r-1"),
    ReleaseDenied(recorded(), "d" * 64, ("attr:age", "global")),
    PastRecorded(recorded(), "d" * 64),
)


@pytest.mark.spec("LED-1")
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.kind)
def test_every_kind_of_event_survives_the_round_trip(body: Body) -> None:
    event = Event(NOON, "tester", body)
    record = seal(event, 7, "a" * 64)
    assert read_record(record, 7, "a" * 64) == event


def test_infinite_coordinates_are_written_as_inf() -> None:
    payload = seal(Event(NOON, "t", BODIES[1]), 1, GENESIS).payload
    assert b'["inf",1000000000,2000000000,' in payload


@pytest.mark.spec("LED-2")
@given(body=st.sampled_from(BODIES), data=st.data())
def test_any_flipped_bit_of_the_payload_is_found(
    body: Body, data: st.DataObject
) -> None:
    record = seal(Event(NOON, "t", body), 1, GENESIS)
    place = data.draw(st.integers(0, len(record.payload) * 8 - 1))
    flipped = bytearray(record.payload)
    flipped[place // 8] ^= 1 << (place % 8)
    with pytest.raises(ChainBreakError):
        read_record(Record(1, bytes(flipped), record.hash), 1, GENESIS)


@pytest.mark.spec("LED-2")
@pytest.mark.parametrize(
    "forged",
    [
        lambda plain: {**plain, "seq": 2},
        lambda plain: {**plain, "prev": "1" * 64},
        lambda plain: {**plain, "more": 1},
        lambda plain: {**plain, "event": {**plain["event"], "v": EVENT_VERSION + 1}},
        lambda plain: {**plain, "event": {**plain["event"], "kind": "release-freed"}},
        lambda plain: {**plain, "event": {**plain["event"], "body": {}}},
        lambda plain: {k: v for k, v in plain.items() if k != "prev"},
        lambda plain: [plain],
    ],
)
def test_a_payload_that_is_rehashed_but_does_not_fit_is_found(forged: object) -> None:
    from modicum.core.canonical import digest

    record = seal(Event(NOON, "t", BODIES[2]), 1, GENESIS)
    payload = encode(forged(decode(record.payload)))  # type: ignore[operator]
    with pytest.raises(ChainBreakError):
        read_record(Record(1, payload, digest(payload)), 1, GENESIS)


def test_a_loss_out_of_range_or_of_another_grid_is_refused() -> None:
    from modicum.core.canonical import digest

    record = seal(Event(NOON, "t", BODIES[1]), 1, GENESIS)
    for old, new in (
        (b"grid-v1", b"grid-v2"),
        (b'"inf"', b"4611686018427387904"),
        (b'"inf"', b"-1"),
        (b'"inf"', b"true"),
        (b'"where":null', b'"where":[1]'),
    ):
        payload = record.payload.replace(old, new, 1)
        assert payload != record.payload
        with pytest.raises(ChainBreakError):
            read_record(Record(1, payload, digest(payload)), 1, GENESIS)


@pytest.mark.parametrize(
    ("version", "code"), [(EVENT_VERSION + 1, "MOD707"), (0, "MOD702")]
)
def test_what_a_later_version_wrote_is_not_called_broken(
    version: int, code: str
) -> None:
    record = seal(Event(NOON, "me", BODIES[0]), 1, GENESIS)
    plain: Any = decode(record.payload)
    plain["event"]["v"] = version
    payload = encode(plain)
    later = Record(1, payload, digest(payload))
    with pytest.raises(ChainBreakError) as caught:
        read_record(later, 1, GENESIS)
    (problem,) = caught.value.problems
    assert problem.code.value == code
    assert (problem.code is Code.NOT_A_LEDGER) == ("later version" in problem.message)
