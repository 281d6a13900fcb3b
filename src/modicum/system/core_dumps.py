"""Core dumps, which would write rows and keys to a disk as they are."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from typing import Final

_SET_DUMPABLE: Final = 4


def forbid_core_dumps() -> None:
    """Let this process leave no core dump, whatever becomes of it.

    Nor may other processes of its user attach to it or read its memory; those of root
    may. What this process runs inherits the limit, but not that it cannot be dumped.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "linux":
        return
    # A handler of core dumps that is a pipe is run whatever the limit is.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
