"""Kept machine code is used only while all of the loops in it are as they were."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from numba import njit

from modicum.core.jit import code_digest

INNER = """
from modicum.core.jit import compiled

@compiled
def inner(number):
    return number + {more}
"""

OUTER = """
from modicum.core.jit import compiled
from inner_loop import inner

@compiled
def outer(number):
    return 10 * inner(number)

print(outer(1), outer.stats.cache_hits.total())
"""


def test_a_change_in_a_loop_of_another_file_is_seen(tmp_path: Path) -> None:
    (tmp_path / "outer_loop.py").write_text(OUTER)
    (tmp_path / "inner_loop.py").write_text(INNER.format(more=1))
    assert run(tmp_path) == "20 0"
    assert run(tmp_path) == "20 1"
    (tmp_path / "inner_loop.py").write_text(INNER.format(more=40))
    assert run(tmp_path) == "410 0"


def run(folder: Path) -> str:
    """Return what a new process prints, with a cache of its own."""
    kept = dict(os.environ, NUMBA_CACHE_DIR=str(folder / "kept"))
    return subprocess.run(
        [sys.executable, "-B", "-c", "import outer_loop"],
        cwd=folder,
        env=kept,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def loop(text: str, **around: Any) -> Any:
    """Return a compiled function of one argument, `number`."""
    code = compile(f"def made(number): return {text}", "made", "exec").co_consts[0]
    return njit(FunctionType(code, around))


@pytest.mark.parametrize(
    ("text", "around"),
    [("number + 2", {}), ("number * 1", {}), ("number + 1 + M", {"M": 1})],
)
def test_what_a_loop_says(text: str, around: dict[str, Any]) -> None:
    digest = code_digest(loop("number + 1"))
    assert code_digest(loop("number + 1")) == digest
    other = loop(text, **around)
    assert code_digest(other) != digest
    calls = code_digest(loop("f(number)", f=loop("number + 1")))
    assert calls == code_digest(loop("f(number)", f=loop("number + 1")))
    assert calls != code_digest(loop("f(number)", f=other))


def test_a_constant_is_a_part_of_what_a_loop_says() -> None:
    one, two = ModuleType("constants"), ModuleType("constants")
    one.M, two.M = 1, 2  # type: ignore[attr-defined]
    digests = [
        code_digest(loop("number + M", M=1)),
        code_digest(loop("number + M", M=2)),
        code_digest(loop("number + constants.M", constants=one)),
        code_digest(loop("number + constants.M", constants=two)),
    ]
    assert len(set(digests)) == 4
