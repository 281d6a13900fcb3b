"""Requests: releases that wait for approval by others."""

from __future__ import annotations

from typing import Any

from modicum.api import operations
from modicum.api.schema.approval import Reason, VoteInput
from modicum.console.registry import DONE, after, form, page
from modicum.console.relay import Relay

DONE.update(
    {
        "approved": "Your approval is recorded.",
        "rejected": "Your rejection is recorded. It blocks until you approve.",
        "taken-back": "Your approval is taken back. It blocks until you approve.",
        "withdrawn": "It is withdrawn.",
    }
)


@page("/requests", "requests.html", "Requests")
async def requests(relay: Relay) -> dict[str, Any]:
    """Return the requests that wait."""
    return {"requests": (await relay.get(operations.REQUESTS)).requests}


@page("/requests/{release:path}", "request.html", "Requests")
async def request(relay: Relay) -> dict[str, Any]:
    """Return a request: its contents, its effect, and the votes."""
    reply = await relay.call(
        operations.REQUEST, release=relay.named("release"), text="true"
    )
    return {"request": reply.value, "tag": reply.tag}


@form("/requests/{release:path}/vote", request)
async def vote(relay: Relay) -> str:
    """Approve a request, or reject it."""
    release, approves = relay.named("release"), relay.fields.get("vote") == "approve"
    ballot = VoteInput(approves=approves, reason=relay.fields.get("reason", ""))
    await relay.call(operations.APPROVE_RELEASE, ballot, release=release)
    return after("/requests", done="approved" if approves else "rejected")


@form("/requests/{release:path}/take-back", request)
async def take_back(relay: Relay) -> str:
    """Take one's own approval back."""
    release = relay.named("release")
    await relay.call(operations.UNAPPROVE_RELEASE, release=release)
    return after("/requests/{}", release, done="taken-back")


@form("/requests/{release:path}/withdraw", request)
async def withdraw(relay: Relay) -> str:
    """Withdraw a request of one's own."""
    reason = Reason(reason=relay.fields.get("reason", ""))
    release = relay.named("release")
    await relay.call(operations.WITHDRAW_REQUEST, reason, release=release)
    return after("/requests", done="withdrawn")
