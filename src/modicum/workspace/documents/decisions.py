"""Decisions as plain JSON, and in words."""

from __future__ import annotations

from msgspec.structs import replace

from modicum.api.schema.shape import plain
from modicum.workspace.decision import Decision, LossesTold
from modicum.workspace.explaining.fits import Explanation


def decision_to_dict(
    decision: Decision,
    found: Explanation | None = None,
    *,
    words: bool = False,
    losses: LossesTold = "all",
) -> dict[str, object]:
    """Return a decision, with what was found about it.

    Args:
        decision: The decision.
        found: What the log tells about it; None for nothing.
        words: Whether to tell it in words, too; then all losses are told.
        losses: Which rules are told of.
    """
    told = decision.to_dict(losses="all" if words else losses)
    if found is not None:
        told["explanation"] = found.to_dict()
    if words:
        added = None if found is None else found.words
        told["words"] = plain(replace(decision.words, added=added))
    return told
