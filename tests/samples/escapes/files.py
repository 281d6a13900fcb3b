"""Attempts to read what is the machine's, and to write anywhere."""

from __future__ import annotations

from samples.escapes.attempt import WORKS_AS_ROOT, Attempt

FILES = (
    Attempt(
        "read-passwd",
        """
def attempt(given):
    return "root" in open("/etc/passwd").read()
""",
    ),
    Attempt(
        "read-vault",
        """
def attempt(given):
    return float(open(given["folder"] + "/secret").read())
""",
    ),
    Attempt(
        "read-project",
        """
def attempt(given):
    return "modicum" in open(given["project"] + "/pyproject.toml").read()
""",
    ),
    Attempt(
        "read-home",
        """
def attempt(given):
    return len(os.listdir(given["home"])) >= 0
""",
    ),
    Attempt(
        "read-working-folder-of-the-parent",
        """
def attempt(given):
    return float(open("secret").read())
""",
    ),
    Attempt(
        "list-other-packages",
        """
def attempt(given):
    import importlib.metadata
    return any(d.name == "pytest" for d in importlib.metadata.distributions())
""",
    ),
    Attempt(
        "write-outside",
        """
def attempt(given):
    with open(given["folder"] + "/marker", "w") as file:
        file.write("secret")
    return True
""",
    ),
    Attempt(
        "overwrite-canary",
        """
def attempt(given):
    with open(given["folder"] + "/canary", "w") as file:
        file.write("dead")
    return True
""",
    ),
    Attempt(
        "write-to-root",
        """
def attempt(given):
    # A file without a name, which is gone when it is closed.
    return os.open("/", os.O_TMPFILE | os.O_RDWR, 0o600) >= 0
""",
        WORKS_AS_ROOT,
    ),
    Attempt(
        "write-to-usr",
        """
def attempt(given):
    for folder in ("/usr", "/lib", "/python", "/packages"):
        try:
            return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600) >= 0
        except OSError:
            continue
""",
        WORKS_AS_ROOT,
    ),
    Attempt(
        "write-to-site-packages",
        """
def attempt(given):
    import numpy
    open(numpy.__file__, "ab").close()
    return True
""",
        WORKS_AS_ROOT,
    ),
    Attempt(
        "write-to-standard-library",
        """
def attempt(given):
    open(os.__file__, "ab").close()
    return True
""",
        WORKS_AS_ROOT,
    ),
    Attempt(
        "fill-disk",
        """
def attempt(given):
    folders = (given["folder"], "/tmp", "/var/tmp", "/dev/shm", "/", "/home", ".")
    for folder in folders:
        try:
            with open(folder + "/fill", "wb") as file:
                for _ in range(64):
                    file.write(bytes(2**20))
            os.remove(folder + "/fill")
            return True
        except OSError:
            continue
""",
    ),
    Attempt(
        "symbolic-link",
        """
def attempt(given):
    os.symlink(given["folder"] + "/secret", "link")
    return float(open("link").read())
""",
    ),
    Attempt(
        "hard-link",
        """
def attempt(given):
    os.link(given["folder"] + "/secret", "hard")
    return True
""",
    ),
    Attempt(
        "walk-up",
        """
def attempt(given):
    top = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    path = "../" * 9 + given["folder"].lstrip("/") + "/secret"
    return float(os.read(os.open(path, os.O_RDONLY, dir_fd=top), 99))
""",
    ),
    Attempt(
        "proc-self-root",
        """
def attempt(given):
    return float(open("/proc/self/root" + given["folder"] + "/secret").read())
""",
    ),
    Attempt(
        "proc-self-fd",
        """
def attempt(given):
    return len(os.listdir("/proc/self/fd")) > 0
""",
    ),
    Attempt(
        "proc-other-processes",
        """
def attempt(given):
    return len(open("/proc/%d/cmdline" % given["victim"]).read()) > 0
""",
    ),
    Attempt(
        "proc-environment-of-others",
        """
def attempt(given):
    return "MODICUM_SECRET" in open("/proc/%d/environ" % given["victim"]).read()
""",
    ),
    Attempt(
        "proc-load-of-the-machine",
        """
def attempt(given):
    for name in ("/proc/stat", "/proc/loadavg", "/proc/meminfo", "/proc/uptime"):
        try:
            return len(open(name).read()) > 0
        except OSError:
            continue
""",
    ),
    Attempt(
        "proc-mounts",
        """
def attempt(given):
    return len(open("/proc/self/mountinfo").read()) > 0
""",
    ),
    Attempt(
        "sys-files",
        """
def attempt(given):
    return len(os.listdir("/sys")) > 0
""",
    ),
    Attempt(
        "device-memory",
        """
def attempt(given):
    return os.open("/dev/mem", os.O_RDONLY) >= 0
""",
        "many kernels have no /dev/mem",
    ),
    Attempt(
        "device-kernel-messages",
        """
def attempt(given):
    return os.open("/dev/kmsg", os.O_RDONLY) >= 0
""",
        WORKS_AS_ROOT,
    ),
    Attempt(
        "device-any",
        """
def attempt(given):
    return os.open("/dev/zero", os.O_RDONLY) >= 0
""",
    ),
    Attempt(
        "make-device",
        """
def attempt(given):
    os.mknod("device", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    return True
""",
        WORKS_AS_ROOT,
    ),
    Attempt(
        "change-mode",
        """
def attempt(given):
    for name in (given["folder"] + "/own", os.__file__, "/"):
        try:
            os.chmod(name, 0o755)
            return True
        except OSError:
            continue
""",
    ),
    Attempt(
        "file-in-memory",
        """
def attempt(given):
    return os.memfd_create("kept") >= 0
""",
    ),
    Attempt(
        "open-by-handle",
        """
def attempt(given):
    handle = ctypes.create_string_buffer(136)
    struct.pack_into("I", handle, 0, 128)
    number = ctypes.c_int()
    return call(303, -100, b"/", handle, ctypes.byref(number), 0) == 0
""",
    ),
)
