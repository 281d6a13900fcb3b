"""The SQL that is shown gives users the same groups as the planner does."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.postgres import Cluster

from modicum.planner import Rotation
from modicum.planner.rotation import HORIZON_MAX

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "choose-a-rotation.md"
HORIZON = 13


def shown(file: str) -> bytes:
    """Return a block of the page that is written to a file."""
    pattern = rf"^<!-- file: {re.escape(file)} -->\n```sql\n(.*?)^```$"
    (found,) = re.findall(pattern, PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return str(found).encode()


def newcomers(db: psycopg.Connection, round_: int) -> None:
    db.execute(shown("newcomers.sql").replace(b":round", b"%d" % round_))


def groups(db: psycopg.Connection) -> dict[str, int]:
    found = db.execute("SELECT patient_id, user_group FROM patient_group").fetchall()
    return dict(found)


@pytest.fixture(scope="module")
def database(postgres: Cluster) -> Iterator[psycopg.Connection]:
    """Return a connection to a database in which the page's SQL was run."""
    postgres.execute("CREATE DATABASE user_groups")
    url = postgres.url.replace("/postgres?", "/user_groups?")
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE TABLE visits (patient_id text)")
        db.execute(shown("user_group.sql"))
        yield db
    postgres.execute("DROP DATABASE user_groups")


def in_sql(
    db: psycopg.Connection, unit_id: str, joined: int, horizon: int, key: bytes
) -> int:
    query = "SELECT user_group(%s, %s, %s, %s)"
    row = db.execute(query, (unit_id, joined, horizon, key)).fetchone()
    assert row is not None
    return int(row[0])


@settings(max_examples=examples(150), deadline=None)
@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40),
    st.integers(0, 10**6),
    st.sampled_from([1, 2, 3, 13, 104, 257, HORIZON_MAX]) | st.integers(1, HORIZON_MAX),
    st.binary(min_size=16, max_size=100),
)
def test_the_sql_that_is_shown_gives_the_group_of_the_planner(
    database: psycopg.Connection, unit_id: str, joined: int, horizon: int, key: bytes
) -> None:
    expected = Rotation(3, horizon).group_of(unit_id, joined, key)
    assert in_sql(database, unit_id, joined, horizon, key) == expected


def test_what_the_page_says_for_a_key_of_zeros_is_so(
    database: psycopg.Connection,
) -> None:
    key = bytes(32)
    lines = [f"{one} {in_sql(database, one, 0, 104, key)}" for one in ("P-1001", "Zoë")]
    assert "\n".join(lines) in PAGE.read_text()


def test_who_has_a_group_keeps_it(database: psycopg.Connection) -> None:
    key = secrets.token_bytes(32)
    database.execute("INSERT INTO group_key VALUES (%s, %s)", (key, HORIZON))
    first, second = [f"a{n}" for n in range(50)], [f"b{n}" for n in range(50)]
    for round_, ids in ((0, first), (7, [*first, *second])):
        for one in [*ids, None]:
            database.execute("INSERT INTO visits (patient_id) VALUES (%s)", (one,))
        newcomers(database, round_)
    rotation = Rotation(3, HORIZON)
    assert groups(database) == {
        **{one: rotation.group_of(one, 0, key) for one in first},
        **{one: rotation.group_of(one, 7, key) for one in second},
    }
    rows = database.execute("SELECT patient_id, user_group FROM visits").fetchall()
    assert len(rows) == 152
    assert all(group == groups(database).get(one) for one, group in rows)


def test_a_short_key_is_refused(database: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        database.execute("INSERT INTO group_key VALUES (%s, 1)", (bytes(15),))
