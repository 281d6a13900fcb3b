"""Where the ledger may divide what a denied release reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modicum.api.local.alternatives.trials import Trials
from modicum.ledger.cells.axes import Box, Space


def denying_spaces(trials: Trials) -> Iterator[tuple[str, Space]]:
    """Yield the rules that deny a release, and where their units lie.

    Args:
        trials: The release, and the ledger it is tried on.
    """
    for loss in trials.verdict.losses:
        if not loss.allowed:
            yield loss.rule.id, trials.look.balances.family(loss.rule.unit).space


def edges(trials: Trials, unit: str, axis: int) -> set[int]:
    """Return the numbers along an axis at which segments of a unit begin.

    Args:
        trials: What lends the ledger.
        unit: The unit.
        axis: Which axis of its space.
    """
    ends = trials.look.balances.family(unit).segments.then().ends[:, axis]
    return {*ends[:, 0].tolist(), *(ends[:, 1] + 1).tolist()}


def halved(box: Box, cuts: Sequence[Sequence[int]]) -> tuple[Box, ...]:
    """Return a box in two, cut in the middle of the axis that has the most cuts.

    Args:
        box: The box.
        cuts: By axis, the numbers at which a cut may lie before, rising.

    Returns:
        Nothing if no cut lies inside.

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
