"""The SQLite store: identity, readers that write nothing, servers, older tables."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest
from samples.stores import ROOT, Place, append, numbered, sqlite_place

from modicum.core.errors import (
    Code,
    UnavailableError,
    UsageError,
    VerificationError,
)
from modicum.storage.sqlite_lock import SqliteLock
from modicum.storage.sqlite_store import SqliteStore
from modicum.storage.sqlite_tables import SCHEMA_VERSION

GOLDEN = ROOT / "tests" / "golden" / "ledgers" / "v1.db"
GOLDEN_HEAD = "41bef02409f803abbef8b96f4faff7fbcfa4b8de1d37f05dad548bb805dc7b11"


def fingerprint(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder with its bytes."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def look(path: Path) -> list[int]:
    """Ask everything that can be asked without a turn; return the numbers read."""
    store = SqliteStore(path)
    assert store.exists()
    store.checkpoints()
    store.record(1)
    store.load_snapshot()
    numbers = [record.seq for record in store.read(0)]
    store.close()
    return numbers


def attempts(path: Path, *, keep_open: bool = False) -> list[UsageError]:
    """Return what reading, a turn and a checkpoint complain about."""
    store = SqliteStore(path, keep_open=keep_open)
    caught = []
    for attempt in (
        lambda: store.read(0),
        lambda: append(store, numbered(1, 1)),
        lambda: store.add_checkpoint(b"x"),
    ):
        with pytest.raises((VerificationError, UnavailableError, UsageError)) as one:
            attempt()
        caught.append(one.value)
    store.close()
    return caught  # type: ignore[return-value]


# --- what is no ledger ---


@pytest.mark.parametrize("keep_open", [False, True])
@pytest.mark.parametrize("contents", [b"modicum: policy/v1\n" * 99, b"\x00" * 9000])
def test_a_file_that_is_no_ledger_is_left_alone(
    tmp_path: Path, contents: bytes, keep_open: bool
) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(contents)
    for error in attempts(path, keep_open=keep_open):
        assert error.code is Code.NOT_A_LEDGER
    assert path.read_bytes() == contents


@pytest.mark.parametrize("keep_open", [False, True])
def test_another_programs_database_is_left_alone(
    tmp_path: Path, keep_open: bool
) -> None:
    path = tmp_path / "a.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY)")
    connection.close()
    before = path.read_bytes()
    for error in attempts(path, keep_open=keep_open):
        assert error.code is Code.NOT_A_LEDGER
    assert path.read_bytes() == before


def test_a_file_that_is_cut_off_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    append(SqliteStore(path), numbered(1, 40, size=900))
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(VerificationError) as caught:
        list(SqliteStore(path).read(0))
    assert caught.value.code is Code.LEDGER_BROKEN


def test_a_row_that_is_no_bytes_is_read_as_empty(tmp_path: Path) -> None:
    """No record of modicum is empty: the chain finds it."""
    path = tmp_path / "a.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, payload, hash)")
    connection.execute("INSERT INTO events VALUES (1, 'text', NULL)")
    connection.execute(f"PRAGMA application_id = {0x6D6F6469}")
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()
    (record,) = SqliteStore(path).read(0)
    assert (record.payload, record.hash) == (b"", "None")


@pytest.mark.parametrize("keep_open", [False, True])
def test_a_file_that_is_not_there_is_said_so(tmp_path: Path, keep_open: bool) -> None:
    store = SqliteStore(tmp_path / "none" / "a.db", keep_open=keep_open)
    assert not store.exists()
    with pytest.raises(UnavailableError) as caught, store.turn():
        raise AssertionError
    assert caught.value.code is Code.LEDGER_UNWRITABLE
    assert "folder" in caught.value.problems[0].help
    with pytest.raises(UsageError):
        SqliteStore(tmp_path / "b.db", keep_open=keep_open).read(0)
    assert list(tmp_path.iterdir()) == []


# --- readers that write nothing ---


def leave_a_wal(place: Place, first: int) -> None:
    """Append an entry in a process that dies before it can tidy up."""
    ended, _ = place.run(
        "import modicum.storage.sqlite_connection as access\n"
        "class Dies:\n"
        "    def __init__(self, connection): self.connection = connection\n"
        "    def __enter__(self): return self.connection\n"
        "    def __exit__(self, *_): die()\n"
        "access.closing = Dies\n"
        "with store.turn() as turn:\n"
        f"    turn.append(numbered({first}, {first}))\n"
    )
    assert ended == -9
    assert Path(f"{place.url}-wal").stat().st_size > 0


@pytest.mark.spec("LED-7")
@pytest.mark.parametrize("killed", [False, True])
def test_reading_writes_no_byte_also_after_a_kill(tmp_path: Path, killed: bool) -> None:
    place = sqlite_place(tmp_path / "a.db", keep_open=False)
    append(place.open(), numbered(1, 3))
    if killed:
        leave_a_wal(place, 4)
    before = fingerprint(tmp_path)
    assert look(tmp_path / "a.db") == ([1, 2, 3, 4] if killed else [1, 2, 3])
    assert fingerprint(tmp_path) == before


@pytest.mark.spec("LED-8")
@pytest.mark.parametrize("keep_open", [False, True])
def test_the_next_turn_recovers_what_a_killed_one_committed(
    tmp_path: Path, keep_open: bool
) -> None:
    place = sqlite_place(tmp_path / "a.db", keep_open=False)
    append(place.open(), numbered(1, 3))
    leave_a_wal(place, 4)
    store = SqliteStore(tmp_path / "a.db", keep_open=keep_open)
    with store.turn() as turn:
        assert [record.seq for record in turn.read(2)] == [3, 4]
        turn.append(numbered(5, 5))
    store.close()
    assert not Path(f"{place.url}-wal").exists()
    assert look(tmp_path / "a.db") == [1, 2, 3, 4, 5]


@pytest.mark.spec("LED-7")
def test_a_ledger_in_a_folder_one_may_only_read(tmp_path: Path) -> None:
    folder, alone = tmp_path / "locked", tmp_path / "alone"
    folder.mkdir()
    alone.mkdir()
    append(SqliteStore(folder / "a.db"), numbered(1, 2))
    shutil.copy(folder / "a.db", alone / "a.db")
    assert look(alone / "a.db") == [1, 2]  # Without its lock files.
    assert [path.name for path in alone.iterdir()] == ["a.db"]
    for path in folder.iterdir():
        path.chmod(stat.S_IRUSR)
    folder.chmod(0o555)
    try:
        assert look(folder / "a.db") == [1, 2]
    finally:
        folder.chmod(0o755)


def test_locks_of_which_some_are_missing_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    append(SqliteStore(path, keep_open=True), numbered(1, 1))
    for missing in ("queue", "lock", "live"):
        Path(f"{path}.{missing}").unlink()
        assert look(path) == [1]
        append(SqliteStore(path), [])
        SqliteStore(path, keep_open=True).read(0)


@pytest.mark.spec("LED-7")
def test_a_link_to_a_ledger_is_that_ledger(tmp_path: Path) -> None:
    folder, links = tmp_path / "real", tmp_path / "links"
    folder.mkdir()
    links.mkdir()
    place = sqlite_place(folder / "a.db", keep_open=False)
    append(place.open(), numbered(1, 2))
    leave_a_wal(place, 3)
    (links / "a.db").symlink_to(folder / "a.db")
    # What the killed process committed is seen through the link.
    assert look(links / "a.db") == [1, 2, 3]
    append(SqliteStore(links / "a.db"), numbered(4, 4))
    assert [path.name for path in links.iterdir()] == ["a.db"]
    assert look(folder / "a.db") == [1, 2, 3, 4]


@pytest.mark.spec("LED-7")
def test_a_copy_in_another_journal_mode_is_brought_back_to_wal(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    append(SqliteStore(path), numbered(1, 1))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    append(SqliteStore(path), numbered(2, 2))
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    connection.close()


@pytest.mark.spec("LED-7")
def test_a_hot_rollback_journal_is_rolled_back_in_a_copy(tmp_path: Path) -> None:
    """A journal that a killed writer of another mode left behind is not overlooked."""
    path = tmp_path / "a.db"
    append(SqliteStore(path), numbered(1, 2))
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
    subprocess.run([sys.executable, "-c", script, path], check=False)
    assert Path(f"{path}-journal").stat().st_size > 0
    before = fingerprint(tmp_path)
    assert look(path) == [1, 2]
    assert fingerprint(tmp_path) == before
    append(SqliteStore(path), numbered(3, 3))
    assert look(path) == [1, 2, 3]


def test_a_kill_while_the_file_is_made_leaves_a_ledger_that_can_begin(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    assert os.path.getsize(path) > 0
    assert look(path) == []
    append(SqliteStore(path), numbered(1, 1))
    assert look(path) == [1]


# --- servers ---


@pytest.fixture
def no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the ledger was copied")

    monkeypatch.setattr(shutil, "copyfile", refuse)


@pytest.mark.usefixtures("no_copies")
def test_beside_a_server_a_command_reads_without_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    server = SqliteStore(path, keep_open=True)
    append(server, numbered(1, 2))
    assert Path(f"{path}-wal").stat().st_size > 0
    assert look(path) == [1, 2]
    append(SqliteStore(path), numbered(3, 3))
    append(server, numbered(4, 4))
    assert look(path) == [1, 2, 3, 4]
    server.close()
    assert not Path(f"{path}-wal").exists()
    assert look(path) == [1, 2, 3, 4]


@pytest.mark.usefixtures("no_copies")
def test_a_reader_beside_a_server_outlives_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    server = SqliteStore(path, keep_open=True)
    append(server, numbered(1, 1500))
    records = SqliteStore(path).read(0)
    assert next(records).seq == 1
    server.close()
    assert [record.seq for record in records] == list(range(2, 1501))


def test_a_killed_server_is_noticed(tmp_path: Path) -> None:
    """Nobody has the ledger open any more: a reader must not let SQLite tidy up."""
    place = sqlite_place(tmp_path / "a.db", keep_open=True)
    ended, _ = place.run("with store.turn() as t: t.append(numbered(1, 3))\ndie()")
    assert ended == -9
    before = fingerprint(tmp_path)
    assert before["a.db-wal"]
    assert look(tmp_path / "a.db") == [1, 2, 3]
    assert fingerprint(tmp_path) == before


def test_several_servers_keep_one_ledger_open(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    servers = [SqliteStore(path, keep_open=True) for _ in range(3)]
    for n in range(1, 31):
        with servers[n % 3].turn() as turn:
            assert [record.seq for record in turn.read(0)] == list(range(1, n))
            turn.append(numbered(n, n))
        assert [record.seq for record in servers[(n + 1) % 3].read(n - 1)] == [n]
    for server in servers:
        server.close()
    assert not Path(f"{path}-wal").exists()
    assert look(path) == list(range(1, 31))


@pytest.mark.spec("LED-18")
@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("only", ["reads", "writes", "both"])
def test_a_server_ends_when_another_file_takes_the_place(
    tmp_path: Path, removed: bool, only: str
) -> None:
    """It used to follow: with the write-ahead log of the file before, that destroys."""
    path, backup = tmp_path / "a.db", tmp_path / "b.db"
    append(SqliteStore(backup), numbered(1, 1))
    append(SqliteStore(path), numbered(1, 3))
    server = SqliteStore(path, keep_open=True)
    if only != "writes":
        assert [record.seq for record in server.read(0)] == [1, 2, 3]
    if only != "reads":
        append(server, [])
    if removed:
        path.unlink()
    else:
        backup.replace(path)
    before = fingerprint(tmp_path)
    for attempt in (
        server.exists,
        lambda: list(server.read(0)),
        lambda: append(server, numbered(2, 2)),
        lambda: server.add_checkpoint(b"x"),
        lambda: list(server.read(0)),
    ):
        with pytest.raises(VerificationError) as caught:
            attempt()
        assert "was replaced or removed" in str(caught.value)
    assert fingerprint(tmp_path).get("a.db") == before.get("a.db")
    server.close()
    if not removed:
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        assert look(path) == [1]


FILE = "modicum.storage.sqlite_connection._file"


@pytest.mark.spec("LED-18")
def test_what_another_thread_makes_just_then_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = SqliteStore(tmp_path / "a.db", keep_open=True)
    with monkeypatch.context() as patched:

        def made_after_a_look(path: Path) -> os.stat_result | None:
            patched.undo()
            assert not path.exists()
            append(server, numbered(1, 3))
            return None

        patched.setattr(FILE, made_after_a_look)
        assert not server.exists()
    assert server.exists()
    assert [record.seq for record in server.read(0)] == [1, 2, 3]
    server.close()


@pytest.mark.spec("LED-18")
def test_what_is_closed_just_then_may_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, backup = tmp_path / "a.db", tmp_path / "b.db"
    append(SqliteStore(backup), numbered(1, 1))
    server = SqliteStore(path, keep_open=True)
    append(server, numbered(1, 3))
    with monkeypatch.context() as patched:

        def closed_before_a_look(path: Path) -> os.stat_result:
            patched.undo()
            server.close()
            backup.replace(path)
            return path.stat()

        patched.setattr(FILE, closed_before_a_look)
        assert server.exists()
    assert [record.seq for record in server.read(0)] == [1]
    server.close()


@pytest.mark.spec("LED-18")
@pytest.mark.parametrize("keep_open", [False, True])
def test_a_ledger_with_two_names_is_not_written(
    tmp_path: Path, keep_open: bool
) -> None:
    """Each name would have locks of its own, and a write-ahead log of its own."""
    path, other = tmp_path / "a.db", tmp_path / "other" / "b.db"
    other.parent.mkdir()
    store = SqliteStore(path, keep_open=keep_open)
    append(store, numbered(1, 1))
    other.hardlink_to(path)
    for one in (store, SqliteStore(path), SqliteStore(other, keep_open=True)):
        with pytest.raises(UsageError) as caught:
            append(one, numbered(2, 2))
        assert "hard link" in str(caught.value)
    assert [one.name for one in other.parent.glob("*-wal")] == []
    other.unlink()
    append(store, numbered(2, 2))
    store.close()
    assert look(path) == [1, 2]


@pytest.mark.spec("LED-7")
def test_beside_a_server_that_has_not_spoken_a_reader_makes_no_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    append(SqliteStore(path), numbered(1, 2))
    release = SqliteLock(path, 1.0).mark_live()
    before = fingerprint(tmp_path)
    assert look(path) == [1, 2]
    assert fingerprint(tmp_path) == before
    release()


def test_a_fork_in_a_turn_locks_nobody_out(tmp_path: Path) -> None:
    for keep_open in (False, True):
        place = sqlite_place(tmp_path / f"{keep_open}.db", keep_open=keep_open)
        ended, output = place.run(
            "import time\n"
            "from modicum.storage.sqlite_lock import SqliteLock\n"
            "with store.turn() as turn:\n"
            "    turn.append(numbered(1, 1))\n"
            "    child = os.fork()\n"
            "    if child == 0:\n"
            "        time.sleep(600)\n"
            "store.close()\n"
            "with SqliteLock(sys.argv[1], 0.5).writing(): say('turn')\n"
            "with SqliteLock(sys.argv[1], 0.5).reading() as live: say(str(live))\n"
            "os.kill(child, 9)\n"
        )
        assert (ended, output.split()) == (0, ["turn", "False"])


def test_a_child_that_leaves_the_turn_does_not_end_it(tmp_path: Path) -> None:
    ended, output = sqlite_place(tmp_path / "a.db", keep_open=False).run(
        "from modicum.storage.sqlite_lock import SqliteLock, TurnTimeoutError\n"
        "with SqliteLock(sys.argv[1], 0.05).writing():\n"
        "    child = os.fork()\n"
        "    if child:\n"
        "        os.waitpid(child, 0)\n"
        "        try:\n"
        "            with SqliteLock(sys.argv[1], 0.05).writing(): say('two')\n"
        "        except TurnTimeoutError:\n"
        "            say('one')\n"
        "if child == 0:\n"
        "    os._exit(0)\n"
    )
    assert (ended, output.split()) == (0, ["one"])


# --- what others put into the file ---

SWALLOW = "CREATE TRIGGER gone AFTER INSERT ON events BEGIN DELETE FROM events; END"


def meddle(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.spec("LED-19")
@pytest.mark.parametrize("keep_open", [False, True])
@pytest.mark.parametrize(
    "statement",
    [
        SWALLOW,
        "CREATE VIEW more AS SELECT * FROM events",
        "CREATE TABLE more (x)",
        "CREATE INDEX more ON events (hash)",
        "DROP TABLE checkpoints",
    ],
)
def test_a_ledger_with_more_or_less_than_its_tables_is_refused(
    tmp_path: Path, keep_open: bool, statement: str
) -> None:
    path = tmp_path / "a.db"
    store = SqliteStore(path, keep_open=keep_open)
    append(store, numbered(1, 2))
    meddle(path, statement)
    for attempt in (
        lambda: append(store, numbered(3, 3)),
        lambda: list(store.read(0)),
        lambda: list(SqliteStore(path).read(0)),
    ):
        with pytest.raises(VerificationError) as caught:
            attempt()
        assert caught.value.code is Code.LEDGER_BROKEN
    store.close()


@pytest.mark.spec("LED-19")
def test_what_is_kept_open_is_looked_at_whenever_another_changed_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    store = SqliteStore(path, keep_open=True)
    for seq in (1, 2, 3):
        append(store, numbered(seq, seq))
    append(SqliteStore(path), numbered(4, 4))
    append(store, numbered(5, 5))
    meddle(path, SWALLOW)
    for _ in range(3):  # Once refused, it is not approved by being the same.
        with pytest.raises(
            VerificationError, match="tables, views or triggers that do not belong"
        ):
            append(store, numbered(6, 6))
    meddle(path, "DROP TRIGGER gone")
    append(store, numbered(6, 6))
    assert look(path) == [1, 2, 3, 4, 5, 6]
    store.close()


def test_tables_whose_making_was_taken_back_are_made_again(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = SqliteStore(path, keep_open=True)
    for _ in range(2):
        with suppress(KeyboardInterrupt), store.turn() as turn:
            turn.append(numbered(1, 1))
            raise KeyboardInterrupt
    append(store, numbered(1, 1))
    append(store, numbered(2, 2))
    assert look(path) == [1, 2]
    store.close()


def test_a_turn_knows_the_last_number_whatever_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = SqliteStore(path, keep_open=True)
    append(store, numbered(1, 5))
    with store.turn() as turn:
        assert [one.seq for one in turn.read(3)] == [4, 5]
        turn.append(numbered(6, 7))
        assert [one.seq for one in turn.read(4)] == [5, 6, 7]
        assert not list(turn.read(9))
        turn.append([])
        turn.append(numbered(8, 8))
        for wrong in (numbered(8, 8), numbered(10, 10)):
            with pytest.raises(VerificationError, match="does not follow"):
                turn.append(wrong)
    assert look(path) == [*range(1, 9)]
    store.close()


@pytest.mark.spec("LED-19")
@pytest.mark.parametrize("keep_open", [False, True])
def test_tables_that_are_made_otherwise_are_not_written(
    tmp_path: Path, keep_open: bool
) -> None:
    path = tmp_path / "a.db"
    store = SqliteStore(path, keep_open=keep_open)
    append(store, [])
    meddle(
        path,
        "DROP TABLE events",
        "CREATE TABLE events (seq INTEGER PRIMARY KEY ON CONFLICT REPLACE,"
        " payload BLOB NOT NULL, hash TEXT NOT NULL) STRICT",
    )
    with pytest.raises(VerificationError):
        append(store, numbered(1, 1))
    store.close()


def test_statistics_and_a_vacuum_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    append(SqliteStore(path), numbered(1, 2))
    meddle(path, "ANALYZE", "VACUUM")
    append(SqliteStore(path), numbered(3, 3))
    assert look(path) == [1, 2, 3]


@pytest.mark.spec("LED-19")
def test_rows_before_the_first_are_found(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    append(SqliteStore(path), numbered(1, 2))
    meddle(path, "INSERT INTO events VALUES (0, x'7b', 'h')")
    with pytest.raises(VerificationError, match="before the first"):
        SqliteStore(path).read(0)


@pytest.mark.spec("LED-19")
def test_what_was_not_stored_is_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trigger that nobody noticed is found when the entries are read back."""
    path = tmp_path / "a.db"
    append(SqliteStore(path), numbered(1, 2))
    meddle(path, SWALLOW.replace("events; END", "events WHERE seq = 3; END"))
    for module, name in (
        ("sqlite_tables", "_refuse_additions"),
        ("sqlite_connection", "refuse_other_tables"),
    ):
        monkeypatch.setattr(f"modicum.storage.{module}.{name}", lambda *_: None)
    with pytest.raises(VerificationError, match="was not stored as it was written"):
        append(SqliteStore(path), numbered(3, 3))
    assert look(path) == [1, 2]


# --- the snapshot ---


def test_a_snapshot_that_was_never_finished_leaves_nothing_for_good(
    tmp_path: Path,
) -> None:
    place = sqlite_place(tmp_path / "a.db", keep_open=False)
    for _ in range(3):
        ended, _ = place.run(
            "os.fsync = lambda _: die()\nstore.save_snapshot(b'x' * 9999)"
        )
        assert ended == -9
    assert [one.name for one in tmp_path.iterdir()] == ["a.db.snapshot.draft"]
    store = place.open()
    assert store.load_snapshot() is None
    store.save_snapshot(b"whole")
    assert [one.name for one in tmp_path.iterdir()] == ["a.db.snapshot"]
    assert store.load_snapshot() == b"whole"


def test_two_who_save_a_snapshot_do_not_mix_theirs(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    draft = Path(f"{path}.snapshot.draft")
    with draft.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        SqliteStore(path).save_snapshot(b"second")
        assert SqliteStore(path).load_snapshot() is None
    SqliteStore(path).save_snapshot(b"third")
    assert SqliteStore(path).load_snapshot() == b"third"


@pytest.mark.parametrize("keep_open", [False, True])
def test_another_program_that_locks_the_file_makes_it_busy(
    tmp_path: Path, keep_open: bool
) -> None:
    path = tmp_path / "a.db"
    store = SqliteStore(path, keep_open=keep_open, wait_seconds=0.05)
    append(store, numbered(1, 1))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(UnavailableError) as caught:
        append(store, numbered(2, 2))
    assert caught.value.code is Code.LEDGER_BUSY
    other.close()
    append(store, numbered(2, 2))
    store.close()
    assert look(path) == [1, 2]


# --- older tables ---


def golden(folder: Path) -> Path:
    """Return a copy of a ledger of table version 1."""
    return Path(shutil.copy(GOLDEN, folder / "a.db"))


def version(path: Path) -> int:
    connection = sqlite3.connect(path)
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return int(found)


def test_an_older_ledger_is_read_as_it_is(tmp_path: Path) -> None:
    path = golden(tmp_path)
    before = fingerprint(tmp_path)
    assert look(path) == list(range(1, 14))
    assert SqliteStore(path).checkpoints() == []
    assert fingerprint(tmp_path) == before
    server = SqliteStore(path, keep_open=True)
    assert len(list(server.read(0))) == 13
    assert server.checkpoints() == []
    server.close()
    assert path.read_bytes() == GOLDEN.read_bytes()


@pytest.mark.parametrize("keep_open", [False, True])
def test_an_older_ledger_is_brought_up_to_date_by_a_turn(
    tmp_path: Path, keep_open: bool
) -> None:
    path = golden(tmp_path)
    records = list(SqliteStore(path).read(0))
    store = SqliteStore(path, keep_open=keep_open)
    with pytest.raises(KeyError), store.turn():
        raise KeyError
    assert version(path) == 1
    store.add_checkpoint(b"c")
    store.close()
    assert version(path) == SCHEMA_VERSION
    assert store.checkpoints() == [b"c"]
    assert list(store.read(0)) == records
    assert records[-1].hash == GOLDEN_HEAD
    store.close()


#: Dies at each statement in turn, before or after it runs; says how each try ended.
DIES_AT = """
import sqlite3
left, when = 0, ""
class Dying(sqlite3.Connection):
    def _count(self, run, *args):
        global left
        left -= 1
        if left == 0 and when == "before":
            die()
        result = run(*args)
        if left == 0:
            die()
        return result
    def execute(self, *args):
        return self._count(super().execute, *args)
    def executemany(self, *args):
        return self._count(super().executemany, *args)
    def close(self):
        return self._count(super().close)
plain = sqlite3.connect
sqlite3.connect = lambda *a, **k: plain(*a, factory=Dying, **k)
for when in ("before", "after"):
    for n in range(99):
        # A child is cheaper than a process; each has a ledger of its own.
        if os.fork() == 0:
            left = n + 1
            store = open_store(f"{sys.argv[1]}.{when}.{n}", keep_open=KEEP_OPEN)
            with store.turn() as turn:
                last = max((record.seq for record in turn.read(0)), default=0)
                turn.append([Record(last + 1, b"new", "h")])
            store.close()
            os._exit(0)
        ended = os.waitstatus_to_exitcode(os.wait()[1])
        say(f"{when} {ended}")
        if ended == 0:
            break
"""


@pytest.mark.spec("LED-8")
@pytest.mark.parametrize("keep_open", [False, True])
@pytest.mark.parametrize("older", [False, True])
def test_a_kill_at_any_statement_leaves_all_or_nothing(
    tmp_path: Path, older: bool, keep_open: bool
) -> None:
    """Also while the tables are made, or brought up to date."""
    path = tmp_path / "a.db"
    for n in range(40 if older else 0):
        for when in ("before", "after"):
            shutil.copy(GOLDEN, f"{path}.{when}.{n}")
    script = DIES_AT.replace("KEEP_OPEN", str(keep_open))
    ended, output = sqlite_place(path, keep_open=keep_open).run(script)
    assert ended == 0
    for when in ("before", "after"):
        ends = [line.split()[1] for line in output.splitlines() if when in line]
        killed = ends.count("-9")
        assert ends == ["-9"] * killed + ["0"]
        assert 8 < killed < 40
        lengths = [check_killed(Path(f"{path}.{when}.{n}")) for n in range(killed + 1)]
        start = 13 if older else 0
        assert set(lengths) == {start, start + 1}
        assert lengths == sorted(lengths)


def check_killed(path: Path) -> int:
    """Return how many entries a killed process left; the ledger must go on."""
    store = SqliteStore(path)
    numbers = [r.seq for r in store.read(0)] if store.exists() else []
    assert numbers == list(range(1, len(numbers) + 1))
    append(store, numbered(len(numbers) + 1, len(numbers) + 1))
    assert version(path) == SCHEMA_VERSION
    return len(numbers)
