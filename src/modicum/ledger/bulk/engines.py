"""The two ways to go through the rows. They give the same answers."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Protocol, TypeAlias

from modicum.ledger.bulk.layout import Asked, Integers, Rows


class Engine(Protocol):
    """Holds what each row was charged, and decides.

    A sum is kept as `carried * 2**62 + rest`, where an infinite entry adds 2**62. It
    reads as infinite exactly if anything was carried; and since it is exact, what was
    added can be taken back.

    Attributes:
        left: By row and coordinate, the most that may be added. `NEVER` if the sum is
            beyond its cap, `ALWAYS` if the filter does not care.
        rest: By row and coordinate, the sum without what was carried.
        carried: How often 2**62 was carried.
    """

    left: Integers
    rest: Integers
    carried: Integers

    def admits(self, asked: Asked) -> bool:
        """Return whether every row lets the release pass."""

    def move(self, asked: Asked, sign: int) -> bool:
        """Add a release to its rows (1), or take it back (-1).

        Returns:
            Whether all that was taken back had been there.
        """


#: Makes an engine that has been charged nothing, of rows and their caps.
EngineOf: TypeAlias = Callable[[Rows, Integers], Engine]


def numba_engine() -> EngineOf | None:
    """Return the engine whose loops are compiled, ready for use, if numba is there.

    Importing numba and loading the loops takes about a second, compiling them where
    they were never cached some more. It pays for a process that decides thousands of
    releases; for a few, `None` (the engine of NumPy) is quicker.
    """
    if find_spec("numba") is None:
        return None
    from modicum.ledger.bulk.numba_kernel import NumbaEngine, warm

    warm()
    return NumbaEngine
