"""Planning on a ledger, as commands: what is printed, exit codes, mistakes."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samples.documents import check_described
from typer.testing import CliRunner

from modicum.cli.main import app

POLICY = """
modicum: policy/v1
name: weekly
units: {patient: {id: patient_id}}
labels: {audience: {values: [public, staff], default: public}}
schema: {attributes: {age: low, pay: high}}
roles: {officer: [olga]}
approvals: [{when: 'release.audience == "public"', need: 1, from: [officer]}]
population:
  groups: {immutable: [patient]}
  partition_by: {region: {values: [north, south], immutable: [patient]}}
rotation: {active: 3, slack: 0.4, retired: RETIRED}
policies:
  - {name: all, when: "true", unit: patient, budget: {rho: 1}}
"""
#: Name, rho, worth and the rest: 7/15 of rho 1 is unlocked for all three groups.
REQUESTS = (
    ("big", "0.4", 5, "audience: staff"),
    ("small", "0.2", 4, "audience: staff"),
    ("other", "0.25", 4, "audience: staff"),
    ("later", "0.1", 9, "audience: staff"),
    ("portal", "0.001", 1, "audience: public\nrequester: ann"),
)
REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
SOLVERS = "fcfs dpf dpf-weighted dpf-remaining dpf-weighted-remaining dpk guided ilp"


def request(name: str, rho: str, worth: float, more: str) -> str:
    groups = "[9]" if name == "later" else "{from: 1, to: 3}"
    one = f"mechanism: gaussian, attributes: [age], cost: {{patient: {{rho: {rho}}}}}"
    return (
        f"release: {name}\nutility: {worth}\n{more}\ngroups: {groups}\n"
        f"mechanisms: [{{{one}}}]\n"
    )


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a ledger in its third round, requests, and a plan."""
    place = tmp_path_factory.mktemp("prepared")
    (place / "policy.yaml").write_text(POLICY.replace("RETIRED", "first-come"))
    text = "---\n".join(request(*one) for one in REQUESTS)
    (place / "requests.yaml").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODICUM_LEDGER", str(place / "ledger.db"))
        patch.setenv("MODICUM_ACTOR", "you")
        run("init", "--policy", str(place / "policy.yaml"))
        for _ in range(3):
            plan("open")
        plan("run", str(place / "requests.yaml"), "-o", str(place / "plan.json"))
    return place


@pytest.fixture
def folder(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the same, to be changed."""
    for name in ("policy.yaml", "requests.yaml", "plan.json", "ledger.db"):
        shutil.copy(prepared / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    for name in ("MODICUM_LEDGER", "MODICUM_POLICY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MODICUM_ACTOR", "you")
    return tmp_path


def run(*args: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, args)
    assert result.exit_code == exit_code, (result.output, result.exception)
    return str(result.output)


def plan(*args: str, exit_code: int = 0) -> str:
    return run("plan", *args, exit_code=exit_code)


def document(*args: str, exit_code: int = 0) -> Any:
    return json.loads(plan(*args, "--json", exit_code=exit_code))


def mistake(*args: str, exit_code: int) -> str:
    """Return the code of the mistake that a command reports."""
    return str(document(*args, exit_code=exit_code)["error"]["code"])


def seq() -> int:
    return int(json.loads(run("status", "--json"))["ledger"]["seq"])


# --- rounds ---------------------------------------------------------------------------


def test_a_round_is_opened_and_shown(folder: Path) -> None:
    assert plan("show") == (
        "round `round-3` is open, the 3rd\n"
        "  group 1: active for 3 rounds, 100 % unlocked\n"
        "  group 2: active for 2 rounds, 80 % unlocked\n"
        "  group 3: active for 1 round, 46.6 % unlocked\n"
    )
    opened = plan("open", "autumn/4", "--unlock", "patient=0.3333339")
    assert "  patient: 33.3 % of every budget is unlocked\n" in opened
    assert opened.endswith("  retired: group 1\n")
    shown = document("show")
    assert shown["plans"] == []
    assert shown["round"] == {
        "round": "autumn/4",
        "number": 4,
        "unlocked": {"patient": 0.333333},
        "active": [
            {"group": 2, "age": 3, "unlocked": 1.0},
            {"group": 3, "age": 2, "unlocked": 0.8},
            {"group": 4, "age": 1, "unlocked": pytest.approx(7 / 15)},
        ],
        "retired": [1],
        "plans": [],
    }
    assert document("open", "--unlock", "patient=1")["round"] == "round-5"
    assert "retired: groups 1 to 3" in plan("open")


def test_before_the_first_round_there_is_none(folder: Path) -> None:
    run("init", "--policy", "policy.yaml", "--ledger", "new.db")
    assert plan("show", "--ledger", "new.db") == "no round is open\n"
    assert document("show", "--ledger", "new.db") == {"round": None, "plans": []}
    assert "no group" in plan("remainder", "--ledger", "new.db")
    arguments = ("run", "requests.yaml", "--ledger", "new.db")
    assert mistake(*arguments, exit_code=2) == "MOD801"


@pytest.mark.parametrize(
    ("given", "exit_code"),
    [
        ("patient", 2),
        ("patient=", 2),
        ("patient=2", 2),
        ("patient=-1", 2),
        ("patient=101%", 2),
        ("patient=%", 2),
        ("=0.5", 2),
        ("user=0.5", 4),
    ],
)
def test_what_is_no_share_is_refused(folder: Path, given: str, exit_code: int) -> None:
    before = seq()
    result = plan("open", "--unlock", given, exit_code=exit_code)
    # An example has a unit of the policy.
    assert exit_code == 4 or "patient=0.25" in " ".join(result.split())
    assert seq() == before


def test_a_unit_is_unlocked_once(folder: Path) -> None:
    before = seq()
    plan("open", "--unlock", "patient=1", "--unlock", "patient=1", exit_code=2)
    assert seq() == before


def test_ids_of_rounds_and_falling_shares_are_refused(folder: Path) -> None:
    opened = plan("open", "half", "--unlock", "patient=50%")
    assert "patient: 50 % of every budget" in opened
    again_ = opened.replace("the 4th\n", "the 4th (it was already open)\n")
    assert plan("open", "half") == again_ != opened  # Who is not sure may try again.
    assert plan("open", "half", "--unlock", "patient=0.5") == again_
    again = ("open", "half", "--unlock", "patient=0.6")
    assert mistake(*again, exit_code=4) == "MOD703"
    assert mistake("open", "round-3", exit_code=4) == "MOD703"
    assert mistake("open", "--unlock", "patient=0.4", exit_code=4) == "MOD703"
    result = plan("open", "--unlock", "patient=0.4", exit_code=4)
    assert (
        "help: shares never decrease: unlock patient=0.5 or more, or leave it" in result
    )
    result = plan("open", "round-3", exit_code=4)
    assert "help: give the next round a different id" in result
    assert mistake("open", "\x1b[31mred", exit_code=4) == "MOD002"
    assert mistake("open", "two words", exit_code=4) == "MOD107"


@pytest.mark.parametrize("retired", ["first-come", "closed"])
def test_what_groups_left_over_is_shown(folder: Path, retired: str) -> None:
    Path("other.yaml").write_text(POLICY.replace("RETIRED", retired))
    ledger = ("--ledger", "other.db")
    run("init", "--policy", "other.yaml", *ledger)
    plan("open", *ledger)
    one = request("first", "0.25", 1, "audience: staff\nwhere: {region: north}")
    Path("first.yaml").write_text(one.replace("to: 3", "to: 1"))
    plan("run", "first.yaml", "--out", "plan.json", *ledger)
    plan("commit", "plan.json", *ledger)
    for _ in range(4):
        plan("open", *ledger)
    shown = plan("remainder", *ledger).splitlines()
    assert shown[1].split() == (
        ["1", "round-4", "all", "region", "north,", "group", "1", "rho", "0.25", "0.75"]
    )
    assert shown[2].split()[:3] == ["2", "round-5", "all"]
    assert ("nobody may use it" in shown[-1]) is (retired == "closed")
    result = document("remainder", *ledger)
    assert result["retired"] == retired
    assert [(one["group"], one["until"]) for one in result["groups"]] == [
        (1, "round-4"),
        (2, "round-5"),
    ]
    assert result["groups"][0]["standing"]["together"] == 0.25


# --- a plan ---------------------------------------------------------------------------


@pytest.mark.spec("PLAN-12")
def test_a_plan_is_made_shown_and_written_and_reserves_nothing(folder: Path) -> None:
    before = seq()
    made = plan("run", "requests.yaml", "--compare", "fcfs", "--compare", "ilp")
    assert ", round `round-3`, solver dpk, ledger entry 7\n" in made
    assert "accepted         2        8  34.8 %\n" in made
    assert "rejected         1        5  21.7 %\n" in made
    assert "left out         2       10  43.5 %\n" in made
    assert "all              5       23\n" in made
    assert "fcfs           1        5  21.7 %\n" in made
    assert "ilp            2        8  34.8 %\n" in made
    assert made.endswith(
        "nothing is reserved; to commit it, write it with  --out plan.json\n"
        "why not the others: write it with  --out plan.json, then  modicum plan show"
        " plan.json\n"
    )
    written = plan("run", "requests.yaml", "--out", "plan.json")
    assert written.endswith("why not the others:  modicum plan show plan.json\n")
    result = document("run", "requests.yaml", "--compare", "fcfs", "-o", "plan.json")
    assert result.pop("compared") == [
        {"solver": "dpk", "accepted": 2, "utility": 8.0},
        {"solver": "fcfs", "accepted": 1, "utility": 5.0},
    ]
    assert json.loads(Path("plan.json").read_text()) == result
    assert document("show", "plan.json") == result
    assert seq() == before == result["ledger"]["seq"]
    (folder / "much.yaml").write_text(request("much", "99", 1, ""))
    nothing = plan("run", "much.yaml", "--out", "none.json")
    assert (
        "written to none.json; no request is accepted, nothing is reserved" in nothing
    )
    assert "plan commit" not in nothing
    shown = plan("show", "plan.json")
    assert shown.startswith(
        f"{result['plan']}, round `round-3`, solver dpk, ledger entry 7\n"
    )
    assert "accepted  small  (utility 4)\n" in shown
    assert "rejected  big  (utility 5)\n          all (group 1 to 3): needs" in shown


def test_every_solver_can_be_chosen(folder: Path) -> None:
    first, *others = SOLVERS.split()
    compared = [arg for one in others for arg in ("--compare", one)]
    result = document("run", "requests.yaml", "--solver", first, *compared)
    assert result["solver"] == first
    assert [one["solver"] for one in result["compared"]] == [first, *others]
    assert document("run", "requests.yaml", "--solver", first, "--engine", "numpy") == {
        **result,
        "compared": result["compared"][:1],
    }


def test_a_request_is_told_why_not(folder: Path) -> None:
    made = document("show", "plan.json")["plan"]
    assert plan("why-not", "plan.json", "small") == f"small is accepted in {made}\n"
    assert plan("why-not", "plan.json", "big") == (
        f"big is not in {made}:\n"
        "  all (group 1 to 3): needs rho 0.4, of 0.4667 0.01667 are left; taken by"
        " other, small\n"
    )
    assert document("why-not", "plan.json", "portal") == {
        "plan": made,
        "release": "portal",
        "why": ["1 of officer must approve it first:  modicum release approve FILE"],
    }
    assert mistake("why-not", "plan.json", "nobody", exit_code=4) == "MOD804"
    result = plan("why-not", "plan.json", "nobody", exit_code=4)
    assert "help: list them with  modicum plan show plan.json\n" in result


def test_an_id_where_a_file_is_meant_and_the_other_way_round(folder: Path) -> None:
    made = document("show", "plan.json")["plan"]
    for command in (("why-not", made, "big"), ("commit", made)):
        assert "not the plan id" in plan(*command, exit_code=4)
    result = plan("show", "plan.jsno", exit_code=4)
    assert "there is no file `plan.jsno`, and no plan with this id" in result
    assert f"unknown plan `{made}`" in plan("show", made, exit_code=4)


def test_a_warning_counts_requests_that_name_no_groups(folder: Path) -> None:
    assert "warning" not in plan("run", "requests.yaml")
    first, *others = Path("requests.yaml").read_text().split("---\n")
    unnamed = [re.sub("groups: .*\n", "", one) for one in others]
    Path("some.yaml").write_text("---\n".join([first, *unnamed]))
    result = plan("run", "some.yaml")
    assert (
        "warning: 4 requests of 5 name no `groups`, and so also read those that have"
        " not started; name those that are active:  groups: {from: 1, to: 3}\n"
    ) in result
    Path("one.yaml").write_text(unnamed[0])
    result = plan("run", "one.yaml", "--out", "one.json")
    assert (
        "warning: 1 request of 1 names no `groups`, and so also reads those" in result
    )
    assert plan("why-not", "one.json", "small").splitlines()[2:] == [
        "  all: nothing is unlocked: the release names no `groups`, and so also"
        " reads those that have not started",
        "  name those that are open:  groups: {from: 1, to: 3}",
    ]


def test_several_files_are_planned_and_what_was_not_read_is_named(folder: Path) -> None:
    Path("team").mkdir()
    Path("team/one.yaml").write_text(request(*REQUESTS[1]))
    Path("team/README.md").write_text("ours")
    Path("two.yaml").write_text(request(*REQUESTS[2]))
    made = plan("run", "team", "two.yaml")
    assert "accepted         2" in made
    assert "note: not read in team: README.md\n" in made


@pytest.mark.spec("PLAN-13")
def test_a_plan_is_committed_once(folder: Path) -> None:
    made = document("show", "plan.json")["plan"]
    done = document("commit", "plan.json", "--expires-in", "2h")
    assert (done["plan"], done["round"]) == (made, "round-3")
    assert sorted(done["releases"]) == ["other", "small"]
    assert done["ledger"]["seq"] == seq() == 10  # Two reservations, then the plan.
    assert done["expires_at"].endswith("Z")
    again = document("commit", "plan.json")  # Who is not sure may try again.
    assert (again["releases"], seq()) == (done["releases"], 10)
    (kept,) = document("show")["plans"]
    assert kept["releases"] == done["releases"]
    assert document("show", made) == {"round": None, "plans": [kept]}
    assert plan("show").endswith(f"{made}, round `round-3`: 2 releases\n")
    listed = [f"  {one}" for one in done["releases"]]
    assert plan("show", made).splitlines()[1:] == listed
    assert document("show")["round"]["plans"] == [made]
    run("release", "start", "small")
    run("ledger", "verify")


@pytest.mark.spec("PLAN-13")
def test_a_plan_of_an_earlier_entry_is_stale(folder: Path) -> None:
    Path("one.yaml").write_text(request("one", "0.001", 1, "audience: staff"))
    plan("run", "one.yaml", "--out", "one.json")
    plan("run", "one.yaml", "--solver", "fcfs", "--out", "stale.json")
    plan("commit", "one.json")
    assert mistake("commit", "stale.json", exit_code=7) == "MOD802"
    assert "error[MOD802]" in plan("commit", "stale.json", exit_code=7)


def test_one_release_and_none_are_committed_in_words(folder: Path) -> None:
    Path("one.yaml").write_text(request(*REQUESTS[1]))
    plan("run", "one.yaml", "-o", "plan.json")
    assert ": 1 release reserved until " in plan("commit", "plan.json")
    assert plan("show").endswith(": 1 release\n")
    Path("one.yaml").write_text(request(*REQUESTS[3]))
    assert "to commit it" not in plan("run", "one.yaml")
    plan("run", "one.yaml", "-o", "plan.json")
    before = seq()
    for _ in range(2):  # No entry is spent on it, however often somebody commits it.
        result = plan("commit", "plan.json")
        assert result.endswith("accepts no request: nothing was written\n")
    assert document("commit", "plan.json")["releases"] == []
    assert seq() == before


@pytest.mark.spec("PLAN-13")
def test_what_comes_in_meanwhile_makes_a_plan_stale(folder: Path) -> None:
    plan("open")
    before = seq()
    assert mistake("commit", "plan.json", exit_code=7) == "MOD802"
    assert seq() == before
    plan("run", "requests.yaml", "-o", "plan.json")
    Path("tiny.yaml").write_text(request("tiny", "0.001", 1, "audience: staff"))
    run("release", "check", "tiny.yaml")
    plan("commit", "plan.json")  # What writes nothing does no harm.


def test_approved_requests_are_planned(folder: Path) -> None:
    Path("portal.yaml").write_text(request(*REQUESTS[4]))
    who = ("--reason", "aggregates", "--actor", "olga")
    run("release", "approve", "portal.yaml", *who)
    made = document("run", "requests.yaml", "-o", "plan.json")
    assert "portal" in made["accepted"]
    assert "portal" in document("commit", "plan.json")["releases"]


# --- mistakes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--solver", "magic"), "MOD115"),
        (("--solver", "steady"), "MOD115"),
        (("--compare", "magic"), "MOD115"),
        (("--engine", "magic"), "MOD115"),
        (("--out", "ledger.db"), "MOD708"),
        (("--out", "requests.yaml"), "MOD708"),
        (("--out", "nowhere/plan.json"), "MOD001"),
        (("--out", "."), "MOD001"),
        (("--out", "x" * 5000), "MOD001"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    folder: Path, options: tuple[str, str], code: str
) -> None:
    before = {path.name: path.read_bytes() for path in folder.glob("*.*")}
    assert mistake("run", "requests.yaml", *options, exit_code=2) == code
    assert all((folder / name).read_bytes() == was for name, was in before.items())


def test_a_plan_is_written_over_an_earlier_plan_only(folder: Path) -> None:
    plan("run", "requests.yaml", "--solver", "fcfs", "-o", "plan.json")
    plan("run", "requests.yaml", "-o", "plan.json")
    assert document("show", "plan.json")["solver"] == "dpk"
    assert "is not a file; name one" in plan(
        "run", "requests.yaml", "-o", "-", exit_code=2
    )
    assert not [one.name for one in folder.iterdir() if one.name.startswith(".plan")]


@pytest.mark.parametrize(
    ("requests", "code"),
    [("nothing.yaml", "MOD001"), ("nothing", "MOD115"), ("empty", "MOD007")],
)
def test_requests_that_are_not_there(folder: Path, requests: str, code: str) -> None:
    Path("empty").mkdir()
    assert mistake("run", requests, exit_code=4) == code


@pytest.mark.parametrize(
    ("given", "exit_code"),
    [("5", 2), ("", 2), ("soon", 2), ("0s", 4), ("91d", 4)],
)
def test_lengths_of_time_that_are_none(
    folder: Path, given: str, exit_code: int
) -> None:
    before = seq()
    text = plan("commit", "plan.json", "--expires-in", given, exit_code=exit_code)
    assert ("1 second to 90 days" if exit_code == 4 else "is not a duration") in text
    assert seq() == before


@pytest.mark.spec("PLAN-12")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (('"big"', '"bag"'), "MOD803"),
        (('"utility": "4"', '"utility": "40"'), "MOD803"),
        (('"rejected"', '"accepted"'), "MOD803"),
        (('"round": "round-3"', '"round": "round-2"'), "MOD803"),
        (("rho: 0.25", "rho: 0.05"), "MOD803"),
        (('"content"', '"contents"'), "MOD102"),
        (("modicum-plan/1", "modicum-plan/2"), "MOD109"),
        (('"solver"', '"solver": "dpk", "solver"'), "MOD004"),
        (('"seq": 7', '"seq": 7.5'), "MOD106"),
        (("{", "[", 1), "MOD003"),
    ],
)
def test_a_plan_that_was_changed_is_refused(
    folder: Path, change: Any, code: str
) -> None:
    path, before = Path("plan.json"), seq()
    text = path.read_text().replace(*change)
    assert text != path.read_text()
    path.write_text(text)
    for command in (["show"], ["commit"], ["why-not", "big"]):
        result = plan(command[0], "plan.json", *command[1:], exit_code=4)
        assert f"error[{code}]" in result
        assert "plan.json:" in result
    assert seq() == before


@pytest.mark.parametrize("command", ["commit", "why-not", "show"])
def test_what_is_no_plan(folder: Path, command: str) -> None:
    more = ("big",) if command == "why-not" else ()
    assert mistake(command, "policy.yaml", *more, exit_code=4) == "MOD103"
    Path("list.json").write_text("[]")
    assert mistake(command, "list.json", *more, exit_code=4) == "MOD104"
    missing = "MOD804" if command == "show" else "MOD001"
    for name in ("nothing.json", "." if command == "show" else "requests", "x" * 5000):
        assert mistake(command, name, *more, exit_code=4) == missing


def test_a_plan_may_be_larger_than_a_text(folder: Path) -> None:
    path = Path("plan.json")
    large = path.read_text() + " " * (8 * 1024 * 1024)
    path.write_text(large)
    assert "accepted  small" in plan("show", "plan.json")
    path.write_text(large.replace('"big"', '"bag"'))
    assert mistake("commit", "plan.json", exit_code=4) == "MOD803"
    path.write_text(large + "}")
    assert mistake("commit", "plan.json", exit_code=4) == "MOD003"


@pytest.mark.parametrize(
    "command",
    [
        ("open",),
        ("run", "requests.yaml"),
        ("show",),
        ("show", "plan-000000000000"),
        ("commit", "plan.json"),
        ("remainder",),
    ],
)
def test_without_a_ledger_nothing_is_planned(
    folder: Path, command: tuple[str, ...]
) -> None:
    there = sorted(folder.iterdir())
    assert mistake(*command, "--ledger", "no.db", exit_code=2) == "MOD701"
    assert sorted(folder.iterdir()) == there
    # A file is shown, and says why not, without any ledger.
    assert plan("show", "plan.json", "--ledger", "no.db")


def test_nothing_that_a_terminal_obeys_is_printed(folder: Path) -> None:
    """A plan that somebody wrote themselves, with a digest that is right."""
    from dataclasses import replace

    from modicum.cli.plan_files import read_plan_file, write_plan_file

    evil = "\x1b[2J\u202e[red]evil\naccepted  big"
    made = read_plan_file(Path("plan.json"))
    asked = tuple(
        replace(one, why=(evil,)) if one.why else replace(one, text=evil)
        for one in made.outcomes
    )
    path = Path("plan.json")
    write_plan_file(path, replace(made, solver="\u202e[red]", outcomes=asked))
    commands = (("show", "plan.json"), ("why-not", "plan.json", "big"))
    for command in (*commands, ("commit", "plan.json")):
        for form in ((), ("--json",)):
            result = CliRunner().invoke(app, ["plan", *command, *form])
            assert result.exit_code in (0, 4)
            assert "\naccepted  big" not in result.output
            assert all(one.isprintable() for one in result.output.split("\n"))


# --- documents ------------------------------------------------------------------------


def described(page: str, section: str) -> dict[str, str]:
    """Return the keys that a section of the reference describes, with their types."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    part = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", part, re.MULTILINE))


def keys(value: object, known: dict[str, str], path: str = "") -> Iterator[str]:
    """Yield the paths of a document; what is described elsewhere is one path."""
    if known.get(path, "").startswith("a "):
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            below = f"{path}.*" if f"{path}.*" in known else f"{path}.{key}"
            yield below.removeprefix(".")
            yield from keys(inner, known, below.removeprefix("."))
    elif isinstance(value, list):
        for item in value:
            yield from keys(item, known, f"{path}[]")


def test_every_key_that_is_printed_is_described(folder: Path) -> None:
    plan_keys = described("plan-format.md", "The document")
    assert set(keys(document("show", "plan.json"), plan_keys)) == set(plan_keys)
    cases = (
        ("Why a request is not planned", ("why-not", "plan.json", "big")),
        ("A plan that was committed", ("commit", "plan.json")),
        ("Rounds and plans", ("show",)),
        ("A round", ("open", "--unlock", "patient=1")),
        ("What groups left over", ("remainder",)),
    )
    compared = document("run", "requests.yaml", "--compare", "fcfs")
    known = described("json.md", "A plan") | plan_keys
    assert set(keys(compared, known)) == set(known)
    for section, command in cases:
        check_described(section, [document(*command)])


def test_a_plan_that_accepts_nothing_says_why_and_asks_for_no_reservation(
    folder: Path,
) -> None:
    asked = (
        ("huge", "3", 5, "audience: staff"),
        ("huger", "4", 4, "audience: staff"),
        ("portal", "0.001", 1, "audience: public\nrequester: ann"),
    )
    Path("requests.yaml").write_text("---\n".join(request(*one) for one in asked))
    for out in (("-o", "none.json"), ()):
        result = plan("run", "requests.yaml", *out)
        assert "no request was accepted" in result
        most = "2 of 3: it does not fit, even if no other request is accepted"
        assert most in result
        assert "all (group 1 to 3): rho 3 in total, limit 0.4667" in result
        assert "reserve it" not in result
        assert "plan commit" not in result
        assert "to commit it" not in result
        assert "modicum plan show" in result
    assert Path("none.json").exists()
