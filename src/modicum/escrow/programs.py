"""What runs in a sandbox: a program, what it is given, and what may come out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Final, Literal, TypeAlias

from modicum.core.canonical import Plain, digest, encode
from modicum.core.errors import Code, InputError, Problem

#: What a cell of a table holds.
Cell: TypeAlias = "bool | int | float | str | None"

Language: TypeAlias = Literal["python", "wasm"]

PROGRAM_KIND: Final = "modicum-program/v1"
#: How far from zero a score lies at most: all that is computed of it is finite.
SCORE_MAX: Final = 10**100
#: Into how many steps a range is cut: nine digits of a score are told.
STEPS: Final = 10**9
#: Nobody reads more than that before they approve it.
CODE_BYTES_MAX: Final[Mapping[Language, int]] = {"python": 2**18, "wasm": 2**22}


@dataclass(frozen=True, slots=True)
class Table:
    """The answers to one query, as programs are given them.

    Attributes:
        columns: The names of its columns.
        rows: Its rows; each has one cell for each column.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Range:
    """Where the scores of a program lie.

    Attributes:
        low: The least score.
        high: The greatest score, above the least.

    Raises:
        InputError: If the greatest is not above the least, or an end is beyond what a
            score can be.
    """

    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        if max(abs(self.low), abs(self.high)) > SCORE_MAX:
            raise InputError(
                Problem(
                    Code.OUT_OF_RANGE,
                    "the scores of a program exceed 10^100 in size",
                    help="give ends between -10^100 and 10^100",
                )
            )
        if not self.low < self.high:
            raise InputError(
                Problem(
                    Code.OUT_OF_RANGE,
                    f"the scores of a program are between {self.low} and {self.high}",
                    help="give the minimum first, and a larger maximum",
                )
            )

    @property
    def width(self) -> Fraction:
        """How far apart its ends are."""
        return self.high - self.low

    def clamp(self, score: Fraction) -> Fraction:
        """Return the score of the range that is nearest to a score."""
        return min(max(score, self.low), self.high)


@dataclass(frozen=True)
class Program:
    """A task and how it is evaluated: from tables to one number, the score.

    A program in Python defines `score(tables, arguments, reference)`. Each table is a
    mapping with `columns`, a list of names, and `rows`, a list of lists; `reference` is
    None, unless the program compares. It returns a number, or None where there is no
    score.

    Attributes:
        language: What it is written in.
        code: Its text in UTF-8, or its module for WebAssembly.
        arguments: What it is given beside the tables; fractions are texts.
        range: Where its scores lie; others are moved to the nearest end.
        compares: Whether it holds exact answers against the private ones, which it is
            given as `reference` then; of private answers alone it has no score.
        catalogue: What the catalogue calls it, as `NAME@VERSION`; empty if somebody
            wrote it.

    Raises:
        InputError: If its code is empty or too long.
    """

    language: Language
    code: bytes = field(repr=False)
    arguments: Mapping[str, Plain]
    range: Range
    compares: bool = False
    catalogue: str = ""

    def __post_init__(self) -> None:
        most = CODE_BYTES_MAX[self.language]
        if not 0 < len(self.code) <= most:
            raise InputError(
                Problem(
                    Code.TOO_LARGE,
                    f"a program in {self.language} has 1 to {most:,} bytes, and this"
                    f" has {len(self.code):,}",
                    help="shorten it: people read it before they approve it",
                )
            )

    def to_plain(self) -> dict[str, Plain]:
        """Return what people approve: the code by its digest, all else as it is."""
        return {
            "kind": PROGRAM_KIND,
            "language": self.language,
            "code": digest(self.code),
            "arguments": dict(self.arguments),
            "range": [str(self.range.low), str(self.range.high)],
            "compares": self.compares,
            "catalogue": self.catalogue,
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that it does: another program has another digest."""
        return digest(encode(self.to_plain()))
