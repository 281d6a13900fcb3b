"""Reading a query file: a release with `query` in place of its mechanisms."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from modicum.core.diagnostics import Problems, fail
from modicum.core.document import Entries, Node, Scalar, from_python
from modicum.core.errors import Code, Problem
from modicum.core.reader import Fields, text
from modicum.query.compiler import CompiledQuery, compile_query
from modicum.query.explanation import explanation, headline
from modicum.query.request import QueryRequest
from modicum.query.request_format import QUERY_KEYS, read_request
from modicum.query.statistics import Secrets
from modicum.query.tables import Tables
from modicum.release.header import Header
from modicum.release.parser import parse_heading
from modicum.release.vocabulary import METADATA, PAST_METADATA, Vocabulary

_UNDER: Final = QUERY_KEYS | {"tables"}
_BESIDE: Final = frozenset(
    ("release", "utility", "where", "periods", "groups", "sampling")
)


def refuse_misplaced(node: Node, vocabulary: Vocabulary) -> None:
    """Refuse keys of `query` beside it, and keys of a release under it.

    Args:
        node: The query file.
        vocabulary: The vocabulary of the policy; labels are beside `query`.

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
                f"`modicum: {value.text[:40]}` is the header of another kind of file",
                key,
                help="use the query file: it has  release: ID  and  query: …",
            )
    for problem in (*_above(node, vocabulary), *_below(node, vocabulary)):
        found.add(problem)
    found.raise_any()


def _above(node: Entries, vocabulary: Vocabulary) -> Iterator[Problem]:
    for key, _ in node.entries:
        if key.text in _UNDER and key.text not in vocabulary.labels:
            yield Problem(
                Code.UNKNOWN_KEY,
                f"`{key.text}` is next to `query`, and belongs under it",
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
                    f"`{key.text}` is under `query`, and belongs next to it",
                    key.mark,
                    help=f"write `{key.text}` without indentation",
                )


@dataclass(frozen=True, slots=True)
class QueryFile:
    """A query file, read: a future release, and the form of its answers.

    Attributes:
        heading: The heading of the release.
        request: The query, its bounds and its noise.
        confidence: The confidence of its answers' intervals.
        compiled: The query as mechanisms.
        described: The release, as a tree.
        policy: The digest of the policy that all of this was computed under.
        file: The query file, as it was read.
    """

    heading: Header
    request: QueryRequest
    confidence: Fraction
    compiled: CompiledQuery
    described: Node
    policy: str
    file: Node

    def explain(self) -> str:
        """Return its cost for each unit, and the errors of its answers, as text."""
        return explanation(self.heading.id, self.compiled, self.confidence)

    def __repr__(self) -> str:
        return f"<{headline(self.heading.id, self.compiled)}>"

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.explain())}</pre>"


def tables_named(node: Node, vocabulary: Vocabulary) -> Scalar:
    """Return the path of the tables file that a query file names.

    Raises:
        InputError: If it names none, or has keys on the wrong level.
    """
    refuse_misplaced(node, vocabulary)
    begin = "start with  release: ID  , and write the query under  query:"
    query = Fields(_query_of(Fields(node, "the query file", help=begin)), "`query`")
    path = query.take("tables", help="add  tables: FILE")
    text(path, "`tables`")
    assert isinstance(path, Scalar)  # It is a text.
    return path


def read_query_file(
    node: Node,
    tables: Tables,
    vocabulary: Vocabulary,
    policy: str,
    *,
    variant_of: QueryFile | None = None,
) -> QueryFile:
    """Return a query file, with its query as mechanisms.

    Args:
        node: The file.
        tables: The declarations of its tables.
        vocabulary: The vocabulary of the policy.
        policy: Its digest.
        variant_of: A query file that was read. A plan equal to its own is not
            checked again.

    Raises:
        InputError: With the mistakes found.
    """
    found = Problems()
    fields = Fields(node, "the query file")
    inner = None
    with found.guard():  # First: the heading of a release has a digest of this name.
        inner = Fields(_query_of(fields), "`query`")
    heading = parse_heading(fields, vocabulary, found)
    with found.guard():
        fields.finish()
    found.raise_any()
    assert inner is not None  # Else its absence was raised.
    inner.take_optional("tables")
    request, confidence, identity = read_request(inner, heading, tables, vocabulary)
    compiled = compile_query(request, vocabulary)
    if variant_of is None or compiled.plan != variant_of.compiled.plan:
        from modicum.query.sql.statements import statements

        statements(compiled.plan, Secrets("00"))  # Refuses unsupported queries.
    described = _described(node, compiled, identity)
    return QueryFile(heading, request, confidence, compiled, described, policy, node)


def _query_of(fields: Fields) -> Node:
    return fields.take("query", help="a release without `query` needs no query file")


def _described(node: Node, compiled: CompiledQuery, identity: str) -> Node:
    """Return the release of a query file: a digest replaces `query`."""
    assert isinstance(node, Entries)  # It was read as one.
    added = from_python({"query": identity, "mechanisms": compiled.mechanisms()})
    assert isinstance(added, Entries)
    kept = tuple(pair for pair in node.entries if pair[0].text != "query")
    return Entries((*kept, *added.entries), node.mark)
