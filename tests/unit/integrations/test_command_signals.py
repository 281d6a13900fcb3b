"""Signals around a command: before it is there, as it ends, and to other threads."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

#: A process that runs commands; it has no threads but those that it begins.
PROCESS = """
import fcntl, os, pty, signal, sys, termios, threading
os.environ["OPENBLAS_NUM_THREADS"] = "1"
from modicum.ops import command
assert len(os.listdir("/proc/self/task")) == 1

WAITS = "import time; time.sleep(300)"

def beside():
    "Begin another thread; it is given what the first one does not wait for."
    threading.Thread(target=threading.Event().wait, daemon=True).start()

def ends(pid):
    "Wait until a child has ended, and another thread, if there is one, was told."
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    while threading.active_count() > 1 and signal.SIGCHLD in signal.sigpending():
        pass

def terminal():
    "Return the other side of a terminal that is now that of this process."
    other, mine = pty.openpty()
    os.setsid()
    fcntl.ioctl(mine, termios.TIOCSCTTY, 0)
    return other

def run(script, start=lambda: None):
    words = [sys.executable, "-c", script]
    return command.Command(words, dict(os.environ)).run(start)
"""
#: It has one thread, or another one that holds no signal back.
THREADS = pytest.mark.parametrize("threads", ["", "beside()"], ids=["alone", "beside"])


def left(script: str) -> tuple[int, str]:
    """Return how a process that runs commands ended, and what it wrote."""
    found = subprocess.run(
        (sys.executable, "-c", PROCESS + script),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return found.returncode, found.stdout + found.stderr


@THREADS
def test_the_end_is_seen_that_comes_before_it_is_waited_for(threads: str) -> None:
    script = """
spawn = os.posix_spawn
def spawned(*args, **kwargs):
    pid = spawn(*args, **kwargs)
    ends(pid)
    return pid
os.posix_spawn = spawned
print(run("raise SystemExit(3)"))
"""
    assert left(threads + script) == (0, "3\n")


@THREADS
def test_the_end_is_seen_that_comes_between_a_look_and_the_wait(threads: str) -> None:
    script = """
waits, goes_on = os.pipe()
os.set_inheritable(waits, True)
look = os.waitpid
def looked(pid, options):
    os.waitpid = look
    found = look(pid, options)
    os.close(goes_on)
    ends(pid)
    return found
os.waitpid = looked
print(run(f"import os; os.read({waits}, 1); raise SystemExit(3)"))
"""
    assert left(threads + script) == (0, "3\n")


@THREADS
def test_the_end_is_seen_that_comes_while_a_signal_is_passed_on(threads: str) -> None:
    script = """
kill = os.kill
def passed(pid, number):
    kill(pid, number)
    ends(pid)
os.kill = passed
print(run("import os, signal; os.kill(os.getppid(), signal.SIGTERM);" + WAITS))
"""
    assert left(threads + script) == (0, f"{128 + signal.SIGTERM}\n")


@THREADS
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_comes_before_the_command_goes_to_it(
    number: signal.Signals, threads: str
) -> None:
    script = f"""
signal.signal(signal.SIGINT, signal.default_int_handler)
print(run(WAITS, lambda: os.kill(os.getpid(), {int(number)})))
"""
    assert left(threads + script) == (0, f"{128 + number}\n")


def test_what_a_terminal_sends_before_the_command_goes_to_it() -> None:
    script = """
signal.signal(signal.SIGINT, signal.default_int_handler)
other = terminal()
def start():
    os.write(other, bytes([3]))
    while signal.SIGINT not in signal.sigpending():
        pass
print(run(WAITS, start))
"""
    assert left(script) == (0, f"{128 + signal.SIGINT}\n")


def test_what_a_terminal_sends_to_the_command_is_not_sent_again() -> None:
    """What it is sent is what it then asks its parent for."""
    script = """
signal.signal(signal.SIGINT, signal.default_int_handler)
other = terminal()
os.set_inheritable(other, True)
kill, sent = os.kill, []
def passed(pid, number):
    sent.append(int(number))
    kill(pid, number)
os.kill = passed
code = run(f'''
import os, signal
both = (signal.SIGINT, signal.SIGUSR1)
signal.pthread_sigmask(signal.SIG_BLOCK, both)
os.write({other}, bytes([3]))
assert signal.sigwait(both) == signal.SIGINT
os.kill(os.getppid(), signal.SIGUSR1)
raise SystemExit(signal.sigwait(both))
''')
print(code, sent)
"""
    number = int(signal.SIGUSR1)
    assert left(script) == (0, f"{number} [{number}]\n")


def test_the_end_is_seen_where_ends_are_ignored() -> None:
    script = """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print(run("raise SystemExit(3)"))
"""
    assert left(script) == (0, "3\n")


@THREADS
def test_what_comes_too_late_for_the_command_goes_to_the_process(threads: str) -> None:
    script = """
fetch = os.waitstatus_to_exitcode
def fetched(status):
    os.kill(os.getpid(), signal.SIGTERM)
    return fetch(status)
os.waitstatus_to_exitcode = fetched
run("pass")
print("outlived")
"""
    assert left(threads + script) == (-signal.SIGTERM, "")


def test_the_handlers_are_put_back() -> None:
    script = """
every = sorted(signal.valid_signals())
before = [signal.getsignal(one) for one in every]
run("pass")
print(before == [signal.getsignal(one) for one in every])
"""
    assert left(script) == (0, "True\n")
