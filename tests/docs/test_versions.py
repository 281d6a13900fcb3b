"""The versions of stored formats that pages name are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from modicum.ledger.log.events import EVENT_VERSION
from modicum.ledger.proof.audit import UNMATCHED_DENIED_SINCE
from modicum.storage import postgres_tables, sqlite_tables

ROOT = Path(__file__).parents[2]
SQLITE, POSTGRES = sqlite_tables.SCHEMA_VERSION, postgres_tables.SCHEMA_VERSION


def upgrade_page() -> str:
    return (ROOT / "docs/how-to/upgrade.md").read_text(encoding="utf-8")


def clause(identifier: str) -> str:
    text = (ROOT / "docs/spec/ledger.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^\*\*{identifier}\*\* (.+)$", text, re.MULTILINE)
    return str(found)


def cells(page: str, first: str) -> list[str]:
    """Return the further cells of the row that begins with a cell."""
    (row,) = re.findall(rf"^\| {first} \|(.+)\|$", page, re.MULTILINE)
    return [one.strip() for one in row.split("|")]


def test_the_present_versions() -> None:
    page = upgrade_page()
    assert cells(page, "entries")[0] == str(EVENT_VERSION)
    assert cells(page, "tables")[0] == f"{SQLITE} in SQLite, {POSTGRES} in PostgreSQL"
    named = re.findall(r"since version (\d+) of the entries", page)
    assert named
    assert all(1 < int(one) <= EVENT_VERSION for one in named)


def test_each_version_of_the_tables_is_described() -> None:
    _, described = upgrade_page().split("| table version | SQLite | PostgreSQL |\n")
    rows = [
        [one.strip() for one in row.split("|")[2:4]]
        for row in described.split("\n\n")[0].splitlines()[1:]
    ]
    for column, newest in enumerate((SQLITE, POSTGRES)):
        numbers = [int(row[column]) for row in rows if row[column]]
        assert numbers == list(range(1, newest + 1))


def test_the_messages_of_an_older_version() -> None:
    page = upgrade_page()
    tables = re.findall(r"table version (\d+); .* reads 1 to (\d+)", page)
    assert tables == [(str(SQLITE + 1), str(SQLITE))]
    entries = re.findall(r"event version (\d+) is not one of 1 to (\d+)", page)
    assert entries == [(str(EVENT_VERSION + 1), str(EVENT_VERSION))]


@pytest.mark.spec("LED-12")
def test_the_specified_version_of_events() -> None:
    assert f"have a version, currently {EVENT_VERSION}." in clause("LED-12")


@pytest.mark.spec("LED-26")
def test_since_when_denials_name_unmatched_mechanisms() -> None:
    start = f"Since version {UNMATCHED_DENIED_SINCE}, a denial names"
    assert clause("LED-26").startswith(start)


def test_the_versions_of_this_release() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    named = re.findall(
        r"Entries are of version (\d+), tables of version (\d+) in SQLite and (\d+) in"
        r" PostgreSQL",
        changes,
    )
    assert named == [(str(EVENT_VERSION), str(SQLITE), str(POSTGRES))]
