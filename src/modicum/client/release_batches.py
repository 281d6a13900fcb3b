"""Releases that are sent together: which of them, and the answer about each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from modicum.client.local_pricing import RemoteSubmission
from modicum.client.problems import not_understood

#: Maximum number of releases in a batch. A server would accept more; but the losses of
#: each, which a decision shows, may take it a second, and the answer must be in time.
RELEASES_MAX: Final = 32
#: Maximum size of a batch in bytes: half of what a server accepts by default.
BATCH_BYTES_MAX: Final = 2**19


def batches_of(
    submissions: Sequence[RemoteSubmission],
) -> Iterator[list[RemoteSubmission]]:
    """Yield consecutive releases that fit in one request, with the same options."""
    some: list[RemoteSubmission] = []
    size = 0
    for one in submissions:
        more = len(one.sent.text) + 1
        if some and (
            len(some) == RELEASES_MAX
            or size + more > BATCH_BYTES_MAX
            or _options(one) != _options(some[0])
        ):
            yield some
            some, size = [], 0
        some.append(one)
        size += more
    if some:
        yield some


def together(some: Sequence[RemoteSubmission]) -> bytes:
    """Return releases as they are sent in one request."""
    return b'{"releases":[%s]}' % b",".join(one.sent.text for one in some)


def answers_in(reply: Any, count: int) -> list[dict[str, Any]]:
    """Return the answer about each release of a batch."""
    answers = reply.get("answers") if isinstance(reply, dict) else None
    if (
        not isinstance(answers, list)
        or len(answers) != count
        or not all(isinstance(one, dict) for one in answers)
    ):
        raise not_understood("it does not answer each release").alone()
    return answers


def _options(one: RemoteSubmission) -> tuple[bool, int]:
    return one.publish, one.reserve_seconds
