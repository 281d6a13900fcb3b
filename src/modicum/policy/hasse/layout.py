"""The layout of a Hasse diagram: in layers, with few crossings.

The usual four steps for layered graphs: each node goes right below the lowest of those
above it; an edge across several layers gets a joint in each layer between; the order in
a layer follows the median of the neighbors; and so do, finally, the coordinates.
Integers only, so that a policy always gives the same picture.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from modicum.policy.hasse.diagram import Edge, Hasse

#: Sweeps over all layers that look for fewer crossings, and for straighter lines.
SWEEPS = 24
STRAIGHTENING_SWEEPS = 12
#: Free space between neighbors of a layer, between layers, and around the picture.
GAP = 18
ROW_GAP = 64
#: The space for a line where it passes a layer.
JOINT_WIDTH = 8
#: Resolution of means of coordinates.
PARTS = 1024


@dataclass(frozen=True, slots=True)
class Box:
    """The place of a node: its left upper corner and its size."""

    left: int
    top: int
    width: int
    height: int

    @property
    def middle(self) -> int:
        """The point where lines meet it."""
        return self.left + self.width // 2


@dataclass(frozen=True, slots=True)
class Layout:
    """Coordinates of all nodes and lines.

    Attributes:
        width: Of the whole picture, without a margin.
        height: Of the whole picture, without a margin.
        boxes: For each node, its place.
        lines: For each edge, points from the lower node up to the upper one, two for
            each layer: there it is vertical. It bends between layers only.
    """

    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: Mapping[Edge, tuple[tuple[int, int], ...]]


def laid_out(diagram: Hasse, sizes: Sequence[tuple[int, int]]) -> Layout:
    """Return the layout.

    Args:
        diagram: The diagram.
        sizes: For each node, its width and height.
    """
    graph = _Graph(diagram, sizes)
    graph.order()
    centers = graph.centers()
    heights = [max((graph.height(v) for v in row), default=0) for row in graph.rows]
    tops = [sum(heights[:n]) + ROW_GAP * n for n in range(len(heights))]
    boxes = tuple(
        Box(
            left=centers[node] - width // 2,
            top=tops[graph.layer[node]] + (heights[graph.layer[node]] - height) // 2,
            width=width,
            height=height,
        )
        for node, (width, height) in enumerate(sizes)
    )
    rows = [(top, top + height) for top, height in zip(tops, heights, strict=True)]
    lines = {}
    for edge, joints in graph.joints.items():
        lower, upper = boxes[edge[0]], boxes[edge[1]]
        points = [
            (lower.middle, lower.top),
            (lower.middle, rows[graph.layer[edge[0]]][0]),
        ]
        for joint in joints:
            top, bottom = rows[graph.layer[joint]]
            points += [(centers[joint], bottom), (centers[joint], top)]
        bottom = rows[graph.layer[edge[1]]][1]
        points += [(upper.middle, bottom), (upper.middle, upper.top + upper.height)]
        lines[edge] = tuple(points)
    return Layout(
        width=max(
            [
                *(box.left + box.width for box in boxes),
                *(x + JOINT_WIDTH for points in lines.values() for x, _ in points),
            ],
            default=0,
        ),
        height=tops[-1] + heights[-1] if tops else 0,
        boxes=boxes,
        lines=lines,
    )


class _Graph:
    """Nodes and joints in rows. Nodes are numbered as given, joints after them."""

    def __init__(self, diagram: Hasse, sizes: Sequence[tuple[int, int]]) -> None:
        self._sizes = sizes
        self.layer = _layers(diagram)
        self.rows: list[list[int]] = [
            [] for _ in range(max(self.layer, default=-1) + 1)
        ]
        for node, layer in enumerate(self.layer):
            self.rows[layer].append(node)
        self.joints: dict[Edge, list[int]] = {}
        self._above: dict[int, list[int]] = {}
        self._below: dict[int, list[int]] = {}
        for edge in diagram.edges:
            self.joints[edge] = self._joined(edge)

    def _joined(self, edge: Edge) -> list[int]:
        """Return new joints for an edge, from its lower end to its upper end."""
        lower, upper = edge
        joints = []
        here = lower
        for layer in range(self.layer[lower] - 1, self.layer[upper], -1):
            joint = len(self.layer)
            self.layer.append(layer)
            self.rows[layer].append(joint)
            self._link(here, joint)
            joints.append(joint)
            here = joint
        self._link(here, upper)
        return joints

    def _link(self, lower: int, upper: int) -> None:
        self._above.setdefault(lower, []).append(upper)
        self._below.setdefault(upper, []).append(lower)

    def height(self, vertex: int) -> int:
        return self._sizes[vertex][1] if vertex < len(self._sizes) else 0

    def _width(self, vertex: int) -> int:
        return self._sizes[vertex][0] if vertex < len(self._sizes) else JOINT_WIDTH

    def order(self) -> None:
        """Order the rows so that few lines cross."""
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            neighbors = self._above if down else self._below
            for row in self.rows if down else reversed(self.rows):
                self._sort(row, neighbors)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(one) for one in self.rows], crossings
        self.rows = best

    def _sort(self, row: list[int], neighbors: Mapping[int, Sequence[int]]) -> None:
        """Sort a row by the middle of the neighbors; who has none keeps its place."""
        at = self._places()
        means = {
            vertex: sum(PARTS * at[n] for n in neighbors[vertex])
            // len(neighbors[vertex])
            for vertex in row
            if vertex in neighbors
        }
        moving = iter(sorted(means, key=lambda vertex: (means[vertex], at[vertex])))
        row[:] = [next(moving) if vertex in means else vertex for vertex in row]

    def _places(self) -> dict[int, int]:
        return {vertex: place for row in self.rows for place, vertex in enumerate(row)}

    def _crossings(self) -> int:
        at = self._places()
        crossings = 0
        for row in self.rows:
            passed: list[int] = []
            for vertex in row:
                ends = [at[upper] for upper in self._above.get(vertex, ())]
                crossings += sum(len(passed) - bisect_right(passed, e) for e in ends)
                for end in ends:
                    insort(passed, end)
        return crossings

    def centers(self) -> list[int]:
        """Return for each vertex the middle of its place, the leftmost box at 0."""
        at = [0] * len(self.layer)
        for row in self.rows:
            for vertex, center in zip(
                row, self._apart(row, [0] * len(row)), strict=True
            ):
                at[vertex] = center
        for sweep in range(STRAIGHTENING_SWEEPS):
            neighbors = (self._above, self._below)[sweep % 2]
            for row in reversed(self.rows) if sweep % 2 else self.rows:
                wanted = [_mean([at[n] for n in neighbors.get(v, [v])]) for v in row]
                for vertex, center in zip(row, self._apart(row, wanted), strict=True):
                    at[vertex] = center
        left = min((at[v] - self._width(v) // 2 for v in range(len(at))), default=0)
        return [center - left for center in at]

    def _apart(self, row: Sequence[int], wanted: Sequence[int]) -> list[int]:
        """Return coordinates near the wanted ones, in order and far enough apart.

        With the needed distances subtracted, the coordinates must only not decrease;
        the nearest such coordinates result from joining neighbors that decrease until
        none do.
        """
        offsets, reached = [], 0
        for place, vertex in enumerate(row):
            if place:
                needed = self._width(row[place - 1]) + self._width(vertex)
                reached += -(-needed // 2) + GAP
            offsets.append(reached)
        blocks: list[tuple[int, int]] = []  # A sum and its number of terms.
        for want, offset in zip(wanted, offsets, strict=True):
            total, count = want - offset, 1
            while blocks and blocks[-1][0] * count > total * blocks[-1][1]:
                before, many = blocks.pop()
                total, count = total + before, count + many
            blocks.append((total, count))
        return [
            start + offset for start, offset in zip(_flat(blocks), offsets, strict=True)
        ]


def _flat(blocks: Sequence[tuple[int, int]]) -> Iterator[int]:
    for total, count in blocks:
        yield from [total // count] * count


def _mean(values: Sequence[int]) -> int:
    return sum(values) // len(values)


def _layers(diagram: Hasse) -> list[int]:
    """Return for each node the length of the longest path up from it."""
    upper = diagram.upper()
    layers: dict[int, int] = {}
    waiting = list(range(len(diagram.nodes)))
    while waiting:
        node = waiting[-1]
        unknown = [one for one in upper.get(node, ()) if one not in layers]
        if unknown:
            waiting += unknown
            continue
        layers[node] = max((layers[one] + 1 for one in upper.get(node, ())), default=0)
        waiting.pop()
    return [layers[node] for node in range(len(diagram.nodes))]
