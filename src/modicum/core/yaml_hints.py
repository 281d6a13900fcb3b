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
# An item, or a key.
_BEGINS = re.compile(r"""[-?](\s|$)|("[^"]*"\s*|'[^']*'\s*|[^"'\s:][^:]*):(\s|$)""")
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
    start: Spot | None
    problem: str
    spot: Spot


def explained(complaint: Complaint, lines: Sequence[str]) -> Slip:
    """Return the slip behind a parser's complaint."""
    conflict = next((n for n, one in enumerate(lines) if one[:7] in _MERGE), None)
    if conflict is not None:
        remedy = "keep one of the two versions, and remove the markers"
        return Slip("an unresolved merge conflict", (conflict, 0), help=remedy)
    if complaint.context.endswith(" a tag"):
        return _exclamation_mark(complaint, lines)
    for pattern, explain in _EXPLAINED:
        if pattern in complaint.problem:
            return explain(complaint, lines)
    return Slip(complaint.problem, complaint.spot)


_MERGE = frozenset({"<<<<<<<", "=======", ">>>>>>>"})


def _instead(old: str, new: str) -> str:
    return f"write  {new}  instead of  {old}"


# --- characters -------------------------------------------------------------------


def _bad_start(complaint: Complaint, lines: Sequence[str]) -> Slip:
    line, column = complaint.spot
    rest = _REMARK.sub("", lines[line][column:])
    if rest[:1] == "\t":
        return _tab(complaint, lines)
    if _still_open(lines[line][:column]):  # One of several values of a line.
        rest = re.split(r"[,}\]]", rest, maxsplit=1)[0]
    quoted = f'"{rest}"' if '"' not in rest else f"'{rest}'"
    return Slip(
        f"no value starts with `{rest[:1]}`",
        complaint.spot,
        help=_instead(rest, quoted),
    )


def _tab(complaint: Complaint, lines: Sequence[str]) -> Slip:
    return Slip("a tab in the indentation", complaint.spot, help="indent with spaces")


def _exclamation_mark(complaint: Complaint, lines: Sequence[str]) -> Slip:
    """Explain a text that begins with `!`, which is a tag to YAML."""
    spot = complaint.start or complaint.spot
    value = _REMARK.sub("", lines[spot[0]][spot[1] :]).rstrip()
    inside = _still_open(lines[spot[0]][: spot[1]])
    remedy = _QUOTES if inside else _in_single_quotes(value)
    return Slip("quote a text that starts with `!`", spot, help=remedy)


def _escape(complaint: Complaint, lines: Sequence[str]) -> Slip:
    line, column = complaint.spot
    written = lines[line][column:][:2]
    remedy = r"write \\ for a backslash, or the text in single quotes"
    return Slip(f"no escape is `{written}`", complaint.spot, help=remedy)


def _block_text(complaint: Complaint, lines: Sequence[str]) -> Slip:
    message = "text follows the sign of a block of text"
    return Slip(message, complaint.spot, help="start the text on the next line")


# --- quotes -----------------------------------------------------------------------


def _end_of_file(complaint: Complaint, lines: Sequence[str]) -> Slip:
    """Explain a text that continues to the end of the file."""
    return _open_quote(complaint.start or complaint.spot, lines)


def _open_quote(spot: Spot, lines: Sequence[str]) -> Slip:
    line, column = spot
    written = _REMARK.sub("", lines[line][column:]).rstrip()
    return Slip(
        "a quote is never closed",
        spot,
        label="opened here",
        help=_instead(written, written + written[:1]),
    )


def _value_goes_on(complaint: Complaint, lines: Sequence[str]) -> Slip:
    """Explain text after a finished value: quotes in quotes, or an unclosed one."""
    line, _ = complaint.spot
    for above in range(line - 1, -1, -1):
        opening = _OPEN_QUOTE.search(lines[above])
        if opening and lines[above].count(opening["quote"]) % 2:
            return _open_quote((above, opening.start("quote")), lines)
    pair = _PAIR.match(lines[line].rstrip())
    message = "text follows the end of a value"
    if pair is None:
        return Slip(message, complaint.spot, help=_QUOTES)
    value = _REMARK.sub("", pair["value"])
    spot = (line, pair.start("value"))
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


def _in_brackets(complaint: Complaint, lines: Sequence[str]) -> Slip:
    start = complaint.start or complaint.spot
    if complaint.spot[0] > start[0]:
        return _open_bracket(complaint, lines)
    before = lines[complaint.spot[0]][: complaint.spot[1]].rstrip()
    if before.endswith(('"', "'")):
        message, remedy = "quotes inside quotes", _QUOTES
    else:
        message = "a comma is missing between two entries"
        remedy = "write a comma and a space after each entry"
    return Slip(message, complaint.spot, help=remedy, opened=start)


def _open_bracket(complaint: Complaint, lines: Sequence[str]) -> Slip:
    line, column = complaint.start or complaint.spot
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


def _no_colon(complaint: Complaint, lines: Sequence[str]) -> Slip:
    line, column = complaint.start or complaint.spot
    key = _KEY.fullmatch(lines[line])
    remedy = "write a colon after the key"
    if key is not None:
        old = _REMARK.sub("", lines[line][key.start("key") :]).rstrip()
        rest = _REMARK.sub("", key["rest"]).lstrip(":").strip()
        new = f"{key['key']}: {rest}" if rest else f"{key['key']}:"
        remedy = _instead(old, new)
    return Slip("a colon is missing after a key", (line, column), help=remedy)


def _second_colon(complaint: Complaint, lines: Sequence[str]) -> Slip:
    """Explain "mapping values are not allowed here"."""
    line = complaint.spot[0]
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
    return _indentation(complaint, lines)


def _block_end(complaint: Complaint, lines: Sequence[str]) -> Slip:
    """Explain what is neither a key nor an item, by what is found instead."""
    line, column = complaint.spot
    rest = lines[line][column:]
    if rest[:1] in ("}", "]"):
        return _nothing_to_close(complaint, lines)
    if lines[line][:column].strip() or not _BEGINS.match(rest):
        return _value_goes_on(complaint, lines)
    return _indentation(complaint, lines)


def _no_content(complaint: Complaint, lines: Sequence[str]) -> Slip:
    """Explain "did not find expected node content"."""
    line, column = complaint.spot
    if lines[line][column:][:1] in ("}", "]"):
        return _nothing_to_close(complaint, lines)
    return Slip("a value is missing", complaint.spot, help="write it, or leave it out")


def _tight_colon(complaint: Complaint, lines: Sequence[str]) -> Slip:
    remedy = "write a space after the colon, and a value"
    return Slip("nothing follows a colon", complaint.spot, help=remedy)


def _nothing_to_close(complaint: Complaint, lines: Sequence[str]) -> Slip:
    return Slip("there is nothing to close", complaint.spot, help="leave it out")


def _indentation(complaint: Complaint, lines: Sequence[str]) -> Slip:
    line = complaint.spot[0]
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
        content = lines[above].strip()
        if content and not content.startswith("#"):
            return above
    return line


_EXPLAINED = (
    ("cannot start any token", _bad_start),
    ("a tab character", _tab),
    ("unknown escape", _escape),
    ("comment or line break", _block_text),
    ("unexpected end of stream", _end_of_file),
    ("could not find expected ':'", _no_colon),
    ("expected ',' or", _in_brackets),
    ("mapping values are not allowed", _second_colon),
    ("expected key", _block_end),
    ("expected '-' indicator", _block_end),
    ("node content", _no_content),
    ("unexpected ':'", _tight_colon),
)
