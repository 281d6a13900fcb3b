"""The bench of risk: all of its sides find the same, however quick they are."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from modicum.workloads.adult.people import adult_people
from modicum.workloads.adult.queries import QUERIES

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCH)
    return importlib.import_module("risk_adult")


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So few that queries take no time; so many that some count for each."""
    path = tmp_path_factory.mktemp("people") / "people.parquet"
    pyarrow.parquet.write_table(pa.table(adult_people(12_000)), path)
    return path


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("query", QUERIES)
def test_candidates_are_told_alike(
    query: str, mechanism: str, sides: ModuleType, people: Path
) -> None:
    one = sides.one_profile(people, query, mechanism)()
    assert one.shape == (37, 8)
    assert (one[:, 5] > one[:, 0]).all()
    for other in (sides.numpy_matrix, sides.numpy_profile):
        assert sides.same(one, other(people, query, mechanism)())
    for column in range(8):
        off = one.copy()
        off[3, column] *= 1 + 1e-6 if column != sides.VARIANCE else 1e6
        assert not sides.same(one, off)


@pytest.mark.parametrize("query", QUERIES)
def test_distances_are_those_without_each_row(
    query: str, sides: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "few.parquet"
    pyarrow.parquet.write_table(pa.table(adult_people(150)), path)
    slow = sides.each_row(path, query)()
    assert len(slow) == 150
    np.testing.assert_allclose(
        sides.closed_form(path, query)(), slow, rtol=0, atol=1e-9
    )


def test_a_run_of_some_times_counts_them(sides: ModuleType) -> None:
    seen: list[None] = []

    def run() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        seen.append(None)
        return np.array([float(len(seen))])

    wall, runs, found = sides.best(run, 3, 60)
    assert (runs, found[0], len(seen)) == (3, 3, 3)
    assert wall >= 0
    _, runs, _ = sides.best(run, 3, -1)
    assert runs == 1
    _, runs, _ = sides.best(run, 0, 0)
    assert runs == 1


def test_what_does_not_hold_fails_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(BENCH)
    bench = importlib.import_module("risk")
    verdicts = bench.Verdicts()
    assert verdicts.line("fine", holds=True) == "- PASS fine"
    assert not verdicts.failed
    assert verdicts.line("not fine", holds=False) == "- FAIL not fine"
    assert verdicts.line("fine", holds=True) == "- PASS fine"
    assert verdicts.failed
    one = [np.array([[0.0, 1.0], [3.0, 2.0]]), np.array([[0.0, 1.0], [2.0, 3.0]])]
    assert bench.agreed([one[0], one[0]], "COUNT", bench.Verdicts()) == []
    assert bench.agreed(one, "COUNT", bench.Verdicts()) == [
        "- FAIL COUNT: engines agree"
    ]
    given = argparse.Namespace(limit=60, times=1, seconds=0, memory="1G")
    assert bench.elsewhere(tmp_path / "none.parquet", ["each row", "Q1"], given) is None
