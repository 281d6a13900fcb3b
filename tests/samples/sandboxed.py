"""A machine around a sandbox: what programs would like to reach, and what they did."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from modicum.api.ports.escrow import Limits, Sandbox
from modicum.core.errors import Code, UnavailableError
from modicum.escrow.programs import Program, Range
from modicum.sandbox.bubblewrap import Bubblewrap
from modicum.sandbox.fixed_time import Run, at_fixed_time
from modicum.sandbox.slots import Slots, slot_lease
from samples.escapes import Attempt

PROJECT = Path(__file__).parents[2]
UNIT = Range(Fraction(0), Fraction(1))
SECRET = "0.8125"

# What an attempt is run by where nothing holds it.
_LOOSE = """
import json, sys
job = json.load(sys.stdin)
names = {"__name__": "program"}
exec(compile(job["code"], "program", "exec"), names)
print("score", names["score"]({}, job["arguments"], None))
"""


def users(many: int = 1) -> int | None:
    """Return the first of some users that no other process of the tests takes."""
    if os.geteuid() != 0:
        return None
    return 10**6 + os.getpid() % 10**6 * 64 + (64 - many)


def sandbox(at_a_time: int = 1) -> Bubblewrap:
    """Return a sandbox that is there; skip the test, or fail in CI, if none is."""
    made = Bubblewrap(users(at_a_time), at_a_time)
    required(made)
    return made


def told_in(places: Slots, limits: Limits, run: Run) -> float | None:
    """Return what a run tells that has a place for itself."""
    with slot_lease(places) as stay:
        return at_fixed_time(stay, limits, run)


def required(made: Sandbox) -> None:
    """Skip the test, or fail in CI, if a machine lacks what a sandbox needs.

    Where nothing is missing, a sandbox that fails its self-test is a fault.
    """
    try:
        made.check()
    except UnavailableError as error:
        lacks = {one.code for one in error.problems} == {Code.SANDBOX_MISSING}
        if not lacks or os.environ.get("CI") == "true":
            raise
        pytest.skip(error.problems[0].message)


def python(
    code: str | bytes, arguments: Mapping[str, Any] | None = None, span: Range = UNIT
) -> Program:
    """Return a program in Python."""
    text = code.encode() if isinstance(code, str) else code
    return Program("python", text, dict(arguments or {}), span)


def record(score: float) -> bytes:
    """Return what a program writes to tell a score."""
    (bits,) = struct.unpack("=Q", struct.pack("=d", score))
    return struct.pack("=Q", (bits + 1) % 2**64)


class World:
    """What is around a sandbox, and notes whether anybody got there.

    Attributes:
        given: What attempts are told of it.
        reached: What somebody reached.
    """

    def __init__(self, folder: Path, later: float) -> None:
        self.folder = folder
        self.reached: list[str] = []
        (folder / "secret").write_text(SECRET)
        (folder / "canary").write_text("alive")
        (folder / "own").write_text("")
        self._victim = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"],
            env={"MODICUM_SECRET": SECRET},
        )
        self._sockets: list[socket.socket] = []
        tcp = self._listening(socket.create_server(("127.0.0.1", 0)), "tcp")
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        self._listening(udp, "udp")
        abstract = f"modicum-{os.getpid()}-{id(self)}"
        for name, address in (
            ("abstract", f"\0{abstract}"),
            ("path", str(folder / "socket")),
        ):
            one = socket.socket(socket.AF_UNIX)
            one.bind(address)
            one.listen()
            self._listening(one, name)
        self.handle = os.open(folder / "secret", os.O_RDONLY)
        os.set_inheritable(self.handle, True)
        self.given: dict[str, Any] = {
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "abstract": abstract,
            "folder": str(folder),
            "project": str(PROJECT),
            "home": next(str(p) for p in (Path.home(), Path("/home")) if p.is_dir()),
            "pid": os.getpid(),
            "victim": self._victim.pid,
            "later": later,
            **self._addresses(),
        }

    def close(self) -> None:
        """End what runs."""
        os.close(self.handle)
        self._victim.kill()
        self._victim.wait()
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def touched(self) -> list[str]:
        """Return what was changed, reached or left behind."""
        found = list(self.reached)
        if (self.folder / "canary").read_text() != "alive":
            found.append("canary")
        usual = {"secret", "canary", "own", "socket"}
        found += sorted({file.name for file in self.folder.iterdir()} - usual)
        if self._victim.poll() is not None:
            found.append("victim")
        return found

    def _listening(self, on: socket.socket, name: str) -> socket.socket:
        on.settimeout(0.2)
        self._sockets.append(on)

        def listen() -> None:
            while on.fileno() >= 0:
                try:
                    if name == "udp":
                        on.recv(9)
                    else:
                        with on.accept()[0] as caller:
                            caller.settimeout(1.0)
                            caller.recv(9)  # Whoever is hung up on too soon, fails.
                except TimeoutError:
                    continue
                except OSError:
                    return
                self.reached.append(name)

        threading.Thread(target=listen, daemon=True).start()
        return on

    def _addresses(self) -> dict[str, int]:
        """Return where the victim's memory can be read, and where it can be written."""
        found = {}
        with suppress(OSError):
            # Until it has begun its own program, its memory is a copy of this one's.
            self._wait_for_victim()
            for line in Path(f"/proc/{self._victim.pid}/maps").read_text().splitlines():
                span, rights, *_ = line.split()
                start = int(span.partition("-")[0], 16)
                if "[heap]" in line:
                    found["writable"] = start + 64
                elif rights.startswith("r"):
                    found.setdefault("address", start)
        return {"address": 4096, "writable": 4096} | found

    def _wait_for_victim(self) -> None:
        import time

        for _ in range(100):
            file = Path(f"/proc/{self._victim.pid}/maps")
            if "[heap]" in file.read_text():
                return
            time.sleep(0.02)


@contextmanager
def world(folder: Path, later: float) -> Iterator[World]:
    """Yield a machine around a sandbox.

    Args:
        folder: A folder for it.
        later: How many seconds after its start a daemon leaves a mark.
    """
    folder.mkdir()
    made = World(folder, later)
    try:
        yield made
    finally:
        made.close()


def outside(attempt: Attempt, around: World) -> str:
    """Return what an attempt tells where nothing holds it."""
    job = {"code": attempt.code.decode(), "arguments": around.given}
    return subprocess.run(
        [sys.executable, "-c", _LOOSE],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=False,
        cwd=around.folder,
        env={
            "MODICUM_SECRET": SECRET,
            "MODICUM_PRELOAD": "x",
            "PATH": os.defpath,
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        close_fds=False,
        timeout=60,
    ).stdout.strip()
