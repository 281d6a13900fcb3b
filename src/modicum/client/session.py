"""Who asks a server, and how everything about a ledger is asked of it."""

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
    """A ledger that a server keeps, as one identity asks about it.

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
        """Who asks, as the server knows them."""
        return self._connection.call(Request(operations.ME)).name

    def read(self, operation: Operation[A], **given: Any) -> A:
        """Return what an operation answers that only reads."""
        ids = {name: given.pop(name) for name in operation.holes}
        return self._connection.call(Request(operation, ids, given))

    def found(self, request: Request[Any]) -> dict[str, Any] | None:
        """Return what a server tells; None if there is no such thing."""
        try:
            told = self._connection.ask(request)
        except InputError as error:
            if error.code is not Code.NOT_FOUND:
                raise
            return None
        if not isinstance(told, dict):
            raise not_understood("it is empty")
        return told


def unsupported(what: str, instead: str) -> UsageError:
    """Return the mistake of asking a server for what is done where the ledger is."""
    return UsageError(
        Problem(
            Code.NOT_SUPPORTED,
            f"{what} is not available from a server",
            notes=("nothing was changed",),
            help=instead,
        )
    )
