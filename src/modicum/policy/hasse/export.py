"""The text in the nodes of a Hasse diagram, and the diagram as DOT for Graphviz."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from modicum.core.diagnostics import cut
from modicum.core.errors import printable
from modicum.policy.hasse.diagram import Hasse, HasseNode, HasseRule, summary

#: A longer word is cut in the middle; the full one is in the node's title.
COLUMNS_MAX = 32
#: Maximum number of rules listed in a node.
RULES_SHOWN_MAX = 3


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
    drawn = rule_ids(diagram)
    for place, node in enumerate(diagram.nodes):
        look = (
            ', style="filled,dashed", fillcolor="#f3f3f3", color="#6b6b6b",'
            ' fontcolor="#565656"'
            if node.redundant
            else ""
        )
        label = _quoted([text for text, _ in node_lines(node, drawn)])
        tip = _quoted(full_lines(node))
        lines.append(f"  n{place} [label={label}, tooltip={tip}{look}];")
    for edge in diagram.edges:
        look = ' [penwidth=3, color="#1b1b1b"]' if edge in diagram.ways else ""
        lines.append(f"  n{edge[0]} -> n{edge[1]}{look};")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(lines: Sequence[str]) -> str:
    """Return lines of text as one quoted word of DOT."""
    each = (printable(one).replace("\\", "\\\\").replace('"', '\\"') for one in lines)
    return '"' + "\\n".join(each) + '"'


# --- node text -----------------------------------------------------------------


def rule_ids(diagram: Hasse) -> frozenset[str]:
    """Return the ids of the rules that a diagram shows."""
    return frozenset(rule.id for node in diagram.nodes for rule in node.rules)


def node_lines(node: HasseNode, drawn: Collection[str]) -> list[tuple[str, bool]]:
    """Return the lines of a node, and which of them name a rule.

    A witness is named where no path can lead to it.
    """
    lines: list[tuple[str, bool]] = []
    for rule in node.rules[:RULES_SHOWN_MAX]:
        lines.append((cut(rule.scope, COLUMNS_MAX), True))
        if rule.context:
            lines.append(
                (cut(" ".join(f"@{one}" for one in rule.context), COLUMNS_MAX), True)
            )
        also = " (redundant)" if rule.witness and not node.redundant else ""
        lines.append((cut(_bare(rule), COLUMNS_MAX) + also, False))
        if rule.witness and rule.witness not in drawn:
            lines.append((cut(f"by {rule.witness}", COLUMNS_MAX), False))
    left = len(node.rules) - RULES_SHOWN_MAX
    if left > 0:
        lines.append((f"and {left} more with the same mechanisms", False))
    return [*lines, (cut(f"per {node.unit}", COLUMNS_MAX), False)]


def full_lines(node: HasseNode) -> list[str]:
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
