"""Scripts for Tumult Analytics under a reservation, in a separate environment.

The session's budget must equal the reserved one, to the last digit. Tables are read
from files in the process's folder, and only from there.

The session is created here, in a worker, with the reserved budget; the script receives
it and returns tables. That these were made by the session is up to the script.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from modicum.api.ports.reservation import InUse, Reserved
from modicum.core.diagnostics import fail
from modicum.core.errors import Code, ConflictError, Problem, UnavailableError
from modicum.integrations.library_errors import loaded, unquoted
from modicum.integrations.tumult_session import (
    Source,
    count,
    id_column,
    refuse_sources,
    session_budget,
    source_of,
)
from modicum.integrations.workers import child
from modicum.integrations.workers.parent import Worker
from modicum.integrations.workers.runner import Runner
from modicum.system.files import opened

#: Maximum total size of answers.
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
    """The result of a script.

    Attributes:
        tables: Its tables by name, as `pyarrow.Table`.
        granted: The session's budget: `eps`, `rho`, or `eps` and `delta`.
        remaining: The part of it that the script did not use. It is not returned.
    """

    tables: dict[str, Any]
    granted: dict[str, Fraction]
    remaining: dict[str, Fraction]


def answers_of(output: bytes, budget: Mapping[str, Fraction], folder: Path) -> Answers:
    """Return the result of a script."""
    result = _result(output)
    granted = {name: Fraction(text) for name, text in result.granted.items()}
    remaining = {name: Fraction(text) for name, text in result.remaining.items()}
    if granted != budget or remaining.keys() != budget.keys():
        raise spent("the budget of the session differs from the reservation")
    if any(remaining[name] > budget[name] for name in budget):
        raise spent("the session has more budget left than it started with")
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
    """Return the error for a run that did not go as reserved."""
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
    # Outside of the handler: otherwise the message would stay attached.
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
                help="return smaller tables",
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
            "the process of Tumult sent an invalid response",
            notes=("its output is hidden: it may quote rows",),
            help="check that the given Python belongs to its environment",
        )
    )


TUMULT: Final = Runner(
    library="Tumult",
    file=Path(child.__file__).with_name("tumult_runner.py"),
    versions={"tmlt.analytics": ("0.21",), "tmlt.core": ("0.19", "0.20")},
    install="pip install 'tmlt.analytics==0.21.0'",
    doing={
        "runner": "to be inspected",
        "script": "in the script",
        "java": "to find Java",
        "import": "to be loaded",
        "spark": "to start Spark",
        "sources": "reading the tables",
        "session": "in its session",
        "tables": "writing the answers",
    },
)
#: Loading the library and starting Spark.
PREPARE_SECONDS: Final = 600.0
#: The default time limit of a script.
RUN_SECONDS: Final = 3600.0
_SCRIPT_MAX: Final = 2**19


class Tumult:
    """Tumult Analytics as one mechanism of a reservation.

    Args:
        use: The reservation in use.
        mechanism: The mechanism: `declared`, with a cost for one unit, in eps, in rho,
            or in eps and delta.
        python: The Python of Tumult's environment.
        settings: Settings of Spark, such as `spark.driver.memory`; those that keep rows
            out of logs are fixed.

    Raises:
        InputError: If it is not reserved so.
        UsageError: If the library that reads Arrow is not installed here.
    """

    def __init__(
        self,
        use: InUse,
        mechanism: Reserved,
        python: str | Path,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        loaded("pyarrow", "Arrow", "modicum[tables]")
        self._use = use
        self._mechanism = mechanism
        self._python = python
        self._settings = dict(settings or {})
        #: The inputs of a session.
        self.budget: Final = session_budget(mechanism)

    # --- tables ---

    def rows_with_id(
        self, file: str | Path, *, columns: Mapping[str, str] | None = None
    ) -> Source:
        """Return a table in which the unit's id identifies a row's instance.

        Rows without an id are left out. Tumult's `AddRowsWithID`.
        """
        (unit,) = self._mechanism.units
        column = id_column(unit, self._use.unit(unit))
        return source_of(file, {"id_column": column}, columns)

    def max_rows(
        self,
        file: str | Path,
        rows: int,
        *,
        columns: Mapping[str, str] | None = None,
    ) -> Source:
        """Return a table with a bound on the rows of one instance of the unit.

        That no instance has more is your knowledge. Tumult's `AddMaxRows`.
        """
        return source_of(file, {"max_rows": count("rows", rows)}, columns)

    def max_rows_in_max_groups(
        self,
        file: str | Path,
        rows: int,
        groups: int,
        *,
        column: str,
        columns: Mapping[str, str] | None = None,
    ) -> Source:
        """Return a table with a bound on the rows of one instance in each group.

        That no instance has more is your knowledge. Tumult's `AddMaxRowsInMaxGroups`.
        """
        change: dict[str, int | str] = {
            "grouping_column": column,
            "max_groups": count("groups", groups),
            "max_rows_per_group": count("rows", rows),
        }
        return source_of(file, change, columns)

    def public(
        self, file: str | Path, *, columns: Mapping[str, str] | None = None
    ) -> Source:
        """Return a public, unprotected table."""
        return source_of(file, None, columns)

    # --- scripts ---

    def prepare(self, script: str | Path, sources: Mapping[str, Source]) -> Script:
        """Return a script that is ready to run. No row is read.

        Starts Tumult and its Spark, and checks the script: before the block of the
        reservation is entered, errors in them cost nothing.
        """
        refuse_sources(sources)
        path = Path(script).absolute()
        job = {
            "script": {
                "name": path.name,
                "folder": str(path.parent),
                "text": _text_of(path),
            },
            "settings": self._settings,
            "budget": {name: str(value) for name, value in self.budget.items()},
            "sources": {name: one.to_plain() for name, one in sources.items()},
        }
        worker = Worker(TUMULT, self._python)
        worker.prepare(job, seconds=PREPARE_SECONDS)
        return Script(self._use, self._mechanism.name, worker, job)


class Script:
    """A script that is ready to run, once.

    Its Tumult waits until then. It ends after the run, and when it is no longer
    referenced.

    Args:
        use: The reservation in use.
        mechanism: The mechanism's name.
        worker: The process in which Tumult waits.
        job: The job to run.
    """

    def __init__(
        self, use: InUse, mechanism: str, worker: Worker, job: Mapping[str, Any]
    ) -> None:
        self._use = use
        self._mechanism = mechanism
        self._worker = worker
        self._job = job
        self._budget = {name: Fraction(text) for name, text in job["budget"].items()}
        self._well = False

    def run(self, *, seconds: float = RUN_SECONDS) -> Answers:
        """Return the result of the script.

        If it fails, ends or exceeds the time limit, the release stays started, and
        spent.
        """
        self._use.claim(self._mechanism)
        self._use.before_post(self.confirm)
        try:
            found = self._worker.run(self._job, seconds=seconds)
            answers = answers_of(found, self._budget, self._worker.scratch)
        finally:
            self.close()
        self._well = True
        return answers

    def confirm(self) -> None:
        """Return if the script ran well; else its release is not published."""
        if not self._well:
            raise spent("the script did not finish")

    def close(self) -> None:
        """End the Tumult that waits."""
        self._worker.close()


def _text_of(script: Path) -> str:
    with opened(script) as stream:
        text = stream.read(_SCRIPT_MAX + 1)
    if len(text) > _SCRIPT_MAX:
        raise fail(
            Code.TOO_LARGE,
            f"{script} is too large for a script: it has more than {_SCRIPT_MAX} bytes",
            help="move code into modules next to it",
        )
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        raise fail(
            Code.NOT_TEXT, f"{script} is not text in UTF-8", help="save it as UTF-8"
        ) from None
