"""Idempotency: executing a request once, however often it is sent.

A client without a response sends its request again, under the same key. The response is
stored in the same transaction as the events: so either the request is done and its
response is known, or it is not done. Work without events stores nothing: repeating it
is harmless.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from modicum.api.local.balances import Entry
from modicum.api.ports.storage import StoredAnswer
from modicum.core.errors import Code, InputError, Problem

#: Work for a turn; it may return an error.
Work: TypeAlias = Callable[[Entry], Any]

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """The identification of a request that is executed once.

    Attributes:
        key: The key that the client chose, 1 to 255 visible characters of ASCII. Two
            clients with different names, `actor`, may choose the same key.
        digest: The SHA-256 of the request, in hexadecimal. The server includes all that
            distinguishes two requests: method, path and body.
        render: Returns the response to store and send again later. It is called by the
            writer, which blocks all others; if it raises, nothing is done.

    Raises:
        InputError: If the key or the digest is malformed.
    """

    key: str
    digest: str
    render: Callable[[Any], bytes] = field(repr=False)

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.key):
            raise _malformed("key", "1 to 255 visible characters of ASCII, no space")
        if not _DIGEST.fullmatch(self.digest):
            raise _malformed("digest", "64 lower-case hexadecimal digits")


class Replayed(Exception):  # noqa: N818 - it is no mistake, but what was asked for
    """Raised for a request that was executed before.

    Attributes:
        answer: The stored response.
    """

    def __init__(self, answer: bytes) -> None:
        super().__init__("the request was already done")
        self.answer = answer


class Answered:
    """The responses known in one turn: stored before it, or to be stored with it.

    Args:
        entry: The turn.
    """

    def __init__(self, entry: Entry) -> None:
        self._entry = entry
        self._known: dict[str, StoredAnswer] = {}

    def look_up(self, requests: Iterable[tuple[IdempotencyKey | None, str]]) -> None:
        """Look up stored responses, all at once."""
        keys = {_key(once, actor) for once, actor in requests if once is not None}
        if keys:
            self._known |= self._entry.answered(keys)

    def once(self, work: Work, once: IdempotencyKey | None, actor: str) -> Work:
        """Return work that is done unless it was done before."""
        return work if once is None else partial(self._do, work, once, actor)

    def _do(self, work: Work, once: IdempotencyKey, actor: str, entry: Entry) -> Any:
        """Return the result of some work, its error, or its stored response."""
        key = _key(once, actor)
        known = self._known.get(key)
        if known is not None:
            if known.digest != once.digest:
                raise _reused(once.key)
            return Replayed(known.answer)
        before = entry.added
        answer = work(entry)
        if entry.added > before and not isinstance(answer, Exception):
            stored = StoredAnswer(key, once.digest, once.render(answer), entry.now)
            entry.keep(stored)
            self._known[key] = stored
        return answer


def _key(once: IdempotencyKey, actor: str) -> str:
    """Return the unique key of a request; the key contains no space."""
    return f"{actor} {once.key}"


def _reused(key: str) -> InputError:
    return InputError(
        Problem(
            Code.KEY_REUSED,
            f"the idempotency key `{key}` was used for another request",
            notes=("nothing was changed",),
            help="repeat the same request, or send a new one with a new key",
        )
    )


def _malformed(what: str, rule: str) -> InputError:
    return InputError(
        Problem(Code.BAD_NAME, f"the {what} of an idempotent request is {rule}")
    )
