"""Requests: releases that wait for approval by others."""

from __future__ import annotations

from typing import Any

from modicum.api import operations
from modicum.api.schema.approval import Reason
from modicum.console.registry import DONE, after, form, page
from modicum.console.relay import Relay
from modicum.console.votes import send_vote

DONE["withdrawn"] = "It is withdrawn."


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
    release, operation = relay.named("release"), operations.APPROVE_RELEASE
    return after("/requests", done=await send_vote(relay, operation, release=release))


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
