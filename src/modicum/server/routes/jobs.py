"""`/jobs` and `/events`: long operations, and event streams."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, cast

import msgspec
from fastapi import APIRouter, Depends, Header, Path
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from modicum.api import operations
from modicum.api.local.views.problem_details import details_of
from modicum.api.permissions.identity import Identity
from modicum.api.schema import job as schema
from modicum.core.errors import Code, InputError, Problem
from modicum.server.auth.authentication import Standing, Who
from modicum.server.components import Parts, Verbs, parts_of
from modicum.server.event_streams import (
    HEARTBEAT,
    HEARTBEAT_SECONDS,
    MEDIA_TYPE,
    STREAM_SECONDS,
    event_text,
)
from modicum.server.responses import json_response
from modicum.server.routes.openapi_parts import Responses, serve
from modicum.server.service.jobs import Job

router = APIRouter(tags=["jobs"])

#: Polling interval of jobs and of the log, for streams.
_JOB_SECONDS = 0.2
_LOG_SECONDS = 0.5

JobId = Annotated[str, Path(min_length=1, max_length=60)]
LastSeen = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        max_length=20,
        description="the `id` of the last received event",
    ),
]
_STREAM: Responses = {
    200: {
        "description": "server-sent events; `data` of each is JSON",
        "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
    }
}


def job_response(job: Job) -> Response:
    """Return the answer to a request that began a job."""
    answer = json_response(_item(job), 202)
    answer.headers["Location"] = operations.PREFIX + operations.JOB.address(job=job.id)
    return answer


@serve(router, operations.JOBS)
async def jobs(who: Who, verbs: Verbs) -> Response:
    """Return your jobs of this process, oldest first."""
    return json_response(schema.JobList(jobs=tuple(map(_item, verbs.jobs.of(who)))))


@serve(router, operations.JOB)
async def one(job: JobId, who: Who, verbs: Verbs) -> Response:
    """Return one of your jobs, and its result."""
    return json_response(_whole(verbs.jobs.one(who, job)))


@serve(router, operations.CANCEL_JOB)
async def cancel(job: JobId, who: Who, verbs: Verbs) -> Response:
    """Cancel one of your jobs; a running one ends at its next step."""
    return json_response(_whole(verbs.jobs.cancel(who, job)))


# --- streams --------------------------------------------------------------------------


@serve(router, operations.JOB_EVENTS, responses=_STREAM)
async def watch(
    request: Request,
    job: JobId,
    who: Who,
    parts: Annotated[Parts, Depends(parts_of)],
    last_seen: LastSeen = None,
) -> Response:
    """Stream the progress of a job, until it is over."""
    parts.service.jobs.one(who, job)
    listener = _Listener(parts, who, Standing(request, who))
    events = _job_events(listener, job, _seen(last_seen) or 0)
    return parts.streams.response(who.name, events)


@serve(router, operations.EVENTS, responses=_STREAM)
async def happenings(
    request: Request,
    who: Who,
    parts: Annotated[Parts, Depends(parts_of)],
    last_seen: LastSeen = None,
) -> Response:
    """Stream new entries of the log, and your jobs.

    Without permission to read the ledger, only your own releases are included. A client
    that reconnects with `Last-Event-ID` misses no entry.
    """
    head = await parts.service.events.head(who)
    seen = _seen(last_seen)
    after = head if seen is None else min(seen, head)
    listener = _Listener(parts, who, Standing(request, who))
    return parts.streams.response(who.name, _happenings(listener, after))


class _Listener:
    """The listener of a stream, and its end.

    Args:
        parts: The parts of the server.
        who: The caller.
        standing: Checks whether they are still authenticated.
    """

    def __init__(self, parts: Parts, who: Identity, standing: Standing) -> None:
        self.service = parts.service
        self.who = who
        self._parts = parts
        self._standing = standing
        self._ends = time.monotonic() + STREAM_SECONDS

    async def may_continue(self) -> bool:
        """Return whether the stream continues for them."""
        over = self._parts.is_leaving or time.monotonic() >= self._ends
        return not over and await self._standing.holds()


async def _job_events(listener: _Listener, job: str, seen: int) -> AsyncIterator[bytes]:
    quiet = _Quiet()
    while await listener.may_continue():
        try:
            found = listener.service.jobs.one(listener.who, job)
        except InputError:  # It was deleted before the client received the last event.
            return
        if found.version > seen:
            seen = found.version
            quiet.reset()
            yield event_text("job", _item(found), seen)
        if found.is_over:
            return
        if quiet.is_long():
            yield HEARTBEAT
        await asyncio.sleep(_JOB_SECONDS)


async def _happenings(listener: _Listener, after: int) -> AsyncIterator[bytes]:
    quiet, who, service = _Quiet(), listener.who, listener.service
    versions = {one.id: one.version for one in service.jobs.of(who)}
    yield HEARTBEAT  # From this heartbeat on, no entry is missed.
    while await listener.may_continue():
        news = await service.events.since(who, after)
        after = news.seen
        for entry in news.entries:
            quiet.reset()
            data = {"seq": entry.seq, "head": entry.head, "kind": entry.kind}
            own = {"release": entry.release} if entry.release else {}
            yield event_text("entry", {**data, **own}, entry.seq)
        jobs = service.jobs.of(who)
        for job in jobs:
            if job.version != versions.get(job.id):
                quiet.reset()
                yield event_text("job", _item(job))
        versions = {one.id: one.version for one in jobs}
        if quiet.is_long():
            yield HEARTBEAT
        if not news.more:
            await asyncio.sleep(_LOG_SECONDS)


class _Quiet:
    """Measures the time since the last message, for heartbeats."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def reset(self) -> None:
        """Note that something is sent."""
        self._since = time.monotonic()

    def is_long(self) -> bool:
        """Return whether a heartbeat is due; then it counts as sent."""
        if time.monotonic() - self._since < HEARTBEAT_SECONDS:
            return False
        self.reset()
        return True


def _seen(last_seen: str | None) -> int | None:
    """Return the number of the last event that was seen."""
    if last_seen is None:
        return None
    if not (last_seen.isascii() and last_seen.isdigit()) or len(last_seen) > 18:
        raise InputError(
            Problem(
                Code.BAD_REQUEST,
                "Last-Event-ID is not the id of an event",
                help="send the `id` of the last event unchanged, or leave it out",
            )
        )
    return int(last_seen)


# --- documents ------------------------------------------------------------------------


def _item(job: Job) -> schema.JobItem:
    return schema.JobItem(
        job=job.id,
        kind=job.kind,
        state=job.state.value,
        progress=job.progress,
        begun_at=job.begun_at,
        ended_at=job.ended_at or None,
    )


def _whole(job: Job) -> schema.Job:
    error, result = job.error, cast(Any, msgspec.Raw(job.result))
    return schema.Job(
        **asdict(_item(job)),
        result=result if job.result else None,
        problem=None if error is None else details_of(error),
    )
