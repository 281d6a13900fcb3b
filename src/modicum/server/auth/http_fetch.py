"""Requests to an OpenID provider: bounded in time and size, without redirects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import httpx2

from modicum.server.auth.problems import provider_failed
from modicum.server.settings.urls import is_loopback

#: Metadata and key sets are a few thousand bytes.
ANSWER_BYTES_MAX: Final = 512 * 1024
_TIMEOUT: Final = httpx2.Timeout(10.0, connect=5.0)


class Fetch(Protocol):
    """Requests a JSON object."""

    async def __call__(
        self,
        url: str,
        form: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        """Return the status and the object; a form makes it a POST."""


class HttpFetch:
    """Makes requests over HTTP while it is open.

    Args:
        issuer: The provider. One on this machine is reached without a proxy.
    """

    def __init__(self, issuer: str) -> None:
        own = is_loopback(urlsplit(issuer).hostname or "")
        self._client = httpx2.AsyncClient(
            timeout=_TIMEOUT, follow_redirects=False, trust_env=not own
        )

    async def __call__(
        self,
        url: str,
        form: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        """Return the status and the object; a form makes it a POST."""
        try:
            async with self._client.stream(
                "GET" if form is None else "POST",
                url,
                data=form,
                auth=auth or httpx2.USE_CLIENT_DEFAULT,
                headers={"Accept": "application/json"},
            ) as response:
                body = await _bounded(response)
                return response.status_code, _json_object(body)
        except httpx2.HTTPError:
            # Without its cause, which contains addresses and request data.
            raise provider_failed("does not respond") from None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


async def _bounded(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > ANSWER_BYTES_MAX:
            raise provider_failed("sent a response that is too large")
    return bytes(body)


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise provider_failed("sent a response that is not a JSON object")
    return value


def trusted_address(value: object, what: str) -> str:
    """Return an address from the provider, if it may be requested or shown."""
    text = value if isinstance(value, str) else ""
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
    except ValueError:
        raise provider_failed(f"has no usable `{what}`") from None
    plain = parts.scheme == "http" and is_loopback(host)
    if not host or "@" in parts.netloc or not (parts.scheme == "https" or plain):
        raise provider_failed(f"has no usable `{what}`")
    return text
