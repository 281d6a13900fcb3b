"""Canonical bytes: the same value has one encoding, so that it has one hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

#: What may be written to the ledger: no floats, so no rounding can hide in it.
Plain: TypeAlias = "bool | int | str | Sequence[Plain] | Mapping[str, Plain] | None"


def encode(value: Plain) -> bytes:
    """Return the canonical UTF-8 JSON of a value: sorted keys, no spaces, no floats.

    Raises:
        TypeError: If the value holds a float or anything that is not plain.
        UnicodeEncodeError: If a text holds a lone surrogate.
    """
    _refuse_others(value)
    return _written(value)


def decode(data: bytes) -> Plain:
    """Return the value of canonical bytes; anything not canonical is an error.

    Raises:
        ValueError: If `data` is not the canonical encoding of a plain value.
    """
    try:
        value: Plain = _READER.decode(data.decode("utf-8"))
        canonical = _written(value)
    except (TypeError, RecursionError) as error:
        message = "not a plain value"
        raise ValueError(message) from error
    if canonical != data:
        message = "not in canonical form"
        raise ValueError(message)
    return value


def digest(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _refuse(text: str) -> Plain:
    message = f"not a plain value: {text}"
    raise ValueError(message)


# What JSON can say besides plain values are fractions, NaN and infinities.
_READER = json.JSONDecoder(parse_float=_refuse, parse_constant=_refuse)
_WRITER = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), check_circular=False
)
_SCALARS = frozenset({bool, int, str, type(None)})
_KEYS = frozenset({str})


def _written(value: Plain) -> bytes:
    return _WRITER.encode(value).encode("utf-8")


def _refuse_others(value: object) -> None:
    """Refuse what is not plain; whole rows of scalars are looked at in one go."""
    items: Iterable[object]
    if isinstance(value, dict):
        if not _KEYS.issuperset(map(type, value)):
            message = "a key must be text"
            raise TypeError(message)
        items = value.values()
    elif isinstance(value, list | tuple):
        items = value
    elif type(value) in _SCALARS:
        return
    else:
        message = f"not a plain value: {value!r}"
        raise TypeError(message)
    if not _SCALARS.issuperset(map(type, items)):
        for item in items:
            if type(item) not in _SCALARS:
                _refuse_others(item)
