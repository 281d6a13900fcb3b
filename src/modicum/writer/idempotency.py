"""Idempotency: executing a request once, however often it is sent.

A client without a response sends its request again, under the same key. The response is
stored in the same transaction as the events: so either the request is done and its
response is known, or it is not done. Work without events stores nothing: repeating it
is harmless.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
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
        whole: The key of the request that this is a part of; empty for a whole one. It
            is used up by the first part that is executed, so that no part of another
            request is executed under it.

    Raises:
        InputError: If the key or the digest is malformed.
    """

    key: str
    digest: str
    render: Callable[[Any], bytes] = field(repr=False)
    whole: str = ""

    def part(self, number: int) -> IdempotencyKey:
        """Return the key of a part of the request.

        Args:
            number: The number of the part.
        """
        # A hash: the client's own keys have any characters, and the maximum length.
        key = hashlib.sha256(f"{self.key} {number}".encode()).hexdigest()
        return replace(self, key=f"part-{key}", whole=self.key)

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
        keys = {
            key
            for once, actor in requests
            if once is not None
            for key in _keys(once, actor)
        }
        if keys:
            self._known |= self._entry.answered(keys)

    def once(self, work: Work, once: IdempotencyKey | None, actor: str) -> Work:
        """Return work that is done unless it was done before."""
        return work if once is None else partial(self._do, work, once, actor)

    def _do(self, work: Work, once: IdempotencyKey, actor: str, entry: Entry) -> Any:
        """Return the result of some work, its error, or its stored response."""
        keys = _keys(once, actor)
        known = [self._known[key] for key in keys if key in self._known]
        if any(one.digest != once.digest for one in known):
            raise _reused(once.whole or once.key)
        if keys[0] in self._known:
            return Replayed(self._known[keys[0]].answer)
        before = entry.added
        answer = work(entry)
        if entry.added > before and not isinstance(answer, Exception):
            rendered = once.render(answer)
            for key in keys:
                if key not in self._known:
                    # Nothing is ever sent under the key of a whole: its parts are.
                    text = rendered if key == keys[0] else b""
                    stored = StoredAnswer(key, once.digest, text, entry.now)
                    entry.keep(stored)
                    self._known[key] = stored
        return answer


def _keys(once: IdempotencyKey, actor: str) -> list[str]:
    """Return the unique keys of a request: its own, and that of the whole, if any.

    The client's part contains no space.
    """
    return [f"{actor} {key}" for key in (once.key, once.whole) if key]


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
