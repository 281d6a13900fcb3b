"""The boxes in which each rule denies a release: all, not only the fullest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import prod
from typing import NamedTuple

import numpy as np

from modicum.accounting import Filter, Total
from modicum.api.local.alternatives.trials import Trials
from modicum.api.local.explanation.charges import spent_before
from modicum.ledger.cells.axes import Box, Space
from modicum.ledger.cells.family import Family, ReleaseCosts
from modicum.ledger.cells.partition import Integers, ends_of
from modicum.policy.rules import Stage
from modicum.release import Span
from modicum.release.parts import merged


class Parted(NamedTuple):
    """The data of a release, divided by where rules deny it.

    Attributes:
        free: The part that no rule denies; it may still be denied once the rest is left
            out.
        rest: The rest.
        is_lost: Whether no part of the rest can be allowed, so that no search is
            needed.
    """

    free: list[Box]
    rest: list[Box]
    is_lost: bool


def is_denied_throughout(trials: Trials) -> bool:
    """Return whether a point that is denied now is denied in any smaller part.

    It is not where points are pairs, of which one side may be left out; where a release
    is charged to more than it reads; where groups with more unlocked may be charged
    like those with less; and where a rule applies to each release alone.
    """
    verdict, balances = trials.verdict, trials.head_view.balances
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
    """Yield the boxes in which rules over history deny a release."""
    head_view = trials.head_view
    rules, compiled = head_view.balances.compiled.rules, head_view.balances.compiled
    denying = {
        rules.number(loss.rule.id): compiled.filter_of(loss.rule.budget)
        for loss in trials.verdict.losses
        if not loss.allowed
    }
    for family, inquiry in head_view.balances.charges_of(
        trials.recorded, head_view.day
    ):
        for charge in inquiry.charges:
            if denying.keys().isdisjoint(charge.numbers):
                continue
            alone = charge.alone.totals()
            spent = spent_before(family, inquiry, charge)
            shares = head_view.balances.unlocked.pieces(
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


def _boxes(family: Family, inquiry: ReleaseCosts, places: Integers) -> Integers:
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


def denying_spaces(trials: Trials) -> Iterator[tuple[str, Space]]:
    """Yield the rules that deny a release, and where their units lie."""
    for loss in trials.verdict.losses:
        if not loss.allowed:
            yield loss.rule.id, trials.head_view.balances.family(loss.rule.unit).space


def edges(trials: Trials, unit: str, axis: int) -> set[int]:
    """Return the numbers along an axis at which segments of a unit begin."""
    ends = trials.head_view.balances.family(unit).segments.then().ends[:, axis]
    return {*ends[:, 0].tolist(), *(ends[:, 1] + 1).tolist()}


def halved(box: Box, cuts: Sequence[Sequence[int]]) -> tuple[Box, ...]:
    """Return a box in two, cut in the middle of the axis that has the most cuts.

    Examples:
        >>> halved(((0, 9), (0, 9)), [[5], [2, 4, 12]])
        (((0, 9), (0, 3)), ((0, 9), (4, 9)))
    """
    inner = [
        [cut for cut in own if low < cut <= high]
        for own, (low, high) in zip(cuts, box, strict=True)
    ]
    axis = max(range(len(box)), key=lambda one: len(inner[one]), default=0)
    if not box or not inner[axis]:
        return ()
    low, high = box[axis]
    cut = inner[axis][len(inner[axis]) // 2]
    before, after = box[:axis], box[axis + 1 :]
    return (*before, (low, cut - 1), *after), (*before, (cut, high), *after)


#: Space is not sliced more finely than this: that would take seconds.
_SLICES_MAX = 5000


def remainder(own: Integers, taken: Integers, most: int) -> list[Box] | None:
    """Return disjoint boxes that cover the difference of two sets of boxes.

    Space is sliced along its last axis first, wherever something begins or ends
    there; slices that are alike and touch are one. On the first axis boxes are as
    long as they can be.

    Examples:
        >>> square = np.array([[(0, 9), (0, 9)]])
        >>> remainder(square, np.array([[(2, 3), (5, 9)]]), 10)
        [((0, 9), (0, 4)), ((0, 1), (5, 9)), ((4, 9), (5, 9))]
    """
    ends = np.concatenate([own, taken]) + np.array([0, 1])
    if prod(len(np.unique(one)) for one in ends.swapaxes(0, 1)[1:]) > _SLICES_MAX:
        return None
    found: list[Box] = []
    for box in _sliced(np.unique(own, axis=0), np.unique(taken, axis=0)):
        if len(found) == most:
            return None
        found.append(box)
    return found


def _sliced(own: Integers, taken: Integers) -> Iterator[Box]:
    if own.shape[1] == 1:
        spans = (
            [(low, high) for low, high in one[:, 0].tolist()] for one in (own, taken)
        )
        yield from (((low, high),) for low, high in apart(*spans))
        return
    alike: list[Span] = []
    before: tuple[Box, ...] = ()
    for span in _slices(own[:, -1], taken[:, -1]):
        inner = tuple(_sliced(_within(own, span), _within(taken, span)))
        if inner != before:
            yield from _thick(before, alike)
            before, alike = inner, []
        alike.append(span)
    yield from _thick(before, alike)


def _within(boxes: Integers, span: Span) -> Integers:
    """Return the boxes that hold a span of the last axis, without that axis."""
    low, high = span
    holds = (boxes[:, -1, 0] <= low) & (boxes[:, -1, 1] >= high)
    found: Integers = np.unique(boxes[holds, :-1], axis=0)
    return found


def _thick(inner: tuple[Box, ...], spans: list[Span]) -> Iterator[Box]:
    """Yield boxes that reach over spans of one more axis."""
    yield from ((*box, span) for span in merged(spans) for box in inner)


def _slices(own: Integers, taken: Integers) -> Iterator[Span]:
    """Yield spans in which nothing begins or ends, of those that are not empty."""
    ends = np.unique(np.concatenate([own, taken]) + np.array([0, 1]))
    for low, after in zip(ends.tolist(), ends[1:].tolist(), strict=False):
        if ((own[:, 0] <= low) & (own[:, 1] >= low)).any():
            yield low, after - 1


def apart(own: Iterable[Span], taken: Iterable[Span]) -> Iterator[Span]:
    """Yield the difference of two sets of spans, as spans that do not touch.

    Examples:
        >>> list(apart([(1, 3), (4, 9)], [(8, 20), (2, 2)]))
        [(1, 1), (3, 7)]
    """
    gone = merged(list(taken))
    for low, high in merged(list(own)):
        start = low
        for first, last in gone:
            if last >= start and first <= high:
                if first > start:
                    yield start, first - 1
                start = last + 1
        if start <= high:
            yield start, high
