"""The functions that answer operations, and who may ask them."""

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
    """How an operation is answered.

    Attributes:
        operation: The operation.
        answer: Returns the answer. It is given the view of a ledger, who asks (None
            for the keeper of the ledger), and the parameters by name. Its docstring
            describes the operation to those who ask over HTTP.
        action: What somebody must be allowed to do; None if the function sees to it.
        anywhere: Whether it is enough that they may do it with some data set.
        slow: Whether it may take long, so that quick reads do not wait for it.
        tag: Returns the ETag of an answer; by default the head of the ledger, if the
            answer says that.
    """

    operation: Operation[A]
    answer: Callable[..., A]
    action: Action | None
    anywhere: bool
    slow: bool
    tag: Callable[[A], str]

    def must(self, who: Identity) -> None:
        """Refuse somebody who may not ask this."""
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
    """Return a decorator: the function answers an operation; see `Read`."""

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
    """A ledger that answers operations itself, such as one that a server keeps."""

    def read(self, operation: Operation[A], **given: Any) -> A:
        """Return the answer of an operation; see the function `read`."""
        ...


def read(view: LedgerView | Source, operation: Operation[A], **given: Any) -> A:
    """Return what an operation answers, from a ledger here or on a server."""
    if not isinstance(view, LedgerView):
        return view.read(operation, **given)
    return read_of(operation).answer(view, None, **given)


def _head_of(answer: Any) -> str:
    ledger = getattr(answer, "ledger", None)
    return "" if ledger is None else str(ledger.head)
