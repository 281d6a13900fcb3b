"""The JSON documents of an escrow are described, key by key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from samples.documents import check_described
from samples.escrow_commands import WHY, Desk

Print: TypeAlias = Callable[..., Any]

#: The sections of json.md, and what prints what each describes.
DOCUMENTS: dict[str, Callable[[Print], list[Any]]] = {
    "Data sets in escrow": lambda told: [told("olga", "list", "--data")],
    "Contracts": lambda told: [told("olga", "list")],
    "A contract": lambda told: [told("olga", "show", one) for one in "qtorx"],
    "The program of a contract": lambda told: [told("olga", "show", "t")["program"]],
    "Where owners stand": lambda told: [told("olga", "show", "q")["consent"]],
    "An owner's vote": lambda told: [told("olga", "reject", "q", *WHY)],
    "What goes out": lambda told: [told("amir", "receive", one) for one in "orx"],
    "Steps in an escrow": lambda told: [
        told("olga", "init", "--vault", "v", "--vault-keys", "k.json"),
        told("olga", "register", "people", "people.csv", "--table", "tables.yaml"),
        told("amir", "run", "again"),
        told("amir", "withdraw", "again", *WHY),
        told("olga", "shred", "people", "1", "--yes", *WHY),
    ],
}


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Print:
    """Return what prints documents, of an escrow in which all flows have flown."""
    desk = Desk(tmp_path, monkeypatch)
    desk.queried()
    desk.scored()
    Path("again.yaml").write_text(Path("q.yaml").read_text().replace("r-1", "r-2"))
    for name, *more in (
        ("again", "query", "again.yaml"),
        ("o", "output", "q"),
        ("r", "signal", "t"),
        ("x", "raw-signal", "t", "--width", "0.1"),
    ):
        flow, of, *options = more
        desk.escrow("amir", "submit", flow, name, of, *options, *WHY)
        desk.agree(name)
    return desk.told


@pytest.mark.parametrize("section", DOCUMENTS)
def test_every_key_of_a_document_of_an_escrow_is_described(
    section: str, told: Print
) -> None:
    check_described(section, DOCUMENTS[section](told))
