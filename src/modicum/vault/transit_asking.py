"""Asking a key service over HTTP: bounded in time and size, and never elsewhere."""

from __future__ import annotations

import ipaddress
import json
import ssl
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from modicum.core.errors import Code, Problem, UsageError
from modicum.core.extras import needing_extras
from modicum.vault.owned_files import read_owned
from modicum.vault.problems import no_key

if TYPE_CHECKING:
    import httpx2

#: An answer is a few hundred bytes, or more of a key with many versions.
ANSWER_BYTES_MAX: Final = 2**18
#: An answer is there after so long, or it is not waited for.
SECONDS_MAX: Final = 15.0
_TOKEN_BYTES_MAX: Final = 2**14


class Asking:
    """Asks one key service; several threads may.

    Args:
        address: Its address, as `address_of` returns it.
        token_file: Where the token is.
        namespace: Which namespace is asked for; empty if there is none.
        ca_file: Certificates that are trusted; None for those of the system.

    Raises:
        UsageError: If `httpx2` is not installed.
    """

    def __init__(
        self, address: str, token_file: Path, namespace: str, ca_file: Path | None
    ) -> None:
        _need_httpx2()
        self._address, self._token_file = address, token_file
        self._namespace, self._ca_file = namespace, ca_file

    def ask(
        self, path: str, sent: Mapping[str, str] | None
    ) -> tuple[int, Mapping[str, object]]:
        """Return the status and the JSON object that came.

        Args:
            path: What is asked, below `/v1/`.
            sent: What is sent; None to read.

        Raises:
            UnavailableError: If nothing of the kind came in time, or the token cannot
                be read.
        """
        import httpx2

        method = "GET" if sent is None else "POST"
        headers = {"X-Vault-Request": "true", "X-Vault-Token": self._token()}
        if self._namespace:
            headers["X-Vault-Namespace"] = self._namespace
        try:
            with self._client.stream(
                method, f"/v1/{path}", json=sent, headers=headers
            ) as answer:
                return answer.status_code, _object(_bounded(answer))
        except httpx2.HTTPError:
            # Without its cause, which holds what was sent.
            raise no_key("the key service does not answer", "try again later") from None

    def close(self) -> None:
        """Close the connections."""
        if "_client" in self.__dict__:
            self._client.close()

    @cached_property
    def _client(self) -> httpx2.Client:
        import httpx2

        secure = self._address.startswith("https:")
        return httpx2.Client(
            base_url=self._address,
            verify=_trusted(self._ca_file) if secure else True,
            timeout=httpx2.Timeout(10.0, connect=5.0),
            follow_redirects=False,  # The token and the keys are for this service.
            trust_env=False,  # No other credentials, no proxies.
        )

    def _token(self) -> str:
        data = read_owned(self._token_file, _TOKEN_BYTES_MAX, may_be_link=True)
        token = data.decode("latin-1").rstrip("\r\n")
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise no_key(f"{self._token_file} must hold the token, in one line")
        return token


def address_of(url: str) -> str:
    """Return the address of a key service, if it may be asked there.

    Args:
        url: Its URL.

    Raises:
        UsageError: If it is none, holds a secret, or is not protected.
    """
    try:
        found = urlsplit(url)
        host, _ = found.hostname or "", found.port
    except ValueError:
        raise _no_address("the address of the key service is no URL") from None
    if (
        found.scheme not in {"http", "https"}
        or not host
        or not url.isprintable()
        or found.path not in {"", "/"}
        or {"@", "?", "#"} & set(url)
    ):
        raise _no_address("the address of the key service is no plain URL of a host")
    if found.scheme == "http" and not _is_here(host):
        raise _no_address(f"plain http to `{host}` would show keys to others")
    return f"{found.scheme}://{found.netloc}"


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _no_address(why: str) -> UsageError:
    remedy = "name one such as  https://vault.example:8200"
    return UsageError(Problem(Code.BAD_ADDRESS, why, help=remedy))


def _trusted(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError:  # An SSLError is one.
        raise no_key(f"{ca_file} holds no certificates that can be read") from None


def _bounded(answer: httpx2.Response) -> bytes:
    # The client bounds each wait, and so not the sum of many.
    deadline, body = time.monotonic() + SECONDS_MAX, bytearray()
    for part in answer.iter_bytes():
        body += part
        if len(body) > ANSWER_BYTES_MAX or time.monotonic() > deadline:
            raise no_key("the key service answers at too great length")
    return bytes(body)


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise no_key("the key service answers with no JSON object").alone() from None
    return found


def _need_httpx2() -> None:
    with needing_extras():
        import httpx2  # noqa: F401 - only whether it is there
