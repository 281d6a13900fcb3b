"""Audit: what leaves the server as evidence."""

from __future__ import annotations

from typing import Any, Final

from modicum.api import operations
from modicum.console.registry import form, page
from modicum.console.relay import Relay

#: What is downloaded from the REST API.
_FILES: Final[dict[str, operations.Operation[Any]]] = {
    "bundle": operations.BUNDLE,
    "statement": operations.AUDIT_STATEMENT,
}


@page("/audit", "audit.html", "Audit")
async def audit(relay: Relay) -> dict[str, Any]:
    """Return the published checkpoints, and where evidence is downloaded."""
    end = await relay.get(operations.HEAD)
    # The proof of the last entry has no links: only the checkpoints are wanted.
    known = {"seq": end.seq, "head": end.head} if end.seq else {}
    proof = await relay.try_get(operations.PROOF, limit=1, **known)
    return {
        "end": end,
        "first": proof.first if proof else None,
        "checkpoints": proof.checkpoints[::-1] if proof else None,
        **{name: operations.PREFIX + one.path for name, one in _FILES.items()},
        "checkpoint": None,
        "receipt": None,
    }


@form("/audit/checkpoint", audit)
async def checkpoint(relay: Relay) -> dict[str, Any]:
    """Show a checkpoint of the head, signed by the server."""
    found = await relay.get(operations.CHECKPOINT)
    address = operations.PREFIX + operations.CHECKPOINT.path
    return {"checkpoint": found.claim, "address": address}


@form("/audit/receipt", audit)
async def receipt(relay: Relay) -> dict[str, Any]:
    """Show the receipt for the answer to a release."""
    release = relay.fields.get("release", "").strip()
    found = await relay.get(operations.RECEIPT, release=release)
    address = operations.PREFIX + operations.RECEIPT.address(release=release)
    return {"receipt": found.claim, "address": address}
