"""Escrow: the data sets in the vault, their owners and their versions."""

from __future__ import annotations

from typing import Any

from modicum.api import operations
from modicum.api.schema.approval import Reason
from modicum.api.schema.escrow import DataSet
from modicum.console.registry import DONE, after, form, page
from modicum.console.relay import Relay
from modicum.console.votes import send_vote

DONE["shredded"] = "The version, and all withheld results of it, are destroyed."


@page("/escrow/data", "data-sets.html", "Escrow")
async def data_sets(relay: Relay) -> dict[str, Any]:
    """Return the data sets that the visitor owns or may query."""
    return {"sets": (await relay.get(operations.DATA_SETS)).data_sets}


@page("/escrow/data/{name}", "data-set.html", "Escrow")
async def data_set(relay: Relay) -> dict[str, Any]:
    """Return a data set, and the contracts that read it."""
    name = relay.named("name")
    one = await relay.get(operations.DATA_SET, name=name)
    me = await relay.get(operations.ME)
    found = await relay.try_get(operations.CONTRACTS)
    contracts = found.contracts if found else ()
    return {
        "data": one,
        "owns": me.name in one.owners,
        "must_sign": bool(one.owners.get(me.name)),
        "contracts": [
            each
            for each in contracts[::-1]
            if any(of.id == name for of in each.data.values())
        ],
        "current": _current(one),
    }


def _current(one: DataSet) -> int:
    """Return the number of the version that new contracts read; 0 if there is none."""
    used = (each.version for each in one.versions if each.agreed and not each.shredded)
    return max(used, default=0)


@form("/escrow/data/{name}/versions/{n}/vote", data_set)
async def vote(relay: Relay) -> str:
    """Agree to a version that replaces the rows, or refuse it."""
    name, n = relay.named("name"), relay.named("n")
    done = await send_vote(relay, operations.APPROVE_DATA, name=name, n=n)
    return after("/escrow/data/{}", name, done=done)


@form("/escrow/data/{name}/versions/{n}/shred", data_set)
async def shred(relay: Relay) -> str:
    """Destroy a version, and all withheld results of it."""
    name, reason = relay.named("name"), Reason(reason=relay.fields.get("reason", ""))
    await relay.call(operations.SHRED_DATA, reason, name=name, n=relay.named("n"))
    return after("/escrow/data/{}", name, done="shredded")
