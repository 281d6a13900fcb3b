"""What the commands say of a log that states less than it costs, or no known price."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from samples import first_version
from samples.audited import (
    ASKING,
    activated,
    bodies,
    bundle,
    described_anew,
    priced,
    sealed,
)
from samples.small import compiled
from typer.testing import CliRunner

from modicum.accounting import Loss
from modicum.accounting.grid import RHO
from modicum.cli.main import app
from modicum.ledger import Record
from modicum.ledger.log.events import PastRecorded, ReleaseDenied, ReleaseReserved
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.storage.sqlite_store import SqliteStore

RUNNER = CliRunner()
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
#: Where the sample has a past release, a reservation and a denial.
BROUGHT_IN = {2: "old", 4: "r-1", 9: "huge"}


def run(*args: str, exit_code: int = 0) -> str:
    result = RUNNER.invoke(app, args)
    assert result.exit_code == exit_code, (result.output, result.exception)
    return result.output


def written(folder: Path, rows: Sequence[Record]) -> dict[str, tuple[str, ...]]:
    """Return how a log is verified that lies in a ledger, and in a bundle."""
    with SqliteStore(folder / "ledger.db").turn() as turn:
        turn.append(rows)
    (folder / "a.modicum-audit").write_bytes(bundle(rows))
    return {
        "ledger": ("ledger", "verify", "--ledger", str(folder / "ledger.db")),
        "bundle": ("audit", "verify", str(folder / "a.modicum-audit")),
    }


def cheaper(release: RecordedRelease) -> RecordedRelease:
    (one,) = release.mechanisms
    units = list(one.losses["user"].coordinates)
    units[RHO] -= 1
    less = replace(one, losses={"user": Loss(tuple(units))})
    return structs.replace(release, mechanisms=(less,))


def described(section: str) -> set[str]:
    """Return the keys that a section of the reference describes."""
    text = REFERENCE.read_text(encoding="utf-8")
    part = text.split(f"## {section}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `([^`]+)`", part, re.MULTILINE))


@pytest.mark.spec("AUD-9")
@pytest.mark.parametrize("seq", BROUGHT_IN)
def test_less_than_the_price_leaves_with_6(tmp_path: Path, seq: int) -> None:
    happened = bodies()
    body = happened[seq - 1]
    assert isinstance(body, ReleaseReserved | ReleaseDenied | PastRecorded)
    happened[seq - 1] = structs.replace(body, release=cheaper(body.release))
    for args in written(tmp_path, sealed(happened)).values():
        output = run(*args, exit_code=6)
        assert f"error[MOD702]: the ledger is broken at entry {seq}:" in output
        assert f"release `{BROUGHT_IN[seq]}`, mechanism `counts`" in output
        assert "it states rho" in output
        assert "help: stop using it" in output
        found = json.loads(run(*args, "--json", exit_code=6))
        assert found["error"]["code"] == "MOD702"


@pytest.mark.spec("AUD-9")
def test_what_is_not_known_leaves_with_6(tmp_path: Path) -> None:
    unexpected = described_anew(
        first_version.described(priced("r-0"), kind="p\x1b[1md")
    )
    past = PastRecorded(unexpected, compiled(ASKING).policy.digest)
    for args in written(tmp_path, sealed([activated(ASKING), past])).values():
        output = run(*args, exit_code=6)
        assert "error[MOD702]: the ledger is broken at entry 2:" in output
        assert "mechanism `counts`: this version of modicum cannot price it" in output
        assert "help: verify with the version of modicum that wrote the entry" in output
        assert "\x1b" not in output
        found = json.loads(run(*args, "--json", exit_code=6))
        assert found["error"]["code"] == "MOD702"


@pytest.mark.spec("AUD-9")
@pytest.mark.parametrize("many", [1, 7])
def test_what_version_1_let_pass_is_counted(tmp_path: Path, many: int) -> None:
    rows = first_version.strange_log(many, "p\x1b[1md")
    for args in written(tmp_path, rows).values():
        output = run(*args)
        what = "1 release" if many == 1 else "7 releases"
        assert (
            f"  {what} could not be priced again; their recorded losses are taken"
            in output
        )
        assert "entry 2 (`r-0`, mechanism `counts`): mechanisms of the kind" in output
        assert ("; and 2 more" in output) == (many == 7)
        assert "\x1b" not in output
        found: Any = json.loads(run(*args, "--json"))
        assert found["ok"]
        assert found["unpriced"]["releases"] == many
        assert len(found["unpriced"]["first"]) == min(many, 5)
        assert described("Releases without a price") == {
            *found["unpriced"],
            *(f"first[].{key}" for key in found["unpriced"]["first"][0]),
        }
        assert found["unpriced"]["first"][0] == {
            "seq": 2,
            "release": "r-0",
            "mechanism": "counts",
            "why": "mechanisms of the kind `p\x1b[1md` are not priced by this version",
        }


@pytest.mark.spec("AUD-9")
def test_of_an_honest_log_nothing_is_said(tmp_path: Path) -> None:
    for args in written(tmp_path, sealed(bodies())).values():
        assert "priced" not in run(*args)
        found = json.loads(run(*args, "--json"))
        assert found["unpriced"] == {"releases": 0, "first": []}
