"""The published study of the Adult table, again: by closed forms and by brute force.

On the real table where it is at hand, else on made-up people, for whom the published
epsilons must come out as well: they depend on little that is not alike.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from samples.adult import adult, made_up

from modicum.engines.duckdb_engine import DuckdbEngine, DuckdbOptions
from modicum.risk.candidates import PUBLISHED as CANDIDATES
from modicum.risk.indicator import Indicator
from modicum.risk.measurement.influence import measure, measure_again
from modicum.risk.noise import GaussianNoise, LaplaceNoise, Noise
from modicum.risk.profile import Influence
from modicum.risk.question import read_question
from modicum.risk.selection.published import find_from_rdr
from modicum.risk.selection.thresholds import RatioAtLeast
from modicum.workloads.adult.queries import PUBLISHED, QUERIES, THRESHOLDS, AdultQuery

Row = dict[str, Any]
NAMES = list(QUERIES)
TABLES = {"adult": adult, "made up": made_up}
#: Brute force looks at so many people, drawn once.
SAMPLE = 300


def engine_of(table: pa.Table) -> DuckdbEngine:
    return DuckdbEngine({"adult": table}, DuckdbOptions(threads=1))


def influence_of(query: AdultQuery, table: pa.Table) -> Influence:
    with engine_of(table) as engine:
        return measure(engine, read_question(query.sql, engine.columns()))


def noise_of(query: AdultQuery, mechanism: str, rows: int) -> Noise:
    """Return the noise as the published program computed it."""
    sensitivity = query.published_sensitivity(rows)
    if mechanism == "laplace":
        return LaplaceNoise(sensitivity, query.coordinates)
    delta = Fraction(1, rows**2)
    return GaussianNoise(sensitivity, delta, query.coordinates, "published")


# --- an oracle: the queries in plain Python, and the search as the paper writes it ----


def answer(name: str, rows: Sequence[Row]) -> Counter[str]:
    """Return the answer to a query, by group; what is not there counts as 0."""
    if name == "Q1":
        return Counter(
            "all" for row in rows
            if row["income"] == ">50K" and row["education_num"] == 13
            and row["age"] == 25
        )  # fmt: skip
    if name == "Q2":
        return Counter(
            row["marital_status"] for row in rows
            if row["race"] == "Asian-Pac-Islander" and 30 <= row["age"] <= 40
        )  # fmt: skip
    if name == "Q3":
        return Counter(
            "all" for row in rows
            if row["native_country"] != "United-States" and row["sex"] == "Female"
        )  # fmt: skip
    if name == "Q4":
        state = {"Federal-gov", "Local-gov", "State-gov"}
        hours = [row["hours_per_week"] for row in rows if row["workclass"] in state]
        return Counter({"all": Fraction(sum(hours), max(1, len(hours)))})
    return Counter({"all": sum(row["capital_gain"] for row in rows)})


def distances(name: str, rows: Sequence[Row], mechanism: str) -> Iterator[float]:
    """Yield how far the answer moves for each, by leaving her out."""
    whole = answer(name, rows)
    for number in range(len(rows)):
        without = answer(name, [*rows[:number], *rows[number + 1 :]])
        moved = [float(whole[key] - without[key]) for key in {*whole, *without}]
        yield math.hypot(*moved) if mechanism == "gaussian" else sum(map(abs, moved))


def found_by_search(
    moved: Sequence[float], noise: Noise, delta: float, threshold: float
) -> Fraction | None:
    """Return the greatest candidate at which all RDRs are alike enough."""
    size, k = float(noise.sensitivity), noise.dimensions
    for epsilon in sorted(CANDIDATES, reverse=True):
        if isinstance(noise, LaplaceNoise):
            rdr = [one + k * size / float(epsilon) for one in moved]
        else:
            sigma2 = 2 * size**2 * math.log(1.25 / delta) / float(epsilon) ** 2
            rdr = [math.sqrt(one**2 + k * sigma2) for one in moved]
        # At some thresholds the two sides are equal, but for the last digit.
        if min(rdr) / max(rdr) >= threshold - 1e-12:
            return epsilon
    return None


# --- what is published ----------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", NAMES)
def test_all_published_epsilons_come_out(name: str, mechanism: str, table: str) -> None:
    rows = TABLES[table]()
    query = QUERIES[name]
    noise = noise_of(query, mechanism, rows.num_rows)
    seen = Indicator(influence_of(query, rows), noise)
    found = {
        threshold: find_from_rdr(seen, [RatioAtLeast.of(threshold)]).epsilon
        for threshold in THRESHOLDS
    }
    expected = {one: PUBLISHED[mechanism, name, one] for one in THRESHOLDS}  # type: ignore[index]
    assert found == expected


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", NAMES)
def test_somebody_moves_nothing_and_somebody_all_that_can_be(
    name: str, table: str
) -> None:
    query = QUERIES[name]
    profile = influence_of(query, TABLES[table]()).profile("l1")
    assert profile.least == 0
    assert profile.total == TABLES[table]().num_rows
    if not query.averages:
        assert profile.greatest == query.sensitivity
        assert query.sensitivity == query.published_sensitivity(profile.total)
    else:  # What the published program takes for a bound is none.
        assert profile.greatest > query.published_sensitivity(profile.total)
        assert profile.greatest <= query.sensitivity


def test_one_person_alone_moves_an_average_by_all_of_her_value() -> None:
    people = made_up()
    state = [work.endswith("-gov") for work in people.column("workclass").to_pylist()]
    hours = people.column("hours_per_week").to_pylist()
    most = next(n for n, inside in enumerate(state) if inside and hours[n] == 99)
    profile = influence_of(QUERIES["Q4"], people.take([most])).profile("l1")
    assert profile.greatest == QUERIES["Q4"].sensitivity == 99


@pytest.mark.parametrize("draw", [1, 2])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", NAMES)
def test_brute_force_on_samples_finds_the_same(
    name: str, mechanism: str, draw: int
) -> None:
    places = random.Random(draw).sample(range(adult().num_rows), SAMPLE)
    rows = adult().take(places)
    query = QUERIES[name]
    moved = list(distances(name, rows.to_pylist(), mechanism))
    influence = influence_of(query, rows)
    noise = noise_of(query, mechanism, SAMPLE)
    profile = influence.profile(noise.norm)
    expected = np.sort(moved)
    got = np.repeat(profile.values, profile.people)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9)
    with engine_of(rows) as engine:
        question = read_question(query.sql, engine.columns())
        measured = measure_again(engine, question).profile(noise.norm)
    np.testing.assert_allclose(
        np.repeat(measured.values, measured.people), expected, rtol=0, atol=1e-9
    )
    for threshold in THRESHOLDS:
        slow = found_by_search(moved, noise, SAMPLE**-2.0, float(threshold))
        fast = find_from_rdr(Indicator(influence, noise), [RatioAtLeast.of(threshold)])
        assert fast.epsilon == slow
