"""`modicum account batch`: figures, exit codes, documents, and mistakes with places."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from modicum.cli.account_composition import batch

RUNNER = CliRunner()
APP = typer.Typer()
APP.command()(batch)

BATCH = """
format: batch/v1
delta: 1e-6
mechanisms:
  - {kind: laplace, scale: 10, times: 3}
  - {kind: gaussian, sigma: 8, times: 4}
  - {kind: laplace, scale: 10, sensitivity: 1}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "batch.yaml").write_text(BATCH)
    return tmp_path


def run(*args: str, exit_code: int = 0) -> str:
    result = RUNNER.invoke(APP, args)
    assert result.exit_code == exit_code, (result.output, result.exception)
    return str(result.stdout)


def document(*args: str, exit_code: int = 0) -> Any:
    return json.loads(run(*args, "--json", exit_code=exit_code))


def figures(found: Any) -> dict[str, Any]:
    return {one["figure"]: one["epsilon"] for one in found["figures"]}


@pytest.mark.usefixtures("folder")
def test_the_figures() -> None:
    found = document("batch.yaml")
    assert found["runs"] == 8
    assert found["delta"] == 1e-6
    assert [one["times"] for one in found["mechanisms"]] == [4, 4]
    assert found["mechanisms"][0]["parameters"] == {"scale": 10, "sensitivity": 1}
    eps = figures(found)
    assert list(eps) == ["adaptive", "fixed", "pld", "pld-charged"]
    assert 1 < eps["pld"] < eps["fixed"] < eps["adaptive"]
    assert all(one["condition"] and one["method"] for one in found["figures"])
    assert found["notes"] == []


@pytest.mark.usefixtures("folder")
def test_words_for_people() -> None:
    shown = run("batch.yaml")
    assert shown.startswith("8 runs of 2 mechanisms, at delta 1e-6\n")
    for name in ("adaptive", "fixed", "pld", "pld-charged"):
        assert f"\n  {name}: " in shown


@pytest.mark.usefixtures("folder")
def test_a_given_delta_comes_first() -> None:
    found, other = document("batch.yaml"), document("batch.yaml", "--delta", "1e-8")
    assert other["delta"] == 1e-8
    for name, eps in figures(other).items():
        assert eps > figures(found)[name]


def test_a_batch_of_one_is_the_mechanism(folder: Path) -> None:
    text = "format: batch/v1\nmechanisms:\n  - {kind: pure, eps: 0.5}\n"
    (folder / "one.yaml").write_text(text)
    eps = figures(document("one.yaml", "--delta", "1e-9"))
    assert eps["adaptive"] == 0.5
    assert 0.4999 < eps["fixed"] <= 0.5
    assert 0.5 <= eps["pld"] < 0.501


def test_neighbors_of_two_kinds_are_remarked(folder: Path) -> None:
    text = BATCH + "  - {kind: randomized-response, truth: 0.75}\n"
    (folder / "two.yaml").write_text(text)
    assert document("two.yaml")["notes"] == []
    text += "  - {kind: dp-sgd, noise-multiplier: 2, sampling-rate: 0.1, steps: 1}\n"
    (folder / "two.yaml").write_text(text)
    (remark,) = document("two.yaml")["notes"]
    assert "one neighboring relation must hold for all" in remark


def test_without_a_distribution_the_other_figures_stand(folder: Path) -> None:
    text = BATCH + "  - {kind: zcdp, rho: 0.01}\n"
    (folder / "rho.yaml").write_text(text)
    found = document("rho.yaml")
    eps = figures(found)
    assert eps["pld"] is None
    assert eps["pld-charged"] is None
    assert eps["fixed"] <= eps["adaptive"]
    assert "no privacy loss distribution" in found["figures"][2]["method"]


@pytest.mark.usefixtures("folder")
def test_without_the_library_there_is_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    from modicum.integrations.pld import batch as pld
    from modicum.integrations.pld import mechanisms

    pld.batch_loss.cache_clear()
    mechanisms.loss_of.cache_clear()
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    found = document("batch.yaml")
    assert figures(found)["pld"] is None
    assert "pip install 'modicum[pld]'" in found["figures"][2]["method"]
    assert "pip install 'modicum[pld]'" in run("batch.yaml")


@pytest.mark.parametrize(
    ("before", "after", "code", "line", "column"),
    [
        ("batch/v1", "batch/v2", "MOD109", 2, 9),
        ("kind: laplace, scale: 10, times", "kind: laplas, times", "MOD118", 5, 12),
        ("scale: 10, times: 3", "scale: 0, times: 3", "MOD106", 5, 21),
        ("scale: 10, times: 3", "times: 3", "MOD103", 5, 5),
        ("scale: 10, times: 3", "scale: ten", "MOD105", 5, 28),
        ("scale: 10, times: 3", 'scale: "10"', "MOD105", 5, 28),
        ("scale: 10, times: 3", "scale: .nan", "MOD106", 5, 28),
        ("sigma: 8, times: 4", "sigma: 8, time: 4", "MOD102", 6, 32),
        ("times: 3", "times: 0", "MOD106", 5, 39),
        ("times: 3", "times: 1.5", "MOD106", 5, 39),
        ("times: 3", "times: 1e10", "MOD106", 5, 39),
        ("delta: 1e-6", "delta: 1", "MOD106", 3, 8),
        ("delta: 1e-6", "deltas: 1e-6", "MOD102", 3, 1),
        ("mechanisms:\n", "mechanisms: []\nother:\n", "MOD102", 5, 1),
    ],
)
def test_mistakes_have_places(
    folder: Path, before: str, after: str, code: str, line: int, column: int
) -> None:
    assert before in BATCH
    (folder / "wrong.yaml").write_text(BATCH.replace(before, after))
    error = document("wrong.yaml", exit_code=4)["error"]
    assert (error["code"], error["line"], error["column"]) == (code, line, column)
    assert error["file"] == "wrong.yaml"
    shown = RUNNER.invoke(APP, ["wrong.yaml"])
    assert shown.stderr.startswith(f"error[{code}]")


def test_every_mistake_is_reported_at_once(folder: Path) -> None:
    text = BATCH.replace("scale: 10, times: 3", "scale: -1").replace("1e-6", "7")
    (folder / "wrong.yaml").write_text(text)
    found = document("wrong.yaml", exit_code=4)["problems"]
    assert [problem["line"] for problem in found] == [3, 5]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- 1\n",
        "format: batch/v1\n",
        "format: batch/v1\nmechanisms: []\n",
        "format: batch/v1\nmechanisms: 3\n",
        "format: batch/v1\nmechanisms: [laplace]\n",
        "format: batch/v1\nmechanisms: [{kind: 3}]\n",
        "format: batch/v1\nmechanisms:\n  - {kind: pure, eps: 1, times: 1e9}\n"
        "  - {kind: pure, eps: 1}\n",
    ],
)
def test_what_is_no_batch_is_refused(folder: Path, text: str) -> None:
    (folder / "wrong.yaml").write_text(text)
    assert document("wrong.yaml", "--delta", "1e-6", exit_code=4)["error"]["code"]


def test_usage(folder: Path) -> None:
    (folder / "open.yaml").write_text(BATCH.replace("delta: 1e-6\n", ""))
    run("open.yaml", exit_code=2)
    run("batch.yaml", "--delta", "2", exit_code=2)
    run("batch.yaml", "--delta", "0", exit_code=2)
    run("batch.yaml", "--delta", "much", exit_code=2)
    run("nothing.yaml", exit_code=4)
