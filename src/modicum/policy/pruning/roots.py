"""From whoever covers a rule to a kept rule that does."""

from __future__ import annotations

import numpy as np

from modicum.policy.pruning.lists import Integers

#: In place of a witness: the rule is kept.
KEPT = -1


def roots(covered_by: Integers) -> Integers:
    """Return for each rule the kept rule at the end of its chain of witnesses.

    Covering is transitive, so the last rule of a chain covers all others. A circle
    of rules, all of which cover each other, comes up only where some implication
    stayed undecided; its first rule is kept, and so nothing is lost.

    Args:
        covered_by: For each rule the number of another one, or `KEPT`.

    Returns:
        For each rule the number of a kept rule, or `KEPT`.
    """
    found = covered_by.copy()
    # Every round doubles the steps; a chain without a circle is no longer than this.
    for _ in range(covered_by.size.bit_length()):
        unsettled = np.flatnonzero((found >= 0) & (found[found] >= 0))
        if not unsettled.size:
            return found
        found[unsettled] = found[found[unsettled]]
    unsettled = np.flatnonzero((found >= 0) & (found[found] >= 0))
    return roots(_opened(covered_by, unsettled)) if unsettled.size else found


def _opened(covered_by: Integers, unsettled: Integers) -> Integers:
    """Return the chains with the first rule of every circle kept.

    Args:
        covered_by: The chains.
        unsettled: Rules whose chains end in a circle.
    """
    opened = covered_by.copy()
    settled: set[int] = set()
    for start in unsettled.tolist():
        path: dict[int, None] = {}
        here = start
        while here not in path and here not in settled:
            path[here] = None
            here = int(covered_by[here])
        if here in path:
            walked = list(path)
            opened[min(walked[walked.index(here) :])] = KEPT
        settled.update(path)
    return opened
