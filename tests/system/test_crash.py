"""Killed at any moment, a ledger loads, verifies, and counts what was reserved."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from samples.small import counts, workspace

ROOT = Path(__file__).parents[2]

# Kills itself at the n-th statement that reaches SQLite, before or after it runs.
AT_STATEMENT = """
import os, signal, sqlite3, sys
sys.path[:0] = sys.argv[4:]
from pathlib import Path
from samples.small import counts, workspace

folder, left, when = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

class Dying(sqlite3.Connection):
    def _count(self, run, *args):
        global left
        left -= 1
        if left == 0 and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = run(*args)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    def execute(self, *args):
        return self._count(super().execute, *args)
    def executemany(self, *args):
        return self._count(super().executemany, *args)
    def close(self):
        return self._count(super().close)

plain = sqlite3.connect
sqlite3.connect = lambda *a, **k: plain(*a, factory=Dying, **k)
ws = workspace(folder)
for step in ("submit", "start", "post"):
    if step == "submit":
        ws.submit(counts("r-1", rho="0.015"))
    else:
        getattr(ws, step)("r-1")
    print(step, flush=True)
"""

# Works without end, and says what was acknowledged.
WITHOUT_END = """
import sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from samples.small import counts, workspace

ws = workspace(Path(sys.argv[1]))
for n in range(10**6):
    release = f"r-{n}"
    if ws.submit(counts(release, rho="0.00001")).status != "reserved":
        continue
    print("reserved", release, flush=True)
    ws.start(release)
    print("started", release, flush=True)
    ws.post(release)
    print("posted", release, flush=True)
"""


def run(script: str, *args: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, args), ROOT / "tests", ROOT / "src"],
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.spec("LED-8")
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_statement(tmp_path: Path, when: str) -> None:
    finished = False
    deaths = 0
    for statement in range(1, 200):
        folder = tmp_path / f"{statement}"
        folder.mkdir()
        child = run(AT_STATEMENT, folder, statement, when)
        said = child.communicate(timeout=60)[0].split()
        if child.returncode == 0:
            finished = True
            break
        assert child.returncode == -9
        deaths += 1
        survives(folder, said)
    assert finished
    assert deaths > 20


def survives(folder: Path, said: list[str]) -> None:
    """Assert that every acknowledged step is there, and counts."""
    ws = workspace(folder)
    state = ws.state()
    if state.seq:
        assert ws.verify().entries == state.seq
    standing = state.releases.get("r-1")
    reached = {None: 0, "reserved": 1, "started": 2, "posted": 3}
    status = standing.status.value if standing else None
    assert len(said) <= reached[status] <= len(said) + 1
    # Reserved, started or posted: it counts, and a second one does not fit.
    assert ws.check(counts("r-2", rho="0.015")).allowed == (standing is None)
    # Whoever comes next can go on.
    again = ws.submit(counts("r-1", rho="0.015"))
    assert again.allowed
    assert again.retry == (standing is not None)


def kill_at_random(folder: Path, rng: random.Random) -> int:
    """Kill a working process at a random moment; return what it had acknowledged."""
    child = run(WITHOUT_END, folder)
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(rng.uniform(0, 0.15))
    child.kill()
    said = [line.split() for line in child.communicate(timeout=60)[0].splitlines()]
    ws = workspace(folder)
    report = ws.verify()
    state = ws.state()
    assert report.entries == state.seq
    order = ["reserved", "started", "posted"]
    for line in said:
        if len(line) == 2:  # The last line may be cut off.
            standing = state.releases[line[1]]
            assert order.index(standing.status.value) >= order.index(line[0])
    charged = sum(1 for one in state.releases.values() if one.status.counts)
    rule = next(r for r in ws.standings() if r.rule.id == "global @standard")
    assert rule.before.units(1) == charged * 10_000_000  # 0.00001 each
    return len(said)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.spec("LED-8")
def test_killed_at_random_moments(tmp_path: Path) -> None:
    soaking = bool(os.environ.get("MODICUM_SOAK"))
    seed = random.randrange(2**32) if soaking else 20260501
    print(f"seed {seed}")
    rng = random.Random(seed)
    times = 300 if soaking else 12
    said = 0
    for number in range(times):
        folder = tmp_path / f"{number // 20}"  # A new ledger now and then: they grow.
        folder.mkdir(exist_ok=True)
        said += kill_at_random(folder, rng)
    assert said > times
