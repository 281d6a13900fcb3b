"""Optional limits by control groups, where this process may create some.

A program's resources are limited without them. They also count kernel memory used for
it, and end it where that is too much.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from modicum.api.ports.escrow import Limits

_MOUNTS: Final = Path("/sys/fs/cgroup")
_OVERHEAD_BYTES: Final = 2**26
#: Bubblewrap's own process in the namespace.
_OTHERS: Final = 1
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Groups:
    """The folder for new groups.

    Attributes:
        memory: The folder that limits memory, and the name of its limit; or None.
        processes: The folder that limits processes; or None.
    """

    memory: tuple[Path, str] | None
    processes: Path | None


def found_groups() -> Groups:
    """Return where this process may make control groups; often nowhere."""
    own: dict[str, str] = {}
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            own.update(dict.fromkeys(names.split(","), path.lstrip("/")))
    memory: tuple[Path, str] | None = None
    processes: Path | None = None
    unified = _MOUNTS / own.get("", "")
    with suppress(OSError):
        on = (unified / "cgroup.subtree_control").read_text().split()
        if os.access(unified, os.W_OK):
            memory = (unified, "memory.max") if "memory" in on else None
            processes = unified if "pids" in on else None
    for name in ("memory", "pids"):
        folder = _MOUNTS / name / own.get(name, "")
        if (folder / "cgroup.procs").exists() and os.access(folder, os.W_OK):
            if name == "memory":
                memory = (folder, "memory.limit_in_bytes")
            else:
                processes = folder
    return Groups(memory, processes)


@contextmanager
def limited(groups: Groups, pid: int, limits: Limits) -> Iterator[None]:
    """Put a process into separate groups for the length of the block.

    If that fails it continues without them: the other limits apply.
    """
    name = f"modicum-{os.getpid()}-{next(_numbers)}"
    made: list[Path] = []
    wanted: list[tuple[Path, str, int]] = []
    if groups.memory is not None:
        folder, file = groups.memory
        wanted.append((folder, file, limits.memory_bytes + _OVERHEAD_BYTES))
    if groups.processes is not None:
        wanted.append((groups.processes, "pids.max", limits.processes + _OTHERS))
    for folder, file, most in wanted:
        with suppress(OSError):
            group = folder / name
            if group not in made:
                group.mkdir()
                made.append(group)
            (group / file).write_text(str(most))
            (group / "cgroup.procs").write_text(str(pid))
    try:
        yield
    finally:
        for group in made:
            with suppress(OSError):
                group.rmdir()
