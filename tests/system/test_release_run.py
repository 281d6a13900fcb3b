"""Commands and libraries under a reservation, as processes: ended, failed and killed.

Whatever is killed after the start leaves the release started, and its loss spent.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from samples.small import POLICY, compiled

from modicum.api.local import Workspace
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import SystemClock

RUN = (sys.executable, "-m", "modicum", "release", "run", "r-1", "--")
#: Says that it runs, and waits to be told or killed. Python heeds no signal between its
#: last look at them and a read that then waits: what a signal writes ends this wait.
WAITS = """
import os, select, signal
heard, hears = os.pipe()
os.set_blocking(hears, False)
signal.set_wakeup_fd(hears)

def waits():
    print("runs", flush=True)
    select.select([0, heard], [], [])
"""
WAITING = f"{WAITS}\nwaits()"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a ledger in which `r-1` is reserved."""
    monkeypatch.chdir(tmp_path)
    for name in ("MODICUM_LEDGER", "MODICUM_POLICY", "MODICUM_RESERVATION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MODICUM_ACTOR", "ann")
    (tmp_path / "policy.yaml").write_text(POLICY)
    cost = {"user": {"eps": 0.5, "delta": 1e-8}}
    one = {"mechanism": "declared", "name": "m", "attributes": ["age"], "cost": cost}
    ws = ledger(tmp_path)
    assert ws.submit({"release": "r-1", "mechanisms": [one]}).allowed
    return tmp_path


def ledger(folder: Path) -> Workspace:
    store = SqliteStore(folder / "ledger.db", wait_seconds=20)
    return Workspace(store, SystemClock(), policy=compiled(), actor="tester")


def status(folder: Path) -> str:
    return ledger(folder).standing("r-1").status.value


def python(script: str) -> tuple[str, ...]:
    return (*RUN, sys.executable, "-c", script)


def done(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120
    )


def _interruptible() -> None:
    """Let a child be interrupted, also where this process is not: in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that has said that it runs; at the end it is gone."""
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=_interruptible,  # noqa: PLW1509 - no other threads run
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "runs\n"
            yield process
        finally:
            process.kill()


# --- a command that ends ------------------------------------------------------------


def test_a_command_that_ends_well_is_posted(folder: Path) -> None:
    script = (
        "import os, pathlib, sys\n"
        "assert os.environ['MODICUM_RESERVATION'] == 'r-1'\n"
        f"assert os.environ['MODICUM_LEDGER'] == {str(folder / 'ledger.db')!r}\n"
        "print(sys.argv[1:], sys.stdin.read())\n"
    )
    found = subprocess.run(
        (*python(script), "--ledger", "-x"),
        input="given",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (found.returncode, found.stdout) == (0, "['--ledger', '-x'] given\n")
    assert found.stderr.splitlines() == [
        "r-1: started; its loss is spent",
        "r-1: published",
    ]
    assert status(folder) == "published"


def test_it_is_started_before_the_command_begins(folder: Path) -> None:
    assert done(*python("raise SystemExit(7)")).returncode == 7
    assert status(folder) == "started"
    again = done(*python("print('not again')"))
    assert (again.returncode, again.stdout) == (4, "")
    assert "MOD705" in again.stderr


def test_what_cannot_be_run_is_not_started(folder: Path) -> None:
    missing = done(*RUN, "no-such-program")
    assert missing.returncode == 2
    assert "nothing was started or spent" in missing.stderr
    assert done(*RUN).returncode == 2
    assert status(folder) == "reserved"
    unknown = done(*(RUN[:5]), "r-9", "--", "true")
    assert unknown.returncode == 4
    assert "MOD704" in unknown.stderr


# --- signals ------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_go_to_the_command(folder: Path, number: signal.Signals) -> None:
    script = (
        "import signal\n"
        "def told(number, frame): raise SystemExit(40 + number)\n"
        f"signal.signal({int(number)}, told)\n"
        f"{WAITING}\n"
    )
    with running(*python(script)) as process:
        process.send_signal(number)
        assert process.wait(60) == 40 + number
    assert status(folder) == "started"


def test_a_command_that_takes_a_signal_well_is_posted(folder: Path) -> None:
    script = (
        "import signal\n"
        "def told(number, frame): raise SystemExit(0)\n"
        f"signal.signal(signal.SIGTERM, told)\n{WAITING}\n"
    )
    with running(*python(script)) as process:
        process.terminate()
        assert process.wait(60) == 0
    assert status(folder) == "published"


def test_a_killed_command_leaves_it_spent(folder: Path) -> None:
    killing = "import os; os.kill(os.getpid(), 9)"
    found = done(*python(killing))
    assert found.returncode == 128 + signal.SIGKILL
    assert "stays started, and its loss spent" in found.stderr
    assert status(folder) == "started"


def test_killed_itself_it_leaves_it_spent(folder: Path) -> None:
    with running(*python(WAITING)) as process:
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
        assert status(folder) == "started"  # The command ends with its input.
    assert status(folder) == "started"


# --- libraries in a script ----------------------------------------------------------

OPENDP = """
import modicum as mo
import opendp.prelude as dp
from modicum.integrations.loader import Adapters
from modicum.api.local.reservation_use import Use

dp.enable_features("contrib")
counts = dp.m.make_laplace(
    dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"), scale=2.5)
use = Use(mo.open("ledger.db"), "r-1", Adapters())
query = use.opendp("m").check(counts, 1)
with use:
    query([1, 2, 3])
    waits()
"""

JOINED = """
import modicum as mo
import opendp.prelude as dp
from modicum.ops.command import reservation

dp.enable_features("contrib")
counts = dp.m.make_laplace(
    dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"), scale=SCALE)
with reservation() as use:
    print(len(use.opendp("m").check(counts, 1)([1, 2, 3])))
"""

OPACUS = """
import warnings
warnings.simplefilter("ignore")
import torch
from torch.utils.data import DataLoader, TensorDataset
import modicum as mo
from modicum.integrations.loader import Adapters
from modicum.api.local.reservation_use import Use

rows = torch.randn(60, 4)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(rows, (rows[:, 0] > 0).long()), batch_size=30)
with Use(mo.open("ledger.db"), "r-1", Adapters()) as use:
    training = use.opacus("m").make_private(
        model, optimizer, loader, epochs=2, max_grad_norm=1.0)
    for number, (features, classes) in enumerate(training.batches()):
        training.optimizer.zero_grad()
        found = training.module(features)
        torch.nn.functional.cross_entropy(found, classes).backward()
        training.optimizer.step()
        if number == 1:
            waits()
"""

HAS_OPENDP = importlib.util.find_spec("opendp") is not None
HAS_OPACUS = importlib.util.find_spec("opacus") is not None
LIBRARIES: list[Any] = [
    pytest.param(
        OPENDP, id="opendp", marks=pytest.mark.skipif(not HAS_OPENDP, reason="absent")
    ),
    pytest.param(
        OPACUS,
        id="opacus",
        marks=pytest.mark.skipif(
            not HAS_OPACUS and os.environ.get("MODICUM_OPACUS") != "required",
            reason="absent",
        ),
    ),
]


@pytest.mark.parametrize("script", LIBRARIES)
@pytest.mark.parametrize("end", ["told", "killed", "interrupted"])
def test_a_library_killed_midway_leaves_it_spent(
    folder: Path, script: str, end: str
) -> None:
    with running(sys.executable, "-c", WAITS + script) as process:
        assert status(folder) == "started"
        if end == "told":
            process.communicate("go on\n", timeout=60)
            assert process.returncode == 0
        else:
            number = signal.SIGKILL if end == "killed" else signal.SIGINT
            process.send_signal(number)
            assert process.wait(60) != 0
    assert status(folder) == ("published" if end == "told" else "started")


@pytest.mark.skipif(not HAS_OPENDP, reason="absent")
@pytest.mark.parametrize("scale", [2.5, 1.0])
def test_a_script_joins_the_reservation_that_it_runs_under(
    folder: Path, scale: float
) -> None:
    found = done(*python(JOINED.replace("SCALE", str(scale))))
    if scale == 2.5:
        assert (found.returncode, found.stdout) == (0, "3\n"), found.stderr
        assert status(folder) == "published"
    else:
        assert found.returncode == 1
        assert status(folder) == "started"


CLAIMING = """
import sys
import modicum as mo

for _ in range(int(sys.argv[1])):
    with mo.reservation() as use:
        use.claim("m")
        print("ran")
"""


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("processes", [1, 2])
def test_a_mechanism_runs_once_in_all_processes_of_a_command(
    folder: Path, times: int, processes: int
) -> None:
    Path("claim.py").write_text(CLAIMING)
    again = "; ".join([f"{sys.executable} claim.py {times}"] * processes)
    found = done(*RUN, "sh", "-c", again)
    assert found.stdout == "ran\n"
    assert ("has already run" in found.stderr) == (times * processes > 1)
    assert status(folder) == ("published" if times * processes == 1 else "started")


def test_a_mechanism_that_cannot_be_noted_does_not_run(folder: Path) -> None:
    Path("claim.py").write_text(CLAIMING)
    elsewhere = f"MODICUM_CLAIMS=/nowhere {sys.executable} claim.py 1"
    found = done(*RUN, "sh", "-c", elsewhere)
    assert found.stdout == ""
    assert "cannot record that" in found.stderr


def test_a_script_that_runs_under_none_is_told(folder: Path) -> None:
    joining = "from modicum.ops.command import reservation; reservation()"
    found = done(sys.executable, "-c", joining)
    assert found.returncode == 1
    assert "does not run under a reservation" in found.stderr
