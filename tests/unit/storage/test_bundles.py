"""Bundles as files, and as ledgers that stand still."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from samples.audited import at, bundle, bundled, checked, checkpoint, key, log

from modicum.core.errors import InputError, UsageError, VerificationError
from modicum.ledger import Record, audit
from modicum.ledger.proof.bundle import (
    PAGE_BYTES,
    PAGE_RECORDS,
    Manifest,
    Survey,
    checkpoint_name,
    key_name,
    member_bytes_max,
    members,
    page_name,
    paged,
)
from modicum.ledger.proof.bundle_reader import BundleReader
from modicum.ledger.proof.claims import signed_bytes
from modicum.ledger.proof.zip_format import Directory, Member, unpacked
from modicum.storage.proofs.bundles import (
    bundle_store,
    export_bundle,
    open_bundle,
    verify_bundle,
)
from modicum.storage.proofs.ledger_log import (
    open_log,
    sign_checkpoint,
    stored_checkpoints,
    verify_ledger,
)
from modicum.storage.proofs.receipts import sign_receipt
from modicum.storage.proofs.signing_keys import Signing
from modicum.storage.proofs.verification import Trust
from modicum.storage.read_only import ReadOnlyStore, up_to
from modicum.storage.sqlite_store import SqliteStore

GOLDEN = Path(__file__).parents[2] / "golden" / "ledgers" / "v1.db"


def given(rows: Sequence[Record]) -> ReadOnlyStore:
    """Return a store that has these records."""
    return ReadOnlyStore("given", lambda after, limit: iter(rows[after:][:limit]))


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Return a ledger that a version before this one wrote."""
    path = tmp_path / "ledger.db"
    shutil.copy(GOLDEN, path)
    return path


@pytest.mark.spec("AUD-1")
def test_the_same_ledger_gives_the_same_bytes(ledger: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    manifest = export_bundle(open_log(ledger), first)
    export_bundle(open_log(shutil.copy(ledger, tmp_path / "copy.db")), second)
    assert first.read_bytes() == second.read_bytes()
    assert manifest.entries == 13
    with open_bundle(first) as found:
        verified = verify_bundle(found, Trust(), path=first)
    assert verified.report == verify_ledger(ledger, Trust()).report


def test_checkpoints_travel_with_a_ledger(ledger: Path, tmp_path: Path) -> None:
    store = SqliteStore(ledger)
    rows = list(store.read(0))
    for seq in (13, 4):
        store.add_checkpoint(signed_bytes(checkpoint(rows, seq, key())))
    stored = stored_checkpoints(store)
    path = tmp_path / "bundle"
    signing = Signing(key(1), at(1))
    export_bundle(store, path, stored=stored, signing=signing)
    with open_bundle(path) as found:
        assert [one.claim.seq for one in found.checkpoints] == [4, 13, 13]
        verified = verify_bundle(found, Trust(frozenset({key(1).id})), path=path)
    assert verified.pinned == 13
    assert [one.trusted for one in verified.findings].count(True) == 1
    assert verify_ledger(ledger, Trust(frozenset({key().id}))).pinned == 13


def test_a_ledger_behind_its_own_checkpoint_is_found(ledger: Path) -> None:
    store = SqliteStore(ledger)
    rows = list(store.read(0))
    later = checkpoint([*rows, rows[-1]], 14, key())
    store.add_checkpoint(signed_bytes(later))
    with pytest.raises(VerificationError, match="were removed"):
        verify_ledger(ledger, Trust())


def test_a_damaged_checkpoint_beside_the_ledger_is_found(ledger: Path) -> None:
    SqliteStore(ledger).add_checkpoint(b"{}")
    with pytest.raises(VerificationError, match="damaged"):
        verify_ledger(ledger, Trust())


def test_a_bundle_can_be_asked_like_a_ledger_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "bundle"
    path.write_bytes(bundle(log()))
    store = bundle_store(path)
    assert store.exists()
    assert store.name == str(path)
    assert tuple(store.read(0)) == log()
    assert tuple(store.read(3, 2)) == log()[3:5]
    assert [store.record(seq) for seq in range(len(log()) + 2)] == [
        None,
        *log(),
        None,
    ]
    assert store.load_snapshot() is None
    assert store.checkpoints() == []
    store.save_snapshot(b"")
    store.close()
    for refused in (store.turn, lambda: store.add_checkpoint(b"")):
        with pytest.raises(UsageError, match="is read-only here"):
            refused()  # type: ignore[no-untyped-call]


def test_a_ledger_can_be_asked_as_it_was() -> None:
    store = up_to(given(log()), 5)
    assert tuple(store.read(0)) == log()[:5]
    assert tuple(store.read(3, 1)) == log()[3:4]
    assert store.record(5) == log()[4]
    assert store.record(6) is None


@pytest.mark.spec("AUD-5")
@pytest.mark.parametrize("data", [b"", b"PK", b"%PDF", b"SQLite format 3\x00" * 9])
def test_what_is_no_bundle_is_told_apart_from_a_broken_one(
    tmp_path: Path, data: bytes
) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(InputError, match="not an audit bundle"), open_bundle(path):
        pass
    for missing in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match="cannot read"), open_bundle(missing):
            pass


def test_nothing_is_written_where_the_ledger_is_damaged(tmp_path: Path) -> None:
    rows = list(log())
    rows[5] = Record(6, rows[5].payload + b" ", rows[5].hash)
    with pytest.raises(VerificationError, match="entry 6"):
        export_bundle(given(rows), tmp_path / "bundle")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_ledger_has_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no entry"):
        export_bundle(given([]), tmp_path / "bundle")
    with pytest.raises(UsageError, match="no entry"):
        sign_checkpoint(given([]), Signing(key(), at(1)))
    with pytest.raises(UsageError, match="no ledger"):
        open_log(tmp_path / "missing.db")
    with pytest.raises(UsageError, match="a folder"):
        open_log(tmp_path)


def test_receipts_are_for_the_latest_answer(tmp_path: Path) -> None:
    path = tmp_path / "bundle"
    path.write_bytes(bundle(log()))
    store, signing = bundle_store(path), Signing(key(), at(2))
    claims = [sign_receipt(store, one, signing).claim for one in ("r-1", "huge", "old")]
    assert [claim.seq for claim in claims] == [4, 9, 2]
    with pytest.raises(InputError, match="unknown release"):
        sign_receipt(store, "r-9", signing)


def test_pages_are_bounded_and_whole() -> None:
    small = [Record(seq, b"x", "") for seq in range(1, 2 * PAGE_RECORDS + 2)]
    assert [page.count(b"\n") for page in paged(small)] == [
        PAGE_RECORDS,
        PAGE_RECORDS,
        1,
    ]
    large = b"x" * (PAGE_BYTES // 2)
    odd = [Record(1, large, ""), Record(2, large, ""), Record(3, large * 4, "")]
    assert [len(page) for page in paged(odd)] == [
        len(large) + 1,
        len(large) + 1,
        4 * len(large) + 1,
    ]
    assert list(paged([])) == []


def test_a_manifest_that_lies_is_found() -> None:
    rows = log()
    honest = Survey(rows).manifest([])
    for lie in (
        replace(honest, entries=honest.entries + 1),
        replace(honest, head="0" * 64),
        replace(honest, ledger="0" * 64),
        replace(honest, pages=honest.pages + 1),
        replace(honest, pages=0),
        replace(honest, checkpoints=1),
        replace(honest, keys=("0" * 64,)),
        replace(honest, policies=honest.policies + 1),
    ):
        with pytest.raises(VerificationError):
            list(BundleReader(members(lie, [], rows)).records())
    assert tuple(BundleReader(members(honest, [], rows)).records()) == rows


# --- pages, checkpoints and sizes as they are written ------------------------------


def refuses(written: Iterable[Member], why: str) -> None:
    with pytest.raises(VerificationError, match=why):
        list(BundleReader(written).records())


@pytest.mark.spec("AUD-2")
def test_pages_that_are_filled_in_another_way_are_refused() -> None:
    rows = log()
    honest = Survey(rows).manifest([])
    (whole,) = [data for name, data in bundled(rows) if name.startswith("records/")]
    policies = [one for one in bundled(rows) if one[0].startswith("policies/")]
    lines = whole.splitlines(keepends=True)
    for pages in ([*lines], [b"".join(lines[:5]), b"".join(lines[5:])]):
        manifest = replace(honest, pages=len(pages))
        named = [(page_name(place), data) for place, data in enumerate(pages, 1)]
        written = [("manifest.json", manifest.to_bytes()), *named, *policies]
        refuses(written, "not in canonical form")


@pytest.mark.spec("AUD-2")
@pytest.mark.parametrize(
    "page", [b"1\n" * (PAGE_RECORDS + 1), (b"1" * (PAGE_BYTES // 2) + b"\n") * 2]
)
def test_a_page_that_is_too_large_is_not_taken_apart(page: bytes) -> None:
    manifest = Manifest("0" * 64, 1, "0" * 64, 1, 0, (), 0)
    written = [("manifest.json", manifest.to_bytes()), (page_name(1), page)]
    refuses(written, "not in canonical form")


@pytest.mark.spec("AUD-2")
def test_checkpoints_are_in_order_and_there_once() -> None:
    rows = log()
    first, second = checkpoint(rows, 5, key()), checkpoint(rows, 9, key())
    keys = [one for one in bundled(rows, [first]) if one[0].startswith("keys/")]
    for found in ([first, first], [second, first]):
        manifest = Survey(rows).manifest(found)
        written = [
            ("manifest.json", manifest.to_bytes()),
            *keys,
            *(
                (checkpoint_name(place), signed_bytes(one))
                for place, one in enumerate(found, 1)
            ),
        ]
        refuses(written, "in order")


@pytest.mark.spec("AUD-5")
@pytest.mark.parametrize(
    "name", ["manifest.json", key_name("0" * 64), checkpoint_name(1)]
)
def test_no_more_is_read_than_a_member_of_its_kind_may_have(name: str) -> None:
    size = member_bytes_max(name) + 1
    head = Directory().add(name, bytes(size))
    counts: list[int] = []
    file = BytesIO(head + bytes(64))

    def read(count: int) -> bytes:
        counts.append(count)
        return file.read(count)

    with pytest.raises(ValueError, match="larger than any"):
        list(unpacked(read, member_bytes_max))
    assert max(counts) < 200


def test_a_checkpoint_that_states_another_state_is_found() -> None:
    rows = log()
    right = audit(rows[:5]).state_digest
    checked(bundle(rows, [checkpoint(rows, 5, key(), state=right)]))
    for seq in (5, len(rows)):
        wrong = checkpoint(rows, seq, key(), state="0" * 64)
        with pytest.raises(VerificationError, match="differs from the signed one"):
            checked(bundle(rows, [wrong]))
