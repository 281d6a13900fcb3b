"""What runs leave in the vault: answers to queries and scores, as bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from modicum.core.errors import Code, Problem, VerificationError
from modicum.escrow.programs import Cell, Table
from modicum.query.results import Answers

ANSWERS_KIND: Final = "modicum-answers/v1"
SCORE_KIND: Final = "modicum-score/v1"
#: Sizes can be seen from outside of the vault: those of scores tell nothing, and those
#: of answers little.
_SCORE_BYTES: Final = 512
_ANSWERS_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers to the queries of a contract.

    Attributes:
        answers: By release, the documented JSON form of its answers.
        tables: By release, what programs are given.
    """

    answers: Mapping[str, Mapping[str, Any]]
    tables: Mapping[str, Table]


def answers_to_bytes(answers: Mapping[str, Answers]) -> bytes:
    """Return answers as they are kept, in a power of two of bytes.

    Args:
        answers: The answers, by release.
    """
    found = _written(
        {
            "kind": ANSWERS_KIND,
            "answers": {name: one.to_dict() for name, one in answers.items()},
            "tables": {name: _table(one) for name, one in answers.items()},
        }
    )
    return found.ljust(max(_ANSWERS_BYTES, 1 << (len(found) - 1).bit_length()))


def answers_from_bytes(data: bytes) -> Answered:
    """Return answers that were kept.

    Args:
        data: What `answers_to_bytes` returned.

    Raises:
        VerificationError: If it is something else.
    """
    found = _read(data, ANSWERS_KIND)
    tables = {
        name: Table(tuple(one["columns"]), tuple(tuple(row) for row in one["rows"]))
        for name, one in found["tables"].items()
    }
    return Answered(found["answers"], tables)


def table_of(answers: Answers) -> Table:
    """Return answers as programs are given them, now or when they are opened again.

    Args:
        answers: The answers.
    """
    rows = tuple(tuple(row) for row in _rows(answers))
    return Table((*answers.keys, *answers.aggregates), rows)


def score_to_bytes(score: float | Fraction | None) -> bytes:
    """Return a score as it is kept; all scores take the same number of bytes.

    Args:
        score: The score; None if there is none.
    """
    text: str | None = None
    if isinstance(score, Fraction):
        text = str(score)
    elif score is not None:
        text = score.hex()  # It is exact, and short however small the score is.
    return _written({"kind": SCORE_KIND, "score": text}).ljust(_SCORE_BYTES)


def score_from_bytes(data: bytes) -> Fraction | None:
    """Return a score that was kept; None if there was none.

    Args:
        data: What `score_to_bytes` returned.

    Raises:
        VerificationError: If it is something else.
    """
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
                "what lies in the vault is not what the ledger says",
                help="look whose vault this is",
            )
        )
    return found
