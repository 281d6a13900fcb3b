"""Releases: all of them, and one with its story."""

from __future__ import annotations

from typing import Any, Final, get_args

from modicum.api import operations
from modicum.api.schema.approval import Reason
from modicum.api.schema.release import ReleaseDetails, Status
from modicum.console.registry import DONE, after, form, page
from modicum.console.relay import RefusedError, Relay

DONE.update(
    {
        "started": "It is started: its loss is spent.",
        "published": "It is published.",
        "canceled": "It is canceled: its loss is not charged.",
    }
)

#: The most releases on a page.
SHOWN: Final = 100
#: The most mechanisms in a table, and characters of a JSON document on a page.
MECHANISMS_SHOWN: Final = 100
CHARACTERS_SHOWN: Final = 60_000
#: The statuses of a release in a list.
STATUSES: Final = tuple(
    one for one in get_args(Status) if one not in ("checked", "denied")
)
#: The measures of a loss in the table of mechanisms.
MEASURES: Final = {"eps": "eps", "rho": "rho", "mu2": "mu²", "delta": "delta"}
#: The kinds of entries by which a release is first counted.
_COUNTED: Final = ("release-reserved", "past-recorded")


@page("/releases", "releases.html", "Releases")
async def releases(relay: Relay) -> dict[str, Any]:
    """Return the visible releases that match the filter, newest first."""
    status, search = relay.query.get("status", ""), relay.query.get("search", "")
    found = await relay.get(
        operations.RELEASES,
        order="newest",
        status=status,
        search=search,
        limit=SHOWN,
        cursor=relay.query.get("cursor", ""),
    )
    return {
        "releases": found.releases,
        "next": found.next,
        "status": status,
        "search": search,
        "statuses": STATUSES,
    }


@page("/releases/{release:path}", "release.html", "Releases")
async def release(relay: Relay) -> dict[str, Any]:
    """Return a release, and on demand its stored form and its receipt."""
    name = relay.named("release")
    recorded = "true" if relay.query.get("recorded") else None
    found = await relay.get(operations.RELEASE, release=name, recorded=recorded)
    receipt, refused = None, None
    if relay.query.get("receipt"):
        try:
            receipt = await relay.get(operations.RECEIPT, release=name)
        except RefusedError as error:
            refused = error.problem
    return {
        "release": found,
        "owner": _owner(found),
        "measures": MEASURES,
        "mechanisms": found.mechanisms[:MECHANISMS_SHOWN],
        "number": float,
        "shown": CHARACTERS_SHOWN,
        "receipt": receipt,
        "refused": refused,
    }


def _owner(found: ReleaseDetails) -> str:
    """Return the actor by whom it was counted."""
    actors = [one.actor for one in found.story if one.kind in _COUNTED]
    return actors[-1] if actors else ""


@form("/releases/{release:path}/start", release)
async def start(relay: Relay) -> str:
    """Start a release."""
    name = relay.named("release")
    await relay.call(operations.START_RELEASE, release=name)
    return after("/releases/{}", name, done="started")


@form("/releases/{release:path}/publish", release)
async def publish(relay: Relay) -> str:
    """Mark a release as published."""
    name = relay.named("release")
    await relay.call(operations.PUBLISH_RELEASE, release=name)
    return after("/releases/{}", name, done="published")


@form("/releases/{release:path}/cancel", release)
async def cancel(relay: Relay) -> str:
    """Cancel a release that was not started."""
    name = relay.named("release")
    reason = Reason(reason=relay.fields.get("reason", ""))
    await relay.call(operations.CANCEL_RELEASE, reason, release=name)
    return after("/releases/{}", name, done="canceled")
