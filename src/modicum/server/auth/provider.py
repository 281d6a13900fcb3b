"""The metadata of an OpenID provider: its addresses and its keys."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key

from modicum.core.errors import UnavailableError
from modicum.server.auth.http_fetch import Fetch, trusted_address
from modicum.server.auth.problems import not_accepted, provider_failed

#: Accepted signature algorithms: asymmetric only. With a shared secret, a verifier
#: could also sign; `none` is no signature.
ALGORITHMS: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"}
)
_KEY_TYPES: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC"}
_RSA_BITS_MIN: Final = 2048
_KEYS_MAX: Final = 100

#: Lifetime of cached provider data.
FRESH_S: Final = 3600.0
#: Maximum age of cached data if the provider does not respond any more.
STALE_S: Final = 24 * 3600.0
#: Minimum interval between refreshes caused by unknown keys.
ASK_EVERY_S: Final = 30.0

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Metadata:
    """The addresses of a provider.

    Attributes:
        issuer: Its issuer.
        authorization_endpoint: The address for sign-in.
        token_endpoint: The address for exchanging codes.
        jwks_uri: The address of its keys.
        sends_issuer: Whether it always sends its issuer in redirects.
        takes_basic: Whether the token endpoint accepts the secret as a header.
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    sends_issuer: bool
    takes_basic: bool


class _Cached(Generic[_T]):
    """A cached value, fetched once by the first reader."""

    def __init__(
        self, fetch: Callable[[], Awaitable[_T]], monotonic: Callable[[], float]
    ) -> None:
        self._ask = fetch
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        self._value: _T | None = None
        self._got_at = 0.0
        self._asked_at: float | None = None
        self._vain = 0

    async def get(self, newer_than: float | None = None) -> _T:
        """Return the value."""
        if self._is_good(newer_than) and self._value is not None:
            return self._value
        vain = self._vain
        # All waiting readers share the result of the first one, also its failure:
        # otherwise each would in turn wait for a provider that is down.
        async with self._lock:
            is_good = self._is_good(newer_than)
            if vain == self._vain and not is_good and self._may_ask():
                await self._renew()
            if self._value is None:
                raise provider_failed("does not respond")
            return self._value

    def _is_good(self, newer_than: float | None) -> bool:
        fresh = self._monotonic() - self._got_at < FRESH_S
        wanted = newer_than is None or self._got_at > newer_than
        return self._value is not None and fresh and wanted

    def _may_ask(self) -> bool:
        requested_at = self._asked_at
        return requested_at is None or self._monotonic() - requested_at >= ASK_EVERY_S

    async def _renew(self) -> None:
        self._asked_at = self._monotonic()
        try:
            self._value = await self._ask()
            self._got_at = self._monotonic()
        except UnavailableError:
            self._vain += 1
            if self._value is None:
                self._asked_at = None  # There is nothing to go by: try again.
                raise
            if self._monotonic() - self._got_at > STALE_S:
                self._value = None
                raise

    @property
    def got_at(self) -> float:
        """When the value was got."""
        return self._got_at


class Provider:
    """An OpenID provider, by its metadata.

    Args:
        issuer: Its issuer; its metadata is found there.
        fetch: Makes its requests.
        monotonic: Seconds that only grow.
    """

    def __init__(
        self,
        issuer: str,
        fetch: Fetch,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.issuer = issuer
        self._fetch = fetch
        self._metadata = _Cached(self._ask_metadata, monotonic)
        self._keys = _Cached(self._ask_keys, monotonic)

    async def metadata(self) -> Metadata:
        """Return the provider's addresses."""
        return await self._metadata.get()

    async def key(self, kid: str | None, algorithm: str) -> Key:
        """Return the key that a token names."""
        keys = await self._keys.get()
        found = _fitting(keys, kid, algorithm)
        if not found:
            found = _fitting(
                await self._keys.get(newer_than=self._keys.got_at), kid, algorithm
            )
        if len(found) != 1:
            raise not_accepted()
        return found[0]

    async def _ask_metadata(self) -> Metadata:
        url = self.issuer.rstrip("/") + "/.well-known/openid-configuration"
        status, document = await self._fetch(url)
        if status != 200 or document.get("issuer") != self.issuer:
            raise provider_failed("does not match the issuer in `oidc`")
        methods = document.get("token_endpoint_auth_methods_supported")
        return Metadata(
            self.issuer,
            _address(document, "authorization_endpoint"),
            _address(document, "token_endpoint"),
            _address(document, "jwks_uri"),
            document.get("authorization_response_iss_parameter_supported") is True,
            not isinstance(methods, list) or "client_secret_basic" in methods,
        )

    async def _ask_keys(self) -> tuple[Key, ...]:
        status, document = await self._fetch((await self.metadata()).jwks_uri)
        listed = document.get("keys")
        if status != 200 or not isinstance(listed, list):
            raise provider_failed("has no keys")
        return tuple(_usable(listed[:_KEYS_MAX]))


def _address(document: Mapping[str, Any], key: str) -> str:
    return trusted_address(document.get(key), key)


def _usable(listed: list[object]) -> list[Key]:
    """Return the keys of a set that signatures can be checked with."""
    keys: list[Key] = []
    for one in listed:
        if not isinstance(one, dict) or one.get("kty") not in ("RSA", "EC"):
            continue
        if one.get("use") not in (None, "sig"):
            continue
        try:
            if one["kty"] == "RSA" and _bits(one["n"]) < _RSA_BITS_MIN:
                continue
            keys.append(JWKRegistry.import_key(one))
        except (JoseError, ValueError, TypeError, KeyError):
            continue  # An unsupported key does not affect the others.
    return keys


def _bits(number: str) -> int:
    """Return the length of a number in URL-safe Base64 without padding."""
    padded = number + "=" * (-len(number) % 4)
    return int.from_bytes(base64.urlsafe_b64decode(padded)).bit_length()


def _fitting(keys: tuple[Key, ...], kid: str | None, algorithm: str) -> list[Key]:
    return [
        key
        for key in keys
        if key.key_type == _KEY_TYPES[algorithm[:2]]
        and (kid is None or key.kid == kid)
        and key.get("alg") in (None, algorithm)
    ]
