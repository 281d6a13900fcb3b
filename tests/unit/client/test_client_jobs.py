"""What a server does that takes long: found again, waited for, given up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from samples.remote import BEFORE, answering
from samples.small import POLICY, compiled, counts

import modicum as mo
from modicum.api.local.plans.requests import Handed, read_request
from modicum.api.local.policies.replay import history_of
from modicum.api.local.policies.what_if import what_if
from modicum.api.local.views.compiled_rules import (
    compiled_rule_view,
    compiled_rules,
    compiled_view,
)
from modicum.api.local.views.policy_changes import differences_view, simulation_view
from modicum.api.schema.shape import plain
from modicum.client import jobs
from modicum.client.jobs import Job
from modicum.client.retry_connection import Request
from modicum.core.document import from_python
from modicum.core.errors import Code, InputError, Problem
from modicum.policy.changes.differences import differences

#: Attributes enough for more rules than one page holds.
MANY = POLICY.replace(
    "    steps: [medium, {health: strong}]\n",
    "    steps: [medium, {health: strong}]\n"
    + "".join(f"    a{number}: [low, {{health: weak}}]\n" for number in range(300)),
)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    ledger = tmp_path / "ledger.db"
    with answering(ledger, policy=tmp_path / "policy.yaml") as url:
        yield ledger, url


def told(found: object) -> Any:
    return plain(found)


def test_policies_are_worked_on_as_here(
    served: tuple[Path, str], tmp_path: Path
) -> None:
    ledger, url = served
    mo.open(ledger, actor="ann").submit(counts("r", rho="0.01"))
    many, tight = (
        compiled(MANY),
        compiled(POLICY.replace("budget: 2.0}", "budget: 0.1}")),
    )
    (tmp_path / "tight.yaml").write_text(tight.policy.text)
    with mo.connect(url, token=f"{BEFORE}olga") as ws:
        lint = ws.policies.lint(many)
        assert (lint["ok"], lint["digest"]) == (True, many.policy.digest)
        rules = [compiled_rule_view(one) for one in compiled_rules(many, 0, 10**6)]
        assert len(rules) > 500
        expected = told({**plain(compiled_view(many)), "list": rules})
        assert ws.policies.compile(many) == expected
        found = ws.policies.diff(tmp_path / "tight.yaml")
        conflicts = found.pop("conflicts")
        assert found.pop("problems") == []
        preview = mo.open(ledger).governance.preview_activation(tight)
        expected = [one.rule.id for one in preview.conflicts]
        assert [one["rule"] for one in conflicts] == expected != []
        old = compiled()
        changed = differences(old, tight)
        assert found == told(differences_view(old, tight, changed))
        job = ws.policies.simulate(tight)
        history = history_of(mo.open(ledger).records(), mo.open(ledger).current()[2])
        simulated = told(simulation_view(tight, history, what_if(history, tight)))
        assert job.wait() == simulated
        known = [one.id for one in ws.jobs.list()]
        assert known == [job.id]
        assert ws.jobs.one(job.id).standing == job.standing
        assert job.cancel().state == "done"  # It is over, and stays so.
        with pytest.raises(mo.InputError):
            ws.jobs.one("0" * 8 + "-" + "0" * 24)
        (tmp_path / "wrong.yaml").write_text(POLICY.replace("unit: user", "unit: day"))
        with pytest.raises(mo.InputError):
            ws.policies.lint(tmp_path / "wrong.yaml")


def test_what_stands_beside_a_release_counts(served: tuple[Path, str]) -> None:
    ledger, url = served
    here = mo.open(ledger, actor="petra")
    here.rounds.open()
    requests = [
        read_request(
            Handed(
                source=f"row {number}",
                mark=None,
                tree=lambda n=number: from_python(  # type: ignore[misc]
                    counts(f"w-{n}", rho="0.006", dataset="visits")
                ),
                utility=from_python(worth),
            ),
            here.policy(),
        )
        for number, worth in enumerate((1, 3, Fraction(5, 2), 9))
    ]
    expected = here.rounds.plan(requests)
    assert 0 < len(expected.accepted) < 4
    with mo.connect(url, token=f"{BEFORE}petra") as ws:
        found = ws.rounds.plan(requests)
        # Where it stood beside, the text that is kept says it, too.
        assert (found.accepted, found.utility) == (expected.accepted, expected.utility)
        assert [(one.content, one.why) for one in found.outcomes] == [
            (one.content, one.why) for one in expected.outcomes
        ]
        assert ws.rounds.commit(found).releases == expected.accepted


class Scripted:
    """A server that says what it is told to, in order."""

    def __init__(self, *answers: object) -> None:
        self.said = list(answers)
        self.asked: list[Request[Any]] = []

    def send(self, request: Request[Any]) -> Any:
        self.asked.append(request)
        found = self.said.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


def standing(state: str, progress: float = 0.5, **more: Any) -> dict[str, Any]:
    return {
        "job": "j",
        "kind": "k",
        "state": state,
        "progress": progress,
        "begun_at": "2026-05-01T12:00:00.000000Z",
        "ended_at": None,
        **more,
    }


def scripted(*answers: object) -> tuple[Any, Job]:
    server: Any = Scripted(*answers)
    return server, Job(server, standing("queued", 0.0))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "WAIT_SECONDS", 0.001)


ELSEWHERE = InputError(Problem(Code.JOB_ELSEWHERE, "of another process"))
UNKNOWN = InputError(Problem(Code.NOT_FOUND, "no such job"))


def test_a_job_of_another_process_is_asked_for_over_other_connections() -> None:
    server, job = scripted(ELSEWHERE, ELSEWHERE, standing("running"))
    assert job.refresh().state == "running"
    assert [one.is_last for one in server.asked] == [False, True, True]
    server, job = scripted(*[ELSEWHERE] * 1000)
    with pytest.raises(mo.InputError) as caught:
        job.refresh()
    assert caught.value.code is Code.JOB_ELSEWHERE
    assert len(server.asked) < 100
    server, job = scripted(UNKNOWN)
    with pytest.raises(mo.InputError):
        job.refresh()
    assert len(server.asked) == 1


def test_a_job_is_waited_for_and_tells_how_far_it_is() -> None:
    answers = (standing("running", 0.2), standing("done", 1.0, result={"x": 1}))
    _, job = scripted(*answers)
    seen: list[float] = []
    assert job.wait(seen.append) == {"x": 1}
    assert seen == [0.2, 1.0]
    _, job = scripted(*[standing("running")] * 1000)
    with pytest.raises(mo.UnavailableError, match="not finished yet"):
        job.wait(timeout_seconds=0.01)


FAILED = {
    "kind": "conflict",
    "problems": [{"code": Code.ROUND_MISSING.value, "message": "not open any more"}],
}


@pytest.mark.parametrize(
    ("last", "kind"),
    [
        (standing("failed", problem=FAILED), mo.ConflictError),
        (standing("failed", problem=None), mo.UnavailableError),
        (standing("cancelled"), mo.UsageError),
    ],
)
def test_a_job_that_found_nothing_says_why(
    last: dict[str, Any], kind: type[Exception]
) -> None:
    _, job = scripted(last)
    with pytest.raises(kind):
        job.wait()


@pytest.mark.parametrize("way_out", [KeyboardInterrupt, RuntimeError])
def test_a_job_that_nobody_waits_for_is_given_up(way_out: type[BaseException]) -> None:
    server, job = scripted(standing("running"), standing("cancelled"))

    def interrupted(_: float) -> None:
        raise way_out

    def wait(on_progress: Callable[[float], None]) -> None:
        with jobs.cancelled_on_error(job):
            job.wait(on_progress)

    with pytest.raises(way_out):
        wait(interrupted)
    assert [one.operation.method for one in server.asked] == ["GET", "DELETE"]
    assert job.standing.state == "cancelled"
