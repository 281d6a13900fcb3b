"""A Hasse diagram as SVG, and as DOT for Graphviz.

The SVG needs no external resources, runs nothing, and has a text alternative. Binding
and redundant rules differ in line and shade, never in color alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Sequence
from html import escape
from itertools import pairwise

from modicum.core.errors import printable
from modicum.policy.hasse.diagram import Hasse, HasseNode, HasseRule, summary
from modicum.policy.hasse.layout import Box, Layout, laid_out

#: A longer word is cut in the middle; the full one is in the node's title.
COLUMNS_MAX = 32
#: Maximum number of rules listed in a node.
RULES_SHOWN_MAX = 3

_MARGIN = 24
_LINE_HEIGHT = 15
_COLUMN_WIDTH = 7  # Of a monospaced font of 11 pixels, whichever it is.
_PADDING = 10
_HEAD_HEIGHT = 44
_FOOT_HEIGHT = 34

_STYLE = """\
    text { font: 11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
    .head { font-size: 15px; font-weight: bold; }
    .rule { font-weight: bold; }
    .node rect { fill: #eaf2fb; stroke: #1d4f80; stroke-width: 1.5; }
    .node text { fill: #10202f; }
    .redundant rect { fill: #f3f3f3; stroke: #6b6b6b; stroke-dasharray: 5 3; }
    .redundant text { fill: #565656; }
    .step { fill: none; stroke: #9aa1a9; stroke-width: 1; }
    .way { fill: none; stroke: #1b1b1b; stroke-width: 3; }"""


def to_svg(diagram: Hasse) -> str:
    """Return a diagram as an SVG document."""
    drawn = _drawn(diagram)
    labels = [_lines(node, drawn) for node in diagram.nodes]
    layout = laid_out(diagram, [_size(lines) for lines in labels])
    summary_of = summary(diagram)
    head = _shown(diagram.title)
    columns = max(_columns(summary_of), _columns(head) * 3 // 2, _columns(_LEGEND))
    width = max(layout.width, columns * _COLUMN_WIDTH) + 2 * _MARGIN
    height = layout.height + _HEAD_HEIGHT + _FOOT_HEIGHT + 2 * _MARGIN
    shift = (width - layout.width) // 2, _MARGIN + _HEAD_HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" lang="en"'
        f' aria-labelledby="title summary" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}">',
        f'  <title id="title">{escape(head)}</title>',
        f'  <desc id="summary">{escape(_shown(summary_of))}</desc>',
        f"  <style>\n{_STYLE}\n  </style>",
        f'  <rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'  <text class="head" x="{_MARGIN}" y="{_MARGIN + 12}">{escape(head)}</text>',
        f'  <text x="{_MARGIN}" y="{_MARGIN + 30}">{escape(_shown(summary_of))}</text>',
        f'  <g transform="translate({shift[0]} {shift[1]})">',
        *_step_parts(diagram, layout),
        *(
            part
            for node, lines, box in zip(
                diagram.nodes, labels, layout.boxes, strict=True
            )
            for part in _node_parts(node, lines, box)
        ),
        "  </g>",
        f'  <text x="{_MARGIN}" y="{height - _MARGIN}">{_LEGEND}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


_LEGEND = (
    "up: also counts everything below; gray and dashed: redundant; thick: path to its"
    " witness"
)


def to_dot(diagram: Hasse) -> str:
    """Return a diagram as a DOT document, for Graphviz."""
    lines = [
        f"digraph {_quoted([diagram.title])} {{",
        f"  label={_quoted([summary(diagram)])};",
        "  rankdir=BT;",
        '  node [shape=box, fontname="monospace", fontsize=10, style=filled,'
        ' fillcolor="#eaf2fb", color="#1d4f80", fontcolor="#10202f"];',
        '  edge [arrowhead=none, color="#9aa1a9"];',
    ]
    drawn = _drawn(diagram)
    for place, node in enumerate(diagram.nodes):
        look = (
            ', style="filled,dashed", fillcolor="#f3f3f3", color="#6b6b6b",'
            ' fontcolor="#565656"'
            if node.redundant
            else ""
        )
        label = _quoted([text for text, _ in _lines(node, drawn)])
        tip = _quoted(_node_lines(node))
        lines.append(f"  n{place} [label={label}, tooltip={tip}{look}];")
    for edge in diagram.edges:
        look = ' [penwidth=3, color="#1b1b1b"]' if edge in diagram.ways else ""
        lines.append(f"  n{edge[0]} -> n{edge[1]}{look};")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(lines: Sequence[str]) -> str:
    """Return lines of text as one quoted word of DOT."""
    each = (_shown(one).replace("\\", "\\\\").replace('"', '\\"') for one in lines)
    return '"' + "\\n".join(each) + '"'


# --- node text -----------------------------------------------------------------


def _drawn(diagram: Hasse) -> frozenset[str]:
    return frozenset(rule.id for node in diagram.nodes for rule in node.rules)


def _lines(node: HasseNode, drawn: Collection[str]) -> list[tuple[str, bool]]:
    """Return the lines of a node, and which of them name a rule.

    A witness is named where no path can lead to it.
    """
    lines: list[tuple[str, bool]] = []
    for rule in node.rules[:RULES_SHOWN_MAX]:
        lines.append((_cut(rule.scope), True))
        if rule.context:
            lines.append((_cut(" ".join(f"@{one}" for one in rule.context)), True))
        also = " (redundant)" if rule.witness and not node.redundant else ""
        lines.append((_cut(_bare(rule)) + also, False))
        if rule.witness and rule.witness not in drawn:
            lines.append((_cut(f"by {rule.witness}"), False))
    left = len(node.rules) - RULES_SHOWN_MAX
    if left > 0:
        lines.append((f"and {left} more with the same mechanisms", False))
    return [*lines, (_cut(f"per {node.unit}"), False)]


def _node_lines(node: HasseNode) -> list[str]:
    """Return the full text of a node, a line for each rule."""
    return [
        f"{rule.id}: {_bare(rule)} per {node.unit}, {_standing(rule)}"
        for rule in node.rules
    ]


def _standing(rule: HasseRule) -> str:
    if rule.witness:
        return f"redundant: {rule.witness} denies whatever it denies"
    return "binding"


def _bare(rule: HasseRule) -> str:
    return rule.budget.removeprefix("{").removesuffix("}")


def _shown(text: str) -> str:
    return printable(text)


def _cut(text: str) -> str:
    shown = _shown(text)
    if _columns(shown) <= COLUMNS_MAX:
        return shown
    front, back = 2 * COLUMNS_MAX // 3, COLUMNS_MAX // 3
    start, end = shown, shown
    while _columns(start) > front - 1:
        start = start[:-1]
    while _columns(end) > back:
        end = end[1:]
    return f"{start}…{end}"


def _columns(text: str) -> int:
    """Return the width of a text in a monospaced font."""
    return sum(
        0
        if unicodedata.combining(one)
        else 2
        if unicodedata.east_asian_width(one) in "WF"
        else 1
        for one in text
    )


def _size(lines: Sequence[tuple[str, bool]]) -> tuple[int, int]:
    columns = max(_columns(text) for text, _ in lines)
    return (
        columns * _COLUMN_WIDTH + 2 * _PADDING,
        len(lines) * _LINE_HEIGHT + _PADDING,
    )


# --- drawing -------------------------------------------------------------------


def _step_parts(diagram: Hasse, layout: Layout) -> Iterator[str]:
    """Yield the edges, those on the path to a witness last, on top of the others."""
    for edge in sorted(diagram.edges, key=lambda one: (one in diagram.ways, one)):
        kind = "way" if edge in diagram.ways else "step"
        yield f'    <path class="{kind}" d="{_curve(layout.lines[edge])}"/>'


def _curve(points: Sequence[tuple[int, int]]) -> str:
    """Return a line that is vertical in layers, and bends between them."""
    path = [f"M{points[0][0]} {points[0][1]}"]
    for number, (start, end) in enumerate(pairwise(points)):
        if number % 2:
            half = (start[1] + end[1]) // 2
            path.append(f"C{start[0]} {half} {end[0]} {half} {end[0]} {end[1]}")
        elif start != end:
            path.append(f"L{end[0]} {end[1]}")
    return " ".join(path)


def _node_parts(
    node: HasseNode, lines: Sequence[tuple[str, bool]], box: Box
) -> Iterator[str]:
    yield f'    <g class="node{" redundant" if node.redundant else ""}">'
    yield f"      <title>{escape(_shown_lines(_node_lines(node)))}</title>"
    yield (
        f'      <rect x="{box.left}" y="{box.top}" width="{box.width}"'
        f' height="{box.height}" rx="4"/>'
    )
    for number, (text, names) in enumerate(lines, 1):
        kind = ' class="rule"' if names else ""
        below = box.top + number * _LINE_HEIGHT + 1
        yield (
            f'      <text{kind} x="{box.middle}" y="{below}" text-anchor="middle">'
            f"{escape(text)}</text>"
        )
    yield "    </g>"


def _shown_lines(lines: Sequence[str]) -> str:
    return "\n".join(map(_shown, lines))
