"""A place that stays taken for as long as anything of its runs may be there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from modicum.core.errors import check
from modicum.sandbox.deadline import Patience
from modicum.sandbox.places import Place, Places


class Stay:
    """A place that whoever took it runs programs in, one after the other.

    It is free again when they have left it, and nothing runs there any more.

    Args:
        taken_from: Where the place is from; one is waited for.
        patience: How long; None for as long as is usual.

    Raises:
        UnavailableError: If none was free for long, or this cannot be known.
    """

    def __init__(self, taken_from: Places, patience: Patience | None = None) -> None:
        self._from = taken_from
        self._changed = threading.Condition()
        self._is_held, self._is_running = True, False
        self.place: Place = taken_from.take(patience)

    def begin(self) -> None:
        """Say that a run begins, once nothing of the last one is there any more.

        Raises:
            UnavailableError: If the last one did not end for long.
        """
        with self._changed:
            Patience().wait(
                lambda seconds: self._changed.wait_for(self._is_idle, seconds)
            )
            check(self._is_held, "nothing runs in a place that was left")
            self._is_running = True

    def end(self) -> None:
        """Say that nothing is left of the run that began."""
        with self._changed:
            self._is_running = False
            self._changed.notify()
            self._free_if_empty()

    def leave(self) -> None:
        """Say that no other run will begin."""
        with self._changed:
            self._is_held = False
            self._free_if_empty()

    def _is_idle(self) -> bool:
        return not self._is_running

    def _free_if_empty(self) -> None:
        if not self._is_held and not self._is_running:
            self._from.free(self.place)


@contextmanager
def staying(taken_from: Places, patience: Patience | None = None) -> Iterator[Stay]:
    """Have a place for as long as the block takes, and what was begun in it.

    Args:
        taken_from: Where the place is from; one is waited for.
        patience: How long; None for as long as is usual.

    Raises:
        UnavailableError: If none was free for long, or this cannot be known.
    """
    stay = Stay(taken_from, patience)
    try:
        yield stay
    finally:
        stay.leave()
