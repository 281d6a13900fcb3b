"""Interfaces of the escrow, and the stored results of its runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, BinaryIO, Final, Protocol, TypeAlias

from modicum.core.errors import Code, InputError, Problem, VerificationError
from modicum.escrow.programs import Cell, Program, Table
from modicum.query.results import Answers

#: Raises when the caller no longer waits.
Still: TypeAlias = Callable[[], None]
#: Minimum time for a sandbox to start, whatever its input.
SECONDS_MIN: Final = 1.0
_MIB: Final = 2**20
_GRACE_SECONDS: Final = 0.25
_GRACE_SECONDS_PER_GIB: Final = 0.25


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of a program.

    Attributes:
        seconds: The fixed duration of a run. The result is returned only when this time
            is over, whenever the program ended, so the duration reveals nothing.
        memory_bytes: Its memory limit.
        processes: Its limit of concurrent processes and threads.
    """

    seconds: float = 60.0
    memory_bytes: int = 2**31
    processes: int = 32

    @property
    def memory_mib(self) -> int:
        """Its memory limit, in whole MiB."""
        return self.memory_bytes // _MIB

    @property
    def grace_seconds(self) -> float:
        """So long before the end of its time a run is ended, to be gone in time."""
        return _GRACE_SECONDS + _GRACE_SECONDS_PER_GIB * self.memory_bytes / 2**30

    def refuse_short(self) -> None:
        """Refuse a time in which nothing can begin and end.

        Raises:
            InputError: If it is too short for that much memory.
        """
        least = max(SECONDS_MIN, 2 * self.grace_seconds)
        if self.seconds < least:
            raise InputError(
                Problem(
                    Code.OUT_OF_RANGE,
                    f"a program has {self.seconds:g} seconds, which is too short",
                    help=f"give it {least:g} seconds or more, or less memory",
                )
            )


@dataclass(frozen=True, slots=True)
class Sealed:
    """A sealed object in the vault.

    Attributes:
        id: Its id in the vault.
        digest: SHA-256 of its encrypted bytes. It reveals nothing about the content.
    """

    id: str
    digest: str


@dataclass(frozen=True, slots=True)
class Scoring:
    """The input of a scoring run.

    Attributes:
        program: The program.
        tables: The input tables, by name.
        reference: The tables to compare with, by name; None if the program does not
            compare.
    """

    program: Program
    tables: Mapping[str, Table] = field(repr=False)
    reference: Mapping[str, Table] | None = field(default=None, repr=False)


#: Work on rows. It yields None when all is open and valid, and is sent the number of
#: the run; then it yields each scoring input, is sent the score, and yields None again
#: when it no longer needs the sandbox. It returns the SHA-256 of the sealed results, by
#: name.
Work: TypeAlias = Generator[Scoring | None, "int | float | None", Mapping[str, str]]


def go_on() -> None:
    """Return: the caller still waits."""


class Turn(Protocol):
    """An exclusive turn on a sandbox."""

    def score(
        self,
        program: Program,
        tables: Mapping[str, Table],
        reference: Mapping[str, Table] | None,
        limits: Limits,
    ) -> float | None:
        """Return the score of a program, within its range; None if it has none.

        Whatever a program does, the result is one of these. The call returns when the
        time limit is over, not before.
        """
        ...

    def score_job(
        self, program: Program, job: BinaryIO | None, limits: Limits
    ) -> float | None:
        """Return the score of one program, as `score` does."""
        ...


@dataclass(frozen=True, slots=True)
class Scorer:
    """Scores the answers of a work.

    Attributes:
        program: The program.
        turn: The sandbox.
        limits: The resource limits of each run.
        leave: Gives up the turn.
    """

    program: Program
    turn: Turn
    limits: Limits
    leave: Callable[[], object]


class Apart(Protocol):
    """Work on rows in a separate process, with all inputs open."""

    def finish(self, run: int, scorer: Scorer | None = None) -> Mapping[str, str]:
        """Continue the work and return its result."""
        ...


class Sandbox(Protocol):
    """A sandbox for untrusted programs."""

    @property
    def tier(self) -> str:
        """Return its tier, such as `bubblewrap` or `wasm`."""
        ...

    def check(self) -> None:
        """Check that it is available and confines programs."""
        ...

    def turn(self, still: Still = go_on) -> AbstractContextManager[Turn]:
        """Take an exclusive turn, in order of arrival, for the length of the block.

        The turn is taken before anything is charged: then nothing that others do can
        cause a loss of charged budget.
        """
        ...


class Vault(Protocol):
    """The encrypted store of data and withheld results."""

    def seal(self, identifier: str, content: bytes) -> Sealed:
        """Seal content under its own key; it is durable on return."""
        ...

    def open(self, sealed: Sealed) -> bytes:
        """Return the sealed content."""
        ...

    def find(self, identifier: str) -> Sealed | None:
        """Return the sealed object of an id; None if there is none or it was shredded.

        Args:
            identifier: Its id.
        """
        ...

    def shred(self, identifier: str) -> None:
        """Destroy the key of a sealed object, which makes it unreadable permanently.

        Shredding again changes nothing.
        """
        ...


class Equipment(Protocol):
    """All that the escrow needs beside engines for queries."""

    @property
    def vault(self) -> Vault:
        """The store of data and withheld results."""
        ...

    def sandbox(self, tier: str) -> Sandbox:
        """Return the sandbox of a tier."""
        ...

    def rows(self, sealed: Sealed, media: str) -> AbstractContextManager[object]:
        """Return the rows of a version of a data set, for an engine, while it is open.

        Args:
            sealed: The sealed rows.
            media: The format of rows: `csv` or `parquet`.

        Raises:
            VerificationError: If the content was changed.
            UnavailableError: If its key cannot be had, or was destroyed.
        """
        ...

    def rows_in(
        self, content: bytes, media: str, name: str
    ) -> AbstractContextManager[object]:
        """Return the rows of a file, for an engine, while it is open."""
        ...

    def apart(
        self,
        work: Callable[..., Work],
        *given: object,
        opens: Collection[str] = (),
        still: Still = go_on,
    ) -> AbstractContextManager[Apart]:
        """Start work on rows in a separate process, which ends with the block.

        So this process never holds a row or an exact answer.
        """
        ...

    def pause(self, seconds: float) -> None:
        """Wait before retrying something unavailable."""
        ...


ANSWERS_KIND: Final = "modicum-answers/v1"
SCORE_KIND: Final = "modicum-score/v1"
#: Sizes of sealed objects are visible outside of the vault: those of scores reveal
#: nothing, and those of answers little.
_SCORE_BYTES: Final = 512
_ANSWERS_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers to the queries of a contract.

    Attributes:
        answers: By release, the documented JSON form of its answers.
        tables: By release, the input tables of programs.
    """

    answers: Mapping[str, Mapping[str, Any]]
    tables: Mapping[str, Table]


def answers_to_bytes(answers: Mapping[str, Answers]) -> bytes:
    """Encode answers for storage, padded to a power of two of bytes."""
    found = _written(
        {
            "kind": ANSWERS_KIND,
            "answers": {name: one.to_dict() for name, one in answers.items()},
            "tables": {name: _table(one) for name, one in answers.items()},
        }
    )
    return found.ljust(max(_ANSWERS_BYTES, 1 << (len(found) - 1).bit_length()))


def answers_from_bytes(data: bytes) -> Answered:
    """Decode stored answers."""
    found = _read(data, ANSWERS_KIND)
    tables = {
        name: Table(tuple(one["columns"]), tuple(tuple(row) for row in one["rows"]))
        for name, one in found["tables"].items()
    }
    return Answered(found["answers"], tables)


def table_of(answers: Answers) -> Table:
    """Return answers as an input table of programs, whether new or reopened."""
    rows = tuple(tuple(row) for row in _rows(answers))
    return Table((*answers.keys, *answers.aggregates), rows)


def score_to_bytes(score: float | Fraction | None) -> bytes:
    """Return a score as it is kept; all scores take the same number of bytes."""
    text: str | None = None
    if isinstance(score, Fraction):
        text = str(score)
    elif score is not None:
        text = score.hex()  # It is exact, and short however small the score is.
    return _written({"kind": SCORE_KIND, "score": text}).ljust(_SCORE_BYTES)


def score_from_bytes(data: bytes) -> Fraction | None:
    """Return a score that was kept; None if there was none."""
    score = _read(data, SCORE_KIND)["score"]
    if score is None:
        return None
    return Fraction(float.fromhex(score) if "x" in score else score)


def _table(answers: Answers) -> dict[str, Sequence[object]]:
    columns = [*answers.keys, *answers.aggregates]
    return {"columns": columns, "rows": _rows(answers)}


def _rows(answers: Answers) -> list[list[Cell]]:
    return [
        [*row.keys, *(_cell(one.value) for one in row.estimates)]
        for row in answers.rows
    ]


def _cell(value: Fraction | None) -> Cell:
    if value is None:
        return None
    return int(value) if value.denominator == 1 else float(value)


def _written(plain: Mapping[str, object]) -> bytes:
    text = json.dumps(plain, sort_keys=True, allow_nan=False, ensure_ascii=False)
    return text.encode("utf-8")


def _read(data: bytes, kind: str) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("kind") != kind:
        raise VerificationError(
            Problem(
                Code.LEDGER_BROKEN,
                "the vault differs from the ledger",
                help="check that this is the right vault",
            )
        )
    return found
