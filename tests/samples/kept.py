"""Ledgers to be backed up: a log with every kind of entry, and signed checkpoints."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from modicum.ledger.proof.claims import signed_bytes
from modicum.storage.factory import open_store
from modicum.storage.proofs.signing_keys import make_key
from samples.audited import checkpoint, log
from samples.stores import append


def kept_ledger(address: str, folder: Path) -> str:
    """Make a ledger with two checkpoints; the key lies in a folder. Return its head."""
    rows, store = list(log()), open_store(address)
    append(store, rows)
    key = make_key(folder / "signer.pem")
    for seq in (3, len(rows)):
        store.add_checkpoint(signed_bytes(checkpoint(rows, seq, key)))
    store.close()
    return rows[-1].hash


def rows_of(path: Path) -> list[tuple[int, bytes, str]]:
    """Return the rows of a ledger in a file, by no code of modicum's."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT seq, payload, hash FROM events ORDER BY seq")
        return found.fetchall()


def checkpoints_of(path: Path) -> list[bytes]:
    """Return the checkpoints of a ledger in a file, by no code of modicum's."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT data FROM checkpoints ORDER BY id")
        return [data for (data,) in found]
