"""The first program in the sandbox: it drops all privileges, then runs the program.

It is not imported but passed to a Python as text, in a root with neither modicum nor
anything else of the machine. Until the last privilege is dropped it runs nothing but
itself; if any step fails it ends, and the program never starts. Its output is one
number in an eventfd, or nothing: an eventfd has no separate inode, while a pipe has
one, which counts the files of the whole machine.
"""

from __future__ import annotations

import ctypes
import errno
import json
import numbers
import os
import resource
import struct
import sys
import types
from typing import Any

_SET_PDEATHSIG, _SET_DUMPABLE, _CAPBSET_DROP, _SECCOMP = 1, 4, 24, 22
_SET_NO_NEW_PRIVS, _GET_NO_NEW_PRIVS, _CAP_AMBIENT = 38, 39, 47
_SET_SPECULATION, _FORCE_DISABLE, _SET_THP_DISABLE = 53, 8, 41
_CLEAR_AMBIENT, _CAPABILITIES, _CAP_VERSION = 4, 64, 0x20080522
_NEW_USER_NAMESPACE, _KILL, _FILTER_MODE = 0x10000000, 9, 2
_INSTRUCTION_BYTES = 8
_STDOUT, _STDERR, _ANSWER = 1, 2, 3


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def keep_answer() -> None:
    """Move the output handle out of the way; close all unneeded handles.

    Printed text must not reach it.
    """
    os.dup2(_STDOUT, _ANSWER)
    os.dup2(_STDERR, _STDOUT)
    os.closerange(_ANSWER + 1, 2**16)


def read_all(handle: int) -> bytes:
    """Return all data of a handle."""
    parts = []
    while part := os.read(handle, 2**20):
        parts.append(part)
    return b"".join(parts)


def _limit(settings: dict[str, Any]) -> None:
    for name, most in settings["limits"].items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))


def _become(libc: Any, uid: int) -> None:
    """Become a user permanently, in a new user namespace if possible.

    There only this sandbox counts against the number of processes.
    """
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    libc.unshare(_NEW_USER_NAMESPACE)


def _drop_capabilities(libc: Any) -> None:
    for capability in range(_CAPABILITIES):
        libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0)
    libc.prctl(_CAP_AMBIENT, _CLEAR_AMBIENT, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAP_VERSION, 0)
    none, found = (ctypes.c_uint32 * 6)(), (ctypes.c_uint32 * 6)(1)
    _must(libc.capset(header, none))
    _must(libc.capget(header, found))
    if any(found):
        os._exit(errno.EPERM)


def _must(result: int) -> None:
    if result != 0:
        os._exit(errno.EPERM)


def confine(settings: dict[str, Any], code: bytes) -> None:
    """Drop all privileges permanently; end the process if any of them is left."""
    libc = ctypes.CDLL(None, use_errno=True)
    _limit(settings)
    if settings["uid"] is not None:
        _become(libc, settings["uid"])
        if 0 in {*os.getresuid(), *os.getresgid()}:
            os._exit(errno.EPERM)
    _drop_capabilities(libc)
    most = settings["processes"]
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    # A change of the user resets this, so it is set again.
    _must(libc.prctl(_SET_PDEATHSIG, _KILL, 0, 0, 0))
    _must(libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0))
    for kind in range(2):  # A processor without it keeps its setting.
        libc.prctl(_SET_SPECULATION, kind, _FORCE_DISABLE, 0, 0)
    # Whether a huge page is available depends on earlier runs.
    _must(libc.prctl(_SET_THP_DISABLE, 1, 0, 0, 0))
    _must(libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    kept = ctypes.create_string_buffer(code, len(code))
    program = _Filter(len(code) // _INSTRUCTION_BYTES, ctypes.addressof(kept))
    _must(libc.prctl(_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0))


def write_score(score: float) -> None:
    """Write the record of a score: its bits plus one, since zero cannot be written."""
    (bits,) = struct.unpack("=Q", struct.pack("=d", score))
    os.write(_ANSWER, struct.pack("=Q", (bits + 1) % 2**64))


def _score(job: dict[str, Any]) -> float | None:
    program = types.ModuleType("program")
    sys.modules["program"] = program
    exec(compile(job["code"], "program", "exec"), vars(program))  # noqa: S102
    found = vars(program)["score"](job["tables"], job["arguments"], job["reference"])
    is_number = isinstance(found, numbers.Real) and not isinstance(found, bool)
    return float(found) if is_number else None


def main() -> None:
    """Drop all privileges, run the program, and write its score."""
    settings = json.loads(sys.argv[1])
    keep_answer()
    job = read_all(0)
    os.dup2(1, 0)
    confine(settings, bytes.fromhex(settings["filter"]))
    sys.path[:] = [*sys.path, settings["packages"]]
    sys.argv[:] = [""]
    found = _score(json.loads(job))
    if found is not None:
        write_score(found)


if __name__ == "__main__":
    try:
        main()
    finally:  # Whatever happened, its outcome is not reported.
        os._exit(0)
