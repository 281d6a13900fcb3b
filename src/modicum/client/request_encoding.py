"""Encoding of releases: one value per line.

The server reports the line of a mistake, which maps back to the position in the file
that the release was read from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from modicum.api.local.evaluation import Description
from modicum.api.schema.shape import Input, encode
from modicum.core.document import Entries, Items, Kind, Node, Scalar, from_python
from modicum.core.errors import Code, InputError, Mark, Problem
from modicum.core.rationals import number_text, parse_number
from modicum.release import ReleaseDraft

JSON = "application/json"
#: JSON is YAML; declared as YAML, the server keeps positions from the start.
YAML = "application/yaml"

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class EncodedRequest:
    """An encoded request.

    Attributes:
        text: Its bytes.
        kind: Its content type.
        marks: By line, from 0, the position in a file.
        file: The name of a file that is sent unchanged; empty for other content.
        release: The id of the release in it; empty for other content.
    """

    text: bytes
    kind: str = JSON
    marks: tuple[Mark | None, ...] = ()
    file: str = ""
    release: str = ""

    def place(self, mark: Mark) -> Mark | None:
        """Return the source position of a position in the request."""
        if self.file:
            lines = self.text.decode().splitlines()
            source = lines[mark.line - 1] if mark.line <= len(lines) else ""
            return replace(mark, file=self.file, source=source)
        if not self.marks:
            return mark
        return self.marks[mark.line - 1] if mark.line <= len(self.marks) else None


def sent(form: Input) -> EncodedRequest:
    """Return an input as it is sent."""
    try:
        return EncodedRequest(encode(form))
    except UnicodeEncodeError:
        message = "an unpaired surrogate is not a character"
        raise InputError(Problem(Code.NOT_TEXT, message)) from None


def encoded(release: Description) -> EncodedRequest:
    """Return a release as it is sent, as it is now."""
    if isinstance(release, ReleaseDraft):
        node = release.to_node()
    elif isinstance(release, Scalar | Items | Entries):
        node = release
    else:
        node = from_python(release)
    lines = list(_lines(node, ""))
    text = "\n".join(line for line, _ in lines).encode()
    marks = tuple(mark for _, mark in lines)
    entries = node.entries if isinstance(node, Entries) else ()
    ids = (one for key, one in entries if key.text == "release")
    own = next((one.text for one in ids if isinstance(one, Scalar)), "")
    return EncodedRequest(text, YAML if any(marks) else JSON, marks, release=own)


def _lines(node: Node, end: str) -> Iterator[tuple[str, Mark | None]]:
    """Yield the lines of a value, each with its place."""
    match node:
        case Items(items=items, mark=mark):
            yield "[", mark
            for number, one in enumerate(items, 1):
                yield from _lines(one, "," if number < len(items) else "")
            yield f"]{end}", mark
        case Entries(entries=entries, mark=mark):
            yield "{", mark
            for number, (key, one) in enumerate(entries, 1):
                yield f"{json.dumps(key.text, ensure_ascii=False)}:", key.mark
                yield from _lines(one, "," if number < len(entries) else "")
            yield f"}}{end}", mark
        case Scalar(mark=mark):
            yield f"{_scalar(node)}{end}", mark


def _scalar(node: Scalar) -> str:
    """Return a value as JSON; a number keeps its digits, so that it stays exact."""
    match node.kind:
        case Kind.NUMBER if "/" in node.text:
            raise InputError(
                Problem(
                    Code.NOT_A_NUMBER,
                    f"the fraction `{node.text[:60]}` has no finite decimal form,"
                    " and cannot be sent",
                    node.mark,
                    help="round it in the direction of the larger loss",
                )
            )
        case Kind.NUMBER if _NUMBER.fullmatch(node.text):
            return node.text
        case Kind.NUMBER:
            exact = parse_number(node.text)
            return json.dumps(node.text) if exact is None else number_text(exact)
        case Kind.NULL:
            return "null"
        case Kind.BOOLEAN:
            return node.text.lower()
        case _:
            return json.dumps(node.text, ensure_ascii=False)
