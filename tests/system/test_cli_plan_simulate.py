"""`modicum plan simulate` and `compare`: documents, tables, pictures, mistakes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from modicum.cli.main import app
from modicum.cli.plan_simulation_text import bounds_of
from modicum.cli.progress import rounds_drawn
from modicum.ops import simulation as shell
from modicum.ops.files.workloads import write_workload
from modicum.planner.allocation.numba_kernel import NumbaEngine
from modicum.planner.allocation.optimum import Optimum
from modicum.planner.simulation.setting import Setting
from modicum.planner.simulation.simulation import Run, simulate
from modicum.workloads.cohere import Recipe
from modicum.workloads.registry import generated

RUNNER = CliRunner()
SIZES = ["mouse", "hare", "elephant"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of some requests of w4 in three rounds, few enough to be quick."""
    whole = generated("w4", Recipe(rounds=3, seed=3))
    kept = np.arange(0, len(whole.requests), 8)
    path = tmp_path_factory.mktemp("requests") / "some.json"
    write_workload(replace(whole, requests=whole.requests.chosen(kept)), path)
    return path


def invoke(command: str, *args: object, exit_code: int = 0) -> Any:
    command_line = ["plan", command, *map(str, args)]
    result = RUNNER.invoke(app, command_line, catch_exceptions=False)
    assert result.exit_code == exit_code, result.output
    return result


def simulated(*args: object, exit_code: int = 0) -> Any:
    options = ("--workload", *args, "--json")
    return json.loads(invoke("simulate", *options, exit_code=exit_code).stdout)


def compared(*args: object) -> Any:
    options = ("--workload", *args, "--json")
    return json.loads(invoke("compare", *options).stdout)


def plain(file: Path, setting: Setting | None = None) -> Run:
    from modicum.ops.files.workloads import read_workload

    return simulate(read_workload(file), setting or Setting(), NumbaEngine)


# --- one workload ---------------------------------------------------------------------


def test_the_document_says_what_the_run_says(file: Path) -> None:
    found, run = simulated(file), plain(file)
    total = run.total()
    assert 0 < found["utility_fraction"] < 1
    assert found["utility_fraction"] == float(total.utility_fraction)
    assert found["requests_fraction"] == float(total.requests_fraction)
    assert (found["requested"], found["accepted"]) == (total.requested, total.accepted)
    assert list(found["by_size"]) == SIZES
    for size, count in run.by_size().items():
        assert found["by_size"][size]["accepted"] == count.accepted
        assert found["by_size"][size]["utility"] == count.utility
    assert [one["round"] for one in found["by_round"]] == [11, 12, 13]
    for parts in (found["by_size"].values(), found["by_round"]):
        for key in ("requested", "accepted", "utility_requested", "utility"):
            assert sum(one[key] for one in parts) == found[key]
        for one in parts:
            assert one["utility_fraction"] == one["utility"] / one["utility_requested"]
            assert one["requests_fraction"] == one["accepted"] / one["requested"]
    assert found["compared"] == []
    assert found["engine"] == "numba"
    assert set(found["versions"]) == {"modicum", "numba", "numpy", "python"}
    assert (found["workload"]["name"], found["workload"]["seed"]) == ("w4", 3)


def test_the_usual_setting_is_the_published_one(file: Path) -> None:
    assert simulated(file)["setting"] == {
        "solver": "dpk",
        "budget": "{eps: 3, delta: 1e-7}",
        "eps": 3,
        "delta": 1e-7,
        "filter": "as-published",
        "conversion": "as-published",
        "slack": 0.4,
        "active": 12,
        "attempts": 1,
        "partitioning": True,
        "subsampling": True,
        "upc": False,
    }


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ("--solver fcfs", {"solver": "fcfs"}),
        ("--no-partitioning", {"partitioning": False}),
        ("--no-subsampling", {"subsampling": False}),
        ("--upc", {"upc": True, "partitioning": False, "subsampling": False}),
        ("--slack 0.25 --active 6", {"slack": 0.25, "active": 6}),
        ("--slack at-once", {"slack": "at-once"}),
        ("--conversion tight", {"conversion": "tight", "filter": "renyi-v1"}),
        ("--conversion tight --filter zcdp-v1", {"filter": "zcdp-v1"}),
        ("--filter combined-v2", {"filter": "combined-v2"}),
        ("--eps 1.5 --delta 1e-9", {"eps": 1.5, "delta": 1e-9}),
        ("--attempts 3", {"attempts": 3}),
    ],
)
def test_every_option_is_heard(
    options: str, changed: dict[str, object], file: Path
) -> None:
    found, usual = simulated(file, *options.split()), simulated(file)
    for key, value in changed.items():
        assert found["setting"][key] == value
    assert found["setting"] != usual["setting"]
    outcome = [one["accepted"] for one in found["by_round"]]
    assert outcome != [one["accepted"] for one in usual["by_round"]]


def test_what_the_workload_is_drawn_from() -> None:
    options = ("w1", "--rounds", 1, "--solver", "fcfs", "--no-partitioning")
    first = simulated(*options)
    assert first["workload"]["seed"] == 0
    assert first["workload"] == simulated(*options, "--seed", 0)["workload"]
    other = simulated(*options, "--seed", 7)
    assert other["workload"]["seed"] == 7
    assert other["workload"]["utility"] != first["workload"]["utility"]
    each = simulated("GM", *options[1:], "--objective", "requests")
    assert each["workload"]["objective"] == "requests"
    assert each["utility_fraction"] == each["requests_fraction"] > 0


def test_the_same_again_is_the_same(file: Path) -> None:
    first, second = (simulated(file, "--upc") for _ in range(2))
    for one in (first, second):
        del one["timings"]
    assert first == second


def test_the_first_rounds_of_a_file(file: Path) -> None:
    found, whole = simulated(file, "--rounds", 2), simulated(file)
    assert found["workload"]["rounds"] == 2
    assert found["by_round"] == whole["by_round"][:2]


def test_what_is_known_of_the_best_choice_is_told(file: Path) -> None:
    found = simulated(file, "--solver", "ilp", "--rounds", 2, "--compare", "dpk")
    assert found["compared"][0]["bounds"] is None
    bounds = found["bounds"]
    assert bounds["rounds"] == 2
    assert 0 <= bounds["proven"] <= 2
    assert bounds["largest_gap"] >= 0
    first = found["by_round"][0]["utility"]
    assert first >= found["compared"][0]["by_round"][0]["utility"]
    options = ("--rounds", 1, "--solvers", "dpk,ilp")
    shown = invoke("compare", "--workload", file, *options).stdout
    assert re.search(
        r"^ilp: the best choice is proven in [01] of 1 round;", shown, re.M
    )
    assert "dpk: the best" not in shown
    assert compared(file, *options)["solvers"][1]["bounds"]["rounds"] == 1


def test_a_choice_that_is_not_proven_is_not_called_best() -> None:
    def told(weight: int, bound: int, proven: bool) -> Any:
        nobody = np.zeros(0, np.bool_)
        return Optimum(nobody, weight, bound, proven=proven, held=True, seconds=1)

    workload = generated("w1", Recipe(rounds=2))
    nothing = np.full(len(workload.requests), -1)
    optima = (told(100, 100, True), told(50, 60, False))
    run = Run(workload, Setting(solver="ilp"), nothing, optima)
    bounds = bounds_of([shell.Timed(run, None, {}), shell.Timed(run, None, {})])
    assert bounds == {"rounds": 4, "proven": 2, "largest_gap": 0.2}


def test_times(file: Path) -> None:
    steps = {"problem", "allocate", "spend"}
    found = simulated(file)["timings"]
    assert set(found) == steps | {"total", "warm_up"}
    assert found["warm_up"]["wall"] > 0
    for key in ("cpu", "wall"):
        added = sum(found[step][key] for step in steps)
        assert found["total"][key] == pytest.approx(added, abs=1e-5)
    by_round = simulated(file, "--round-times")["timings"]
    assert [one["round"] for one in by_round["rounds"]] == [11, 12, 13]
    for step in steps:
        added = sum(one[step]["wall"] for one in by_round["rounds"])
        assert by_round[step]["wall"] == pytest.approx(added, abs=1e-5)


def test_others_beside_it(file: Path) -> None:
    found = simulated(file, "--compare", "fcfs,dpf-weighted")
    assert [one["solver"] for one in found["compared"]] == ["fcfs", "dpf-weighted"]
    alone = simulated(file, "--solver", "fcfs")
    for key in ("accepted", "utility", "by_size", "by_round"):
        assert found["compared"][0][key] == alone[key]
    shown = invoke("simulate", "--workload", file, "--compare", "fcfs").stdout
    (row,) = (line.split() for line in shown.splitlines() if line.startswith("fcfs"))
    ratio = alone["utility_fraction"] / found["utility_fraction"]
    assert row[1:4] == [
        f"{alone['utility_fraction']:.2%}",
        f"{ratio:.2f}",
        f"{alone['requests_fraction']:.2%}",
    ]


def test_the_baseline_goes_with_what_it_does_not_have(file: Path) -> None:
    """Only the contrary is refused: it would not be heard."""
    plain_ = simulated(file, "--upc")
    said = simulated(file, "--upc", "--no-partitioning", "--no-subsampling")
    assert said["setting"] == plain_["setting"]
    assert said["by_size"] == plain_["by_size"]


def test_words_for_people(file: Path) -> None:
    result = invoke("simulate", "--workload", file)
    found, shown = simulated(file), result.stdout
    requests = f"{found['requested']} requests of w4 in 3 rounds (11 to 13)"
    assert shown.startswith(requests)
    assert "{eps: 3, delta: 1e-7} by filter as-published" in shown
    assert "12 groups active, slack 0.4; solver dpk" in shown
    rows = {line.split()[0]: line.split() for line in shown.splitlines() if line}
    for size in SIZES:
        one = found["by_size"][size]
        assert rows[size][1:3] == [str(one["requested"]), str(one["accepted"])]
    assert rows["all"][3:] == [
        f"{found['requests_fraction']:.2%}",
        f"{found['utility_fraction']:.2%}",
    ]
    assert "of CPU (problem" in shown
    assert "with numba; before that, " in shown
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--no-partitioning --no-subsampling", "without partitioning and subsampling"),
        ("--no-subsampling", "; without subsampling;"),
        ("--upc", "blocks of users (user-parallel composition)"),
        ("--slack at-once --attempts 2", "unlocked at once, 2 attempts"),
        ("--active 1", "1 group active"),
    ],
)
def test_words_say_what_is_unusual(options: str, said: str, file: Path) -> None:
    args = ("--workload", file, *options.split())
    assert said in invoke("simulate", *args).stdout


def test_without_numba_a_remark_says_how_to_be_faster(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "numba_engine", lambda: None)
    options = ("--solver", "fcfs", "--json")
    result = invoke("simulate", "--workload", file, *options)
    assert "modicum[fast]" in result.stderr
    found = json.loads(result.stdout)
    assert found["engine"] == "numpy"
    assert found["timings"]["warm_up"] is None
    assert set(found["versions"]) == {"modicum", "numpy", "python"}
    shown = invoke("simulate", "--workload", file, "--solver", "fcfs").stdout
    assert shown.endswith("with numpy\n")


def test_both_engines_say_the_same(file: Path) -> None:
    found = [
        json.loads(
            invoke("simulate", "--workload", file, "--engine", one, "--json").stdout
        )
        for one in ("auto", "numba", "numpy")
    ]
    assert [one.pop("engine") for one in found] == ["numba", "numba", "numpy"]
    assert found[0]["timings"]["warm_up"]["wall"] > 0
    for one in found:
        del one["timings"], one["versions"]
    assert found[0] == found[1] == found[2]


def test_labels_are_not_looked_at_and_that_is_said() -> None:
    result = invoke("simulate", "--workload", "s1", "--rounds", 1)
    assert "labels of requests are ignored" in result.stderr


# --- several seeds --------------------------------------------------------------------

QUICK = ("w1", "--rounds", 2, "--no-partitioning")


def test_means_over_seeds() -> None:
    found = compared(*QUICK, "--solvers", "fcfs,dpk", "--seed", 4, "--seeds", 2)
    assert found["workload"]["seeds"] == [4, 5]
    assert "solver" not in found["setting"]
    assert [one["solver"] for one in found["solvers"]] == ["fcfs", "dpk"]
    means = []
    for one in found["solvers"]:
        figures = one["utility_fraction"]
        each = [
            simulated(*QUICK, "--solver", one["solver"], "--seed", seed)
            for seed in (4, 5)
        ]
        assert figures["each"] == [run["utility_fraction"] for run in each]
        assert figures["mean"] == pytest.approx(mean(figures["each"]))
        assert figures["std"] == pytest.approx(stdev(figures["each"]))
        hares = [run["by_size"]["hare"]["requests_fraction"] for run in each]
        assert one["by_size"]["hare"]["requests_fraction"] == {
            "mean": pytest.approx(mean(hares)),
            "std": pytest.approx(stdev(hares)),
        }
        means.append(figures["mean"])
    ratios = [one["utility_fraction"]["ratio"] for one in found["solvers"]]
    assert ratios == [1, pytest.approx(means[1] / means[0])]


def test_three_seeds_if_nothing_is_said_and_one_for_a_file(file: Path) -> None:
    found = compared(*QUICK, "--solvers", "fcfs")
    assert found["workload"]["seeds"] == [0, 1, 2]
    assert len(found["solvers"][0]["utility_fraction"]["each"]) == 3
    of_file = compared(file)
    assert of_file["workload"]["seeds"] == [3]
    assert [one["solver"] for one in of_file["solvers"]] == [
        "fcfs",
        "dpf-weighted-remaining",
        "dpk",
        "steady",
    ]
    assert {one["utility_fraction"]["std"] for one in of_file["solvers"]} == {None}


def test_a_table_of_solvers(file: Path) -> None:
    options = ("--workload", *QUICK, "--solvers", "fcfs,dpk")
    shown = invoke("compare", *options).stdout
    assert shown.startswith("w1 in 2 rounds, seeds 0 to 2\n")
    found = compared(*QUICK, "--solvers", "fcfs,dpk")["solvers"][1]
    (row,) = (line.split() for line in shown.splitlines() if line.startswith("dpk"))
    utility = found["utility_fraction"]
    assert row[1:5] == [
        f"{utility['mean']:.2%}",
        "±",
        f"{utility['std']:.2%}",
        f"{utility['ratio']:.2f}",
    ]
    assert "Ratios are to fcfs" in shown
    one = invoke("compare", "--workload", file).stdout
    assert "seed 3\n" in one
    assert "±" not in one


def test_a_ratio_to_nothing_is_none(file: Path) -> None:
    nothing = ("--eps", "1e-9", "--filter", "basic-v1", "--solvers", "fcfs,dpk")
    found = compared(file, *nothing)
    assert {one["utility_fraction"]["ratio"] for one in found["solvers"]} == {None}
    args = ("--workload", file, *nothing)
    assert "fcfs         0.00%      -" in invoke("compare", *args).stdout


# --- pictures -------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_pictures(command: str, file: Path, tmp_path: Path) -> None:
    names = ["rounds.svg", "sizes.svg", *(["left.svg"] * (command == "simulate"))]
    options = ("--plot", "--plot-sizes", "--plot-budget")
    files = [tmp_path / name for name in names]
    args: list[object] = ["--workload", file]
    for option, picture in zip(options, files, strict=False):
        args += [option, picture]
    result = invoke(command, *args)
    for picture in files:
        assert f"drawn: {picture}" in result.stderr
        assert picture.read_bytes().startswith(b"<svg ")
    drawn = files[0].read_text()
    assert "Utility by round" in drawn
    assert ">dpk<" in drawn
    if command == "simulate":
        left = files[2].read_text()
        assert "Budget left" in left
        assert ">0 to 4265<" in left


def test_a_picture_of_blocks_and_of_several_solvers(file: Path, tmp_path: Path) -> None:
    rounds, left = tmp_path / "rounds.svg", tmp_path / "left.svg"
    options = ("--plot", rounds, "--plot-budget", left, "--compare", "fcfs")
    simulated(file, "--upc", *options)
    assert ">block " in left.read_text()
    assert ">fcfs<" in rounds.read_text()


# --- progress -------------------------------------------------------------------------


def test_progress_is_drawn_on_terminals_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for terminal, quiet in ((False, False), (True, True), (True, False)):
        monkeypatch.setattr(sys.stderr, "isatty", lambda seen=terminal: seen)
        with rounds_drawn(40, quiet=quiet) as told:
            told("compiling", 0)
            told("dpk", 17)
        drawn = capsys.readouterr()
        assert drawn.out == ""
        shown = terminal and not quiet
        assert ("17/40" in drawn.err) == shown
        assert ("dpk" in drawn.err) == shown
        assert bool(drawn.err) == shown


# --- mistakes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "exit_code", "said"),
    [
        ("--workload w5", 2, "MOD115"),
        ("--workload requests.csv", 2, "ends in .json or .parquet"),
        ("--workload gone.json", 4, "MOD001"),
        ("--workload empty.json", 4, "no requests"),
        ("--workload later.json", 4, "MOD109"),
        ("--workload worth.json", 4, "utility of a request is so large"),
        ("--workload w4 --solver dkp", 2, 'did you mean "dpk"?'),
        ("--workload w4 --compare fcsf", 2, 'did you mean "fcfs"?'),
        ("--workload w4 --filter combned-v2", 2, 'did you mean "combined-v2"?'),
        ("--workload w4 --conversion tihgt", 2, 'did you mean "tight"?'),
        ("--workload w4 --engine nunba", 2, 'did you mean "numba"?'),
        ("--workload w4 --objective request", 2, 'did you mean "requests"?'),
        ("--workload w4 --slack 1.5", 2, "MOD106"),
        ("--workload w4 --slack -0.1", 2, "MOD106"),
        ("--workload w4 --active 0", 2, "MOD106"),
        ("--workload w4 --attempts 0", 2, "MOD106"),
        ("--workload w4 --eps 30", 4, "as-published is not proven"),
        ("--workload w4 --eps 1e9 --filter basic-v1", 4, "budget is so large"),
        ("--workload w4 --slack some", 2, "`some` is not a number"),
        ("--workload w4 --eps 0", 2, "--eps"),
        ("--workload w4 --delta 0", 2, "--delta"),
        ("--workload w4 --delta 1", 2, "--delta"),
        ("--workload w4 --rounds 0", 2, "--rounds"),
        ("--workload w4 --seed -1", 2, "--seed"),
        ("--workload w4 --compare fcfs,dpk", 2, "is already the solver"),
        (
            "--workload w4 --upc --partitioning",
            2,
            "--partitioning cannot be combined with",
        ),
        (
            "--workload w4 --subsampling --upc",
            2,
            "--subsampling cannot be combined with",
        ),
        ("--workload w4 --round-times", 2, "add --json"),
        ("--workload w4 --compare fcfs,fcfs", 2, "twice"),
        ("--workload w4 --plot x.png", 2, "MOD115"),
        ("--workload some.json --seed 1", 2, "--seed cannot be combined with a file"),
        (
            "--workload some.json --objective requests",
            2,
            "--objective cannot be combined",
        ),
        ("--workload some.json --rounds 4", 2, "the file has 3 rounds"),
        ("--workload some.json --plot no/x.svg", 2, "MOD001"),
        ("", 2, "--workload"),
    ],
)
def test_mistakes(
    options: str,
    exit_code: int,
    said: str,
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    text = file.read_text()
    (tmp_path / "some.json").write_text(text)
    for name, changed in damaged(text).items():
        (tmp_path / name).write_text(changed)
    before = sorted(tmp_path.iterdir())
    shown = invoke("simulate", *options.split(), exit_code=exit_code).output
    assert said in " ".join(shown.replace("│", " ").split())
    assert sorted(tmp_path.iterdir()) == before


def damaged(text: str) -> dict[str, str]:
    """Return files that are no workloads to plan, by name."""
    empty, worth = json.loads(text), json.loads(text)
    empty["requests"] = {key: [] for key in empty["requests"]}
    worth["requests"]["utility"][0] = 2**60
    return {
        "empty.json": json.dumps(empty),
        "worth.json": json.dumps(worth),
        "later.json": text.replace("workload/v1", "workload/v9"),
    }


@pytest.mark.parametrize(
    ("options", "exit_code", "said"),
    [
        ("--workload w4 --solvers fcfs,dkp", 2, 'did you mean "dpk"?'),
        ("--workload w4 --solvers fcfs,fcfs", 2, "twice"),
        ("--workload w4 --seeds 0", 2, "--seeds"),
        ("--workload FILE --seeds 2", 2, "--seeds"),
        ("--workload w4 --solvers " + ",".join(map(str, range(13))), 2, "13 solvers"),
        ("--workload w9", 2, "MOD115"),
        ("--workload w4 --upc --partitioning", 2, "--partitioning cannot be combined"),
    ],
)
def test_mistakes_of_comparing(
    options: str, exit_code: int, said: str, file: Path
) -> None:
    args = options.replace("FILE", str(file)).split()
    shown = invoke("compare", *args, exit_code=exit_code).output
    assert said in " ".join(shown.replace("│", " ").split())


def test_a_mistake_as_a_document() -> None:
    found = simulated("w4", "--slack", "2", exit_code=2)
    assert found["error"]["code"] == "MOD106"
    found = simulated("w4", "--solver", "dkp", exit_code=2)
    assert found["error"]["label"] == 'did you mean "dpk"?'


def test_what_is_heavy_is_loaded_only_to_be_used(file: Path) -> None:
    script = (
        "import sys\n"
        "from modicum.cli.main import app\n"
        "early = {'numpy', 'rich.progress'} & set(sys.modules)\n"
        "words = ['plan', 'simulate', '--engine', 'numpy', '--solver', 'fcfs',"
        " '--json', '--workload']\n"
        "app([*words, sys.argv[1]], standalone_mode=False)\n"
        "heavy = {'scipy', 'numba', 'pyarrow'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {early | heavy}' if early | heavy else 0)\n"
    )
    subprocess.run(
        [sys.executable, "-c", script, str(file)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
