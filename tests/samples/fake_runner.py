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
    told = job.get("prepare")
    return told and _done(told, scratch, stage)


def run(job: Mapping[str, Any], scratch: Path, stage: Callable[[str], None]) -> Any:
    """Do what a job says, or a script that stands in its place."""
    told = job.get("run")
    if told is None:
        names: dict[str, Any] = {"scratch": scratch, "job": job}
        exec(job["script"]["text"], names)
        return names["answer"]
    return _done(told, scratch, stage)


def _done(told: Mapping[str, Any], scratch: Path, stage: Callable[[str], None]) -> Any:
    stage("rows")
    print(SECRET, flush=True)
    print(SECRET, file=sys.stderr, flush=True)
    os.system(f"echo {SECRET}; echo {SECRET} >&2")
    return _VERBS[told["do"]](told, scratch)


def _echo(told: Mapping[str, Any], scratch: Path) -> Any:
    del scratch
    return told["back"]


def _long(told: Mapping[str, Any], scratch: Path) -> Any:
    del scratch
    return "x" * told["length"]


def _raise(told: Mapping[str, Any], scratch: Path) -> Any:
    del scratch
    kinds: dict[str, type[BaseException]] = {
        "ValueError": ValueError,
        "SystemExit": SystemExit,
        "KeyboardInterrupt": KeyboardInterrupt,
    }
    raise kinds.get(told["kind"]) or type(told["kind"], (Exception,), {})(SECRET)


def _die(told: Mapping[str, Any], scratch: Path) -> Any:
    del scratch
    os.kill(os.getpid(), told["signal"])


def _exit(told: Mapping[str, Any], scratch: Path) -> Any:
    del scratch
    os._exit(told["code"])


def _hang(told: Mapping[str, Any], scratch: Path) -> Any:
    """Start a program, write down who runs, and never come back."""
    child = subprocess.Popen(["sleep", "1000"])
    note = Path(told["note"])
    note.with_suffix(".part").write_text(f"{os.getpid()} {child.pid} {scratch}")
    note.with_suffix(".part").rename(note)
    while True:
        time.sleep(1000)


def _tell(told: Mapping[str, Any], scratch: Path) -> Any:
    """Return what a process can see of how it was started."""
    del told
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
