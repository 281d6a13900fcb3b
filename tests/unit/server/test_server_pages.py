"""The manual's pages about the server say what the tables in the code say."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from modicum.api.permissions.actions import (
    ALLOWED,
    APART,
    PEOPLE_ONLY,
    REACH,
    Action,
    Reach,
    Role,
)
from modicum.core.yaml_reader import read_document
from modicum.server.settings.model import Limits, Oidc, Programs, SessionTimes, Settings
from modicum.server.settings.reader import read_settings

DOCS = Path(__file__).parents[3] / "docs"
ROLES = (DOCS / "reference" / "roles.md").read_text(encoding="utf-8")
SETTINGS = (DOCS / "reference" / "server-settings.md").read_text(encoding="utf-8")
FOR = {
    Reach.DATA_SET: "its data set",
    Reach.LEDGER: "all data sets",
    Reach.ANY: "any",
}


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_table_of_roles_is_the_one_that_the_server_goes_by() -> None:
    result = {
        re.sub(r"`([a-z-]+)`.*", r"\1", row[0]): row
        for row in rows(ROLES)
        if re.match(r"`[a-z-]+`", row[0]) and len(row) == 2 + len(Role)
    }
    assert list(result) == [action.value for action in Action]
    for action in Action:
        row = result[action.value]
        assert row[1] == FOR[REACH[action]]
        assert ("people only" in row[0]) == (action in PEOPLE_ONLY)
        allowed = ["yes" if action in ALLOWED[role] else "" for role in Role]
        assert row[2:] == allowed, action
    assert ["action", "for", *(role.value for role in Role)] in rows(ROLES)


def test_roles_that_stay_apart_are_the_ones_that_the_page_names() -> None:
    apart = {frozenset(pair) for pair in APART}
    with_auditor = {frozenset({Role.AUDITOR, one}) for one in Role} - {
        frozenset({Role.AUDITOR})
    }
    named = {
        frozenset({Role.ADMIN, Role.PRIVACY_OFFICER}),
        frozenset({Role.ADMIN, Role.DATA_STEWARD}),
    }
    assert apart == with_auditor | named
    assert "**auditor** and any other role" in ROLES
    assert "**admin** and **privacy-officer** or **data-steward**" in ROLES


@pytest.mark.parametrize(
    ("section", "kind"),
    [("The file", Settings), ("The provider", Oidc), ("Programs", Programs)],
)
def test_every_setting_is_in_its_table(section: str, kind: type) -> None:
    text = re.split(rf"^## {section}$", SETTINGS, flags=re.M)[1].split("\n## ")[0]
    result = {row[0].strip("`") for row in rows(text)} - {"key", "---", "modicum"}
    assert result == {field.name for field in fields(kind) if field.compare}


def test_the_limits_in_the_page_are_the_ones_that_hold() -> None:
    text = re.split("^## Limits$", SETTINGS, flags=re.M)[1].split("\nThese cannot")[0]
    result = {row[0].strip("`"): row[2] for row in rows(text) if row[0].startswith("`")}
    assert result == {
        field.name: str(getattr(Limits(), field.name)) for field in fields(Limits)
    }


def test_the_times_in_the_page_are_the_ones_that_hold() -> None:
    own = [field.name for field in fields(SessionTimes)]
    (row,) = [row for row in rows(SETTINGS) if f"`{own[0]}`" in row[1]]
    assert all(f"`{name}`" in row[1] for name in own)
    assert row[2] == ", ".join(str(getattr(SessionTimes(), name)) for name in own)


def test_the_settings_that_pages_show_can_be_read(tmp_path: Path) -> None:
    shown = 0
    for page in (
        DOCS / "reference" / "server-settings.md",
        DOCS / "how-to" / "sign-in-with-oidc.md",
    ):
        for block in re.findall(r"```yaml\n(modicum:.*?)```", page.read_text(), re.S):
            read_settings(read_document(block.encode(), page.name), tmp_path)
            shown += 1
    assert shown == 3
