"""The tier `wasm`: modules of WebAssembly, which are given memory and nothing else."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from modicum.core.errors import Code, InputError, Problem, UnavailableError
from modicum.escrow.programs import Program, Table
from modicum.shell.sandbox.jobs import job_bytes, sealed
from modicum.shell.sandbox.missing import leaking, missing
from modicum.shell.sandbox.needs import must_be_idle, needs_of_child
from modicum.shell.sandbox.places import Places
from modicum.shell.sandbox.process import Open, ends, kill, record_of
from modicum.shell.sandbox.scores import told
from modicum.shell.sandbox.syscalls import filter_bytes
from modicum.shell.sandbox.timing import told_at_the_end
from modicum.workspace.escrowing.ports import Limits

#: About as many instructions as a module may run; the same on every machine.
FUEL: Final = 10**10
#: What Python and the compiler have beside the memory of a module.
_OVERHEAD_BYTES: Final = 2**30
#: The memory of a module has 32-bit addresses.
_MEMORY_BYTES_MAX: Final = 2**32
_INSIDE: Final = Path(__file__).with_name("wasm_inside.py")
_LENGTH_BYTES: Final = 8
_FILES_MAX: Final = 64
_TEST_LIMITS: Final = Limits(seconds=30.0, memory_bytes=2**28, processes=4)
_TEST_FUEL: Final = 10**6

_WORKS: Final = """(module (memory (export "memory") 2)
 (func (export "alloc") (param i32) (result i32) i32.const 1024)
 (func (export "score") (param i32 i32) (result f64) f64.const 42))"""
# Each of these must have no score.
_HELD: Final = {
    "a module that runs on": """(module (memory (export "memory") 2)
 (func (export "alloc") (param i32) (result i32) i32.const 1024)
 (func (export "score") (param i32 i32) (result f64) (loop br 0) f64.const 1))""",
    "a module that imports": """(module (import "env" "now" (func (result f64)))
 (memory (export "memory") 2)
 (func (export "alloc") (param i32) (result i32) i32.const 1024)
 (func (export "score") (param i32 i32) (result f64) f64.const 1))""",
    "a module with more memory": """(module (memory (export "memory") 2)
 (func (export "alloc") (param i32) (result i32) i32.const 1024)
 (func (export "score") (param i32 i32) (result f64)
  (if (i32.eq (memory.grow (i32.const 8192)) (i32.const -1)) (then unreachable))
  f64.const 1))""",
}


class WebAssembly:
    """Modules of WebAssembly, each in a process of its own, without any import.

    A module exports `memory`, `alloc(i32) -> i32` and `score(i32, i32) -> f64`. It is
    given its job, JSON in UTF-8, where `alloc` says; NaN is that there is no score.

    Args:
        uid: As root, the user that programs run as, and that nobody else is; with
            several at a time, the first of as many. Otherwise None.
        at_a_time: How many run at once; others wait.
        fuel: How much a module may do, about an instruction each.
    """

    def __init__(
        self, uid: int | None = None, at_a_time: int = 1, fuel: int = FUEL
    ) -> None:
        self._fuel = fuel
        self._places = Places(uid, at_a_time)
        self._lock = threading.Lock()
        self._checked_in: int | None = None

    @property
    def tier(self) -> str:
        """What people call it."""
        return "wasm"

    def check(self) -> None:
        """Return if it is there, and held all that its own test tried in it.

        Raises:
            UnavailableError: If anything is missing, with one remedy each; or if the
                test got out.
        """
        self._must_hold()
        self._places.wait()

    def _must_hold(self) -> None:
        """Return if it passed its own test in this process, now or before."""
        with self._lock:
            if self._checked_in == os.getpid():
                return
            problems = needs_of_child(self._places.uid, self._places.at_a_time)
            if importlib.util.find_spec("wasmtime") is None:
                problems.append(
                    missing(
                        "wasmtime is not installed",
                        "install it with  pip install 'modicum[escrow]'",
                    )
                )
            if problems:
                raise UnavailableError(*problems)
            with self._places.alone():
                must_be_idle(self._places.uid, self._places.at_a_time)
                self._test()
            self._checked_in = os.getpid()

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
            InputError: If it is no module, or its time is too short for anything.
            UnavailableError: If it cannot be held; nothing ran then.
        """
        if program.language != "wasm":
            raise InputError(
                Problem(
                    Code.NOT_SUPPORTED,
                    f"this holds modules of WebAssembly, not {program.language}",
                    help="hold it by the tier bubblewrap",
                )
            )
        self._must_hold()

        @contextmanager
        def run(end_at: float, uid: int | None) -> Iterator[float | None]:
            job = job_bytes(program, tables, reference)
            if job is None:
                yield None
                return
            with self._run(program.code, job, limits, end_at, uid) as record:
                yield told(record, program.range)

        return told_at_the_end(self._places, limits, run)

    def _test(self) -> None:
        from wasmtime import wat2wasm

        expected = {"a module that ends": (_WORKS, b"S" + struct.pack(">d", 42.0))}
        expected |= {name: (text, b"") for name, text in _HELD.items()}
        for name, (text, record) in expected.items():
            end_at = time.monotonic() + _TEST_LIMITS.seconds
            code = bytes(wat2wasm(text))
            uid = self._places.uid
            with self._run(
                code, b"{}", _TEST_LIMITS, end_at, uid, fuel=_TEST_FUEL
            ) as found:
                pass
            if found != record:
                what = "did not work" if record else "got what it should not"
                raise UnavailableError(leaking(self.tier, f"{name} {what}"))

    @contextmanager
    def _run(
        self,
        code: bytes,
        job: bytes,
        limits: Limits,
        end_at: float,
        uid: int | None,
        *,
        fuel: int | None = None,
    ) -> Iterator[bytes]:
        """Yield what a module tells, in a process that is gone after the block."""
        given = len(code).to_bytes(_LENGTH_BYTES, "big") + code + job
        with Open() as kept:
            stdin = kept.own(sealed("job", given))
            heard, answer = kept.pipe()
            silence = kept.own(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC))
            settings = _settings(limits, uid, fuel or self._fuel)
            settings |= {"answer": answer}
            try:
                process = subprocess.Popen(  # noqa: S603 - this Python, a file of ours
                    [
                        *(sys.executable, "-I", "-B", "-X", "utf8", str(_INSIDE)),
                        json.dumps(settings),
                    ],
                    stdin=stdin,
                    stdout=silence,
                    stderr=silence,
                    env={},
                    cwd="/",
                    pass_fds=(answer,),
                    start_new_session=True,
                )
            except OSError as error:
                what = f"no process could be begun ({error.strerror})"
                remedy = "look at the limits of the service"
                raise UnavailableError(missing(what, remedy)) from error
            first = kept.own(os.pidfd_open(process.pid))
            try:
                ends(first, end_at)
                yield record_of(heard)
            finally:
                kill(first)
                process.wait()


def _settings(limits: Limits, uid: int | None, fuel: int) -> dict[str, object]:
    spec = importlib.util.find_spec("wasmtime")
    assert spec is not None
    assert spec.origin is not None
    memory = min(limits.memory_bytes, _MEMORY_BYTES_MAX)
    most = {
        "AS": memory + _OVERHEAD_BYTES,
        "CPU": math.ceil(limits.seconds) + 1,
        "FSIZE": 0,
        "NOFILE": _FILES_MAX,
        "CORE": 0,
        "MEMLOCK": 0,
        "MSGQUEUE": 0,
    }
    return {
        "uid": uid,
        "parent": os.getpid(),
        "processes": limits.processes,
        "limits": most,
        "packages": str(Path(spec.origin).parents[1]),
        "memory": memory,
        "fuel": fuel,
        "filter": filter_bytes(files=False).hex(),
    }
