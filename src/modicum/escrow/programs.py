"""Programs in a sandbox: their code, their input, and their output range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Final, Literal, TypeAlias

from modicum.core.canonical import Plain, digest, encode
from modicum.core.errors import Code, InputError, Problem

#: The types of a table's cell.
Cell: TypeAlias = "bool | int | float | str | None"

Language: TypeAlias = Literal["python", "wasm"]

PROGRAM_KIND: Final = "modicum-program/v1"
#: The maximum absolute value of a score, so that all results are finite.
SCORE_MAX: Final = 10**100
#: The number of steps of a range: nine digits of a score.
STEPS: Final = 10**9
#: Maximum length that people read before they approve it.
CODE_BYTES_MAX: Final[Mapping[Language, int]] = {"python": 2**18, "wasm": 2**22}


@dataclass(frozen=True, slots=True)
class Table:
    """The answers to one query, in the form given to programs.

    Attributes:
        columns: The names of its columns.
        rows: Its rows; each has one cell for each column.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Range:
    """The range of a program's scores.

    Attributes:
        low: The least score.
        high: The greatest score, above the least.

    Raises:
        InputError: If the maximum is not above the minimum, or an end is beyond the
            limit of scores.
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
        """The distance of its ends."""
        return self.high - self.low

    def clamp(self, score: Fraction) -> Fraction:
        """Return the score of the range that is nearest to a score."""
        return min(max(score, self.low), self.high)


@dataclass(frozen=True)
class Program:
    """A task and its evaluation: from tables to one number, the score.

    A program in Python defines `score(tables, arguments, reference)`. Each table is a
    mapping with `columns`, a list of names, and `rows`, a list of lists; `reference` is
    None, unless the program compares. It returns a number, or None where there is no
    score.

    Attributes:
        language: Its language.
        code: Its text in UTF-8, or its module for WebAssembly.
        arguments: Its inputs besides the tables; fractions are texts.
        range: The range of its scores; others are moved to the nearest end.
        compares: Whether it compares exact answers with the private ones, given as
            `reference`; for private answers alone it has no score.
        catalogue: Its name in the catalogue, as `NAME@VERSION`; empty for other code.

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
        """Return what people approve: the digest of the code, and all else in full."""
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
