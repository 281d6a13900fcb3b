"""A witness behind a URL: `GET`, and `PUT` with `If-Match` or `If-None-Match: *`."""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from modicum.core.extras import needing_extras
from modicum.ledger.proof.claims import CLAIM_BYTES_MAX
from modicum.storage.witness.heads import seconds_ahead, unreachable
from modicum.system.clock import seconds

if TYPE_CHECKING:
    import httpx2

_OK: Final = 200
_MISSING: Final = 404
_CHANGED: Final = (409, 412)
_DONE: Final = range(200, 300)
#: How long an answer may take; a turn of the ledger waits for it.
_READ_SECONDS: Final = 5.0


class HttpWitness:
    """A resource with one line, whose `ETag` is another one for each line.

    Args:
        url: Its URL. A user and a password in it are sent as basic authentication.

    Attributes:
        ahead: By how many seconds its clock was ahead of this machine's when it
            answered last; None if it has not said.
    """

    def __init__(self, url: str) -> None:
        with needing_extras():
            import httpx2  # noqa: F401 - only whether it is there
        self._url = url
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        self._last: tuple[bytes | None, str] = None, ""  # Line and tag, as last read.
        self.ahead: float | None = None
        self._name = f"{parts.scheme}://{host}{parts.path}"

    @property
    def name(self) -> str:
        """Return the URL without its password and its query."""
        return self._name

    @property
    def kind(self) -> str:
        """Return `http`."""
        return "http"

    def is_beside(self, ledger: str) -> bool:
        """Return False: what is behind a URL is not known."""
        return False

    def latest(self) -> bytes | None:
        """Return the line; None if the resource does not exist."""
        return self._found()[0]

    def kept(self) -> list[bytes]:
        """Return nothing: it has the last line only."""
        return []

    def replace(self, known: bytes | None, new: bytes) -> bool:
        """Put the line on the condition that the known one is there."""
        last = self._last
        line, tag = last if last[0] == known else self._found()
        if line != known:
            return False
        condition = {"If-None-Match": "*"} if known is None else {"If-Match": tag}
        status, _, _ = self._send("PUT", new, condition)
        if status in _CHANGED:
            return False
        if status not in _DONE:
            raise unreachable(self.name, f"it answered {status}")
        return True

    def close(self) -> None:
        """Close the connections."""
        client = self.__dict__.pop("_client", None)
        if client is not None:
            client.close()

    def _found(self) -> tuple[bytes | None, str]:
        """Return the line, and its tag."""
        status, tag, line = self._send("GET")
        if status == _MISSING:
            self._last = None, ""
            return None, ""
        if status != _OK:
            raise unreachable(self.name, f"it answered {status}")
        if not tag.startswith('"') or len(line) > CLAIM_BYTES_MAX:
            raise unreachable(self.name, "it has no strong ETag, or is too long")
        self._last = line, tag
        return line, tag

    def _send(
        self, method: str, body: bytes | None = None, more: dict[str, str] | None = None
    ) -> tuple[int, str, bytes]:
        """Return the status of an answer, its ETag, and its body, if that is a line."""
        import httpx2

        headers = {"Cache-Control": "no-cache", "Content-Type": "application/json"}
        ends = time.monotonic() + _READ_SECONDS
        content = b""
        try:
            with self._client.stream(
                method, self._url, content=body, headers=headers | (more or {})
            ) as answer:
                self.ahead = seconds_ahead(answer.headers.get("Date"), seconds())
                # A client's timeout is for each piece of an answer.
                for piece in answer.iter_bytes():
                    content += piece
                    if time.monotonic() > ends:
                        raise unreachable(self.name, "its answer takes too long")
                    if len(content) > CLAIM_BYTES_MAX:
                        break
        except httpx2.HTTPError as error:
            # Without its cause, which contains the URL.
            raise unreachable(self.name, type(error).__name__) from None
        return answer.status_code, answer.headers.get("ETag", ""), content

    @cached_property
    def _client(self) -> httpx2.Client:
        import httpx2

        timeout = httpx2.Timeout(_READ_SECONDS, connect=3.0)
        return httpx2.Client(timeout=timeout, follow_redirects=False, trust_env=False)
