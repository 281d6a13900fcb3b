"""Jobs: begun, watched, given up, bounded, and seen by nobody else."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from samples.jobs import PATIENCE

from modicum.api.permissions.actions import Action, Role
from modicum.api.permissions.identity import ALL, Identity
from modicum.core.errors import (
    Code,
    InputError,
    ModicumError,
    Problem,
    UnavailableError,
)
from modicum.server.service.jobs import Job, JobLimits, Jobs, JobState, Report

ALL_SETS = frozenset({ALL})
OLGA = Identity("olga", {Role.PRIVACY_OFFICER: ALL_SETS})
PAVEL = Identity("pavel", {Role.PRIVACY_OFFICER: ALL_SETS})
ROOT = Identity("root", {Role.ADMIN: ALL_SETS})
ACTION = Action.READ_LEDGER

pytestmark = pytest.mark.filterwarnings("error")


class Gate:
    """Work that waits until it is let through, and says how far it is."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.open = threading.Event()

    def __call__(self, report: Report) -> object:
        self.begun.set()
        report(0.5)
        while not self.open.wait(0.01):
            report(0.5)
        return {"found": 1}


@pytest.fixture
def seconds() -> list[float]:
    return [0.0]


@pytest.fixture
def jobs(seconds: list[float]) -> Iterator[Jobs]:
    limits = JobLimits(
        running=1, unfinished=3, each=2, kept=3, kept_bytes=100, kept_seconds=60
    )
    found = Jobs(limits, seconds=lambda: seconds[0])
    yield found
    found.close()


def begun(jobs: Jobs, work: Any, who: Identity = OLGA) -> Job:
    return jobs.begin(who, ACTION, "test", work)


def over(jobs: Jobs, job: Job, who: Identity = OLGA) -> Job:
    until = time.monotonic() + PATIENCE
    while not (found := jobs.one(who, job.id)).is_over:
        assert time.monotonic() < until
        time.sleep(0.005)
    return found


def test_a_job_is_queued_runs_and_is_done(jobs: Jobs) -> None:
    gate, later = Gate(), Gate()
    first, second = begun(jobs, gate), begun(jobs, later)
    assert gate.begun.wait(PATIENCE)
    until = time.monotonic() + PATIENCE
    while jobs.one(OLGA, first.id).progress < 0.5:
        assert time.monotonic() < until
        time.sleep(0.005)
    running = jobs.one(OLGA, first.id)
    assert (running.state, running.result) == (JobState.RUNNING, b"")
    assert jobs.one(OLGA, second.id).state is JobState.QUEUED
    assert [one.id for one in jobs.of(OLGA)] == [first.id, second.id]
    gate.open.set()
    done = over(jobs, first)
    assert (done.state, done.progress, done.result) == (
        JobState.DONE,
        1.0,
        b'{"found":1}',
    )
    assert done.version > running.version > first.version
    assert done.ended_at
    assert not running.ended_at
    later.open.set()
    over(jobs, second)


def test_a_job_that_fails_says_why_but_no_more(jobs: Jobs) -> None:
    def mistaken(_: Report) -> object:
        raise InputError(Problem(Code.UNKNOWN_CHOICE, "told"))

    def broken(_: Report) -> object:
        raise ValueError("a row")

    first, second = over(jobs, begun(jobs, mistaken)), over(jobs, begun(jobs, broken))
    assert (first.state, second.state) == (JobState.FAILED, JobState.FAILED)
    assert isinstance(first.error, InputError)
    assert isinstance(second.error, ModicumError)
    assert second.error.code is Code.INTERNAL
    assert "a row" not in second.error.render()
    odd = over(jobs, begun(jobs, lambda _: object()))  # It is no plain data.
    assert odd.state is JobState.FAILED


def test_a_job_is_given_up_wherever_it_is(jobs: Jobs) -> None:
    gate, never = Gate(), Gate()
    running, queued = begun(jobs, gate), begun(jobs, never)
    assert gate.begun.wait(PATIENCE)
    assert jobs.cancel(OLGA, queued.id).state is JobState.CANCELLED
    jobs.cancel(OLGA, running.id)
    assert over(jobs, running).state is JobState.CANCELLED
    last = over(jobs, begun(jobs, lambda _: {}))
    assert last.state is JobState.DONE
    assert not never.begun.is_set()
    assert jobs.cancel(OLGA, last.id) == last


def test_what_is_found_by_a_job_that_was_given_up_is_not_kept(jobs: Jobs) -> None:
    begin, end = threading.Event(), threading.Event()

    def deaf(_: Report) -> object:
        begin.set()
        end.wait(PATIENCE)
        return {}

    job = begun(jobs, deaf)
    assert begin.wait(PATIENCE)
    jobs.cancel(OLGA, job.id)
    end.set()
    found = over(jobs, job)
    assert (found.state, found.result) == (JobState.CANCELLED, b"")


def test_a_job_is_nobody_elses(jobs: Jobs) -> None:
    job = over(jobs, begun(jobs, lambda _: {}))
    lesser = Identity("olga", {Role.ANALYST: ALL_SETS})
    messages = set()
    for who in (PAVEL, ROOT, lesser):
        for verb in (jobs.one, jobs.cancel):
            with pytest.raises(InputError) as refused:
                verb(who, job.id)
            assert refused.value.code is Code.NOT_FOUND
            messages.add(str(refused.value))
        assert jobs.of(who) == ()
    unknown = job.id[:-1] + ("0" if job.id[-1] != "0" else "1")
    with pytest.raises(InputError) as missing:
        jobs.one(OLGA, unknown)
    assert messages == {str(missing.value).replace(unknown, job.id)}


def test_a_job_of_another_process_is_elsewhere(jobs: Jobs) -> None:
    other = Jobs()
    job = over(other, begun(other, lambda _: {}))
    other.close()
    with pytest.raises(InputError) as refused:
        jobs.one(OLGA, job.id)
    assert refused.value.code is Code.JOB_ELSEWHERE
    for odd in ("x", "00000000-", f"{job.id}0", job.id.upper()[:8] + "é"):
        with pytest.raises(InputError) as unknown:
            jobs.one(OLGA, odd)
        assert unknown.value.code is Code.NOT_FOUND


def test_so_many_jobs_are_under_way(jobs: Jobs) -> None:
    gate = Gate()
    own = [begun(jobs, gate), begun(jobs, gate)]
    with pytest.raises(UnavailableError):
        begun(jobs, gate)
    begun(jobs, gate, PAVEL)
    with pytest.raises(UnavailableError):  # Three are under way, whosever they are.
        begun(jobs, gate, PAVEL)
    jobs.cancel(OLGA, own[1].id)
    begun(jobs, gate, PAVEL)
    gate.open.set()


def test_so_many_results_are_kept_and_for_so_long(
    jobs: Jobs, seconds: list[float]
) -> None:
    found = []
    for number in range(5):
        seconds[0] = number
        found.append(over(jobs, begun(jobs, lambda _: {})))
    assert [one.id for one in jobs.of(OLGA)] == [one.id for one in found[2:]]
    seconds[0] = 2 + 60
    assert [one.id for one in jobs.of(OLGA)] == [one.id for one in found[3:]]
    large = over(jobs, begun(jobs, lambda _: {"a": "x" * 80}))
    assert [one.id for one in jobs.of(OLGA)] == [*(o.id for o in found[3:]), large.id]
    seconds[0] += 1
    larger = over(jobs, begun(jobs, lambda _: {"a": "x" * 81}))
    assert [one.id for one in jobs.of(OLGA)] == [larger.id]


def test_what_is_under_way_ends_with_the_process() -> None:
    jobs = Jobs(JobLimits(running=1))
    gate, never = Gate(), Gate()
    running, queued = begun(jobs, gate), begun(jobs, never)
    assert gate.begun.wait(PATIENCE)
    jobs.close()
    for one in (running, queued):
        assert jobs.one(OLGA, one.id).state is JobState.CANCELLED
    assert not never.begun.is_set()
    with pytest.raises(UnavailableError):
        begun(jobs, gate)


def test_jobs_that_mostly_wait_keep_no_others_waiting() -> None:
    jobs, gates = Jobs(JobLimits(running=1)), [Gate(), Gate()]
    single = [jobs.begin(OLGA, ACTION, "waits", gate, is_single=True) for gate in gates]
    assert gates[0].begun.wait(PATIENCE)
    over(jobs, begun(jobs, lambda _: {}))
    assert not gates[1].begun.is_set()  # They wait for each other.
    gates[0].open.set()
    assert gates[1].begun.wait(PATIENCE)
    jobs.close()
    states = [jobs.one(OLGA, one.id).state for one in single]
    assert states == [JobState.DONE, JobState.CANCELLED]


def test_jobs_that_mostly_wait_are_counted_by_themselves() -> None:
    jobs, gate = Jobs(JobLimits(unfinished=3, each=1, each_single=2)), Gate()

    def begin(who: Identity) -> None:
        jobs.begin(who, ACTION, "waits", gate, is_single=True)

    begin(OLGA)
    begin(OLGA)
    with pytest.raises(UnavailableError, match="2 of your jobs"):
        begin(OLGA)
    begin(PAVEL)
    with pytest.raises(UnavailableError, match="too many jobs"):
        begin(PAVEL)
    over(jobs, begun(jobs, lambda _: {}))
    gate.open.set()
    jobs.close()


def test_a_job_about_a_data_set_is_seen_with_the_right_to_it(jobs: Jobs) -> None:
    visits = Identity("vera", {Role.DATA_STEWARD: frozenset({"visits"})})
    action = Action.ANALYZE_RISK
    job = jobs.begin(visits, action, "test", lambda _: {}, data_set="visits")
    over(jobs, job, visits)
    assert [one.id for one in jobs.of(visits)] == [job.id]
    labs = Identity("vera", {Role.DATA_STEWARD: frozenset({"labs"})})
    assert jobs.of(labs) == ()
    for verb in (jobs.one, jobs.cancel):
        with pytest.raises(InputError):
            verb(labs, job.id)
