"""Faults around a server, and the order in which they happen.

A schedule follows from its seed alone. What it does to connections, disks and clocks is
here; witnesses that ail, and servers that restart, are beside.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

HOUR = 3600.0
YEAR = 365 * 24 * HOUR
#: How far clocks jump, in seconds.
JUMPS = (HOUR, -HOUR, 30 * 24 * HOUR, YEAR, -YEAR, 9 * YEAR, -9 * YEAR)
#: How a link is partitioned.
CUTS = ("refuses", "hole", "hole, then cut", "slow", "half")


# --- the schedule ---------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong for a while.

    Attributes:
        kind: Its name.
        part: What it befalls: one fault at a time does.
        begin: Begins it.
        end: Ends it.
        alone: Whether no other fault may happen meanwhile.
        apart: Parts that no fault may befall meanwhile.
    """

    kind: str
    part: str
    begin: Callable[[], object]
    end: Callable[[], object]
    alone: bool = False
    apart: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Step:
    """A fault in a round.

    Attributes:
        number: Its number, from 1.
        fault: The fault.
        begins: When it begins, in seconds from that of the round.
        ends: When it ends.
    """

    number: int
    fault: Fault
    begins: float
    ends: float

    def may_overlap(self, other: Step) -> bool:
        """Return whether another one may happen meanwhile."""
        one, two = self.fault, other.fault
        apart = one.part in two.apart or two.part in one.apart
        return not (one.part == two.part or one.alone or two.alone or apart)


def planned(
    rng: random.Random, faults: Sequence[Fault], first: int, count: int, seconds: float
) -> list[Step]:
    """Return the steps of a round.

    Args:
        rng: The dice.
        faults: What may happen.
        first: The number of the first step.
        count: How many are tried to be put into the round.
        seconds: The longest fault.
    """
    found: list[Step] = []
    for _ in range(count):
        # Parts are alike likely, whatever number of kinds each has.
        part = rng.choice(sorted({one.part for one in faults}))
        fault = rng.choice([one for one in faults if one.part == part])
        begins = rng.uniform(0, seconds * count / 4)
        ends = begins + rng.uniform(0.1, 1) * seconds
        new = Step(first + len(found), fault, begins, ends)
        meanwhile = [
            one for one in found if one.begins < new.ends and new.begins < one.ends
        ]
        if all(new.may_overlap(one) for one in meanwhile):
            found.append(new)
    return found


def carry_out(steps: Sequence[Step], note: Callable[[str, Step], object]) -> None:
    """Begin and end faults when it is time.

    Args:
        steps: Those of a round.
        note: Hears of each, after it began or ended, and which of both.
    """
    times = [(one.begins, "begins", one) for one in steps]
    times += [(one.ends, "ends", one) for one in steps]
    began = time.monotonic()
    with ExitStack() as mending:  # Whatever happens: clients wait for it.
        ends = {}
        for at, what, step in sorted(times, key=lambda one: (one[0], one[2].number)):
            time.sleep(max(0.0, began + at - time.monotonic()))
            if what == "begins":
                step.fault.begin()
                ends[step] = mending.enter_context(ExitStack())
                ends[step].callback(step.fault.end)
            else:
                ends[step].close()
            note(what, step)


# --- a link ---------------------------------------------------------------------------


class Proxy:
    """A link to a server, which can be partitioned.

    Args:
        target: Where the server is: a path, or a host and a port.

    Attributes:
        target: The same; it may be changed.
        port: Where the link begins, on this machine.
    """

    def __init__(self, target: str | tuple[str, int]) -> None:
        self.target = target
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        # Bound by its number, it keeps the port while it does not listen.
        self._door = socket.socket()
        self._door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._door.bind(("127.0.0.1", self.port))
        self._door.listen()
        self._how = ""
        self._flows = threading.Event()
        self._flows.set()
        self._listens = threading.Event()
        self._listens.set()
        self._is_over = False
        self._ends: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def partition(self, how: str) -> None:
        """Partition the link, in one of the ways of `CUTS`."""
        self._how = how
        if how.startswith("hole"):
            self._flows.clear()
        if how == "refuses":
            self._listens.clear()
            self._door.shutdown(socket.SHUT_RDWR)
            self.cut()

    def mend(self) -> None:
        """Let everything through."""
        how, self._how = self._how, ""
        if how == "refuses":
            self._door.listen()
            self._listens.set()
        if how == "hole, then cut":
            self.cut()
        self._flows.set()

    def cut(self) -> None:
        """End all connections."""
        for one in list(self._ends):
            _reset(one)

    def close(self) -> None:
        """Let nothing through any more."""
        self._is_over = True
        self._listens.set()
        self._flows.set()
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self.cut()

    def _accept(self) -> None:
        while not self._is_over:
            self._listens.wait()
            try:
                own, _ = self._door.accept()
            except OSError:
                time.sleep(0.01)
                continue
            threading.Thread(target=self._connect, args=(own,), daemon=True).start()

    def _connect(self, own: socket.socket) -> None:
        self._ends.add(own)
        self._flows.wait()
        is_path = isinstance(self.target, str)
        other = socket.socket(socket.AF_UNIX if is_path else socket.AF_INET)
        try:
            other.connect(self.target)
        except OSError:
            self._ends.discard(own)
            for one in (own, other):
                _reset(one)
            return
        self._ends.add(other)
        back = threading.Thread(target=self._pass, args=(other, own), daemon=True)
        back.start()
        self._pass(own, other, is_answer=False)
        back.join()
        for one in (own, other):
            self._ends.discard(one)
            one.close()

    def _pass(
        self, source: socket.socket, sink: socket.socket, *, is_answer: bool = True
    ) -> None:
        with suppress(OSError):
            while piece := source.recv(65536):
                self._flows.wait()
                if self._how == "slow":
                    time.sleep(0.15)
                if self._how == "half" and is_answer:
                    sink.sendall(piece[: len(piece) // 2])
                    break
                sink.sendall(piece)
        self._flows.wait()  # Nobody learns of the end through a hole.
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def _reset(one: socket.socket) -> None:
    """End a connection as a machine does that knows nothing of it."""
    with suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.shutdown(socket.SHUT_RDWR)
    one.close()


def link_faults(name: str, proxy: Proxy) -> list[Fault]:
    """Return the partitions of a link."""

    def fault(how: str) -> Fault:
        return Fault(f"{name} {how}", name, lambda: proxy.partition(how), proxy.mend)

    return [fault(how) for how in CUTS]


def linked(url: str, proxy: Proxy) -> str:
    """Return the URL of a database by another way."""
    ledger = url.partition("&modicum_ledger=")[2]
    return (
        f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres?sslmode=disable"
        f"&modicum_ledger={ledger}"
    )


# --- a clock and a disk ---------------------------------------------------------------


class Wall:
    """The clock of the servers' machine: `shifted_clock.py` reads its file.

    Args:
        file: The file.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        file.write_bytes(struct.pack("d", 0.0))

    def set(self, seconds: float) -> None:
        """Let it differ by so much from the right time."""
        with self.file.open("r+b") as file:
            file.write(struct.pack("d", seconds))


class Disk:
    """A disk of its own for a folder: nothing else suffers when it is full.

    Args:
        folder: A folder that does not exist.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        command = ["mount", "-t", "tmpfs", "-o", "size=64m,mode=0755", "none"]
        done = subprocess.run([*command, folder], check=False, capture_output=True)
        self.is_own = done.returncode == 0

    def fill(self) -> None:
        """Leave no byte."""
        with suppress(OSError), (self.folder / "full").open("wb") as file:
            while True:
                os.write(file.fileno(), b"\0" * 4096)

    def empty(self) -> None:
        """Make room."""
        (self.folder / "full").unlink()

    def faults(self, name: str) -> list[Fault]:
        """Return that it is full; nothing where nobody may mount a disk."""
        part = f"{name}'s disk"
        return [Fault(f"{part} full", part, self.fill, self.empty)] * self.is_own

    def close(self) -> None:
        """Take it away."""
        if self.is_own:
            subprocess.run(["umount", "-l", self.folder], check=True)
