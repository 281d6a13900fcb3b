"""Places where a ledger can live, and processes that work on one."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from modicum.api.ports.storage import MaintainedStore, Store
from modicum.ledger import Record
from modicum.storage.factory import open_store
from samples.postgres import Cluster

ROOT = Path(__file__).parents[2]

_PRELUDE = """
import os, signal, sys
sys.path[:0] = sys.argv[3:]
from modicum.storage.factory import open_store
from samples.stores import numbered
from modicum.ledger import Record

def open_again():
    return open_store(sys.argv[1], keep_open=sys.argv[2] == "True", wait_seconds=60)

store = open_again()
def die():
    os.kill(os.getpid(), signal.SIGKILL)
def say(text):
    os.write(1, f"{text}\\n".encode())  # At once, also where several speak.
"""


@dataclass(frozen=True)
class Place:
    """A ledger that does not exist yet.

    Attributes:
        url: What names it.
        keep_open: Whether stores keep a file open.
        damage: Runs an SQL statement on it behind the store's back; `{s}` stands for
            what comes before a table's name, `{b}` for the type of bytes.
    """

    url: str
    keep_open: bool
    damage: Callable[[str], None]

    def open(self, wait_seconds: float = 60) -> MaintainedStore:
        """Return a new store."""
        return open_store(self.url, keep_open=self.keep_open, wait_seconds=wait_seconds)

    def process(self, script: str) -> subprocess.Popen[str]:
        """Return a process that runs a script on a store, named `store` there."""
        return subprocess.Popen(
            [
                sys.executable,
                "-c",
                _PRELUDE + script,
                self.url,
                str(self.keep_open),
                ROOT / "tests",
                ROOT / "src",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def run(self, script: str) -> tuple[int, str]:
        """Run a script to its end; return how it ended, and what it said."""
        with self.process(script) as process:
            output, _ = process.communicate()
            return process.returncode, output


def sqlite_place(path: Path, *, keep_open: bool) -> Place:
    """Return a place in a SQLite file."""

    def damage(statement: str) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute(statement.format(s="", b="BLOB"))
        connection.close()

    return Place(str(path), keep_open, damage)


def postgres_place(cluster: Cluster) -> Place:
    """Return a place in a database."""
    url = cluster.new_ledger()
    schema = f"modicum_{url.rpartition('=')[2]}"

    def damage(statement: str) -> None:
        for table in ("events", "checkpoints"):
            cluster.execute(f"ALTER TABLE {schema}.{table} DISABLE TRIGGER ALL")
        cluster.execute(statement.format(s=f"{schema}.", b="bytea"))

    return Place(url, keep_open=False, damage=damage)


def numbered(first: int, last: int, *, size: int = 20) -> list[Record]:
    """Return records with these numbers, both included."""
    return [
        Record(n, f"payload {n} ".encode().ljust(size, b"."), f"{n:064}")
        for n in range(first, last + 1)
    ]


def append(store: Store, records: Sequence[Record]) -> None:
    """Append records in a turn of their own."""
    with store.turn() as turn:
        turn.append(records)
