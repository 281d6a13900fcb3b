"""A server of several processes, to be run with a ledger, a port, and how many.

How long it goes on serving when it is told to end may follow.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import modicum as mo
from modicum.server.auth.authentication import Recognizing
from modicum.server.auth.registry import open_registry
from modicum.server.components import Parts
from modicum.server.processes import Listening, bound, serve
from modicum.server.telemetry.context import watching
from modicum.server.telemetry.log import Log
from modicum.storage.factory import open_store

sys.path.insert(0, str(Path(__file__).parents[1]))


def make(ledger: str) -> Parts:
    """Return the parts of one process."""
    from samples.served import PEOPLE, ByHeader

    recognizing = Recognizing([ByHeader(PEOPLE)])
    registry = open_registry(open_store(ledger, keep_open=True))
    return Parts(mo.open_decider(ledger), registry, recognizing, watch=watching())


if __name__ == "__main__":
    path, port, workers, *leave = sys.argv[1:]
    seconds = float(leave[0]) if leave else 0.0
    listening = Listening(port=int(port), workers=int(workers), leave_seconds=seconds)
    with bound(listening) as own:
        serve(partial(make, path), listening, own, Log(sys.stderr))
