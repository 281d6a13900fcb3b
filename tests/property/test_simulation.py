"""Everything that can go wrong around the ledger, from one seed, again and again.

Several workspaces share a log in memory whose turns are refused, whose commits fail
before or after they are stored, and whose owners crash. A run is decided by its seed
alone: the same seed gives the same bytes, in any process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from budget import examples, seed
from oracle.auditor import audit
from samples.simulation import Simulation

ROOT = Path(__file__).parents[2]


def simulated(number: int) -> Simulation:
    simulation = Simulation(f"simulation {seed()} {number}")
    simulation.run()
    return simulation


@pytest.mark.soak
@pytest.mark.spec("LED-8")
def test_whatever_fails_the_log_is_right_and_nothing_told_is_lost() -> None:
    faults: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for number in range(examples(10)):
        simulation = simulated(number)
        found = audit(simulation.rows, simulation.told)
        assert found.mistakes == [], (number, found)
        assert simulation.verified().entries == found.entries
        kinds += found.kinds
        faults += simulation.faults
    print(dict(kinds), dict(faults))
    assert len(faults) == 10
    assert min(faults.values()) > 0
    assert kinds["release-denied"] > kinds["release-reserved"] / 2
    assert kinds["release-reserved"] > examples(10) * 5


SHOW = """
import sys
sys.path[:0] = sys.argv[2:]
from samples.simulation import Simulation
simulation = Simulation(sys.argv[1])
simulation.run()
print(*(hash_ for _, _, hash_ in simulation.rows()))
print(simulation.verified().state_digest)
"""


def test_the_same_seed_gives_the_same_bytes_in_any_process() -> None:
    printed = {shown("again", hash_seed) for hash_seed in ("0", "1")}
    here = Simulation("again")
    here.run()
    own = " ".join(hash_ for _, _, hash_ in here.rows())
    assert printed == {f"{own}\n{here.verified().state_digest}\n"}
    assert len(own.split()) > 20
    assert shown("another", "0") not in printed


def shown(seed_: str, hash_seed: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", SHOW, seed_, ROOT / "tests", ROOT / "src"],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
