"""Events as plain data, and back. This page is a storage format: see ADR 0003."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import assert_never, cast

from modicum.accounting import COORDINATES, GRID_VERSION, INFINITE, Loss
from modicum.core.canonical import Plain
from modicum.ledger.events import (
    EVENT_VERSION,
    Body,
    Event,
    PastRecorded,
    PolicyActivated,
    RecordedMechanism,
    RecordedRelease,
    ReleaseDenied,
    ReleaseExpired,
    ReleasePosted,
    ReleaseReserved,
    ReleaseStarted,
    ReleaseVoided,
    event_name,
)
from modicum.release import Relation
from modicum.release.parts import part_from_plain, part_to_plain
from modicum.release.units import RELATIONS


def to_plain(event: Event) -> dict[str, Plain]:
    """Return the event as plain data, ready for canonical encoding."""
    return {
        "v": EVENT_VERSION,
        "at": event.at,
        "actor": event.actor,
        "kind": event_name(event.body),
        "body": _body_to_plain(event.body),
    }


def from_plain(plain: Plain) -> Event:
    """Return the event that plain data encodes.

    Raises:
        ValueError: If anything is missing, left over, or not of its type.
    """
    fields = _Reader(plain)
    version = fields.integer("v")
    if version != EVENT_VERSION:
        message = f"event version {version} is not {EVENT_VERSION}"
        raise ValueError(message)
    kind = fields.string("kind")
    body = _body_from_plain(kind, _Reader(fields.take("body")))
    event = Event(_time(fields.string("at")), fields.string("actor"), body)
    fields.finish()
    return event


def _body_to_plain(body: Body) -> dict[str, Plain]:
    match body:
        case PolicyActivated():
            return {"digest": body.digest, "name": body.name, "text": body.text}
        case ReleaseReserved():
            return {
                "release": _release_to_plain(body.release),
                "policy": body.policy,
                "expires_at": body.expires_at,
            }
        case ReleaseStarted() | ReleasePosted() | ReleaseExpired():
            return {"release": body.release}
        case ReleaseVoided():
            return {"release": body.release, "reason": body.reason}
        case ReleaseDenied():
            return {
                "release": _release_to_plain(body.release),
                "policy": body.policy,
                "blocking": list(body.blocking),
            }
        case PastRecorded():
            return {"release": _release_to_plain(body.release), "policy": body.policy}
        case _:
            assert_never(body)


def _body_from_plain(kind: str, fields: _Reader) -> Body:
    body: Body
    match kind:
        case "policy-activated":
            body = PolicyActivated(
                fields.string("digest"), fields.string("name"), fields.string("text")
            )
        case "release-reserved":
            body = ReleaseReserved(
                _release_from_plain(fields.take("release")),
                fields.string("policy"),
                _time(fields.string("expires_at")),
            )
        case "release-started":
            body = ReleaseStarted(fields.string("release"))
        case "release-posted":
            body = ReleasePosted(fields.string("release"))
        case "release-voided":
            body = ReleaseVoided(fields.string("release"), fields.string("reason"))
        case "release-expired":
            body = ReleaseExpired(fields.string("release"))
        case "release-denied":
            body = ReleaseDenied(
                _release_from_plain(fields.take("release")),
                fields.string("policy"),
                fields.strings("blocking"),
            )
        case "past-recorded":
            body = PastRecorded(
                _release_from_plain(fields.take("release")), fields.string("policy")
            )
        case _:
            message = f"unknown kind of event `{kind}`"
            raise ValueError(message)
    fields.finish()
    return body


def _release_to_plain(release: RecordedRelease) -> dict[str, Plain]:
    return {
        "id": release.id,
        "content": release.content,
        "grid": GRID_VERSION,
        "labels": dict(release.labels),
        "metadata": dict(release.metadata),
        "mechanisms": [_mechanism_to_plain(one) for one in release.mechanisms],
    }


def _mechanism_to_plain(one: RecordedMechanism) -> dict[str, Plain]:
    plain: dict[str, Plain] = {
        "description": dict(one.description),
        "attributes": list(one.attributes),
        "labels": dict(one.labels),
        "losses": {
            unit: [_coordinate(value) for value in loss.coordinates]
            for unit, loss in one.losses.items()
        },
        **part_to_plain(one.part),
        "sampling": None,
    }
    if one.neighbors:  # Left out otherwise, so that one mechanism has one encoding.
        plain["neighbors"] = dict(one.neighbors)
    return plain


def _release_from_plain(plain: Plain) -> RecordedRelease:
    fields = _Reader(plain)
    grid = fields.string("grid")
    if grid != GRID_VERSION:
        message = f"losses are on `{grid}`, not on {GRID_VERSION}"
        raise ValueError(message)
    mechanisms = tuple(
        _mechanism_from_plain(item) for item in fields.items("mechanisms")
    )
    release = RecordedRelease(
        id=fields.string("id"),
        content=fields.string("content"),
        labels=fields.string_map("labels"),
        metadata=fields.string_map("metadata"),
        mechanisms=mechanisms,
    )
    fields.finish()
    return release


def _mechanism_from_plain(plain: Plain) -> RecordedMechanism:
    fields = _Reader(plain)
    if fields.take("sampling") is not None:
        message = "`sampling` is not understood by this version"
        raise ValueError(message)
    losses = {
        unit: _loss(_list(values))
        for unit, values in _mapping(fields.take("losses")).items()
    }
    mechanism = RecordedMechanism(
        description=_mapping(fields.take("description")),
        attributes=fields.strings("attributes"),
        labels=fields.string_map("labels"),
        losses=losses,
        part=part_from_plain(
            fields.take("where"), fields.take("periods"), fields.take("groups")
        ),
        neighbors=_neighbors(fields, losses.keys()),
    )
    fields.finish()
    return mechanism


def _neighbors(fields: _Reader, units: Set[str]) -> dict[str, Relation]:
    if not fields.has("neighbors"):
        return {}
    neighbors: dict[str, Relation] = {}
    for unit, word in fields.string_map("neighbors").items():
        if unit not in units:
            message = f"a neighboring relation of `{unit}`, which has no loss"
            raise ValueError(message)
        if word not in RELATIONS or word == "add-remove":
            message = f"`{word}` is not a neighboring relation that is written down"
            raise ValueError(message)
        neighbors[unit] = cast("Relation", word)
    if not neighbors:
        message = "the field `neighbors` is empty"
        raise ValueError(message)
    return neighbors


def _loss(values: Sequence[Plain]) -> Loss:
    if len(values) != COORDINATES:
        message = f"a loss must have {COORDINATES} coordinates, not {len(values)}"
        raise ValueError(message)
    return Loss(tuple(_units(value) for value in values))


def _coordinate(units: int) -> Plain:
    return "inf" if units == INFINITE else units


def _units(plain: Plain) -> int:
    if plain == "inf":
        return INFINITE
    if isinstance(plain, bool) or not isinstance(plain, int):
        message = "a loss coordinate must be an integer or inf"
        raise ValueError(message)  # noqa: TRY004 - bad data, not a bad call
    if not 0 <= plain < INFINITE:
        message = "a loss coordinate must lie between 0 and infinity"
        raise ValueError(message)
    return plain


def _mapping(plain: Plain) -> dict[str, Plain]:
    if not isinstance(plain, dict):
        message = "a mapping was expected"
        raise ValueError(message)  # noqa: TRY004 - bad data, not a bad call
    return plain


def _list(plain: Plain) -> list[Plain]:
    if not isinstance(plain, list):
        message = "a list was expected"
        raise ValueError(message)  # noqa: TRY004 - bad data, not a bad call
    return plain


class _Reader:
    """Takes the fields of one stored mapping; nothing may be left over."""

    def __init__(self, plain: Plain) -> None:
        self._left = dict(_mapping(plain))

    def has(self, key: str) -> bool:
        return key in self._left

    def take(self, key: str) -> Plain:
        if key not in self._left:
            message = f"the field `{key}` is missing"
            raise ValueError(message)
        return self._left.pop(key)

    def string(self, key: str) -> str:
        return _string(self.take(key), key)

    def integer(self, key: str) -> int:
        value = self.take(key)
        if isinstance(value, bool) or not isinstance(value, int):
            message = f"the field `{key}` must be an integer"
            raise ValueError(message)  # noqa: TRY004 - bad data, not a bad call
        return value

    def items(self, key: str) -> list[Plain]:
        return _list(self.take(key))

    def strings(self, key: str) -> tuple[str, ...]:
        return tuple(_string(item, key) for item in self.items(key))

    def string_map(self, key: str) -> dict[str, str]:
        plain = _mapping(self.take(key))
        return {name: _string(value, key) for name, value in plain.items()}

    def finish(self) -> None:
        if self._left:
            message = f"unknown fields: {', '.join(sorted(self._left))}"
            raise ValueError(message)


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)


def _time(text: str) -> str:
    if not _TIME.fullmatch(text):
        message = "a time must read YYYY-MM-DDTHH:MM:SS.ffffffZ"
        raise ValueError(message)
    return text


def _string(plain: Plain, key: str) -> str:
    if not isinstance(plain, str):
        message = f"the field `{key}` must be text"
        raise ValueError(message)  # noqa: TRY004 - bad data, not a bad call
    return plain
