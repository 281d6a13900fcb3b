"""The tier `gvisor`: Python programs on a separate kernel, by runsc.

It is built like the tier `bubblewrap`, with the same root, first program and limits. It
was written without access to runsc: its self-test is the only evidence for it, and
without that test it is not available.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from modicum.api.ports.escrow import Limits
from modicum.core.errors import Problem, UnavailableError
from modicum.escrow.programs import Program
from modicum.sandbox.bubblewrap import ENVIRONMENT, inside_command, settings
from modicum.sandbox.job import sealed
from modicum.sandbox.problems import missing
from modicum.sandbox.process import Ended, Open, ends, record_of
from modicum.sandbox.requirements import needs_of_child
from modicum.sandbox.root import Root, python_root
from modicum.sandbox.seccomp import filter_bytes
from modicum.sandbox.self_test import SelfTest
from modicum.sandbox.tier import Tier

_FOLDERS: Final = "/usr/local/bin:/usr/bin:/bin"
_END_SECONDS: Final = 10.0
_SETS: Final = ("bounding", "effective", "permitted")
_NAMESPACES: Final = ("pid", "network", "ipc", "uts", "mount")


class Gvisor(Tier):
    """Python programs, each in a sandbox that runsc creates for one run.

    Args:
        uid: The user that programs run as inside; runsc is run by root.
        at_a_time: The number of concurrent runs; others wait.
    """

    name = "gvisor"
    language = "python"
    other_tier = "wasm"

    @contextmanager
    def running(
        self,
        program: Program,
        job: int,
        limits: Limits,
        end_at: float,
        uid: int | None,
    ) -> Iterator[bytes]:
        """Run a program; yield its record. It is gone after the block."""
        with self._run(job, limits, end_at, uid) as ended:
            yield ended.record

    def _needs(self) -> list[Problem]:
        problems = needs_of_child(self._places.uid, self._places.at_a_time)
        if shutil.which("runsc", path=_FOLDERS) is None:
            problems.append(
                missing(
                    "runsc is not installed",
                    "install gVisor, or use bubblewrap",
                )
            )
        if os.geteuid() != 0:
            problems.append(
                missing("runsc needs a user other than root here", "use bubblewrap")
            )
        return problems

    def _test(self) -> None:
        known = (*ENVIRONMENT, "PWD", "HOSTNAME", "TERM")
        SelfTest(self.tier, self._tried, known).pass_it()

    def _tried(self, job: bytes, limits: Limits) -> Ended:
        end_at = time.monotonic() + limits.seconds
        uid = self._places.uid
        with (
            os.fdopen(sealed("job", job), "rb") as given,
            self._run(given.fileno(), limits, end_at, uid) as ended,
        ):
            return ended

    @contextmanager
    def _run(
        self, job: int, limits: Limits, end_at: float, uid: int | None
    ) -> Iterator[Ended]:
        runsc = shutil.which("runsc", path=_FOLDERS) or "runsc"
        folder = Path(tempfile.mkdtemp(prefix="modicum-gvisor-"))
        try:
            (folder / "root").mkdir()
            described = bundle(python_root(), uid, limits)
            (folder / "config.json").write_text(json.dumps(described), "utf-8")
            always = [runsc, "--root", str(folder / "state"), "--network=none"]
            name = folder.name
            with Open() as resources:
                reader, answer = resources.pipe()
                process = subprocess.Popen(  # noqa: S603 - a fixed path
                    [*always, "run", "--bundle", str(folder), name],
                    stdin=job,
                    stdout=answer,
                    stderr=subprocess.DEVNULL,
                    env={},
                    cwd="/",
                    start_new_session=True,
                )
                resources.close(answer)
                first = resources.own(os.pidfd_open(process.pid))
                try:
                    ends(first, end_at)
                    yield Ended(record_of(reader))
                finally:
                    subprocess.run(  # noqa: S603 - a fixed path
                        [*always, "delete", "--force", name],
                        capture_output=True,
                        check=False,
                        timeout=_END_SECONDS,
                        env={},
                    )
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        except (OSError, subprocess.SubprocessError) as error:
            what = "the sandbox could not be created or stopped"
            raise UnavailableError(missing(what, "check runsc")) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def bundle(root: Root, uid: int | None, limits: Limits) -> dict[str, Any]:
    """Return runsc's configuration of a sandbox, in the form of OCI's config.json."""
    rights = ["CAP_SETUID", "CAP_SETGID"]
    inner_settings = settings(uid, limits, filter_bytes(files=True))
    mounts = [
        {
            "destination": inside,
            "type": "bind",
            "source": str(outside),
            "options": ["bind", "ro", "nosuid", "nodev"],
        }
        for inside, outside in root.bound
    ]
    mounts += [
        {"destination": inside, "type": "tmpfs", "source": "tmpfs", "options": ["ro"]}
        for inside in root.covered
    ]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": inside_command(root, inner_settings),
            "env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
            "cwd": "/",
            "noNewPrivileges": True,
            "capabilities": dict.fromkeys(
                ("bounding", "effective", "permitted"), rights
            ),
        },
        "root": {"path": "root", "readonly": True},
        "hostname": "sandbox",
        "mounts": mounts,
        "linux": {
            "namespaces": [{"type": kind} for kind in _NAMESPACES],
            "resources": {
                "memory": {"limit": limits.memory_bytes},
                "pids": {"limit": limits.processes},
            },
        },
    }
