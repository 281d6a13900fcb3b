"""Keys that stand on the wrong level of a query file, and files that are no query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from modicum.core.diagnostics import Problems, fail
from modicum.core.document import Entries, Node, Scalar
from modicum.core.errors import Code, Problem
from modicum.query.request_format import QUERY_KEYS
from modicum.release.vocabulary import METADATA, PAST_METADATA, Vocabulary

_UNDER: Final = QUERY_KEYS | {"tables"}
_BESIDE: Final = frozenset(
    ("release", "utility", "where", "periods", "groups", "sampling")
)


def refuse_misplaced(node: Node, vocabulary: Vocabulary) -> None:
    """Refuse keys of `query` beside it, and keys of a release under it.

    Args:
        node: The query file.
        vocabulary: The words of the policy; a label stands beside `query`.

    Raises:
        InputError: With each of them, or if the file is of another kind.
    """
    if not isinstance(node, Entries):
        return
    found = Problems()
    for key, value in node.entries:
        if key.text == "modicum" and isinstance(value, Scalar):
            raise fail(
                Code.UNKNOWN_KEY,
                f"`modicum: {value.text[:40]}` begins a file of another kind than a"
                " query",
                key,
                help="name the query file: it has  release: ID  and  query: …",
            )
    for problem in (*_above(node, vocabulary), *_below(node, vocabulary)):
        found.add(problem)
    found.raise_any()


def _above(node: Entries, vocabulary: Vocabulary) -> Iterator[Problem]:
    for key, _ in node.entries:
        if key.text in _UNDER and key.text not in vocabulary.labels:
            yield Problem(
                Code.UNKNOWN_KEY,
                f"`{key.text}` stands beside `query`, and belongs under it",
                key.mark,
                help=f"indent `{key.text}` below  query:",
            )


def _below(node: Entries, vocabulary: Vocabulary) -> Iterator[Problem]:
    beside = _BESIDE.union(METADATA, PAST_METADATA, vocabulary.labels) - _UNDER
    for name, value in node.entries:
        if name.text != "query" or not isinstance(value, Entries):
            continue
        for key, _ in value.entries:
            if key.text in beside:
                yield Problem(
                    Code.UNKNOWN_KEY,
                    f"`{key.text}` stands under `query`, and belongs beside it",
                    key.mark,
                    help=f"write `{key.text}` without indentation",
                )
