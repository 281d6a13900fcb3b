"""A filter that changes after releases is accepted with what it costs in delta."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from samples.first_version import as_written_by, with_policy
from samples.pages import read
from samples.small import NOON, compiled
from typer.testing import CliRunner

from modicum.api.local import Workspace
from modicum.api.local.policies.replay import history_of
from modicum.api.local.policies.what_if import what_if
from modicum.cli.main import app
from modicum.core.errors import Code, InputError, Problem
from modicum.ledger import ChainBreakError, audit
from modicum.reports.sources import opened_ledger, report_on
from modicum.reports.statement import Statement
from modicum.reports.statement_html import page
from modicum.storage.proofs.verification import Trust
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

POLICY = """
modicum: policy/v1
name: filtered
dp: {filter: combined-v1}
units: {user: {id: uid}}
schema: {attributes: {page: low, town: low}}
policies:
  - {name: all, when: "true", unit: user, budget: {eps: 2, delta: 1e-6}}
  - {name: town, when: '"town" in m.attributes', unit: user,
     budget: {eps: 1, delta: 1e-7}}
  - {name: noise, when: "true", unit: user, budget: {rho: 1}}
"""
SECOND = POLICY.replace("combined-v1", "combined-v2")
THIRD = POLICY.replace("combined-v1", "zcdp-v1")
#: No limit of it has a delta.
WITHOUT = "\n".join(
    line for line in THIRD.splitlines() if "delta" not in line and "town, " not in line
)
MESSAGE = "the filter changes to `{}` after releases under {}"


def run(*command: str) -> Any:
    return CliRunner().invoke(app, command)


def of(folder: Path, policy: str | None = None) -> Workspace:
    return Workspace(
        SqliteStore(folder / "ledger.db", wait_seconds=20),
        FixedClock(NOON),
        policy=None if policy is None else compiled(policy),
        actor="ann",
    )


def release(name: str, rho: float = 0.001) -> Mapping[str, Any]:
    mechanism = {
        "name": "views",
        "mechanism": "gaussian",
        "attributes": ["page"],
        "cost": {"user": {"rho": rho}},
    }
    return {"release": name, "mechanisms": [mechanism]}


def activate(folder: Path, policy: str, *accept: str) -> None:
    office = of(folder).governance
    office.activate(compiled(policy), reason="a change", accept=accept)


def problems(folder: Path, policy: str) -> tuple[Problem, ...]:
    """Return why a policy is refused, however it is asked."""
    found = of(folder).governance.preview_activation(compiled(policy)).problems
    history = history_of(of(folder).records(), NOON)
    assert what_if(history, compiled(policy)).problems == found
    if found:
        with pytest.raises(InputError) as caught:
            activate(folder, policy)
        assert caught.value.problems == found
    return found


def stated(folder: Path) -> Statement:
    with opened_ledger(folder / "ledger.db") as source:
        return report_on(source, Trust())


def line(folder: Path, rule: str) -> Mapping[str, Any]:
    rules = stated(folder).to_dict()["rules"]
    assert isinstance(rules, list)
    found: dict[str, Mapping[str, Any]] = {one["rule"]: one for one in rules}
    return found[rule]


@pytest.mark.spec("POL-22")
def test_a_filter_changes_after_releases_only_if_that_is_accepted(
    tmp_path: Path,
) -> None:
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)
    (problem,) = problems(tmp_path, SECOND)
    assert problem.code is Code.FILTER_CHANGED
    assert problem.message == MESSAGE.format("combined-v2", "`combined-v1`")
    # What it costs, by rule; a limit without a delta costs nothing.
    assert problem.notes[1:-1] == (
        "delta 1e-6 becomes 2e-6 for all",
        "delta 1e-7 becomes 2e-7 for town",
    )
    with pytest.raises(InputError, match="no conflict is named"):
        activate(tmp_path, SECOND, "filter:zcdp-v1")
    activate(tmp_path, SECOND, "filter:combined-v2")
    assert of(tmp_path).state().policies[-1].accepted == ("filter:combined-v2",)
    assert of(tmp_path).verify().entries == 5
    # Back again, neither filter costs anything that was not accepted.
    assert problems(tmp_path, POLICY) == ()
    activate(tmp_path, POLICY)
    activate(tmp_path, SECOND)
    (problem,) = problems(tmp_path, THIRD)
    assert problem.message.endswith("under `combined-v1` and `combined-v2`")
    assert problem.notes[1] == "delta 2e-6 becomes 3e-6 for all"
    assert of(tmp_path).verify().entries == 7


@pytest.mark.spec("POL-22")
def test_a_filter_that_nobody_saw_answers_under_costs_nothing(tmp_path: Path) -> None:
    ws = of(tmp_path, POLICY)
    ws.init()
    activate(tmp_path, SECOND)
    ws = of(tmp_path)
    ws.submit(release("given-up"))
    assert problems(tmp_path, THIRD)  # A reservation may be used any time.
    ws.cancel("given-up", reason="not needed")
    assert not ws.submit(release("denied", 5)).allowed
    activate(tmp_path, THIRD)
    of(tmp_path).submit(release("r-1"), publish=True)
    (problem,) = problems(tmp_path, POLICY)
    assert problem.message == MESSAGE.format("combined-v1", "`zcdp-v1`")


@pytest.mark.spec("POL-22")
def test_a_filter_matters_to_limits_with_a_delta_only(tmp_path: Path) -> None:
    of(tmp_path, WITHOUT).submit(release("r-1"), publish=True)
    # No limit had a delta, so that no filter decided.
    activate(tmp_path, SECOND)
    of(tmp_path).submit(release("r-2"), publish=True)
    activate(tmp_path, WITHOUT)
    # A filter that decided nothing was not accepted either.
    (problem,) = problems(tmp_path, THIRD)
    assert problem.message == MESSAGE.format("zcdp-v1", "`combined-v2`")
    assert problem.help == "keep  filter: combined-v2"
    assert of(tmp_path).verify().entries == 9


@pytest.mark.spec("POL-22")
def test_a_sum_over_days_needs_a_filter_too(tmp_path: Path) -> None:
    week = (
        'per_release:\n  - {name: week, when: "true", unit: user,'
        " budget: {eps: 1, delta: 1e-6}, requester_days: 7}\n"
    )
    assert "per_release" not in WITHOUT
    before = WITHOUT.rstrip() + "\n" + week
    of(tmp_path, before).submit(release("r-1"), publish=True)
    after = before.replace("zcdp-v1", "combined-v2")
    (problem,) = problems(tmp_path, after)
    assert problem.code is Code.FILTER_CHANGED
    assert problem.notes[1] == "delta 1e-6 becomes 2e-6 for week"
    alone = after.replace(", requester_days: 7", "")
    assert problems(tmp_path, alone) == ()


@pytest.mark.spec("POL-22")
def test_each_filter_fails_with_the_largest_delta_that_it_had(tmp_path: Path) -> None:
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)
    activate(tmp_path, POLICY.replace("2, delta: 1e-6", "2, delta: 5e-6"))
    lower = SECOND.replace("2, delta: 1e-6", "2, delta: 2e-6")
    (problem,) = problems(tmp_path, lower)
    assert problem.notes[1] == "delta 5e-6 becomes 7e-6 for all"
    # A rule that is new has no delta of its time: the present one is counted.
    named_anew = lower.replace("name: all", "name: any")
    (problem,) = problems(tmp_path, named_anew)
    assert problem.notes[1] == "delta 2e-6 becomes 4e-6 for any"
    # Limits of which the published filter is proven for each, and not for both at once.
    published = POLICY.replace("combined-v1", "as-published")
    one, other = "{eps: 20, delta: 1e-9}", "{eps: 3, delta: 1e-4}"
    for budget in (one, other):
        text = published.replace("{eps: 2, delta: 1e-6}", budget)
        accept = () if budget == other else ("filter:as-published",)
        activate(tmp_path, text, *accept)
    assert line(tmp_path, "all")["delta"] == "1.05001e-4"


@pytest.mark.spec("POL-22")
def test_an_audit_finds_a_filter_that_nobody_accepted(tmp_path: Path) -> None:
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)
    records = [*of(tmp_path).records()]
    for accepted in ((), ("filter:zcdp-v1",), ("filter:combined-v2",) * 2):
        with pytest.raises(ChainBreakError, match="the rules that it accepts"):
            audit(with_policy(records, SECOND, accepted=accepted))
    right = with_policy(records, SECOND, accepted=("filter:combined-v2",))
    assert audit(right).entries == 5
    assert audit(right, again=lambda: right).entries == 5
    # Versions before did not ask; what they did is counted.
    old = as_written_by(5, with_policy(records, SECOND))
    assert audit(old).entries == 5
    with pytest.raises(ChainBreakError, match="the rules that it accepts"):
        audit(with_policy(old, THIRD))
    assert audit(with_policy(old, THIRD, accepted=("filter:zcdp-v1",))).entries == 6
    assert audit(with_policy(old, POLICY)).entries == 6


@pytest.mark.spec("POL-23")
def test_a_statement_shows_former_limits_and_the_delta_of_all_filters(
    tmp_path: Path,
) -> None:
    of(tmp_path, POLICY.replace("eps: 2", "eps: 9")).init()
    activate(tmp_path, POLICY)
    of(tmp_path).submit(release("r-1"), publish=True)
    first = {"budget": "{eps: 2, delta: 1e-6}", "filter": "combined-v1"}
    assert line(tmp_path, "all")["limits"] == [{"entry": 2, **first}]
    assert line(tmp_path, "all")["delta"] == "1e-6"
    assert "no limit" not in " ".join(read(page(stated(tmp_path))).said)
    activate(tmp_path, SECOND.replace("eps: 2", "eps: 3"), "filter:combined-v2")
    activate(tmp_path, SECOND.replace("eps: 2", "eps: 3").replace("rho: 1", "rho: 2"))
    raised = {"budget": "{eps: 3, delta: 1e-6}", "filter": "combined-v2"}
    found = line(tmp_path, "all")
    assert found["limits"] == [{"entry": 2, **first}, {"entry": 6, **raised}]
    assert (found["budget"], found["delta"]) == ("{eps: 3, delta: 1e-6}", "2e-6")
    noise = line(tmp_path, "noise")
    assert noise["delta"] is None
    assert noise["limits"] == [
        {"entry": 2, "budget": "{rho: 1}", "filter": None},
        {"entry": 7, "budget": "{rho: 2}", "filter": None},
    ]
    told = (
        "{eps: 2, delta: 1e-6} by combined-v1, since entry 6 {eps: 3, delta: 1e-6} by"
        " combined-v2, delta 2e-6 in all"
    )
    assert told in " ".join(read(page(stated(tmp_path))).said)


@pytest.mark.spec("POL-23")
def test_a_rule_that_was_gone_had_no_limit(tmp_path: Path) -> None:
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)
    gone = POLICY.replace("name: all", "name: any")
    activate(tmp_path, gone)
    activate(tmp_path, POLICY)
    limits = [(one["entry"], one["budget"]) for one in line(tmp_path, "all")["limits"]]
    assert limits == [
        (1, "{eps: 2, delta: 1e-6}"),
        (5, None),
        (6, "{eps: 2, delta: 1e-6}"),
    ]
    (rule,) = [one for one in stated(tmp_path).rules if one.id == "all"]
    assert "since entry 5 no limit, since entry 6" in rule.changes


@pytest.mark.spec("POL-22")
def test_the_commands_say_what_it_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    of(tmp_path, POLICY).submit(release("r-1"), publish=True)
    assert "filter" not in run("status").stderr
    Path("next.yaml").write_text(SECOND)
    message = MESSAGE.format("combined-v2", "`combined-v1`")
    diff = run("policy", "diff", "active", "next.yaml", "--ledger", "ledger.db")
    assert diff.exit_code == 4
    assert f"CONFLICT {message}\n" in diff.stdout
    assert "error[MOD613]" in diff.stderr
    told = json.loads(run("policy", "diff", "next.yaml", "--json").stdout)
    assert [one["code"] for one in told["problems"]] == ["MOD613"]
    assert f"conflict: {message}\n" in run("policy", "simulate", "next.yaml").stdout
    activating = ("policy", "activate", "next.yaml", "--reason", "x")
    dry = run(*activating, "--dry-run")
    assert (dry.exit_code, f"  CONFLICT  {message}\n" in dry.stdout) == (4, True)
    assert "--accept-conflict filter:combined-v2" in dry.stderr
    done = run(*activating, "--accept-conflict", "filter:combined-v2")
    assert done.exit_code == 0
    assert "  accepted  filter:combined-v2 is a further filter\n" in done.stdout
    status = run("status")
    assert status.exit_code == 0
    assert "have the filters `combined-v1` and `combined-v2`" in status.stderr
    assert "delta 2e-6 for all" in status.stderr
    (shown,) = json.loads(run("status", "--json").stdout)["problems"]
    assert shown["notes"][1:] == ["delta 2e-6 for all", "delta 2e-7 for town"]
    report = run("audit", "report", "-o", "statement.html")
    assert report.exit_code == 0
    assert (
        "  limit of town: {eps: 1, delta: 1e-7} by combined-v1, since entry 5 {eps: 1,"
        " delta: 1e-7} by combined-v2, delta 2e-7 in all\n"
    ) in report.stdout
