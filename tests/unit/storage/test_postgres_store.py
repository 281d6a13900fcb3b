"""The PostgreSQL store: servers that go away, secrets, rights, and damage."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from samples.postgres import Cluster
from samples.stores import append, numbered, postgres_place

from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import Identity
from modicum.api.permissions.tokens import TokenTerms
from modicum.api.ports.storage import StoredAnswer
from modicum.core.errors import (
    Code,
    UnavailableError,
    UsageError,
    VerificationError,
)
from modicum.server.auth.registry import open_registry
from modicum.storage.factory import open_store
from modicum.storage.fair_lock import FairLock
from modicum.storage.postgres_errors import error_of
from modicum.storage.postgres_store import PostgresStore
from modicum.storage.postgres_url import parse_address


@pytest.fixture
def store(postgres: Cluster) -> Iterator[PostgresStore]:
    opened = PostgresStore(postgres.new_ledger(), wait_seconds=20)
    yield opened
    opened.close()


def schema_of(store: PostgresStore) -> str:
    return store._address.schema


def cut(cluster: Cluster, schema: str) -> None:
    """End the server's side of a ledger's connections, as an administrator would."""
    cluster.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        f" WHERE application_name = 'modicum' AND query LIKE '%{schema}%'"
        " AND pid <> pg_backend_pid()"
    )


# --- servers that go away ---


def test_a_server_that_restarts_is_a_clean_error_and_then_none(
    own_postgres: Cluster,
) -> None:
    store = PostgresStore(own_postgres.new_ledger())
    append(store, numbered(1, 2))
    assert list(store.read(0)) == numbered(1, 2)
    own_postgres.stop()
    for attempt in (
        lambda: list(store.read(0)),
        lambda: append(store, numbered(3, 3)),
        store.exists,
        lambda: store.add_checkpoint(b"x"),
    ):
        with pytest.raises(UnavailableError) as caught:
            attempt()
        assert caught.value.code is Code.LEDGER_UNWRITABLE
        assert "the same id" in caught.value.problems[0].help
    store.save_snapshot(b"lost")
    assert store.load_snapshot() is None
    own_postgres.start()
    append(store, numbered(3, 3))
    assert list(store.read(0)) == numbered(1, 3)
    # Without a failure between, a lost connection is not even noticed.
    own_postgres.restart()
    assert list(store.read(0)) == numbered(1, 3)
    append(store, numbered(4, 4))
    store.close()


def test_what_was_acknowledged_outlives_a_killed_server(own_postgres: Cluster) -> None:
    store = PostgresStore(own_postgres.new_ledger())
    append(store, numbered(1, 2))
    with pytest.raises(UnavailableError), store.turn() as turn:  # noqa: PT012
        turn.append(numbered(3, 3))
        own_postgres.kill()
        turn.append(numbered(4, 4))
    own_postgres.start()
    assert list(store.read(0)) == numbered(1, 2)
    append(store, numbered(3, 3))
    assert list(store.read(0)) == numbered(1, 3)
    store.close()


def test_a_connection_lost_in_a_turn_stores_nothing(
    postgres: Cluster, store: PostgresStore
) -> None:
    append(store, numbered(1, 1))
    with pytest.raises(UnavailableError) as caught, store.turn() as turn:  # noqa: PT012
        turn.append(numbered(2, 2))
        cut(postgres, schema_of(store))
        turn.append(numbered(3, 3))
    assert caught.value.code is Code.LEDGER_UNWRITABLE
    assert list(store.read(0)) == numbered(1, 1)
    append(store, numbered(2, 2))


def test_a_connection_lost_at_the_end_of_a_turn_leaves_the_outcome_open(
    postgres: Cluster, store: PostgresStore
) -> None:
    """Also if whoever works in the turn hides that a statement failed."""
    append(store, numbered(1, 1))
    with pytest.raises(UnavailableError) as caught, store.turn() as turn:  # noqa: PT012
        turn.append(numbered(2, 2))
        cut(postgres, schema_of(store))
    assert "may or may not" in caught.value.problems[0].help
    with pytest.raises(UnavailableError), store.turn() as turn:  # noqa: PT012
        turn.append(numbered(2, 2))
        cut(postgres, schema_of(store))
        with pytest.raises(psycopg.OperationalError):
            list(turn.read(0))
    assert list(store.read(0)) == numbered(1, 1)
    append(store, numbered(2, 2))
    assert list(store.read(0)) == numbered(1, 2)


def test_a_statement_that_failed_in_a_turn_cannot_be_hidden(
    store: PostgresStore,
) -> None:
    append(store, numbered(1, 1))
    with pytest.raises(VerificationError), store.turn() as turn:  # noqa: PT012
        turn.append(numbered(2, 2))
        with pytest.raises(psycopg.Error):
            turn._connection.execute("SELECT 1 / 0")
    assert list(store.read(0)) == numbered(1, 1)


def test_turns_are_committed_to_disk_whatever_the_default(
    postgres: Cluster, store: PostgresStore
) -> None:
    append(store, [])
    shown = {}
    for default in ("off", "local", "remote_apply"):
        postgres.execute(f"ALTER ROLE postgres SET synchronous_commit = '{default}'")
        store.close()
        with store.turn() as turn:
            row = turn._connection.execute("SHOW synchronous_commit").fetchone()
            shown[default] = row and row[0]
    postgres.execute("ALTER ROLE postgres RESET synchronous_commit")
    assert shown == {"off": "on", "local": "on", "remote_apply": "remote_apply"}


def test_a_server_that_may_forget_is_refused(own_postgres: Cluster) -> None:
    store = PostgresStore(own_postgres.new_ledger())
    append(store, numbered(1, 1))
    own_postgres.execute("ALTER SYSTEM SET fsync = off")
    own_postgres.execute("SELECT pg_reload_conf()")
    try:
        with pytest.raises(UnavailableError, match="fsync"):  # noqa: PT012
            while True:  # Until the server has read its settings.
                append(store, [])
    finally:
        own_postgres.execute("ALTER SYSTEM RESET fsync")
        own_postgres.execute("SELECT pg_reload_conf()")
        store.close()


def test_a_client_that_falls_silent_in_its_turn_loses_it(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(store, numbered(1, 1))
    with pytest.raises(UnavailableError), store.turn() as turn:  # noqa: PT012
        turn.append(numbered(2, 2))
        turn._connection.execute("SET LOCAL idle_in_transaction_session_timeout = 1")
        other = PostgresStore(store.name, wait_seconds=20)
        append(other, numbered(2, 2))
        other.close()
    assert list(store.read(0)) == numbered(1, 2)


# --- tables ---


def test_ledgers_in_one_database_do_not_know_each_other(postgres: Cluster) -> None:
    one, other = (PostgresStore(postgres.new_ledger()) for _ in range(2))
    with one.turn() as first, other.turn() as second:
        first.append(numbered(1, 3))
        second.append(numbered(1, 1))
    one.add_checkpoint(b"c")
    one.save_snapshot(b"s")
    assert list(one.read(0)) == numbered(1, 3)
    assert list(other.read(0)) == numbered(1, 1)
    assert other.checkpoints() == []
    assert other.load_snapshot() is None
    one.close()
    other.close()


@pytest.mark.spec("LED-19")
def test_what_was_not_stored_is_not_acknowledged_by_the_server(
    postgres: Cluster, store: PostgresStore
) -> None:
    append(store, numbered(1, 2))
    schema = schema_of(store)
    postgres.execute(
        f"CREATE FUNCTION {schema}.swallow() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RETURN NULL; END $$;"
        f"CREATE TRIGGER swallow BEFORE INSERT ON {schema}.events FOR EACH ROW"
        f" WHEN (NEW.seq = 3) EXECUTE FUNCTION {schema}.swallow()"
    )
    for records in (numbered(3, 3), numbered(3, 4)):
        with pytest.raises(VerificationError, match="was not stored"):
            append(store, records)
    assert list(store.read(0)) == numbered(1, 2)


@pytest.mark.parametrize("table", ["events", "checkpoints"])
@pytest.mark.parametrize(
    "change", ["UPDATE {t} SET {c} = {c}", "DELETE FROM {t}", "TRUNCATE {t}"]
)
def test_the_log_is_append_only(
    postgres: Cluster, store: PostgresStore, table: str, change: str
) -> None:
    append(store, numbered(1, 2))
    store.add_checkpoint(b"c")
    column = {"events": "hash", "checkpoints": "data"}[table]
    for prelude in ("", "SET session_replication_role = replica;"):
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            postgres.execute(
                prelude + change.format(t=f"{schema_of(store)}.{table}", c=column)
            )
    assert list(store.read(0)) == numbered(1, 2)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM {s}events WHERE seq = 2",
        "UPDATE {s}events SET hash = 'x' WHERE seq = 2",
        "UPDATE {s}head SET seq = 1",
        "DELETE FROM {s}head",
        "DROP TABLE {s}events",
        "ALTER TABLE {s}events DROP COLUMN payload",
    ],
)
def test_tables_that_contradict_each_other_are_a_broken_ledger(
    postgres: Cluster, damage: str
) -> None:
    place = postgres_place(postgres)
    store = place.open()
    append(store, numbered(1, 2))
    place.damage(damage)
    for _ in range(2):
        with pytest.raises(VerificationError) as caught:
            append(store, numbered(3, 3))
        assert caught.value.code in {Code.LEDGER_BROKEN, Code.NOT_A_LEDGER}
    store.close()


def test_somebody_elses_tables_are_left_alone(
    postgres: Cluster, store: PostgresStore
) -> None:
    schema = schema_of(store)
    postgres.execute(f"CREATE SCHEMA {schema}")
    postgres.execute(f"CREATE TABLE {schema}.events (seq bigint)")
    assert not store.exists()
    with pytest.raises(VerificationError) as caught:
        append(store, numbered(1, 1))
    assert caught.value.code is Code.NOT_A_LEDGER
    postgres.execute(f"INSERT INTO {schema}.events VALUES (1)")


def test_the_rights_that_the_manual_names_are_enough(
    postgres: Cluster, store: PostgresStore
) -> None:
    append(store, numbered(1, 1))
    s = schema_of(store)
    user = f"app_{s}"
    reader = f"reader_{s}"
    for name in (user, reader):
        postgres.execute(f"CREATE ROLE {name} LOGIN")
        postgres.execute(f"GRANT USAGE ON SCHEMA {s} TO {name}")
        tables = "events head checkpoints snapshot migrations trail"
        for table in tables.split():
            postgres.execute(f"GRANT SELECT ON {s}.{table} TO {name}")
    appended = f"{s}.events, {s}.checkpoints, {s}.trail"
    postgres.execute(f"GRANT INSERT ON {appended} TO {user}")
    postgres.execute(f"GRANT UPDATE ON {s}.head TO {user}")
    postgres.execute(f"GRANT INSERT, UPDATE ON {s}.snapshot TO {user}")
    rows = f"{s}.answers, {s}.sessions"
    postgres.execute(f"GRANT SELECT, INSERT, DELETE ON {rows} TO {user}")
    changed = f"{s}.tokens, {s}.trail_marks"
    postgres.execute(f"GRANT SELECT, INSERT, UPDATE ON {changed} TO {user}")
    app = PostgresStore(store.name.replace("postgres@", f"{user}@"))
    append(app, numbered(2, 2))
    kept = StoredAnswer("k", "d", b"a", "2026-05-01")
    with app.turn() as turn:
        turn.keep([kept], forget_before="2026-04-01")
        assert turn.answered(["k"]) == {"k": kept}
    registry = open_registry(app)
    terms = TokenTerms("olga", {Role.ANALYST: frozenset({"*"})})
    registry.revoke_token(registry.add_token(terms, created_by="ada").token.id)
    opened = registry.add_session(Identity("olga", {}), seconds=60)
    registry.end_session(opened.session.digest)
    registry.purge()
    app.add_checkpoint(b"c")
    app.save_snapshot(b"s")
    assert (app.checkpoints(), app.load_snapshot()) == ([b"c"], b"s")
    auditor = PostgresStore(store.name.replace("postgres@", f"{reader}@"))
    assert list(auditor.read(0)) == list(app.read(0)) == numbered(1, 2)
    with pytest.raises(UsageError, match="permission denied"):
        open_registry(auditor).tokens()
    with pytest.raises(UsageError, match="permission denied") as caught:
        append(auditor, numbered(3, 3))
    assert "grant this role" in caught.value.problems[0].help
    for statement in (f"DELETE FROM {s}.events", f"UPDATE {s}.events SET hash = ''"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            postgres.execute(statement, postgres.url.replace("postgres@", f"{user}@"))
    app.close()
    auditor.close()


def test_a_dump_is_a_ledger_that_goes_on(
    postgres: Cluster, store: PostgresStore
) -> None:
    append(store, numbered(1, 3))
    store.add_checkpoint(b"c")
    dump = postgres.folder / f"{schema_of(store)}.dump"
    name = f"r_{schema_of(store)}"
    plain = f"--host={postgres.folder}", "--username=postgres", "--no-password"
    try:
        postgres.run(
            "pg_dump", *plain, f"--schema={schema_of(store)}", "--format=custom",
            f"--file={dump}", "postgres",
        )  # fmt: skip
        postgres.execute(f"CREATE DATABASE {name}")
        postgres.run("pg_restore", *plain, f"--dbname={name}", dump)
    finally:
        dump.unlink(missing_ok=True)
    restored = PostgresStore(store.name.replace("/postgres?", f"/{name}?"))
    append(restored, numbered(4, 4))
    assert list(restored.read(0)) == numbered(1, 4)
    assert restored.checkpoints() == [b"c"]
    assert list(store.read(0)) == numbered(1, 3)
    restored.close()


def test_a_database_that_is_not_there_is_said_so(postgres: Cluster) -> None:
    for url, remedy in (
        (postgres.url.replace("/postgres?", "/nowhere?"), "createdb"),
        (postgres.url.replace("postgres@", "nobody@"), "correct the user"),
    ):
        with pytest.raises(UsageError, match="does not exist") as caught:
            PostgresStore(url).exists()
        assert caught.value.code is Code.LEDGER_MISSING
        assert remedy in caught.value.problems[0].help


@pytest.mark.parametrize(
    ("error", "committing", "remedy"),
    [
        (psycopg.OperationalError("it went away"), True, "modicum release show"),
        (
            psycopg.OperationalError("it went away"),
            False,
            "everything acknowledged was stored",
        ),
        (psycopg.errors.InsufficientPrivilege("verweigert"), False, "grant this role"),
        (psycopg.errors.InvalidCatalogName("unbekannt"), False, "createdb"),
        (psycopg.errors.InvalidPassword("falsch"), False, "~/.pgpass"),
        (
            psycopg.OperationalError('no pg_hba.conf entry, database "d"'),
            False,
            "in the server's pg_hba.conf",
        ),
    ],
)
def test_each_trouble_has_its_own_remedy(
    error: psycopg.Error, committing: bool, remedy: str
) -> None:
    address = parse_address("postgresql://h/d")
    (problem,) = error_of(address, error, committing=committing).problems
    assert remedy in problem.help


# --- addresses and secrets ---


@pytest.mark.parametrize(
    ("url", "name", "schema"),
    [
        ("postgresql://h/d", "postgresql://h/d", "modicum"),
        ("postgres://u:s3cret@h:5/d", "postgresql://u@h:5/d", "modicum"),
        (
            "postgresql://u:s3cr%40et@h1:5,h2/d?modicum_ledger=a_1&sslmode=require",
            "postgresql://u@h1:5,h2/d?modicum_ledger=a_1",
            "modicum_a_1",
        ),
        (
            "postgresql://u:s3cr@et@[::1]:5/d?password=s3cret&host=/run/pg",
            "postgresql://u@[::1]:5/d?host=/run/pg",
            "modicum",
        ),
        (
            "postgresql:///d?user=u&sslpassword=s3cret",
            "postgresql:///d?user=u",
            "modicum",
        ),
        ("postgresql://%2Frun%2Fpg/d", "postgresql://%2Frun%2Fpg/d", "modicum"),
    ],
)
def test_a_name_shows_no_secret(url: str, name: str, schema: str) -> None:
    address = parse_address(url)
    assert (address.name, address.schema) == (name, schema)
    assert "s3cr" not in repr(address)
    assert "modicum_ledger" not in address.parameters


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:s3cr/et@h/d",
        "postgresql://u:s3cr#et@h/d",
        "postgresql://u:s3cr?et@h/d",
        "postgresql://u:s3cret/d",
        "postgresql://u:s3cr%zzet@h/d",
        "postgresql://[s3cret/d",
        "postgresql://h/d?modicum_ledger=S3cr-et",
        "postgresql://h/d?modicum_ledger=",
        "postgresql://h/d?s3cret=1",
        "postgresql:/h:s3cret/d",
    ],
)
def test_a_url_that_is_malformed_is_not_repeated(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_store(url)
    assert "s3cr" not in caught.value.render().lower()


@pytest.mark.parametrize(
    ("typed", "meant_name"),
    [
        ("modicum_legder=a", "modicum_ledger"),
        ("sslmode=prefer&conect_timeout=3", "connect_timeout"),
    ],
)
def test_a_mistyped_parameter_is_told_by_the_one_that_is_meant(
    typed: str, meant_name: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse_address(f"postgresql://u:s3cret@h/d?{typed}")
    result = caught.value.render()
    assert f"`{meant_name}`" in result
    assert typed not in result
    assert "s3cret" not in result


def test_what_the_driver_says_is_passed_on_without_secrets(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise psycopg.OperationalError("cannot parse s3cret\nat line 2")

    store = PostgresStore(postgres.url.replace("postgres@", "u:s3cret@"))
    monkeypatch.setattr(psycopg, "connect", refuse)
    with pytest.raises(UnavailableError) as caught:
        store.exists()
    assert "cannot parse ***" in caught.value.render()
    assert "s3cret" not in caught.value.render() + store.name


def test_a_url_that_was_taken_for_a_path_is_a_url_again(postgres: Cluster) -> None:
    url = postgres.new_ledger()
    append(open_store(Path(url)), numbered(1, 1))
    assert list(open_store(url).read(0)) == numbered(1, 1)


def test_a_missing_driver_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "modicum.storage.postgres_store")
    monkeypatch.delitem(sys.modules, "modicum.storage.postgres_url")
    with pytest.raises(UsageError, match="psycopg"):
        open_store("postgresql://h/d")


# --- the lock between threads ---


def waits(lock: FairLock, count: int) -> None:
    """Wait until so many threads stand in the queue."""
    while len(lock._waiting) < count:
        pass


def in_background(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_threads_are_served_in_the_order_of_their_arrival() -> None:
    lock, served = FairLock(), []
    assert lock.acquire(0)

    def work(name: int) -> None:
        assert lock.acquire(60)
        served.append(name)
        lock.release()

    threads = []
    for name in range(6):
        threads.append(in_background(lambda name=name: work(name)))  # type: ignore[misc]
        waits(lock, name + 1)
    assert not lock.acquire(0)
    lock.release()
    assert lock.acquire(60)
    served.append(99)
    for thread in threads:
        thread.join()
    assert served == [0, 1, 2, 3, 4, 5, 99]


def test_whoever_gives_up_leaves_the_queue() -> None:
    lock = FairLock()
    assert lock.acquire(0)
    assert not lock.acquire(0.001)
    lock.release()
    assert lock.acquire(0)
