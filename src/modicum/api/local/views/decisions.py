"""Decisions with their prose, as answers show them."""

from __future__ import annotations

from msgspec.structs import replace

from modicum.api.local.decision import Decision, LossesTold
from modicum.api.local.explanation.remedies import Explanation, Options
from modicum.api.schema import release as schema
from modicum.api.schema.ledger import Head


def decision_view(
    decision: Decision,
    found: Explanation | None = None,
    *,
    words: bool = False,
    losses: LossesTold = "all",
) -> schema.Decision:
    """Return a decision, with why it is denied.

    Args:
        decision: The decision.
        found: Why it is denied; None if that was not looked up.
        words: Whether to add the text; then all losses are included.
        losses: Which rules to include.
    """
    shown = decision.view(found, losses="all" if words else losses)
    if not words:
        return shown
    added = None if found is None else found.words
    return replace(shown, words=replace(decision.words, added=added))


def options_view(decision: Decision, found: Options) -> schema.Options:
    """Return the single changes after which a release would be allowed."""
    return schema.Options(
        decision="allow" if decision.allowed else "deny",
        release=decision.release,
        options=tuple(one.view for one in found),
        ended_early=found.ended_early,
        ledger=Head(seq=decision.seq, head=decision.head),
    )
