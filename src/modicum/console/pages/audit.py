"""Audit: what leaves the server as evidence."""

from __future__ import annotations

from typing import Any

from modicum.api import operations
from modicum.console.registry import form, page
from modicum.console.relay import Relay


@page("/audit", "audit.html", "Audit")
async def audit(relay: Relay) -> dict[str, Any]:
    """Return the published checkpoints, and where evidence is downloaded."""
    end = await relay.get(operations.HEAD)
    # The proof of the last entry has no links: only the checkpoints are wanted.
    known = {"seq": end.seq, "head": end.head} if end.seq else {}
    proof = await relay.get(operations.PROOF, limit=1, **known)
    at = {
        "bundle": operations.BUNDLE,
        "statement": operations.AUDIT_STATEMENT,
        "checkpoint": operations.CHECKPOINT,
    }
    return {
        "end": end,
        "first": proof.first,
        "checkpoints": proof.checkpoints[::-1],
        **{name: operations.PREFIX + one.path for name, one in at.items()},
        "receipt": "",
    }


@form("/audit/receipt", audit)
async def receipt(relay: Relay) -> str | dict[str, Any]:
    """Show the receipt for the answer to a release."""
    release = relay.fields.get("release", "").strip()
    found = await relay.get(operations.RECEIPT, release=release)
    return {
        "receipt": operations.PREFIX + operations.RECEIPT.address(release=release),
        "claim": found.claim,
    }
