"""The process of a worker: started in a new folder, ended with all it started."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from modicum.core.errors import Code, Problem, UsageError
from modicum.integrations.workers.runner import Runner

# A killed process may finish a last write while its folder is removed.
_REMOVALS, _REMOVAL_SECONDS = 20, 0.05
# The complete environment of a worker: any other variable may be a secret.
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "JAVA_HOME")


def new_folder() -> Path:
    """Return a new folder for a worker, which nobody else can access."""
    return Path(tempfile.mkdtemp(prefix="modicum-worker-"))


def started(
    runner: Runner, python: str | Path, scratch: Path
) -> subprocess.Popen[bytes]:
    """Start a worker in a separate process group, with only the protocol as input."""
    # A link stays one: by its name a Python knows which environment it is of.
    program = Path(python).absolute()
    serve = Path(__file__).with_name("child.py")
    environ = os.environ  # noqa: TID251 - a few of them are handed on
    variables = {name: environ[name] for name in INHERITED if name in environ}
    try:
        process = subprocess.Popen(  # noqa: S603 - the user names the program
            [str(program), "-I", "-B", str(serve), str(runner.file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd=scratch,
            env={**variables, "TMPDIR": str(scratch), "TZ": "UTC"},
            start_new_session=True,
        )
    except OSError as error:
        shutil.rmtree(scratch, ignore_errors=True)
        raise UsageError(
            Problem(
                Code.FILE_UNREADABLE,
                f"{str(python)[:200]} could not be run"
                f" ({error.strerror or 'system error'})",
                help=f"give the Python of an environment with  {runner.install}",
            )
        ) from None
    assert process.stdin is not None
    os.set_blocking(process.stdin.fileno(), False)
    return process


def ended(process: subprocess.Popen[bytes], scratch: Path, owner: int) -> None:
    """End a worker and its group, and remove its folder."""
    if os.getpid() != owner:
        return
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()
    for _ in range(_REMOVALS):
        shutil.rmtree(scratch, ignore_errors=True)
        if not scratch.exists():
            return
        time.sleep(_REMOVAL_SECONDS)
