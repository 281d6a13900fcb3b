"""Attempts by the kernel's less used doors. Numbers are those of x86-64."""

from __future__ import annotations

from samples.escapes.attempt import WORKS_AS_ROOT, Attempt

_CHANGES_MACHINE = "it would change the machine"

KERNEL = (
    Attempt(
        "enter-namespace",
        """
def attempt(given):
    try:
        handle = os.open("/proc/self/ns/uts", os.O_RDONLY)
    except OSError:
        handle = 0
    return call(308, handle, 0) == 0
""",
        WORKS_AS_ROOT,
    ),
    Attempt(
        "new-user-namespace",
        """
def attempt(given):
    return call(272, 0x10000000) == 0
""",
    ),
    Attempt(
        "clone-user-namespace",
        """
def attempt(given):
    child = call(56, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    return True
""",
    ),
    Attempt(
        "clone3-user-namespace",
        """
def attempt(given):
    how = (ctypes.c_ulong * 11)()
    how[0], how[4] = 0x10000000, signal.SIGCHLD
    child = call(435, ctypes.byref(how), ctypes.sizeof(how))
    if child == 0:
        os._exit(0)
    return True
""",
    ),
    Attempt(
        "clone-thread-with-namespace",
        """
def attempt(given):
    # What is let through for a thread is let through for nothing else.
    return call(56, 0x10000000 | 0x00010F00, 0, 0, 0, 0) >= 0
""",
        "no kernel does it",
    ),
    Attempt(
        "mount",
        """
def attempt(given):
    return call(165, b"none", b"/", b"tmpfs", 0, 0) == 0
""",
        _CHANGES_MACHINE,
    ),
    Attempt(
        "mount-by-handles",
        """
def attempt(given):
    return call(430, b"tmpfs", 0) >= 0
""",
        WORKS_AS_ROOT,
    ),
    Attempt(
        "unmount",
        """
def attempt(given):
    return call(166, b"/packages/numpy", 2) == 0
""",
        _CHANGES_MACHINE,
    ),
    Attempt(
        "change-root",
        """
def attempt(given):
    os.chroot("/")
    return True
""",
        WORKS_AS_ROOT,
    ),
    Attempt(
        "pivot-root",
        """
def attempt(given):
    return call(155, b".", b".") == 0
""",
        _CHANGES_MACHINE,
    ),
    Attempt(
        "read-keyring",
        """
def attempt(given):
    return call(250, 0, -4, 1) > 0
""",
    ),
    Attempt(
        "add-key",
        """
def attempt(given):
    return call(248, b"user", b"kept", b"x", 1, -1) > 0
""",
    ),
    Attempt(
        "load-bpf",
        """
def attempt(given):
    how = (ctypes.c_uint32 * 32)(2, 4, 8, 1)
    return call(321, 0, ctypes.byref(how), ctypes.sizeof(how)) >= 0
""",
        WORKS_AS_ROOT,
    ),
    Attempt(
        "measure-performance",
        """
def attempt(given):
    how = (ctypes.c_uint32 * 32)(1, 128)  # A counter of software: the clock.
    return call(298, ctypes.byref(how), 0, -1, -1, 0) >= 0
""",
        WORKS_AS_ROOT,
    ),
    Attempt(
        "handle-page-faults",
        """
def attempt(given):
    return call(323, 1) >= 0
""",
    ),
    Attempt(
        "io-uring",
        """
def attempt(given):
    return call(425, 1, ctypes.create_string_buffer(120)) >= 0
""",
    ),
    Attempt(
        "change-personality",
        """
def attempt(given):
    return call(135, 0xFFFFFFFF) >= 0
""",
    ),
    Attempt(
        "local-descriptor-table",
        """
def attempt(given):
    return call(154, 0, ctypes.create_string_buffer(16), 16) >= 0
""",
    ),
    Attempt(
        "calls-of-32-bits",
        """
def attempt(given):
    import mmap
    page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE, prot=7)
    page.write(bytes.fromhex("b814000000cd80c3"))  # getpid by int 0x80
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return ctypes.CFUNCTYPE(ctypes.c_int)(start)() > 0
""",
    ),
    Attempt(
        "calls-of-x32",
        """
def attempt(given):
    return call(0x40000000 + 39) > 0
""",
        "few kernels have them",
    ),
    Attempt(
        "type-into-terminal",
        """
def attempt(given):
    import fcntl
    for handle in (0, 1, 2):
        try:
            fcntl.ioctl(handle, 0x5412, b"x")
            return True
        except OSError:
            continue
""",
        "tests have no terminal",
    ),
    Attempt(
        "open-terminal",
        """
def attempt(given):
    return os.open("/dev/tty", os.O_RDWR) >= 0
""",
        "tests have no terminal",
    ),
    Attempt(
        "kernel-messages",
        """
def attempt(given):
    return call(103, 10, 0, 0) > 0
""",
        WORKS_AS_ROOT,
    ),
    Attempt(
        "watch-files",
        """
def attempt(given):
    return call(294, 0) >= 0
""",
    ),
    Attempt(
        "machine-state",
        """
def attempt(given):
    return call(99, ctypes.create_string_buffer(128)) == 0
""",
    ),
    Attempt(
        "resident-pages-of-files",
        """
def attempt(given):
    import mmap
    page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return call(27, start, 4096, ctypes.create_string_buffer(1)) == 0
""",
    ),
    Attempt(
        "drop-pages-of-files",
        """
def attempt(given):
    file = os.open(os.__file__, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    return True
""",
    ),
    Attempt(
        "move-pages-of-files",
        """
def attempt(given):
    import mmap
    with open(os.__file__, "rb") as file:
        pages = mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, 3)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    done = 0
    for advice in (1, 2, 3, 20, 21):  # Read ahead or not, deactivate, page out.
        try:
            call(28, start, 4096, advice)
            done += 1
        except OSError:
            continue
    return done > 0
""",
    ),
    Attempt(
        "read-ahead-of-files",
        """
def attempt(given):
    return call(187, os.open(os.__file__, os.O_RDONLY), 0, 4096) == 0
""",
    ),
    Attempt(
        "state-of-file-systems",
        """
def attempt(given):
    try:
        return os.statvfs("/").f_bfree >= 0
    except OSError:
        return os.fstatvfs(os.open(os.__file__, os.O_RDONLY)).f_bfree >= 0
""",
    ),
    Attempt(
        "shared-mapping-of-nobody",
        """
def attempt(given):
    import mmap
    return len(mmap.mmap(-1, 4096, mmap.MAP_SHARED)) > 0
""",
    ),
    Attempt(
        "shared-mapping-of-a-file",
        """
def attempt(given):
    import mmap
    with open(os.__file__, "rb") as file:
        return len(mmap.mmap(file.fileno(), 4096, mmap.MAP_SHARED, 1)) > 0
""",
    ),
    Attempt(
        "thread-with-a-file",
        """
def attempt(given):
    # The inode of the file counts the threads of the machine. The thread ends at once.
    import mmap
    page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE, prot=7)
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    page.write(bytes.fromhex("31ffb83c0000000f05"))  # exit(0)
    page[2048:2056] = struct.pack("=Q", start)  # Where its stack says it goes on.
    handle = ctypes.c_int(-1)
    call(56, 0x51F00, start + 2048, ctypes.byref(handle), 0, 0)
    return os.fstat(handle.value).st_ino > 0
""",
        "kernels before 6.9 do not",
    ),
    Attempt(
        "mapping-of-huge-pages",
        """
def attempt(given):
    # Whether there are any or not, the kernel makes a file and counts it.
    try:
        call(9, 0, 2**21, 3, 0x40022, -1, 0)
    except OSError as error:
        return error.errno == 12
    return True
""",
    ),
    Attempt(
        "files-that-the-kernel-counts",
        """
def attempt(given):
    two = (ctypes.c_int * 2)()
    done = 0
    for kind in ((22, two), (293, two, 0), (53, 1, 1, 0, two), (319, b"x", 0),
                 (319, b"x", 4), (447, 0), (434, os.getpid(), 0), (290, 0, 0),
                 (291, 0), (283, 1, 0), (289, -1, struct.pack("=Q", 0), 8, 0)):
        try:
            call(*kind)
            done += 1
        except OSError:
            continue
    return done > 0
""",
    ),
    Attempt(
        "numbers-of-mounts",
        """
def attempt(given):
    return call(332, -100, b"/", 0, 0x5000, ctypes.create_string_buffer(256)) == 0
""",
    ),
    Attempt(
        "raise-limits",
        """
def attempt(given):
    import resource
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE):
        resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return True
""",
    ),
    Attempt(
        "become-traceable",
        """
def attempt(given):
    return call(157, 4, 1, 0, 0, 0) == 0
""",
    ),
)
