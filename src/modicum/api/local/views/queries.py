"""Public forms of private queries: their plans."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from modicum.api.local.explanation.release_text import release_text, written
from modicum.api.schema import release as schema
from modicum.core.rationals import brief, number_text
from modicum.query.explanation import computed, derivation, errors_of
from modicum.query.query_file import QueryFile


def plan_view(query: QueryFile, decision: schema.Decision) -> schema.QueryPlan:
    """Return the plan of a query."""
    compiled = query.compiled
    return schema.QueryPlan(
        release=query.heading.id,
        file=release_text(written(query.described)),
        allowed=decision.decision == "allow",
        noise=compiled.request.noise,
        mechanisms=tuple(
            schema.PlannedMechanism(
                name=line.name,
                serves=tuple(line.serves),
                scale=number_text(line.scale),
                losses=_texts(computed(compiled, line)),
            )
            for line in compiled.lines
        ),
        keys=_keys_view(query),
        expected=tuple(
            schema.ExpectedError(
                aggregate=one.aggregate,
                keys=one.keys,
                half_width=number_text(one.half_width),
                per=one.per,
            )
            for one in errors_of(compiled, query.confidence)
        ),
        derivation=tuple(derivation(compiled)),
        notes=notes_of(query),
        decision=decision,
    )


def _keys_view(query: QueryFile) -> schema.KeySelection | None:
    """Return the mechanism that selects keys; None if they are public."""
    selection = query.compiled.selection
    if selection is None:
        return None
    return schema.KeySelection(
        name=selection.name,
        scale=number_text(selection.scale),
        threshold=selection.threshold,
        losses={
            unit: schema.KeyLoss(eps=brief(eps), delta=brief(selection.delta[unit]))
            for unit, eps in selection.eps.items()
        },
    )


def notes_of(query: QueryFile) -> tuple[str, ...]:
    """Return what the losses in the plan of a query leave out."""
    if query.compiled.request.sampling is None:
        return ()
    return (
        "losses of mechanisms are without amplification; rules charge the amplified"
        " loss",
    )


def _texts(losses: Mapping[str, Fraction]) -> dict[str, str]:
    return {unit: brief(loss) for unit, loss in losses.items()}
