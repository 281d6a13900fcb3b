"""How many examples a property test draws, and from which seed.

MODICUM_SOAK asks for a soak, and is its seed. What every change runs draws a part of
the examples that the whole suite draws.
"""

from __future__ import annotations

import os

#: The whole suite draws so many times as many as what every change runs.
WHOLE = 8
#: Set where a part is drawn, for this process and those that it starts.
PART = "MODICUM_DRAW_A_PART"
_FACTOR = 10 if os.environ.get("MODICUM_SOAK") else 1
_LEAST = 6


def examples(n: int, plain: int | None = None) -> int:
    """Return `n`, ten times as many in a soak, or a part where a part is asked for.

    Args:
        n: How many the whole suite draws.
        plain: How many it draws instead, where each one takes its time.
    """
    if _FACTOR > 1:
        return n * _FACTOR
    most = n if plain is None else plain
    return min(most, max(_LEAST, most // WHOLE)) if PART in os.environ else most


def counted(n: int, plain: int | None = None) -> int:
    """Return `n`, or ten times as many in a soak: a test that counts what it saw.

    Args:
        n: How many every run draws.
        plain: How many it draws instead, where each one takes its time.
    """
    return n * _FACTOR if _FACTOR > 1 or plain is None else plain


def seed() -> str:
    """Return the seed: the same on every plain run, another one on every soak."""
    return os.environ.get("MODICUM_SOAK", "20")
