"""The root of sandboxes, copied into memory shared by all runs.

The kernel would cache the machine's own files that programs read: by the time to read a
file, or to find a name missing, one run could signal to the next. Files in memory are
always present, and missing names there are forgotten at once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from modicum.core.errors import UnavailableError
from modicum.sandbox.problems import missing
from modicum.sandbox.root import Root

_BYTES_MAX: Final = 2**31
_SECONDS_MAX: Final = 120.0
#: Folders that every machine has; their contents are hidden from the copy.
_PLACES: Final = ("/mnt", "/media", "/srv", "/opt", "/tmp")  # noqa: S108 - covered
_ENTER: Final = "/usr/bin/nsenter"
# Archives of object files: nothing is linked in a sandbox.
_COPY: Final = """
import json, os, shutil, sys

def copy(source, target, skipped):
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
    elif os.path.isdir(source):
        os.mkdir(target)
        with os.scandir(source) as found:
            for one in found:
                if one.path not in skipped and not one.name.endswith(".a"):
                    copy(one.path, target + "/" + one.name, skipped)
        os.chmod(target, 0o555)
    else:
        shutil.copyfile(source, target)
        shutil.copystat(source, target)
        os.chmod(target, 0o555 if os.access(source, os.X_OK) else 0o444)

place, bound, skipped = json.loads(sys.argv[1])
os.umask(0o022)
for inside, source in bound:
    os.makedirs(os.path.dirname(place + inside), exist_ok=True)
    copy(source, place + inside, set(skipped))
os.write(1, b"%d\\n" % os.getpid())
os.read(0, 1)
"""


@dataclass(frozen=True, slots=True)
class Copied:
    """A root in memory, in a namespace where it is mounted.

    Attributes:
        root: Its contents, by paths that exist only in the namespace.
        handles: The namespace; it is there until these are closed.
    """

    root: Root
    handles: tuple[int, ...]

    def enter(self) -> list[str]:
        """Return the beginning of a command that is run in the namespace."""
        mount, *user = (f"/proc/self/fd/{handle}" for handle in self.handles)
        found = [_ENTER, f"--mount={mount}"]
        for one in user:
            found += [f"--user={one}", "--preserve-credentials"]
        return [*found, "--"]


_lock = threading.Lock()
_copied: dict[Root, Copied] = {}


def copied(root: Root, bubblewrap: Path) -> Copied:
    """Return a copy of a root, made once per process."""
    with _lock:
        if root not in _copied:
            try:
                _copied[root] = _made(root, bubblewrap)
            except (OSError, subprocess.SubprocessError, ValueError) as error:
                raise UnavailableError(
                    missing(
                        "files for programs could not be copied into memory",
                        "check for 500 MB of free memory, and for nsenter of"
                        " util-linux",
                    )
                ) from error
        return _copied[root]


def _made(root: Root, bubblewrap: Path) -> Copied:
    os.stat(_ENTER)
    python = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    sources = [outside for _, outside in root.bound]
    place = _place([*sources, python, bubblewrap])
    named = dict(root.bound)
    skipped = [
        str(named[inside] / Path(covered).name)
        for covered in root.covered
        if (inside := str(Path(covered).parent)) in named
    ]
    pairs = [(inside, str(outside)) for inside, outside in root.bound]
    settings = json.dumps([place, pairs, skipped])
    command = [
        *(str(bubblewrap), "--dev-bind", "/", "/", "--die-with-parent"),
        *("--size", str(_BYTES_MAX), "--tmpfs", place, "--"),
        *(str(python), "-I", "-S", "-B", "-c", _COPY, settings),
    ]
    with subprocess.Popen(  # noqa: S603 - made here, by a fixed path
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        cwd="/",
    ) as process:
        assert process.stdout is not None
        late = threading.Timer(_SECONDS_MAX, process.kill)
        late.start()
        try:
            handles = _namespaces(int(process.stdout.readline()))
        finally:
            late.cancel()
            process.kill()
    # One file system for all of it and for all runs: its number never changes.
    return Copied(replace(root, bound=(("/", Path(place)),), covered=()), handles)


def _place(paths: list[Path]) -> str:
    """Return a folder that can be covered: nothing that is needed lies in it."""
    for place in _PLACES:
        if Path(place).is_dir() and not any(one.is_relative_to(place) for one in paths):
            return place
    raise ValueError("no folder can be mounted over")


def _namespaces(pid: int) -> tuple[int, ...]:
    """Return handles of the namespaces of a process, as far as they are its own."""
    found = []
    for name in ("mnt", "user"):
        path = f"/proc/{pid}/ns/{name}"
        if os.readlink(path) != os.readlink(f"/proc/self/ns/{name}"):
            found.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    if not found:
        raise ValueError("no namespace was created")
    return tuple(found)
