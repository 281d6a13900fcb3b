"""Several processes on one ledger: nothing is lost and no limit is overdrawn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from oracle.decisions import counted_releases
from samples.small import workspace

ROOT = Path(__file__).parents[2]

SUBMITS = """
import sys
sys.path[:0] = sys.argv[3:]
from pathlib import Path
from samples.small import counts, workspace

ws = workspace(Path(sys.argv[1]))
for n in range(15):
    release = f"r-{sys.argv[2]}-{n}"
    decision = ws.submit(counts(release, rho="0.001"))
    print(decision.status, release, flush=True)
"""


@pytest.mark.spec("LED-8")
def test_four_processes_share_a_budget_for_nineteen_releases(tmp_path: Path) -> None:
    children = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                SUBMITS,
                tmp_path,
                str(n),
                ROOT / "tests",
                ROOT / "src",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(4)
    ]
    answers = [
        line.split()
        for child in children
        for line in child.communicate(timeout=120)[0].splitlines()
    ]
    assert all(child.returncode == 0 for child in children)
    assert len(answers) == 60
    reserved = {release for status, release in answers if status == "reserved"}
    # The limit of `attr:diagnosis @standard` is a rho of 0.01919.
    assert len(reserved) == 19
    ws = workspace(tmp_path)
    counted = counted_releases(record.payload for record in ws.records())
    assert {release["id"] for release in counted} == reserved
    assert ws.verify().decisions == 60
