"""The tier `wasm`: WebAssembly modules, which get memory and nothing else."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from modicum.api.ports.escrow import Limits
from modicum.core.errors import Problem, UnavailableError
from modicum.escrow.programs import Program
from modicum.sandbox.job import module_job, sealed
from modicum.sandbox.problems import leaking, missing
from modicum.sandbox.process import Open, ends, kill, record_of
from modicum.sandbox.requirements import needs_of_child
from modicum.sandbox.scores import number_of
from modicum.sandbox.seccomp import filter_bytes
from modicum.sandbox.tier import Tier

#: Approximate maximum number of instructions of a module; the same on every machine.
FUEL: Final = 10**10
#: Memory of Python and the compiler besides that of a module.
_OVERHEAD_BYTES: Final = 2**30
#: The memory of a module has 32-bit addresses.
_MEMORY_BYTES_MAX: Final = 2**32
_INSIDE: Final = Path(__file__).with_name("wasm_process.py")
_FILES_MAX: Final = 64
_TEST_LIMITS: Final = Limits(seconds=30.0, memory_bytes=2**28, processes=4)
_TEST_FUEL: Final = 10**6

_WORKS: Final = """(module (memory (export "memory") 2)
 (func (export "alloc") (param i32) (result i32) i32.const 1024)
 (func (export "score") (param i32 i32) (result f64) f64.const 42))"""
# Each of these must have no score.
_HELD: Final = {
    "an endless module": """(module (memory (export "memory") 2)
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


class WebAssembly(Tier):
    """WebAssembly modules, each in a separate process, without any import.

    A module exports `memory`, `alloc(i32) -> i32` and `score(i32, i32) -> f64`. It
    receives its job, JSON in UTF-8, at the address from `alloc`; NaN means no score.

    Args:
        uid: As root, the user that runs programs, used for nothing else; with
            concurrent runs, the first of as many. Otherwise None.
        at_a_time: The number of concurrent runs; others wait.
        fuel: How much a module may do, about an instruction each.
    """

    name = "wasm"
    language = "wasm"
    other_tier = "bubblewrap"

    def __init__(
        self, uid: int | None = None, at_a_time: int = 1, fuel: int = FUEL
    ) -> None:
        super().__init__(uid, at_a_time)
        self._fuel = fuel

    def running(
        self,
        program: Program,
        job: int,
        limits: Limits,
        end_at: float,
        uid: int | None,
    ) -> AbstractContextManager[bytes]:
        """Run a module; return its record. It is gone after the block."""
        return self._run(job, limits, end_at, uid)

    def _needs(self) -> list[Problem]:
        problems = needs_of_child(self._places.uid, self._places.at_a_time)
        if importlib.util.find_spec("wasmtime") is None:
            problems.append(
                missing(
                    "wasmtime is not installed",
                    "install it with  pip install 'modicum[escrow]'",
                )
            )
        return problems

    def _test(self) -> None:
        from wasmtime import wat2wasm

        expected: dict[str, tuple[str, float | None]]
        expected = {"a terminating module": (_WORKS, 42.0)}
        expected |= {name: (text, None) for name, text in _HELD.items()}
        for name, (text, number) in expected.items():
            end_at = time.monotonic() + _TEST_LIMITS.seconds
            code = bytes(wat2wasm(text))
            uid = self._places.uid
            with (
                os.fdopen(sealed("job", module_job(code, b"{}")), "rb") as job,
                self._run(
                    job.fileno(), _TEST_LIMITS, end_at, uid, fuel=_TEST_FUEL
                ) as found,
            ):
                pass
            if number_of(found) != number:
                what = "did not work" if number else "was not stopped"
                raise UnavailableError(leaking(self.tier, f"{name} {what}"))

    @contextmanager
    def _run(
        self,
        job: int,
        limits: Limits,
        end_at: float,
        uid: int | None,
        *,
        fuel: int | None = None,
    ) -> Iterator[bytes]:
        """Yield the output of a module, in a process that is gone after the block."""
        with Open() as resources:
            answer = resources.answer()
            silence = resources.own(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC))
            settings = _settings(limits, uid, fuel or self._fuel)
            try:
                process = subprocess.Popen(  # noqa: S603 - this Python, a file of ours
                    [
                        *(sys.executable, "-I", "-B", "-X", "utf8", str(_INSIDE)),
                        json.dumps(settings),
                    ],
                    stdin=job,
                    stdout=answer,
                    stderr=silence,
                    env={},
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as error:
                what = f"no process could be started ({error.strerror})"
                remedy = "check the limits of the service"
                raise UnavailableError(missing(what, remedy)) from error
            first = resources.own(os.pidfd_open(process.pid))
            try:
                ends(first, end_at)
                yield record_of(answer)
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
