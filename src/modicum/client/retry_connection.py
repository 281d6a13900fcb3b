"""Requests with retries: a step without a response is repeated under the same key.

Nothing here is repeated under another key: the server executes each key once.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep
from typing import Any, Final, Generic, TypeVar

import httpx2
import msgspec

from modicum.api.operations import PREFIX, Operation
from modicum.client.credentials import Token, address_of, trusted
from modicum.client.decoding import decoded
from modicum.client.problems import mistake_of, not_understood
from modicum.client.request_encoding import EncodedRequest
from modicum.client.transport_errors import permanent_error
from modicum.core.errors import Code, ModicumError, Problem, UnavailableError

#: So often a request is sent at most.
ATTEMPTS_MAX: Final = 6
#: So long it waits before the second one; each time twice as long, less a part of it.
WAIT_SECONDS: Final = 0.1
#: Maximum delay between retries, whatever the server requests.
WAIT_SECONDS_MAX: Final = 10.0
#: Timeout for a silent server.
TIMEOUT_SECONDS: Final = 60.0

#: Success: the result, a started job, or a request for approval.
_ANSWERED: Final = frozenset({200, 202})
#: Temporary errors of the server, or of a proxy.
_LATER: Final = frozenset({429, 502, 503, 504})
#: Of these, the ones sent by the server itself, with a known outcome.
_REFUSED: Final = frozenset({429, 503})

A = TypeVar("A")
Query = Mapping[str, "str | int | bool | Sequence[str] | None"]


@dataclass(frozen=True, slots=True)
class Request(Generic[A]):
    """A request.

    Attributes:
        operation: The operation.
        ids: The path parameters.
        query: Its parameters; those that are None are left out.
        sent: Its content.
        step: What it does, as text; empty if it writes nothing.
        if_match: The ETag of what was reviewed; empty for none.
        accept: The requested content type; empty for JSON.
        is_last: Whether the connection is not used again: the next one may lead to
            another process.
        repeats: Whether it is sent again without a response; False where no key makes
            it idempotent.
    """

    operation: Operation[A]
    ids: Mapping[str, str | int] = field(default_factory=dict)
    query: Query = field(default_factory=dict)
    sent: EncodedRequest | None = None
    step: str = ""
    if_match: str = ""
    accept: str = ""
    is_last: bool = False
    repeats: bool = True

    @property
    def path(self) -> str:
        """Its address, below the prefix."""
        return self.operation.address(**self.ids)


class Connection:
    """A connection to a server with one identity, for several threads.

    Args:
        url: Its address.
        token: The token.
        ca_file: Certificates that are trusted, in PEM; None for those of the system.
        timeout_seconds: How long an answer is waited for.
    """

    def __init__(
        self,
        url: str,
        token: Token,
        *,
        ca_file: str | Path | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        #: The address, without secrets.
        self.url: Final = address_of(url)
        self._client = httpx2.Client(
            base_url=self.url if f"{PREFIX}/" in self.url else self.url + PREFIX,
            headers={"Authorization": f"Bearer {token.value}"},
            verify=trusted(ca_file) if self.url.startswith("https:") else True,
            timeout=timeout_seconds,
            follow_redirects=False,  # The token is for this server.
            trust_env=False,  # No credentials or proxies from the environment.
        )

    def __repr__(self) -> str:
        return f"<Connection {self.url}>"

    def close(self) -> None:
        """Close it."""
        self._client.close()

    def call(self, request: Request[A]) -> A:
        """Return a server's response, in the shape that the operation declares."""
        kind = request.operation.answer
        assert kind is not None, "the response is not a JSON document"
        return decoded(kind, self.send(request))

    def send(self, request: Request[Any]) -> Any:
        """Return a server's response: plain data."""
        return _answer(self._answered(request), request)

    @contextmanager
    def pieces(self, request: Request[Any]) -> Iterator[Iterator[bytes]]:
        """Lend a server's response, chunk by chunk: a `with` block."""
        found = self._answered(request, whole=False)
        try:
            if found.status_code != 200:
                found.read()
                raise mistake_of(found.status_code, found.content).alone()
            yield self._unbroken(found, request)
        except httpx2.TransportError as lost:
            raise self._broken(request, lost) from None
        finally:
            found.close()

    def _unbroken(
        self, found: httpx2.Response, request: Request[Any]
    ) -> Iterator[bytes]:
        try:
            yield from found.iter_bytes()
        except httpx2.TransportError as lost:
            raise self._broken(request, lost) from None

    def _broken(
        self, request: Request[Any], lost: httpx2.TransportError
    ) -> UnavailableError:
        why = f"no response ({type(lost).__name__})"
        return self._no_answer(request, why, reached=True)

    def _answered(
        self, request: Request[Any], *, whole: bool = True
    ) -> httpx2.Response:
        """Return a response; temporary errors are retried."""
        own = _headers(request)
        reached, why, failure = False, "", None
        for attempt in range(ATTEMPTS_MAX):
            try:
                found = self._send(request, own, whole=whole)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as lost:
                never = permanent_error(lost, self.url)
                if never is not None and not reached:
                    raise never.alone() from None
                wait, why = _wait(attempt), "it cannot be reached"
            except httpx2.TransportError as lost:
                reached = True
                wait, why = _wait(attempt), f"no response ({type(lost).__name__})"
            else:
                if found.status_code not in _LATER:
                    return found
                failure = _failure(found, request)
                reached = reached or failure is None
                wait, why = _wait(attempt, found), f"status {found.status_code}"
            if reached and not request.repeats:
                break
            if attempt + 1 < ATTEMPTS_MAX:
                sleep(wait)
        if failure is not None and not reached:
            raise failure
        raise self._no_answer(request, why, reached=reached)

    def _send(
        self, request: Request[Any], headers: Mapping[str, str], *, whole: bool
    ) -> httpx2.Response:
        query = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in request.query.items()
            if value is not None
        }
        built = self._client.build_request(
            request.operation.method,
            request.path,
            params=query,
            content=None if request.sent is None else request.sent.text,
            headers=headers,
        )
        found = self._client.send(built, stream=not whole)
        if not whole and found.status_code in _LATER:
            found.read()  # Its message is reported, if this is the last attempt.
        return found

    def _no_answer(
        self, request: Request[Any], why: str, *, reached: bool
    ) -> UnavailableError:
        """Return the mistake of a server that gave no answer."""
        unknown = bool(request.step) and reached
        notes = (
            f"{ATTEMPTS_MAX} attempts; the last one: {why}" if request.repeats else why,
            f"it is unknown whether it has {request.step}"
            if unknown
            else "nothing was changed",
        )
        return UnavailableError(
            Problem(
                Code.NO_ANSWER,
                f"the server {self.url} does not respond",
                notes=notes,
                help=_remedy(request) if unknown else "try again later",
            )
        ).alone()


def _remedy(request: Request[Any]) -> str:
    """Return what to do if it is unknown whether a step was executed."""
    if request.path.startswith("/releases"):
        return (
            "query the status of the release, and continue from there: the same id"
            " with the same contents is one release"
        )
    return "check the ledger before you repeat it"


def _headers(request: Request[Any]) -> dict[str, str]:
    """Return the headers of a request, the same for each time that it is sent."""
    own: dict[str, str] = {}
    if request.operation.keyed:
        own["Idempotency-Key"] = secrets.token_hex(16)
    if request.sent is not None:
        own["Content-Type"] = request.sent.kind
    if request.if_match:
        own["If-Match"] = f'"{request.if_match}"'
    if request.accept:
        own["Accept"] = request.accept
    if request.is_last:
        own["Connection"] = "close"
    return own


def _wait(attempt: int, found: httpx2.Response | None = None) -> float:
    """Return how many seconds to wait before the next attempt."""
    delay = found.headers.get("Retry-After", "") if found is not None else ""
    least = float(delay) if delay.isdecimal() and len(delay) < 6 else 0.0
    # Jitter: clients that were disconnected together do not retry together.
    own = WAIT_SECONDS * 2**attempt * random.uniform(0.5, 1.0)  # noqa: S311
    wait: float = max(least, own)
    return min(wait, WAIT_SECONDS_MAX)


def _answer(found: httpx2.Response, request: Request[Any]) -> Any:
    if found.status_code not in _ANSWERED:
        raise mistake_of(found.status_code, found.content, request.sent).alone()
    try:
        return msgspec.json.decode(found.content)
    except (msgspec.MsgspecError, ValueError):
        raise not_understood("its response is not JSON").alone() from None


def _failure(found: httpx2.Response, request: Request[Any]) -> ModicumError | None:
    """Return the server's own temporary error; None if it comes from a proxy."""
    if found.status_code not in _REFUSED:
        return None
    failure = mistake_of(found.status_code, found.content, request.sent)
    return None if failure.code is Code.NOT_UNDERSTOOD else failure
