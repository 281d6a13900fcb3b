"""Remarks on a program for its reviewers.

Remarks point to passages to check. They block nothing: a program without remarks may
still disclose too much. The sandbox confines it, and the contract bounds what its
number may disclose.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from modicum.core.canonical import encode
from modicum.core.errors import printable
from modicum.escrow.catalog import vetted
from modicum.escrow.own_code import CodeFinding, found_in, parsed
from modicum.escrow.programs import Program

Kind: TypeAlias = Literal[
    "import",
    "reach",
    "literal",
    "threshold",
    "cell",
    "bits",
    "unseen",
    "arguments",
    "unreadable",
]

#: By kind, why it is worth a look.
WHY: Final[MappingProxyType[str, str]] = MappingProxyType(
    {
        "import": "tasks need only numpy, sklearn, scipy and a few numeric modules",
        "reach": "bypasses the visible code, or accesses files",
        "literal": "long data that nobody reads can hide information, such as a list"
        " of people",
        "threshold": "a score that depends on it reveals on which side an answer is",
        "cell": "a score that depends on few cells reveals their values",
        "bits": "the digits of a score can encode other information",
        "unseen": "the text is not what it looks like",
        "arguments": "chosen by the analyst: repeated runs with other values reveal"
        " more",
        "unreadable": "it cannot be inspected here",
    }
)
#: Of a public table with so few rows, each row weighs much in a score.
FEW_ROWS: Final = 5


@dataclass(frozen=True, slots=True)
class Remark:
    """A passage to check.

    Attributes:
        line: The line of the text, from 1; 0 for none.
        kind: The kind of remark; `WHY` explains it.
        text: The passage.
    """

    line: int
    kind: Kind
    text: str

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        return f"{place}{printable(self.text)} ({WHY[self.kind]})"


@dataclass(frozen=True, slots=True)
class Inspection:
    """The remarks on a program.

    Attributes:
        vetted: The name in the catalogue of the text that it runs; empty for own code.
        lines: How many lines of text there are to read, blank ones not counted.
        remarks: The remarks, by line.
    """

    vetted: str
    lines: int
    remarks: tuple[Remark, ...]

    def __str__(self) -> str:
        what = f"text of the catalogue, {self.vetted}" if self.vetted else "own code"
        many = f"{self.lines:,} line{'' if self.lines == 1 else 's'}"
        marks = len(self.remarks)
        head = f"{what}: {many}, {marks} remark{'' if marks == 1 else 's'}"
        return "\n".join((head, *(f"- {one}" for one in self.remarks)))


def inspected(program: Program) -> Inspection:
    """Return the remarks on a program.

    A text of the catalogue was read before: remarks are about its arguments only.

    Args:
        program: The program.

    Raises:
        InputError: If it is declared as Python and is not.
        VerificationError: If it calls itself a text of the catalogue and is none.
    """
    known = program.catalogue if vetted(program) else ""
    remarks = [Remark(0, "arguments", one) for one in _arguments(program)]
    if program.language != "python":
        size = f"a module of {len(program.code):,} bytes"
        return Inspection(known, 0, (*remarks, Remark(0, "unreadable", size)))
    text = program.code.decode("utf-8", "replace")
    if not known:
        remarks += [_remark(one) for one in found_in(parsed(program.code), text)]
    lines = sum(1 for line in text.splitlines() if line.strip())
    ordered = sorted(set(remarks), key=lambda one: (one.line, one.kind, one.text))
    return Inspection(known, lines, tuple(ordered))


def changes(before: Program, after: Program) -> str:
    """Return the difference of two programs, as a unified diff."""
    return "\n".join(
        printable(line)
        for line in difflib.unified_diff(
            _readable(before), _readable(after), "before", "after", lineterm=""
        )
    )


def _readable(program: Program) -> list[str]:
    """Return all that people approve of a program, as lines."""
    plain = program.to_plain()
    head = [
        f"{name}: {encode(plain[name]).decode('utf-8')}"
        for name in ("catalogue", "language", "range", "compares", "arguments")
    ]
    if program.language != "python":
        return [*head, f"code: {plain['code']}"]
    return [*head, "", *program.code.decode("utf-8", "replace").splitlines()]


def _remark(one: CodeFinding) -> Remark:
    return Remark(one.line, one.kind, one.text)


def _arguments(program: Program) -> Iterator[str]:
    """Yield the arguments that analysts chose besides the text."""
    given = program.arguments
    if not program.catalogue:
        if given:
            yield f"is given {', '.join(f'`{name}`' for name in given)}"
        return
    if given.get("at_least") is not None:
        yield f"the target is compared with {given['at_least']}"
    if given.get("k") == 1:
        yield "`k` is 1: it reveals which row is the largest"
    public = given.get("public")
    if isinstance(public, dict):
        rows = public.get("rows")
        many = len(rows) if isinstance(rows, list) else 0
        few = ", which is few" if many < FEW_ROWS else ""
        yield f"answers are compared with {many:,} numbers from the analyst{few}"
