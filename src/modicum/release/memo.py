"""Caches of computed results."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LazyValue(Generic[V]):
    """One result derived from the value that holds it, computed on demand.

    Two concurrent callers may both compute it, and get equal results. A value derived
    from another one has an empty cache, so nothing becomes stale.
    """

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: V | None = None

    def get(self) -> V | None:
        """Return the result; None if it was not computed yet."""
        return self._found

    def keep(self, value: V) -> V:
        """Return the result, and keep it."""
        self._found = value
        return value


class Memo(Generic[K, V]):
    """The results of a pure function, by its arguments; a bounded number of them.

    Losing them costs time and nothing else. Each step is a single one of a
    dictionary, so that several callers may share a memory.

    Args:
        most: How many results are kept.
    """

    __slots__ = ("_found", "_most")

    def __init__(self, most: int) -> None:
        self._found: dict[K, V] = {}
        self._most = most

    def get(self, key: K) -> V | None:
        """Return the result for a key; None if it is not known."""
        return self._found.get(key)

    def keep(self, key: K, value: V) -> V:
        """Return a result, and keep it."""
        if len(self._found) >= self._most:
            self._found.clear()  # Starting anew is simple, and seldom.
        self._found[key] = value
        return value
