"""Escrow: the forms that request a contract, one for each kind of flow."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from textwrap import indent
from typing import Any, Final

from modicum.api import operations
from modicum.api.schema.escrow import ListedContract
from modicum.console.registry import DONE, after, form, page
from modicum.console.relay import Relay

DONE["contract-requested"] = "The contract is requested. Its owners must agree to it."

#: The kinds of flow, and the kinds of contracts that each follows from.
_FLOWS: Final = {
    "query": (),
    "task": ("query",),
    "output": ("query",),
    "signal": ("task",),
    "raw-signal": ("task",),
}
#: The result that a disclosure needs.
_NEEDS: Final = {"output": "private", "signal": "private", "raw-signal": "exact"}
_DAY: Final = 24 * 60 * 60
_PROGRAM: Final = "program:\n"


@page("/escrow/propose", "contract-proposal.html", "Escrow")
async def proposal(relay: Relay) -> dict[str, Any]:
    """Return the form for a kind of flow."""
    wanted = relay.fields.get("flow") or relay.query.get("flow", "")
    flow = wanted if wanted in _FLOWS else "query"
    found = await relay.try_get(operations.CONTRACTS)
    sets = await relay.try_get(operations.DATA_SETS)
    return {
        "flow": flow,
        "of": relay.fields.get("of") or relay.query.get("of", ""),
        "sources": [
            one.contract
            for one in (found.contracts[::-1] if found else ())
            if _is_source(one, flow)
        ][:200],
        "sets": sets.data_sets if sets else (),
    }


def _is_source(one: ListedContract, flow: str) -> bool:
    needed = _NEEDS.get(flow)
    has = needed in one.results if needed else bool(one.results)
    return one.flow in _FLOWS[flow] and has and not one.withdrawn


@form("/escrow/propose", proposal)
async def propose(relay: Relay) -> str:
    """Request a contract."""
    asked = proposal_text(relay.fields)
    made = (await relay.call(operations.PROPOSE_CONTRACT, asked)).value
    return after("/escrow/contracts/{}", made.contract, done="contract-requested")


def proposal_text(fields: Mapping[str, str]) -> str:
    """Return a proposal as YAML; a task file stands first, with its own lines."""
    flow = fields.get("flow", "")
    kept: dict[str, Any] = {"flow": flow, "contract": fields.get("contract", "")}
    kept["reason"] = fields.get("reason", "")
    if fields.get("days"):
        kept["lasts_seconds"] = _whole(fields["days"], _DAY)
    if fields.get("uses"):
        kept["uses"] = _whole(fields["uses"])
    kept |= _terms(flow, fields)
    lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in kept.items())
    if flow != "task":
        return lines
    return f"{_PROGRAM}{indent(fields.get('program', ''), '  ')}\n{lines}"


def _terms(flow: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the keys of one kind of flow."""
    if flow == "query":
        found: dict[str, Any] = {"queries": [fields.get("query", "")]}
        found["exact"] = "exact" in fields
        return found | _given(fields, "analyst")
    of = fields.get("of", "")
    if flow == "task":
        found = {"query": of, "seconds": _whole(fields.get("seconds", ""))}
        if fields.get("blocks"):
            loss = fields.get("block_loss", "")
            found["blocks"] = {"number": _whole(fields["blocks"]), "loss": loss}
        return found
    to = [one.strip() for one in fields.get("to", "").split(",") if one.strip()]
    found = {"query" if flow == "output" else "task": of, "to": to}
    if flow == "raw-signal":
        found |= {"exact": True} if "exact" in fields else _given(fields, "width")
    return found


def _given(fields: Mapping[str, str], name: str) -> dict[str, Any]:
    return {name: fields[name]} if fields.get(name) else {}


def _whole(text: str, times: int = 1) -> int | str:
    """Return a whole number; a text that is none stays, and is refused."""
    return int(text) * times if re.fullmatch("[0-9]{1,9}", text) else text
