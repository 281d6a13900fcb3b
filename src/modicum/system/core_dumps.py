"""Core dumps, which would write rows and keys to a disk as they are."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from typing import Final

_SET_DUMPABLE: Final = 4


def forbid_core_dumps() -> None:
    """Forbid core dumps of this process.

    Nor may other processes of its user attach to it or read its memory; those of root
    may. Its children inherit the limit, but not the flag.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "linux":
        return
    # A handler of core dumps that is a pipe is run whatever the limit is.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
