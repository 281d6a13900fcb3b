"""An escrow with its real vault, its real engine and its real sandbox."""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from samples.escrows import OWNED, POLICY, ROWS, TABLES, query
from samples.sandboxed import sandbox, users

import modicum as mo
from modicum.api.local.escrow.actions import EscrowActions
from modicum.api.local.escrow.datasets import Declared
from modicum.api.local.escrow.proposal import Purpose
from modicum.api.ports.escrow import Limits
from modicum.core.errors import ModicumError
from modicum.engines.sources import CsvFile
from modicum.escrow import tasks
from modicum.ledger.log.contracts import Version
from modicum.ops.escrow.equipment import EscrowPlace
from modicum.ops.escrow.factory import open_escrow
from modicum.sandbox.catalog import installed
from modicum.vault.key_files import new_key_file

PUBLIC = {"columns": ["town", "people"], "rows": [["north", 100], ["south", 100]]}
#: How far the counts are from those: there are 150 people in each town.
DRIFT = tasks.program(
    tasks.answers(),
    tasks.relative_error("people", keys=["town"], reference=PUBLIC),
    installed(),
)


class Town:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "policy.yaml").write_text(POLICY)
        new_key_file(folder / "keys.json")
        self.place = EscrowPlace(folder / "vault", folder / "keys.json", users())
        policy = folder / "policy.yaml"
        open_escrow(folder / "ledger.db", self.place, policy=policy).init()

    def office(self, actor: str) -> EscrowActions:
        ledger = self.folder / "ledger.db"
        return open_escrow(ledger, self.place, actor=actor).escrow

    def agree(self, name: str) -> None:
        for one in ("olga", "pavel"):
            self.office(one).approve(name, reason="so it is")


@pytest.fixture
def town(tmp_path: Path) -> Town:
    found = Town(tmp_path)
    found.office("olga").register("people", ROWS, Declared(TABLES), OWNED)
    return found


def test_a_signal_comes_back_from_data_that_nobody_can_read(town: Town) -> None:
    sandbox()  # Without one the test is skipped, or fails in CI.
    amir = town.office("amir")
    amir.submit_query(Purpose("q", "to know"), [query("r-1")], exact=True)
    town.agree("q")
    assert amir.run("q").denied is None
    amir.submit_task(Purpose("t", "to know"), "q", DRIFT, limits=Limits(3.0, 2**30))
    town.agree("t")
    amir.run("t")
    amir.submit_signal(Purpose("s", "to know"), "t")
    amir.submit_raw_signal(Purpose("raw", "to know"), "t", width=Fraction(1, 20))
    town.agree("s")
    town.agree("raw")
    signal, raw = amir.receive("s"), amir.receive("raw")
    assert abs(Fraction(signal.score or 9) - Fraction(1, 2)) < Fraction(1, 10)
    assert raw.bin == {"low": "0.5", "high": "0.55"}
    # Nothing that was put in or computed lies anywhere as it is.
    secrets = {b"person,town", b"north", b"tables", b"score(", b"modicum-answers"}
    for path in (town.folder / "vault").iterdir():
        content = path.read_bytes()
        assert not [one for one in secrets if one in content], path.name
    ledger = (town.folder / "ledger.db").read_bytes()
    assert b"299,north" not in ledger
    assert b"modicum-answers" not in ledger


def test_rows_lie_in_memory_alone_and_only_while_they_are_read(town: Town) -> None:
    ws = open_escrow(town.folder / "ledger.db", town.place, actor="amir")
    assert ws.equipment is not None
    sealed = ws.equipment.vault.find("data/people/1")
    assert sealed is not None
    before = set(os.listdir("/proc/self/fd"))
    with ws.equipment.rows(sealed, "csv") as rows:
        assert isinstance(rows, CsvFile)
        path = rows.path
        assert Path(path).read_bytes() == ROWS
        assert os.readlink(path).startswith("/memfd:")
    assert set(os.listdir("/proc/self/fd")) == before
    other = replace(sealed, digest="0" * 64)
    with pytest.raises(ModicumError), ws.equipment.rows(other, "csv"):
        pass


@pytest.mark.parametrize(
    ("rows", "media", "why"),
    [
        (b"", "csv", "it is empty"),
        (b"person;town;income\n1;north;low\n", "csv", "semicolons"),
        (b"1,north,low\n2,south,high\n", "csv", "has none of its column names"),
        (b"person,town\n1,north\n", "csv", "has no column `income`"),
        (ROWS, "parquet", "it is not a Parquet file"),
        (b"PAR1" + ROWS + b"PAR1", "parquet", "cannot be opened"),
    ],
)
def test_what_cannot_be_asked_is_not_registered(
    tmp_path: Path, rows: bytes, media: Any, why: str
) -> None:
    town = Town(tmp_path)
    with pytest.raises(mo.InputError, match=why) as caught:
        town.office("olga").register("people", rows, Declared(TABLES, media), OWNED)
    assert caught.value.code.value == "MOD817"
    text = "".join(
        f"{one.message}{one.label}{one.help}" for one in caught.value.problems
    )
    assert "north" not in text.replace("`north`", "")
    assert "people" not in town.office("olga").data()
    kept = [one.suffix for one in (town.folder / "vault").glob("*")]
    assert ".sealed" not in kept


def test_what_was_shredded_is_gone_for_good(town: Town) -> None:
    amir = town.office("amir")
    amir.submit_query(Purpose("q", "to know"), [query("r-1")])
    town.agree("q")
    town.office("olga").shred(Version("people", 1), reason="the law")
    with pytest.raises(ModicumError, match="was shredded"):
        amir.run("q")
    kept = [one.name for one in (town.folder / "vault").iterdir()]
    assert not [one for one in kept if one.endswith((".sealed", ".key"))]


def test_an_unknown_tier_is_none(town: Town) -> None:
    ws = open_escrow(town.folder / "ledger.db", town.place)
    assert ws.equipment is not None
    with pytest.raises(mo.UsageError, match="unknown sandbox `docker`"):
        ws.equipment.sandbox("docker")
