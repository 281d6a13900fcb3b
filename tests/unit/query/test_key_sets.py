"""Queries by several sets of keys: how they are read, measured and answered."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from budget import counted, seed
from samples import asked

from modicum.api.local.queries.execution import noisy_of
from modicum.core.document import from_python
from modicum.core.errors import Code, InputError
from modicum.engines.factory import SystemSecrets
from modicum.engines.noise import NoiseSampler
from modicum.query.explanation import errors_of
from modicum.query.query_file import QueryFile, read_query_file
from modicum.query.results import Answers, answers_of
from modicum.query.statistics import Exact, ExactPlan, Secrets
from modicum.query.tables import Tables

POLICY = asked.compiled()
DAYS = ["2026-10-01", "2026-10-02", "2026-10-03"]
KEYS = "DATE_TRUNC('day', read_at) AS day, page, amount > 2 AS large"


def read(
    by: str,
    numbers: str = "COUNT(*) AS n",
    *,
    keys: str = KEYS,
    periods: Any = DAYS,
    declared: Tables | None = None,
    **more: Any,
) -> QueryFile:
    """A query of views, by some sets of keys."""
    heading = more.pop("heading", {})
    query = {
        "tables": "tables.yaml",
        "sql": f"SELECT {keys}, {numbers} FROM views GROUP BY {by}",
        "bounds": {"user-day": 2, "user-month": 4},
        "noise": "gaussian",
        "loss": {"user-month": {"rho": 2}},
        **more,
    }
    plain = {"release": "r", "periods": periods, **heading, "query": query}
    tables = declared or asked.tables(POLICY)
    vocabulary, digest = POLICY.policy.vocabulary, POLICY.policy.digest
    return read_query_file(from_python(plain), tables, vocabulary, digest)


def sets_of(by: str) -> list[str]:
    query = read(by).request.query
    return [",".join(query.keys[key].name for key in one) for one in query.key_sets]


@pytest.mark.spec("QRY-33")
@pytest.mark.parametrize(
    ("by", "sets"),
    [
        ("ROLLUP (day, page, large)", ["day,page,large", "day,page", "day", ""]),
        ("day, ROLLUP (page, large)", ["day,page,large", "day,page", "day"]),
        ("ROLLUP ((day, page), large)", ["day,page,large", "day,page", ""]),
        (
            "large, CUBE (day, page)",
            ["day,page,large", "day,large", "page,large", "large"],
        ),
        ("GROUPING SETS ((page, day), (large), ())", ["day,page", "large", ""]),
        ("GROUPING SETS (page, day, large)", ["page", "day", "large"]),
        (
            "GROUPING SETS (ROLLUP (day, page), (large))",
            ["day,page", "day", "", "large"],
        ),
        ("GROUPING SETS ((page), (page), (day, large))", ["page", "day,large"]),
        ("page, GROUPING SETS (day, large)", ["day,page", "page,large"]),
        (
            "ROLLUP (day), CUBE (page), large",
            ["day,page,large", "day,large", "page,large", "large"],
        ),
        ("GROUPING SETS ((1, 2, 3), (2))", ["day,page,large", "page"]),
        ("(day, page), (large)", ["day,page,large"]),
        ("GROUPING SETS ((day, page, large))", ["day,page,large"]),
    ],
)
def test_sets_are_those_of_sql(by: str, sets: list[str]) -> None:
    assert sets_of(by) == sets


@pytest.mark.spec("QRY-33")
@pytest.mark.parametrize(
    ("by", "more", "code", "message"),
    [
        ("ROLLUP (day, page)", {}, Code.NOT_IN_SUBSET, "`large` is neither"),
        (
            "GROUPING SETS ((day, page, large), (topic))",
            {},
            Code.NOT_IN_SUBSET,
            "`topic` is a key of GROUP BY",
        ),
        (
            "CUBE (day, page, large, 1, 2, 3, 1)",
            {},
            Code.NOT_IN_SUBSET,
            "more than 64 sets of keys",
        ),
        (
            "CUBE (day, page, large), CUBE (1, 2, 3), ROLLUP (1, 2)",
            {},
            Code.NOT_IN_SUBSET,
            "more than 64 sets of keys",
        ),
        ("ROLLUP (day, page, 4)", {}, Code.NOT_IN_SUBSET, "a value cannot stand here"),
        (
            "CUBE (day, topic, large)",
            {"periods": "2026-10", "keys": KEYS.replace("page", "topic")},
            Code.DOES_NOT_FIT,
            "not all values of the keys are public",
        ),
        (
            "ROLLUP (day, page, large)",
            {"heading": {"sampling": {"unit": "user-month", "rate": 0.1}}},
            Code.DOES_NOT_FIT,
            "several sets of keys cannot be read of a sample",
        ),
    ],
)
def test_what_is_no_set_of_public_keys_is_refused(
    by: str, more: dict[str, Any], code: Code, message: str
) -> None:
    with pytest.raises(InputError) as refused:
        read(by, **more)
    (problem,) = refused.value.problems
    assert problem.code is code
    assert message in problem.message
    assert "discover:" not in problem.help


def test_too_many_combinations_are_refused() -> None:
    with pytest.raises(InputError, match="combinations of values; at most 1000000"):
        read(
            "GROUPING SETS (day, page, large, (b), (c), (d), (e))",
            keys=KEYS
            + "".join(
                f", ROUND(amount * {place}) AS {name}"
                for place, name in enumerate("bcde", start=10)
            ),
        )


# --- what is measured -----------------------------------------------------------------


def test_mechanisms_are_named_by_their_keys() -> None:
    query = read(
        "CUBE (day, page, large)", "COUNT(*) AS n, COUNT(DISTINCT user_id) AS d"
    )
    names = [one["name"] for one in query.compiled.mechanisms()]
    assert len(names) == len(set(names))
    assert {"n.by.day.page.large", "n.all", "d.by.page", "d.all"} <= {*names}
    spent = sum(line.share for line in query.compiled.lines)
    assert Fraction(199, 100) < spent <= 2
    # Distinct values do not add up, so each set is measured by itself.
    shares = {line.share for line in query.compiled.lines if line.name.startswith("d.")}
    assert shares == {Fraction(1, 8)}


@pytest.mark.spec("QRY-34")
def test_measuring_sets_together_is_no_worse_than_each_by_itself() -> None:
    query = read("ROLLUP (day, page, large)")
    (marginals,) = query.compiled.marginals.values()
    gains = [marginals.gain(keys) for keys in marginals.alone]
    assert sum(gains) / len(gains) < 0.8
    text = query.explain()
    assert "n: consistent by least squares; its variance, as a multiple" in text
    for keys, gain in zip(
        ("day, page, large", "day, page", "day", "in total"), gains, strict=True
    ):
        assert f"{keys}: {gain:.3g}" in text
    expected = errors_of(query.compiled, query.confidence)
    assert [one.by_keys() for one in expected] == [
        " by day, page, large", " by day, page", " by day", " in total",
    ]  # fmt: skip


def test_a_query_by_one_set_is_measured_as_before() -> None:
    one = read("day, page, large").compiled
    other = read("GROUPING SETS ((day, page, large))").compiled
    assert one.lines == other.lines
    assert not one.marginals


# --- answers --------------------------------------------------------------------------


class Rows:
    """An engine with given numbers for each cell of all keys, and by fewer keys."""

    name = "rows"

    def __init__(self, cells: dict[tuple[Any, ...], int]) -> None:
        self.cells = cells

    def check(self, plan: ExactPlan) -> None:
        """Take any."""

    def fits(self, table: Any) -> None:
        """Take any."""

    def run(self, plan: ExactPlan, _secrets: Secrets) -> dict[str, Exact]:
        found: dict[str, Exact] = {}
        for one in plan.all_statistics:
            sums: dict[tuple[Any, ...], int] = {}
            for cell, number in self.cells.items():
                keys = range(len(cell)) if one.keys is None else one.keys
                group = tuple(cell[key] for key in keys)
                sums[group] = sums.get(group, 0) + number
            found[one.name] = sums
        return found


class NoNoise:
    """Adds none."""

    def check(self, noise: str, scale: Fraction, sensitivity: Fraction) -> None:
        """Take any."""

    def add(self, noise: str, scale: Fraction, values: Sequence[int]) -> list[int]:
        return list(values)


def cells() -> dict[tuple[Any, ...], int]:
    dice = random.Random(seed())
    return {
        (day, page, large): dice.randrange(40)
        for day in DAYS
        for page in ("help", "main")
        for large in (False, True)
    }


def answered(
    query: QueryFile, rows: dict[tuple[Any, ...], int], sampler: Any
) -> Answers:
    noisy = noisy_of(query.compiled, Rows(rows), sampler, SystemSecrets())
    return answers_of(query.compiled, noisy, query.confidence)


@pytest.mark.spec("QRY-33")
def test_groups_that_are_not_by_a_key_have_none() -> None:
    query = read(
        "GROUPING SETS ((day, large), (page), ())",
        "COUNT(*) AS n, GROUPING(page) + 2 * GROUPING(day) AS left_out",
    )
    rows = cells()
    found = answered(query, rows, NoNoise())
    assert len(found.rows) == 6 + 2 + 1 == query.compiled.answer_groups
    for row in found.rows:
        total = sum(
            number
            for cell, number in rows.items()
            if all(
                key in (None, part) for key, part in zip(row.keys, cell, strict=True)
            )
        )
        left_out = 1 * (row.keys[1] is None) + 2 * (row.keys[0] is None)
        assert [one.value for one in row.estimates] == [total, left_out]
    assert found.rows[-1].keys == (None, None, None)
    assert any("made consistent by least squares" in note for note in found.notes)


def test_having_and_order_are_of_all_rows() -> None:
    query = read("ROLLUP (page) HAVING COUNT(*) > 20", keys="page")
    rows = {("help",): 15, ("main",): 25}
    assert [row.keys for row in answered(query, rows, NoNoise()).rows] == [
        ("main",),
        (None,),
    ]
    ordered = read("ROLLUP (page) ORDER BY n DESC LIMIT 2", keys="page")
    assert [row.keys for row in answered(ordered, rows, NoNoise()).rows] == [
        (None,),
        ("main",),
    ]


@pytest.mark.spec("QRY-34")
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_intervals_hold_the_truth_as_often_as_they_say(noise: str) -> None:
    loss = {"user-month": {"rho" if noise == "gaussian" else "eps": 2}}
    query = read("CUBE (day, page, large)", noise=noise, loss=loss, confidence=0.9)
    rows, runs, missed, sampler = cells(), counted(100), 0, NoiseSampler()
    truth = [row.estimates[0].value for row in answered(query, rows, NoNoise()).rows]
    for _ in range(runs):
        for row, true in zip(answered(query, rows, sampler).rows, truth, strict=True):
            (one,) = row.estimates
            assert one.low is not None
            assert one.high is not None
            assert true is not None
            missed += not one.low <= true <= one.high
    # At most a tenth on average, but for chance, and not hardly ever.
    assert 0.01 < missed / (runs * len(truth)) < 0.14
