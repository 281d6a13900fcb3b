"""The identity of a client, and all reads of a ledger."""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeVar

from modicum.api import operations
from modicum.api.operations import Operation
from modicum.client.problems import not_understood
from modicum.client.retry_connection import Connection, Request
from modicum.core.errors import Code, InputError, Problem, UsageError

A = TypeVar("A")


class Session:
    """A ledger on a server, as seen by one identity.

    Args:
        connection: The server.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._connection.url}>"

    @property
    def connection(self) -> Connection:
        """The server."""
        return self._connection

    @cached_property
    def actor(self) -> str:
        """The actor, as the server knows them."""
        return self._connection.call(Request(operations.ME)).name

    def read(self, operation: Operation[A], **given: Any) -> A:
        """Return the response of a read operation."""
        ids = {name: given.pop(name) for name in operation.holes}
        return self._connection.call(Request(operation, ids, given))

    def found(self, request: Request[Any]) -> dict[str, Any] | None:
        """Return a server's data; None if there is none."""
        try:
            reply = self._connection.send(request)
        except InputError as error:
            if error.code is not Code.NOT_FOUND:
                raise
            return None
        if not isinstance(reply, dict):
            raise not_understood("it is empty")
        return reply


def unsupported(what: str, instead: str) -> UsageError:
    """Return the error for an operation that only a local ledger supports."""
    return UsageError(
        Problem(
            Code.NOT_SUPPORTED,
            f"{what} is not available from a server",
            notes=("nothing was changed",),
            help=instead,
        )
    )
