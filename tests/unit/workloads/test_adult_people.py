"""Made-up people: the same on every run, with the values of the Adult table."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from samples.adult import adult, made_up

from modicum.workloads.adult import people as shares
from modicum.workloads.adult.people import adult_people
from modicum.workloads.adult.queries import COLUMNS, QUERIES, ROWS

#: What the values of a column may be, where it has few.
FEW = [
    "workclass",
    "education",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native_country",
    "income",
]
#: How many people of the real table each query reads: a fact of the published study.
READ: dict[str, tuple[Callable[[dict[str, Any]], bool], int]] = {
    "Q1": (lambda row: row["income"] == ">50K" and row["education_num"] == 13
           and row["age"] == 25, 19),
    "Q2": (lambda row: row["race"] == "Asian-Pac-Islander" and 30 <= row["age"] <= 40,
           334),
    "Q3": (lambda row: row["native_country"] != "United-States"
           and row["sex"] == "Female", 1_089),
    "Q4": (lambda row: row["workclass"].endswith("-gov"), 4_351),
    "Q5": (lambda row: row["capital_gain"] > 0, 2_712),
}  # fmt: skip


def test_they_are_the_same_on_every_run() -> None:
    rows = "\n".join(str(tuple(row.values())) for row in made_up().to_pylist())
    digest = hashlib.sha256(rows.encode()).hexdigest()
    assert digest == "0a56719b1d02cf7ac897595d252f39947fd7fbe89a68a3c73ca66541678a53d7"


def test_another_seed_makes_other_people() -> None:
    one, other = (pa.table(adult_people(50, seed)) for seed in (1, 2))
    assert one != other
    assert one == pa.table(adult_people(50, 1))


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_there_are_as_many_as_asked_for(rows: int) -> None:
    people = adult_people(rows)
    assert tuple(people) == COLUMNS
    assert {len(column) for column in people.values()} == {rows}


@pytest.mark.parametrize("table", [adult, made_up])
def test_what_is_known_of_the_table_holds(table: Callable[[], pa.Table]) -> None:
    rows = table().to_pylist()
    assert len(rows) == ROWS
    for row in rows:
        assert 17 <= row["age"] <= 90
        assert 12_285 <= row["fnlwgt"] <= 1_484_705
        assert shares.SCHOOLING[row["education_num"] - 1] == row["education"]
        assert not (row["capital_gain"] and row["capital_loss"])
        assert (row["occupation"] == "?") >= (row["workclass"] == "?")


@pytest.mark.parametrize(
    ("name", "column"), [("Q4", "hours_per_week"), ("Q5", "capital_gain")]
)
def test_public_bounds_hold_and_are_reached(name: str, column: str) -> None:
    for table in (adult(), made_up()):
        values = table.column(column).to_pylist()
        assert (min(values), max(values)) == QUERIES[name].bounds


@pytest.mark.parametrize("name", READ)
def test_a_query_reads_about_as_many_as_in_the_real_table(name: str) -> None:
    reads, real = READ[name]
    found = sum(map(reads, made_up().to_pylist()))
    assert 0.6 * real <= found <= 1.4 * real
    if os.environ.get("MODICUM_ADULT"):
        assert sum(map(reads, adult().to_pylist())) == real


def test_the_readme_tells_how_many_each_query_reads() -> None:
    text = (Path(__file__).parents[3] / "examples/adult/README.md").read_text()
    result = {
        line.split("|")[1].split(":")[0].strip(): [
            int(cell.replace(",", "")) for cell in line.split("|")[2:4]
        ]
        for line in text.splitlines()
        if line.startswith("| Q") and ":" in line.split("|")[1]
    }
    rows = made_up().to_pylist()
    assert result == {
        name: [real, sum(map(reads, rows))] for name, (reads, real) in READ.items()
    }


def test_the_groups_of_the_second_query_are_those_of_the_published_answer() -> None:
    reads, _ = READ["Q2"]
    groups = {row["marital_status"] for row in adult().to_pylist() if reads(row)}
    every = set(adult().column("marital_status").to_pylist())
    assert len(groups) == QUERIES["Q2"].coordinates
    assert len(every) == QUERIES["Q2"].public_coordinates


@pytest.mark.parametrize("column", FEW)
def test_values_are_those_of_the_real_table(column: str) -> None:
    if not os.environ.get("MODICUM_ADULT"):
        pytest.skip("MODICUM_ADULT names no table")
    real, found = (set(one.column(column).to_pylist()) for one in (adult(), made_up()))
    assert found == real
