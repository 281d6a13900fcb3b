"""The result of a risk analysis by DuckDB, in the form of the command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import UNSET

from modicum.api.schema.risk import AnalysisRequest
from modicum.core.errors import Code, InputError, Problem
from modicum.engines.factory import EngineOptions
from modicum.risk.candidates import PUBLISHED
from modicum.risk.choice import Choice
from modicum.risk.measurement.data import ControllerData
from modicum.risk.measurement.documents import groups_to_dict, risk_to_dict
from modicum.risk.measurement.study import Risk, rdr
from modicum.risk.worker.messages import MEMORY, Analysis

#: One thread: other work on the machine has priority.
_OPTIONS: Final = EngineOptions(memory=MEMORY, threads=1)


def analysis_result(
    analysis: Analysis, progress: Callable[[int, int], None] = lambda done, of: None
) -> dict[str, Any]:
    """Return the documented JSON form of an analysis.

    It is that of `modicum risk rdr`; with groups, of `modicum risk compare-groups`.
    """
    request = analysis.request
    with ControllerData(_places(analysis.tables), options=_OPTIONS) as data:
        _refuse_many_rows(data, analysis.rows)
        risk = rdr(
            data,
            request.query,
            unit=request.unit or None,
            mechanism=request.mechanism,
            epsilons=PUBLISHED if request.epsilons is UNSET else request.epsilons,
            delta=request.delta or None,
            sensitivity=request.sensitivity or None,
            bounds=request.bounds or None,
            rows_max=request.rows_max or None,
            dimensions=request.dimensions or None,
            groups=request.groups,
            form=request.indicator,
            calibration=request.calibration or "exact",
            progress=progress,
        )
    choice = _chosen(risk, request)
    if request.groups:
        return groups_to_dict(risk, request.statistic or "p99", choice)
    return risk_to_dict(risk, choice)


def _chosen(risk: Risk, request: AnalysisRequest) -> Choice | None:
    if not request.chooses:
        return None
    return risk.choose(
        request.tau or None,
        choice=request.choice or "data-independent",
        max_variance=request.max_variance or None,
        between=request.groups if request.choice == "as-published" else (),
        statistic=request.statistic or "p99",
    )


def _places(tables: Mapping[str, str]) -> object:
    return tables[""] if set(tables) == {""} else dict(tables)


def _refuse_many_rows(data: ControllerData, most: int) -> None:
    for table, relation in data.engine.relations().items():
        counted = data.engine.fetch(f"SELECT COUNT(*) FROM {relation}")  # noqa: S608
        if counted.column(0)[0].as_py() > most:
            named = f"the table `{table}`" if table else "the table"
            raise InputError(
                Problem(
                    Code.TOO_LARGE,
                    f"{named} has more than {most:,} rows",
                    help="analyze a sample of it with  modicum risk , or raise"
                    " `limits.analysis_rows` in the settings",
                )
            )
