"""Streams under the noise of a binary tree.

A node of level l is a block of 2^l steps that begins at a multiple of 2^l and ends
within the stream. Its sum of x is published with Gaussian noise of its own, when its
last step has ended; a prefix sum is that of the at most 1 + log2(steps) nodes that it
is made of (Dwork, Naor, Pitassi & Rothblum 2010; Chan, Shi & Song 2011). This is
C x + z with a row of C for each node, which is 1 in its steps: the loss is that of
`matrix_factorization`, also for adaptive streams. Nodes that the stream cuts off are
not published: no prefix sum needs them.

The square is the largest sum, over all nodes, of the squared number of steps in the
node that one change takes part in. On level l there are N = floor(steps / 2^l) nodes,
each with at most c = min(participations, ceil(2^l / separation)) of them, and all with
at most k = `participations`. Squares are convex, so their sum is largest if as many
nodes as possible have c, and the next one has the rest. That holds for each level, so
the sum over the levels bounds the square. With separation 1 it is exact: the first k
steps reach it on every level at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from modicum.accounting.curves import Curve
from modicum.accounting.mechanisms.kind import Kind, Values, description
from modicum.accounting.mechanisms.matrix_factorization import (
    SLIPS,
    STREAM,
    participations_within,
    stream_curve,
)
from modicum.core.rationals import Number


def tree_square(*, steps: int, participations: int, separation: int) -> int:
    """Return a bound of the square of a binary tree; exact if the separation is 1.

    Args:
        steps: The number of steps.
        participations: In how many steps one change takes part, at most.
        separation: How far apart these steps are, at least.

    Examples:
        >>> tree_square(steps=8, participations=1, separation=1)
        4
        >>> tree_square(steps=8, participations=8, separation=1)
        120
    """
    count = participations_within(steps, participations, separation)
    total, size = 0, 1
    while size <= steps:
        most = participations_within(size, count, separation)
        full, rest = divmod(count, most)
        nodes = steps // size
        total += min(full, nodes) * most**2 + (rest**2 if full < nodes else 0)
        size *= 2
    return total


def describe_binary_tree(
    *,
    attributes: Sequence[str],
    sensitivity: Mapping[str, object] | None = None,
    steps: int | None = None,
    sigma: Number | None = None,
    **more: object,
) -> dict[str, object]:
    """Describe a stream under the noise of a binary tree.

    Args:
        attributes: Attributes of the data it reads.
        sensitivity: By unit, `l2(…, participations=…)`: the largest L2 change of one
            step, in how many steps, and how far apart these are.
        steps: The number of steps.
        sigma: Standard deviation of the noise of each node.
        more: `name`, `cost`, `where`, `periods`, `groups`, labels and the other
            keys of the release format.

    Examples:
        >>> described = describe_binary_tree(attributes=["age"], steps=92, sigma=20)
        >>> described["mechanism"], described["steps"]
        ('binary-tree', 92)
    """
    return description(
        "binary-tree",
        attributes,
        more,
        sensitivity=sensitivity,
        steps=steps,
        sigma=sigma,
    )


def _build(values: Values) -> Curve:
    square = tree_square(
        steps=int(values["steps"]),
        participations=int(values["participations"]),
        separation=int(values["separation"]),
    )
    return stream_curve(
        square, sensitivity_l2=values["sensitivity"], sigma=values["sigma"]
    )


KINDS = (
    Kind(
        "binary-tree",
        STREAM,
        _build,
        norm="l2",
        measure="rho",
        slips=SLIPS,
    ),
)
