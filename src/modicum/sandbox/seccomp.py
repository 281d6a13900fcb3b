"""The permitted system calls of a program: an allow-list, as a seccomp filter.

NumPy, SciPy and scikit-learn in one process need to read files, to have memory and
threads, and to read the clock. All else fails with EPERM, as on a strict machine; calls
that no honest program makes end the process.
"""

from __future__ import annotations

import errno
import os
from functools import cache
from typing import Final

#: Permitted with any arguments.
ALLOWED: Final = (
    # Permitted on open handles.
    "read", "readv", "pread64", "lseek", "close", "close_range", "fstat", "dup",
    "dup2", "dup3", "write", "writev",
    # Memory.
    "munmap", "mprotect", "mremap", "brk",
    # Threads of this process.
    "futex", "set_robust_list", "rseq", "set_tid_address", "sched_yield",
    "sched_getaffinity", "gettid", "membarrier", "exit", "exit_group", "tgkill",
    # Signals that it handles itself.
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall",
    # Time and chance.
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday",
    "time", "times", "getrandom", "poll", "ppoll", "select", "pselect6",
    # Its own identity; it sees only itself.
    "getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getresuid",
    "getresgid", "getpgrp", "getpgid", "getsid", "uname", "getrlimit", "getrusage",
    "getcpu",
)  # fmt: skip

#: To open files that are there; nothing is mounted that can be written to.
FILES: Final = (
    "openat", "open", "stat", "lstat", "newfstatat", "access",
    "faccessat", "faccessat2", "readlink", "readlinkat", "getdents64", "getcwd",
    "chdir", "umask",
)  # fmt: skip

#: Only an attack calls these: the process ends.
FATAL: Final = (
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise",
    "pidfd_getfd", "kcmp", "bpf", "perf_event_open", "userfaultfd", "keyctl",
    "add_key", "request_key", "io_uring_setup", "io_uring_enter", "io_uring_register",
    "mount", "umount2", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount",
    "fspick", "mount_setattr", "pivot_root", "chroot", "unshare", "setns",
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load",
    "reboot", "swapon", "swapoff", "acct", "quotactl", "syslog", "iopl", "ioperm",
    "open_by_handle_at", "name_to_handle_at", "personality", "modify_ldt", "vmsplice",
    "lookup_dcookie", "fanotify_init", "clock_settime", "settimeofday", "adjtimex",
    "sethostname", "setdomainname", "mknod", "mknodat", "execveat",
)  # fmt: skip

#: The exact flags with which C libraries start a thread, except for CLONE_DETACHED,
#: which does nothing. With CLONE_PIDFD a thread would come with a file whose inode
#: counts the threads of the whole machine.
_THREAD: Final = 0x003D0F00
_DETACHED: Final = 0x00400000
#: Permitted `fcntl` commands: copy a handle, get its flags, and close it on exec. Flags
#: of a file stay as they are: the reader of the output must not be made to wait for it.
_FCNTL: Final = (0, 1, 2, 3, 1030)
#: Permitted `ioctl` requests: test for a terminal, and close on exec.
_IOCTL: Final = (0x5401, 0x5450, 0x5451)
_NAME_THREAD: Final = 15
#: Permitted `madvise` advice: give memory back. Other advice moves pages of files in
#: and out of the kernel's cache, which the next run shares.
_MADVISE: Final = (4, 8)
_MADVISE_END: Final = 9
#: Permitted flags of a mapping: MAP_PRIVATE, FIXED, ANONYMOUS, 32BIT, DENYWRITE,
#: EXECUTABLE, NORESERVE, POPULATE, STACK and FIXED_NOREPLACE. A shared anonymous
#: mapping, or one of huge pages, is a file of the kernel's own. Many of the first take
#: long to end; the second draw inodes from a counter of the whole machine.
_MAPPED: Final = 0x0012D872
_ALL: Final = 2**64 - 1


@cache
def filter_bytes(*, files: bool) -> bytes:
    """Return the filter, in the kernel's form."""
    import pyseccomp as lib

    def arg(at: int, how: int, first: int, second: int = 0) -> lib.Arg:
        return lib.Arg(at, how, first, second)

    made = lib.SyscallFilter(defaction=lib.ERRNO(errno.EPERM))
    made.set_attr(lib.Attr.ACT_BADARCH, lib.KILL_PROCESS)
    allowed = (*ALLOWED, *FILES) if files else ALLOWED
    for names, action in ((allowed, lib.ALLOW), (FATAL, lib.KILL_PROCESS)):
        for number in _known(names):
            made.add_rule(action, number)
    for name, at, values in (
        ("fcntl", 1, _FCNTL),
        ("ioctl", 1, _IOCTL),
        ("prctl", 0, (_NAME_THREAD,)),
    ):
        for value in values:  # The kernel looks at the lower half alone.
            made.add_rule(lib.ALLOW, name, arg(at, lib.MASKED_EQ, 0xFFFFFFFF, value))
    for advice in range(_MADVISE_END):  # The kernel's result for unknown advice.
        action = lib.ALLOW if advice in _MADVISE else lib.ERRNO(errno.EINVAL)
        made.add_rule(action, "madvise", arg(2, lib.EQ, advice))
    made.add_rule(lib.ERRNO(errno.EINVAL), "madvise", arg(2, lib.GE, _MADVISE_END))
    made.add_rule(lib.ALLOW, "mmap", arg(3, lib.MASKED_EQ, _ALL ^ _MAPPED, 0))
    made.add_rule(lib.ALLOW, "clone", arg(0, lib.MASKED_EQ, _ALL ^ _DETACHED, _THREAD))
    # Where these are missing, C libraries use clone, whose flags can be read, and
    # newfstatat, which does not return the numbers of mounts.
    for name in ("clone3", "statx"):
        made.add_rule(lib.ERRNO(errno.ENOSYS), name)
    # For reading its own limits, not for setting any.
    made.add_rule(lib.ALLOW, "prlimit64", arg(0, lib.EQ, 0), arg(2, lib.EQ, 0))
    return _exported(made)


def _known(names: tuple[str, ...]) -> list[int]:
    """Return the numbers of the calls that this processor has."""
    import pyseccomp as lib

    numbers = [lib.resolve_syscall(lib.Arch.NATIVE, name) for name in names]
    return [number for number in numbers if number >= 0]


def _exported(made: object) -> bytes:
    with os.fdopen(os.memfd_create("filter"), "w+b") as file:
        made.export_bpf(file)  # type: ignore[attr-defined]
        file.seek(0)
        return file.read()
