"""Attempts to use more than was allowed, and to keep something for the next run."""

from __future__ import annotations

from samples.escapes.attempt import Attempt

_NO_END = "outside nothing ends it"

RESOURCES = (
    Attempt(
        "memory-bomb",
        """
def attempt(given):
    kept = []
    for _ in range(48):
        kept.append(bytearray(2**24))
    return True
""",
    ),
    Attempt(
        "shared-memory-of-nobody",
        """
def attempt(given):
    import mmap
    return len(mmap.mmap(-1, 2**30)) > 0
""",
    ),
    Attempt(
        "deep-recursion",
        """
def attempt(given):
    sys.setrecursionlimit(10**9)
    def down():
        down()
    down()
""",
        _NO_END,
    ),
    Attempt(
        "spin",
        """
def attempt(given):
    while True:
        pass
""",
        _NO_END,
        (None,),
    ),
    Attempt(
        "spin-in-threads",
        """
def attempt(given):
    def spin():
        while True:
            pass
    for _ in range(4):
        threading.Thread(target=spin).start()
    spin()
""",
        _NO_END,
        (None,),
    ),
    Attempt(
        "sleep-on",
        """
def attempt(given):
    time.sleep(3600)
""",
        _NO_END,
        (None,),
    ),
    Attempt(
        "core-dump",
        """
def attempt(given):
    os.abort()
""",
        "it would leave a core",
        (None,),
    ),
    Attempt(
        "shared-memory-of-posix",
        """
def attempt(given):
    from multiprocessing import shared_memory
    kept = shared_memory.SharedMemory("modicum-kept", create=True, size=16)
    kept.unlink()
    return True
""",
    ),
    Attempt(
        "shared-memory-of-system-v",
        """
def attempt(given):
    number = call(29, 0, 4096, 0o1600)
    return call(31, number, 0, 0) == 0
""",
    ),
    Attempt(
        "message-queue-of-system-v",
        """
def attempt(given):
    number = call(68, 0, 0o1600)
    return call(71, number, 0, 0) == 0
""",
    ),
    Attempt(
        "message-queue-of-posix",
        """
def attempt(given):
    found = call(240, b"modicum-kept", os.O_CREAT | os.O_RDWR, 0o600, 0)
    call(241, b"modicum-kept")
    return found >= 0
""",
    ),
    Attempt(
        "named-pipe",
        """
def attempt(given):
    os.mkfifo("pipe")
    return True
""",
    ),
    Attempt(
        "locks-on-shared-files",
        """
def attempt(given):
    # Two runs at a time could tell each other something by it.
    import fcntl
    with open(os.__file__, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return True
""",
    ),
    Attempt(
        "record-locks-on-shared-files",
        """
def attempt(given):
    import fcntl
    with open(os.__file__, "rb") as file:
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return True
""",
    ),
    Attempt(
        "leases-on-shared-files",
        """
def attempt(given):
    import fcntl
    with open(given["folder"] + "/own", "rb") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    return True
""",
    ),
    Attempt(
        "pipes-of-kernel-memory",
        """
def attempt(given):
    return len(os.pipe()) == 2
""",
    ),
    Attempt(
        "bytecode-for-the-next",
        """
def attempt(given):
    import py_compile
    return bool(py_compile.compile(os.__file__, given["folder"] + "/os.pyc"))
""",
    ),
)
