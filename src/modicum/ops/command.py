"""A command that runs under a reservation, as if it had been called itself."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from modicum.api.local.reservation_use import Use
from modicum.core.errors import Code, Problem, UnavailableError, UsageError
from modicum.integrations.loader import Adapters
from modicum.ops.wiring import open_workspace

#: The environment variables of a command: its reservation, and the ledger.
RESERVATION = "MODICUM_RESERVATION"
LEDGER = "MODICUM_LEDGER"
#: The reserved losses, as JSON: by mechanism and unit, the declared guarantee.
RESERVED = "MODICUM_RESERVED"
#: A folder with a file for each mechanism that runs, of whichever process.
CLAIMS = "MODICUM_CLAIMS"

# The last one is put back last: it may raise from then on.
_FORWARDED = (
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGINT,
)
# Seconds. A signal delivered to another thread does not end the wait.
_LOOK_AGAIN = 0.1
# Python ignores these, and its children would inherit that.
_AS_USUAL = (signal.SIGPIPE, signal.SIGXFSZ)
# A terminal sends these to the command as well.
_BY_KERNEL = 128
# Shells have it so: 128 and the number of the signal.
_SIGNALED = 128


def environment(
    use: Use, ledger: str, claims: Path, inherited: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment of a command that runs under a reservation."""
    if inherited is None:
        inherited = os.environ  # noqa: TID251 - handed on as it is
    place = ledger if "://" in ledger else str(Path(ledger).absolute())
    text = json.dumps(use.costs, ensure_ascii=True, sort_keys=True)
    return {
        **inherited,
        RESERVATION: use.release,
        LEDGER: place,
        RESERVED: text,
        CLAIMS: str(claims),
    }


def first_claim(claims: Path, mechanism: str) -> bool:
    """Return whether a mechanism runs for the first time, and note that it does."""
    name = hashlib.sha256(mechanism.encode()).hexdigest()
    try:
        (claims / name).touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        return False
    except OSError as error:
        raise UnavailableError(
            Problem(
                Code.FILE_UNREADABLE,
                f"cannot record that `{mechanism[:200]}` runs"
                f" ({error.strerror or 'system error'})",
                notes=("a mechanism that may have run must not run again",),
                help="run the script with  modicum release run,  on the same machine",
            )
        ) from None
    return True


class Command:
    """A command that exists, and is not running yet.

    Args:
        arguments: The program and its arguments; at least one.
        variables: Its environment.

    Raises:
        UsageError: If there is no such program.
    """

    def __init__(self, arguments: Sequence[str], variables: Mapping[str, str]) -> None:
        program = shutil.which(arguments[0], path=variables.get("PATH"))
        if program is None:
            raise UsageError(
                Problem(
                    Code.FILE_UNREADABLE,
                    f"program `{arguments[0][:200]}` not found",
                    notes=("nothing was started or spent",),
                    help="give its path, or add its folder to PATH",
                )
            )
        self._program = program
        self._arguments = list(arguments)
        self._variables = dict(variables)

    def run(self, start: Callable[[], object]) -> int:
        """Return the result of the command: its exit code, or 128 and its signal.

        Signals are forwarded to the command, and this process outlives it.
        """
        with _blocked_signals() as signals:
            start()
            pid = self._begun(signals.mask)
            _hand_over(pid, signals)
            code = _ended(pid, signals)
        return code if code >= 0 else _SIGNALED - code

    def _begun(self, mask: set[signal.Signals]) -> int:
        try:
            return os.posix_spawn(
                self._program,
                self._arguments,
                self._variables,
                setsigmask=mask,
                setsigdef=_AS_USUAL,
            )
        except OSError as error:
            raise UnavailableError(
                Problem(
                    Code.ENGINE_FAILED,
                    f"`{self._arguments[0][:200]}` could not be run"
                    f" ({error.strerror or 'system error'})",
                    notes=("the release is started, and its loss spent",),
                    help="check that it is a program of this machine, or a script with"
                    " a valid first line",
                )
            ) from None


@dataclass(frozen=True, slots=True)
class _BlockedSignals:
    """Blocked signals.

    Attributes:
        mask: The mask before.
        forwarded: The signals to forward.
        taken: The signals delivered to other threads, which block none.
    """

    mask: set[signal.Signals]
    forwarded: tuple[signal.Signals, ...]
    taken: list[int]


@contextmanager
def _blocked_signals() -> Iterator[_BlockedSignals]:
    """Block signals, to be fetched one by one; pending ones are delivered at the end.

    Only this thread can block them. Numeric libraries have threads, to which the system
    delivers what this thread does not wait for: there, a signal must neither end the
    process nor be lost, so each has a handler that records it.
    """
    mask = {signal.Signals(one) for one in signal.pthread_sigmask(signal.SIG_BLOCK, ())}
    left = (signal.SIG_IGN, None)  # Ignored, or not Python's to handle.
    forwarded = tuple(one for one in _FORWARDED if signal.getsignal(one) not in left)
    taken: list[int] = []
    before = {}
    try:
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        for one in forwarded:
            before[one] = signal.signal(one, lambda number, _: taken.append(number))
        signal.pthread_sigmask(signal.SIG_BLOCK, {*forwarded, signal.SIGCHLD})
        yield _BlockedSignals(mask, forwarded, taken)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for one, handler in before.items():
            signal.signal(one, handler)
        for number in taken:
            signal.raise_signal(number)


def _hand_over(pid: int, signals: _BlockedSignals) -> None:
    """Forward signals received before the child existed, also from a terminal."""
    while came := signal.sigtimedwait(signals.forwarded, 0):
        os.kill(pid, came.si_signo)


def _ended(pid: int, signals: _BlockedSignals) -> int:
    """Return the exit code of a child, or minus its signal; forward signals."""
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        while signals.taken:  # Its sender is unknown: rather twice than never.
            os.kill(pid, signals.taken.pop(0))
        came = signal.sigtimedwait((*signals.forwarded, signal.SIGCHLD), _LOOK_AGAIN)
        if came and came.si_signo != signal.SIGCHLD and came.si_code != _BY_KERNEL:
            os.kill(pid, came.si_signo)


def reservation() -> Use:
    """Return the reservation that this script runs under.

    `modicum release run ID -- …` has started it, and publishes it when the script
    succeeds; a block  with mo.reservation() as use:  does neither. Each mechanism runs
    once, in any process of the command.

    Raises:
        UsageError: If the script does not run under a reservation.
        ConflictError: If it is not started.
    """
    found = {
        name: os.environ.get(name, "")  # noqa: TID251 - set by the parent
        for name in (RESERVATION, LEDGER, CLAIMS)
    }
    if not all(found.values()):
        raise UsageError(
            Problem(
                Code.RELEASE_UNKNOWN,
                "this script does not run under a reservation",
                help="run it with  modicum release run ID -- …,  or use  ws.use(ID)  on"
                " a workspace",
            )
        )
    workspace = open_workspace(found[LEDGER])
    first = partial(first_claim, Path(found[CLAIMS]))
    return Use(workspace, found[RESERVATION], Adapters(), within=first)
