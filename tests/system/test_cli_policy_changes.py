"""`modicum policy diff`, `simulate` and `explain` on the example organization."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from modicum.cli.main import app
from modicum.ops.demo import make_demo

RUNNER = CliRunner()
WHERE = ("--ledger", "ledger.db")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the example, with some edited policies."""
    folder = tmp_path_factory.mktemp("changes") / "demo"
    make_demo("acme-health", folder)
    text = (folder / "policy.yaml").read_text()
    edits = {
        "tight": (("high: 1}", "high: 0.7}"),),
        "loose": (("budget: 3}", "budget: 3.5}"), ("high: 1}", "high: 1.3}")),
        "mixed": (
            ("    salary: [high, {finance: member}]\n", ""),
            ("medium: 2, high: 1.5", "medium: 2.2, high: 1.5"),
        ),
        "fits": (("high: 1}", "high: 1.2944}"),),
        "short": (("high: 1}", "high: 1.2943}"),),
    }
    for name, pairs in edits.items():
        changed = text
        for was, now in pairs:
            changed = changed.replace(was, now)
        assert changed != text
        (folder / f"{name}.yaml").write_text(changed)
    return folder


@pytest.fixture
def folder(demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the example's folder, as working directory."""
    place = tmp_path / "demo"
    shutil.copytree(demo, place)
    monkeypatch.chdir(place)
    for name in ("MODICUM_LEDGER", "MODICUM_POLICY", "MODICUM_ACTOR"):
        monkeypatch.delenv(name, raising=False)
    return place


def run(*args: str, exit_code: int = 0) -> str:
    """Return what a command prints, errors last."""
    result = RUNNER.invoke(app, args)
    assert result.exit_code == exit_code, (result.output, result.exception)
    return str(result.stdout) + str(result.stderr)


def document(*args: str, exit_code: int = 0) -> Any:
    return json.loads(run(*args, "--json", exit_code=exit_code))


# --- diff ---------------------------------------------------------------------------

TIGHTER = """\
TIGHTER  attr:{diagnosis,prescription,lab_result,salary} @standard   eps 1 -> 0.7
         attr:{diagnosis,prescription,lab_result,salary} @black-box  eps 2 -> 1.4
LOOSER   none
CHANGED  none
NEW      none
REMOVED  none
SAME     35 rules
nothing is loosened: all that was denied is still denied
"""
HISTORY = """\
HISTORY  would have denied 1 of 46 releases: readmission-model
CONFLICT attr:diagnosis @standard is already at eps 0.7546, more than 0.7
         attr:diagnosis @black-box is already at eps 1.526, more than 1.4
         attr:lab_result @black-box is already at eps 1.879, more than 1.4
         attr:salary @standard is already at eps 1.294, more than 0.7, as before
"""


def test_diff_groups_what_changed_in_the_same_way(folder: Path) -> None:
    assert run("policy", "diff", "policy.yaml", "tight.yaml") == TIGHTER


def test_diff_with_a_ledger_says_what_the_policy_meets(folder: Path) -> None:
    found = run("policy", "diff", "active", "tight.yaml", *WHERE, exit_code=4)
    assert found.startswith(TIGHTER + HISTORY)
    problems = found.removeprefix(TIGHTER + HISTORY).split("error[MOD601]: ")[1:]
    assert len(problems) == 4
    assert (
        "releases already made exceed the rule attr:diagnosis @standard" in problems[0]
    )
    assert "tight.yaml:50:13" in problems[0]
    assert "made by r-0023 (rho 0.00263, 23 %)" in problems[0]
    assert "keep at least {eps: 0.7547, delta: 1e-7}" in problems[0]
    assert "also over its limit under the old policy" in problems[3]


def test_diff_tells_what_is_loosened_and_what_still_covers_it(folder: Path) -> None:
    found = run("policy", "diff", "policy.yaml", "loose.yaml")
    assert "LOOSER   global @standard" in found
    assert "eps 1 -> 1.3" in found
    assert "nothing is loosened" not in found
    found = run("policy", "diff", "policy.yaml", "mixed.yaml")
    assert "(still covered by attr:postcode @standard)" in found
    assert "attr:salary @standard" in found.split("REMOVED")[1]
    assert "BESIDE   attribute `salary` is removed" in found


def test_diff_of_a_policy_and_itself(folder: Path) -> None:
    assert run("policy", "diff", "policy.yaml", "policy.yaml") == (
        "SAME     the policies are equivalent\n"
    )
    found = document("policy", "diff", "policy.yaml", "policy.yaml")
    assert found["same_document"]
    assert found["rules"] == []
    assert found["history"] is None


def test_the_budget_that_is_proposed_ends_the_conflict(folder: Path) -> None:
    short = run("policy", "diff", "active", "short.yaml", *WHERE)
    assert "CONFLICT attr:salary @standard is already at eps 1.294" in short
    fits = document("policy", "diff", "active", "fits.yaml", *WHERE)
    assert fits["history"]["conflicts"] == []
    assert fits["exceeded_before"] == []
    found = document("policy", "diff", "active", "tight.yaml", *WHERE, exit_code=4)
    budgets = {one["rule"]: one["fits"] for one in found["history"]["conflicts"]}
    assert budgets["attr:salary @standard"].startswith("{eps: 1.294319")
    assert found["exceeded_before"] == ["attr:salary @standard"]
    assert [one["code"] for one in found["problems"]] == ["MOD601"] * 4


def test_a_conflict_that_stood_before_is_not_the_fault_of_the_change(
    folder: Path,
) -> None:
    same = document("policy", "diff", "active", "policy.yaml", *WHERE)
    assert [one["rule"] for one in same["history"]["conflicts"]] == [
        "attr:salary @standard"
    ]
    assert same["exceeded_before"] == ["attr:salary @standard"]
    assert same["problems"] == []


def test_the_active_policy_is_that_of_the_usual_ledger(folder: Path) -> None:
    whole = run("policy", "diff", "active", "short.yaml", *WHERE)
    assert "HISTORY" in whole
    for command in (("active", "short.yaml"), ("short.yaml",)):
        assert run("policy", "diff", *command) == whole
    explained = ("policy", "explain", "active", "attr:salary")
    assert run(*explained) == run(*explained, *WHERE)
    assert run("policy", "explain", "attr:salary") == run(*explained)
    assert run("policy", "explain", "attr:salary", *WHERE) == run(*explained)
    assert "name the file" in run("policy", "diff", "active", exit_code=2)


def test_without_a_ledger_there_is_no_active_policy(folder: Path) -> None:
    (folder / "ledger.db").rename(folder / "other.db")
    for command in (("active", "tight.yaml"), ("tight.yaml",)):
        assert "MOD701" in run("policy", "diff", *command, exit_code=2)
    assert not (folder / "ledger.db").exists()
    run("policy", "diff", "active", "tight.yaml", "--ledger", "no.db", exit_code=2)
    assert not (folder / "no.db").exists()
    run("policy", "diff", "nothing.yaml", "tight.yaml", exit_code=4)


# --- simulate ------------------------------------------------------------------------


def test_simulate_shows_what_would_have_been_decided(folder: Path) -> None:
    before = (folder / "ledger.db").read_bytes()
    found = run("policy", "simulate", "tight.yaml")
    rows = [line.split() for line in found.splitlines()]
    assert rows[3][:6] == [
        "45",
        "readmission-model",
        "published",
        "deny",
        "denied",
        "now",
    ]
    assert (
        "46 releases: 42 allowed, 4 denied; 1 denied now, 0 allowed now;"
        " 2 recorded ones exceed a limit"
    ) in found
    assert "closest to their limit at the end" in found
    assert all(line == line.rstrip() for line in found.splitlines())
    assert "r-0001" not in found
    assert "r-0001" in run("policy", "simulate", "tight.yaml", "--all")
    assert (folder / "ledger.db").read_bytes() == before


def test_simulate_of_a_looser_policy(folder: Path) -> None:
    found = document("policy", "simulate", "loose.yaml", *WHERE)
    changed = {
        one["release"]: one["change"]
        for one in found["releases"]
        if one["change"] != "same"
    }
    assert changed == {"cohort-diagnosis": "allowed now"}
    assert found["totals"]["attempts"] == 46
    assert found["totals"]["allowed_now"] == 1


# --- explain -------------------------------------------------------------------------


def test_explain_a_rule(folder: Path) -> None:
    asked = ("policy", "explain", "policy.yaml", "attr:diagnosis", *WHERE)
    found = run(*asked, "--context", "standard")
    assert found == run(
        "policy", "explain", "policy.yaml", "attr:diagnosis @standard", *WHERE
    )
    for line in (
        "rule    attr:diagnosis @standard   per patient   {eps: 1, delta: 1e-7}",
        'promise all that reads `diagnosis`, with m.ml == "none", in all releases',
        "from    policy `attr`  policy.yaml:47:5",
        "        attribute `diagnosis`, risk high  policy.yaml:29:5",
        "        setting `standard` of `ml`  policy.yaml:63:7",
        "filter  combined-v1: allows while any of these sums is within its cap",
        "status  binding: it can be the only rule to deny",
        "above   attr:diagnosis @black-box, cat:health/member @standard and 3 more",
        "below   marketing @standard",
        "ledger  spent 0.7546 of eps 1, left 0.2453",
        "        remaining for a Gaussian mechanism: rho = 0.007939",
        "        spent by r-0023 (rho 0.00263, 23 %)",
    ):
        assert line in found, line


@pytest.mark.parametrize("only", [["policy.yaml"], ["active"], []])
def test_explain_needs_a_rule(folder: Path, only: list[str]) -> None:
    found = CliRunner().invoke(app, ["policy", "explain", *only])
    assert found.exit_code == 2
    assert "RULE: give a rule" in found.output


def test_explain_says_that_the_policy_may_be_left_out_and_the_rule_not() -> None:
    found = " ".join(run("policy", "explain", "--help").split())
    assert "explain [OPTIONS] [POLICY] [RULE]" in found
    assert "RULE <str> Required: the id of a rule" in found
    assert "[required]" not in found


def test_explain_of_nothing_like_a_rule_names_some_rules_and_how_to_list_all(
    folder: Path,
) -> None:
    found = run("policy", "explain", "attr:nonsense", exit_code=4)
    assert "known: attr:" in found
    assert "modicum policy show > policy.yaml" in found
    assert "modicum policy compile policy.yaml" in found


def test_explain_all_contexts_and_other_rules(folder: Path) -> None:
    found = document("policy", "explain", "policy.yaml", "cat:health/strong")
    assert [one["context"] for one in found["rules"]] == [["standard"], ["black-box"]]
    assert found["left"] == 0
    assert found["rules"][0]["standing"] is None
    alone = run("policy", "explain", "policy.yaml", "single-release-cap", *WHERE)
    assert "in each release alone" in alone
    assert "ledger" not in alone
    redundant = document("policy", "explain", "policy.yaml", "cat:finance/member")
    origins = [one["origins"][1]["what"] for one in redundant["rules"]]
    assert origins == ["category `finance`, risk medium"] * 2


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        (("attr:diagnos",), "attr:diagnosis"),
        (("attr:diagnosis @standart",), "standard"),
        (("attr:diagnosis", "--context", "black"), "black-box"),
        (("single-release-cap @standard",), "standard"),
        (("attr:diagnosis @standard @black-box",), "standard"),
    ],
)
def test_explain_of_a_rule_that_is_not_there(
    folder: Path, asked: tuple[str, ...], near: str
) -> None:
    found = run("policy", "explain", "policy.yaml", *asked, exit_code=4)
    assert "error[MOD115]" in found
    assert near in found.split("nearest: ")[1]


@pytest.mark.parametrize("command", ["diff", "simulate", "explain"])
def test_every_command_has_help(command: str) -> None:
    found = run("policy", command, "--help")
    assert "Usage: modicum policy" in found
