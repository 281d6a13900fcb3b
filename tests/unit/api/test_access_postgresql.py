"""Grants as row-level security: a server holds a role to its rows and its columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from samples.postgres import Cluster
from samples.small import compiled

from modicum.api.local.access.grants import Access, Grant, Granting
from modicum.api.local.access.row_filters import Columns
from modicum.api.local.access.sql import postgresql_policies, role_of
from modicum.core.errors import Code, InputError
from modicum.ledger import RecordedRelease, ReleaseStatus, Standing
from modicum.ledger.log.recorded_release import RecordedMechanism
from modicum.release import Part

POLICY = """
modicum: policy/v1
name: clinics
units: {day: {id: pid, time: {column: seen_at, period: day}}}
schema: {attributes: {diagnosis: [high, {}], salary: [high, {}]}}
population:
  partition_by:
    region: {values: [north, south], immutable: [day]}
    born: {range: [1900, 2030], immutable: [day]}
  groups: {immutable: [day]}
policies: [{name: global, when: "true", unit: day, budget: {rho: 10}}]
"""
VOCABULARY = compiled(POLICY).policy.vocabulary
#: What the columns are called here; SQL would stumble over each of these names.
COLUMNS = Columns(
    'g"; DROP TABLE visits; --',
    {"region": "select", "born": "Jahr'%s", "seen_at": "DATE '2026-01-01'"},
)
TABLE = 'clinic"s.visits'
QUOTED = '"clinic""s"."visits"'
NORTH = Part(
    where=((("born", ((1990, 2030),)), ("region", ("north",))),),
    periods=((739921, 739950),),  # November 2026
    groups=((3, 3), (5, 7)),
)
SOUTH = Part(where=((("region", ("south",)),),))
ROWS: list[tuple[Any, ...]] = [
    # number, diagnosis, salary, region, born, moment, group, and whether it is of NORTH
    (1, "flu", 10, "north", 1990, "2026-11-01 00:00:00", 3, True),
    (2, "flu", 10, "north", 2030, "2026-11-30 23:59:59.999999", 7, True),
    (3, "flu", 10, "north", 1990, "2026-12-01 00:00:00", 3, False),
    (4, "flu", 10, "north", 1990, "2026-10-31 23:59:59.999999", 3, False),
    (5, "flu", 10, "north", 1989, "2026-11-05 00:00:00", 3, False),
    (6, "flu", 10, "north", 1990, "2026-11-05 00:00:00", 4, False),
    (7, "flu", 10, "NORTH", 1990, "2026-11-05 00:00:00", 3, False),
    (8, "flu", 10, "north ", 1990, "2026-11-05 00:00:00", 3, False),
    (9, "flu", 10, "south", 1990, "2026-11-05 00:00:00", 3, False),
    (10, "flu", 10, None, 1990, "2026-11-05 00:00:00", 3, False),
    (11, "flu", 10, "north", None, "2026-11-05 00:00:00", 3, False),
    (12, "flu", 10, "north", 1990, None, 3, False),
    (13, "flu", 10, "north", 1990, "2026-11-05 00:00:00", None, False),
]


def granted(
    name: str,
    part: Part,
    attributes: tuple[str, ...] = ("diagnosis",),
    status: ReleaseStatus = ReleaseStatus.STARTED,
    columns: Columns = COLUMNS,
) -> Grant:
    description = {"name": "m", "kind": "declared"}
    mechanism = RecordedMechanism(description, attributes, {}, {}, part)
    release = RecordedRelease(name, "0" * 64, {}, {}, (mechanism,))
    standing = Standing(name, release.content, status, "", 2, 739921)
    columns = replace(columns, named={"diagnosis": "diagnosis", **columns.named})
    (grant,) = Granting(VOCABULARY, (), columns).grants(standing, release)
    return grant


def script(*grants: Grant, table: str = TABLE) -> str:
    access = Access(9, "f" * 64, "e" * 64, grants)
    return "\n".join(postgresql_policies(access, table))


@pytest.fixture
def database(postgres: Cluster) -> Iterator[psycopg.Connection]:
    """Return a superuser's connection to a database with a table of visits."""
    postgres.execute("CREATE DATABASE access")
    url = postgres.url.replace("/postgres?", "/access?")
    with psycopg.connect(url, autocommit=True) as db:
        make_table(db, "timestamp", "text")
        yield db
        drop_roles(db)
    postgres.execute("DROP DATABASE access")


def make_table(db: psycopg.Connection, moment: str, region: str) -> None:
    db.execute(
        f"""
        DROP SCHEMA IF EXISTS "clinic""s" CASCADE; CREATE SCHEMA "clinic""s";
        GRANT USAGE ON SCHEMA "clinic""s" TO PUBLIC;
        CREATE TABLE {QUOTED} (
          number integer, diagnosis text, salary integer, "select" {region},
          "Jahr'%s" integer, "DATE '2026-01-01'" {moment},
          "g""; DROP TABLE visits; --" integer
        )
        """.encode()
    )
    for row in ROWS:
        marks = ", ".join(["%s"] * 7)
        db.execute(f"INSERT INTO {QUOTED} VALUES ({marks})".encode(), row[:7])
    # Whoever reads by number shows which rows they are; it tells nothing.
    db.execute(f"GRANT SELECT (number) ON {QUOTED} TO PUBLIC".encode())


def drop_roles(db: psycopg.Connection) -> None:
    found = db.execute(
        "SELECT rolname FROM pg_roles WHERE rolname ~ '^(modicum_.*|app)$'"
    )
    for (role,) in found.fetchall():
        db.execute(f'DROP OWNED BY "{role}"; DROP ROLE "{role}"'.encode())


def read_as(db: psycopg.Connection, role: str, columns: str = "diagnosis") -> list[int]:
    """Return the numbers of the rows that a role reads."""
    with db.transaction():
        db.execute(f'SET LOCAL ROLE "{role}"'.encode())
        query = f"SELECT number, {columns} FROM {QUOTED} ORDER BY 1"
        return [row[0] for row in db.execute(query.encode()).fetchall()]


NORTHERN = [row[0] for row in ROWS if row[-1]]


def test_a_role_reads_the_rows_and_columns_of_its_grant(
    database: psycopg.Connection,
) -> None:
    grant = granted("r-1", NORTH)
    database.execute(script(grant).encode())
    role = role_of(grant)
    assert read_as(database, role) == NORTHERN == [1, 2]
    for column in ("salary", '"select"', '"Jahr\'%s"'):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            read_as(database, role, column)
    database.execute(f'SET ROLE "{role}"'.encode())
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        database.execute(f"DELETE FROM {QUOTED}".encode())
    database.execute(b"RESET ROLE")
    # The same grant once more is refused as a whole; nothing is doubled.
    with pytest.raises(psycopg.errors.DuplicateObject):
        database.execute(script(grant).encode())
    database.execute(b"ROLLBACK")
    drop_roles(database)
    assert not database.execute(b"SELECT 1 FROM pg_policies").fetchall()


def test_whoever_has_two_grants_reads_no_more_than_either_says(
    database: psycopg.Connection,
) -> None:
    first, second = granted("r-1", NORTH), granted("r-2", SOUTH, ("salary",))
    database.execute(script(first, second).encode())
    assert read_as(database, role_of(second), "salary") == [9]
    database.execute(
        f"""
        CREATE ROLE app INHERIT; GRANT "{role_of(first)}", "{role_of(second)}" TO app;
        CREATE POLICY everybody ON {QUOTED} FOR SELECT USING (true)
        """.encode()
    )
    assert read_as(database, "app", "diagnosis, salary") == []
    assert read_as(database, role_of(first)) == NORTHERN  # Whatever others may read.


@pytest.mark.parametrize(
    ("moment", "region", "seen"),
    [
        ("timestamptz", "text", []),  # Its days are those of the session.
        ("date", "text", [1, 2]),
        ("timestamp", 'text COLLATE "sleepy"', NORTHERN),
        ("timestamp", "char(10)", [1, 2, 8]),  # `north ` cannot be told from `north`.
    ],
)
def test_columns_of_other_types_never_widen_a_grant(
    moment: str, region: str, seen: list[int], database: psycopg.Connection
) -> None:
    try:
        database.execute(
            b"CREATE COLLATION IF NOT EXISTS sleepy"
            b" (provider=icu, locale='und-u-ks-level1', deterministic=false)"
        )
    except psycopg.errors.FeatureNotSupported:
        region = region.partition(" ")[0]
    make_table(database, moment, region.replace('"sleepy"', "public.sleepy"))
    grant = granted("r-1", NORTH)
    database.execute(script(grant).encode())
    assert read_as(database, role_of(grant)) == seen


def test_the_whole_table_may_be_granted(database: psycopg.Connection) -> None:
    grant = granted("r-1", Part())
    database.execute(script(grant).encode())
    assert read_as(database, role_of(grant)) == [row[0] for row in ROWS]


@pytest.mark.parametrize(
    ("grant", "table"),
    [
        (granted("r-1", NORTH, status=ReleaseStatus.RESERVED), "visits"),
        (granted("r-1", NORTH, ()), "visits"),
        (granted("r-1", NORTH), "v" * 64),
        (granted("r-1", NORTH), "clinic..visits"),
        (granted("r-1", NORTH, columns=Columns("g" * 64)), "visits"),
        (granted("r-1", NORTH, columns=Columns("ü" * 32)), "visits"),
        (granted("r-1", NORTH, columns=Columns(named={"diagnosis": "d" * 64})), "v"),
    ],
)
def test_what_a_server_cannot_enforce_is_refused(grant: Grant, table: str) -> None:
    with pytest.raises(InputError) as caught:
        script(grant, table=table)
    assert caught.value.code in (Code.NOT_SUPPORTED, Code.BAD_NAME)
