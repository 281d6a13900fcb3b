"""The chain of the access trail: whatever is changed in it is found."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modicum.core.canonical import decode, digest, encode
from modicum.core.errors import Code, VerificationError
from modicum.ledger.log.chain import GENESIS, Record
from modicum.ledger.proof.access_trail import (
    CHARACTERS_MAX,
    AccessEvent,
    AccessKind,
    bounded,
    event_in,
    line_of,
    sealed,
    verified,
)

AT = "2026-05-01T12:00:00.000000Z"

events = st.builds(
    AccessEvent,
    at=st.just(AT),
    kind=st.sampled_from(AccessKind),
    outcome=st.sampled_from(["done", "refused"]),
    who=st.text(max_size=20).map(bounded),
    action=st.sampled_from(["", "GET /api/v1/rules"]),
    parts=st.lists(st.sampled_from(["listen", "grants"]), max_size=2).map(tuple),
    count=st.integers(0, 9),
)
histories = st.lists(events, min_size=1, max_size=8)


def chain(found: list[AccessEvent]) -> list[Record]:
    records: list[Record] = []
    for event in found:
        records.append(sealed(event, records[-1] if records else None))
    return records


@given(histories)
def test_a_chain_gives_its_events_back(found: list[AccessEvent]) -> None:
    records = chain(found)
    assert [event for _, event in verified(records)] == found
    assert [event_in(one) for one in records] == found
    cut = len(found) // 2
    after = records[cut - 1] if cut else None
    assert [event for _, event in verified(records[cut:], after)] == found[cut:]


def broken(records: list[Record]) -> int:
    with pytest.raises(VerificationError) as caught:
        list(verified(records))
    assert caught.value.code is Code.TRAIL_BROKEN
    return int(caught.value.problems[0].message.split("event ")[1].split(":")[0])


@pytest.mark.spec("REG-10")
@given(histories, st.data())
def test_what_is_changed_left_out_or_moved_is_found(
    found: list[AccessEvent], data: st.DataObject
) -> None:
    records = chain(found)
    at = data.draw(st.integers(0, len(records) - 1))
    changed = msgspec.structs.replace(found[at], count=found[at].count + 1)
    own = records[at]
    # Changed, with the old hash; and with a new one, which its successor contradicts.
    forged = sealed(changed, records[at - 1] if at else None)
    lie = Record(own.seq, forged.payload, own.hash)
    assert broken([*records[:at], lie, *records[at + 1 :]]) == at + 1
    if at + 1 < len(records):
        assert broken([*records[:at], forged, *records[at + 1 :]]) == at + 2
        assert broken([*records[:at], *records[at + 1 :]]) == at + 1
        two = [records[at + 1], own]
        assert broken([*records[:at], *two, *records[at + 2 :]]) == at + 1
        renumbered = [
            Record(number, one.payload, one.hash)
            for number, one in enumerate([*records[:at], *records[at + 1 :]], 1)
        ]
        assert broken(renumbered) == at + 1
    assert broken([*records, own]) == len(records) + 1


@pytest.mark.spec("REG-10")
@given(histories)
def test_only_a_noted_head_shows_a_trail_that_was_cut(
    found: list[AccessEvent],
) -> None:
    records = chain(found)
    cut = records[:-1]
    assert len(list(verified(cut))) == len(records) - 1
    assert records[-1].hash not in {one.hash for one in cut}


def test_what_is_no_event_is_refused() -> None:
    def record(plain: object) -> Record:
        payload = encode(plain)  # type: ignore[arg-type]
        return Record(1, payload, digest(payload))

    good = {"at": AT, "kind": "sign-in"}
    assert list(verified([record({"seq": 1, "prev": GENESIS, "event": good})]))
    bad: tuple[object, ...] = (
        [],
        {"seq": 1, "prev": GENESIS},
        {"seq": True, "prev": GENESIS, "event": good},
        {"seq": 2, "prev": GENESIS, "event": good},
        {"seq": 1, "prev": "1" * 64, "event": good},
        {"seq": 1, "prev": GENESIS, "event": {"at": AT, "kind": "release-posted"}},
        {"seq": 1, "prev": GENESIS, "event": {**good, "rows": 3}},
    )
    for plain in bad:
        assert broken([record(plain)]) == 1
    payload = json.dumps({"seq": 1, "prev": GENESIS, "event": good}).encode()
    assert broken([Record(1, payload, digest(payload))]) == 1


@given(st.text(max_size=400))
def test_texts_of_others_are_short_and_printable(text: str) -> None:
    found = bounded(text)
    assert len(found) <= CHARACTERS_MAX
    assert found.isprintable()
    record = sealed(AccessEvent(AT, AccessKind.SIGN_IN, who=found), None)
    line = line_of(record)
    assert b"\n" not in line
    assert b'"outcome":"done"' in line
    plain = decode(line)
    assert isinstance(plain, dict)
    assert plain["hash"] == digest(encode({k: plain[k] for k in plain if k != "hash"}))
