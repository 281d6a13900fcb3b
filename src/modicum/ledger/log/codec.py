"""Events as bytes, and back. This page is a storage format: see ADR 0003.

The types of an event's fields determine its encoding. Older versions had fewer kinds
and fewer fields; missing ones have defaults. Version 1 had no parts of the data: there,
`where`, `periods`, `groups` and `sampling` are always null. Nor did it record which
labels were given.

`read_entry` is fast, and only ever returns what the strict reader, `from_plain`,
returns. Each level is decoded into fixed fields and encoded again: equal bytes prove
that they were canonical, with exactly these fields. Content shared by many entries is
cached by its bytes. Anything irregular is left to the strict reader, which words the
error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple, TypeVar, cast, get_args

import msgspec

from modicum.accounting import COORDINATES, GRID_VERSION, INFINITE, Loss
from modicum.core.canonical import Joined, Plain, Written, decode, encode
from modicum.ledger.log import contracts, field_codec
from modicum.ledger.log.escrow_events import Media
from modicum.ledger.log.events import EVENT_VERSION, KINDS, Body, Event, Subject
from modicum.ledger.log.field_codec import (
    Codec,
    codecs_of,
    exactly,
    one_of,
    read_digest,
    read_list,
    read_mapping,
    read_text,
    read_text_map,
    read_texts,
    read_time,
)
from modicum.ledger.log.recorded_release import (
    RecordedMechanism,
    RecordedRelease,
    losses_to_plain,
)
from modicum.release import EVERYTHING, Part, Relation
from modicum.release.memo import Memo
from modicum.release.parts import part_from_plain, part_to_plain
from modicum.release.units import RELATIONS

T = TypeVar("T")


# --- events ---------------------------------------------------------------------------


def to_joined(event: Event) -> dict[str, Joined]:
    """Return an event as plain data of this version; encoded parts stay encoded."""
    body = event.body
    return {
        "v": EVENT_VERSION,
        "at": event.at,
        "actor": event.actor,
        "kind": body.kind,
        "body": {
            name: write(getattr(body, name)) for name, write in _writers(body.kind)
        },
    }


class LaterVersionError(ValueError):
    """An event of a later version than this version of modicum."""


def from_plain(plain: Plain) -> Event:
    """Return the event that plain data encodes.

    Raises:
        LaterVersionError: If it is of a later version.
        ValueError: If anything is missing, left over, or not of its form.
    """
    fields = read_mapping(plain)
    exactly(fields, _EVENT_FIELDS)
    version = fields["v"]
    if type(version) is not int or not 1 <= version <= EVENT_VERSION:
        message = f"event version {version} is not one of 1 to {EVENT_VERSION}"
        is_later = type(version) is int and version > EVENT_VERSION
        raise LaterVersionError(message) if is_later else ValueError(message)
    named = read_text(fields["kind"])
    if named not in _BY_NAME or _BY_NAME[named].since > version:
        message = f"unknown kind of event `{named}`"
        raise ValueError(message)
    body = _read_body(named, read_mapping(fields["body"]), version)
    return Event(read_time(fields["at"]), read_text(fields["actor"]), body, version)


class Chained(NamedTuple):
    """The content of a record.

    Attributes:
        seq: Its number.
        prev: The hash that it names.
        event: Its event.
    """

    seq: int
    prev: str
    event: Event


def read_entry(payload: bytes) -> Chained | None:
    """Return the content of a record; None if the strict reader is needed."""
    try:
        record = _parsed(_RECORD, payload)
        stored = record.event
        parser = _parser(stored.kind, stored.v)
        fields = _parsed(parser.decoder, stored.body)
        body = parser.body(
            **{name: read(getattr(fields, name)) for name, read in parser.fields}
        )
        event = Event(read_time(stored.at), stored.actor, body, stored.v)
    except (msgspec.MsgspecError, ValueError, KeyError, RecursionError):
        return None
    return Chained(record.seq, record.prev, event)


@cache
def event_codecs(kind: str, version: int = EVENT_VERSION) -> dict[str, Codec]:
    """Return how each field of a kind of event is stored in a version, by name."""
    own = _BY_NAME[kind]
    return {
        name: codec
        for name, codec in codecs_of(own, _CODECS).items()
        if own.later.get(name, 1) <= version
    }


def _read_body(kind: str, plain: Mapping[str, Any], version: int) -> Body:
    codecs = event_codecs(kind, version)
    exactly(plain, codecs.keys())
    values: dict[str, Any] = {
        name: release_from_plain(value, version)
        if codecs[name] is _RELEASE
        else codecs[name].read(value)
        for name, value in plain.items()
    }
    return _BY_NAME[kind](**values)


@cache
def _writers(kind: str) -> tuple[tuple[str, Callable[[Any], Joined]], ...]:
    """Return the encoder of each field of a kind, with its name."""
    codecs = event_codecs(kind).items()
    return tuple((name, codec.join or codec.write) for name, codec in codecs)


class _Parser(NamedTuple):
    """The decoder of a kind of event.

    Attributes:
        body: The kind.
        decoder: Decodes its fields; those that can be parsed stay bytes. They are in
            the order of their names, which is that of canonical bytes.
        fields: The further decoder of each, with its name.
    """

    body: type[Body]
    decoder: msgspec.json.Decoder[Any]
    fields: tuple[tuple[str, Callable[[Any], Any]], ...]


@cache
def _parser(kind: str, version: int) -> _Parser:
    own = _BY_NAME[kind]
    if not max(own.since, _QUICK_SINCE) <= version <= EVENT_VERSION:
        message = "the strict reader must check"
        raise ValueError(message)
    codecs = sorted(event_codecs(kind, version).items())
    stored = [(name, Written if codec.parse else Any) for name, codec in codecs]
    return _Parser(
        own,
        msgspec.json.Decoder(
            msgspec.defstruct(own.__name__, stored), float_hook=_refuse_floats
        ),
        tuple(
            (
                name,
                partial(_parse_release, version=version)
                if codec is _RELEASE
                else codec.parse or codec.read,
            )
            for name, codec in codecs
        ),
    )


def _refuse_floats(text: str) -> None:
    message = f"not a plain value: {text}"
    raise ValueError(message)


class _StoredEvent(msgspec.Struct, gc=False):
    """An event whose body is still encoded."""

    actor: str
    at: str
    body: Written
    kind: str
    v: int


class _StoredRecord(msgspec.Struct, gc=False):
    """A record."""

    event: _StoredEvent
    prev: str
    seq: int


def _parsed(decoder: msgspec.json.Decoder[T], data: bytes | Written) -> T:
    """Return the decoded value of bytes, if they are canonical."""
    value = decoder.decode(data)
    if _ENCODER.encode(value) != bytes(data):
        message = "not in canonical form"
        raise ValueError(message)
    return value


_ENCODER = msgspec.json.Encoder(order="deterministic")
_RECORD = msgspec.json.Decoder(_StoredRecord)
_EVENT_FIELDS = frozenset({"v", "at", "actor", "kind", "body"})
_BY_NAME = {kind.kind: kind for kind in KINDS}
#: From this version on, releases have the same fields.
_QUICK_SINCE = 2


# --- releases -------------------------------------------------------------------------


def release_to_plain(release: RecordedRelease) -> dict[str, Plain]:
    """Return a release as plain data."""
    mechanisms: list[Plain] = [_mechanism_to_plain(one) for one in release.mechanisms]
    return {**_heading(release), "mechanisms": mechanisms}


def release_joined(release: RecordedRelease) -> dict[str, Joined]:
    """Return a release as plain data, whose mechanisms are written already."""
    mechanisms: list[Joined] = [mechanism_written(one) for one in release.mechanisms]
    return {**_heading(release), "mechanisms": mechanisms}


def mechanism_written(one: RecordedMechanism) -> Written:
    """Return the canonical bytes of a mechanism; they are cached."""
    if one.written is not None:
        return one.written
    return one.keep_written(Written(encode(_mechanism_to_plain(one))))


def likeness(one: RecordedMechanism) -> bytes:
    """Return bytes that identify everything about a mechanism but its part.

    They are cached. Equal ones match the same rules, at the same loss.
    """
    if one.alike is not None:
        return one.alike
    plain: dict[str, Plain] = {
        **_mechanism_to_plain(one),
        "description": _but_part(one.description),
    }
    if one.some_of:  # It is not stored.
        plain["some_of"] = [sorted(each) for each in one.some_of]
    return one.cache_common_bytes(encode(_but_part(plain)))


def _but_part(fields: Mapping[str, Plain]) -> dict[str, Plain]:
    return {name: value for name, value in fields.items() if name not in _PART_FIELDS}


def release_from_plain(plain: Plain, version: int = EVENT_VERSION) -> RecordedRelease:
    """Return the release that plain data encodes.

    Args:
        plain: The data.
        version: The version of its event.

    Raises:
        ValueError: If anything is missing, left over, or not of its form.
    """
    fields = read_mapping(plain)
    exactly(fields, _RELEASE_FIELDS[version])
    if fields["grid"] != GRID_VERSION:
        message = f"losses are on `{fields['grid']}`, not on {GRID_VERSION}"
        raise ValueError(message)
    return RecordedRelease(
        id=read_text(fields["id"]),
        content=read_digest(fields["content"]),
        labels=read_text_map(fields["labels"]),
        metadata=read_text_map(fields["metadata"]),
        mechanisms=tuple(
            [
                mechanism_from_plain(one, version)
                for one in read_list(fields["mechanisms"])
            ]
        ),
        given=_given(fields.get("given")),
    )


def read_part(plain: Plain) -> Part:
    """Return the part of the data that plain data encodes.

    Raises:
        ValueError: If it is not in its canonical form.
    """
    fields = read_mapping(plain)
    exactly(fields, _PART_FIELDS)
    return _part(fields)


def read_losses(plain: Plain) -> dict[str, Loss]:
    """Return losses by privacy unit that plain data encodes.

    Raises:
        ValueError: If they have another form.
    """
    return {unit: _loss(values) for unit, values in read_mapping(plain).items()}


def _heading(release: RecordedRelease) -> dict[str, Plain]:
    return {
        "id": release.id,
        "content": release.content,
        "grid": GRID_VERSION,
        "labels": dict(release.labels),
        "given": None if release.given is None else list(release.given),
        "metadata": dict(release.metadata),
    }


def _mechanism_to_plain(one: RecordedMechanism) -> dict[str, Plain]:
    plain: dict[str, Plain] = {
        "description": dict(one.description),
        "attributes": list(one.attributes),
        "labels": dict(one.labels),
        "losses": losses_to_plain(one.losses),
        "derived": None if one.derived is None else list(one.derived),
        **part_to_plain(one.part),
    }
    if one.neighbors:  # Omitted by default, so that one mechanism has one encoding.
        plain["neighbors"] = dict(one.neighbors)
    return plain


def mechanism_from_plain(
    plain: Plain, version: int = EVENT_VERSION
) -> RecordedMechanism:
    """Return the mechanism that plain data encodes.

    Args:
        plain: The data.
        version: The version of its event.

    Raises:
        ValueError: If anything is missing, left over, or not of its form.
    """
    fields = read_mapping(plain)
    own = _MECHANISM_FIELDS[version]
    exactly(fields, own | {"neighbors"} if "neighbors" in fields else own)
    part = _part(fields)
    if version == 1 and (part != EVERYTHING or fields["sampling"] is not None):
        message = "version 1 has neither parts of the data nor sampling"
        raise ValueError(message)
    losses = read_losses(fields["losses"])
    return RecordedMechanism(
        description=read_mapping(fields["description"]),
        attributes=read_texts(fields["attributes"]),
        labels=read_text_map(fields["labels"]),
        losses=losses,
        part=part,
        neighbors=_neighbors(fields["neighbors"], losses.keys())
        if "neighbors" in fields
        else {},
        derived=_derived(fields.get("derived"), losses.keys()),
    )


def _derived(plain: Plain, units: Set[str]) -> tuple[str, ...] | None:
    if plain is None:
        return None
    derived = read_texts(plain)
    if [*derived] != sorted({*derived} & units):
        message = "the derived losses are not those of some units, in order"
        raise ValueError(message)
    return derived


def _given(plain: Plain) -> tuple[str, ...] | None:
    return None if plain is None else read_texts(plain)


def _part(fields: Mapping[str, Any]) -> Part:
    where, periods, groups = fields["where"], fields["periods"], fields["groups"]
    if where is None and periods is None and groups is None:
        return EVERYTHING
    return part_from_plain(where, periods, groups)


def _neighbors(plain: Plain, units: Set[str]) -> dict[str, Relation]:
    neighbors = read_text_map(plain)
    for unit, relation in neighbors.items():
        if unit not in units:
            message = f"a neighboring relation of `{unit}`, which has no loss"
            raise ValueError(message)
        if relation not in RELATIONS or relation == "add-remove":
            message = f"`{relation}` is not a stored neighboring relation"
            raise ValueError(message)
    if not neighbors:
        message = "the field `neighbors` is empty"
        raise ValueError(message)
    return cast("dict[str, Relation]", neighbors)


def _loss(plain: Plain) -> Loss:
    values = read_list(plain)
    if not _LOSS_TYPES.issuperset(map(type, values)):
        message = "a loss coordinate must be an integer or inf"
        raise ValueError(message)
    return _known_loss(tuple(values))


_LOSS_TYPES = frozenset({int, str})


@lru_cache(maxsize=4096)  # Releases of one kind cost the same again and again.
def _known_loss(values: tuple[int | str, ...]) -> Loss:
    if len(values) != COORDINATES:
        message = f"a loss must have {COORDINATES} coordinates, not {len(values)}"
        raise ValueError(message)
    return Loss(tuple(_units(value) for value in values))


def _units(value: int | str) -> int:
    if value == "inf":
        return INFINITE
    if not isinstance(value, int):
        message = "a loss coordinate must be an integer or inf"
        raise ValueError(message)  # noqa: TRY004 - bad data, not a bad call
    if not 0 <= value < INFINITE:
        message = "a loss coordinate must be between 0 and infinity"
        raise ValueError(message)
    return value


_PART_FIELDS = frozenset({"where", "periods", "groups"})
_FIRST_FIELDS = frozenset({"id", "content", "grid", "labels", "metadata", "mechanisms"})
_SECOND_FIELDS = _FIRST_FIELDS | {"given"}
#: Since this version, a mechanism names the losses that follow from other units.
_DERIVED_SINCE = 6
_LATER_VERSIONS = range(2, EVENT_VERSION + 1)
_RELEASE_FIELDS = {1: _FIRST_FIELDS, **dict.fromkeys(_LATER_VERSIONS, _SECOND_FIELDS)}
_SECOND_MECHANISM = _PART_FIELDS | {"description", "attributes", "labels", "losses"}
_MECHANISM_FIELDS = {
    1: _SECOND_MECHANISM | {"sampling"},
    **{
        version: _SECOND_MECHANISM | {"derived"}
        if version >= _DERIVED_SINCE
        else _SECOND_MECHANISM
        for version in _LATER_VERSIONS
    },
}


class _StoredRelease(msgspec.Struct):
    """A release, its mechanisms in bytes."""

    content: str
    given: list[str] | None
    grid: str
    id: str
    labels: dict[str, str]
    mechanisms: list[Written]
    metadata: dict[str, str]


#: The fields of a mechanism that names no neighbors, before losses were named as
#: derived; what is decoded later stays bytes.
_FORMER: Mapping[str, Any] = {
    "attributes": list[str],
    **dict.fromkeys(
        ("description", "groups", "labels", "losses", "periods", "where"), Written
    ),
}


def _stored_mechanism(fields: Mapping[str, Any]) -> msgspec.json.Decoder[Any]:
    """Return a decoder of some fields, in their order as canonical bytes."""
    return msgspec.json.Decoder(
        msgspec.defstruct("StoredMechanism", sorted(fields.items()))
    )


_STORED_RELEASE = msgspec.json.Decoder(_StoredRelease)
_STORED_MECHANISM = _stored_mechanism({**_FORMER, "derived": list[str]})
_FORMER_MECHANISM = _stored_mechanism(_FORMER)


def _parse_release(data: Written, version: int = EVENT_VERSION) -> RecordedRelease:
    mechanisms = _MECHANISMS if version >= _DERIVED_SINCE else _FORMER_MECHANISMS
    stored = _parsed(_STORED_RELEASE, data)
    if stored.grid != GRID_VERSION:
        message = "losses are on another grid"
        raise ValueError(message)
    return RecordedRelease(
        stored.id,
        read_digest(stored.content),
        stored.labels,
        stored.metadata,
        tuple([mechanisms.of(bytes(one)) for one in stored.mechanisms]),
        None if stored.given is None else tuple(stored.given),
    )


def _parse_mechanism(
    decoder: msgspec.json.Decoder[Any], version: int, data: bytes
) -> RecordedMechanism:
    try:
        stored = _parsed(decoder, data)
        losses = _LOSSES.of(bytes(stored.losses))
        derived = _derived(getattr(stored, "derived", None), losses.keys())
    except (msgspec.MsgspecError, ValueError):  # Or it names its neighbors.
        return mechanism_from_plain(decode(data), version)
    part = b'{"groups":%b,"periods":%b,"where":%b}' % (
        stored.groups,
        stored.periods,
        stored.where,
    )
    return RecordedMechanism(
        read_mapping(decode(bytes(stored.description))),
        tuple(stored.attributes),
        _LABELS.of(bytes(stored.labels)),
        losses,
        _PARTS.of(part),
        derived=derived,
    )


class _Shared(Memo[bytes, T]):
    """Decoded parts of entries, by their canonical bytes.

    Args:
        read: Decodes bytes; raises `ValueError` if they are irregular.
    """

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[bytes], T]) -> None:
        super().__init__(_SHARED_MAX)
        self._read = read

    def of(self, data: bytes) -> T:
        """Return the decoded value of bytes; errors are never cached."""
        known = self.get(data)
        if known is not None:
            return known
        value = self._read(data)
        return self.keep(data, value) if len(data) <= _BYTES_MAX else value


#: Maximum number of cached parts of one kind, and their maximum length.
_SHARED_MAX = 1024
_BYTES_MAX = 10_000


def _decoded(read: Callable[[Plain], T], data: bytes) -> T:
    return read(decode(data))


_MECHANISMS: _Shared[RecordedMechanism] = _Shared(
    partial(_parse_mechanism, _STORED_MECHANISM, EVENT_VERSION)
)
_FORMER_MECHANISMS: _Shared[RecordedMechanism] = _Shared(
    partial(_parse_mechanism, _FORMER_MECHANISM, _DERIVED_SINCE - 1)
)
_LABELS: _Shared[dict[str, str]] = _Shared(partial(_decoded, read_text_map))
_LOSSES: _Shared[dict[str, Loss]] = _Shared(partial(_decoded, read_losses))
_PARTS: _Shared[Part] = _Shared(partial(_decoded, read_part))

_RELEASE = Codec(
    release_to_plain, release_from_plain, join=release_joined, parse=_parse_release
)
_CODECS: Mapping[str, Codec] = {
    **field_codec.CODECS,
    "Contract": Codec(contracts.to_plain, contracts.from_plain),
    "Media": one_of(*get_args(Media)),
    "Part": Codec(part_to_plain, read_part),
    "RecordedRelease": _RELEASE,
    "Subject": one_of(*get_args(Subject)),
}
