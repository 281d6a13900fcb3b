"""The tier `wasm`: modules, what they are given, and what they may not have."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
from samples.sandboxed import PROJECT, required, users

from modicum.api.ports.escrow import Limits
from modicum.core.errors import Code, InputError, UnavailableError
from modicum.escrow.programs import Program, Range, Table
from modicum.sandbox import webassembly
from modicum.sandbox.webassembly import WebAssembly

SHORT = Limits(seconds=1.5, memory_bytes=2**26, processes=4)
WIDE = Range(Fraction(-(10**6)), Fraction(10**6))
ALLOC = '(func (export "alloc") (param i32) (result i32) i32.const 1024)'
MEMORY = '(memory (export "memory") 4)'
SCORE = '(func (export "score") (param i32 i32) (result f64)'


def module(text: str) -> Program:
    wasmtime = pytest.importorskip("wasmtime")
    return Program("wasm", bytes(wasmtime.wat2wasm(text)), {}, WIDE)


def scoring(body: str, more: str = "") -> Program:
    """Return a module whose score is told by some instructions."""
    return module(f"(module {MEMORY} {ALLOC} {more} {SCORE} {body}))")


@pytest.fixture(scope="module")
def held() -> WebAssembly:
    made = WebAssembly(users(4), 4, fuel=10**8)
    required(made)
    return made


#: The mean of the digits of the job: it reads all of it, where it was put.
MEAN_OF_DIGITS = """
 (local $at i32) (local $sum f64) (local $count f64) (local $digit i32)
 (local.set $at (local.get 0))
 (block $end (loop $next
  (br_if $end (i32.ge_u (local.get $at) (i32.add (local.get 0) (local.get 1))))
  (local.set $digit (i32.sub (i32.load8_u (local.get $at)) (i32.const 48)))
  (if (i32.lt_u (local.get $digit) (i32.const 10)) (then
   (local.set $sum (f64.add (local.get $sum)
    (f64.convert_i32_u (local.get $digit))))
   (local.set $count (f64.add (local.get $count) (f64.const 1)))))
  (local.set $at (i32.add (local.get $at) (i32.const 1)))
  (br $next)))
 (f64.div (local.get $sum) (local.get $count))
"""


def test_a_module_reads_its_job(held: WebAssembly) -> None:
    table = Table(("v",), ((1,), (2,), (9,)))
    started = time.monotonic()
    assert held.score(scoring(MEAN_OF_DIGITS), {"t": table}, None, SHORT) == 4.0
    assert time.monotonic() - started >= SHORT.seconds


def test_a_job_is_where_alloc_says_and_as_long_as_it_says(held: WebAssembly) -> None:
    job = '{"arguments":{},"reference":null,"tables":{}}'
    where = scoring("(f64.convert_i32_u (local.get 0))")
    long = scoring("(f64.convert_i32_u (local.get 1))")
    first = scoring("(f64.convert_i32_u (i32.load8_u (local.get 0)))")
    assert held.score(where, {}, None, SHORT) == 1024.0
    assert held.score(long, {}, None, SHORT) == len(job)
    assert held.score(first, {}, None, SHORT) == ord("{")


def test_half_of_the_memory_can_be_had(held: WebAssembly) -> None:
    """Otherwise a limit that is always too low would look like a good one."""
    grown = scoring("(f64.convert_i32_s (memory.grow (i32.const 512)))")
    assert held.score(grown, {}, None, SHORT) == 4.0
    more = scoring("(f64.convert_i32_s (memory.grow (i32.const 1024)))")
    assert held.score(more, {}, None, SHORT) == -1.0


HELD = {
    "runs on": f"(module {MEMORY} {ALLOC} {SCORE} (loop br 0) f64.const 1))",
    "runs on at once": f"""(module {MEMORY} {ALLOC} {SCORE} f64.const 1)
        (func $on (loop br 0)) (start $on))""",
    "traps": f"(module {MEMORY} {ALLOC} {SCORE} unreachable))",
    "is not a number": f"(module {MEMORY} {ALLOC} {SCORE} f64.const nan))",
    "is infinite": f"(module {MEMORY} {ALLOC} {SCORE} f64.const inf))",
    "calls itself": f"""(module {MEMORY} {ALLOC} (func $f (export "score")
        (param i32 i32) (result f64) (call $f (i32.const 0) (i32.const 0))))""",
    "reads outside": f"""(module {MEMORY} {ALLOC} {SCORE}
        (f64.load (i32.const -8))))""",
    "puts the job outside": f"""(module {MEMORY} {SCORE} f64.const 1)
        (func (export "alloc") (param i32) (result i32) i32.const -16))""",
    "has no memory": f"(module {ALLOC} {SCORE} f64.const 1))",
    "has no alloc": f"(module {MEMORY} {SCORE} f64.const 1))",
    "has no score": f"(module {MEMORY} {ALLOC})",
    "has a score of another type": f"""(module {MEMORY} {ALLOC}
        (func (export "score") (param i32 i32) (result i32) i32.const 1))""",
    "has an alloc of another type": f"""(module {MEMORY} {SCORE} f64.const 1)
        (func (export "alloc") (param i64) (result i32) i32.const 1024))""",
    "has a memory that is none": f"""(module (func (export "memory")) {ALLOC}
        {SCORE} f64.const 1))""",
    "begins with too much": f"""(module (memory (export "memory") 4096) {ALLOC}
        {SCORE} f64.const 1))""",
    "imports a function": f"""(module (import "env" "f" (func)) {MEMORY} {ALLOC}
        {SCORE} f64.const 1))""",
    "imports a file": f"""(module (import "wasi_snapshot_preview1" "fd_write"
        (func (param i32 i32 i32 i32) (result i32))) {MEMORY} {ALLOC}
        {SCORE} f64.const 1))""",
    "imports a memory": f"""(module (import "env" "m" (memory 1)) {MEMORY} {ALLOC}
        {SCORE} f64.const 1))""",
    "shares memory": f"""(module (memory (export "memory") 1 2 shared) {ALLOC}
        {SCORE} f64.const 1))""",
    "has a memory of 64 bits": f"""(module (memory (export "memory") i64 1) {ALLOC}
        {SCORE} f64.const 1))""",
}


def test_what_it_may_not_do_has_no_score(held: WebAssembly) -> None:
    programs = {name: module(text) for name, text in HELD.items()}
    programs["is no module"] = Program("wasm", b"\0asm\1\0\0\0\xff", {}, WIDE)

    def tried(name: str) -> tuple[str, float | None, float]:
        started = time.monotonic()
        score = held.score(programs[name], {}, None, SHORT)
        return name, score, time.monotonic() - started

    with ThreadPoolExecutor(4) as threads:
        result = list(threads.map(tried, programs))
    assert [(name, score) for name, score, _ in result if score is not None] == []
    assert all(
        SHORT.seconds <= seconds <= SHORT.seconds + 0.5 for _, _, seconds in result
    )


def test_time_ends_it_where_fuel_does_not(held: WebAssembly) -> None:
    lasting = WebAssembly(users(8), 1, fuel=2**60)
    started = time.monotonic()
    assert lasting.score(module(HELD["runs on"]), {}, None, SHORT) is None
    # Its own test comes before.
    assert time.monotonic() - started < SHORT.seconds + 5


def test_fuel_is_the_same_on_every_run(held: WebAssembly) -> None:
    def looping(turns: int) -> Program:
        return scoring(f"""(local $n i32) (loop $next
            (local.set $n (i32.add (local.get $n) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $n) (i32.const {turns})))) f64.const 1""")

    assert held.score(looping(10**6), {}, None, SHORT) == 1.0
    assert held.score(looping(10**8), {}, None, SHORT) is None


def test_not_a_number_has_one_form(held: WebAssembly) -> None:
    """Its bits would differ by processor, and a module could tell them."""
    bits = scoring("""(local $x f64)
        (local.set $x (f64.div (f64.const 0) (f64.const 0)))
        (f64.convert_i64_u (i64.shr_u (i64.reinterpret_f64 (local.get $x))
         (i64.const 51)))""")
    assert held.score(bits, {}, None, SHORT) == 0x7FF8000000000000 >> 51


def test_python_is_not_for_it(held: WebAssembly) -> None:
    with pytest.raises(InputError):
        held.score(Program("python", b"score = 1", {}, WIDE), {}, None, SHORT)


def missing(check: Callable[[], None]) -> str:
    with pytest.raises(UnavailableError) as caught:
        check()
    assert caught.value.code is Code.SANDBOX_MISSING
    return str(caught.value)


def test_without_wasmtime_there_is_no_such_tier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, package=None: None if name == "wasmtime" else find(name, package),
    )
    assert "wasmtime is not installed" in missing(WebAssembly(users()).check)


def test_root_names_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "need a dedicated user" in missing(WebAssembly().check)


def test_a_tier_that_leaks_is_not_there(
    held: WebAssembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = {"a terminating module": webassembly._WORKS}
    monkeypatch.setattr(webassembly, "_HELD", works)
    with pytest.raises(UnavailableError) as caught:
        WebAssembly(users()).check()
    assert caught.value.code is Code.SANDBOX_LEAKS


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs it as somebody else")
def test_it_may_do_nothing_before_a_module_is_read(
    held: WebAssembly, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that took over its process could neither open nor connect."""
    text = (PROJECT / "src/modicum/sandbox/wasm_process.py").read_text()
    attack = """
    found = 0.0
    for number, attempt in enumerate((
        lambda: os.open("/etc/passwd", 0),
        lambda: __import__("socket").socket(),
        os.fork,
        lambda: os.kill(os.getppid(), 0),
        lambda: os.setuid(0),
        lambda: os.execv("/bin/true", ["true"]),
    )):
        try:
            attempt()
        except OSError:
            continue
        found += 2.0**number
    rights.write_score(found)
    return
"""
    changed = text.replace(
        "    length = int.from_bytes", f"{attack}    length = int.from_bytes"
    )
    assert changed != text
    import_first = changed.replace("import sys\n", "import socket\nimport sys\n", 1)
    (tmp_path / "wasm_process.py").write_text(import_first)
    rights = PROJECT / "src/modicum/sandbox/init_process.py"
    (tmp_path / "init_process.py").write_text(rights.read_text())
    monkeypatch.setattr(webassembly, "_INSIDE", tmp_path / "wasm_process.py")
    assert held.score(module(HELD["traps"]), {}, None, SHORT) == 0.0
