"""Attempts to make processes, to outlive the run, and to reach other processes."""

from __future__ import annotations

from samples.escapes.attempt import WORKS_AS_ROOT, Attempt

_NO_END = "outside nothing ends it"

PROCESSES = (
    Attempt(
        "fork",
        """
def attempt(given):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True
""",
    ),
    Attempt(
        "start-program",
        """
def attempt(given):
    import subprocess
    return subprocess.run([sys.executable, "-c", "pass"]).returncode == 0
""",
    ),
    Attempt(
        "fork-bomb",
        """
def attempt(given):
    children = []
    try:
        for _ in range(64):
            child = os.fork()
            if child == 0:
                time.sleep(0.5)
                os._exit(0)
            children.append(child)
    finally:
        for child in children:
            os.waitpid(child, 0)
    return len(children) == 64
""",
    ),
    Attempt(
        "thread-bomb",
        """
def attempt(given):
    threading.stack_size(65536)
    gate = threading.Event()
    threads = []
    try:
        for _ in range(64):
            threads.append(threading.Thread(target=gate.wait, daemon=True))
            threads[-1].start()
    finally:
        gate.set()
    return True
""",
    ),
    Attempt(
        "outlive-as-daemon",
        """
def attempt(given):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(given["later"])
            open(given["folder"] + "/marker", "w").close()
        os._exit(0)
    os.wait()
    return True
""",
    ),
    Attempt(
        "outlive-as-thread",
        """
def attempt(given):
    def wait():
        time.sleep(given["later"])
        open(given["folder"] + "/marker", "w").close()
    threading.Thread(target=wait).start()
    return 0.0
""",
        "a thread ends with its process, in a sandbox or not",
    ),
    Attempt(
        "new-session",
        """
def attempt(given):
    os.setsid()
    return True
""",
    ),
    Attempt(
        "ignore-signals",
        """
def attempt(given):
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_IGN)
        except OSError:
            continue
    while True:
        time.sleep(60)
""",
        _NO_END,
        (None,),
    ),
    Attempt(
        "signal-parent",
        """
def attempt(given):
    os.kill(os.getppid() or given["pid"], 0)
    return True
""",
    ),
    Attempt(
        "signal-victim",
        """
def attempt(given):
    os.kill(given["victim"], 0)
    return True
""",
    ),
    Attempt(
        "signal-everybody",
        """
def attempt(given):
    os.kill(-1, 0)
    return True
""",
    ),
    Attempt(
        "signal-by-handle",
        """
def attempt(given):
    signal.pidfd_send_signal(os.pidfd_open(given["victim"]), 0)
    return True
""",
    ),
    Attempt(
        "trace-victim",
        """
def attempt(given):
    return call(101, 0x4206, given["victim"], 0, 0) == 0
""",
    ),
    Attempt(
        "read-memory-of-victim",
        """
def attempt(given):
    kept = ctypes.create_string_buffer(16)
    here = (ctypes.c_ulong * 2)(ctypes.addressof(kept), 16)
    there = (ctypes.c_ulong * 2)(given["address"], 16)
    return call(310, given["victim"], here, 1, there, 1, 0) == 16
""",
    ),
    Attempt(
        "write-memory-of-victim",
        """
def attempt(given):
    kept = ctypes.create_string_buffer(b"x")
    here = (ctypes.c_ulong * 2)(ctypes.addressof(kept), 1)
    there = (ctypes.c_ulong * 2)(given["writable"], 1)
    return call(311, given["victim"], here, 1, there, 1, 0) == 1
""",
    ),
    Attempt(
        "take-handle-of-victim",
        """
def attempt(given):
    return call(438, os.pidfd_open(given["victim"]), 0, 0) >= 0
""",
    ),
    Attempt(
        "become-root",
        """
def attempt(given):
    os.setgid(0)
    os.setuid(0)
    return True
""",
        WORKS_AS_ROOT,
    ),
    Attempt(
        "change-priority",
        """
def attempt(given):
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
    return True
""",
    ),
    Attempt(
        "change-processors",
        """
def attempt(given):
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    return True
""",
    ),
)
