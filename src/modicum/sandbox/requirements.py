"""The requirements of sandboxes with namespaces, and which are missing here."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from modicum.core.errors import Problem, UnavailableError
from modicum.sandbox.problems import missing
from modicum.sandbox.root import python_root
from modicum.sandbox.seccomp import filter_bytes

VERSION_MIN: Final = (0, 8, 0)
#: Since then the kernel counts processes in each user namespace apart.
KERNEL_MIN: Final = (5, 14)
#: Users of the system, and what the kernel shows for unknown ones.
_UID_MIN, _UID_UNKNOWN = 100, 65534
_UID_MAX: Final = 2**31
_IDLE_SECONDS: Final = 10.0
_NUMBERS = re.compile(r"\d+")
# Switches of the kernel that keep everybody but root from a user namespace.
_SWITCHES = (
    (
        "/proc/sys/user/max_user_namespaces",
        "0",
        "sysctl user.max_user_namespaces=9999",
    ),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "sysctl kernel.unprivileged_userns_clone=1",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "give bwrap an AppArmor profile that allows userns",
    ),
)


def needs(uid: int | None, at_a_time: int) -> list[Problem]:
    """Return everything that is missing for bubblewrap, with one remedy each."""
    if other := _elsewhere():
        return other
    problems = [*_kernel(), *_bubblewrap(), *_filter()]
    problems += [*_user(uid, at_a_time), *_root()]
    return [*problems, *_switches()] if os.geteuid() != 0 else problems


def needs_of_child(uid: int | None, at_a_time: int) -> list[Problem]:
    """Return the missing requirements of a process without namespaces."""
    if other := _elsewhere():
        return other
    return [*_filter(), *_user(uid, at_a_time)]


def must_be_idle(uid: int | None, at_a_time: int) -> None:
    """Return once no process runs as the users of programs.

    Processes started by another process of modicum may still be ending.
    """
    if uid is None:
        return
    users, until = set(range(uid, uid + at_a_time)), time.monotonic() + _IDLE_SECONDS
    while (busy := sorted(_running() & users)) and time.monotonic() < until:
        time.sleep(_IDLE_SECONDS / 100)
    if busy:
        raise UnavailableError(
            missing(
                f"other processes run as the user {busy[0]}, which is for programs",
                "use dedicated users",
            )
        )


def _elsewhere() -> list[Problem]:
    if platform.system() == "Linux":
        return []
    what = f"sandboxes need Linux, and this is {platform.system()}"
    return [missing(what, "run the escrow on Linux")]


def executable() -> Path:
    """Return the path of bubblewrap; of one that others could not have put there."""
    return Path(shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin") or "bwrap")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in _NUMBERS.findall(text)[:3])


def _kernel() -> Iterator[Problem]:
    release = platform.release()
    if _version(release)[:2] < KERNEL_MIN:
        yield missing(
            f"the kernel is {release}, and limits apply in namespaces since 5.14",
            "run the escrow on Linux 5.14 or newer",
        )


def _bubblewrap() -> Iterator[Problem]:
    try:
        output = subprocess.run(  # noqa: S603 - from folders of root only
            [str(executable()), "--version"],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
            env={},
        ).stdout
    except (OSError, subprocess.SubprocessError):
        yield missing(
            "bubblewrap is not installed",
            "install it, on Debian with  apt-get install bubblewrap",
        )
        return
    if _version(output) < VERSION_MIN:
        least = ".".join(map(str, VERSION_MIN))
        yield missing(
            f"bubblewrap is of version {output.split()[-1][:20]}, and {least} is"
            " required",
            f"install bubblewrap {least} or newer",
        )


def _filter() -> Iterator[Problem]:
    try:
        filter_bytes(files=True)
    except ImportError:
        yield missing(
            "pyseccomp is not installed", "install  pip install 'modicum[escrow]'"
        )
    except (RuntimeError, OSError):
        yield missing(
            "libseccomp is not installed",
            "install it, on Debian with  apt-get install libseccomp2",
        )


def _root() -> Iterator[Problem]:
    try:
        python_root()
    except UnavailableError as error:
        yield from error.problems


def _user(uid: int | None, at_a_time: int) -> Iterator[Problem]:
    if os.geteuid() != 0:
        if uid is not None:
            yield missing(
                "only root can run programs as another user",
                "leave out uid, or start the service as root",
            )
        return
    if uid is None:
        yield missing(
            "as root, programs need a dedicated user, and none is given",
            "give one by uid (--sandbox-uid), such as a new one from adduser",
        )
        return
    last = uid + at_a_time - 1
    if uid < _UID_MIN or last > _UID_MAX or uid <= _UID_UNKNOWN <= last:
        yield missing(
            f"programs cannot run as the users {uid} to {last}",
            f"use users above {_UID_MIN} that are not {_UID_UNKNOWN}",
        )


def _switches() -> Iterator[Problem]:
    for file, closed, remedy in _SWITCHES:
        try:
            value = Path(file).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if value == closed:
            yield missing(f"user namespaces are disabled ({file})", remedy)


def _running() -> set[int]:
    """Return the users that processes run as."""
    found = set()
    for folder in os.scandir("/proc"):
        if folder.name.isdigit():
            try:
                found.add(folder.stat().st_uid)
            except OSError:
                continue
    return found
