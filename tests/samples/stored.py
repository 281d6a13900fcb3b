"""Events as plain data, each field worked out anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from msgspec import structs

from modicum.core.canonical import Plain
from modicum.ledger import Event, RecordedRelease
from modicum.ledger.log.codec import event_codecs
from modicum.ledger.log.events import EVENT_VERSION, Body


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


def before_derived(plain: dict[str, Any]) -> dict[str, Any]:
    """Return an event as it was stored before losses were named as derived."""
    for value in plain["body"].values():
        if isinstance(value, dict) and "mechanisms" in value:
            for mechanism in value["mechanisms"]:
                mechanism.pop("derived", None)
    return plain


def origin_unknown(body: Body) -> Body:
    """Return what is read of a body that was stored so."""
    changed = {
        one.name: structs.replace(
            release,
            mechanisms=tuple(replace(m, derived=None) for m in release.mechanisms),
        )
        for one in structs.fields(body)
        if isinstance(release := getattr(body, one.name), RecordedRelease)
    }
    return structs.replace(body, **changed)
