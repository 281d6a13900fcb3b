"""After it ran queries and tasks, a process with an escrow holds no rows of others."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from samples.escrows import OWNED, POLICY, TABLES, query
from samples.sandboxed import required, users

from modicum.api.local.escrow.datasets import Declared
from modicum.ops.escrow.equipment import EscrowPlace, sandbox_of
from modicum.ops.escrow.factory import open_escrow
from modicum.vault.key_files import new_key_file

#: Whoever else counts to 300 does not begin here.
FIRST = 7_391_554
LINES = [
    b"%d,%s,%s"
    % (FIRST + n, b"north" if n < 173 else b"south", b"high" if n % 3 else b"low")
    for n in range(300)
]
#: The exact answers, as they are kept and as programs are given them.
ANSWERS = (b'[["north", 173], ["south", 127]]', b'[["north",173],["south",127]]')
MODULE = """(module (memory (export "memory") 64)
 (func (export "alloc") (param i32) (result i32) i32.const 1024)
 (func (export "score") (param i32 i32) (result f64) f64.const 0.5))"""

WORK = """
import gc, sys
from fractions import Fraction
from pathlib import Path
from wasmtime import wat2wasm
from modicum.escrow.programs import Program, Range
from modicum.ops.escrow.equipment import EscrowPlace
from modicum.ops.escrow.factory import open_escrow
from modicum.api.local.escrow.proposal import Purpose
from modicum.api.ports.escrow import Limits

folder, uid, query, module = sys.argv[1:]
place = EscrowPlace(Path(folder, "vault"), Path(folder, "keys.json"), eval(uid))
offices = {
    who: open_escrow(Path(folder, "ledger.db"), place, actor=who).escrow
    for who in ("olga", "pavel", "amir")
}

def agree(name):
    for who in ("olga", "pavel"):
        offices[who].approve(name, reason="so it is")

amir = offices["amir"]
amir.submit_query(Purpose("q", "?"), [query], exact=True)
agree("q")
assert amir.run("q").denied is None
code = bytes(wat2wasm(module))
program = Program("wasm", code, {}, Range(Fraction(0), Fraction(1)))
limits = Limits(4.0, 2**26)
amir.submit_task(Purpose("t", "?"), "q", program, tier="wasm", limits=limits)
agree("t")
amir.run("t")
assert amir.show("t").flow.results.keys() == {"exact", "private"}
held = "".join(["so", "much", "is", "held"])
gc.collect()
print("idle", flush=True)
sys.stdin.read()
"""


@contextmanager
def idle(folder: Path) -> Iterator[int]:
    """Yield a process that ran a query and a task on rows it was never given."""
    request = query("r-1", "0.0001")
    args = [str(folder), str(users()), request, MODULE]
    process = subprocess.Popen(
        [sys.executable, "-c", WORK, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "idle\n"
        yield process.pid
    finally:
        process.kill()
        process.communicate()


def memory_of(pid: int) -> Iterator[bytes]:
    """Yield all that a process can read of its own memory, part by part."""
    with Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, rights, *_ = line.split()
            if not rights.startswith("r") or line.endswith(("[vvar]", "[vsyscall]")):
                continue
            start, end = (int(one, 16) for one in span.split("-"))
            memory.seek(start)
            try:
                yield memory.read(end - start)
            except OSError:
                continue


@pytest.mark.spec("ESC-16")
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is of Linux")
def test_an_idle_process_holds_no_rows_and_no_exact_answers(tmp_path: Path) -> None:
    required(sandbox_of("wasm", users()))
    (tmp_path / "policy.yaml").write_text(POLICY)
    new_key_file(tmp_path / "keys.json")
    place = EscrowPlace(tmp_path / "vault", tmp_path / "keys.json", users())
    ledger, policy = tmp_path / "ledger.db", tmp_path / "policy.yaml"
    open_escrow(ledger, place, policy=policy).init()
    olga = open_escrow(ledger, place, actor="olga").escrow
    rows = b"person,town,income\n" + b"\n".join(LINES) + b"\n"
    olga.register("people", rows, Declared(TABLES), OWNED)
    mark = b"somuchisheld"
    rows_like = re.compile(rb"7391\d{3},(?:north|south),(?:high|low)")
    assert all(map(rows_like.fullmatch, LINES))
    found = set()
    with idle(tmp_path) as pid:
        for part in memory_of(pid):
            found |= {text for text in (mark, *ANSWERS) if text in part}
            found |= {*rows_like.findall(part)} & {*LINES}
    assert found == {mark}
