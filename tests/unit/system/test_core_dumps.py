"""Processes that hold rows or keys leave no core dumps."""

from __future__ import annotations

import subprocess
import sys

import pytest

SHOW = """
import ctypes, resource
def show(*_, **__):
    print(ctypes.CDLL(None).prctl(3), resource.getrlimit(resource.RLIMIT_CORE))
    raise SystemExit
"""
FORBIDS = """
from modicum.system.core_dumps import forbid_core_dumps
forbid_core_dumps()
show()
"""
SERVES = """
from modicum.server import factory as opening
opening.open_server = show
from modicum.cli.main import app
app(["serve"])
"""
IS_WORKER = """
from modicum.server.processes import application
application(show)
"""
DECRYPTS = """
from modicum.cli import escrow_text as escrow_show
from modicum.ops.escrow import factory as opening
opening.open_escrow = show
from modicum.cli.main import app
app(["escrow", "run", "q", "--vault", "v", "--vault-keys", "k", "--ledger", "policy"])
"""


@pytest.mark.parametrize("code", [FORBIDS, SERVES, IS_WORKER, DECRYPTS])
def test_no_process_with_keys_leaves_a_core_dump(code: str) -> None:
    """Neither a limit nor the kernel lets one be written."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW + code],
        check=False,
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert done.stdout == "0 (0, 0)\n", done.stderr
