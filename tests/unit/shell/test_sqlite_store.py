"""The SQLite store: turns, identity, and readers that write nothing."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from samples.small import counts, workspace

from modicum.core.errors import (
    Code,
    UnavailableError,
    UsageError,
    VerificationError,
)
from modicum.ledger import Record
from modicum.shell.sqlite_store import SqliteStore

RECORDS = [Record(n, f"payload {n}".encode(), f"{n:064}") for n in range(1, 4)]


def fingerprint(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder with its bytes."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    assert not store.exists()
    with store.turn() as turn:
        assert list(turn.read(0)) == []
        turn.append(RECORDS[:2])
    with store.turn() as turn:
        assert list(turn.read(1)) == RECORDS[1:2]
        turn.append(RECORDS[2:])
    assert store.exists()
    assert list(SqliteStore(tmp_path / "a.db").read(0)) == RECORDS
    assert list(store.read(2)) == RECORDS[2:]


def test_a_turn_that_fails_stores_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    with store.turn() as turn:
        turn.append(RECORDS[:1])
    with contextlib.suppress(KeyError), store.turn() as turn:
        turn.append(RECORDS[1:2])
        raise KeyError
    assert list(store.read(0)) == RECORDS[:1]


def test_a_number_that_is_taken_cannot_be_stored_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    with store.turn() as turn:
        turn.append(RECORDS[:1])
    with pytest.raises(VerificationError), store.turn() as turn:
        turn.append(RECORDS[:1])
    assert list(store.read(0)) == RECORDS[:1]


def test_it_waits_for_its_turn_and_then_gives_up(tmp_path: Path) -> None:
    patient = SqliteStore(tmp_path / "a.db")
    hasty = SqliteStore(tmp_path / "a.db", wait_seconds=0.05)
    with patient.turn() as turn:
        turn.append(RECORDS[:1])
        for attempt in (lambda: hasty.read(0), lambda: hasty.turn().__enter__()):
            with pytest.raises(UnavailableError) as caught:
                attempt()
            assert caught.value.code is Code.LEDGER_BUSY
    assert list(hasty.read(0)) == RECORDS[:1]


@pytest.mark.parametrize("contents", [b"modicum: policy/v1\n" * 99, b"\x00" * 9000])
def test_a_file_that_is_no_ledger_is_left_alone(
    tmp_path: Path, contents: bytes
) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(contents)
    for attempt in (
        lambda: SqliteStore(path).read(0),
        lambda: SqliteStore(path).turn().__enter__(),
    ):
        with pytest.raises(VerificationError) as caught:
            attempt()
        assert caught.value.code is Code.NOT_A_LEDGER
    assert path.read_bytes() == contents


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY)")
    connection.close()
    before = path.read_bytes()
    for attempt in (
        lambda: SqliteStore(path).read(0),
        lambda: SqliteStore(path).turn().__enter__(),
    ):
        with pytest.raises(VerificationError) as caught:
            attempt()
        assert caught.value.code is Code.NOT_A_LEDGER
    assert path.read_bytes() == before


def test_a_newer_table_version_is_refused(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    with store.turn() as turn:
        turn.append(RECORDS)
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(VerificationError) as caught:
        store.read(0)
    assert "newer" in caught.value.problems[0].help


def test_a_folder_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "none" / "a.db")
    assert not store.exists()
    with pytest.raises(UnavailableError) as caught:
        store.turn().__enter__()
    assert caught.value.code is Code.LEDGER_UNWRITABLE
    with pytest.raises(UsageError):
        SqliteStore(tmp_path / "b.db").read(0)


# A process that appends two entries and dies before it can tidy up, so that they
# stand in the write-ahead log only.
DIES = """
import os, signal, sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from samples.small import counts, workspace
import modicum.shell.sqlite_store as s

class Dies:
    def __init__(self, connection): self.connection = connection
    def __enter__(self): return self.connection
    def __exit__(self, *_):
        if Path(sys.argv[1], "ledger.db-wal").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        self.connection.close()

s.closing = Dies
workspace(Path(sys.argv[1])).submit(counts("r-killed", rho="0.015"))
"""


def leave_a_wal(folder: Path) -> None:
    """Submit a release in a process that is killed right after its commit."""
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", DIES, folder, root / "tests", root / "src"], check=False
    )
    assert done.returncode == -9
    assert (folder / "ledger.db-wal").stat().st_size > 0


@pytest.mark.spec("LED-7")
@pytest.mark.parametrize("killed", [False, True])
def test_reading_writes_no_byte_also_after_a_kill(tmp_path: Path, killed: bool) -> None:
    workspace(tmp_path).submit(counts("r-1"))
    if killed:
        leave_a_wal(tmp_path)
    before = fingerprint(tmp_path)
    ws = workspace(tmp_path)
    assert ws.check(counts("r-2")).allowed
    # What the killed process committed is seen, and counts.
    assert ws.check(counts("r-3", rho="0.015")).allowed == (not killed)
    assert ws.verify().entries == (3 if killed else 2)
    ws.standings()
    list(ws.records())
    assert fingerprint(tmp_path) == before


@pytest.mark.spec("LED-8")
def test_the_next_turn_recovers_what_a_killed_one_committed(tmp_path: Path) -> None:
    leave_a_wal(tmp_path)
    ws = workspace(tmp_path)
    assert ws.submit(counts("r-killed", rho="0.015")).retry
    assert not ws.submit(counts("r-2", rho="0.015")).allowed
    assert ws.verify().entries == 3


@pytest.mark.spec("LED-7")
def test_a_ledger_in_a_folder_one_may_only_read(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    workspace(folder).submit(counts("r-1"))
    shutil.copy(folder / "ledger.db", tmp_path / "ledger.db")
    assert workspace(tmp_path).state().seq == 2  # Without its lock file.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.db", "locked"]
    folder.chmod(0o555)
    try:
        assert workspace(folder).check(counts("r-2")).allowed
    finally:
        folder.chmod(0o755)


def test_a_kill_while_the_file_is_made_leaves_a_ledger_that_can_begin(
    tmp_path: Path,
) -> None:
    connection = sqlite3.connect(tmp_path / "ledger.db")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    assert os.path.getsize(tmp_path / "ledger.db") > 0
    ws = workspace(tmp_path)
    assert ws.state().seq == 0
    assert ws.submit(counts("r-1")).allowed
    assert ws.verify().entries == 2


@pytest.mark.spec("LED-7")
def test_a_link_to_a_ledger_is_that_ledger(tmp_path: Path) -> None:
    folder, links = tmp_path / "real", tmp_path / "links"
    folder.mkdir()
    links.mkdir()
    workspace(folder).submit(counts("r-1"))
    leave_a_wal(folder)
    (links / "ledger.db").symlink_to(folder / "ledger.db")
    # What the killed process committed is seen through the link.
    assert workspace(links).state().seq == 3
    assert not workspace(links).check(counts("r-2", rho="0.015")).allowed
    workspace(links).submit(counts("r-2", rho="0.001"))
    assert [path.name for path in links.iterdir()] == ["ledger.db"]
    assert workspace(folder).verify().entries == 4


@pytest.mark.spec("LED-7")
def test_a_copy_in_another_journal_mode_is_brought_back_to_wal(tmp_path: Path) -> None:
    workspace(tmp_path).submit(counts("r-1"))
    connection = sqlite3.connect(tmp_path / "ledger.db")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    workspace(tmp_path).submit(counts("r-2"))
    connection = sqlite3.connect(tmp_path / "ledger.db")
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    connection.close()


@pytest.mark.spec("LED-7")
def test_a_hot_rollback_journal_is_rolled_back_in_a_copy(tmp_path: Path) -> None:
    """A journal that a killed writer of another mode left behind is not overlooked."""
    workspace(tmp_path).submit(counts("r-1"))
    script = (
        "import os, signal, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA journal_mode = DELETE')\n"
        "c.execute('PRAGMA cache_size = 1')\n"
        "c.execute('BEGIN IMMEDIATE')\n"
        "c.execute('DELETE FROM events')\n"
        "for n in range(400):\n"
        "    row = (n + 9, b'x' * 999, 'h')\n"
        "    c.execute('INSERT INTO events VALUES (?, ?, ?)', row)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path / "ledger.db"], check=False)
    assert (tmp_path / "ledger.db-journal").stat().st_size > 0
    before = fingerprint(tmp_path)
    assert workspace(tmp_path).verify().entries == 2
    assert fingerprint(tmp_path) == before
    assert workspace(tmp_path).submit(counts("r-2")).allowed


def test_a_row_that_is_no_bytes_is_a_broken_ledger(tmp_path: Path) -> None:
    workspace(tmp_path).submit(counts("r-1"))
    connection = sqlite3.connect(tmp_path / "ledger.db")
    connection.execute("UPDATE events SET payload = x'7465' WHERE seq = 2")
    connection.commit()
    connection.close()
    for verb in (workspace(tmp_path).state, workspace(tmp_path).verify):
        with pytest.raises(VerificationError):
            verb()
