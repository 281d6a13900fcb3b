"""Text for people."""

from __future__ import annotations

from collections.abc import Sequence


def shortened(names: Sequence[str], most: int = 5) -> str:
    """Return names separated by commas, the first of them if there are too many.

    Args:
        names: The names.
        most: How many to show.
    """
    left = len(names) - most
    return ", ".join(names[:most]) + (f" and {left} more" if left > 0 else "")
