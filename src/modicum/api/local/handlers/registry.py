"""The handlers of read operations, and their permissions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from modicum.api.local.ledger_view import LedgerView
from modicum.api.operations import Operation
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Read(Generic[A]):
    """The handler of a read operation.

    Attributes:
        operation: The operation.
        answer: Returns the response. Its arguments are the view of a ledger, the caller
            (None for the ledger's keeper), and the parameters by name. Its docstring
            describes the operation in OpenAPI.
        action: The required action; None if the function checks permissions itself.
        anywhere: Whether it is enough that they may do it with some data set.
        slow: Whether it may take long, so that quick reads do not wait for it.
        tag: Returns the ETag of a response; by default the head of the ledger, if the
            response contains it.
    """

    operation: Operation[A]
    answer: Callable[..., A]
    action: Action | None
    anywhere: bool
    slow: bool
    tag: Callable[[A], str]

    def must(self, who: Identity) -> None:
        """Refuse a caller without the required permission."""
        if self.action is not None:
            (who.must_some if self.anywhere else who.must)(self.action)


_READS: Final[dict[Operation[Any], Read[Any]]] = {}


def answers(
    operation: Operation[A],
    action: Action | None = None,
    *,
    anywhere: bool = False,
    slow: bool = False,
    tag: Callable[[A], str] | None = None,
) -> Callable[[Callable[..., A]], Callable[..., A]]:
    """Return a decorator that registers the handler of an operation; see `Read`."""

    def register(answer: Callable[..., A]) -> Callable[..., A]:
        assert operation not in _READS, operation.path
        _READS[operation] = Read(
            operation, answer, action, anywhere, slow, tag or _head_of
        )
        return answer

    return register


def all_reads() -> Iterator[Read[Any]]:
    """Yield how each operation is answered that only reads."""
    yield from _READS.values()


def read_of(operation: Operation[A]) -> Read[A]:
    """Return how an operation is answered."""
    return _READS[operation]


class Source(Protocol):
    """A ledger that handles operations itself, such as a server's."""

    def read(self, operation: Operation[A], **given: Any) -> A:
        """Return the answer of an operation; see the function `read`."""
        ...


def read(view: LedgerView | Source, operation: Operation[A], **given: Any) -> A:
    """Return the response of an operation, from a local ledger or a server."""
    if not isinstance(view, LedgerView):
        return view.read(operation, **given)
    return read_of(operation).answer(view, None, **given)


def _head_of(answer: Any) -> str:
    ledger = getattr(answer, "ledger", None)
    return "" if ledger is None else str(ledger.head)
