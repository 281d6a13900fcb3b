"""A runner for workers that does what its job says; it needs no library.

It is run by `serve.py` in a process of its own, as runners are.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

SECRET = "row-4711"


def versions() -> dict[str, str]:
    """Return what the runner would be of."""
    return {"fake": "1.2.3", "tmlt.analytics": "0.21.0", "tmlt.core": "0.19.1"}


def prepare(job: Mapping[str, Any], scratch: Path, stage: Callable[[str], None]) -> Any:
    """Do what a job says, if it says something about this."""
    order = job.get("prepare")
    return order and _done(order, scratch, stage)


def run(job: Mapping[str, Any], scratch: Path, stage: Callable[[str], None]) -> Any:
    """Do what a job says, or a script that stands in its place."""
    order = job.get("run")
    if order is None:
        names: dict[str, Any] = {"scratch": scratch, "job": job}
        exec(job["script"]["text"], names)
        return names["answer"]
    return _done(order, scratch, stage)


def _done(order: Mapping[str, Any], scratch: Path, stage: Callable[[str], None]) -> Any:
    stage("rows")
    print(SECRET, flush=True)
    print(SECRET, file=sys.stderr, flush=True)
    os.system(f"echo {SECRET}; echo {SECRET} >&2")
    return _VERBS[order["do"]](order, scratch)


def _echo(order: Mapping[str, Any], scratch: Path) -> Any:
    del scratch
    return order["back"]


def _long(order: Mapping[str, Any], scratch: Path) -> Any:
    del scratch
    return "x" * order["length"]


def _raise(order: Mapping[str, Any], scratch: Path) -> Any:
    del scratch
    kinds: dict[str, type[BaseException]] = {
        "ValueError": ValueError,
        "SystemExit": SystemExit,
        "KeyboardInterrupt": KeyboardInterrupt,
    }
    raise kinds.get(order["kind"]) or type(order["kind"], (Exception,), {})(SECRET)


def _die(order: Mapping[str, Any], scratch: Path) -> Any:
    del scratch
    os.kill(os.getpid(), order["signal"])


def _exit(order: Mapping[str, Any], scratch: Path) -> Any:
    del scratch
    os._exit(order["code"])


def _hang(order: Mapping[str, Any], scratch: Path) -> Any:
    """Start a program, write down who runs, and never come back."""
    child = subprocess.Popen(["sleep", "1000"])
    note = Path(order["note"])
    note.with_suffix(".part").write_text(f"{os.getpid()} {child.pid} {scratch}")
    note.with_suffix(".part").rename(note)
    while True:
        time.sleep(1000)


def _tell(order: Mapping[str, Any], scratch: Path) -> Any:
    """Return what a process can see of how it was started."""
    del order
    arguments = Path("/proc/self/cmdline").read_bytes().decode().split("\0")
    return {
        "variables": dict(os.environ),
        "arguments": arguments,
        "folder": str(scratch),
        "mode": oct(scratch.stat().st_mode & 0o777),
    }


_VERBS = {
    "echo": _echo,
    "long": _long,
    "raise": _raise,
    "die": _die,
    "exit": _exit,
    "hang": _hang,
    "tell": _tell,
}
