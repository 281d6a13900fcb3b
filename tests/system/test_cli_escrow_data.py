"""`modicum escrow init`, `register` and `shred`: the vault, and what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from samples.escrow_commands import PLACE, WHY, Desk
from samples.escrows import ROWS

GIVEN = ("register", "people", "people.csv", "--table", "tables.yaml")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


def data(desk: Desk) -> list[dict[str, object]]:
    found: list[dict[str, object]] = desk.told("olga", "list", "--data")["data_sets"]
    return found


def test_a_vault_is_made_once_and_its_keys_lie_elsewhere(desk: Desk) -> None:
    keys = Path("keys.json").read_bytes()
    assert Path("keys.json").stat().st_mode & 0o777 == 0o600
    assert desk.error("olga", "init", *PLACE, code=2) == "MOD708"
    inside = ("--vault", "other", "--vault-keys", "other/keys.json")
    assert desk.error("olga", "init", *inside, code=2) == "MOD708"
    taken = ("--vault", "other", "--vault-keys", "keys.json")
    desk.error("olga", "init", *taken, code=2)
    assert not Path("other").exists()
    assert Path("keys.json").read_bytes() == keys
    made = desk.told("olga", "init", "--vault", "two", "--vault-keys", "two.json")
    assert (made["vault"], made["keys"]) == ("two", "two.json")
    assert made["key"] in Path("two.json").read_text()


def test_a_vault_is_needed_and_never_made_by_accident(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = ("--owner", "olga")
    monkeypatch.setenv("MODICUM_VAULT", "nowhere")
    assert desk.error("olga", *GIVEN, *owners, code=2) == "MOD001"
    assert not Path("nowhere").exists()
    monkeypatch.delenv("MODICUM_VAULT")
    assert "give both" in desk.escrow("olga", *GIVEN, *owners, code=2)
    monkeypatch.delenv("MODICUM_VAULT_KEYS")
    assert desk.error("olga", *GIVEN, *owners, code=2) == "MOD108"
    assert data(desk) == []


def test_versions_are_registered_by_those_who_own_them(desk: Desk) -> None:
    desk.register("--contracts", "7", "--quorum", "1")
    (one,) = data(desk)
    assert one["owners"] == {"olga": [], "pavel": []}
    assert (one["quorum"], one["contracts"], one["bits"]) == (1, 7, 100)
    second = desk.told("pavel", *GIVEN)
    assert second == {"data": "people", "version": 2, "media": "csv", "agreed": True}
    assert desk.error("rita", *GIVEN) == "MOD867"
    assert desk.error("olga", *GIVEN, "--owner", "olga") == "MOD867"
    listed = desk.escrow("olga", "list", "--data")
    assert "1 of olga, pavel must approve" in listed
    assert Path("people.csv").read_bytes() == ROWS


def test_new_rows_wait_until_another_owner_agrees(desk: Desk) -> None:
    desk.register()
    assert "once its owners approve it" in desk.escrow("pavel", *GIVEN)
    listed = desk.escrow("olga", "list", "--data")
    assert "version 2: csv, entry 3, waiting for its owners" in listed
    result: Any = data(desk)
    digest = result[0]["versions"][1]["digest"]
    approves = f"escrow approve people --version 2 --content {digest}"
    assert approves in listed
    vote = desk.told("olga", "reject", "people", "--version", "2", *WHY)
    assert vote["consent"]["rejected_by"] == ["olga"]
    words = approves.split()[1:]
    assert "ok       2 of the owners" in desk.escrow("olga", *words, *WHY)
    result = data(desk)
    assert result[0]["versions"][1]["agreed"]
    assert desk.error("pavel", "reject", "people", "--version", "2", *WHY) == "MOD867"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--owner", ""), "write WHO or WHO=KEY"),
        (("--owner", "=ab"), "write WHO or WHO=KEY"),
        (("--owner", "olga="), "write WHO or WHO=KEY"),
        (("--owner", "olga", "--owner", "olga"), "named twice"),
        (("--owner", "olga", "--owner", "olga=" + "ab" * 32), "once without a key"),
        (("--owner", "olga=" + "ab" * 32, "--owner", "olga"), "once without a key"),
        (("--owner", "olga", "--quorum", "2"), "2 of 1 owners cannot approve"),
        (("--owner", "olga", "--quorum", "0"), "--quorum"),
        (("--quorum", "1"), "fixed at registration, with the owners"),
        (("--bits", "0"), "fixed at registration, with the owners"),
        (("--contracts", "20"), "fixed at registration, with the owners"),
        (("--owner", "olga", "--bits", "-1"), "--bits"),
        (("--owner", "olga", "--table", "people.csv"), "name the file that declares"),
    ],
)
def test_owners_that_cannot_be_meant_are_no_command(
    desk: Desk, given: tuple[str, ...], words: str
) -> None:
    output = " ".join(desk.escrow("olga", *GIVEN, *given, code=2).split())
    assert words in output
    assert "north" not in output  # No row is quoted.
    assert data(desk) == []
    assert not list(Path("vault").glob("*.sealed"))


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ((*GIVEN,), "MOD103"),
        ((*GIVEN, "--owner", "pavel"), "MOD867"),
        ((*GIVEN, "--owner", "olga=gone.pub"), "MOD001"),
        ((*GIVEN, "--owner", "olga=people.csv"), "MOD001"),
        (("register", "town", *GIVEN[2:], "--owner", "olga"), "MOD814"),
        (("register", "people", "q.yaml", *GIVEN[3:], "--owner", "olga"), "MOD108"),
        (("register", "people", "gone.csv", *GIVEN[3:], "--owner", "olga"), "MOD001"),
        ((*GIVEN[:4], "gone.yaml", "--owner", "olga"), "MOD001"),
    ],
)
def test_what_cannot_be_registered_has_a_code(
    desk: Desk, given: tuple[str, ...], code: str
) -> None:
    assert desk.error("olga", *given) == code
    assert data(desk) == []


def test_with_a_key_only_what_it_signs_is_an_agreement(desk: Desk) -> None:
    desk.run("olga", "ledger", "key", "new", "key")
    desk.run("olga", "ledger", "key", "new", "other")
    assert desk.error("olga", *GIVEN, "--owner", "olga=key") == "MOD001"  # Private.
    desk.escrow("olga", *GIVEN, "--owner", "olga=key.pub")
    (one,) = data(desk)
    (public,) = one["owners"]["olga"]  # type: ignore[index]
    assert len(public) == 64
    assert "olga (signed)" in desk.escrow("olga", "list", "--data")
    desk.escrow("amir", "submit", "query", "q", "q.yaml", *WHY)
    assert desk.error("olga", "approve", "q", *WHY, code=5) == "MOD607"
    desk.error("olga", "approve", "q", "--key", "other", *WHY, code=5)
    vote = desk.escrow("olga", "approve", "q", "--key", "key", *WHY)
    assert f"signed with {public[:12]}" in vote
    assert desk.told("amir", "run", "q")["results"] == ["private"]


def test_a_public_key_is_taken_as_it_is_printed(desk: Desk) -> None:
    key = "AB" * 32
    desk.escrow(
        "olga", *GIVEN, "--owner", f"olga={key}", "--owner", f"olga={'cd' * 32}"
    )
    (one,) = data(desk)
    assert one["owners"] == {"olga": [key.lower(), "cd" * 32]}


def test_what_is_shredded_is_meant_and_gone(desk: Desk) -> None:
    desk.queried()
    shred = ("shred", "people", "1", *WHY)
    assert "--yes" in desk.escrow("olga", *shred, code=2)
    assert desk.error("amir", *shred, "--yes") == "MOD867"
    assert desk.error("olga", "shred", "people", "2", *WHY, "--yes") == "MOD868"
    assert desk.error("olga", "shred", "towns", "1", *WHY, "--yes") == "MOD868"
    assert list(Path("vault").glob("*.sealed"))
    gone = desk.told("olga", *shred, "--yes")
    assert gone == {"data": "people", "version": 1, "shredded": True}
    assert desk.escrow("pavel", *shred, "--yes")  # Again, should it have failed.
    assert not list(Path("vault").glob("*.sealed"))
    assert ", shredded" in desk.escrow("olga", "list", "--data")
    (one,) = desk.told("olga", "list")["contracts"]
    assert one["stage"] == "it has run, and its results were shredded with people"
    shown = desk.escrow("olga", "show", "q")
    assert "people: version 1, which was shredded" in shown
    assert "agree to exactly this" not in shown
