"""Canonical bytes: each value has one encoding, and so one hash.

Two encoders produce the same bytes. `msgspec` handles the usual values many times
faster; anything that it does not support is left to `json`, which decides what is
refused, and why (see ADR 0017).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

#: The types allowed in the ledger: no floats, so no rounding can hide in it.
Plain: TypeAlias = "bool | int | str | Sequence[Plain] | Mapping[str, Plain] | None"

#: Canonical bytes written before, in place of their value.
Written: TypeAlias = msgspec.Raw
#: A plain value, some of whose parts are written already.
Joined: TypeAlias = "Plain | Written | Sequence[Joined] | Mapping[str, Joined]"


def encode(value: Plain) -> bytes:
    """Return the canonical UTF-8 JSON of a value: sorted keys, no spaces, no floats.

    Raises:
        TypeError: If the value contains a float or anything that is not plain.
        UnicodeEncodeError: If a text contains a lone surrogate.
    """
    if _is_usual(value, _SCALARS):
        return _ENCODER.encode(value)
    _refuse_others(value)
    return _written(value)


def join(value: Joined) -> bytes:
    """Return the result of `encode`, with written parts in place of their values.

    Args:
        value: The value; its written parts are trusted to come from `encode`.

    Raises:
        TypeError: As `encode` does.
        UnicodeEncodeError: As `encode` does.
    """
    if _is_usual(value, _SCALARS_OR_WRITTEN):
        return _ENCODER.encode(value)
    return encode(_taken_apart(value))


def decode(data: bytes) -> Plain:
    """Return the value of canonical bytes; anything not canonical is an error.

    Raises:
        ValueError: If `data` is not the canonical encoding of a plain value.
    """
    try:
        value: Plain = _DECODER.decode(data)
        if _ENCODER.encode(value) == data:
            return value
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass  # Errors are reported below.
    return _decoded(data)


def digest(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _refuse(text: str) -> Plain:
    message = f"not a plain value: {text}"
    raise ValueError(message)


# Besides plain values, JSON has fractions, NaN and infinities.
_READER = json.JSONDecoder(parse_float=_refuse, parse_constant=_refuse)
_WRITER = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), check_circular=False
)
_DECODER = msgspec.json.Decoder(float_hook=_refuse)
_ENCODER = msgspec.json.Encoder(order="sorted")
_SCALARS: frozenset[type] = frozenset({bool, int, str, type(None)})
_SCALARS_OR_WRITTEN = _SCALARS | {Written}
_KEYS = frozenset({str})


def _is_usual(value: object, scalars: frozenset[type]) -> bool:
    """Return whether a value is made of the very types of JSON, and no float."""
    kind = type(value)
    items: Iterable[object]
    if kind is dict:
        if not _KEYS.issuperset(map(type, value)):  # type: ignore[call-overload]
            return False
        items = value.values()  # type: ignore[attr-defined]
    elif kind is list or kind is tuple:
        items = value  # type: ignore[assignment]
    else:
        return kind in scalars
    if scalars.issuperset(map(type, items)):
        return True
    for item in items:  # Twice as fast as `all`.
        if type(item) not in scalars and not _is_usual(item, scalars):
            return False
    return True


def _taken_apart(value: Joined) -> Plain:
    """Return a value with each written part decoded."""
    if isinstance(value, Written):
        return decode(bytes(value))
    if isinstance(value, dict):
        return {key: _taken_apart(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_taken_apart(item) for item in value]
    return value


def _decoded(data: bytes) -> Plain:
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


def _written(value: Plain) -> bytes:
    return _WRITER.encode(value).encode("utf-8")


def _refuse_others(value: object) -> None:
    """Refuse values that are not plain; rows of scalars are checked at once."""
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
