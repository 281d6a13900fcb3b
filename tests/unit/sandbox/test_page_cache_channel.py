"""What a run leaves in the kernel's caches of files does not reach the next run."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from samples.sandboxed import python, sandbox

from modicum.api.ports.escrow import Limits
from modicum.core.errors import Code, UnavailableError
from modicum.sandbox import memory_root
from modicum.sandbox.requirements import executable
from modicum.sandbox.root import python_root

LIMITS = Limits(seconds=2.0, memory_bytes=2**28, processes=8)
#: A file that nothing but a program that reads all of its root would read.
FILE = "sklearn/datasets/data/breast_cancer.csv"
READS = f"""
import os
def score(*_):
    for _ in range(3):
        with open("/packages/{FILE}", "rb") as file:
            length = len(file.read())
    return 1.0 if length > 10000 else 0.0
"""


def resident(file: Path) -> int:
    """Return how many pages of a file the kernel has in its cache."""
    length = file.stat().st_size
    pages = -(-length // mmap.PAGESIZE)
    found = ctypes.create_string_buffer(pages)
    libc = ctypes.CDLL(None, use_errno=True)
    with file.open("rb") as opened:
        kept = mmap.mmap(
            opened.fileno(), length, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE
        )
    first = ctypes.c_char.from_buffer(kept)
    start = ctypes.c_void_p(ctypes.addressof(first))
    assert libc.mincore(start, ctypes.c_size_t(length), found) == 0
    del first
    kept.close()
    return sum(one & 1 for one in found.raw)


def test_reading_a_file_brings_nothing_of_it_into_the_cache() -> None:
    held = sandbox()
    places = dict(python_root().bound)
    file = places["/packages/sklearn"].parent / FILE
    handle = os.open(file, os.O_RDONLY)
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(handle)
    if resident(file):
        pytest.skip("what lies in this file system cannot be dropped")
    assert held.score(python(READS), {}, None, LIMITS) == 1.0
    assert resident(file) == 0
    assert file.read_bytes()
    assert resident(file) > 0  # Otherwise the test would see nothing.


def test_everything_that_a_program_sees_lies_in_memory() -> None:
    """There, names that are missing are not remembered either."""
    held = sandbox()
    code = python("import time\ndef score(*_):\n    time.sleep(60)")
    with ThreadPoolExecutor(1) as threads:
        run = threads.submit(held.score, code, {}, None, LIMITS)
        mounts: set[tuple[str, str]] = set()
        while not run.done() and not mounts:
            for pid in below(os.getpid()):
                mounts |= mounted(pid)
        assert run.result() is None
    assert mounts == {("/", "tmpfs")}


def test_no_program_has_huge_pages() -> None:
    """Whether there is one hangs on how earlier runs left the memory."""
    held = sandbox()
    code = python("import time\ndef score(*_):\n    time.sleep(60)")
    with ThreadPoolExecutor(1) as threads:
        run = threads.submit(held.score, code, {}, None, LIMITS)
        without: set[int] = set()
        while not run.done() and not without:
            without = {pid for pid in below(os.getpid()) if not has_huge_pages(pid)}
        run.result()
    assert len(without) == 1  # The program, and not what watches it.


def has_huge_pages(pid: int) -> bool:
    try:
        return "THP_enabled:\t0" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


def below(pid: int) -> list[int]:
    """Return all processes that a process started, and that they did."""
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in file.read_text().split():
                found += [int(child), *below(int(child))]
        except OSError:
            continue
    return found


def mounted(pid: int) -> set[tuple[str, str]]:
    """Return where something is mounted for a process in a sandbox, and its kind."""
    try:
        lines = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    except OSError:
        return set()
    parts = [line.partition(" - ") for line in lines]
    found = {(left.split()[4], right.split()[0]) for left, _, right in parts}
    # While it is made, the machine is still there.
    return found if len(found) == 1 else set()


def test_what_is_copied_is_what_was_there() -> None:
    sandbox()
    root = python_root()
    found = memory_root.copied(root, executable())
    assert found is memory_root.copied(root, executable())  # Once in a process.
    ((inside, place),) = found.root.bound
    assert inside == "/"
    original = dict(root.bound)["/packages/sklearn"].parent / FILE
    copy = place / "packages" / FILE
    output = subprocess.run(
        [*found.enter(), "/bin/cat", str(copy)],
        pass_fds=found.handles,
        capture_output=True,
        check=True,
    )
    assert output.stdout == original.read_bytes()
    assert not copy.exists()  # Nobody else sees it.


@pytest.mark.parametrize("missing", ["nsenter", "bubblewrap", "a folder"])
def test_without_a_copy_nothing_runs(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    sandbox()
    monkeypatch.setattr(memory_root, "_copied", {})
    bubblewrap = executable()
    if missing == "nsenter":
        monkeypatch.setattr(memory_root, "_ENTER", "/nonexistent/nsenter")
    elif missing == "a folder":
        monkeypatch.setattr(memory_root, "_PLACES", ("/nonexistent", "/"))
    else:
        bubblewrap = Path("/bin/false")
    with pytest.raises(UnavailableError) as caught:
        memory_root.copied(python_root(), bubblewrap)
    assert caught.value.code is Code.SANDBOX_MISSING
    assert caught.value.problems[0].help
