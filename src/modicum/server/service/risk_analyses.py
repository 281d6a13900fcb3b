"""Risk analyses: what a query reveals about the people of a table, without noise.

The result is for the data controller only: for the caller, while they have permission.
It is kept with job results, in memory for a while, and never written.
"""

from __future__ import annotations

import threading
from functools import partial

import msgspec
from msgspec.structs import replace

from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.api.schema.risk import AnalysisRequest
from modicum.core.errors import Code, InputError, Problem, UnavailableError
from modicum.risk.worker.parent import analyzed
from modicum.server.resources import Equipment, not_set_up
from modicum.server.service.jobs import Job, Jobs, Report
from modicum.server.settings.tables import TablesOf


class RiskAnalyses:
    """Analyses of the tables in the settings, one at a time.

    Args:
        own: The tables, and how much an analysis may take.
        jobs: Where long operations run.
    """

    def __init__(self, own: Equipment, jobs: Jobs) -> None:
        self._own = own
        self._jobs = jobs
        self._guard = threading.Lock()
        self._last: tuple[Identity, str] | None = None

    def begin(self, who: Identity, data_set: str, request: AnalysisRequest) -> Job:
        """Begin an analysis."""
        # Without permission nothing is revealed, not even that the analysis exists.
        if not who.may(Action.ANALYZE_RISK, data_set):
            raise _unknown(data_set)
        if not self._own.tables:
            raise not_set_up("no tables to analyze", "tables")
        tables = self._own.tables.get(data_set)
        if tables is None:
            raise _unknown(data_set)
        if not request.unit and tables.unit:
            request = replace(request, unit=tables.unit)
        with self._guard:
            self._refuse_another()
            job = self._jobs.begin(
                who,
                Action.ANALYZE_RISK,
                "analyze-risk",
                partial(self._analyzed, tables, request),
                data_set=data_set,
            )
            self._last = who, job.id
        return job

    def _refuse_another(self) -> None:
        """Refuse a second one: it would take memory and threads from all others."""
        if self._last is None:
            return
        try:
            is_over = self._jobs.one(*self._last).is_over
        except InputError:  # It was deleted, as only finished jobs are.
            return
        if not is_over:
            raise UnavailableError(
                Problem(
                    Code.TOO_MANY_REQUESTS,
                    "another analysis is running",
                    notes=("nothing was started",),
                    help="wait until it is finished; cancel your own with DELETE of"
                    " its job",
                )
            )

    def _analyzed(
        self, tables: TablesOf, request: AnalysisRequest, report: Report
    ) -> object:
        return msgspec.Raw(analyzed(tables.rows, request, self._own.bounds, report))


def _unknown(data_set: str) -> InputError:
    return InputError(
        Problem(
            Code.NOT_FOUND,
            f"you may not analyze a data set `{data_set[:60]}`",
            help="ask the operator of the server: its settings list tables and"
            " data stewards",
        )
    )
