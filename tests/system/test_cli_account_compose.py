"""`modicum account compose`: answers, documents and mistakes with their places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from modicum.cli.main import app

RUNNER = CliRunner()

HEAD = """
format: composition/v1
axes:
  day: [0, 14]
  region: [north, south]
attributes: [income, weight]
"""

WEEKS = (
    HEAD
    + """
entries:
  - id: first
    cost: {eps: 0.5}
    where: {day: [0, 7]}
    reads: []
  - id: second
    mechanism: {kind: gaussian, sigma: 10}
    times: 4
    where: [{day: [7, 14]}, {region: south}]
    reads: [income]
"""
)


def run(*args: str, exit_code: int = 0) -> str:
    result = RUNNER.invoke(app, ["account", "compose", *args])
    assert result.exit_code == exit_code, (result.output, result.exception)
    return str(result.stdout)


@pytest.fixture
def ask(tmp_path: Path) -> Any:
    def asked(text: str, *args: str, exit_code: int = 0) -> Any:
        (tmp_path / "q.yaml").write_text(text)
        args = (str(tmp_path / "q.yaml"), *args, "--json")
        return json.loads(run(*args, exit_code=exit_code))

    return asked


def test_the_worst_move_is_named_with_what_it_is_charged(ask: Any) -> None:
    answer = ask(WEEKS + "target: {attributes: 1, among: [day]}\n")
    rho = answer["losses"]["rho"]
    assert rho["attained"]
    assert rho["move"]["changed"] == ["day"]
    assert [charge["entry"] for charge in rho["move"]["charges"]] == ["first", "second"]
    # 0.5 tanh(1/4), rounded up, and 4/200.
    assert rho["amount"] == pytest.approx(0.122459331202 + 0.02, abs=1e-11)
    assert answer["losses"]["eps"]["amount"] == "inf"
    assert answer["approx_dp"] is None


def test_a_delta_converts_each_move(ask: Any) -> None:
    answer = ask(WEEKS + "target: add-remove\ndelta: 1e-6\n")
    assert answer["approx_dp"]["delta"] == 1e-6
    by_option = ask(WEEKS + "target: add-remove\ndelta: 1e-3\n", "--delta", "1e-6")
    assert by_option == answer


TARGETS: dict[str, tuple[str, float | str]] = {
    "add-remove": ("eps", "inf"),
    "substitute": ("eps", "inf"),
    "{attributes: 1}": ("eps", "inf"),
    "{label: weight}": ("eps", 0),
    "{group: 3}": ("rho", 0.18 + 1.5 * 0.6351489523872873),
    "{group: 2, of: substitute}": ("rho", 0.32 + 2 * 0.7615941559557649),
    "{user: ever}": ("rho", "inf"),
    "{user: {along: day, window: 7}}": ("rho", "inf"),
    "{user: {along: day, sliding: 3, at-most: 2, change: any}}": ("rho", "inf"),
    "{user: {along: day, fixed: [region]}}": ("rho", "inf"),
    "{metric: {weights: {day: 1}, points: [{day: 1, region: north}]}}": ("rho", 0),
}


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_has_an_answer(target: str, ask: Any, tmp_path: Path) -> None:
    measure, amount = TARGETS[target]
    found = ask(WEEKS + f"target: {target}\n")["losses"][measure]["amount"]
    assert found == (amount if amount == "inf" else pytest.approx(amount, abs=1e-11))
    text = run(str(tmp_path / "q.yaml"))
    assert text.startswith("2 entries, 2 axes\n")
    assert "worst move in" in text


ENTRY = HEAD + "entries:\n  - {id: a, cost: {eps: 1}, EXTRA}\ntarget: add-remove\n"


def entry(extra: str) -> str:
    return ENTRY.replace("EXTRA", extra)


def target(text: str) -> str:
    return WEEKS + f"target: {text}\n"


NONE = "entries: []\ntarget: add-remove\n"
ONE_POINT = "{metric: {weights: {day: 1}, points: [{day: 99, region: north}]}}"
MAGIC = "entries:\n  - {id: a, mechanism: {kind: magic}}\ntarget: add-remove\n"

MISTAKES = {
    "format: composition/v2\nentries: []\ntarget: substitute\n": "MOD109",
    "entries: []\ntarget: substitute\n": "MOD103",
    HEAD + "entries: []\n": "MOD103",
    HEAD.replace("[0, 14]", "[14, 0]") + NONE: "MOD106",
    HEAD.replace("[0, 14]", "[1, 2, 3]") + NONE: "MOD104",
    HEAD.replace("[0, 14]", "[]") + NONE: "MOD103",
    HEAD.replace("north", "south") + NONE: "MOD116",
    entry("where: {dya: [0, 1]}"): "MOD117",
    entry("where: {region: east}"): "MOD115",
    entry("where: {region: [0, 1]}"): "MOD104",
    entry("where: {day: [3, 3]}"): "MOD106",
    entry("where: 7"): "MOD104",
    entry("reads: income"): "MOD104",
    entry("mechanism: {kind: laplace, scale: 1}"): "MOD119",
    entry("times: 0"): "MOD106",
    entry("times: 1.5"): "MOD106",
    entry("proven-for: {unit: house}"): "MOD115",
    entry("proven-for: {unit: user, relation: substitute}"): "MOD115",
    entry("proven-for: {unit: {user-per: region}}"): "MOD117",
    entry("proven-for: {size: unknown}"): "MOD115",
    entry("rows: {at-most: 0}"): "MOD106",
    entry("sample: {name: s, rate: 2}"): "MOD106",
    entry("sample: {name: s, rate: 0.1}, proven-for: {unit: user}"): "MOD108",
    entry("if-it-stays: {eps: -1}"): "MOD106",
    entry("colour: red"): "MOD102",
    HEAD + "entries:\n  - {id: a, mechanism: {kind: pate-gnmax, sigma: 1},"
    " proven-for: {relation: metric}}\ntarget: add-remove\n": "MOD119",
    HEAD + "entries:\n  - {id: a, mechanism: {kind: dp-sgd, noise-multiplier: 1,"
    " sampling-rate: 0.1, steps: 1}, proven-for: {relation: substitute}}\n"
    "target: add-remove\n": "MOD119",
    entry("where: {day: [13, 15]}"): "MOD106",
    entry("where: {region: []}"): "MOD106",
    entry("where: []"): "MOD106",
    entry("reads: [incom]"): "MOD117",
    HEAD.replace("[0, 14]", "[2026-01-01, 2026-12-31]") + NONE: "MOD105",
    HEAD + "entries:\n  - {id: a}\ntarget: add-remove\n": "MOD103",
    HEAD + "entries:\n  - {id: a, cost: unlimited}\ntarget: add-remove\n": "MOD104",
    HEAD + "entries:\n  - {id: a, cost: {eps: .nan}}\ntarget: add-remove\n": "MOD106",
    HEAD
    + "entries:\n  - {id: a, mechanism: {kind: magic}}\ntarget: add-remove\n": "MOD118",
    ENTRY.replace(", EXTRA}", "}\n  - {id: a, cost: {eps: 1}}"): "MOD116",
    target("everybody"): "MOD115",
    target("{}"): "MOD103",
    target("{attributes: 1, label: x}"): "MOD119",
    target("{attributes: 0}"): "MOD106",
    target("{attributes: 1, among: [incom]}"): "MOD117",
    target("{label: incom}"): "MOD117",
    target("{group: 2, of: users}"): "MOD115",
    target("{group: 1001}"): "MOD106",
    target("{user: {window: 7}}"): "MOD103",
    target("{user: {along: region}}"): "MOD117",
    target("{user: {along: day, window: 7, sliding: 7}}"): "MOD119",
    target("{user: {along: day, fixed: [day]}}"): "MOD117",
    target("{user: {along: day, change: substitute}}"): "MOD115",
    target("{user: sometimes}"): "MOD115",
    target("{metric: {weights: {day: 0}, points: []}}"): "MOD106",
    target("{metric: {weights: {day: 1}, points: [{day: 1}]}}"): "MOD103",
    target(
        "{metric: {weights: {day: 1}, points: [{day: 99, region: north}]}}"
    ): "MOD106",
    target("add-remove\ndelta: 1"): "MOD106",
}


@pytest.mark.parametrize("text", MISTAKES, ids=lambda t: str(t)[-60:])
def test_a_mistake_has_a_code_and_a_place(text: str, ask: Any) -> None:
    problems = ask(text, exit_code=4)["problems"]
    assert MISTAKES[text] in [problem["code"] for problem in problems]
    assert all(problem["message"] for problem in problems)
    assert all(problem["line"] for problem in problems)


def test_several_mistakes_are_told_at_once(ask: Any) -> None:
    text = WEEKS.replace("north, south", "north, north").replace("0.5", "-0.5")
    problems = ask(text + "target: everybody\n", exit_code=4)["problems"]
    assert len(problems) >= 3


def test_a_missing_file_and_a_delta_out_of_range(tmp_path: Path) -> None:
    run(str(tmp_path / "none.yaml"), exit_code=4)
    (tmp_path / "q.yaml").write_text(WEEKS + "target: add-remove\n")
    run(str(tmp_path / "q.yaml"), "--delta", "1", exit_code=2)
    run(str(tmp_path / "q.yaml"), "--delta", "x", exit_code=2)


def test_long_lists_of_charges_are_cut_unless_they_are_asked_for(
    tmp_path: Path,
) -> None:
    many = "".join(f"  - {{id: e{n}, cost: {{eps: 0.1}}}}\n" for n in range(20))
    (tmp_path / "q.yaml").write_text(
        HEAD + "entries:\n" + many + "target: add-remove\n"
    )
    assert "and 8 more" in run(str(tmp_path / "q.yaml"))
    every = run(str(tmp_path / "q.yaml"), "--charges")
    assert "more (" not in every
    assert "e19: " in every


def test_a_bound_is_called_a_bound(tmp_path: Path) -> None:
    entries = "".join(
        f"  - {{id: e{n}, cost: {{rho: 0.1}}, where: {{day: [{n}, {n + 2}]}},"
        " proven-for: {unit: {user-per: day}}}\n"
        for n in range(3)
    )
    asked = "target: {user: {along: day, at-most: 2}}\n"
    (tmp_path / "q.yaml").write_text(HEAD + "entries:\n" + entries + asked)
    assert "a bound" in run(str(tmp_path / "q.yaml"))


def test_what_a_record_costs_that_stays_is_for_each_time(ask: Any) -> None:
    entries = (
        "entries:\n  - {id: a, cost: {eps: 1}, times: 10, if-it-stays: {eps: 1}}\n"
    )
    answer = ask(HEAD + entries + "target: substitute\n")
    assert answer["losses"]["eps"]["amount"] == 10


LONG = "format: composition/v1\naxes: {day: [0, 1000000000]}\nentries:\n"
PER_DAY = "proven-for: {unit: {user-per: day}}"


@pytest.mark.parametrize(
    "text",
    [
        f"{LONG}  - {{id: e, cost: {{eps: 1}}, {PER_DAY}}}\n"
        "target: {user: {along: day}}\n",
        f"{LONG}  - {{id: e, cost: {{eps: 1e-9, delta: 1e-15}}, {PER_DAY}}}\n"
        "target: {user: ever}\n",
        "format: composition/v1\nentries:\n  - {id: e, cost: {eps: 1e-6, delta: 1e-15},"
        " rows: {at-most: 1000000}}\ntarget: {user: ever}\n",
        "format: composition/v1\nentries:\n  - {id: e, mechanism: {kind: dp-sgd,"
        " noise-multiplier: 1.3, sampling-rate: 0.01, steps: 1000}}\n"
        "target: {group: 9}\n",
    ],
    ids=["many days", "many deltas", "many rows", "a group under training"],
)
def test_a_small_file_is_not_counted_through_one_by_one(text: str, ask: Any) -> None:
    """Each of these once took longer than anybody waits."""
    assert ask(text)["entries"] == 1
