"""The bench of the escrow runs, and says what it was to find out."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCH)
    return importlib.import_module("escrow_overhead")


def test_it_tells_what_each_side_takes(
    bench: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """How quick it is on few rows, under tests, decides nothing."""
    monkeypatch.setattr(bench, "SQL", {"by race": bench.SQL["by race"]})
    few = ["--rows", "50", "--runs", "1", "--profile", "--folder", str(tmp_path)]
    code = bench.main(few)
    output = capsys.readouterr().out
    assert output.startswith("50 rows (made-up people)")
    for query in bench.SQL:
        sides = re.findall(rf"^\| {query} \| (.+?) \| [\d.]+ \|", output, re.MULTILINE)
        assert tuple(sides) == bench.SIDES
        assert f"| {query} | direct |" in output
    assert re.search(r"telling it \(`carried_out`\) \| [\d.]+ \| \d+% \|", output)
    assert code == (0 if "\nPASS: at most 3 s more" in output else 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("escrow", [3.09, 3.11])
def test_more_than_three_seconds_more_fail_it(
    escrow: float, bench: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {bench.DIRECT: 0.1, bench.ESCROW: escrow}

    def made_up(runs: int, *_: object) -> dict[tuple[str, str], list[float]]:
        return {
            (query, side): [seconds.get(side, 1.0)] * runs + [9.0]
            for query in bench.SQL
            for side in bench.SIDES
        }

    monkeypatch.setattr(bench, "measured", made_up)
    assert bench.main(["--rows", "1", "--runs", "3"]) == (escrow > 3.1)


def test_both_sides_ask_the_same_of_the_same_rows(
    bench: ModuleType, tmp_path: Path
) -> None:
    rows, many, _ = bench.table(None, 50)
    assert (many, rows.count(b"\n")) == (50, 51)
    direct = bench.Direct(tmp_path / "direct", rows)
    escrow = bench.Escrow(tmp_path / "escrow", rows)
    sql = bench.SQL["by race"]
    direct_rows = direct.ready("q", sql)().answers.to_dict()["rows"]
    escrow.ready("q", sql, exact=False)()
    answers = escrow.received("q")().answers["release-q"]
    assert [one["keys"] for one in answers["rows"]] == [
        one["keys"] for one in direct_rows
    ]
