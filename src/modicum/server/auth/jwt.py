"""Reading signed tokens of a provider: nothing in them counts before the signature."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from joserfc import jwt
from joserfc.errors import ExpiredTokenError, JoseError
from joserfc.jws import JWSRegistry

from modicum.server.auth.problems import expired, not_accepted
from modicum.server.auth.provider import ALGORITHMS, Provider

#: Longer tokens are not looked at.
TOKEN_CHARACTERS_MAX: Final = 16 * 1024


def seconds(now: str) -> int:
    """Return a time of the clock in seconds since 1970."""
    return int(datetime.fromisoformat(now).timestamp())


class Signed:
    """A token with a valid signature.

    Attributes:
        type: Its `typ`, in lower case; empty if none.
        claims: Its claims.
    """

    def __init__(self, type_: str, claims: Mapping[str, Any]) -> None:
        self.type = type_
        self.claims = claims


async def read_token(provider: Provider, text: str) -> Signed:
    """Return the contents of a token, if the provider signed it.

    The location of the key, and the accepted algorithms, never come from the token.
    """
    header = _header(text)
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or not isinstance(kid, str | None):
        raise not_accepted()
    if algorithm not in ALGORITHMS:
        raise not_accepted()
    key = await provider.key(kid, algorithm)
    registry = JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    try:
        claims = jwt.decode(text, key, [algorithm], registry).claims
    except (JoseError, ValueError, TypeError, RecursionError):
        raise not_accepted() from None
    type_ = header.get("typ")
    return Signed(type_.lower() if isinstance(type_, str) else "", claims)


def _header(text: str) -> dict[str, Any]:
    parts = text.split(".")
    if len(parts) != 3 or len(text) > TOKEN_CHARACTERS_MAX:
        raise not_accepted()
    try:
        padded = parts[0] + "=" * (-len(parts[0]) % 4)
        header = json.loads(base64.b64decode(padded, b"-_", validate=True))
    except (ValueError, RecursionError):
        raise not_accepted() from None
    if not isinstance(header, dict):
        raise not_accepted()
    return header


def check_claims(
    claims: Mapping[str, Any], *, issuer: str, audience: str, now: int, leeway_s: int
) -> None:
    """Refuse a token with a wrong issuer, audience or time."""
    registry = jwt.JWTClaimsRegistry(
        now=now,
        leeway=leeway_s,
        iss={"essential": True, "value": issuer},
        aud={"essential": True, "value": audience},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
    )
    try:
        registry.validate(dict(claims))
    except ExpiredTokenError:
        raise expired("the token") from None
    except (JoseError, ValueError, TypeError, OverflowError):
        raise not_accepted() from None
