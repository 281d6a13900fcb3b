"""A command under a reservation: its environment, its end, and no program at all."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from samples.small import counts, workspace

from modicum.api.local.reservation_use import Use
from modicum.core.errors import UnavailableError, UsageError
from modicum.ops.command import Command, environment


def variables(tmp_path: Path) -> dict[str, str]:
    return {"PATH": str(tmp_path)}


def ended(script: str) -> int:
    return Command([sys.executable, "-c", script], {}).run(lambda: None)


def test_the_environment_names_the_reservation_and_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ws = workspace(tmp_path)
    ws.submit(counts("r-1", rho="0.01"))
    use = Use(ws, "r-1")
    found = environment(use, "ledger.db", tmp_path, {"A": "b"})
    assert found == {
        "A": "b",
        "MODICUM_RESERVATION": "r-1",
        "MODICUM_LEDGER": str(tmp_path / "ledger.db"),
        "MODICUM_RESERVED": '{"counts": {"user": {"rho": "0.01"}}}',
        "MODICUM_CLAIMS": str(tmp_path),
    }
    url = "postgresql://host/database"
    assert environment(use, url, tmp_path, {})["MODICUM_LEDGER"] == url
    monkeypatch.setenv("OF_THE_PARENT", "1")
    assert environment(use, url, tmp_path)["OF_THE_PARENT"] == "1"


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_the_exit_code_is_that_of_the_command(code: int) -> None:
    assert ended(f"raise SystemExit({code})") == code


def test_a_signal_that_ended_it_is_told_as_shells_do() -> None:
    assert ended("import os; os.kill(os.getpid(), 9)") == 128 + signal.SIGKILL


def test_the_command_has_the_signals_of_a_command() -> None:
    """Neither held back nor ignored, though it was started while they were."""
    script = (
        "import signal\n"
        "assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())\n"
        "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n"
    )
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert ended(script) == 0
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    assert signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL


def test_what_was_held_back_before_stays_held_back() -> None:
    script = (
        "import signal\n"
        "held = signal.pthread_sigmask(signal.SIG_BLOCK, ())\n"
        "assert held == {signal.SIGWINCH}, held\n"
    )
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})
    try:
        assert ended(script) == 0
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_it_starts_before_the_command(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    script = f"import os; raise SystemExit(0 if os.path.exists({str(mark)!r}) else 1)"
    assert Command([sys.executable, "-c", script], {}).run(mark.touch) == 0


def test_what_fails_to_start_runs_nothing(tmp_path: Path) -> None:
    def start() -> None:
        raise ArithmeticError

    mark = tmp_path / "ran"
    command = Command([sys.executable, "-c", f"open({str(mark)!r}, 'w')"], {})
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with pytest.raises(ArithmeticError):
        command.run(start)
    assert not mark.exists()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_a_program_that_is_not_there_is_refused_before_the_start(
    tmp_path: Path,
) -> None:
    with pytest.raises(UsageError, match="program `nothing-here` not found") as caught:
        Command(["nothing-here"], variables(tmp_path))
    assert "nothing was started or spent" in caught.value.problems[0].notes[0]


def test_a_program_that_cannot_be_run_is_spent(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x00\x01")
    broken.chmod(0o755)
    started: list[int] = []
    command = Command(["broken"], variables(tmp_path))
    with pytest.raises(UnavailableError, match="could not be run"):
        command.run(lambda: started.append(1))
    assert started == [1]
