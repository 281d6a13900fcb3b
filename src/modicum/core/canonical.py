"""Canonical bytes: the same value has one encoding, so that it has one hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

#: What may be written to the ledger: no floats, so no rounding can hide in it.
Plain: TypeAlias = "bool | int | str | Sequence[Plain] | Mapping[str, Plain] | None"


def encode(value: Plain) -> bytes:
    """Return the canonical UTF-8 JSON of a value: sorted keys, no spaces, no floats.

    Raises:
        TypeError: If the value holds a float or anything that is not plain.
        UnicodeEncodeError: If a text holds a lone surrogate.
    """
    _refuse_floats(value)
    return json.dumps(
        value, ensure_ascii=False, sort_keys=True, separators=(",", ":")
    ).encode("utf-8")


def decode(data: bytes) -> Plain:
    """Return the value of canonical bytes; anything not canonical is an error.

    Raises:
        ValueError: If `data` is not the canonical encoding of a plain value.
    """
    try:
        value: Plain = json.loads(data.decode("utf-8"))
        canonical = encode(value)
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


def _refuse_floats(value: object) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                message = f"a key must be text, got {key!r}"
                raise TypeError(message)
            _refuse_floats(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_floats(item)
    elif value is not None and not isinstance(value, bool | int | str):
        message = f"not a plain value: {value!r}"
        raise TypeError(message)
