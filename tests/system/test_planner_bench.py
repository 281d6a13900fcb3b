"""The bench of the planner runs, and both of its sides plan alike."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"


def test_it_runs_and_its_sides_plan_alike() -> None:
    """It stops with an error where they do not; how quick it is, decides nothing."""
    done = subprocess.run(
        [sys.executable, BENCH / "planner.py", "--quick"],
        capture_output=True,
        text=True,
        check=True,
    )
    beside, by_step, many, memory = done.stdout.split("\n## ")[1:]
    assert beside.startswith("Beside plain NumPy: 2 rounds from round 6 on")
    rows = [line.split("|")[1:-1] for line in beside.splitlines() if "| w" in line]
    assert [row[0].strip() for row in rows] == ["w1", "w4"]
    assert "| accepted by both |" in beside
    for *_, accepted_by_both in rows:  # Requests of two rounds: the same every time.
        assert int(accepted_by_both) > 100
    assert by_step.count("| w") == 4
    assert many.count("| 1,5") == 4
    assert "at its peak" in memory


def test_sides_that_do_not_plan_alike_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCH)
    bench: ModuleType = importlib.import_module("planner")

    def nothing(_plain: object, batch: Any) -> Any:
        return batch.weights < 0

    monkeypatch.setattr(bench.PlainPlanner, "plan", nothing)
    with pytest.raises(AssertionError, match="the sides do not agree"):
        bench.beside("w1", 1)
