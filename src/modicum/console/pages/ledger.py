"""The ledger: its entries, their verification, remarks and disclosures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from modicum.api import operations
from modicum.api.schema.ledger import EntryPage, Head, RemarkInput
from modicum.console.registry import DONE, after, form, page
from modicum.console.relay import AS_OF, Relay
from modicum.ledger.log.events import KINDS

DONE.update(
    {
        "remarked": "Your remark is recorded. It changes no budget.",
        "disclosed": "The disclosure is recorded. No rule counts it.",
    }
)

#: Number of entries on a page.
SHOWN: Final = 100
#: The most characters of a payload on a page; the REST API returns all of it.
PAYLOAD_MAX: Final = 100_000
#: The most characters of one field of an event in the table.
_FIELD_MAX: Final = 400


@page("/ledger", "ledger.html", "Ledger")
async def ledger(relay: Relay) -> dict[str, Any]:
    """Return entries, newest first."""
    head = await relay.get(operations.HEAD)
    if relay.query.get(AS_OF):
        found = await _past(relay, head)
    else:
        found = await relay.get(
            operations.ENTRIES,
            order="newest",
            kind=relay.query.get("kind"),
            actor=relay.query.get("actor", "").strip(),
            cursor=relay.query.get("cursor"),
            limit=SHOWN,
        )
    return {
        "entries": found.entries,
        "next": found.next,
        "end": head,
        "kinds": sorted(one.kind for one in KINDS),
        "proof": operations.PREFIX + operations.PROOF.path,
    }


async def _past(relay: Relay, head: Head) -> EntryPage:
    """Return the last entries before a point; the number before is the next one."""
    start = max(0, head.seq - SHOWN)
    if not head.seq:
        return EntryPage(entries=(), next=None, ledger=head)
    found = await relay.get(operations.ENTRIES, after=start, limit=head.seq - start)
    return EntryPage(
        entries=found.entries[::-1], next=str(start) if start else None, ledger=head
    )


@form("/ledger/verify", ledger)
async def verify(relay: Relay) -> str:
    """Start a verification by the server."""
    noted = relay.fields.get("head", "").strip().lower().rpartition(":")[2]
    job = (await relay.call(operations.VERIFY_LEDGER, head=noted)).value
    return f"/jobs/{job.job}"


# --- one entry ----------------------------------------------------------------------


@page("/ledger/{seq}", "entry.html", "Ledger")
async def entry(relay: Relay) -> dict[str, Any]:
    """Return an entry: what it records, and the bytes that are hashed."""
    found = await relay.get(operations.ENTRY, seq=relay.named("seq"))
    head = await relay.get(operations.HEAD)
    stored = json.loads(found.payload)
    body = stored["event"]["body"]
    return {
        "entry": found,
        "previous": stored["prev"],
        "version": stored["event"]["v"],
        "rows": {name: _short(value) for name, value in body.items()},
        "links": _links(found.kind, body),
        "payload": found.payload[:PAYLOAD_MAX],
        "is_cut": len(found.payload) > PAYLOAD_MAX,
        "last": head.seq,
        "document": operations.PREFIX + operations.ENTRY.address(seq=found.seq),
    }


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _FIELD_MAX else f"{text[:_FIELD_MAX]}…"


def _links(kind: str, body: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return what an event is about: for each, the path of its page and its id."""
    found: dict[str, tuple[str, str]] = {}
    release, about = body.get("release"), body.get("subject")
    if isinstance(release, Mapping):
        release = release.get("id")
    # What was only denied has no page of its own.
    if isinstance(release, str) and kind != "release-denied":
        path = "/requests/{}" if kind == "release-requested" else "/releases/{}"
        found["release"] = (path, release)
    if about in ("release", "policy"):
        found[about] = (
            f"/{'releases' if about == 'release' else about}/{{}}",
            body["id"],
        )
    if kind.startswith("policy-"):
        found["policy"] = ("/policy/{}", body["digest"])
    elif isinstance(body.get("policy"), str):
        found["policy"] = ("/policy/{}", body["policy"])
    if isinstance(body.get("contract"), str):
        found["contract"] = ("/escrow/contracts/{}", body["contract"])
    if isinstance(body.get("round"), str):
        found["round"] = ("/rounds/{}", body["round"])
    return found


# --- additions that charge nothing --------------------------------------------------


@page("/ledger/remark", "remark.html", "Ledger")
async def remark(relay: Relay) -> dict[str, Any]:
    """Return the forms of remarks and disclosures."""
    return {"about": relay.fields.get("about") or relay.query.get("about", "")}


@form("/ledger/remark", remark)
async def annotate(relay: Relay) -> str:
    """Add a remark."""
    sent = RemarkInput(
        remark=relay.fields.get("remark", ""),
        about=relay.fields.get("about", "").strip(),
    )
    await relay.call(operations.ANNOTATE, sent)
    return after("/ledger/remark", done="remarked")


@form("/ledger/disclosure", remark)
async def disclose(relay: Relay) -> str:
    """Record a disclosure outside differential privacy."""
    await relay.call(operations.DISCLOSE, relay.fields.get("disclosure", ""))
    return after("/ledger/remark", done="disclosed")
