"""Keys in HashiCorp Vault: its engine `transit` wraps, and never reveals them.

The key there must be a derived one (`derived=true`): it wraps each data key under a
separate key, derived from the data key's context. Only so can `rewrap` take the
context; it accepts no associated data. For a key that is not derived, the service would
silently ignore the context, so such a key is refused.

The token may `update` `encrypt/KEY`, `decrypt/KEY` and `rewrap/KEY`, and `read`
`keys/KEY`, and nothing else.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from modicum.core.errors import Code, Problem, UnavailableError, UsageError
from modicum.core.extras import needing_extras
from modicum.vault.encrypted_stream import KEY_BYTES
from modicum.vault.key_provider import Context, Wrapped
from modicum.vault.owned_files import read_owned
from modicum.vault.problems import broken, no_key

if TYPE_CHECKING:
    import httpx2

#: An answer is a few hundred bytes, or more of a key with many versions.
ANSWER_BYTES_MAX: Final = 2**18
#: An answer is there after so long, or it is not waited for.
SECONDS_MAX: Final = 15.0
_TOKEN_BYTES_MAX: Final = 2**14


class TransitClient:
    """A client of one key service; several threads may use it.

    Args:
        address: Its address, as `address_of` returns it.
        token_file: The file with the token.
        namespace: The namespace; empty if there is none.
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

    def send(
        self, path: str, sent: Mapping[str, str] | None
    ) -> tuple[int, Mapping[str, object]]:
        """Return the status and the JSON object of a response."""
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
            # Without its cause, which contains request data.
            raise no_key(
                "the key service does not respond", "try again later"
            ) from None

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
            raise no_key(f"{self._token_file} must contain the token, in one line")
        return token


def address_of(url: str) -> str:
    """Return the address of a key service, if it may be contacted."""
    try:
        found = urlsplit(url)
        host, _ = found.hostname or "", found.port
    except ValueError:
        raise _no_address("the address of the key service is not a URL") from None
    if (
        found.scheme not in {"http", "https"}
        or not host
        or not url.isprintable()
        or found.path not in {"", "/"}
        or {"@", "?", "#"} & set(url)
    ):
        raise _no_address("the address of the key service is not a plain URL of a host")
    if found.scheme == "http" and not _is_here(host):
        raise _no_address(f"plain http to `{host}` would expose keys")
    return f"{found.scheme}://{found.netloc}"


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _no_address(why: str) -> UsageError:
    remedy = "give one such as  https://vault.example:8200"
    return UsageError(Problem(Code.BAD_ADDRESS, why, help=remedy))


def _trusted(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError:  # An SSLError is one.
        raise no_key(f"{ca_file} contains no readable certificates") from None


def _bounded(answer: httpx2.Response) -> bytes:
    # The client bounds each wait, and so not the sum of many.
    deadline, body = time.monotonic() + SECONDS_MAX, bytearray()
    for part in answer.iter_bytes():
        body += part
        if len(body) > ANSWER_BYTES_MAX or time.monotonic() > deadline:
            raise no_key("the key service sent a response that is too large")
    return bytes(body)


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise no_key(
            "the key service sent a response that is not a JSON object"
        ).alone() from None
    return found


def _need_httpx2() -> None:
    with needing_extras():
        import httpx2  # noqa: F401 - only whether it is there


_WRAPPED: Final = re.compile(r"vault:v([1-9][0-9]{0,8}):[A-Za-z0-9+/]+={0,2}")
_PATH: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
#: Types of keys with authenticated encryption.
_KINDS: Final = frozenset({"aes128-gcm96", "aes256-gcm96", "chacha20-poly1305"})
#: The service's message for a wrapped key with a wrong context or changed data.
_FOREIGN: Final = ("message authentication failed", "invalid ciphertext")


@dataclass(frozen=True, slots=True)
class Transit:
    """The location of a key.

    Attributes:
        address: Of the service, such as `https://vault.example:8200`.
        key: The name of the key.
        token_file: A file of our own, mode 0600, with the token; read each time, so
            that the token can be renewed there.
        mount: The mount path of the engine; one name.
        namespace: The namespace; empty if there is none.
        ca_file: Certificates that are trusted, in PEM; None for those of the system.
    """

    address: str
    key: str
    token_file: Path
    mount: str = "transit"
    namespace: str = ""
    ca_file: Path | None = None

    @property
    def name(self) -> str:
        """The prefix of key ids."""
        return f"{self.mount}/{self.key}"


def transit_keys(transit: Transit) -> TransitKeys:
    """Return the keys of a service; no request is made yet."""
    namespace = transit.namespace.split("/") if transit.namespace else []
    for part in (transit.key, transit.mount, *namespace):
        if not _PATH.fullmatch(part):
            raise UsageError(
                Problem(
                    Code.BAD_NAME,
                    f"`{part[:100]}` is not a valid name of a key, a mount or a"
                    " namespace",
                    help="use letters, digits, `-`, `_` and `.`",
                )
            )
    address = address_of(transit.address)
    client = TransitClient(
        address, transit.token_file, transit.namespace, transit.ca_file
    )
    return TransitKeys(transit, client)


class TransitKeys:
    """Keys in HashiCorp Vault.

    Args:
        transit: The location of the key.
        client: The client.
    """

    def __init__(self, transit: Transit, client: TransitClient) -> None:
        self._transit, self._client = transit, client

    def __repr__(self) -> str:
        return f"<TransitKeys {self._transit.name}>"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def current(self) -> str:
        """Return the id of the key that is wrapped under now: its latest version."""
        found = self._data(f"keys/{self._transit.key}", None)
        if found.get("derived") is not True or found.get("type") not in _KINDS:
            raise no_key(
                f"the key `{self._transit.name}` is not derived, or has an"
                " unsupported type",
                "create one with  type=aes256-gcm96 derived=true",
            )
        latest = found.get("latest_version")
        if not isinstance(latest, int) or isinstance(latest, bool) or latest < 1:
            raise _odd()
        return f"{self._transit.name}/v{latest}"

    def wrap(self, data_key: bytes, context: Context) -> Wrapped:
        """Return a data key, wrapped under the current key."""
        self.current()  # Else a key could have been made anew that is not derived.
        sent = {"plaintext": _text(data_key), "context": _text(context.to_bytes())}
        return self._wrapped(self._data(f"encrypt/{self._transit.key}", sent))

    def unwrap(self, wrapped: Wrapped, context: Context) -> bytes:
        """Return a data key."""
        found = self._of_wrapped("decrypt", wrapped, context)
        text = found.get("plaintext")
        try:
            data_key = base64.b64decode(text if isinstance(text, str) else "")
        except ValueError:
            data_key = b""
        if len(data_key) != KEY_BYTES:
            raise broken(context.id, "its wrapped key is invalid")
        return data_key

    def rewrap(self, wrapped: Wrapped, context: Context) -> Wrapped:
        """Return the same data key, wrapped under the current key; it stays there."""
        return self._wrapped(self._of_wrapped("rewrap", wrapped, context))

    def _of_wrapped(
        self, verb: str, wrapped: Wrapped, context: Context
    ) -> Mapping[str, object]:
        """Return the response about a wrapped key of this key."""
        text = wrapped.data.decode("latin-1")
        found = _WRAPPED.fullmatch(text)
        if found is None:
            raise broken(context.id, "its wrapped key is not from this service")
        if wrapped.key_id != f"{self._transit.name}/v{found[1]}":
            raise no_key(
                f"the key of `{context.id}` is wrapped under a key other than"
                f" `{self._transit.name}`",
                "use the key that it was wrapped with",
            )
        sent = {"ciphertext": text, "context": _text(context.to_bytes())}
        return self._data(f"{verb}/{self._transit.key}", sent, context.id)

    def _wrapped(self, found: Mapping[str, object]) -> Wrapped:
        text = found.get("ciphertext")
        version = _WRAPPED.fullmatch(text) if isinstance(text, str) else None
        if version is None:
            raise _odd()
        return Wrapped(f"{self._transit.name}/v{version[1]}", version[0].encode())

    def _data(
        self, path: str, sent: Mapping[str, str] | None, of: str = ""
    ) -> Mapping[str, object]:
        """Return the service's response."""
        status, found = self._client.send(f"{self._transit.mount}/{path}", sent)
        if status == 200 and isinstance(data := found.get("data"), dict):
            return data
        errors = found.get("errors")
        text = " ".join(map(str, errors)) if isinstance(errors, list) else ""
        if of and status == 400 and any(known in text for known in _FOREIGN):
            raise broken(of, "its wrapped key is for something else")
        # The service's message is not repeated: it may quote request data.
        raise no_key(
            f"the key service rejects `{self._transit.name}` (status {status})",
            "check its log: the key must exist, and the token must be allowed to use"
            " it",
        )


def _odd() -> UnavailableError:
    return no_key("the key service sent a response that is not a key")


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
