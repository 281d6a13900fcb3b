"""What a program sees of the kernel's counters: nothing that another run can move."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from fractions import Fraction
from pathlib import Path

from samples.escapes import ATTEMPTS
from samples.sandboxed import python, sandbox

from modicum.api.ports.escrow import Limits
from modicum.escrow.programs import STEPS, Range

LIMITS = Limits(seconds=6.0, memory_bytes=2**29, processes=16)
SHORT = Limits(seconds=2.0, memory_bytes=2**28, processes=16)
#: Everything with a number of the kernel's: the digest of all of it is the score.
SEES = """
import hashlib, os, resource, sys, threading

def seen():
    yield sys.orig_argv, sys.argv, sorted(os.environ.items()), os.uname()
    yield os.getpid(), os.getppid(), os.getpgid(0), os.getsid(0), os.getresuid()
    yield os.getresgid(), sorted(os.sched_getaffinity(0))
    yield [resource.getrlimit(kind) for kind in range(16)]
    for handle in range(64):
        try:
            yield handle, tuple(os.fstat(handle)), os.stat(handle).st_mtime_ns
        except OSError as error:
            yield handle, error.errno
    for folder, folders, files in os.walk("/"):
        folders.sort()
        for name in [".", *sorted(files)]:
            found = os.lstat(folder + "/" + name)
            yield folder, name, tuple(found), found.st_mtime_ns, found.st_ctime_ns
    ids = []
    for _ in range(3):
        thread = threading.Thread(target=lambda: ids.append(threading.get_native_id()))
        thread.start()
        thread.join()
    yield ids

def score(tables, arguments, reference):
    everything = hashlib.blake2b(repr(list(seen())).encode(), digest_size=8)
    return int.from_bytes(everything.digest(), "big") % 10**9
"""
#: What moves counters, if anything that a program may do moves them.
MOVES = (
    "thread-with-a-file",
    "mapping-of-huge-pages",
    "files-that-the-kernel-counts",
    "thread-bomb",
    "shared-mapping-of-nobody",
)
TIMES = 64


def test_a_program_sees_the_same_whatever_ran_before() -> None:
    held = sandbox()
    steps = Range(Fraction(0), Fraction(STEPS))

    def seen() -> float:
        found = held.score(python(SEES, span=steps), {}, None, LIMITS)
        assert found is not None
        return found

    first = seen()
    for name in MOVES:
        text = next(one.code for one in ATTEMPTS if one.name == name)
        often = text.replace(
            b"        found = attempt(given)",
            b"        found = None\n        for _ in range(%d):\n"
            b"            try: found = attempt(given)\n"
            b"            except Exception: pass" % TIMES,
        )
        assert often != text
        held.score(python(often), {}, None, SHORT)
    kept = move_counters()
    try:
        assert seen() == first
    finally:
        for handle in kept:
            os.close(handle)
    # Otherwise the test would see nothing.
    other = python(SEES.replace("range(64)", "range(63)"), span=steps)
    assert held.score(other, {}, None, LIMITS) not in {None, first}


def move_counters() -> list[int]:
    """Return handles of what the kernel counted, of each kind some, still open."""
    kept: list[int] = []
    for _ in range(TIMES):
        kept += [*os.pipe(), os.eventfd(0), os.memfd_create("counted")]
        kept.append(os.pidfd_open(os.getpid()))
        kept.append(socket.socket(socket.AF_UNIX).detach())
    for _ in range(TIMES * 32):  # Each processor has 1024 numbers of its own.
        read, write = os.pipe()
        os.close(read)
        os.close(write)
    for _ in range(TIMES):
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
    subprocess.run([Path("/bin/true")], check=True)
    return kept
