"""Risk: the choice of an epsilon by what it means for the people of a table."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec
from anyio import CapacityLimiter, to_thread
from msgspec.structs import replace
from starlette.concurrency import run_in_threadpool

from modicum.api import operations
from modicum.console.jobs import job_of, job_page
from modicum.console.registry import form, page
from modicum.console.relay import Relay
from modicum.console.risk_study import (
    noise_of,
    profile_pictures,
    public_pictures,
    result_pictures,
)
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import number_text, parse_number
from modicum.risk.arguments import ARGUMENT

_JOB = "analyze-risk"
_TEXTS = ("dataset", "query", "unit", "mechanism", "indicator", "choice")
#: Studies of profiles at once; each takes seconds of a processor.
_STUDIES = CapacityLimiter(1)
#: The most characters of a list of numbers or groups.
_LETTERS_MAX = 4_000
_NUMBERS = ("tau", "sensitivity", "delta", "rows_max", "dimensions")


@page("/risk", "risk.html", "Risk")
async def risk(relay: Relay) -> dict[str, Any]:
    """Return the chooser, and the result of an analysis."""
    me = await relay.get(operations.ME)
    job = await job_of(relay, _JOB)
    result: Any = job.result if job and job.state == "done" else None
    tau = parse_number(relay.query.get("tau", ""))
    tau = tau if tau is not None and 0 < tau <= 1 else None
    vocabulary = await relay.try_get(operations.VOCABULARY)
    units = vocabulary.units if vocabulary else ()
    sets = sorted({one for each in me.roles.values() for one in each} - {"*"})
    asked = {"tau": "0.9", "choice": "data-independent", **relay.query}
    asked |= (
        {key: str(result[key] or "") for key in ("query", "unit")} if result else {}
    )
    return {
        "asked": defaultdict(str, {**asked, **relay.fields}),
        "sets": sets,
        "unit": units[0] if len(units) == 1 else "UNIT",
        "job": job,
        "result": result,
        # Drawn in a thread: others are answered meanwhile.
        "own": await run_in_threadpool(result_pictures, result, tau),
        "public": await run_in_threadpool(public_pictures, result, tau),
        "profile": None,
        "of_data": "dataset" in relay.fields,
    }


@form("/risk/analyses", risk)
async def analyze(relay: Relay) -> str:
    """Begin an analysis of a data set of the server."""
    _refuse_long(relay)
    asked = analysis_of(relay.fields)
    job = (await relay.call(operations.ANALYZE_RISK, asked)).value
    kept = {key: relay.fields.get(key, "") for key in ("dataset", "tau", "choice")}
    return job_page("/risk", job=job.job, **kept)


@form("/risk/profile", risk)
async def study(relay: Relay) -> dict[str, Any]:
    """Study a profile that was sent with the form; nothing of it is kept."""
    try:
        text, noise = relay.fields.get("profile", ""), noise_of(relay.fields)
        work = partial(profile_pictures, text, noise, relay.fields)
        return {"profile": await to_thread.run_sync(work, limiter=_STUDIES)}
    except InputError as error:  # Its fields are no arguments of Python's.
        plain = partial(ARGUMENT.sub, r"`\1`")
        problems = (replace(one, help=plain(one.help)) for one in error.problems)
        raise InputError(*problems) from None


def _refuse_long(relay: Relay) -> None:
    """Refuse fields that would take long to read, whatever they say."""
    for key in (*_NUMBERS, "epsilons", "bounds", "groups"):
        if len(relay.fields.get(key, "")) > _LETTERS_MAX:
            message = f"`{key}` has more than {_LETTERS_MAX} characters"
            raise InputError(Problem(Code.TOO_LARGE, message, help="shorten it"))


def analysis_of(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the request of an analysis; what is left out stays out."""
    found: dict[str, Any] = {key: fields[key] for key in _TEXTS if fields.get(key)}
    found |= {key: _number(fields[key]) for key in _NUMBERS if fields.get(key)}
    epsilons = [one for one in re.split(r"[,\s]+", fields.get("epsilons", "")) if one]
    if epsilons:
        found["epsilons"] = [_number(one) for one in epsilons]
    groups = [one.strip() for one in fields.get("groups", "").splitlines()]
    if any(groups):
        found["groups"] = [one for one in groups if one]
        found |= {"statistic": fields["statistic"]} if fields.get("statistic") else {}
    bounds = fields.get("bounds", "").split()
    if bounds:
        named = [one.rpartition("=") for one in bounds]
        ends = {column: _ends(pair) for column, _, pair in named}
        found["bounds"] = ends.get("", ends)
    return found


def _ends(pair: str) -> list[Any]:
    return [_number(one) for one in pair.split(":")]


def _number(text: str) -> Any:
    """Return an exact number as JSON; a text that is none stays, and is refused."""
    found = parse_number(text.strip())
    return text if found is None else msgspec.Raw(number_text(found).encode())
