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
    reply = job.get("prepare")
    return reply and _done(reply, scratch, stage)


def run(job: Mapping[str, Any], scratch: Path, stage: Callable[[str], None]) -> Any:
    """Do what a job says, or a script that stands in its place."""
    reply = job.get("run")
    if reply is None:
        names: dict[str, Any] = {"scratch": scratch, "job": job}
        exec(job["script"]["text"], names)
        return names["answer"]
    return _done(reply, scratch, stage)


def _done(reply: Mapping[str, Any], scratch: Path, stage: Callable[[str], None]) -> Any:
    stage("rows")
    print(SECRET, flush=True)
    print(SECRET, file=sys.stderr, flush=True)
    os.system(f"echo {SECRET}; echo {SECRET} >&2")
    return _VERBS[reply["do"]](reply, scratch)


def _echo(reply: Mapping[str, Any], scratch: Path) -> Any:
    del scratch
    return reply["back"]


def _long(reply: Mapping[str, Any], scratch: Path) -> Any:
    del scratch
    return "x" * reply["length"]


def _raise(reply: Mapping[str, Any], scratch: Path) -> Any:
    del scratch
    kinds: dict[str, type[BaseException]] = {
        "ValueError": ValueError,
        "SystemExit": SystemExit,
        "KeyboardInterrupt": KeyboardInterrupt,
    }
    raise kinds.get(reply["kind"]) or type(reply["kind"], (Exception,), {})(SECRET)


def _die(reply: Mapping[str, Any], scratch: Path) -> Any:
    del scratch
    os.kill(os.getpid(), reply["signal"])


def _exit(reply: Mapping[str, Any], scratch: Path) -> Any:
    del scratch
    os._exit(reply["code"])


def _hang(reply: Mapping[str, Any], scratch: Path) -> Any:
    """Start a program, write down who runs, and never come back."""
    child = subprocess.Popen(["sleep", "1000"])
    note = Path(reply["note"])
    note.with_suffix(".part").write_text(f"{os.getpid()} {child.pid} {scratch}")
    note.with_suffix(".part").rename(note)
    while True:
        time.sleep(1000)


def _tell(reply: Mapping[str, Any], scratch: Path) -> Any:
    """Return what a process can see of how it was started."""
    del reply
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
