"""Events as plain data, each field worked out anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from msgspec import structs

from modicum.core.canonical import Plain
from modicum.ledger import Event, RecordedRelease
from modicum.ledger.log.codec import event_codecs
from modicum.ledger.log.events import (
    EVENT_VERSION,
    Body,
    PastRecorded,
    ReleaseDenied,
    ReleaseStarted,
    ReleaseVoided,
)


def to_plain(event: Event) -> dict[str, Plain]:
    """Return an event as it is stored by this version."""
    body = event.body
    return {
        "v": EVENT_VERSION,
        "at": event.at,
        "actor": event.actor,
        "kind": body.kind,
        "body": {
            name: codec.write(getattr(body, name))
            for name, codec in event_codecs(body.kind).items()
        },
    }


def before_seventh(plain: dict[str, Any]) -> dict[str, Any]:
    """Return an event as it was stored before version 7."""
    for key in ("lost_at", "lost_by"):
        plain["body"].pop(key, None)
    return plain


def read_before_seventh(body: Body) -> Body:
    """Return what is read of a body that was stored so."""
    if isinstance(body, PastRecorded):
        return structs.replace(body, lost_at="", lost_by="")
    if isinstance(body, ReleaseStarted | ReleaseVoided):
        return structs.replace(body, lost_at="")
    return body


def before_sixth(plain: dict[str, Any]) -> dict[str, Any]:
    """Return an event as it was stored before version 6."""
    before_seventh(plain)
    if plain["kind"] == ReleaseDenied.kind:
        del plain["body"]["unmatched"]
    for value in plain["body"].values():
        if isinstance(value, dict) and "mechanisms" in value:
            for mechanism in value["mechanisms"]:
                mechanism.pop("derived", None)
    return plain


def read_before_sixth(body: Body) -> Body:
    """Return what is read of a body that was stored so."""
    changed: dict[str, Any] = {
        one.name: structs.replace(
            release,
            mechanisms=tuple(replace(m, derived=None) for m in release.mechanisms),
        )
        for one in structs.fields(body)
        if isinstance(release := getattr(body, one.name), RecordedRelease)
    }
    if isinstance(body, ReleaseDenied):
        changed["unmatched"] = ()
    return structs.replace(read_before_seventh(body), **changed)
