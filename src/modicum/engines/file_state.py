"""Whether the files of an engine are unchanged since they were checked.

A statement may read a file more than once, and caps combine one read with counts of
another. The price holds for one table, not for halves of two.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias

from modicum.core.errors import Code, Problem, UnavailableError
from modicum.engines.sources import CsvFile, DuckdbTable, ParquetFiles, Source

_REMOTE: Final = "://"
#: By path, what changes if the file is written to or replaced; None if it is gone.
State: TypeAlias = dict[str, tuple[int, ...] | None]


def state_of(sources: Iterable[Source]) -> State:
    """Return the state of the files of this machine that sources read."""
    return {path: _state(path) for source in sources for path in _paths(source)}


def must_be_unchanged(before: State) -> None:
    """Return if files are as they were."""
    if any(_state(path) != state for path, state in before.items()):
        raise UnavailableError(
            Problem(
                Code.ENGINE_FAILED,
                "the data changed while it was in use",
                notes=("caps and sums could use different rows",),
                help="use files that nobody writes to",
            )
        )


def _paths(source: Source) -> Iterable[str]:
    if isinstance(source, ParquetFiles):
        return [path for path in source.paths if _REMOTE not in path]
    if isinstance(source, CsvFile | DuckdbTable):
        return [source.path]
    return []


def _state(path: str) -> tuple[int, ...] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return (
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )
