"""The bench of the ledger runs, and its arithmetic is right."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from modicum.ledger import audit

BENCH = Path(__file__).parents[3] / "bench" / "ledger.py"


def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_ledger", BENCH)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_it_runs() -> None:
    tiny = ["--quick", "--seconds", "0.01", "--events", "40", "--stores", "sqlite"]
    done = subprocess.run(
        [sys.executable, BENCH, *tiny, "--sync-us", "100"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("| batches of 100") == 4
    assert "simulated" in done.stdout
    assert "Start from 40 events" in done.stdout


def test_the_log_that_it_writes_is_one() -> None:
    report = audit(list(bench().log(31)))
    assert report.decisions == 10
