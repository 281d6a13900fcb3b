"""`modicum plan rotation`: tables, documents, pictures, mistakes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from modicum.cli.main import app

RUNNER = CliRunner()
SMALL = ("--active", "4", "--horizon", "8", "--slack", "0.5", "--rho", "0.8")


def run(*args: str, exit_code: int = 0) -> str:
    result = RUNNER.invoke(app, ["plan", "rotation", *args])
    assert result.exit_code == exit_code, (result.output, result.exception)
    return str(result.output)


def document(*args: str, exit_code: int = 0) -> Any:
    return json.loads(run(*args, "--json", exit_code=exit_code))


def test_the_document() -> None:
    found = document(*SMALL, "--users-per-round", "90000,800", "--rounds", "13")
    assert found["budget"] == {
        "text": "{rho: 0.8}",
        "filter": "combined-v2",
        "coordinate": "rho",
        "cap": 0.8,
    }
    (choice,) = found["choices"]
    assert choice["name"] == "active=4 horizon=8 slack=0.5"
    assert (choice["active"], choice["horizon"], choice["slack"]) == (4, 8, 0.5)
    assert choice["round_days"] == 7
    assert (choice["least"], choice["even"], choice["most"]) == (0.125, 0.25, 0.375)
    assert (choice["steady_from"], choice["users_steady"]) == (12, 3200)
    assert [one["share"] for one in choice["unlocked"]] == [0.375, 0.75, 0.875, 1]
    assert [one["cap"] for one in choice["unlocked"]] == [0.3, 0.6, 0.7, 0.8]
    assert [one["step"] for one in choice["unlocked"]] == [0.375, 0.375, 0.125, 0.125]
    assert [one["round"] for one in choice["rounds"]] == list(range(1, 14))
    assert choice["rounds"][0] == {
        "round": 1,
        "groups": 1,
        "users": 11250,
        "users_oldest": 11250,
        "users_newest": 11250,
        "greedy": 0.375,
        "balanced": 0.375,
    }
    assert choice["rounds"][-1]["users"] == 3200


def test_the_usual_choice_is_told_until_it_is_steady() -> None:
    (choice,) = document()["choices"]
    assert (choice["active"], choice["horizon"], choice["slack"]) == (12, 104, 0.4)
    assert choice["steady_from"] == 115
    assert len(choice["rounds"]) == 116
    assert document("--rounds", "3")["choices"][0]["rounds"][-1]["round"] == 3


def test_words_for_people() -> None:
    shown = run(*SMALL)
    assert shown.startswith("4 groups of users active at a time, each for 4 rounds")
    assert "one of the next 8 groups" in shown
    assert "  2     75.0%  37.5%  0.6\n" in shown
    assert "at least 1/8 of the budget (rho 0.1)" in shown
    assert "none more than 3/8 (rho 0.3)" in shown
    assert "From round 11 on, 4,000 users" in shown
    assert "other scales" not in shown
    assert "other scales" in run()
    by_arrival = run("--active", "1", "--horizon", "1", "--round-days", "1")
    assert by_arrival.startswith("1 group of users active at a time, each for 1 round")
    assert "active from the next round on" in by_arrival


def test_a_long_outlook_leaves_rounds_out_and_says_so() -> None:
    rows = [line.split() for line in run().splitlines()]
    numbers = [row[0] for row in rows if len(row) == 8 and row[0].isdigit()]
    first, rest = numbers[:13], numbers[13:]
    assert first == [str(n) for n in range(1, 14)]
    assert rest[-1] == "116"
    assert len(rest) < 12
    assert sum(row == ["..."] for row in rows) == len(rest)


def test_choices_side_by_side() -> None:
    options = ("--compare", "slack=0,0.5,at-once", "--compare", "active=2,4")
    found = document(*SMALL, *options)
    assert [one["name"] for one in found["choices"]] == [
        f"slack={slack} active={active}"
        for slack in ("0", "0.5", "at-once")
        for active in (2, 4)
    ]
    assert {one["horizon"] for one in found["choices"]} == {8}
    assert [one["slack"] for one in found["choices"]][::2] == [0, 0.5, "at-once"]
    assert {len(one["rounds"]) for one in found["choices"]} == {12}
    shown = run(*SMALL, *options)
    assert "slack=0.5 active=4" in shown
    assert "12.5% rho 0.1" in shown
    assert "ROUND" not in shown


@pytest.mark.parametrize(
    ("options", "coordinate", "cap"),
    [
        ((), "rho", 0.140941038579),
        (("--eps", "1", "--delta", "0"), "eps", 1),
        (("--filter", "as-published"), "rdp(8)", 0.697414907005),
        (("--filter", "basic-v1"), "eps", 3),
    ],
)
def test_the_scale_of_a_budget(
    options: tuple[str, ...], coordinate: str, cap: float
) -> None:
    budget = document(*options, "--rounds", "1")["budget"]
    assert (budget["coordinate"], budget["cap"]) == (coordinate, cap)


# --- a policy -------------------------------------------------------------------------

TURNS = "rotation: {active: 4, slack: 0.25}"
POLICY = f"""
modicum: policy/v1
name: turns
units:
  user: {{id: uid}}
  visit: {{id: vid}}
schema: {{attributes: {{age: low}}}}
labels: {{audience: {{values: [public, staff], default: public}}}}
population: {{groups: {{immutable: [user]}}}}
{TURNS}
policies:
  - {{name: all, when: "true", unit: user, budget: {{rho: 0.8}}}}
  - {{name: visits, when: "true", unit: visit, budget: {{rho: 0.1}}}}
  - {{name: watched, when: "true", unit: user, budget: unlimited}}
"""
MORE = """
  - {name: ages, when: m.name == "a", unit: user, budget: {eps: 2, delta: 1e-6}}
  - {name: mu, when: m.name == "m", unit: user, budget: {mu: 2}}
  - {name: renyi, when: m.name == "r", unit: user, budget: {rdp: {2: 1, 8: 3}}}
dp: {filter: zcdp-v1}
"""


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return str(path)


def described(found: Any) -> dict[str, Any]:
    (choice,) = found["choices"]
    keys = ("active", "slack", "horizon")
    return {**found["budget"], **{key: choice[key] for key in keys}}


def test_a_policy_says_what_no_option_says(policy: str) -> None:
    found = document("--policy", policy, "--rounds", "1")
    assert (found["policy"], found["rule"]) == ("turns", "all")
    by_hand = ("--active", "4", "--slack", "0.25", "--rho", "0.8", "--rounds", "1")
    same = document(*by_hand)
    assert (same["policy"], same["rule"]) == (None, None)
    assert described(found) | {"filter": ""} == described(same) | {"filter": ""}
    assert found["choices"] == same["choices"]


def test_an_option_goes_before_the_policy(policy: str) -> None:
    budget = ("--eps", "1", "--delta", "1e-9", "--filter", "zcdp-v1")
    found = document("--policy", policy, "--active", "7", *budget, "--rounds", "1")
    assert (found["policy"], found["rule"]) == ("turns", None)
    assert described(found) | {"cap": 0} == {
        "text": "{eps: 1, delta: 1e-9}",
        "filter": "zcdp-v1",
        "coordinate": "rho",
        "cap": 0,
        "active": 7,
        "slack": 0.25,
        "horizon": 104,
    }
    compared = document("--policy", policy, "--compare", "slack=0,1", "--rounds", "1")
    shown = [(one["active"], one["slack"]) for one in compared["choices"]]
    assert shown == [(4, 0), (4, 1)]


@pytest.mark.parametrize(
    ("rule", "text", "coordinate", "cap"),
    [
        ("all", "{rho: 0.8}", "rho", 0.8),
        ("ages", "{eps: 2, delta: 1e-6}", "rho", 0.0861),
        ("mu", "{mu: 2}", "mu2", 4),
        ("renyi", "{rdp: {2: 1, 8: 3}}", "rdp(2)", 1),
    ],
)
def test_a_rule_says_whose_budget(
    rule: str, text: str, coordinate: str, cap: float, policy: str
) -> None:
    with Path(policy).open("a") as file:
        file.write(MORE.lstrip("\n"))
    args = ("--policy", policy, "--rule", rule, "--rounds", "1")
    found = document(*args)
    assert found["rule"] == rule
    budget = found["budget"]
    assert budget.pop("cap") == pytest.approx(cap, rel=0.01)
    filter_name = "zcdp-v1"
    assert budget == {"text": text, "filter": filter_name, "coordinate": coordinate}
    shown = run(*args)
    assert shown.startswith(f"By policy `turns`, budget of rule `{rule}`.\n4 groups")
    # Every order of a Renyi budget must hold: none helps where another one is exceeded.
    assert "other scales" not in shown or rule == "ages"


def test_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "outlook.svg"
    shown = run(*SMALL, "--plot", str(picture))
    assert f"drawn: {picture}" in shown
    one = picture.read_bytes()
    assert one.startswith(b"<svg ")
    document(*SMALL, "--compare", "slack=0,1", "--plot", str(picture))
    assert picture.read_bytes() != one  # Another picture takes its place.


# --- mistakes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "exit_code", "said"),
    [
        (("--slack", "1.5"), 2, "MOD106"),
        (("--active", "2000"), 2, "MOD106"),
        (("--rounds", "20000"), 2, "MOD106"),
        (("--users-per-round", "-1"), 2, "MOD106"),
        (("--active", "0"), 2, "--active"),
        (("--slack", "some"), 2, "`some` is not a number"),
        (("--eps", "0"), 2, "--eps"),
        (("--delta", "1"), 2, "--delta"),
        (("--rho", "1", "--delta", "0.1"), 2, "--rho"),
        (("--rho", "-1"), 2, "--rho"),
        (
            ("--rho", "1", "--eps", "3"),
            2,
            "--eps cannot be combined with --rho; remove one",
        ),
        (
            ("--filter", "zcdp-v1", "--rho", "1"),
            2,
            "--filter cannot be combined with --rho",
        ),
        (
            ("--delta", "0", "--filter", "zcdp-v1"),
            2,
            "cannot be combined with --delta 0",
        ),
        (("--filter", "as-published", "--eps", "30"), 4, "as-published is not proven"),
        (("--filter", "best"), 2, "not one of combined-v1"),
        (("--users-per-round", "1.5"), 2, "not an integer"),
        (("--compare", "slack"), 2, "NAME=V"),
        (("--compare", "color=red"), 2, "NAME=V"),
        (("--compare", "slack=0", "--compare", "slack=1"), 2, "NAME=V"),
        (("--compare", "slack=0,,1"), 2, "not a number"),
        (("--compare", "active=" + ",".join(map(str, range(1, 14)))), 2, "13 choices"),
        (("--plot", "x.png"), 2, "MOD115"),
        (("--plot", "no/x.svg"), 2, "MOD001"),
        (("--eps", "1e-14", "--delta", "0"), 2, "no mechanism fits"),
        (("--policy", "no.yaml"), 4, "MOD001"),
        (("--rule", "all"), 2, "--rule selects the budget of a --policy"),
    ],
)
def test_mistakes(
    options: tuple[str, ...],
    exit_code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = run(*options, exit_code=exit_code)
    assert said in " ".join(shown.replace("│", " ").split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("before", "after", "options", "said"),
    [
        ("", "", ("--rule", "visits"), "no rule `visits` with rotation has a limit"),
        ("", "", ("--rule", "watched"), "there are `all` {rho: 0.8}"),
        ("", "", ("--rule", "all", "--rho", "1"), "with another budget"),
        (TURNS, "", (), "`turns` has no `rotation`"),
        ("{rho: 0.8}", "unlimited", (), "no rule with rotation has a limit"),
        (
            "unlimited",
            "{eps: 1}",
            (),
            "several budgets; choose by --rule one of `all` {rho: 0.8},"
            " `watched` {eps: 1}",
        ),
    ],
)
def test_mistakes_about_a_policy(
    before: str, after: str, options: tuple[str, ...], said: str, policy: str
) -> None:
    Path(policy).write_text(POLICY.replace(before, after) if before else POLICY)
    shown = run("--policy", policy, *options, exit_code=2)
    assert said in " ".join(shown.replace("│", " ").split())


def test_a_mistake_as_a_document() -> None:
    found = document("--slack", "2", exit_code=2)
    assert found["error"]["code"] == "MOD106"


def test_what_draws_is_loaded_only_to_draw() -> None:
    script = (
        "import sys\n"
        "from modicum.cli.main import app\n"
        "app(['plan', 'rotation', '--json'], standalone_mode=False)\n"
        "heavy = {'scipy', 'numba'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)\n"
    )
    subprocess.run(
        [sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL
    )
