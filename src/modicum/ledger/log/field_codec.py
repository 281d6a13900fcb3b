"""Encoding and strict decoding of single fields of stored events.

The type of a field determines its form. Where several fields of one Python type have
different forms, each form has its own name here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from functools import partial
from typing import Any, TypeAlias

from msgspec import Struct

from modicum.core.canonical import Joined, Plain, Written
from modicum.ledger.log.days import day_of

#: SHA-256 as 64 hexadecimal digits.
Digest: TypeAlias = str
#: SHA-256 by name.
Digests: TypeAlias = Mapping[str, str]
#: Public keys by the names of people.
Keys: TypeAlias = Mapping[str, tuple[str, ...]]
#: A hash or a public key, and a signature; empty if there is none.
OptionalHash: TypeAlias = str
OptionalSignature: TypeAlias = str
#: Shares of budgets by privacy unit, in millionths.
Shares: TypeAlias = Mapping[str, int]
#: A time in UTC, as `YYYY-MM-DDTHH:MM:SS.ffffffZ`.
Time: TypeAlias = str

#: Shares of a budget are written in millionths.
WHOLE_SHARE = 10**6


class Codec(Struct, frozen=True):
    """The form of one field.

    Attributes:
        write: Returns the plain data of a value.
        read: Returns the value of plain data; raises `ValueError` if it has another
            form.
        join: Like `write`, where parts may already be encoded; None if none are.
        parse: Returns the value of canonical bytes, as `read` does for decoded ones;
            None if that is no faster.
    """

    write: Callable[[Any], Plain]
    read: Callable[[Plain], Any]
    join: Callable[[Any], Joined] | None = None
    parse: Callable[[Written], Any] | None = None


def read_text(plain: Plain) -> str:
    """Return a stored text.

    Raises:
        ValueError: If it has another form.
    """
    if not isinstance(plain, str):
        raise _other_form("text")
    return plain


def read_texts(plain: Plain) -> tuple[str, ...]:
    """Return a stored list of texts.

    Raises:
        ValueError: If it has another form.
    """
    return tuple([read_text(item) for item in read_list(plain)])


def read_text_map(plain: Plain) -> dict[str, str]:
    """Return a stored mapping to texts.

    Raises:
        ValueError: If it has another form.
    """
    mapping = read_mapping(plain)
    for value in mapping.values():
        read_text(value)
    return mapping


def read_mapping(plain: Plain) -> dict[str, Any]:
    """Return a stored mapping.

    Raises:
        ValueError: If it has another form.
    """
    if not isinstance(plain, dict):
        raise _other_form("a mapping")
    return plain


def read_list(plain: Plain) -> list[Plain]:
    """Return a stored list.

    Raises:
        ValueError: If it has another form.
    """
    if not isinstance(plain, list):
        raise _other_form("a list")
    return plain


def read_digest(plain: Plain) -> str:
    """Return a stored SHA-256.

    Raises:
        ValueError: If it has another form.
    """
    if not isinstance(plain, str) or not _DIGEST.fullmatch(plain):
        raise _other_form("64 hexadecimal digits")
    return plain


def read_time(plain: Plain) -> str:
    """Return a stored time.

    Raises:
        ValueError: If it has another form.
    """
    if not isinstance(plain, str) or not _TIME.fullmatch(plain):
        raise _other_form("a time YYYY-MM-DDTHH:MM:SS.ffffffZ")
    day_of(plain)  # There must be such a day.
    return plain


def read_number(plain: Plain) -> int:
    """Return a stored whole number, 0 or more.

    Raises:
        ValueError: If it has another form.
    """
    if isinstance(plain, bool) or not isinstance(plain, int) or plain < 0:
        raise _other_form("an integer")
    return plain


def read_shares(plain: Plain) -> dict[str, int]:
    """Return stored shares of budgets by unit, in millionths.

    Raises:
        ValueError: If it has another form.
    """
    shares = {unit: read_number(share) for unit, share in read_mapping(plain).items()}
    if any(share > WHOLE_SHARE for share in shares.values()):
        raise _other_form("a share of at most one")
    return shares


def read_digests(plain: Plain) -> dict[str, str]:
    """Return a stored mapping to SHA-256s.

    Raises:
        ValueError: If it has another form.
    """
    return {name: read_digest(one) for name, one in read_mapping(plain).items()}


def read_keys(plain: Plain) -> dict[str, tuple[str, ...]]:
    """Return stored public keys by name, in hexadecimal.

    Raises:
        ValueError: If it has another form.
    """
    return {
        name: tuple(read_digest(key) for key in read_list(keys))
        for name, keys in read_mapping(plain).items()
    }


def one_of(*choices: str) -> Codec:
    """Return the form of a field that has one of a few values."""
    return Codec(str, partial(_read_choice, choices))


def exactly(plain: Mapping[str, object], keys: Set[str]) -> None:
    """Refuse a stored mapping that does not have exactly these fields.

    Raises:
        ValueError: With the missing or unexpected fields.
    """
    if plain.keys() == keys:
        return
    missing, unknown = keys - plain.keys(), plain.keys() - keys
    if missing:
        message = f"the field `{min(missing)}` is missing"
    else:
        message = f"unknown fields: {', '.join(sorted(unknown))}"
    raise ValueError(message)


def _write_keys(keys: Mapping[str, tuple[str, ...]]) -> Plain:
    return {name: list(one) for name, one in keys.items()}


def _read_hex(digits: int, plain: Plain) -> str:
    if not isinstance(plain, str) or (
        plain and not (len(plain) == digits and _HEX.fullmatch(plain))
    ):
        raise _other_form(f"empty or {digits} hexadecimal digits")
    return plain


def _read_choice(choices: tuple[str, ...], plain: Plain) -> str:
    if plain not in choices:
        raise _other_form(f"one of {', '.join(choices)}")
    return read_text(plain)


def _read_flag(plain: Plain) -> bool:
    if not isinstance(plain, bool):
        raise _other_form("true or false")
    return plain


def _other_form(form: str) -> ValueError:
    return ValueError(f"a field must be {form}")


_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_HEX = re.compile(r"[0-9a-f]*", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z", re.ASCII)

#: The form of a field, by its declared type.
CODECS: Mapping[str, Codec] = {
    "str": Codec(str, read_text),
    "tuple[str, ...]": Codec(list, read_texts),
    "Mapping[str, str]": Codec(dict, read_text_map),
    "int": Codec(int, read_number),
    "bool": Codec(bool, _read_flag),
    "Digest": Codec(str, read_digest),
    "Digests": Codec(dict, read_digests),
    # Public keys have the same length as a SHA-256.
    "Keys": Codec(_write_keys, read_keys),
    "OptionalHash": Codec(str, partial(_read_hex, 64)),
    "OptionalSignature": Codec(str, partial(_read_hex, 128)),
    "Shares": Codec(dict, read_shares),
    "Time": Codec(str, read_time),
}


def codecs_of(
    own: type, codecs: Mapping[str, Codec], *, but: str = ""
) -> dict[str, Codec]:
    """Return the form of each field of a class, by name.

    Args:
        own: The class; its module has `from __future__ import annotations`.
        codecs: How fields are stored, by their declared types.
        but: A field to leave out.
    """
    declared = {
        name: kind
        for base in reversed(own.__mro__)
        for name, kind in vars(base).get("__annotations__", {}).items()
        if name != but and not kind.startswith("ClassVar")
    }
    return {name: codecs[kind] for name, kind in declared.items()}
