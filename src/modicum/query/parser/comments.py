"""Where comments stand that last to the end of their line."""

from __future__ import annotations

from collections.abc import Iterator

from modicum.query.parser.lexer import cut
from modicum.query.parser.lines import Lines


def line_comments(text: str, source: str) -> Iterator[tuple[int, int]]:
    """Yield where each comment begins that `--` begins, and where its line ends.

    Args:
        text: The text.
        source: What it is called in messages.

    Raises:
        InputError: If a quote or a comment is not closed.
    """
    place = 0
    for token in cut(text, Lines(text, source)):
        yield from _between(text, place, token.start)
        place = token.end + 1
    yield from _between(text, place, len(text))


def _between(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the comments between two tokens, where nothing but comments stands."""
    place = begin
    while place < end:
        if text.startswith("--", place):
            behind = text.find("\n", place, end)
            behind = end if behind < 0 else behind
            yield place, behind
            place = behind
        elif text.startswith("/*", place):
            place = _behind_block(text, place, end)
        else:
            place += 1


def _behind_block(text: str, begin: int, end: int) -> int:
    """Return where a comment in `/* */` ends, which may hold others."""
    depth, place = 0, begin
    while place < end:
        pair = text[place : place + 2]
        step = {"/*": 1, "*/": -1}.get(pair, 0)
        depth, place = depth + step, place + (2 if step else 1)
        if depth == 0:
            break
    return place
