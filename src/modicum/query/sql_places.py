"""The mapping of positions in the SQL of a query file to that file.

YAML may fold lines, indent them and quote them. The text is compared with the lines of
its file; where they do not match, as after an escape, the position of the whole text
represents all positions in it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple

from msgspec import structs

from modicum.core.document import Scalar
from modicum.core.errors import InputError, Mark, Problem
from modicum.query.model import Query


class _Piece(NamedTuple):
    """Some characters of the text on one line of the file.

    Attributes:
        start: The number of the first one, in the text.
        length: How many they are.
        mark: Their position.
    """

    start: int
    length: int
    mark: Mark


class SqlPlaces:
    """Maps positions in SQL to positions in its file.

    Args:
        node: The text.
    """

    def __init__(self, node: Scalar) -> None:
        self._mark = node.mark
        lengths = (len(one) + 1 for one in node.text.split("\n"))
        self._begins = [0, *accumulate(lengths)]  # By the number of a line, from 0.
        self._pieces = _pieces(node)

    def of(self, mark: Mark | None) -> Mark | None:
        """Return the position in the file of one in the text, or of the whole text.

        Args:
            mark: The place in the text; the text itself if there is no file.
        """
        return mark if self._mark is None else self._found(mark) or self._mark

    def joined(self, begin: int, end: int) -> Mark | None:
        """Return where a line of the text begins that spans several lines of the file.

        Returns:
            The position in the file; None if it is all on one line, or if that is
            unknown.
        """
        within = [
            piece
            for piece in self._pieces
            if piece.start < end and begin < piece.start + piece.length
        ]
        if len({piece.mark.line for piece in within}) < 2:
            return None
        first = within[0]
        column = first.mark.column + max(begin - first.start, 0)
        return structs.replace(first.mark, column=column, length=2)

    def error(self, error: InputError) -> InputError:
        """Return a mistake in the text as one in the file."""
        return InputError(*map(self._problem, error.problems))

    def query(self, query: Query) -> Query:
        """Return a query with positions in the file."""
        keys = tuple(replace(one, mark=self.of(one.mark)) for one in query.keys)
        aggregates = (replace(one, mark=self.of(one.mark)) for one in query.aggregates)
        return structs.replace(query, keys=keys, aggregates=tuple(aggregates))

    def _problem(self, problem: Problem) -> Problem:
        mark = problem.mark
        if mark is None or self._mark is None or self._found(mark) is not None:
            return structs.replace(problem, mark=self.of(mark))
        note = f"in the SQL, at line {mark.line}, column {mark.column}"
        return structs.replace(problem, mark=self._mark, notes=(note, *problem.notes))

    def _found(self, mark: Mark | None) -> Mark | None:
        if mark is None:
            return None
        place = self._begins[mark.line - 1] + mark.column - 1
        number = bisect_right(self._pieces, place, key=attrgetter("start")) - 1
        if number < 0:
            return None
        piece = self._pieces[number]
        within = place - piece.start
        if within >= piece.length:
            return None
        length = min(mark.length, piece.length - within)
        return structs.replace(
            piece.mark, column=piece.mark.column + within, length=length
        )


def _pieces(node: Scalar) -> tuple[_Piece, ...]:
    """Return the pieces of a text by line; none if unknown."""
    found: list[_Piece] = []
    place = 0
    for mark, written in _written(node):
        place += _blanks(node.text, place)
        left = node.text[place:].rstrip()
        if not left:
            break
        same = written if left.startswith(written) else left
        if not written.startswith(same):
            return ()
        found.append(_Piece(place, len(same), mark))
        place += len(same)
    return tuple(found) if not node.text[place:].strip() else ()


def _written(node: Scalar) -> Iterator[tuple[Mark, str]]:
    """Yield the lines of the file that contain a text, without blanks and quotes."""
    if node.mark is None:
        return
    for mark in node.lines or (node.mark,):
        begin = mark.column - 1
        first = mark.line == node.mark.line  # A block begins below its sign.
        if first and node.quoted:
            begin += 1
        begin += _blanks(mark.source, begin)
        written = mark.source[begin:].rstrip()
        if written:
            yield structs.replace(mark, column=begin + 1), written


def _blanks(text: str, begin: int) -> int:
    """Return how many blanks and line breaks there are in a text from some place on."""
    return len(text) - begin - len(text[begin:].lstrip(" \t\r\n"))
