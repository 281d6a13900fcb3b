"""Errors of a server, raised as on a local ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from modicum.api.schema import problem as schema
from modicum.client.request_encoding import EncodedRequest
from modicum.core import errors
from modicum.core.errors import Code, Mark, ModicumError, Problem, UnavailableError

_KINDS: Final[Mapping[str, type[ModicumError]]] = {
    "input": errors.InputError,
    "conflict": errors.ConflictError,
    "access": errors.AccessError,
    "approval": errors.ApprovalError,
    "stale": errors.StaleError,
    "usage": errors.UsageError,
    "unavailable": errors.UnavailableError,
    "verification": errors.VerificationError,
    "internal": errors.InvariantError,
}
#: The server's name for the content of a request.
SENT: Final = "request"


class _Problems(msgspec.Struct):
    """The needed part of a `ProblemDetails`: a response may come from a proxy."""

    kind: str
    problems: tuple[schema.Problem, ...]


def mistake_of(
    status: int, body: bytes, sent: EncodedRequest | None = None
) -> ModicumError:
    """Return the error in a response."""
    try:
        reply = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError):
        return not_understood(f"it returned status {status}")
    return mistake_in(reply, sent, f"it returned status {status}")


def mistake_in(
    reply: object,
    sent: EncodedRequest | None = None,
    why: str = "it is not an error of this service",
) -> ModicumError:
    """Return the error in a `ProblemDetails`.

    Args:
        reply: The document, as plain data.
        sent: What it is about.
        why: What is wrong with the response if it is none.
    """
    try:
        found = msgspec.convert(reply, _Problems)
    except msgspec.MsgspecError:
        return not_understood(why)
    if not found.problems or found.kind not in _KINDS:
        return not_understood(why)
    return _KINDS[found.kind](*(problem_of(one, sent) for one in found.problems))


def not_understood(
    why: str, help_: str = "check the address, and the versions of both"
) -> UnavailableError:
    """Return the mistake of an answer that is none of this version's."""
    return UnavailableError(
        Problem(
            Code.NOT_UNDERSTOOD,
            f"the server sent an unexpected response: {why}",
            notes=("it is unknown whether the operation was performed",),
            help=help_,
        )
    )


def problem_of(one: schema.Problem, sent: EncodedRequest | None = None) -> Problem:
    """Return a problem in a server's response."""
    try:
        code, message = Code(one.code), one.message
    except ValueError:  # A newer server has more of them.
        code, message = Code.NOT_UNDERSTOOD, f"{one.code[:20]}: {one.message}"
    return Problem(code, message, _mark(one, sent), one.label, one.notes, one.help)


def _mark(one: schema.Problem, sent: EncodedRequest | None) -> Mark | None:
    if one.file is None or one.line is None or one.column is None:
        return None
    reply = Mark(one.file, one.line, one.column, one.length or 1)
    return reply if sent is None or one.file != SENT else sent.place(reply)
