"""The rules of a policy as a Hasse diagram: above a rule is what counts more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise

from modicum.core.diagnostics import columns, cut
from modicum.policy.hasse.diagram import Hasse, HasseNode, refuse_crowded, summary
from modicum.policy.hasse.export import full_lines, node_lines, rule_ids
from modicum.policy.hasse.layout import Box, Layout, laid_out
from modicum.reports.charts import svg
from modicum.reports.charts.chart import Chart, chart
from modicum.reports.markup import Markup, element

_MARGIN, _HEAD, _FOOT = 24, 44, 34
_LINE, _PADDING = 15, 10
_COLUMN = 7  # Of a monospaced font of 11 pixels, whichever it is.
_FONT = 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace'
_LEGEND = (
    "up: also counts everything below; gray and dashed: redundant; thick: path to its"
    " witness"
)


def hasse_chart(
    diagram: Hasse,
    *,
    name: str = "rules",
    link: Callable[[str], str] | None = None,
    selected: Collection[str] = (),
) -> Chart:
    """Return a chart of which rule counts all that another one counts.

    Args:
        diagram: The rules.
        name: Begins the ids in the picture.
        link: The address of a rule's page by the rule's id; None without links.
        selected: The ids of the rules to highlight.

    Raises:
        InputError: If there are too many rules to be readable.
    """
    refuse_crowded(diagram)
    drawn = rule_ids(diagram)
    texts = [node_lines(node, drawn) for node in diagram.nodes]
    layout = laid_out(diagram, [_size(lines) for lines in texts])
    title, sentence = cut(diagram.title, svg.TITLE_MAX), summary(diagram)
    needed = max(columns(sentence), columns(title) * 3 // 2, columns(_LEGEND)) * _COLUMN
    width = max(layout.width, needed) + 2 * _MARGIN
    height = layout.height + _HEAD + _FOOT + 2 * _MARGIN
    shift = f"translate({(width - layout.width) // 2} {_MARGIN + _HEAD})"
    nodes = (
        _node(node, lines, box, link, selected)
        for node, lines, box in zip(diagram.nodes, texts, layout.boxes, strict=True)
    )
    return chart(
        *(name, diagram.title, sentence, (_HEADINGS, tuple(_rows(diagram))), height),
        svg.words(_MARGIN, _MARGIN + 12, title, font_weight="bold", font_size="15"),
        svg.words(_MARGIN, _MARGIN + 30, sentence),
        element("g", *_edges(diagram, layout), *nodes, transform=shift),
        svg.words(_MARGIN, height - _MARGIN, _LEGEND),
        width=width,
        # What is one image has no links in it.
        role="group" if link else "img",
        class_="chart wide",
        font_family=_FONT,
        font_size="11",
    )


_HEADINGS = ("Rule", "Unit", "Budget", "State", "Right below")


def _rows(diagram: Hasse) -> Iterator[tuple[str, ...]]:
    upper = diagram.upper()
    for place, node in enumerate(diagram.nodes):
        above = [diagram.nodes[one].rules[0].id for one in upper.get(place, ())]
        for rule in node.rules:
            state = f"redundant by {rule.witness}" if rule.witness else "binding"
            yield rule.id, node.unit, rule.budget, state, ", ".join(above)


def _size(lines: Sequence[tuple[str, bool]]) -> tuple[int, int]:
    widest = max(columns(text) for text, _ in lines)
    return widest * _COLUMN + 2 * _PADDING, len(lines) * _LINE + _PADDING


def _edges(diagram: Hasse, layout: Layout) -> Iterator[Markup]:
    """Yield the edges, those on the path to a witness last, on top of the others."""
    for edge in sorted(diagram.edges, key=lambda one: (one in diagram.ways, one)):
        way = edge in diagram.ways
        yield element(
            "path",
            d=_curve(layout.lines[edge]),
            fill="none",
            stroke="currentColor",
            stroke_width="3" if way else "1",
            **svg.paint("ink way" if way else "soft step"),
        )


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


def _node(
    node: HasseNode,
    lines: Sequence[tuple[str, bool]],
    box: Box,
    link: Callable[[str], str] | None,
    selected: Collection[str],
) -> Markup:
    chosen = any(rule.id in selected for rule in node.rules)
    kind = "soft redundant" if node.redundant else "fill binding"
    look = {"stroke": "currentColor", "fill_opacity": "0.12", "rx": "4"}
    look["stroke_width"] = "4" if chosen else "1.5"
    if node.redundant:
        look["stroke_dasharray"] = "5 3"
    drawn = element(
        "g",
        element("title", "\n".join(full_lines(node))),
        svg.rectangle(
            (box.left, box.top, box.width, box.height),
            f"{kind} node{' selected' if chosen else ''}",
            **look,
        ),
        *(
            svg.words(
                *(box.middle, box.top + row * _LINE + 1, text),
                "soft" if node.redundant else "ink",
                text_anchor="middle",
                font_weight="bold" if names else "normal",
            )
            for row, (text, names) in enumerate(lines, 1)
        ),
    )
    if link is None:
        return drawn
    return element("a", drawn, href=link(node.rules[0].id))
