"""The reservation that a script runs under, as `modicum release run` tells it."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from modicum.api.local.reservation_use import Use
from modicum.core.errors import Code, Problem, UsageError
from modicum.integrations.loader import Adapters
from modicum.ops.command import CLAIMS, LEDGER, RESERVATION, first_claim
from modicum.ops.wiring import open_workspace


def reservation() -> Use:
    """Return the reservation that this script runs under.

    `modicum release run ID -- …` has started it, and posts it when the script ends
    well; a block  with mo.reservation() as use:  does neither. Each mechanism runs
    once, in whichever process of the command.

    Raises:
        UsageError: If the script does not run under a reservation.
        ConflictError: If it is not started.
    """
    found = {
        name: os.environ.get(name, "")  # noqa: TID251 - told by the parent
        for name in (RESERVATION, LEDGER, CLAIMS)
    }
    if not all(found.values()):
        raise UsageError(
            Problem(
                Code.RELEASE_UNKNOWN,
                "this script runs under no reservation",
                help="run it by  modicum release run ID -- …,  or use"
                "  ws.use(ID)  on a workspace",
            )
        )
    workspace = open_workspace(found[LEDGER])
    first = partial(first_claim, Path(found[CLAIMS]))
    return Use(workspace, found[RESERVATION], Adapters(), within=first)
