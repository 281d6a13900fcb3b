"""The policies that are shipped as examples: what their comments say is true."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

import modicum
from modicum.accounting import ApproxBudget
from modicum.cli.main import app
from modicum.policy import CompiledPolicy
from modicum.policy.json_schema.policy import policy_schema
from modicum.policy.predicates import Constant, LabelIn, Predicate, ReadsAny
from modicum.policy.rules import Rule

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
POLICIES = sorted(
    path
    for path in EXAMPLES.rglob("*.yaml")
    if path.parent.name not in ("releases", "queries")
    and not path.name.endswith((".test.yaml", "tables.yaml"))
)
DEMO = ROOT / "src/modicum/ops/examples/acme-health/policy.yaml"
SCENARIOS = {"s1": 4, "s2": 181, "s3": 6}


def run(*arguments: object) -> tuple[int, str]:
    """Return how a command left, and what it printed."""
    args = [str(argument) for argument in arguments]
    result = CliRunner().invoke(app, args, prog_name="modicum")
    return result.exit_code, result.output


def script(program: str, args: list[str]) -> tuple[int, str]:
    """Return how a program in Python left, and what it printed."""
    assert program == "python", program
    command = [sys.executable, *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def document(*arguments: object) -> tuple[int, dict[str, Any]]:
    """Return how a command left, and the JSON document that it printed."""
    code, output = run(*arguments, "--json")
    found: dict[str, Any] = json.loads(output, parse_float=Fraction)
    return code, found


def written(path: Path) -> dict[str, Any]:
    """Return what stands in a file, as plain data."""
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(path)
    return found


@lru_cache
def compiled(path: Path) -> CompiledPolicy:
    return modicum.load_policy(path)


# --- all of them ----------------------------------------------------------------


def test_every_example_is_there() -> None:
    names = {str(path.relative_to(EXAMPLES)) for path in POLICIES}
    assert names == {
        "dpolicy/s1.yaml",
        "dpolicy/s2.yaml",
        "dpolicy/s3.yaml",
        "pageviews/policy.yaml",
        "redistricting/policy.yaml",
    }
    assert all((path.parent / "README.md").exists() for path in POLICIES)


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: str(path.parent.name))
def test_an_example_has_neither_mistakes_nor_warnings(path: Path) -> None:
    code, found = document("policy", "lint", path)
    assert code == 0, found
    assert found["warnings"] == []


@pytest.mark.parametrize("path", [*POLICIES, DEMO], ids=lambda path: path.parent.name)
def test_an_example_has_the_layout_of_fmt(path: Path) -> None:
    code, output = run("policy", "fmt", path, "--check")
    assert code == 0, output


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: str(path.parent.name))
def test_an_editor_finds_nothing_wrong_with_an_example(path: Path) -> None:
    jsonschema.validate(written(path), policy_schema())


@pytest.mark.parametrize("example", ["pageviews", "redistricting"])
def test_the_tests_of_an_example_pass_and_touch_every_rule(example: str) -> None:
    code, output = run("policy", "test", EXAMPLES / example, "--coverage")
    assert code == 0, output
    assert "untouched" not in output


# --- what READMEs show ----------------------------------------------------------

FOLDERS = sorted(path.parent for path in EXAMPLES.glob("*/README.md"))


@pytest.mark.suite("docs")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.name))
def test_what_a_readme_shows_is_what_happens(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder, tmp_path / "example")
    monkeypatch.chdir(tmp_path / "example")
    monkeypatch.setenv("COLUMNS", "80")
    text = (folder / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    parts = re.split(r"^\$ (.*)\n", "".join(blocks), flags=re.MULTILINE)
    assert len(parts) >= 5, "two commands or more"
    for line, shown in zip(parts[1::2], parts[2::2], strict=True):
        command, _, expected = line.partition("  # exit ")
        program, *args = shlex.split(command)
        code, output = run(*args) if program == "modicum" else script(program, args)
        assert code == int(expected or 0), f"{line}\n{output}"
        lines = iter(output.splitlines())
        for one in shown.splitlines():  # In this order, perhaps with others between.
            assert one == "..." or one in (found.rstrip() for found in lines), one


# --- page views -----------------------------------------------------------------

PAGEVIEWS = EXAMPLES / "pageviews"


def check(example: Path, release: str, ledger: Path) -> tuple[int, dict[str, Any]]:
    """Return how the check of an example's release left, and the decision."""
    return document(
        *("release", "check", example / "releases" / f"{release}.yaml"),
        *("--policy", example / "policy.yaml", "--ledger", ledger),
    )


def begin(example: Path, ledger: Path) -> None:
    """Make a ledger in which an example's policy is active."""
    policy = example / "policy.yaml"
    assert run("init", "--policy", policy, "--ledger", ledger)[0] == 0


def alone(decision: dict[str, Any]) -> dict[str, Fraction]:
    """Return what the release costs by itself, for each matching rule."""
    return {loss["rule"]: Fraction(loss["alone"]) for loss in decision["losses"]}


def test_page_views_have_as_many_rules_as_they_say() -> None:
    found = compiled(PAGEVIEWS / "policy.yaml")
    assert dict(found.base_rules) == {"day": 1, "month": 1, "geo-month": 2}
    assert len(found.rules) == 4
    assert len(found.release_rules) == 1


def test_a_month_of_bounded_page_views_is_allowed(tmp_path: Path) -> None:
    code, found = check(PAGEVIEWS, "01-daily-views-2026-11", tmp_path / "ledger.db")
    assert code == 0
    assert alone(found) == {
        "daily-release": Fraction("0.015"),
        "day": Fraction("0.015"),
        "month": Fraction("0.735"),
        "geo-month:geography/member": Fraction("0.735"),
        "geo-month:geography/weak": Fraction("0.735"),
    }


def test_page_views_without_a_bound_are_refused(tmp_path: Path) -> None:
    code, found = check(PAGEVIEWS, "02-no-bound", tmp_path / "ledger.db")
    assert code == 4
    codes = [problem["code"] for problem in found["problems"]]
    assert codes == ["MOD504", "MOD504"]


def test_group_privacy_alone_costs_961_times_as_much(tmp_path: Path) -> None:
    code, found = check(PAGEVIEWS, "03-group-privacy", tmp_path / "ledger.db")
    assert code == 3
    assert alone(found)["day"] == Fraction("0.015")
    assert alone(found)["month"] == 31 * 31 * Fraction("0.015") == Fraction("14.415")
    assert set(found["blocking"]) == {
        "month",
        "geo-month:geography/member",
        "geo-month:geography/weak",
    }


@pytest.mark.parametrize(
    ("query", "losses"),
    [
        ("01-day-and-page", {"user-day": "0.015", "user-month": "0.0525"}),
        ("02-one-day", {"user-day": "0.015", "user-month": "0.015"}),
        ("03-readers", {"user-day": "0.01", "user-month": "0.01"}),
    ],
)
def test_queries_of_page_views_cost_what_they_say(
    query: str, losses: dict[str, str], tmp_path: Path
) -> None:
    code, found = document(
        *("query", "plan", PAGEVIEWS / "queries" / f"{query}.yaml"),
        *("--policy", PAGEVIEWS / "policy.yaml", "--ledger", tmp_path / "ledger.db"),
    )
    assert code == 0
    (line,) = found["mechanisms"]
    for unit, loss in losses.items():
        assert abs(Fraction(line["losses"][unit]) - Fraction(loss)) < Fraction("1e-6")


def test_page_views_are_far_above_their_noise(tmp_path: Path) -> None:
    shutil.copy(PAGEVIEWS / "make_views.py", tmp_path)
    runpy.run_path(str(tmp_path / "make_views.py"), run_name="__main__")
    views = (tmp_path / "views.csv").read_bytes()
    digest = "afba9e4bf0622a7b3608274b66d53a3075257882d9d19e8b8fefc6510016d8ee"
    assert hashlib.sha256(views).hexdigest() == digest, "the same at every run"

    days: Counter[tuple[str, ...]] = Counter()  # By reader.
    counts: Counter[tuple[str, ...]] = Counter()  # By page.
    for line in views.decode().splitlines()[1:]:
        _, time, reader, page, _ = line.split(",")
        days[reader, time[:10]] += 1
        counts[time[:10], page] += 1
    months = Counter(reader for reader, _ in days.elements())
    assert max(days.values()) <= 10, "caps cut nothing: counts are exact"
    assert max(months.values()) <= 70

    begin(PAGEVIEWS, tmp_path / "ledger.db")
    code, output = run(
        *("query", "run", PAGEVIEWS / "queries" / "01-day-and-page.yaml"),
        *("--data", tmp_path / "views.csv", "--ledger", tmp_path / "ledger.db"),
        *("--out", tmp_path / "answer.csv"),
    )
    assert code == 0, output
    answer = (tmp_path / "answer.csv").read_text().splitlines()[1:]
    assert len(answer) == len(counts) == 120
    for line in answer:
        day, page, *numbers = line.split(",")
        exact, (value, low, high) = counts[day, page], map(Fraction, numbers)
        assert low < value < high
        half = (high - low) / 2
        assert half < exact / 10, "noise is below a tenth of each count"
        assert abs(value - exact) < 4 * half, "nearly eight standard deviations"


@pytest.mark.spec("POL-12")
def test_a_second_month_of_page_views_is_another_month(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    begin(PAGEVIEWS, ledger)
    for name in ("01-daily-views-2026-11", "04-daily-views-2026-12"):
        release = PAGEVIEWS / "releases" / f"{name}.yaml"
        assert run("release", "submit", release, "--ledger", ledger)[0] == 0
    # Where a reader lives has no time: it tells about every month.
    code, found = check(PAGEVIEWS, "05-readers-by-home", ledger)
    assert code == 3
    assert found["blocking"] == ["day", "month"]
    month = next(one for one in found["losses"] if one["rule"] == "month")
    assert month["cells_denying"] == 2
    assert month["cell"] in ("2026-11", "2026-12")


@pytest.mark.spec("POL-12")
def test_who_names_no_part_is_decided_as_if_nothing_were_divided(
    tmp_path: Path,
) -> None:
    whole = written(PAGEVIEWS / "policy.yaml")
    del whole["population"]
    whole["schema"]["attributes"]["home"].remove("static")
    bare = tmp_path / "bare.yaml"
    bare.write_text(json.dumps(whole))
    ledger = tmp_path / "ledger.db"
    for name in ("01-daily-views-2026-11", "02-no-bound", "03-group-privacy"):
        described = written(PAGEVIEWS / "releases" / f"{name}.yaml")
        described.pop("periods", None)
        release = tmp_path / f"{name}.json"
        release.write_text(json.dumps(described))
        command = ("release", "check", release, "--ledger", ledger)
        code, found = document(*command, "--policy", PAGEVIEWS / "policy.yaml")
        other_code, other = document(*command, "--policy", bare)
        assert code == other_code
        for loss in (*found.get("losses", ()), *other.get("losses", ())):
            del loss["source"], loss["when"]
        assert found.get("losses") == other.get("losses")


@pytest.mark.spec("POL-13")
def test_a_policy_in_several_files_is_the_same_policy(tmp_path: Path) -> None:
    whole = written(PAGEVIEWS / "policy.yaml")
    head = {key: whole.pop(key) for key in ("modicum", "name", "dp")}
    names = []
    for key, value in whole.items():
        names.append(f"{key}.yaml")
        (tmp_path / names[-1]).write_text(json.dumps({key: value}))
    (tmp_path / "policy.yaml").write_text(json.dumps({**head, "include": names}))
    one = compiled(PAGEVIEWS / "policy.yaml").policy
    assert compiled(tmp_path / "policy.yaml").policy.digest == one.digest


# --- a census -------------------------------------------------------------------

REDISTRICTING = EXAMPLES / "redistricting"


def test_the_census_has_as_many_rules_as_it_says() -> None:
    found = compiled(REDISTRICTING / "policy.yaml")
    assert len(found.rules) == 0
    assert len(found.release_rules) == 1 + 1 + 5 + 2 * 3 + 1
    assert found.policy.disclosed_invariants == (
        "state_population",
        "housing_unit_count",
    )
    vocabulary = found.policy.vocabulary
    assert vocabulary.units == ("person", "housing-unit")
    assert {vocabulary.relation(unit) for unit in vocabulary.units} == {"substitute"}
    assert all(covers == {unit} for unit, covers in vocabulary.covers.items())


@pytest.mark.parametrize(
    ("release", "blocking", "approvals"),
    [
        ("01-persons", [], 2),
        ("02-housing", [], 2),
        ("03-race-by-block", ["attr:race", "fine-geography"], 1),
        ("04-homes-and-people", ["housing"], 1),
    ],
)
def test_tables_of_the_census_are_decided_as_they_say(
    release: str, blocking: list[str], approvals: int, tmp_path: Path
) -> None:
    code, found = check(REDISTRICTING, release, tmp_path / "ledger.db")
    assert code == (3 if blocking else 0)
    assert found["blocking"] == blocking
    assert len(found["approvals"]) == approvals


def test_tables_of_the_census_are_not_reserved_without_approval(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    begin(REDISTRICTING, ledger)
    code, found = document(
        *("release", "submit", REDISTRICTING / "releases" / "01-persons.yaml"),
        *("--ledger", ledger),
    )
    assert code == 5
    assert [problem["code"] for problem in found["problems"]] == ["MOD604"]


# --- the scenarios of DPolicy's evaluation ---------------------------------------


def scenario(name: str) -> Path:
    return EXAMPLES / "dpolicy" / f"{name}.yaml"


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_compiles_to_as_many_rules_as_the_paper_says(name: str) -> None:
    code, found = document("policy", "compile", scenario(name))
    assert code == 0
    assert found["rules"] == len(found["list"]) == SCENARIOS[name]
    kept = len(compiled(scenario(name)).pruned.kept)
    assert found["binding"] == kept
    assert found["redundant"] == SCENARIOS[name] - kept


def _tool() -> ModuleType:
    path = ROOT / "tools" / "dpolicy_scenarios.py"
    spec = importlib.util.spec_from_file_location("dpolicy_scenarios", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_scenarios_are_what_their_tool_writes() -> None:
    texts: dict[str, str] = _tool().scenarios()
    assert {name.removesuffix(".yaml") for name in texts} == set(SCENARIOS)
    for name, text in texts.items():
        current = (EXAMPLES / "dpolicy" / name).read_bytes()
        assert current == text.encode(), "run tools/dpolicy_scenarios.py"


def limits_of(name: str) -> dict[tuple[str, str], Fraction]:
    """Return the eps of every rule of a scenario; all have the same delta."""
    rules = [(rule, rule.budget) for rule in compiled(scenario(name)).rules]
    limits = {
        (rule.id, rule.unit): budget.eps
        for rule, budget in rules
        if isinstance(budget, ApproxBudget) and budget.delta == Fraction("1e-7")
    }
    assert len(limits) == len(rules)
    return limits


def test_s1_relaxes_by_points_in_rising_order() -> None:
    assert limits_of("s1") == {
        ("total @standard", "user"): Fraction("2.5"),
        ("total @black-box", "user"): 20,
        ("attr:a0 @standard", "user"): Fraction("2.5"),
        ("attr:a0 @black-box", "user"): 20,
    }
    (extension,) = written(scenario("s1"))["extensions"]
    table = extension["settings"]["black-box"]["budget"]["map"]
    assert list(table) == sorted(table)
    assert list(table.values()) == sorted(table.values())
    known = (1.7, 1.83, 1.9, 2, 2.25, 2.5)
    assert [table[one] for one in known] == [3, 5, 7, 10, 15, 20]


def test_s2_has_the_risks_of_the_paper_and_caps_all_budgets_by_20() -> None:
    schema = written(scenario("s2"))["schema"]
    risks = [risk for risk, _ in schema["attributes"].values()]
    assert [risks.count(risk) for risk in ("low", "medium", "high")] == [120, 15, 15]
    categories = list(schema["categories"].values())
    assert [categories.count(one) for one in ("low", "medium", "high")] == [5, 4, 1]
    members = [list(joined.values()) for _, joined in schema["attributes"].values()]
    assert all(levels[0] == "member" for levels in members)
    assert all("member" not in levels[1:] for levels in members)
    limits = limits_of("s2")
    assert {limits["total", "user"]} == {20}
    found: dict[str, set[Fraction]] = {}
    for (rule, _), eps in limits.items():
        policy, _, scope = rule.partition(":")
        found.setdefault(f"{policy}/{scope.partition('/')[2]}", set()).add(eps)
    assert found == {
        "total/": {20},
        "attr/": {3, 9, 20},
        "cat/member": {5, 10, 12},
        "cat/strong": {Fraction("7.5"), 15, 18},
        "cat/weak": {10, 20},
    }


def test_s3_limits_a_month_of_the_dynamic_attribute() -> None:
    assert limits_of("s3") == {
        ("total-user", "user"): 20,
        ("total-month", "user-month"): 20,
        ("attr-user:a0", "user"): 20,
        ("attr-user:a1", "user"): 20,
        ("attr-month:a0", "user-month"): 20,
        ("attr-month:a1", "user-month"): 3,
    }
    attributes = compiled(scenario("s3")).policy.attributes
    assert attributes["a0"].static
    assert not attributes["a1"].static


# --- theorem 5.1, word for word ---------------------------------------------------


def implies(narrow: Predicate, wide: Predicate) -> bool:
    """Return whether one predicate of the scenarios implies another."""
    match narrow, wide:
        case _, Constant(value=True):
            return True
        case ReadsAny(attributes=some), ReadsAny(attributes=more):
            return some <= more
        case LabelIn(), LabelIn():
            return narrow == wide
        case _:
            return False


def precedes(rule: Rule, other: Rule) -> bool:
    """Return whether a rule is about no more than another, in scope and in unit."""
    return (
        implies(rule.predicate, other.predicate)
        and all(map(implies, rule.settings, other.settings))
        and other.unit in {rule.unit, "user"}  # A user covers a month of the user.
    )


def covers(other: Rule, rule: Rule, limits: dict[tuple[str, str], Fraction]) -> bool:
    """Return whether a rule is about no less than another, with no larger budget."""
    tighter = limits[other.id, other.unit] <= limits[rule.id, rule.unit]
    return other.id != rule.id and precedes(rule, other) and tighter


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_pruning_keeps_of_a_scenario_is_what_theorem_5_1_keeps(name: str) -> None:
    """Rules go one by one, the last first, so that of equal rules the first stays."""
    found = compiled(scenario(name))
    limits = limits_of(name)
    left = {rule.id: rule for rule in found.rules}
    for rule in reversed(found.rules):
        if any(covers(other, rule, limits) for other in left.values()):
            del left[rule.id]
    kept = {found.rules.rule_id(number) for number in found.pruned.kept}
    assert kept == set(left)
    assert 0 < len(kept) < len(found.rules)
    for rule, witness in zip(found.rules, found.pruned.witness, strict=True):
        assert (witness < 0) == (rule.id in kept)
        assert witness < 0 or covers(found.rules[witness], rule, limits)
    readme = (EXAMPLES / "dpolicy" / "README.md").read_text(encoding="utf-8")
    row = rf"^\| \[`{name}.yaml`.*\| {len(found.rules)} \| {len(kept)} \|$"
    assert re.search(row, readme, re.MULTILINE)
