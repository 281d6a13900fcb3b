"""Diagnosis of invalid YAML: the likely intention, and the remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

#: Line and column, from 0, as the parser counts.
Spot: TypeAlias = tuple[int, int]

_KEY = re.compile(r"(?P<before>\s*(?:- +)*)(?P<key>[\w.+-]+)(?P<rest>.*)")
_PAIR = re.compile(r"(?P<before>\s*(?:- +)*)(?P<key>[^\s:]+):\s+(?P<value>.*)")
_OPEN_QUOTE = re.compile(r"""(?:^|[:,\[{-])\s*(?P<quote>["'])""")
# Not preceded by a blank: otherwise each of many blanks is a possible start.
_REMARK = re.compile(r"(?<!\s)\s+#.*$")


class Slip(Struct, frozen=True):
    """A mistake in the YAML of a file.

    Attributes:
        message: The mistake.
        spot: The place of the caret.
        label: A remark beside the caret.
        help: The remedy.
        opened: Where the unfinished construct began, if that is elsewhere.
    """

    message: str
    spot: Spot
    label: str = ""
    help: str = ""
    opened: Spot | None = None


class Complaint(Struct, frozen=True):
    """The parser's message: its context, and the problem."""

    context: str
    begun: Spot | None
    problem: str
    spot: Spot


def explained(said: Complaint, lines: Sequence[str]) -> Slip:
    """Return the slip behind a parser's complaint."""
    conflict = next((n for n, one in enumerate(lines) if one[:7] in _MERGE), None)
    if conflict is not None:
        remedy = "keep one of the two versions, and remove the markers"
        return Slip("an unresolved merge conflict", (conflict, 0), help=remedy)
    if "scanning a tag" in said.context:
        return _exclamation_mark(said, lines)
    for words, explain in _EXPLAINED:
        if words in said.problem:
            return explain(said, lines)
    return Slip(said.problem, said.spot)


_MERGE = frozenset({"<<<<<<<", "=======", ">>>>>>>"})


def _instead(old: str, new: str) -> str:
    return f"write  {new}  instead of  {old}"


# --- characters -------------------------------------------------------------------


def _bad_start(said: Complaint, lines: Sequence[str]) -> Slip:
    line, column = said.spot
    rest = _REMARK.sub("", lines[line][column:])
    if rest[:1] == "\t":
        return Slip("a tab in the indentation", said.spot, help=_SPACES)
    if _still_open(lines[line][:column]):  # One of several values of a line.
        rest = re.split(r"[,}\]]", rest, maxsplit=1)[0]
    quoted = f'"{rest}"' if '"' not in rest else f"'{rest}'"
    return Slip(
        f"no value starts with `{rest[:1]}`", said.spot, help=_instead(rest, quoted)
    )


_SPACES = "indent with spaces"


def _exclamation_mark(said: Complaint, lines: Sequence[str]) -> Slip:
    """Explain a text that begins with `!`, which is a tag to YAML."""
    spot = said.begun or said.spot
    value = _REMARK.sub("", lines[spot[0]][spot[1] :]).rstrip()
    inside = _still_open(lines[spot[0]][: spot[1]])
    remedy = _QUOTES if inside else _in_single_quotes(value)
    return Slip("quote a text that starts with `!`", spot, help=remedy)


def _escape(said: Complaint, lines: Sequence[str]) -> Slip:
    remedy = r"write \\ for a backslash, or the text in single quotes"
    return Slip(said.problem, said.spot, help=remedy)


def _block_text(said: Complaint, lines: Sequence[str]) -> Slip:
    return Slip(said.problem, said.spot, help="start the text on the next line")


# --- quotes -----------------------------------------------------------------------


def _end_of_file(said: Complaint, lines: Sequence[str]) -> Slip:
    """Explain a text that continues to the end of the file."""
    return _open_quote(said.begun or said.spot, lines)


def _open_quote(spot: Spot, lines: Sequence[str]) -> Slip:
    line, column = spot
    written = _REMARK.sub("", lines[line][column:]).rstrip()
    return Slip(
        "a quote is never closed",
        spot,
        label="opened here",
        help=_instead(written, written + written[:1]),
    )


def _value_goes_on(said: Complaint, lines: Sequence[str]) -> Slip:
    """Explain text after a finished value: quotes in quotes, or an unclosed one."""
    line, _ = said.spot
    for above in range(line - 1, -1, -1):
        opening = _OPEN_QUOTE.search(lines[above])
        if opening and lines[above].count(opening["quote"]) % 2:
            return _open_quote((above, opening.start("quote")), lines)
    pair = _PAIR.match(lines[line].rstrip())
    if pair is None:
        return Slip(said.problem, said.spot, help=_QUOTES)
    value = _REMARK.sub("", pair["value"])
    spot = (line, pair.start("value"))
    message = "text follows the end of a value"
    return Slip(message, spot, help=_in_single_quotes(value))


_QUOTES = """use single quotes around a text with quotes: '… "…" …'"""


def _in_single_quotes(value: str) -> str:
    """Return a value as one quoted text."""
    first = value[:1]
    inner = value
    if first in ('"', "'") and value.endswith(first) and len(value) > 1:
        closing = value.index(first, 1)
        if value[closing + 1 : closing + 2].strip():  # "a == "b"": quotes in quotes.
            inner = value[1:-1]
    if first == "'":
        inner = inner.replace("'", '"')
    return _instead(value, "'" + inner + "'") if "'" not in inner else _QUOTES


# --- brackets ---------------------------------------------------------------------


def _in_brackets(said: Complaint, lines: Sequence[str]) -> Slip:
    begun = said.begun or said.spot
    if said.spot[0] > begun[0]:
        return _open_bracket(said, lines)
    before = lines[said.spot[0]][: said.spot[1]].rstrip()
    if before.endswith(('"', "'")):
        message, remedy = "quotes inside quotes", _QUOTES
    else:
        message = "a comma is missing between two entries"
        remedy = "write a comma and a space after each entry"
    return Slip(message, said.spot, help=remedy, opened=begun)


def _open_bracket(said: Complaint, lines: Sequence[str]) -> Slip:
    line, column = said.begun or said.spot
    written = _REMARK.sub("", lines[line][column:]).rstrip()
    closing = _still_open(written)
    return Slip(
        "a bracket is never closed",
        (line, column),
        label="opened here",
        help=_instead(written, written + closing) if closing else "close it",
    )


def _still_open(written: str) -> str:
    """Return the brackets that close those left open on a line."""
    closing: list[str] = []
    for character in re.sub(r'"[^"]*"|\'[^\']*\'', "", written):
        if character in "{[":
            closing.append({"{": "}", "[": "]"}[character])
        elif closing and character == closing[-1]:
            closing.pop()
    return "".join(reversed(closing))


# --- lines ------------------------------------------------------------------------


def _no_colon(said: Complaint, lines: Sequence[str]) -> Slip:
    line, column = said.begun or said.spot
    key = _KEY.fullmatch(lines[line])
    remedy = "write a colon after the key"
    if key is not None:
        old = _REMARK.sub("", lines[line][key.start("key") :]).rstrip()
        rest = _REMARK.sub("", key["rest"]).lstrip(":").strip()
        new = f"{key['key']}: {rest}" if rest else f"{key['key']}:"
        remedy = _instead(old, new)
    return Slip("a colon is missing after a key", (line, column), help=remedy)


def _second_colon(said: Complaint, lines: Sequence[str]) -> Slip:
    """Explain "mapping values are not allowed here"."""
    line = said.spot[0]
    pair = _PAIR.match(lines[line].rstrip())
    if pair is not None and re.search(r":(\s|$)", pair["value"]):
        value = _REMARK.sub("", pair["value"])
        quoted = f'"{value}"' if '"' not in value else f"'{value}'"
        spot = (line, pair.start("value"))
        message = "quote a text with a colon"
        return Slip(message, spot, help=_instead(value, quoted))
    above = _above(line, lines)
    tight = re.match(r"\s*(?:-(?=\w)|(?:- +)*[\w.+-]+:(?=[^\s:]))", lines[above])
    if tight is not None and above != line:
        written = tight[0].strip()
        indent = len(tight[0]) - len(tight[0].lstrip())
        message = f"a space is missing after `{written[-1]}`"
        old = _REMARK.sub("", lines[above][indent:]).rstrip()
        new = f"{written} {old[len(written) :]}"
        return Slip(message, (above, indent), help=_instead(old, new))
    return _indentation(said, lines)


def _block_end(said: Complaint, lines: Sequence[str]) -> Slip:
    """Explain "expected <block end>", by what was found instead."""
    if "<scalar>" in said.problem or "<stream end>" in said.problem:
        return _value_goes_on(said, lines)
    found = lines[said.spot[0]][said.spot[1] :][:1]
    if found in ("}", "]"):
        return Slip("there is nothing to close", said.spot, help="leave it out")
    return _indentation(said, lines)


def _indentation(said: Complaint, lines: Sequence[str]) -> Slip:
    line = said.spot[0]
    begin = len(lines[line]) - len(lines[line].lstrip())
    above = _above(line, lines)
    message = "the indentation does not fit"
    if lines[line].lstrip().startswith("- ") or above == line:
        remedy = "indent the line like its siblings"
        return Slip(message, (line, begin), help=remedy)
    before = re.match(r"\s*(?:- +)*", lines[above])
    wanted = len(before[0]) if before else 0
    spaces = f"{wanted} space{'s' if wanted != 1 else ''}"
    return Slip(
        message,
        (line, begin),
        help=f"indent it by {spaces}, like line {above + 1}",
    )


def _above(line: int, lines: Sequence[str]) -> int:
    """Return the last non-blank line above; the line itself if there is none."""
    for above in range(line - 1, -1, -1):
        said = lines[above].strip()
        if said and not said.startswith("#"):
            return above
    return line


_EXPLAINED = (
    ("cannot start any token", _bad_start),
    ("unknown escape", _escape),
    ("a comment or a line break", _block_text),
    ("unexpected end of stream", _end_of_file),
    ("could not find expected ':'", _no_colon),
    ("expected ',' or", _in_brackets),
    ("mapping values are not allowed", _second_colon),
    ("expected <block end>", _block_end),
)
