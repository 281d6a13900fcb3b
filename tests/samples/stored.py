"""Events as plain data, each field worked out anew."""

from __future__ import annotations

from modicum.core.canonical import Plain
from modicum.ledger import Event
from modicum.ledger.log.codec import event_codecs
from modicum.ledger.log.events import EVENT_VERSION


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
