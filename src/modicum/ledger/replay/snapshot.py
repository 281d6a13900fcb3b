"""Snapshots: a state, and the balances of one policy, as bytes.

A snapshot is a cache for a fast start. It names its source and its version; unless it
fits exactly, the log is read instead. No signature is based on one, and an audit never
reads one. Its checksum detects damage, not forgery: anyone who can write the file can
write one that claims less than the log.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from modicum.accounting import GRID_VERSION
from modicum.core.canonical import Joined, Plain, join
from modicum.ledger.log.codec import release_from_plain, release_joined
from modicum.ledger.log.events import EVENT_VERSION
from modicum.ledger.state.release_table import Holders, Standings
from modicum.ledger.state.state import State

#: Incremented whenever the fold, the balances, or this format change in any way.
FOLD_VERSION = 6

_MAGIC = b"modicum-snapshot\n"
_LENGTH_BYTES = 8
_CHECKSUM_BYTES = 32


class Snapshot(Struct, frozen=True):
    """The state at one entry of a log.

    Attributes:
        state: The state.
        policy: Digest of the policy whose balances these are; empty if there are none.
        balances: Its balances, as they write themselves.
    """

    state: State
    policy: str = ""
    balances: Mapping[str, bytes] | None = None


def write_snapshot(snapshot: Snapshot) -> bytes:
    """Return a snapshot as bytes."""
    state, blocks = snapshot.state, snapshot.balances or {}
    standings, columns = state.releases.to_columns()
    header: dict[str, Joined] = {
        **_made_by(),
        "state": state.small_to_plain(),
        "open": [release_joined(one) for one in state.open.values()],
        "holders": state.holders.by,
        "standings": standings,
        "policy": snapshot.policy,
        "columns": len(columns),
        "blocks": [[name, len(block)] for name, block in blocks.items()],
    }
    written = join(header)
    found = b"".join(
        (
            _MAGIC,
            len(written).to_bytes(_LENGTH_BYTES, "big"),
            written,
            columns,
            *blocks.values(),
        )
    )
    return found + hashlib.sha256(found).digest()


def read_snapshot(data: bytes) -> Snapshot | None:
    """Return the snapshot in some bytes; None unless all of it fits this version.

    Args:
        data: The bytes, as returned by `write_snapshot`.
    """
    body, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
    if not body.startswith(_MAGIC) or hashlib.sha256(body).digest() != checksum:
        return None
    start = len(_MAGIC) + _LENGTH_BYTES
    end = start + int.from_bytes(body[len(_MAGIC) : start], "big")
    try:
        header = json.loads(body[start:end])
        if {key: header[key] for key in _made_by()} != _made_by():
            return None
        rest = end + header["columns"]
        blocks = _blocks(header["blocks"], body[rest:])
        state = State.restored(header["state"])
        state.releases = Standings.from_columns(
            header["standings"]["ids"], header["standings"]["expiries"], body[end:rest]
        )
        opened = [release_from_plain(one) for one in header["open"]]
        state.open = {one.id: one for one in opened}
        state.holders = Holders(header["holders"])
        policy = header["policy"]
        return Snapshot(state, policy, blocks if policy else None)
    except (ValueError, KeyError, TypeError):
        return None


def _made_by() -> dict[str, Plain]:
    return {
        "folds": FOLD_VERSION,
        "events": EVENT_VERSION,
        "grid": GRID_VERSION,
        "package": _package_version(),
    }


@cache
def _package_version() -> str:
    from importlib.metadata import version

    return version("modicum")


def _blocks(lengths: list[Any], data: bytes) -> dict[str, bytes]:
    found, start = {}, 0
    for name, length in lengths:
        found[name] = data[start : start + length]
        start += length
    if start != len(data):
        message = "blocks of another length"
        raise ValueError(message)
    return found
