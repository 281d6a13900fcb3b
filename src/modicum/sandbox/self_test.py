"""The self-test of a sandbox before anything runs in it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Final

from modicum.api.ports.escrow import Limits
from modicum.core.errors import UnavailableError
from modicum.sandbox.problems import leaking
from modicum.sandbox.process import Ended
from modicum.sandbox.scores import number_of

#: The test is shorter, unless something waits for the network or continues.
LIMITS: Final = Limits(seconds=30.0, memory_bytes=2**30, processes=8)

# That nothing escapes from a sandbox in which nothing runs proves little.
_HONEST: Final = """
def score(tables, arguments, reference):
    import numpy
    from concurrent.futures import ThreadPoolExecutor
    from sklearn.linear_model import LinearRegression
    with ThreadPoolExecutor(1) as threads:
        x = threads.submit(numpy.arange, 8.0).result().reshape(-1, 1)
    return float(LinearRegression().fit(x, 5.25 * x[:, 0]).predict([[8.0]])[0])
"""
_HONEST_SCORE: Final = 42.0

#: The attempts, in this order; a score is the sum of 2**n over successful ones.
ATTEMPTS: Final = (
    "a connection to the network",
    "a new process",
    "a file of the machine",
    "a written file",
    "access to another process",
    "more threads than allowed",
    "more memory than allowed",
    "rights of root",
    "a foreign file handle",
    "a variable of the environment",
    "a machine-wide kernel counter",
)
_HOSTILE: Final = """
import ctypes, os, socket, threading

def connect():
    socket.create_connection(("127.0.0.1", 9), 1)

def fork():
    if os.fork() == 0:
        os._exit(0)

def read():
    for name in ("/etc/passwd", "/proc/1/status", "/sys/kernel", "/home", "/var"):
        if os.path.exists(name):
            return
    raise OSError

def write():
    for folder in ("/", "/tmp", "/packages", "/python", "/dev/shm", "/lib", "."):
        try:
            os.open(folder + "/x", os.O_CREAT | os.O_WRONLY)
        except OSError:
            continue
        return
    raise OSError

def signal():
    os.kill(-1, 0)

def threads():
    gate, started = threading.Event(), []
    try:
        for _ in range(64):
            started.append(threading.Thread(target=gate.wait, daemon=True))
            started[-1].start()
    finally:
        gate.set()

def memory():
    bytearray(2**31)

def root():
    if os.getuid() != 0 and os.geteuid() != 0 and os.getgid() != 0:
        os.setuid(0)

def handles():
    for handle in range(4, 1024):
        try:
            os.fstat(handle)
        except OSError:
            continue
        return
    raise OSError

def count():
    # Pipes and huge pages draw their inodes from a counter of the whole machine.
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap(None, ctypes.c_size_t(2**21), 3, 0x40022, -1, ctypes.c_long(0))
    if ctypes.get_errno() == 1:
        os.pipe()


def environment():
    if set(os.environ) <= set(KNOWN):
        raise OSError

def score(tables, arguments, reference):
    global KNOWN
    KNOWN, total = arguments["known"], 0
    tried = (connect, fork, read, write, signal, threads, memory, root, handles,
             environment, count)
    for number, attempt in enumerate(tried):
        try:
            attempt()
        except (OSError, RuntimeError, MemoryError):
            continue
        total += 2**number
    return total
"""
# No result is possible where the system call filter works: the process ends.
_FATAL: Final = """
import ctypes
def score(tables, arguments, reference):
    ctypes.CDLL(None).unshare(0x10000000)
    return 1.0
"""


class SelfTest:
    """Test programs that try to escape, and one that does not.

    Args:
        tier: The name of the sandbox.
        run: Runs a job in it, until it ends.
        known: The variables of the environment that are set there.
    """

    def __init__(
        self,
        tier: str,
        run: Callable[[bytes, Limits], Ended],
        known: tuple[str, ...],
    ) -> None:
        self._tier = tier
        self._run = run
        self._known = known

    def pass_it(self) -> None:
        """Return if the sandbox runs programs, and confines them."""
        ended = self._run(self._job(_HONEST), LIMITS)
        score = number_of(ended.record)
        if score is None or not math.isclose(score, _HONEST_SCORE):
            detail = f" ({ended.output})" if ended.output else ""
            self._refuse(f"a correct program has no score{detail}")
        ended = self._run(self._job(_HOSTILE), LIMITS)
        score = number_of(ended.record)
        if score is None:
            detail = f" ({ended.output})" if ended.output else ""
            self._refuse(f"the test program failed{detail}")
        elif score != 0.0:
            got = [what for n, what in enumerate(ATTEMPTS) if int(score) >> n & 1]
            self._refuse(f"it allowed {', '.join(got) or 'something'}")
        if self._run(self._job(_FATAL), LIMITS).record:
            self._refuse("the system call filter is missing")

    def _job(self, code: str) -> bytes:
        arguments = {"known": self._known}
        job = {"code": code, "tables": {}, "arguments": arguments, "reference": None}
        return json.dumps(job).encode("ascii")

    def _refuse(self, what: str) -> None:
        raise UnavailableError(leaking(self._tier, what))
