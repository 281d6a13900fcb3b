"""The bench of the planner runs, and both of its sides plan alike."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "planner.py"


@pytest.mark.slow
def test_it_runs_and_its_sides_plan_alike() -> None:
    """It stops with an error where they do not."""
    done = subprocess.run(
        [sys.executable, BENCH, "--quick"], capture_output=True, text=True, check=True
    )
    beside, by_step, many, memory = done.stdout.split("\n## ")[1:]
    assert beside.startswith("Beside plain NumPy: 2 rounds from round 6 on")
    rows = [line.split("|")[1:-1] for line in beside.splitlines() if "| w" in line]
    assert [row[0].strip() for row in rows] == ["w1", "w4"]
    assert all(int(row[-1]) > 100 for row in rows)
    assert by_step.count("| w") == 4
    assert many.count("| 1,5") == 4
    assert "at its peak" in memory
