"""Sides of `bench/risk.py` over made-up people: closed forms, and what others would do.

Each is called in a process of its own, over a Parquet file of made-up people. It does
its work several times, the best counts, and leaves what it found in a file, so that
sides can be compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from modicum.engines.duckdb_engine import DuckdbEngine
from modicum.risk.candidates import PUBLISHED
from modicum.risk.indicator import Indicator
from modicum.risk.measurement.influence import measure
from modicum.risk.noise import GaussianNoise, LaplaceNoise, Noise
from modicum.risk.question import read_question
from modicum.workloads.adult.queries import QUERIES, TABLE

Numbers = NDArray[np.float64]

#: Of the RDRs of all people, so much is told for each candidate.
SHARES = (0.0, 0.25, 0.5, 0.75, 0.99, 1.0)
#: Where, after the quantiles, the variance stands; then comes the ratio.
VARIANCE = len(SHARES)


def best(
    run: Callable[[], Numbers], times: int, seconds: float
) -> tuple[float, int, Numbers]:
    """Return the least wall time of some runs, how many there were, and what they find.

    None begins after so many seconds, but for the first one.
    """
    walls: list[float] = []
    found = np.empty(0)
    began = time.perf_counter()
    while not walls or (len(walls) < times and time.perf_counter() - began < seconds):
        wall = time.perf_counter()
        found = run()
        walls.append(time.perf_counter() - wall)
    return min(walls), len(walls), found


# --- leaving out each row, and not ----------------------------------------------------


def closed_form(path: Path, query: str) -> Callable[[], Numbers]:
    """Distances by one statement, from reading the query to everybody's distance."""
    engine = DuckdbEngine({TABLE: str(path)})

    def run() -> Numbers:
        question = read_question(QUERIES[query].sql, engine.columns())
        profile = measure(engine, question).profile("l1")
        return np.repeat(profile.values, profile.people)

    return run


def each_row(path: Path, query: str) -> Callable[[], Numbers]:
    """Distances by asking the query over all rows but one, for every single row.

    The rows are in a table in memory, and the statement is prepared once.
    """
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE {TABLE} AS"  # noqa: S608
        f" SELECT *, ROW_NUMBER() OVER () AS row_number FROM read_parquet('{path}')"
    )
    text = QUERIES[query].sql
    left_out = f"FROM (SELECT * FROM {TABLE} WHERE row_number <> $one) AS {TABLE}"  # noqa: S608
    without = text.replace(f"FROM {TABLE}", left_out)
    rows = connection.execute(f"SELECT COUNT(*) FROM {TABLE}").fetchall()[0][0]  # noqa: S608

    def answer(sql: str, **given: int) -> dict[Any, float]:
        found = connection.execute(sql, given or None).fetchall()
        return {row[:-1]: float(row[-1] or 0) for row in found}

    def run() -> Numbers:
        whole = answer(text)
        moved = np.empty(rows)
        for one in range(rows):
            other = answer(without, one=one + 1)
            keys = whole | other
            moved[one] = sum(abs(whole.get(key, 0) - other.get(key, 0)) for key in keys)
        return np.sort(moved)

    return run


# --- all candidates -------------------------------------------------------------------


def same(one: Numbers, other: Numbers) -> bool:
    """Return whether two sides tell the same, but for the rounding of floats.

    Quantiles and ratios agree in nine digits. An RDR is rounded to a float, which may
    move each by half a unit of the greatest one's last digit, and so their standard
    deviation: it moves by no more than the most that any number does.
    """
    spreads = [np.sqrt(of[:, VARIANCE]) for of in (one, other)]
    rest = [np.delete(of, VARIANCE, axis=1) for of in (one, other)]
    last_digit = np.spacing(one[:, VARIANCE - 1])
    near = np.abs(spreads[0] - spreads[1]) <= last_digit + 1e-9 * spreads[1]
    return bool(near.all()) and np.allclose(*rest, rtol=1e-9, atol=0)


def noise_of(query: str, mechanism: str, rows: int) -> Noise:
    """Return the noise of the published study."""
    one = QUERIES[query]
    size = one.published_sensitivity(rows)
    if mechanism == "laplace":
        return LaplaceNoise(size, one.coordinates)
    return GaussianNoise(size, Fraction(1, rows**2), one.coordinates, "published")


def one_profile(path: Path, query: str, mechanism: str) -> Callable[[], Numbers]:
    """All candidates from one profile, influence measured from the file included."""
    engine = DuckdbEngine({TABLE: str(path)})
    rows = engine.fetch(f"SELECT COUNT(*) FROM {engine.relations()[TABLE]}")  # noqa: S608
    noise = noise_of(query, mechanism, rows.column(0)[0].as_py())

    def told(seen: Indicator, epsilon: Fraction) -> list[float]:
        quantiles = [seen.quantile(share, epsilon) for share in SHARES]
        return [*quantiles, seen.variance(epsilon), quantiles[0] / quantiles[-1]]

    def run() -> Numbers:
        question = read_question(QUERIES[query].sql, engine.columns())
        seen = Indicator(measure(engine, question), noise)
        return np.array([told(seen, epsilon) for epsilon in PUBLISHED])

    return run


def numpy_matrix(path: Path, query: str, mechanism: str) -> Callable[[], Numbers]:
    """The RDR of every person for every candidate, then what is told of them.

    Its columns are in memory before the clock runs, texts as small numbers.
    """
    columns = in_memory(path)
    rows = len(columns["age"])
    noise = noise_of(query, mechanism, rows)
    widths = np.array([float(noise.width(epsilon)) for epsilon in PUBLISHED])

    def run() -> Numbers:
        moved = distances(query, columns)
        if mechanism == "laplace":
            rdr = moved[None, :] + noise.dimensions * widths[:, None]
        else:
            rdr = np.sqrt(moved**2 + noise.dimensions * widths[:, None] ** 2)
        least, greatest = rdr.min(axis=1), rdr.max(axis=1)
        inner = np.quantile(rdr, SHARES[1:-1], axis=1, method="inverted_cdf")
        told = [least, *inner, greatest, rdr.var(axis=1), least / greatest]
        return np.stack(told, axis=1)

    return run


def numpy_profile(path: Path, query: str, mechanism: str) -> Callable[[], Numbers]:
    """What a patient author gets out of NumPy: people counted by distance first."""
    columns = in_memory(path)
    noise = noise_of(query, mechanism, len(columns["age"]))
    k = noise.dimensions
    widths = [float(noise.width(epsilon)) for epsilon in PUBLISHED]

    def run() -> Numbers:
        values, people = np.unique(distances(query, columns), return_counts=True)
        upto = people.cumsum()
        ranks = np.maximum(1, np.ceil(np.array(SHARES) * upto[-1] - 1e-9))
        places = np.searchsorted(upto, ranks)
        found = []
        for width in widths:
            laplace = mechanism == "laplace"
            rdr = values + k * width if laplace else np.hypot(values, k**0.5 * width)
            mean = people @ rdr / upto[-1]
            variance = people @ (rdr - mean) ** 2 / upto[-1]
            found.append([*rdr[places], variance, rdr[0] / rdr[-1]])
        return np.array(found)

    return run


def in_memory(path: Path) -> dict[str, NDArray[Any]]:
    """Return the columns of a file, with a small number for each text."""
    found = duckdb.sql(f"SELECT * FROM read_parquet('{path}')").fetchnumpy()  # noqa: S608
    columns: dict[str, NDArray[Any]] = {}
    for name, column in found.items():
        if column.dtype != object:
            columns[name] = column
            continue
        texts, codes = np.unique(column.astype(str), return_inverse=True)
        columns[name] = codes.astype(np.uint8)
        for code, text in enumerate(texts):
            columns[f"{name}={text}"] = np.array(code, dtype=np.uint8)
    return columns


def distances(query: str, columns: dict[str, NDArray[Any]]) -> Numbers:
    """Return how far each person moves an answer, by a formula for each query."""

    def those(name: str, text: str) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = columns[name] == columns[f"{name}={text}"]
        return found

    age = columns["age"]
    if query == "Q1":
        inside = those("income", ">50K") & (columns["education_num"] == 13)
        return (inside & (age == 25)).astype(np.float64)
    if query == "Q2":
        inside = those("race", "Asian-Pac-Islander") & (age >= 30) & (age <= 40)
        return inside.astype(np.float64)
    if query == "Q3":
        home = those("native_country", "United-States")
        return (~home & those("sex", "Female")).astype(np.float64)
    if query == "Q5":
        return columns["capital_gain"].astype(np.float64)
    state = [f"{level}-gov" for level in ("Federal", "Local", "State")]
    inside = np.logical_or.reduce([those("workclass", one) for one in state])
    hours = columns["hours_per_week"].astype(np.float64)
    number, total = int(inside.sum()), float(hours[inside].sum())
    return np.where(inside, np.abs((hours - total / number) / (number - 1)), 0.0)


#: By name, the sides; those with a mechanism take it after the query.
SIDES: dict[str, Callable[..., Callable[[], Numbers]]] = {
    "closed form": closed_form,
    "each row": each_row,
    "one profile": one_profile,
    "NumPy matrix": numpy_matrix,
    "NumPy profile": numpy_profile,
}
