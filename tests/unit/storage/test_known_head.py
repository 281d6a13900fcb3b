"""A head that is known from elsewhere: what is behind it is refused."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from samples.postgres import Cluster
from samples.stores import Place, append, numbered, postgres_place, sqlite_place

from modicum.core.errors import Code, ModicumError, VerificationError
from modicum.ledger import Record
from modicum.writer.known_head import HeadFile, KnownHead


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("postgres")
        return postgres_place(cluster)
    return sqlite_place(tmp_path / "ledger.db", keep_open=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "3:",
        f"3:{'a' * 11}",
        f"0:{'a' * 64}",
        f"3:{'a' * 65}",
        f"-3:{'a' * 64}",
        f"3:{'g' * 64}",
        f"3 :{'a' * 64}",
        f"3:{'a' * 64}\n4:{'a' * 64}",
        f"²:{'a' * 64}",
    ],
)
def test_what_is_no_head(text: str) -> None:
    assert KnownHead.read(text) is None


def test_what_is_a_head() -> None:
    assert KnownHead.read(f" 3:{'A' * 12}\n") == (3, "a" * 12)
    assert KnownHead.read(f"41:{'0' * 64}") == (41, "0" * 64)


@pytest.mark.spec("LED-18")
def test_a_ledger_behind_a_known_head_is_refused(place: Place) -> None:
    store = place.open()
    records = numbered(1, 4)
    append(store, records[:3])
    for one in records[:3]:
        KnownHead(one.seq, one.hash).must_be_in(store)
        KnownHead(one.seq, one.hash[:12]).must_be_in(store)
    for known in (KnownHead(4, records[3].hash), KnownHead(2, records[2].hash)):
        with pytest.raises(VerificationError, match="known head") as caught:
            known.must_be_in(store)
        assert caught.value.code is Code.LEDGER_BEHIND
    store.close()


def head(seq: int) -> Record:
    return Record(seq, b"", f"{seq:064x}")


def test_the_file_keeps_the_latest_head(tmp_path: Path) -> None:
    path = tmp_path / "head"
    assert HeadFile(path).read() is None
    HeadFile(path).keep(head(7))
    HeadFile(path).keep(head(5))  # Another process that has read less.
    assert path.read_text() == f"7:{7:064x}\n"
    HeadFile(path).keep(head(9))
    assert HeadFile(path).read() == (9, f"{9:064x}")


@pytest.mark.parametrize("text", ["", "7", "7:abc\n"])
def test_a_file_without_a_head_shows_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "head").write_text(text)
    for attempt in (HeadFile(tmp_path / "head").read, lambda: keep(tmp_path / "head")):
        with pytest.raises(VerificationError, match="contains no head"):
            attempt()
    assert (tmp_path / "head").read_text() == text


def keep(path: Path) -> None:
    HeadFile(path).keep(head(9))


def test_a_file_that_cannot_be_written_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(ModicumError, match="cannot write") as caught:
        keep(tmp_path / "nowhere" / "head")
    assert caught.value.code is Code.FILE_UNREADABLE


def test_the_file_follows_until_the_end(tmp_path: Path) -> None:
    path, now, failed = tmp_path / "folder" / "head", [head(1)], threading.Event()
    path.parent.mkdir()
    kept = HeadFile(path)
    kept.follow(lambda: now[-1], lambda *_: failed.set())
    assert path.read_text().startswith("1:")  # At once.
    path.parent.rename(tmp_path / "gone")
    now.append(head(2))
    assert failed.wait(60)
    (tmp_path / "gone").rename(path.parent)
    now.append(head(3))
    kept.close()  # It tries again, however soon the end comes.
    assert path.read_text().startswith("3:")
