"""Workloads as requests for a round: files that a planner takes under a policy."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from modicum.cli.main import app
from modicum.core.document import from_python
from modicum.core.errors import Code, InputError
from modicum.core.yaml_reader import read_document
from modicum.ledger.log.recorded_release import record_release
from modicum.ops.files.documents import load_policy
from modicum.ops.files.requests import load
from modicum.policy import CompiledPolicy
from modicum.policy.compiler import compile_text
from modicum.release import parse_release, price
from modicum.workloads.cohere import Recipe
from modicum.workloads.model import Workload
from modicum.workloads.registry import generated
from modicum.workloads.releases import batch_of, release_of

ROOT = Path(__file__).parents[3]
RING = b"""
modicum: policy/v1
name: ring
units: {user: {id: user_id}}
schema: {attributes: {a0: low}}
population:
  partition_by: {place: {range: [0, 204799], immutable: [user]}}
policies:
  - {name: total, when: "true", unit: user, budget: {eps: 3, delta: 1e-7}}
"""


@cache
def workload_of(name: str) -> Workload:
    return generated(name, Recipe(rounds=2, seed=3))


def policy_of(name: str) -> CompiledPolicy:
    if name.startswith("w"):
        return compile_text(RING, "ring.yaml")
    return load_policy(ROOT / "examples" / "dpolicy" / f"{name}.yaml")


@pytest.mark.parametrize("name", ["w4", "s1", "s2", "s3"])
def test_the_file_of_a_round_holds_its_releases(name: str, tmp_path: Path) -> None:
    workload, compiled = workload_of(name), policy_of(name)
    partition = "place" if name.startswith("w") else ""
    number = workload.round_numbers[-1]
    text = batch_of(workload, number, partition=partition)
    first = "".join(text.splitlines(keepends=True)[:21])  # Few of them, to be quick.
    path = tmp_path / "round.yaml"
    path.write_text(first)
    found = load(path, policy=compiled)
    numbers = np.flatnonzero(workload.requests.round == number).tolist()
    assert len(text.splitlines()) == 1 + len(numbers)
    vocabulary = compiled.policy.vocabulary
    for one, index in zip(found, numbers[:20], strict=True):
        described = from_python(release_of(workload, index, partition=partition))
        expected = price(parse_release(described, vocabulary), vocabulary)
        assert one.release == record_release(expected)
        assert one.utility == workload.requests.utility[index]


def test_the_first_round_is_the_usual_one() -> None:
    workload = workload_of("w2")
    assert batch_of(workload) == batch_of(workload, workload.first_round)
    for number in (workload.first_round - 1, workload.round_numbers[-1] + 1):
        with pytest.raises(InputError) as caught:
            batch_of(workload, number)
        assert caught.value.code is Code.OUT_OF_RANGE
        assert "11 to 12" in caught.value.problems[0].help


def test_a_round_without_requests_is_an_empty_list() -> None:
    workload = workload_of("w2")
    second = workload.requests.of_round(workload.first_round + 1)
    quiet = Workload(
        **{
            one: getattr(workload, one)
            for one in ("name", "seed", "repetition", "objective", "sampling")
        },
        rounds=workload.rounds,
        domain=workload.domain,
        window=workload.window,
        requests=second,
    )
    text = batch_of(quiet)
    read_document(text.encode(), "round.yaml")
    assert text == "requests: []\n"


def test_the_command_writes_a_round(tmp_path: Path) -> None:
    file, out = tmp_path / "w.json", tmp_path / "round.yaml"
    runner = CliRunner()

    def run(*args: object) -> tuple[int, str]:
        done = runner.invoke(app, ["workload", *map(str, args)])
        return done.exit_code, done.output

    assert run("generate", "w2", "--rounds", 2, "--seed", 3, "--out", file)[0] == 0
    options = ("--round", 12, "--partition", "place", "--out", out)
    code, output = run("requests", file, *options)
    assert code == 0, output
    assert out.read_text() == batch_of(workload_of("w2"), 12, partition="place")
    code, output = run("requests", file, "--out", out, "--unit", "patient", "--json")
    assert code == 0, output
    document = json.loads(output)
    assert document["round"] == 11
    assert out.read_text().count("\n") == 1 + document["requests"]
    assert out.read_text() == batch_of(workload_of("w2"), 11, unit="patient")
    code, output = run("requests", file, "--round", 13, "--out", tmp_path / "none")
    assert code == 4
    assert "MOD106" in output
    assert not (tmp_path / "none").exists()
