"""The parent of a worker, killed midway: its loss stays spent, and nobody goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from samples import fake_runner
from samples.scripts import declared, generous

#: Runs a script that never ends, under a reservation, by a runner that plays Tumult.
PARENT = """
import sys
from dataclasses import replace
from pathlib import Path

from samples.scripts import generous

from modicum.integrations import tumult_script
from modicum.integrations.loader import Adapters
from modicum.api.local.reservation_use import Use

folder, runner = Path(sys.argv[1]), Path(sys.argv[2])
tumult_script.TUMULT = replace(tumult_script.TUMULT, file=runner)
use = Use(generous(folder), "r-1", Adapters())
tumult = use.tumult("visits", python=sys.executable)
sources = {"visits": tumult.max_rows(folder / "visits.parquet", 1)}
script = tumult.prepare(folder / "script.py", sources)
with use:
    script.run()
"""
SCRIPT = """
import os, subprocess, time
from pathlib import Path

child = subprocess.Popen(["sleep", "1000"])
note = Path({note!r})
note.with_suffix(".part").write_text(f"{{os.getpid()}} {{child.pid}} {{scratch}}")
note.with_suffix(".part").rename(note)
time.sleep(1000)
"""
_LONG = 120.0


def eventually(true: Callable[[], bool]) -> bool:
    """Wait for something that must happen; only a failure takes long."""
    deadline = time.monotonic() + _LONG
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def gone(pid: int) -> bool:
    """Return whether a process is over, perhaps not yet reaped."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_parent_that_is_killed_leaves_it_spent_and_nothing_running(
    tmp_path: Path, sent: signal.Signals
) -> None:
    ws = generous(tmp_path)
    assert ws.submit(declared({"eps": 1})).allowed
    (tmp_path / "visits.parquet").touch()
    note = tmp_path / "note"
    (tmp_path / "script.py").write_text(SCRIPT.format(note=str(note)))
    path = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")]
    # A shell's background job, and so its children, ignore SIGINT.
    heeds = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)"
    begin = f"{heeds}\nimport sys\nsys.path[:0] = {path!r}\n{PARENT}"
    runner = str(fake_runner.__file__)
    with subprocess.Popen(
        [sys.executable, "-c", begin, str(tmp_path), runner],
        stderr=subprocess.DEVNULL,
    ) as parent:
        try:
            assert eventually(lambda: note.exists() or parent.poll() is not None)
            worker, child, scratch = note.read_text().split()
            assert generous(tmp_path).standing("r-1").status.value == "started"
            parent.send_signal(sent)
            parent.wait()
        finally:
            parent.kill()
    assert eventually(lambda: gone(int(worker)) and gone(int(child)))
    assert not Path(scratch).exists()
    assert generous(tmp_path).standing("r-1").status.value == "started"
