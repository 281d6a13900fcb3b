"""Logs as earlier versions of modicum wrote them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from msgspec import structs

from modicum.api.local import Workspace
from modicum.core.canonical import digest, encode
from modicum.ledger import GENESIS, Event, Record, RecordedRelease, event_of, seal
from modicum.ledger.log.events import Body, PastRecorded, PolicyActivated
from modicum.policy import CompiledPolicy
from samples.audited import ASKING, activated, at, priced
from samples.small import compiled
from samples.stored import before_seventh, before_sixth, to_plain

#: This version names entries that were lost.
SEVENTH = 7
#: This version names losses that are derived and mechanisms that no rule limits.
SIXTH = 6

#: The fields that version 2 added to an event.
LATER: Mapping[str, tuple[str, ...]] = {
    PolicyActivated.kind: ("reason", "accepted"),
    PastRecorded.kind: ("assumptions",),
}


def sealed_first(happened: Iterable[Body]) -> list[Record]:
    """Return a log of version 1 in which policies and past releases come in."""
    rows: list[Record] = []
    previous = GENESIS
    for seq, body in enumerate(happened, 1):
        event = _first(Event(at(seq), "ana", body))
        payload = encode({"seq": seq, "prev": previous, "event": event})
        rows.append(Record(seq, payload, digest(payload)))
        previous = rows[-1].hash
    return rows


def strange_log(many: int, kind: str = "pld") -> list[Record]:
    """Return a log of version 1 with past releases of a kind that is not known.

    Args:
        many: How many such releases.
        kind: What they call their mechanisms.
    """
    past = compiled(ASKING).policy.digest
    unexpected = (described(priced(f"r-{n}"), kind=kind) for n in range(many))
    return sealed_first(
        [activated(ASKING), *(PastRecorded(s, past) for s in unexpected)]
    )


def described(release: RecordedRelease, **changes: Any) -> RecordedRelease:
    """Return a release whose mechanisms are described otherwise."""
    mechanisms = tuple(
        replace(one, description={**one.description, **changes})
        for one in release.mechanisms
    )
    return structs.replace(release, mechanisms=mechanisms)


def _first(event: Event) -> dict[str, Any]:
    plain: dict[str, Any] = before_sixth({**to_plain(event), "v": 1})
    body = plain["body"]
    for name in LATER[plain["kind"]]:
        del body[name]
    if "release" in body:
        del body["release"]["given"]
        for mechanism in body["release"]["mechanisms"]:
            mechanism["sampling"] = None
    return plain


def as_written_by(version: int, records: Iterable[Record]) -> list[Record]:
    """Return a log as if an earlier version had written it."""
    rows: list[Record] = []
    for record in records:
        plain = json.loads(record.payload)
        plain["event"]["v"] = version
        if version < SEVENTH:
            before_seventh(plain["event"])
        if version < SIXTH:
            before_sixth(plain["event"])
        plain["prev"] = rows[-1].hash if rows else GENESIS
        payload = encode(plain)
        rows.append(Record(record.seq, payload, digest(payload)))
    return rows


def with_policy(records: list[Record], policy: str, **more: Any) -> list[Record]:
    """Return a log that goes on with a policy that nobody weighed."""
    new = compiled(policy).policy
    body = PolicyActivated(new.digest, new.name, new.text, "a change", **more)
    event = Event(event_of(records[-1], len(records)).at, "ann", body)
    return [*records, seal(event, len(records) + 1, records[-1].hash)]


def take_up(ws: Workspace, successor: CompiledPolicy) -> None:
    """Activate a policy as earlier versions did, whatever becomes of names in it."""
    policy = successor.policy
    body = PolicyActivated(policy.digest, policy.name, policy.text, "other words")
    ws.turn(lambda entry: entry.add(body))
