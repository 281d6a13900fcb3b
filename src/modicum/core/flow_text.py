"""A tree in one line of YAML, for remedies that quote what an author wrote."""

from __future__ import annotations

from modicum.core.document import Entries, Items, Node, Scalar

#: Longer texts are of no help in a message.
CHARACTERS_MAX = 100


def flow_text(node: Node) -> str:
    """Return a tree as YAML in one line; ``…`` where it would be long.

    Args:
        node: The tree.
    """
    written = _flow(node)
    return written if len(written) <= CHARACTERS_MAX else "…"


def _flow(node: Node) -> str:
    match node:
        case Entries(entries=entries):
            pairs = (f"{key.text}: {_flow(value)}" for key, value in entries)
            return "{" + ", ".join(pairs) + "}"
        case Items(items=items):
            return "[" + ", ".join(map(_flow, items)) + "]"
        case Scalar(text=text, quoted=True):
            return f'"{text}"' if '"' not in text else f"'{text}'"
        case Scalar(text=text):
            return text
