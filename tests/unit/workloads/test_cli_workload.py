"""`modicum workload`: the files and the words of the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from modicum.cli.main import app
from modicum.ops.files.workloads import read_workload
from modicum.workloads.cohere import Recipe
from modicum.workloads.document import to_plain
from modicum.workloads.registry import generated


def run(*args: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["workload", *map(str, args)])
    return result.exit_code, result.output


def document(*args: object) -> dict[str, Any]:
    code, output = run(*args, "--json")
    assert code == 0, output
    found: dict[str, Any] = json.loads(output)
    return found


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_generate_writes_what_python_generates(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"w.{suffix}"
    options = ["--rounds", 3, "--seed", 7, "--repetition", 2, "--sampling", "0.45"]
    code, output = run(
        "generate", "ALL", *options, "--objective", "requests", "--out", file
    )
    assert code == 0, output
    assert "rounds (11 to 13), seed 7, repetition 2" in output
    recipe = Recipe(7, 2, 3, "requests", (Fraction("0.45"),))
    expected = generated("w4", recipe)
    assert to_plain(read_workload(file)) == to_plain(expected)
    assert f"{len(expected.requests)} requests of w4 in 3" in output


def test_generate_names_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = document("generate", "gm", "--rounds", 1)
    assert found["file"] == "w1.json"
    assert found["sampling"] == [0.25, 1]
    assert found["requests"] == len(read_workload("w1.json").requests)
    document("generate", "s3", "--sampling", "0.25", "--sampling", "1")
    assert read_workload("s3.json").rounds == 20


def test_describe_adds_up(tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    run("generate", "w2", "--rounds", 2, "--out", file)
    found = document("describe", file, "--pricing", "as-published")
    assert found["name"] == "w2"
    assert found["pricing"] == "as-published"
    for parts in (found["mechanisms"], found["sizes"]):
        assert sum(part["requests"] for part in parts.values()) == found["requests"]
        assert sum(part["utility"] for part in parts.values()) == found["utility"]
        shares = [part["utility_fraction"] for part in parts.values()]
        assert sum(shares) == pytest.approx(1)
    assert sum(found["by_round"].values()) == found["requests"]
    assert list(found["by_round"]) == ["11", "12"]
    types = {(t["mechanism"], t["size"], t["sampling"]): t for t in found["types"]}
    assert len(types) == 24
    whole = types["gaussian", "elephant", 1]
    assert whole["cost"]["rdp(16)"] == pytest.approx(0.152816, rel=1e-5)
    assert whole["cost"]["eps"] == "inf"
    assert whole["eps"] == 0.75
    tight = document("describe", file)
    costs = {t["mechanism"]: t["cost"] for t in tight["types"] if t["sampling"] == 1}
    assert costs["laplace"]["eps"] == pytest.approx(0.25, rel=1e-6)


def test_describe_shows_a_workload_by_its_name() -> None:
    code, output = run("describe", "w3")
    assert code == 0
    for words in ("dp-sgd", "pate", "elephant", "requests a round", "rdp(16)"):
        assert words in output
    assert "laplace" not in output


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["generate", "w9"], 2, "MOD115"),
        (["generate", "w1", "--objective", "profit"], 2, "MOD115"),
        (["generate", "w1", "--sampling", "2"], 2, "MOD106"),
        (["generate", "w1", "--sampling", "x"], 2, "not a number"),
        (["generate", "w1", "--rounds", "0"], 2, "--rounds"),
        (["generate", "w1", "--out", "w1.csv"], 2, "MOD115"),
        (["generate", "w1", "--rounds", "1", "--out", "no/w.json"], 2, "MOD001"),
        (["generate", "w1", "--rounds", "10001"], 2, "MOD106"),
        (["describe", "nowhere.json"], 4, "MOD001"),
        (["describe", "w9"], 2, "MOD115"),
        (["describe", "w1", "--pricing", "cheap"], 2, "MOD115"),
    ],
)
def test_a_mistake_is_said_and_writes_nothing(
    args: list[str],
    code: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    left, output = run(*args)
    assert left == code, output
    assert words in output
    assert not list(tmp_path.iterdir())


def test_other_commands_do_not_load_what_only_workloads_need() -> None:
    script = (
        "import sys\n"
        "sys.argv = ['modicum', 'workload', '--help']\n"
        "from modicum.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "loaded = {'numpy', 'pyarrow', 'modicum.workloads.cohere'} & set(sys.modules)\n"
        "print('loaded:', sorted(loaded), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "loaded: []" in done.stderr
