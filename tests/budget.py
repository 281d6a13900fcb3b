"""How many examples a property test draws; the one place that reads MODICUM_SOAK."""

from __future__ import annotations

import os

_FACTOR = 10 if os.environ.get("MODICUM_SOAK") else 1


def examples(n: int) -> int:
    """Return `n`, or ten times as many when the environment asks for a soak."""
    return n * _FACTOR
