"""The tier `bubblewrap`: programs in Python, in namespaces of the Linux kernel."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from modicum.api.ports.escrow import Limits
from modicum.core.errors import Problem
from modicum.escrow.programs import Program
from modicum.sandbox.cgroups import Groups, found_groups
from modicum.sandbox.job import sealed
from modicum.sandbox.memory_root import copied
from modicum.sandbox.process import Command, Ended, Handles, run_held
from modicum.sandbox.requirements import executable, needs
from modicum.sandbox.root import PACKAGES, Root, python_root
from modicum.sandbox.seccomp import filter_bytes
from modicum.sandbox.self_test import SelfTest
from modicum.sandbox.tier import Tier

#: The environment inside, independent of the one outside.
ENVIRONMENT: Final[Mapping[str, str]] = {
    "HOME": "/",
    "LANG": "C.UTF-8",
    "LD_LIBRARY_PATH": "/lib",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JOBLIB_MULTIPROCESSING": "0",
    "LOKY_MAX_CPU_COUNT": "1",
}
_INSIDE: Final = Path(__file__).with_name("init_process.py")
_FILES_MAX: Final = 64
_SIGNALS_MAX: Final = 64
_STACK_BYTES: Final = 2**23


class Bubblewrap(Tier):
    """Programs in Python, each in a sandbox that bubblewrap makes for one run.

    Args:
        uid: As for `Tier`.
        at_a_time: As for `Tier`.
    """

    name = "bubblewrap"
    language = "python"
    other_tier = "wasm"

    def __init__(self, uid: int | None = None, at_a_time: int = 1) -> None:
        super().__init__(uid, at_a_time)
        self._groups = Groups(None, None)

    @contextmanager
    def running(
        self,
        program: Program,
        job: int,
        limits: Limits,
        end_at: float,
        uid: int | None,
    ) -> Iterator[bytes]:
        """Run a program; yield its record. It is gone after the block."""
        with self._run(job, limits, end_at, uid) as ended:
            yield ended.record

    def _needs(self) -> list[Problem]:
        return needs(self._places.uid, self._places.at_a_time)

    def _test(self) -> None:
        self._groups = found_groups()
        SelfTest(self.tier, self._tried, (*ENVIRONMENT, "PWD")).pass_it()

    def _tried(self, job: bytes, limits: Limits) -> Ended:
        """Return the outcome and the message of a built-in program."""
        end_at = time.monotonic() + limits.seconds
        uid = self._places.uid
        with (
            os.fdopen(sealed("job", job), "rb") as given,
            self._run(given.fileno(), limits, end_at, uid, is_captured=True) as ended,
        ):
            return ended

    def _run(
        self,
        job: int,
        limits: Limits,
        end_at: float,
        uid: int | None,
        *,
        is_captured: bool = False,
    ) -> AbstractContextManager[Ended]:
        files = copied(python_root(), executable())

        def made(handles: Handles) -> Command:
            arguments = [*files.enter(), *command(files.root, uid, limits, handles)]
            return Command(arguments, files.handles)

        return run_held(
            made, job, limits, self._groups, end_at, is_captured=is_captured
        )


def command(
    root: Root, uid: int | None, limits: Limits, handles: Handles
) -> Sequence[str]:
    """Return the command that creates a sandbox and runs its first program.

    The first process of its namespace is bubblewrap's own, with the present user. So
    the kernel ends it with its watcher, and all others with it; a process with another
    user would continue.
    """
    made = [
        str(executable()),
        *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
        *("--unshare-cgroup-try", "--hostname", "sandbox"),
        *("--new-session", "--die-with-parent", "--clearenv", "--cap-drop", "ALL"),
        *("--info-fd", str(handles.status), "--block-fd", str(handles.gate)),
    ]
    if uid is None:
        made += ["--unshare-user"]
    else:  # It becomes that user inside, after root has put everything in place.
        made += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    for name, value in ENVIRONMENT.items():
        made += ["--setenv", name, value]
    for folder in root.folders:  # Left to itself, bubblewrap keeps them to root.
        made += ["--perms", "0755", "--dir", folder]
    for inside, outside in root.bound:
        made += ["--ro-bind", str(outside), inside]
    for inside in root.covered:
        made += ["--tmpfs", inside, "--remount-ro", inside]
    made += ["--chdir", "/", "--remount-ro", "/", "--"]
    inner_settings = settings(uid, limits, filter_bytes(files=True))
    return [*made, *inside_command(root, inner_settings)]


def inside_command(root: Root, inner_settings: str) -> list[str]:
    """Return the command that is run inside."""
    first = _INSIDE.read_text("utf-8")
    flags = ["-X", "utf8", "-s", "-S", "-B", "-P"]
    return [root.python, *flags, "-c", first, inner_settings]


def settings(uid: int | None, limits: Limits, code: bytes) -> str:
    """Return the settings of the first program in a sandbox, as JSON."""
    seconds = math.ceil(limits.seconds) + 1
    most = {
        "AS": limits.memory_bytes,
        "CPU": seconds,
        "FSIZE": 0,
        "NOFILE": _FILES_MAX,
        "CORE": 0,
        "STACK": _STACK_BYTES,
        "MEMLOCK": 0,
        "MSGQUEUE": 0,
        "SIGPENDING": _SIGNALS_MAX,
    }
    inner_settings = {
        "filter": code.hex(),
        "uid": uid,
        # With only one user, the first process counts as well.
        "processes": limits.processes + (uid is None),
        "limits": most,
        "packages": PACKAGES,
    }
    return json.dumps(inner_settings)
