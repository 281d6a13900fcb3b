"""Answers and what is expected of them, from queries whose exact answers are known."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from budget import counted, seed
from msgspec import structs
from oracle.noise_laws import drawn
from samples.declared import TABLES

from modicum.query.aggregates import nodes_of, statistics_of
from modicum.query.compiler import CompiledQuery, Line
from modicum.query.explanation import Expected, errors_of
from modicum.query.intervals import width
from modicum.query.key_selection import Selection
from modicum.query.model import ColumnRef
from modicum.query.parser import parse_query
from modicum.query.request import Noise, QueryRequest
from modicum.query.results import Answers, Estimate, answers_of
from modicum.query.statistics import ExactPlan, KeyValue, Statistic
from modicum.release.parts import EVERYTHING
from modicum.release.sampling import Sampling

ALL = (
    "SELECT page, COUNT(*) AS views, COUNT(DISTINCT user_id) AS people,"
    " SUM(amount) AS paid, AVG(amount) AS mean, VAR_SAMP(amount) AS spread,"
    " VAR_POP(age) AS ages, STDDEV(amount) AS deviation, MEDIAN(age) AS middle"
    " FROM views GROUP BY page"
)
CONFIDENCE = Fraction(9, 10)

Group = tuple[KeyValue, ...]


def lowered(
    sql: str,
    *,
    noise: Noise = "gaussian",
    scale: Fraction = Fraction(4),
    scales: Mapping[str, Fraction] | None = None,
) -> CompiledQuery:
    """Return a query with the same scale of noise in all mechanisms, but for some."""
    query = parse_query(sql, TABLES, "query.sql")
    asked = QueryRequest(query, TABLES, (), noise, "user", Fraction(1))
    every = tuple(range(len(query.keys)))
    lines = tuple(
        Line(
            one.name,
            one,
            every,
            serves,
            {},
            (scales or {}).get(shown(one), scale),
            Fraction(1),
        )
        for one, serves in statistics_of(query.aggregates, TABLES, 64).items()
    )
    plan = ExactPlan(query, TABLES, EVERYTHING, None, (), (), {})
    return CompiledQuery(asked, {}, {}, 2, (), lines, {}, None, plan)


def column_of(one: Statistic) -> str:
    return one.value.column if isinstance(one.value, ColumnRef) else ""


def shown(one: Statistic) -> str:
    return f"{one.kind} of {column_of(one)}" if one.value is not None else one.kind


def exact(
    one: Statistic, rows: list[tuple[int, int]], group: Group
) -> dict[Group, int]:
    """Return a statistic of rows, each with an amount in steps and an age."""
    column = column_of(one)
    values = [row[column == "age"] for row in rows]
    if one.kind == "rows":
        return {group: len(values)}
    if one.kind == "distinct":
        return {group: 7}
    if one.kind == "histogram":
        bins: dict[Group, int] = {}
        for value in values:
            place = (*group, (value - one.low) // one.bin)
            bins[place] = bins.get(place, 0) + 1
        nodes = nodes_of(one, bins)
        return {
            (*group, level, node): nodes.get((*group, level, node), 0)
            for level in range(1, one.levels + 1)
            for node in range(2**level)
        }
    power = 2 if one.kind == "squares" else 1
    return {group: sum((value - one.center) ** power for value in values)}


def rows_of(number: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    return [
        (int(rng.integers(0, 50_001)), int(rng.integers(0, 121))) for _ in range(number)
    ]


def told(
    found: CompiledQuery, tables: dict[Group, list[tuple[int, int]]]
) -> dict[str, dict[Group, int]]:
    """Return the exact statistics of some groups."""
    return {
        line.statistic.name: {
            cell: value
            for group, rows in tables.items()
            for cell, value in exact(line.statistic, rows, group).items()
        }
        for line in found.lines
    }


def true_answers(rows: list[tuple[int, int]]) -> dict[str, Fraction]:
    """Return what the query would answer without noise, in the units of columns."""
    paid = [Fraction(amount, 100) for amount, _ in rows]
    ages = [Fraction(age) for _, age in rows]
    spread = statistics.variance(paid)
    return {
        "views": Fraction(len(rows)),
        "people": Fraction(7),
        "paid": sum(paid, Fraction(0)),
        "mean": statistics.mean(paid),
        "spread": spread,
        "ages": statistics.pvariance(ages),
        "deviation": Fraction(float(spread) ** 0.5),
        "middle": statistics.median(ages),
    }


def by_name(answers: Answers, row: int) -> dict[str, Estimate]:
    return dict(zip(answers.aggregates, answers.rows[row].estimates, strict=True))


def test_without_noise_the_answers_are_exact() -> None:
    rng = np.random.default_rng(int(seed()))
    tables: dict[Group, list[tuple[int, int]]] = {
        ("help",): rows_of(300, rng),
        ("main",): rows_of(200, rng),
    }
    found = lowered(ALL, scale=Fraction(1, 2**30))
    answers = answers_of(found, told(found, tables), CONFIDENCE)
    assert answers.keys == ("page",)
    assert [row.keys for row in answers.rows] == [("help",), ("main",)]
    for number, rows in enumerate(tables.values()):
        for name, true in true_answers(rows).items():
            one = by_name(answers, number)[name]
            assert one.low is not None
            assert one.value is not None
            assert one.high is not None
            near = Fraction(4) if name == "middle" else abs(true) / 10**10
            assert one.low - true / 10**14 <= true <= one.high + true / 10**14, name
            assert one.low <= one.value <= one.high
            assert one.high - one.low <= near
            if name in ("views", "people", "paid"):
                assert one.low == one.value == one.high == true


@pytest.mark.spec("QRY-15")
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_intervals_hold_what_is_true_as_often_as_they_say(noise: Noise) -> None:
    rng = np.random.default_rng(int(seed()))
    rows = rows_of(400, rng)
    scales = {
        "total of amount": Fraction(20_000),
        "squares of amount": Fraction(2**28),
        "squares of age": Fraction(500),
    }
    found = lowered(ALL, noise=noise, scale=Fraction(3), scales=scales)
    clean, true = told(found, {("help",): rows}), true_answers(rows)
    rounds = counted(120)
    missed = dict.fromkeys(true, 0)
    useless = dict.fromkeys(true, 0)
    for _ in range(rounds):
        noisy = {
            line.statistic.name: with_noise(
                clean[line.statistic.name], noise, line.scale, rng
            )
            for line in found.lines
        }
        for name, one in by_name(answers_of(found, noisy, CONFIDENCE), 0).items():
            assert one.low is not None
            assert one.high is not None
            missed[name] += not one.low <= true[name] <= one.high
            useless[name] += one.high - one.low > 0.8 * true[name] + 30
    for name, times in missed.items():
        # Five standard deviations above what may be missed.
        assert times <= 0.1 * rounds + 5 * (0.09 * rounds) ** 0.5, name
        assert useless[name] <= rounds / 10, name


def with_noise(
    values: dict[Group, int], noise: Noise, scale: Fraction, rng: np.random.Generator
) -> dict[Group, int]:
    if scale > 1000:  # The law is summed term by term: the same shape, coarser.
        draws = drawn(noise, Fraction(100), len(values), rng) * int(scale / 100)
    else:
        draws = drawn(noise, scale, len(values), rng)
    return {
        group: value + int(draw)
        for (group, value), draw in zip(values.items(), draws, strict=True)
    }


def test_counts_and_sums_stay_negative_where_noise_makes_them_so() -> None:
    found = lowered("SELECT COUNT(*) AS n, SUM(amount) AS paid FROM views")
    answers = answers_of(found, {"n": {(): -3}, "paid": {(): -250}}, CONFIDENCE)
    strays = width("gaussian", Fraction(4), Fraction(1, 10))
    assert answers.rows[0].keys == ()
    assert by_name(answers, 0) == {
        "n": Estimate(Fraction(-3), Fraction(-3 - strays), Fraction(-3 + strays)),
        "paid": Estimate(
            Fraction(-5, 2),
            Fraction(-250 - strays, 100),
            Fraction(-250 + strays, 100),
        ),
    }


def test_what_an_aggregate_is_made_of_shares_the_risk() -> None:
    found = lowered("SELECT AVG(age) AS mean FROM views")
    answers = answers_of(
        found, {"mean.rows": {(): 100}, "mean.total": {(): 500}}, CONFIDENCE
    )
    strays = width("gaussian", Fraction(4), Fraction(1, 20))
    one = by_name(answers, 0)["mean"]
    assert one.value == 65  # 500 / 100 above the middle of 0 to 120.
    assert one.low is not None
    assert one.high is not None
    low, high = (
        Fraction(500 - strays, 100 + strays),
        Fraction(500 + strays, 100 - strays),
    )
    assert 0 <= 60 + low - one.low <= Fraction(1, 10**9)
    assert 0 <= one.high - 60 - high <= Fraction(1, 10**9)


def test_nothing_is_said_where_there_may_be_no_rows() -> None:
    found = lowered("SELECT AVG(age) AS mean, MEDIAN(age) AS middle FROM views")
    noisy = told(found, {(): []})
    answers = answers_of(found, noisy, CONFIDENCE)
    assert answers.rows[0].estimates == (Estimate(None, None, None),) * 2


def test_groups_of_a_tree_alone_are_told_once() -> None:
    found = lowered("SELECT page, MEDIAN(age) AS middle FROM views GROUP BY page")
    tables: dict[Group, list[tuple[int, int]]] = {
        ("main",): [(0, 50)] * 90,
        ("help",): [(0, 20)] * 90,
    }
    answers = answers_of(found, told(found, tables), CONFIDENCE)
    assert [row.keys for row in answers.rows] == [("main",), ("help",)]


def test_no_groups_are_no_rows() -> None:
    found = lowered(ALL)
    nothing: dict[str, dict[Group, int]] = {
        line.statistic.name: {} for line in found.lines
    }
    assert answers_of(found, nothing, CONFIDENCE).rows == ()


def test_the_plain_form_is_exact_text() -> None:
    found = lowered("SELECT page, SUM(amount) AS paid FROM views GROUP BY page")
    answers = answers_of(found, {"paid": {("help",): 1}}, Fraction("0.95"))
    assert json.loads(json.dumps(answers.to_dict())) == {
        "keys": ["page"],
        "aggregates": ["paid"],
        "confidence": "0.95",
        "rows": [
            {
                "keys": ["help"],
                "answers": [{"value": "0.01", "low": "-0.07", "high": "0.09"}],
            }
        ],
        "notes": list(answers.notes),
    }


def test_notes_say_what_intervals_leave_out() -> None:
    found = lowered("SELECT COUNT(*) AS n FROM views")
    plain = answers_of(found, {"n": {(): 1}}, CONFIDENCE).notes
    assert "noise only" in plain[0]
    assert "bounds on rows" in plain[0]
    sampled = structs.replace(
        found,
        request=replace(found.request, sampling=Sampling("user", Fraction(1, 10))),
    )
    assert "sample of 0.1" in answers_of(sampled, {"n": {(): 1}}, CONFIDENCE).notes[-1]
    keys = Selection(Statistic("keys", "distinct"), Fraction(1), 9, {}, {})
    selected = structs.replace(found, selection=keys)
    assert "left out" in answers_of(selected, {"n": {(): 1}}, CONFIDENCE).notes[-1]


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_what_is_expected_is_what_comes(noise: Noise) -> None:
    rng = np.random.default_rng(int(seed()))
    rows = rows_of(5000, rng)
    found = lowered(ALL, noise=noise, scale=Fraction(3))
    answers = answers_of(found, told(found, {("help",): rows}), CONFIDENCE)
    told_before = {one.aggregate: one for one in errors_of(found, CONFIDENCE)}
    assert list(told_before) == list(answers.aggregates)
    for name, one in by_name(answers, 0).items():
        expected = told_before[name]
        assert one.low is not None
        assert one.high is not None
        half = (one.high - one.low) / 2
        if expected.per == "answer":
            assert half == expected.half_width
        elif expected.per == "rows":
            assert half <= expected.half_width / 5000 * Fraction(102, 100)
    assert told_before["middle"].per == "ranks"
    assert told_before["deviation"].per == "variance"
    alone = lowered(ALL.replace("STDDEV", "VAR_POP"), noise=noise, scale=Fraction(3))
    of_variance = errors_of(alone, CONFIDENCE)[6]
    assert told_before["deviation"].half_width == of_variance.half_width


def test_what_is_expected_is_not_far_too_much() -> None:
    found = lowered("SELECT AVG(amount) AS mean, VAR_POP(amount) AS spread FROM views")
    (mean, spread) = errors_of(found, CONFIDENCE)
    largest = answers_of(found, told(found, {(): [(50_000, 1)] * 4000}), CONFIDENCE)
    one = by_name(largest, 0)["mean"]
    assert one.low is not None
    assert one.high == 500  # The bound, or it would be as far away.
    assert one.high - one.low >= mean.half_width / 4000 * Fraction(95, 100)
    apart = [(50_000, 1), (0, 1)] * 2000
    one = by_name(answers_of(found, told(found, {(): apart}), CONFIDENCE), 0)["spread"]
    assert one.low is not None
    assert one.high is not None
    assert one.high - one.low >= spread.half_width / 4000 / 4


def test_what_is_expected_in_words() -> None:
    for per, text in (
        ("answer", "± 2.5"),
        ("rows", "± 2.5 / rows of the group"),
        ("variance", "± 2.5 / rows of the group, for its square"),
        ("ranks", "± 2.5 ranks, and one bin"),
    ):
        assert Expected("n", None, Fraction(5, 2), per).as_text() == text  # type: ignore[arg-type]
