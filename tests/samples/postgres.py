"""A throwaway PostgreSQL server: its own folder, a Unix socket, and nothing shared.

It is a child of the test's process, so that crash tests can stop, kill and start it.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

#: How long a server may take to start, recovery included.
START_SECONDS = 60.0
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "autovacuum_naptime": "10s",
    "log_min_messages": "fatal",
}


def find_binaries() -> Path | None:
    """Return the folder of the newest server on this machine, or None."""
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name)
    )
    if folders:
        return folders[-1]
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


class Cluster:
    """A server that belongs to one test run.

    Args:
        binaries: The folder of `initdb` and `postgres`.

    Attributes:
        folder: Where its data and its socket are.
    """

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        self.folder = Path(tempfile.mkdtemp(prefix="modicum-pg-"))
        self._data = self.folder / "data"
        self._server: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        # A server refuses to run as root.
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = _other_user()
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.run(
            "initdb", "-D", self._data, "-U", "postgres", "-A", "trust",
            "--no-sync", "--no-locale", "-E", "UTF8",
        )  # fmt: skip

    @property
    def url(self) -> str:
        """The URL of the database that is always there."""
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def new_ledger(self) -> str:
        """Return the URL of a ledger that does not exist yet."""
        return f"{self.url}&modicum_ledger=l{os.getpid()}_{next(self._numbers)}"

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            self._launch()
            if self._answers(deadline):
                return
            # Its predecessor's processes may still be dying.
            if time.monotonic() > deadline:
                raise TimeoutError(self._log())
            time.sleep(0.1)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT cuts connections, SIGQUIT leaves recovery to do."""
        if self._server is not None:
            self._server.send_signal(how)
            self._server.wait(START_SECONDS)
            self._server = None

    def kill(self) -> None:
        """Kill the server as a power cut would end it: all of its processes.

        Without its parent a session may go on for a while, and even commit.
        """
        if self._server is None:
            return
        self._server.send_signal(signal.SIGSTOP)  # It starts no more of them.
        sessions = _children(self._server.pid)
        for pid in sessions:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.stop(signal.SIGKILL)

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop and start the server."""
        self.stop(how)
        self.start()

    def remove(self) -> None:
        """Stop the server and delete its folder."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def execute(self, statement: str, url: str | None = None) -> None:
        """Run a statement as the superuser."""
        with psycopg.connect(url or self.url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def _launch(self) -> None:
        settings = _SETTINGS | {"unix_socket_directories": str(self.folder)}
        with (self.folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [
                    self._binaries / "postgres",
                    "-D",
                    self._data,
                    *(f"--{key}={value}" for key, value in settings.items()),
                ],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,  # Ctrl-C is for the tests.
                **self._as,
            )

    def _answers(self, deadline: float) -> bool:
        """Return whether the server answers before it dies."""
        assert self._server is not None
        while self._server.poll() is None and time.monotonic() < deadline:
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError:
                time.sleep(0.02)
            else:
                return True
        return False

    def run(self, program: str, *arguments: object) -> None:
        """Run one of the server's programs to its end."""
        subprocess.run(
            [self._binaries / program, *map(str, arguments)],
            check=True,
            capture_output=True,
            cwd=self.folder,
            **self._as,
        )

    def _log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-2000:]


@contextmanager
def running_cluster() -> Iterator[Cluster | None]:
    """Yield a server that runs, or None if this machine has none."""
    binaries = find_binaries()
    if binaries is None:
        yield None
        return
    cluster = Cluster(binaries)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


def _children(parent: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            # The name in parentheses may hold anything; its state and parent follow.
            after_name = status.read_text().rpartition(")")[2].split()
            if int(after_name[1]) == parent:
                found.append(int(status.parent.name))
    return found


def _other_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise LookupError("no user but root to run a server")
