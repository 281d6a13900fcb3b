"""`modicum policy`: lint, compile, prune, graph and test, as people call them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from samples.small import POLICY, compiled
from typer.testing import CliRunner

import modicum
from modicum.cli.main import app
from modicum.cli.output import fitting
from modicum.cli.policy_rules import REDUNDANT_SHOWN, RULES_SHOWN

EXAMPLE = Path(modicum.__file__).parent / "ops" / "examples" / "acme-health"
WARNED = "unmatched: allow" + POLICY.replace(
    '{name: global, when: "true"', "{name: most, when: 'm.ml == \"none\"'"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "warned.yaml").write_text(WARNED)
    (tmp_path / "broken.yaml").write_text(POLICY.replace("health: high", "health: hi"))
    return tmp_path


def run(*args: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, ["policy", *args])
    assert result.exit_code == exit_code, (result.output, result.exception)
    return str(result.output)


def document(*args: str, exit_code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*args, "--json", exit_code=exit_code))
    return found


# --- lint -----------------------------------------------------------------------


def test_lint_looks_at_several_files(folder: Path) -> None:
    output = run("lint", "policy.yaml", "warned.yaml")
    assert "policy.yaml: ok (14 rules, 1 per release)\n" in output
    assert "warned.yaml: ok (14 rules, 1 per release, 1 warning)\n" in output
    assert output.count("warning[MOD") == 1
    assert "error[" not in output
    both = document("lint", "policy.yaml", "warned.yaml")
    assert both["ok"] is True
    assert [one["file"] for one in both["files"]] == ["policy.yaml", "warned.yaml"]
    assert [len(one["warnings"]) for one in both["files"]] == [0, 1]
    alone = document("lint", "warned.yaml")
    assert both["files"][1] == {"file": "warned.yaml", **alone}


def test_lint_tells_of_all_files_and_fails_if_one_is_wrong(folder: Path) -> None:
    output = run("lint", "broken.yaml", "policy.yaml", "none.yaml", exit_code=4)
    assert "policy.yaml: ok" in output
    assert "--> broken.yaml:" in output
    assert "cannot read none.yaml" in output
    assert "   = help: correct the path, or create the file\n" in output
    (folder / "inside").mkdir()
    assert "name a file in this folder" in run("lint", "inside", exit_code=4)
    (folder / "near.yaml").write_text(POLICY.replace("unit: user,", "unit: usr,", 1))
    near = document("lint", "near.yaml", exit_code=4)["error"]
    assert near["label"] == 'did you mean "user"?'
    assert near["length"] == len("usr")
    mistakes = document("lint", "broken.yaml", "policy.yaml", "none.yaml", exit_code=4)
    assert {one["file"] for one in mistakes["problems"]} == {None, "broken.yaml"}


def test_strict_lint_fails_on_warnings(folder: Path) -> None:
    run("lint", "--strict", "policy.yaml")
    assert "warning[" in run(
        "lint", "--strict", "policy.yaml", "warned.yaml", exit_code=4
    )
    assert document("lint", "--strict", "policy.yaml")["ok"] is True
    assert document("lint", "--strict", "warned.yaml", exit_code=4)["ok"] is False
    both = document("lint", "--strict", "policy.yaml", "warned.yaml", exit_code=4)
    assert [both["ok"], *(one["ok"] for one in both["files"])] == [False, True, False]


# --- compile and prune ----------------------------------------------------------


def test_compile_says_which_rules_constrain(folder: Path) -> None:
    policy = compiled()
    found = document("compile", "policy.yaml")
    rules = [*policy.rules, *policy.release_rules]
    witness = [
        *(policy.rules[w].id if w >= 0 else None for w in policy.pruned.witness),
        *(None for _ in policy.release_rules),
    ]
    assert [one["id"] for one in found["list"]] == [rule.id for rule in rules]
    assert [one["witness"] for one in found["list"]] == witness
    assert len(set(witness)) > 2
    for one, rule in zip(found["list"], rules, strict=True):
        assert one["status"] == ("redundant" if one["witness"] else "binding")
        assert one["source"] == [str(mark) for mark in rule.marks]
        assert one["source"][0].startswith(f"policy.yaml:{one['line']}:")
    redundant = sum(1 for one in witness if one is not None)
    assert (found["binding"], found["redundant"]) == (14 - redundant, redundant)
    assert (found["release_binding"], found["release_redundant"]) == (1, 0)
    assert found["units"] == {
        "user": {"binding": 14 - redundant, "redundant": redundant}
    }
    output = run("compile", "policy.yaml")
    assert (
        f"= rules        14   binding {14 - redundant}   redundant {redundant}\n"
        in output
    )
    assert output.count(" redundant  ") == redundant
    brief = run("compile", "policy.yaml", "--brief")
    assert output.startswith(brief)
    assert "RULE" not in brief


#: No attribute is in `place`.
EMPTY = POLICY.replace("{health: high}", "{health: high, place: high}", 1)


def test_rules_about_nothing_are_said_to_be(folder: Path) -> None:
    (folder / "empty.yaml").write_text(EMPTY)
    rows = [line.split() for line in run("compile", "empty.yaml").splitlines()]
    empty = [row for row in rows if row and row[0].startswith("cat:place/")]
    assert len(empty) == 6
    assert all(row[-3:] == ["matches", "nothing", "nothing"] for row in empty)
    found = document("compile", "empty.yaml")
    about = {one["id"]: one["matches_nothing"] for one in found["list"]}
    assert {one for one in about if about[one]} == {" ".join(row[:2]) for row in empty}
    pruned = run("prune", "empty.yaml").splitlines()
    placed = [line for line in pruned if line.startswith("cat:place/")]
    assert placed
    assert all(line.endswith("matches nothing") for line in placed)
    assert not any("cat:place/" in line for line in pruned if line not in placed)
    output = run("explain", "empty.yaml", "cat:place/strong", "--context", "standard")
    assert (
        "promise nothing: no attribute belongs to `place` as member or strong\n"
        in output
    )
    assert "status  matches no mechanism: it can never deny\nabove   none\n" in output
    near = run("explain", "empty.yaml", "cat:health/member @standard")
    assert "cat:place" not in near
    assert "cat:place" not in run("graph", "empty.yaml", "--dot")
    assert run("diff", "policy.yaml", "empty.yaml").count("cat:place") == 0


def test_lines_of_several_files_are_shown_with_their_file(folder: Path) -> None:
    policy, _, limits = POLICY.partition("policies:\n")
    (folder / "limits.yaml").write_text("policies:\n" + limits)
    (folder / "whole.yaml").write_text(
        policy.replace("name: small\n", "name: small\ninclude: [limits.yaml]\n")
        + 'policies: [{name: more, when: "true", unit: user, budget: 9}]\n'
    )
    rows = [line.split() for line in run("compile", "whole.yaml").splitlines()]
    lines = {row[0]: row for row in rows if row[:1] in (["more"], ["global"])}
    assert any(cell.startswith("whole.yaml:1") for cell in lines["more"])
    assert any(cell.startswith("limits.yaml:2,limits") for cell in lines["global"])


def test_one_line_more_is_printed_and_not_counted() -> None:
    assert [fitting(total, 8) for total in (7, 8, 9, 10)] == [7, 8, 9, 8]
    assert fitting(10, None) == 10


def test_counts_are_shown_by_unit() -> None:
    pageviews = Path(__file__).parents[2] / "examples" / "pageviews" / "policy.yaml"
    assert "by unit             1 user-day, 3 user-month\n" in run(
        "compile", str(pageviews), "--brief"
    )


def test_prune_names_a_rule_for_each_redundant_one(folder: Path) -> None:
    compiled_list = document("compile", "policy.yaml")
    by_id = {one["id"]: one for one in compiled_list["list"]}
    found = document("prune", "policy.yaml")
    assert found["redundant"] == len(found["list"]) == compiled_list["redundant"] > 0
    for one in found["list"]:
        rule, witness = by_id[one["rule"]], by_id[one["witness"]]
        assert rule["witness"] == one["witness"]
        assert witness["status"] == "binding"
        assert (one["budget"], one["unit"]) == (rule["budget"], rule["unit"])
        assert one["witness_budget"] == witness["budget"]
        assert one["witness_unit"] == witness["unit"]
    output = run("prune", "policy.yaml")
    for one in found["list"]:
        assert f"\n{one['rule']} " in output
    assert "still appear in reports" in output
    single = POLICY.replace(
        "budget: 2.0}\n  - {name: attr", "budget: 0.1}\n  - {name: attr"
    )
    (folder / "policy.yaml").write_text(single.partition("  - {name: attr")[0])
    assert run("prune", "policy.yaml") == "no rule is redundant\n"
    assert document("prune", "policy.yaml")["list"] == []


def large(attributes: int) -> str:
    names = ", ".join(f"a{n}: [low, {{}}]" for n in range(attributes))
    head, _, rest = POLICY.partition("  attributes:\n")
    _, _, tail = rest.partition("policies:\n")
    tail = "\n".join(
        line for line in tail.splitlines() if "cat" not in line and "levels" not in line
    )
    return f"{head}  attributes: {{{names}}}\npolicies:\n{tail}\n"


def test_a_large_policy_is_not_poured_out(folder: Path) -> None:
    (folder / "large.yaml").write_text(large(150))
    output = run("compile", "large.yaml").splitlines()
    assert output[-1] == f"… {303 - RULES_SHOWN} more (--all)"
    assert (
        sum(" binding  " in line or " redundant  " in line for line in output)
        == RULES_SHOWN
    )
    every = run("compile", "large.yaml", "--all").splitlines()
    assert len(every) == len(output) - 1 + 303 - RULES_SHOWN
    assert len(document("compile", "large.yaml")["list"]) == 303
    redundant = document("prune", "large.yaml")["redundant"]
    assert redundant > REDUNDANT_SHOWN
    pruned = run("prune", "large.yaml")
    assert f"… {redundant - REDUNDANT_SHOWN} more (--all)\n" in pruned
    assert "more (--all)" not in run("prune", "large.yaml", "--all")


# --- graph ----------------------------------------------------------------------


def test_graph_draws(folder: Path) -> None:
    svg = run("graph", "policy.yaml")
    assert svg == run("graph", "policy.yaml", "--svg")
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert run("graph", "policy.yaml", "--dot").startswith('digraph "Rules of small" {')
    output = run("graph", "policy.yaml", "-o", "rules.svg")
    assert output.startswith("rules.svg: 14 rules: ")
    assert (folder / "rules.svg").read_text() == svg
    output = run("graph", "policy.yaml", "-o", "none/rules.svg", exit_code=4)
    assert "cannot write none/rules.svg" in output
    run("graph", "policy.yaml", "--dot", "--svg", exit_code=2)


def test_graph_draws_a_part(folder: Path) -> None:
    standard = run("graph", "policy.yaml", "--context", "standard", "--dot")
    assert "@standard" in standard
    assert "@black-box" not in standard
    kept = run("graph", "policy.yaml", "--binding", "--dot")
    assert "binding" in kept
    assert "redundant by" not in kept
    near = run("graph", "policy.yaml", "--rule", "attr:steps @standard", "--dot")
    assert 'digraph "Rules of small around attr:steps @standard"' in near
    assert "attr:age @" not in near
    # What is asked for is drawn, whatever is left out.
    some = run("graph", "policy.yaml", "--rule", "attr:age @standard", "--context",
               "black-box", "--dot")  # fmt: skip
    assert "attr:age @standard: " in some
    both = run("graph", "policy.yaml", "--rule", "attr:age", "--dot")
    assert 'digraph "Rules of small around attr:age"' in both
    assert "attr:age @standard: " in both
    assert "attr:age @black-box: " in both
    one = run("graph", "policy.yaml", "--rule", "attr:age", "--context", "black-box",
              "--dot")  # fmt: skip
    assert "attr:age @standard: " not in one
    assert "cap: " in run("graph", "policy.yaml", "--per-release", "--dot")
    assert "cap: " in run("graph", "policy.yaml", "--rule", "cap", "--dot")
    for args, message in (
        (("--rule", "attr:stepz @standard"), "nearest: attr:steps"),
        (("--context", "std"), 'unknown setting "std"'),
        (("--unit", "usr"), 'did you mean "user"?'),
    ):
        assert message in run("graph", "policy.yaml", *args, exit_code=4)


def test_graph_refuses_what_nobody_could_read(folder: Path) -> None:
    (folder / "large.yaml").write_text(large(150))
    output = run("graph", "large.yaml", exit_code=4)
    assert "302 nodes, more than 200" in output
    assert "--rule" in output
    assert "<svg" in run("graph", "large.yaml", "--context", "standard")
    assert "<svg" in run("graph", "large.yaml", "--rule", "attr:a9 @standard")


# --- test -----------------------------------------------------------------------


def test_the_example_passes_its_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "acme")
    monkeypatch.chdir(tmp_path / "acme")
    output = run("test")
    assert "8 tests passed\n" in output
    assert output.count("  ok    ") == 8
    assert "policy.yaml: tests touched 35 of 43 rules  (--coverage lists" in output
    assert not list(Path().glob("ledger*"))
    listed = run("test", "policy.yaml", "--coverage")
    assert "  untouched: rule attr:clinic @standard\n" in listed
    found = document("test")
    assert (found["ok"], found["passed"], found["failed"]) == (True, 8, 0)
    assert all(one["passed"] for one in found["tests"])
    coverage = found["coverage"][0]
    assert coverage["rules"] == 43
    assert len(coverage["untouched_rules"]) == 8


def test_a_failing_test_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "acme")
    monkeypatch.chdir(tmp_path / "acme")
    text = Path("policy.yaml").read_text()
    Path("policy.yaml").write_text(text.replace("high: 1}", "high: 2}"))
    output = run("test", exit_code=8)
    assert "  FAIL  a second cohort of the same size is denied\n" in output
    assert "--> policy.test.yaml:10:5\n" in output
    assert "expected deny by attr:diagnosis @standard\n" in output
    assert "found    allow\n" in output
    assert "ALLOW cohort-again: " in output
    assert "2 of 8 tests failed\n" in output
    found = document("test", exit_code=8)
    assert (found["ok"], found["passed"], found["failed"]) == (False, 6, 2)
    failed = [one for one in found["tests"] if not one["passed"]]
    assert failed[0]["line"] == 10
    assert failed[0]["expected"]["blocking"] == ["attr:diagnosis @standard"]
    assert failed[0]["found"] == {"outcome": "allow", "blocking": [], "problems": []}


def test_a_mistake_in_a_release_is_shown_where_it_stands(folder: Path) -> None:
    (folder / "policy.test.yaml").write_text(
        "format: policy-test/v1\npolicy: policy.yaml\ntests:\n"
        "  - name: fine\n    release: {release: r, mechanisms: [{mechanism: declared,"
        " attributes: [ages], cost: {user: {eps: 0.1}}}]}\n    expect: allow\n"
    )
    output = run("test", exit_code=8)
    assert "expected allow\n        found    invalid with MOD117\n" in output
    assert 'did you mean "age"?' in output
    assert "1 of 1 test failed\n" in output


def test_no_tests_and_broken_tests(folder: Path) -> None:
    assert "there are no policy tests" in run("test", exit_code=2)
    run("test", "policy.yaml", exit_code=2)
    (folder / "a.test.yaml").write_text("format: policy-test/v1\npolicy: p.yaml\n")
    output = run("test", exit_code=4)
    assert "error[MOD103]" in output
    assert "a.test.yaml:1:1" in output
    assert document("test", exit_code=4)["error"]["code"] == "MOD103"


# --- what comes from others -------------------------------------------------------


def test_a_file_name_cannot_speak_to_the_terminal(folder: Path) -> None:
    evil = folder / "e\x1b[31mvil.yaml"
    evil.write_text(POLICY)
    assert "e\\x1b[31mvil.yaml: ok" in run("lint", evil.name)
    assert "\x1b" not in run("fmt", evil.name, "--write")
    tests = folder / "t\x1b[31m.test.yaml"
    tests.write_text(
        "format: policy-test/v1\npolicy: policy.yaml\ntests:\n"
        "  - name: nothing\n    release: {release: r, mechanisms: []}\n"
        "    expect: allow\n"
    )
    output = run("test", exit_code=8)
    assert "\x1b" not in output
    assert "t\\x1b[31m.test.yaml" in output


@pytest.mark.parametrize(
    "line",
    [
        "    history: ../secret.yaml\n    release: {release: r, mechanisms: []}\n",
        "    release: ../secret.yaml\n",
    ],
)
def test_a_test_reads_nothing_outside_its_folder(folder: Path, line: str) -> None:
    (folder / "tests").mkdir()
    (folder / "secret.yaml").write_text("password: 12345\n")
    (folder / "tests" / "x.test.yaml").write_text(
        "format: policy-test/v1\npolicy: ../policy.yaml\ntests:\n"
        f"  - name: curious\n{line}    expect: allow\n"
    )
    output = run("test", "tests", exit_code=4)
    assert "is outside the folder of the tests" in output
    assert "12345" not in output


def test_what_is_included_is_a_file(folder: Path) -> None:
    os.mkfifo(folder / "pipe.yaml")
    head = POLICY.replace("name: small", "name: small\ninclude: [pipe.yaml]")
    (folder / "policy.yaml").write_text(head)
    assert "`pipe.yaml` is not a file" in run("lint", "policy.yaml", exit_code=4)
