"""Releases as plain data, and back. This page is a storage format: see ADR 0003.

Version 1 had no parts of the data: there, `where`, `periods`, `groups` and `sampling`
are always null. Nor did it say which labels were given.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import lru_cache
from typing import Any, cast

from modicum.accounting import COORDINATES, GRID_VERSION, INFINITE, Loss
from modicum.core.canonical import Joined, Plain, Written, encode
from modicum.ledger.log.events import EVENT_VERSION
from modicum.ledger.log.field_codec import (
    exactly,
    read_digest,
    read_list,
    read_mapping,
    read_text,
    read_text_map,
    read_texts,
)
from modicum.ledger.log.recorded_release import (
    RecordedMechanism,
    RecordedRelease,
    losses_to_plain,
)
from modicum.release import EVERYTHING, Part, Relation
from modicum.release.parts import part_from_plain, part_to_plain
from modicum.release.units import RELATIONS


def release_to_plain(release: RecordedRelease) -> dict[str, Plain]:
    """Return a release as plain data."""
    mechanisms: list[Plain] = [_mechanism_to_plain(one) for one in release.mechanisms]
    return {**_heading(release), "mechanisms": mechanisms}


def release_joined(release: RecordedRelease) -> dict[str, Joined]:
    """Return a release as plain data, whose mechanisms are written already."""
    mechanisms: list[Joined] = [mechanism_written(one) for one in release.mechanisms]
    return {**_heading(release), "mechanisms": mechanisms}


def mechanism_written(one: RecordedMechanism) -> Written:
    """Return the canonical bytes of a mechanism; they are worked out once."""
    if one.written is not None:
        return one.written
    return one.keep_written(Written(encode(_mechanism_to_plain(one))))


def likeness(one: RecordedMechanism) -> bytes:
    """Return bytes that tell everything about a mechanism but the part that it reads.

    They are worked out once. Equal ones fall under the same rules, at the same loss.
    """
    if one.alike is not None:
        return one.alike
    plain: dict[str, Plain] = {
        **_mechanism_to_plain(one),
        "description": _but_part(one.description),
    }
    return one.cache_common_bytes(encode(_but_part(plain)))


def _but_part(fields: Mapping[str, Plain]) -> dict[str, Plain]:
    return {name: value for name, value in fields.items() if name not in _PART_FIELDS}


def release_from_plain(plain: Plain, version: int = EVENT_VERSION) -> RecordedRelease:
    """Return the release that plain data encodes.

    Args:
        plain: The data.
        version: Version of the event that holds it.

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


_PART_FIELDS = frozenset({"where", "periods", "groups"})
_FIRST_FIELDS = frozenset({"id", "content", "grid", "labels", "metadata", "mechanisms"})
_SECOND_FIELDS = _FIRST_FIELDS | {"given"}
_LATER_VERSIONS = range(2, EVENT_VERSION + 1)
_RELEASE_FIELDS = {1: _FIRST_FIELDS, **dict.fromkeys(_LATER_VERSIONS, _SECOND_FIELDS)}
_SECOND_MECHANISM = _PART_FIELDS | {"description", "attributes", "labels", "losses"}
_MECHANISM_FIELDS = {
    1: _SECOND_MECHANISM | {"sampling"},
    **dict.fromkeys(_LATER_VERSIONS, _SECOND_MECHANISM),
}


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
        **part_to_plain(one.part),
    }
    if one.neighbors:  # Left out otherwise, so that one mechanism has one encoding.
        plain["neighbors"] = dict(one.neighbors)
    return plain


def mechanism_from_plain(
    plain: Plain, version: int = EVENT_VERSION
) -> RecordedMechanism:
    """Return the mechanism that plain data encodes.

    Args:
        plain: The data.
        version: Version of the event that holds it.

    Raises:
        ValueError: If anything is missing, left over, or not of its form.
    """
    fields = read_mapping(plain)
    own = _MECHANISM_FIELDS[version]
    exactly(fields, own | {"neighbors"} if "neighbors" in fields else own)
    part = _part(fields)
    if version == 1 and (part != EVERYTHING or fields["sampling"] is not None):
        message = "version 1 knows neither parts of the data nor sampling"
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
    )


def _given(plain: Plain) -> tuple[str, ...] | None:
    return None if plain is None else read_texts(plain)


def _part(fields: Mapping[str, Any]) -> Part:
    where, periods, groups = fields["where"], fields["periods"], fields["groups"]
    if where is None and periods is None and groups is None:
        return EVERYTHING
    return part_from_plain(where, periods, groups)


def _neighbors(plain: Plain, units: Set[str]) -> dict[str, Relation]:
    neighbors = read_text_map(plain)
    for unit, word in neighbors.items():
        if unit not in units:
            message = f"a neighboring relation of `{unit}`, which has no loss"
            raise ValueError(message)
        if word not in RELATIONS or word == "add-remove":
            message = f"`{word}` is not a neighboring relation that is written down"
            raise ValueError(message)
    if not neighbors:
        message = "the field `neighbors` is empty"
        raise ValueError(message)
    return cast("dict[str, Relation]", neighbors)


def _loss(plain: Plain) -> Loss:
    values = read_list(plain)
    if not _FORMS.issuperset(map(type, values)):
        message = "a loss coordinate must be an integer or inf"
        raise ValueError(message)
    return _known_loss(tuple(values))


_FORMS = frozenset({int, str})


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
        message = "a loss coordinate must lie between 0 and infinity"
        raise ValueError(message)
    return value
