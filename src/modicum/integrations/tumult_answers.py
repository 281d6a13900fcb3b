"""What a script for Tumult came to: told by a process that nobody trusts, and checked.

What the session had must be what is reserved, to the last digit. Tables are read from
files in the process's folder, and only from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from modicum.core.errors import Code, ConflictError, Problem, UnavailableError
from modicum.integrations.library_errors import loaded, unquoted
from modicum.system.files import opened

#: Answers that are larger together are not read.
ANSWERS_MAX: Final = 2**30

_Number = Annotated[
    str, msgspec.Meta(pattern=r"^[0-9]{1,4000}(/[1-9][0-9]{0,3999})?\Z")
]
_Table = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,79}\Z")]


class _Result(msgspec.Struct, forbid_unknown_fields=True):
    tables: Annotated[list[_Table], msgspec.Meta(max_length=1000)]
    granted: dict[str, _Number]
    remaining: dict[str, _Number]


@dataclass(frozen=True, slots=True)
class Answers:
    """What a script came to.

    Attributes:
        tables: Its tables by name, as `pyarrow.Table`.
        granted: What its session had: `eps`, `rho`, or `eps` and `delta`.
        remaining: What of that the script did not use. It is not given back.
    """

    tables: dict[str, Any]
    granted: dict[str, Fraction]
    remaining: dict[str, Fraction]


def answers_of(told: bytes, budget: Mapping[str, Fraction], folder: Path) -> Answers:
    """Return what a script came to.

    Args:
        told: What its process said, which nobody has looked at.
        budget: What is reserved for its session.
        folder: Where its tables are.

    Raises:
        ConflictError: If the session had another budget.
        InputError: If a table is not there.
        UnavailableError: If what was said, or a table, cannot be read.
    """
    result = _result(told)
    granted = {name: Fraction(text) for name, text in result.granted.items()}
    remaining = {name: Fraction(text) for name, text in result.remaining.items()}
    if granted != budget or remaining.keys() != budget.keys():
        raise spent("the session had another budget than is reserved")
    if any(remaining[name] > budget[name] for name in budget):
        raise spent("the session has more left than it had")
    return Answers(_tables(result.tables, folder), granted, remaining)


def _tables(names: list[str], folder: Path) -> dict[str, Any]:
    arrow = loaded("pyarrow", "Arrow", "modicum[tables]")
    read, tables = 0, {}
    for name in names:
        data = _bytes_of(folder / f"{name}.arrow", ANSWERS_MAX - read)
        read += len(data)
        tables[name] = _table(arrow, data)
    return tables


def spent(message: str) -> ConflictError:
    """Return the error for a run that did not go as reserved.

    Args:
        message: What is wrong with it.
    """
    return ConflictError(
        Problem(
            Code.RELEASE_STATE,
            message,
            notes=("the release stays started, and its loss spent",),
            help="reserve another release, and run the script under that",
        )
    )


def _result(found: bytes) -> _Result:
    try:
        return msgspec.json.decode(found, type=_Result)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    # Outside of the handler: else what was said would stay attached.
    raise _unread()


def _bytes_of(file: Path, most: int) -> bytes:
    """Return an answer's file, if it lies in the worker's folder itself."""
    with opened(file, file.parent) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise UnavailableError(
            Problem(
                Code.TOO_LARGE,
                f"the answers have more than {ANSWERS_MAX} bytes",
                notes=("the release stays started, and its loss spent",),
                help="answer with smaller tables",
            )
        )
    return data


def _table(arrow: Any, data: bytes) -> Any:
    def read() -> Any:
        table = arrow.ipc.open_file(arrow.py_buffer(data)).read_all()
        table.validate(full=True)
        return table

    return unquoted("Tumult", "handing over an answer", read)


def _unread() -> UnavailableError:
    return UnavailableError(
        Problem(
            Code.ENGINE_FAILED,
            "the process of Tumult gave no answer of the protocol",
            notes=("what it said is not shown: it may quote rows",),
            help="look whether the Python that was named is that of its environment",
        )
    )
