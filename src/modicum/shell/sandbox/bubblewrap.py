"""The tier `bubblewrap`: programs in Python, in namespaces of the Linux kernel."""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from modicum.core.errors import Code, InputError, Problem, UnavailableError
from modicum.escrow.programs import Program, Table
from modicum.shell.sandbox.cgroups import Groups, found_groups
from modicum.shell.sandbox.copied import copied
from modicum.shell.sandbox.jobs import job_bytes
from modicum.shell.sandbox.needs import executable, must_be_idle, needs
from modicum.shell.sandbox.places import Places
from modicum.shell.sandbox.process import Command, Ended, Handles, run_held
from modicum.shell.sandbox.root import PACKAGES, Root, python_root
from modicum.shell.sandbox.scores import told
from modicum.shell.sandbox.self_test import SelfTest
from modicum.shell.sandbox.syscalls import filter_bytes
from modicum.shell.sandbox.timing import told_at_the_end
from modicum.workspace.escrowing.ports import Limits

#: What is set inside, whatever is set outside.
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
_INSIDE: Final = Path(__file__).with_name("inside.py")
_FILES_MAX: Final = 64
_SIGNALS_MAX: Final = 64
_STACK_BYTES: Final = 2**23


class Bubblewrap:
    """Programs in Python, each in a sandbox that bubblewrap makes for one run.

    Args:
        uid: As root, the user that programs run as, and that nobody else is; with
            several at a time, the first of as many. Otherwise None.
        at_a_time: How many run at once; others wait. Programs that run at once share
            processors and caches, through which they can tell each other something.
    """

    def __init__(self, uid: int | None = None, at_a_time: int = 1) -> None:
        self._places = Places(uid, at_a_time)
        self._groups = Groups(None, None)
        self._lock = threading.Lock()
        self._checked_in: int | None = None

    @property
    def tier(self) -> str:
        """What people call it."""
        return "bubblewrap"

    @property
    def uid(self) -> int | None:
        """The first of the users that programs run as; None if they are this one."""
        return self._places.uid

    def check(self) -> None:
        """Return if it is there, and held all that its own test tried in it.

        Raises:
            UnavailableError: If anything is missing, with one remedy each; or if the
                test got out.
        """
        self._must_hold()
        self._places.wait()

    def score(
        self,
        program: Program,
        tables: Mapping[str, Table],
        reference: Mapping[str, Table] | None,
        limits: Limits,
    ) -> float | None:
        """Return the score of one program, in its range; None if it has none.

        Args:
            program: The program.
            tables: By name, what it is given.
            reference: By name, what it compares with; None if it does not compare.
            limits: What it may use up.

        Raises:
            InputError: If it is not in Python, or its time is too short for anything.
            UnavailableError: If it cannot be held; nothing ran then.
        """
        if program.language != "python":
            raise InputError(
                Problem(
                    Code.NOT_SUPPORTED,
                    f"bubblewrap holds programs in python, not in {program.language}",
                    help="hold it by the tier wasm",
                )
            )
        self._must_hold()

        @contextmanager
        def run(end_at: float, uid: int | None) -> Iterator[float | None]:
            job = job_bytes(program, tables, reference)
            if job is None:
                yield None
                return
            with self._run(job, limits, end_at, uid) as ended:
                yield told(ended.record, program.range)

        return told_at_the_end(self._places, limits, run)

    def _must_hold(self) -> None:
        """Return if it passed its own test in this process, now or before."""
        with self._lock:
            if self._checked_in == os.getpid():
                return
            problems = needs(self._places.uid, self._places.at_a_time)
            if problems:
                raise UnavailableError(*problems)
            with self._places.alone():
                must_be_idle(self._places.uid, self._places.at_a_time)
                self._groups = found_groups()
                SelfTest(self.tier, self._tried, (*ENVIRONMENT, "PWD")).pass_it()
            self._checked_in = os.getpid()

    def _tried(self, job: bytes, limits: Limits) -> Ended:
        """Return how a program of modicum ended, and what it said."""
        end_at = time.monotonic() + limits.seconds
        uid = self._places.uid
        with self._run(job, limits, end_at, uid, is_heard=True) as ended:
            return ended

    def _run(
        self,
        job: bytes,
        limits: Limits,
        end_at: float,
        uid: int | None,
        *,
        is_heard: bool = False,
    ) -> AbstractContextManager[Ended]:
        files = copied(python_root(), executable())

        def made(handles: Handles) -> Command:
            words = [*files.enter(), *command(files.root, uid, limits, handles)]
            return Command(words, files.handles)

        return run_held(made, job, limits, self._groups, end_at, is_heard=is_heard)


def command(
    root: Root, uid: int | None, limits: Limits, handles: Handles
) -> Sequence[str]:
    """Return the command that makes a sandbox and runs what is first in it.

    The first process of its namespace is bubblewrap's own, as the user who runs this.
    So the kernel lets it end with whoever watches it, and all others with it; a process
    that became another user would go on.

    Args:
        root: What is in it.
        uid: The user that it runs as; None for whoever runs this.
        limits: What it may use up.
        handles: What it is handed.
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
    told_inside = settings(uid, limits, handles.answer, filter_bytes(files=True))
    return [*made, *inside_command(root, told_inside)]


def inside_command(root: Root, told_inside: str) -> list[str]:
    """Return the command that is run inside.

    Args:
        root: What is inside.
        told_inside: What the first program is told.
    """
    first = _INSIDE.read_text("utf-8")
    flags = ["-X", "utf8", "-s", "-S", "-B", "-P"]
    return [root.python, *flags, "-c", first, told_inside]


def settings(uid: int | None, limits: Limits, answer: int, code: bytes) -> str:
    """Return what the first program in a sandbox is told, as JSON.

    Args:
        uid: The user that it becomes; None if it stays who it is.
        limits: What it may use up.
        answer: The handle that the record is written to.
        code: The filter of system calls.
    """
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
    told_inside = {
        "answer": answer,
        "filter": code.hex(),
        "uid": uid,
        # Where there is one user alone, the first process counts as well.
        "processes": limits.processes + (uid is None),
        "limits": most,
        "packages": PACKAGES,
    }
    return json.dumps(told_inside)
