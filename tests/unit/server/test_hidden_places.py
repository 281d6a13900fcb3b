"""No answer shows where the ledger is, however its store fails."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors
from samples.postgres import Cluster
from samples.served import HEADER, Served, served
from samples.small import POLICY, counts

import modicum as mo
from modicum.api.local.live_ledger import lost_entries
from modicum.api.local.views.problem_details import details_of
from modicum.core.errors import Code, ModicumError, Problem, UnavailableError
from modicum.storage.postgres_errors import (
    broken,
    error_of,
    forgetful,
    out_of_turn,
)
from modicum.storage.postgres_store import PostgresStore
from modicum.storage.postgres_tables import refuse_version
from modicum.storage.postgres_url import parse_address
from modicum.storage.skew import refuse_skew
from modicum.storage.sqlite_errors import SqliteTroubles, linked, replaced
from modicum.storage.sqlite_store import SqliteStore
from modicum.storage.sqlite_tables import not_a_ledger, version_of
from modicum.storage.witness.heads import KnownHead, unreachable

FOLDER, FILE = "/srv/hidden-folder", "hidden-file.db"
URL = "postgresql://hidden-user:hidden-word@hidden-host:5499/hidden-base"
PATH = Path(FOLDER, FILE)

#: What a server, or the library that connects to it, says of a failure.
DRIVER = (
    psycopg.OperationalError(
        'connection failed: connection to server at "hidden-host", port 5499 failed:'
        " Connection refused"
    ),
    psycopg.OperationalError('FATAL:  database "hidden-base" does not exist'),
    psycopg.OperationalError(
        'connection failed: FATAL:  password authentication failed for user "hidden-u"'
    ),
    psycopg.InterfaceError("the connection is closed"),
    errors.LockNotAvailable("canceling statement due to lock timeout"),
    errors.TooManyConnections('too many connections for role "hidden-user"'),
    errors.DiskFull('could not extend file "/hidden-folder/base/1": No space left'),
    errors.InsufficientPrivilege("permission denied for schema hidden-base"),
    errors.ReadOnlySqlTransaction("cannot execute INSERT in a read-only transaction"),
    errors.DuplicateTable('relation "hidden-base" already exists'),
    errors.UndefinedTable('relation "hidden-base.events" does not exist'),
)


def sqlite_error(name: str) -> sqlite3.Error:
    error = sqlite3.OperationalError(f"it failed: {name}")
    error.sqlite_errorname = name
    return error


def raised(work: Callable[[], object]) -> ModicumError:
    with pytest.raises(ModicumError) as caught:
        work()
    return caught.value


def later_tables() -> object:
    with sqlite3.connect(":memory:") as connection:
        connection.execute("PRAGMA application_id = 1836016745")
        connection.execute("PRAGMA user_version = 99")
        connection.execute("CREATE TABLE t (a)")
        return version_of(connection, str(PATH))


def of_sqlite() -> Iterator[ModicumError]:
    """Yield each mistake of a ledger in a file."""
    troubles = SqliteTroubles(PATH, 30)
    names = ("BUSY", "FULL", "IOERR_WRITE", "READONLY", "CORRUPT", "CANTOPEN", "NOTADB")
    for writing in (True, False):
        for name in names:
            yield troubles._of_sqlite(sqlite_error(f"SQLITE_{name}"), writing=writing)
        for number in (errno.ENOENT, errno.EACCES, errno.EROFS, errno.EIO):
            error = OSError(number, os.strerror(number), str(PATH))
            make = troubles.unwritable if writing else troubles.unreadable
            yield make(error)
    yield troubles.busy()
    yield replaced(PATH)
    yield linked(PATH)
    yield not_a_ledger(str(PATH))
    yield raised(later_tables)
    yield lost_entries(str(PATH), "it was removed")


def of_postgres() -> Iterator[ModicumError]:
    """Yield each mistake of a ledger in PostgreSQL."""
    address = parse_address(URL)
    for error in DRIVER:
        for committing in (True, False):
            yield error_of(address, error, committing=committing)
    yield broken(address, "its head is 5, its last entry is 4")
    yield forgetful(address)
    yield out_of_turn(address, 30)
    yield raised(lambda: refuse_skew(address.name, 0, 1e6))
    yield lost_entries(address.name, "it was removed")
    yield raised(lambda: refuse_version(address.name, 99))


def of_views() -> Iterator[ModicumError]:
    """Yield the mistakes of those who use a store."""
    missing = mo.open(PATH.name, actor="ann")
    yield raised(missing.state)
    store = SqliteStore("hidden-file.db")
    yield raised(lambda: KnownHead(3, "0" * 12).must_be(None, store.name))
    yield raised(lambda: KnownHead.read_line(b"?", PATH.name))
    yield unreachable("https://hidden/x", "hidden-host refused")


@pytest.mark.spec("OPS-9")
def test_each_mistake_of_a_store_is_about_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = set()
    for error in (*of_sqlite(), *of_postgres(), *of_views()):
        for problem in error.problems:
            shown = problem.render()
            assert "hidden" in shown, shown  # The operator sees it.
            assert "hidden-word" not in shown
        told = details_of(error)
        text = json.dumps([told.detail, told.help, [*map(str, told.problems)]])
        assert "hidden" not in text.lower(), text
        assert "the the" not in text
        assert "ledger" in told.detail or "the witness" in told.detail
        assert error.problems[0].code.value == told.code
        texts.add(told.detail)
    assert {
        "cannot reach the ledger",
        "the ledger is busy",
        "the ledger is damaged",
        "cannot use the ledger",
        "cannot write the ledger: no space left on device"[:23],
        "there is no ledger",
        "the ledger has lost entries: it was removed",
        "the ledger was replaced or removed while it was open",
    } <= texts | {one[:23] for one in texts}


def test_a_short_name_is_no_part_of_words() -> None:
    error = UnavailableError(
        Problem(Code.LEDGER_BUSY, "cannot write a: a data base is away", places=("a",))
    )
    assert details_of(error).detail == (
        "cannot write the ledger: the ledger data base is away"
    )


# --- over HTTP ---


@dataclass
class Broken:
    """A ledger, and ways to break it.

    Attributes:
        ledger: Its path or URL.
        secret: What no answer may contain.
        ways: Break it, from the mildest; it is served meanwhile.
    """

    ledger: str
    secret: tuple[str, ...]
    ways: tuple[Callable[[], None], ...]


def in_file(folder: Path) -> Broken:
    path = folder / "hidden-file.db"

    def replace() -> None:
        shutil.copy(path, folder / "copy")
        os.replace(folder / "copy", path)

    def spoil() -> None:
        path.write_bytes(b"no database" * 99)

    return Broken(
        str(path),
        (str(folder), folder.name, path.name),
        (replace, spoil, path.unlink),
    )


def in_postgres(cluster: Cluster) -> Broken:
    url = cluster.new_ledger()
    schema = f"modicum_{url.rpartition('=')[2]}"
    drop = f"DROP TABLE {schema}.answers CASCADE; DROP TABLE {schema}.head CASCADE"
    return Broken(
        url,
        (url, str(cluster.folder), cluster.folder.name, "postgres@", schema),
        (
            lambda: cluster.execute(drop),
            lambda: cluster.execute(f"DROP SCHEMA {schema} CASCADE"),
            cluster.stop,
        ),
    )


@pytest.fixture(params=["file", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Broken:
    (tmp_path / "policy.yaml").write_text(POLICY)
    if request.param == "file":
        (tmp_path / "hidden-folder").mkdir()
        return in_file(tmp_path / "hidden-folder")
    return in_postgres(request.getfixturevalue("own_postgres"))


def answers(server: Served) -> Iterator[tuple[str, int, str]]:
    """Ask for everything that there is; yield the way, the status and all that came."""
    server.parts.decider._feed.force_refresh()
    described = server.client.get("/api/v1/openapi.json").json()["paths"]
    ways = [(method, path) for path, one in described.items() for method in one]
    ways += [("get", "/readyz"), ("get", "/metrics"), ("get", "/healthz")]
    for number, (method, path) in enumerate(ways):
        address = re.sub(r"\{[^}]*\}", "one", path)
        for who in ("olga", "root", "amir"):
            headers = {HEADER: who, "Idempotency-Key": f"{who}-{number}"}
            body = counts("one") if method == "post" else None
            with server.client.stream(
                method, address, headers=headers, json=body
            ) as found:
                kind = found.headers.get("content-type", "")
                text = "" if "event-stream" in kind else found.read().decode("latin-1")
                shown = f"{text}\n{found.headers!r}"
                yield f"{who} {method} {path}", found.status_code, shown


@contextmanager
def serving(place: Broken, folder: Path) -> Iterator[Served]:
    with served(place.ledger, policy=folder / "policy.yaml") as server:
        server.post("amir", "/releases", counts("one"))
        try:
            yield server
        finally:  # What is broken cannot be closed in order.
            server.parts.decider.readiness.close()


@pytest.mark.spec("OPS-9")
@pytest.mark.filterwarnings("ignore")
def test_no_answer_shows_where_a_broken_ledger_is(
    place: Broken, tmp_path: Path
) -> None:
    failures: set[Any] = set()
    with pytest.MonkeyPatch.context() as patched:
        for store in (SqliteStore, PostgresStore):
            patched.setattr(store, "close", lambda _: None)
        with serving(place, tmp_path) as server:
            for break_it in (lambda: None, *place.ways):
                break_it()
                count = 0
                for way, status, shown in answers(server):
                    for secret in place.secret:
                        assert secret not in shown, (way, status, shown)
                    count += status >= 500
                    if status >= 500 and '"code"' in shown:
                        failures.add(json.loads(shown.splitlines()[0])["code"])
                assert (count > 20) == (break_it in place.ways)
    assert failures & {"MOD702", "MOD709", "MOD701"}
