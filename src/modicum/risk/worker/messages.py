"""The messages of an analysis process: lines of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from modicum.api.schema.risk import AnalysisRequest
from modicum.core import errors
from modicum.core.errors import ModicumError, Problem

#: A longer line is neither written nor read.
LINE_MAX: Final = 1 << 24

_KINDS: Final[Mapping[str, type[ModicumError]]] = {
    one.__name__: one
    for one in (
        errors.InputError,
        errors.UsageError,
        errors.UnavailableError,
        errors.InvariantError,
        errors.ConflictError,
        errors.VerificationError,
    )
}


class Progress(msgspec.Struct, tag="progress"):
    """So large a part is done.

    Attributes:
        part: From 0 to 1.
    """

    part: float


class AnalysisResult(msgspec.Struct, tag="found"):
    """Success.

    Attributes:
        document: The documented JSON form of the result.
    """

    document: msgspec.Raw


class Failed(msgspec.Struct, tag="failed"):
    """Failure.

    Attributes:
        kind: The kind of error.
        problems: The mistakes.
    """

    kind: str
    problems: tuple[Problem, ...]

    def error(self) -> ModicumError:
        """Return the mistake."""
        return _KINDS.get(self.kind, ModicumError)(*self.problems)


Line: TypeAlias = Progress | AnalysisResult | Failed

_encoder = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Progress | AnalysisResult | Failed)


def failed(error: ModicumError, problems: tuple[Problem, ...]) -> Failed:
    """Return the message for an error."""
    kinds = (one.__name__ for one in type(error).__mro__)
    return Failed(next((one for one in kinds if one in _KINDS), ""), problems)


def written(line: Line) -> bytes:
    """Return a line as it is written."""
    return _encoder.encode(line) + b"\n"


def read(text: bytes) -> Line | None:
    """Return the message of a line; None if it is none of these."""
    try:
        line: Line = _decoder.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return line


#: Maximum memory of the engine; larger data is put into files.
MEMORY: Final = "2GB"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of one analysis.

    Attributes:
        rows: The maximum number of rows of a table.
        seconds: So long it runs at most.
    """

    rows: int = 10_000_000
    seconds: int = 600


@dataclass(frozen=True, slots=True)
class Analysis:
    """An analysis, as passed to its process.

    Attributes:
        tables: The locations of rows, by the table's name; by `""` where a query may
            call its only table anything.
        request: The request.
        rows: The maximum number of rows of a table.
    """

    tables: Mapping[str, str]
    request: AnalysisRequest
    rows: int
