"""What an attempt is: a program, and whether it works where nothing holds it."""

from __future__ import annotations

from dataclasses import dataclass

#: What every attempt begins with. 1.0 says that it worked, 0.0 that it was refused.
PRELUDE = """
import ctypes, os, signal, socket, stat, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)

def call(number, *given):
    plain = [ctypes.c_long(one) if isinstance(one, int) else one for one in given]
    found = libc.syscall(ctypes.c_long(number), *plain)
    if found == -1:
        raise OSError(ctypes.get_errno(), "refused")
    return found

def score(tables, given, reference):
    try:
        found = attempt(given)
    except Exception:
        return 0.0
    return (1.0 if found else 0.0) if found is None or found is True else found
"""

#: The attempt works outside of a sandbox; for some, only if root makes it.
WORKS = "works"
WORKS_AS_ROOT = "works as root"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt.

    Attributes:
        name: What it is called in the manual.
        body: `attempt(given)`, which returns True if it worked.
        control: `WORKS`, `WORKS_AS_ROOT`, or why it is not tried outside.
        expected: What it may tell. Whoever is killed tells None.
    """

    name: str
    body: str
    control: str = WORKS
    expected: tuple[float | None, ...] = (0.0, None)

    @property
    def code(self) -> bytes:
        """The program."""
        return (PRELUDE + self.body).encode()
