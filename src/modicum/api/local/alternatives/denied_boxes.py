"""Where in its space each rule denies a release: all of the boxes, not the fullest."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from modicum.accounting import Filter, Total
from modicum.api.local.alternatives.trials import Trials
from modicum.api.local.explanation.charges import spent_before
from modicum.ledger.cells.axes import Box, Space
from modicum.ledger.cells.family import Family, Inquiry
from modicum.ledger.cells.partition import Integers, ends_of
from modicum.policy.rules import Stage


class Parted(NamedTuple):
    """What a release reads, divided by where rules deny it.

    Attributes:
        free: What no rule denies; it may still be denied once the rest is left out.
        rest: The rest.
        is_lost: Whether no part of the rest passes, so that nobody needs to try.
    """

    free: list[Box]
    rest: list[Box]
    is_lost: bool


def tells_all(trials: Trials) -> bool:
    """Return whether a point that is denied now is denied in any smaller part.

    It is not where points are pairs, of which one side may be left out; where a
    release is charged to more than it reads; where groups of which more is unlocked
    may be charged like those of which less is; and where a rule looks at a release
    alone.

    Args:
        trials: The release, and the ledger it is tried on.
    """
    verdict, balances = trials.verdict, trials.look.balances
    turns = balances.compiled.policy.rotation is not None
    spaces = {
        loss.rule.unit: balances.family(loss.rule.unit).space
        for loss in verdict.losses
        if not loss.allowed
    }
    return not verdict.rounded and all(
        loss.rule.stage is Stage.HISTORY
        and not spaces[loss.rule.unit].pairs
        and not (turns and spaces[loss.rule.unit].grouped)
        for loss in verdict.losses
        if not loss.allowed
    )


def denied_boxes(trials: Trials) -> Iterator[tuple[Space, Integers]]:
    """Yield the boxes in which rules over history deny a release.

    Args:
        trials: The release, and the ledger it is tried on.

    Yields:
        Where the instances of a unit lie; and by box, axis and end, the points.
    """
    look = trials.look
    rules, compiled = look.balances.compiled.rules, look.balances.compiled
    denying = {
        rules.number(loss.rule.id): compiled.filter_of(loss.rule.budget)
        for loss in trials.verdict.losses
        if not loss.allowed
    }
    for family, inquiry in look.balances.asked(trials.recorded, look.day):
        for charge in inquiry.charges:
            if denying.keys().isdisjoint(charge.numbers):
                continue
            alone = charge.alone.totals()
            spent = spent_before(family, inquiry, charge)
            shares = look.balances.unlocked.pieces(
                family.space, inquiry, family.segments.then(), charge.places
            )
            unlocked = [shares.at(piece) for piece in range(len(alone))]
            for number, before in zip(charge.numbers, spent, strict=True):
                if number in denying:
                    over = _over(denying[number], before, alone, unlocked)
                    places = charge.places[np.array(over, dtype=np.int64)]
                    yield family.space, _boxes(family, inquiry, places)


def _over(
    own_filter: Filter,
    before: list[Total],
    alone: list[Total],
    unlocked: list[Fraction],
) -> list[int]:
    """Return the positions where a filter, as it is unlocked, admits no sum."""
    known: dict[tuple[Total, Total, Fraction], bool] = {}
    found = []
    for position, case in enumerate(zip(before, alone, unlocked, strict=True)):
        if case not in known:
            old, new, share = case
            known[case] = own_filter.unlocked(share).admits(old.joined(new))
        if not known[case]:
            found.append(position)
    return found


def _boxes(family: Family, inquiry: Inquiry, places: Integers) -> Integers:
    """Return all boxes of some pieces of an overlay."""
    overlay, then = inquiry.overlay, family.segments.then()
    segments = overlay.segments[places]
    torn = np.isin(segments, list(overlay.pieces))
    wanted = {
        (int(overlay.segments[place]), tuple(map(bool, overlay.inside[place])))
        for place in places[torn]
    }
    pieces = [
        box
        for segment in dict.fromkeys(segment for segment, _ in wanted)
        for box, sides in overlay.pieces[segment]
        if (segment, sides) in wanted
    ]
    whole = then.ends[np.isin(then.owner, segments[~torn])]
    return np.concatenate([whole, ends_of(pieces)]) if pieces else whole
