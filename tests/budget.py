"""How many examples a property test draws, and from which seed.

MODICUM_SOAK asks for a soak, and is its seed.
"""

from __future__ import annotations

import os

_FACTOR = 10 if os.environ.get("MODICUM_SOAK") else 1


def examples(n: int, plain: int | None = None) -> int:
    """Return `n`, or ten times as many when the environment asks for a soak.

    Args:
        n: How many.
        plain: How many in a plain run instead, where each one takes its time.
    """
    if _FACTOR == 1 and plain is not None:
        return plain
    return n * _FACTOR


def seed() -> str:
    """Return the seed: the same on every plain run, another one on every soak."""
    return os.environ.get("MODICUM_SOAK", "20")
