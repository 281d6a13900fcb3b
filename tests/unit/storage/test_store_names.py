"""Which store a name stands for; a name that may hold a password is never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from modicum.core.errors import Code, UsageError
from modicum.storage.factory import name_of, open_store
from modicum.storage.postgres_store import PostgresStore
from modicum.storage.sqlite_store import SqliteStore

REST = "bob:s3cret@h/db"


@pytest.mark.parametrize(
    "name",
    [
        f"postgresql+psycopg://{REST}",
        f"postgresql+psycopg:/{REST}",
        f"jdbc:postgresql://{REST}",
        f"jdbc:postgresql:/{REST}",
        f" jdbc:postgresql://{REST}",
        f"pgsql://{REST}",
        f"PgSQL:/{REST}",
        f"postgres:{REST}",
        f"postgresql//{REST}",
        f"postgres/{REST}",
        f"./mysql://{REST}",
        "host=localhost user=bob password=s3cret dbname=x",
        "host=localhost PASSWORD = s3cret",
        "sslpassword=s3cret",
        "postgresql://bob:s3/cret@h/db",
        "POSTGRESQL://bob:s3/cret@h/db",
    ],
)
def test_what_may_hold_a_password_is_refused_and_not_repeated(name: str) -> None:
    for given in (name, Path(name)):
        for attempt in (open_store, name_of):
            with pytest.raises(UsageError) as caught:
                attempt(given)
            assert caught.value.code is Code.LEDGER_MISSING
            assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        f"postgresql://{REST}",
        f"POSTGRESQL://{REST}",
        f"Postgres://{REST}",
        f" postgresql://{REST}",
        f"postgresql:/{REST}",
    ],
)
def test_the_scheme_is_read_without_regard_to_case(name: str) -> None:
    store = open_store(name)
    assert isinstance(store, PostgresStore)
    assert store.name == name_of(name) == "postgresql://bob@h/db"


@pytest.mark.parametrize(
    "name", ["ledger.db", "a/b.db", "/a:b/c.db", "a b.db", "12:30.db", "postgresql.db"]
)
def test_a_path_is_a_path(name: str) -> None:
    assert isinstance(open_store(name), SqliteStore)
    assert open_store(Path(name)).name == name
