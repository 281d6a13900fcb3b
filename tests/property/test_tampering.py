"""No byte of a stored event can change unseen, wherever it is flipped."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.small import counts, workspace

from modicum.core.errors import ModicumError, VerificationError
from modicum.ledger import Record, audit


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a ledger that holds every kind of step."""
    folder = tmp_path_factory.mktemp("ledger")
    ws = workspace(folder)
    ws.backfill(counts("old", rho="0.004"))
    ws.submit(counts("r-1", rho="0.004"), publish=True)
    ws.submit(counts("r-2", rho="0.004"))
    ws.cancel("r-2", reason="called off")
    ws.submit(counts("r-3", rho="0.03"))
    ws.submit(counts("r-4", rho="0.002", purpose="research"))
    ws.governance.annotate("read by the auditors")
    return folder


def records(folder: Path) -> list[Record]:
    return list(workspace(folder).records())


@pytest.mark.spec("LED-2")
@settings(max_examples=300)
@given(data=st.data())
def test_a_flipped_bit_in_any_column_of_any_row_is_found(
    ledger: Path, data: st.DataObject
) -> None:
    rows = records(ledger)
    row = data.draw(st.integers(0, len(rows) - 1))
    old = rows[row]
    column = data.draw(st.sampled_from(["payload", "hash", "seq"]))
    if column == "payload":
        place = data.draw(st.integers(0, len(old.payload) * 8 - 1))
        new = Record(old.seq, flip(old.payload, place), old.hash)
    elif column == "hash":
        place = data.draw(st.integers(0, 64 * 8 - 1))
        flipped = flip(old.hash.encode(), place).decode("latin-1")
        new = Record(old.seq, old.payload, flipped)
    else:
        new = Record(
            old.seq ^ (1 << data.draw(st.integers(0, 40))), old.payload, old.hash
        )
    rows[row] = new
    with pytest.raises(VerificationError):
        audit(rows)


def flip(data: bytes, place: int) -> bytes:
    flipped = bytearray(data)
    flipped[place // 8] ^= 1 << (place % 8)
    return bytes(flipped)


def event_bytes(folder: Path) -> Iterator[int]:
    """Yield the places in the file where stored events have their bytes."""
    image = (folder / "ledger.db").read_bytes()
    with closing(sqlite3.connect(folder / "ledger.db")) as connection:
        for payload, hash_ in connection.execute("SELECT payload, hash FROM events"):
            for part in (bytes(payload)[:400], hash_.encode()):
                start = image.find(part)
                if start >= 0:
                    yield from range(start, start + len(part))


@pytest.mark.spec("LED-2")
@settings(max_examples=150)
@given(data=st.data())
def test_a_flipped_bit_in_the_file_is_found(
    ledger: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    places = sorted(set(event_bytes(ledger)))
    assert len(places) > 1000
    place = data.draw(st.sampled_from(places))
    bit = data.draw(st.integers(0, 7))
    copy = tmp_path_factory.mktemp("copy")
    image = (ledger / "ledger.db").read_bytes()
    (copy / "ledger.db").write_bytes(flip(image, place * 8 + bit))
    with pytest.raises(VerificationError):
        workspace(copy).verify()


@pytest.mark.spec("LED-2")
@settings(max_examples=150)
@given(data=st.data())
def test_a_flipped_bit_anywhere_never_changes_what_is_decided(
    ledger: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    image = (ledger / "ledger.db").read_bytes()
    place = data.draw(st.integers(0, len(image) * 8 - 1))
    copy = tmp_path_factory.mktemp("copy")
    (copy / "ledger.db").write_bytes(flip(image, place))
    try:
        head = workspace(copy).state().head
    except ModicumError:
        return  # Found, and said with a code.
    assert head == workspace(ledger).state().head


@pytest.mark.spec("LED-2")
def test_a_name_of_a_table_that_is_no_text_is_found(
    ledger: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    image = (ledger / "ledger.db").read_bytes()
    for name in (b"sqlite_autoindex_checkpoints_1", b"CREATE TABLE events"):
        place = image.index(name)
        copy = tmp_path_factory.mktemp("copy")
        damaged = image[:place] + b"\xcc" + image[place + 1 :]
        (copy / "ledger.db").write_bytes(damaged)
        with pytest.raises(VerificationError):
            workspace(copy).state()


@pytest.mark.spec("LED-2")
def test_removed_swapped_and_repeated_rows_are_found(ledger: Path) -> None:
    rows = records(ledger)
    for changed in (
        rows[1:],
        rows[:2] + rows[3:],
        [rows[1], rows[0], *rows[2:]],
        [*rows, rows[-1]],
        [rows[0], *rows],
    ):
        with pytest.raises(VerificationError):
            audit(changed)
    # A cut at the end leaves a shorter ledger that is whole: only the head tells.
    assert audit(rows[:-1]).head != audit(rows).head


@pytest.mark.spec("LED-3")
def test_a_decision_that_does_not_follow_is_found(ledger: Path) -> None:
    """Re-sealed with correct hashes, a forged decision still contradicts its past."""
    from msgspec.structs import replace

    from modicum.ledger import GENESIS, read_record, seal
    from modicum.ledger.log.events import Body, ReleaseDenied, ReleaseReserved

    events, previous = [], GENESIS
    for seq, record in enumerate(records(ledger), 1):
        events.append(read_record(record, seq, previous))
        previous = record.hash

    def resealed(changed: list[object]) -> list[Record]:
        rows: list[Record] = []
        previous = GENESIS
        for seq, event in enumerate(changed, 1):
            rows.append(seal(event, seq, previous))  # type: ignore[arg-type]
            previous = rows[-1].hash
        return rows

    assert audit(resealed(list(events))).decisions == 4
    for place, event in enumerate(events):
        body = event.body
        forged: Body
        if isinstance(body, ReleaseDenied):
            forged = ReleaseReserved(
                body.release, body.policy, "2030-01-01T00:00:00.000000Z"
            )
        elif isinstance(body, ReleaseReserved):
            forged = ReleaseDenied(body.release, body.policy, ("global @standard",))
        else:
            continue
        changed: list[object] = list(events[: place + 1])
        changed[place] = replace(event, body=forged)
        with pytest.raises(VerificationError, match="does not follow"):
            audit(resealed(changed))
