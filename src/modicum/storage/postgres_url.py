"""The address of a ledger in PostgreSQL, and its public part."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import chain
from urllib.parse import urlsplit

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

from modicum.core.errors import Code, Problem, UsageError

_SCHEMA = "modicum"
_PARAMETER = "modicum_ledger"
_LEDGER_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]@]*)(:[0-9]{0,5})?")
#: A parameter is meant if so much of it is the same.
_CLOSE = 0.8
#: The parameters that people may see.
_SHOWN = ("host", "hostaddr", "port", "dbname", "user", "service", _PARAMETER)
#: Defaults that the URL may override: a dead peer is detected within a minute.
_DEFAULTS = {
    "application_name": "modicum",
    "connect_timeout": "10",
    "keepalives_idle": "20",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",  # Milliseconds.
}


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a ledger.

    Attributes:
        name: The display name: no password, no other parameters.
        schema: The schema of its tables.
        lock: The key of its advisory lock.
        parameters: The connection parameters of libpq; may contain a password.
    """

    name: str
    schema: str
    lock: int
    parameters: dict[str, str] = field(repr=False)

    def without_secrets(self, text: str) -> str:
        """Return a text in which no secret of this address appears."""
        for key in ("password", "sslpassword"):
            secret = self.parameters.get(key, "")
            if secret:
                text = text.replace(secret, "***")
        return text


def parse_address(url: str) -> Address:
    """Return the address that a URL names."""
    scheme, slashes, _ = url.partition("://")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _malformed() from None
    if not slashes or "@" in parts.path or parts.fragment:
        raise _malformed()
    pieces = [piece for piece in parts.query.split("&") if piece]
    ledger = _ledger(pieces)
    rest = [piece for piece in pieces if _key(piece) != _PARAMETER]
    shown = [piece for piece in pieces if _key(piece) in _SHOWN]
    target = f"{_without_password(parts.netloc)}{parts.path}"
    plain = f"{scheme}://{parts.netloc}{parts.path}?{'&'.join(rest)}"
    try:
        given = {key: str(value) for key, value in conninfo_to_dict(plain).items()}
    except psycopg.Error:
        raise _malformed(_meant(rest)) from None  # Its text may repeat the password.
    schema = f"{_SCHEMA}_{ledger}" if ledger else _SCHEMA
    return Address(
        name=f"postgresql://{target}{'?' if shown else ''}{'&'.join(shown)}",
        schema=schema,
        lock=_lock_key(schema),
        parameters=_DEFAULTS | given,
    )


def _key(piece: str) -> str:
    return piece.partition("=")[0]


def _ledger(pieces: list[str]) -> str:
    """Return the name of the ledger among the parameters; empty if there is none."""
    names = [piece.partition("=")[2] for piece in pieces if _key(piece) == _PARAMETER]
    if not names:
        return ""
    if len(names) > 1 or not _LEDGER_NAME.fullmatch(names[0]):
        raise _bad_ledger()
    return names[0]


def _meant(pieces: list[str]) -> str:
    """Return the parameter that a mistyped one is close to; empty if there is none.

    The input is not repeated: it may be part of a password.
    """
    known = [one.keyword.decode() for one in pq.Conninfo.get_defaults()]
    known.append(_PARAMETER)
    keys = [key for key in map(_key, pieces) if key not in known]
    near = (get_close_matches(key, known, 1, _CLOSE) for key in keys)
    return next(chain.from_iterable(near), "")


def _without_password(netloc: str) -> str:
    """Return the user and the hosts; refuse hosts that may be part of a password."""
    credentials, at, hosts = netloc.rpartition("@")
    if not all(_HOST.fullmatch(host) for host in hosts.split(",")):
        raise _malformed()
    return f"{credentials.partition(':')[0]}{at}{hosts}"


def _lock_key(schema: str) -> int:
    """Return the number of the schema's advisory lock, a signed 64-bit integer."""
    digest = hashlib.sha256(f"modicum ledger {schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _malformed(hint: str = "") -> UsageError:
    return UsageError(
        Problem(
            Code.LEDGER_MISSING,
            "the ledger's URL is not a valid PostgreSQL URL",
            label=f"did you mean its parameter `{hint}`?" if hint else "",
            help="write postgresql://user@host:5432/database; in a password, write"
            " special characters as %40 and the like, or keep it in ~/.pgpass",
        )
    )


def _bad_ledger() -> UsageError:
    return UsageError(
        Problem(
            Code.LEDGER_MISSING,
            f"the parameter `{_PARAMETER}` of the ledger's URL is not a name",
            help="a name starts with a letter a-z; letters, digits and _ follow, 40"
            " characters at most",
        )
    )
