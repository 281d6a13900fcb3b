"""Clauses about answers: FILTER, arithmetic, HAVING, ORDER BY, LIMIT and windows."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from budget import counted, seed
from oracle.noise_laws import drawn
from samples import asked
from samples.declared import TABLES

from modicum.api.local.explanation.release_text import written
from modicum.core.errors import InputError
from modicum.escrow.dummy_data import dummy_answers
from modicum.query.aggregates import statistics_of
from modicum.query.compiler import CompiledQuery, Line
from modicum.query.explanation import derivation, errors_of
from modicum.query.intervals import width
from modicum.query.model import Query, Released
from modicum.query.parser import parse_query
from modicum.query.request import QueryRequest
from modicum.query.results import Answers, answers_of
from modicum.query.statistics import ExactPlan
from modicum.release.parts import EVERYTHING

CONFIDENCE = Fraction(9, 10)
SCALE = Fraction(3)


def parsed(sql: str) -> Query:
    return parse_query(sql, TABLES)


def unmarked(query: Query) -> list[Any]:
    return [replace(one, mark=None, name="") for one in query.aggregates]


def lowered(sql: str) -> CompiledQuery:
    query = parsed(sql)
    request = QueryRequest(query, TABLES, (), "laplace", "user", Fraction(1))
    every = tuple(range(len(query.keys)))
    lines = tuple(
        Line(one.name, one, every, serves, {}, SCALE, Fraction(1))
        for one, serves in statistics_of(query.aggregates, TABLES, 64).items()
    )
    plan = ExactPlan(query, TABLES, EVERYTHING, None, (), (), {})
    return CompiledQuery(request, {}, {}, 2, (), lines, {}, None, plan)


def released(sql: str, *numbers: dict[Any, int]) -> Answers:
    """Return the answers from the noisy numbers of each mechanism, by page."""
    found = lowered(sql)
    noisy: dict[str, dict[Any, int]] = {
        line.statistic.name: {(page,): number for page, number in given.items()}
        for line, given in zip(found.lines, numbers, strict=True)
    }
    return answers_of(found, noisy, CONFIDENCE)


def pages(answers: Answers) -> list[Any]:
    return [row.keys[0] for row in answers.rows]


# --- FILTER ---------------------------------------------------------------------------


@pytest.mark.spec("QRY-24")
@pytest.mark.parametrize(
    ("filtered", "chosen"),
    [
        ("COUNT(*) FILTER (WHERE age > 3)", "COUNT(CASE WHEN age > 3 THEN TRUE END)"),
        ("COUNT(*) FILTER (WHERE age > 3)", "COUNT_IF(age > 3)"),
        ("SUM(amount) FILTER (WHERE mobile)", "SUM(CASE WHEN mobile THEN amount END)"),
        (
            "COUNT(DISTINCT user_id) FILTER (WHERE page = 'main')",
            "COUNT(DISTINCT CASE WHEN page = 'main' THEN user_id END)",
        ),
        ("AVG(age) FILTER (WHERE mobile)", "AVG(CASE WHEN mobile THEN age END)"),
        ("STDDEV(age) FILTER (WHERE mobile)", "STDDEV(CASE WHEN mobile THEN age END)"),
        ("MEDIAN(age) FILTER (WHERE mobile)", "MEDIAN(CASE WHEN mobile THEN age END)"),
        (
            "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age) FILTER (WHERE mobile)",
            "QUANTILE(CASE WHEN mobile THEN age END, 0.9)",
        ),
        (
            "COUNT_IF(age > 3) FILTER (WHERE mobile)",
            "COUNT(CASE WHEN mobile THEN CASE WHEN age > 3 THEN TRUE END END)",
        ),
    ],
)
def test_a_filter_is_a_case(filtered: str, chosen: str) -> None:
    one = parsed(f"SELECT {filtered} AS n FROM views")
    assert unmarked(one) == unmarked(parsed(f"SELECT {chosen} AS n FROM views"))


def test_filters_have_names_of_their_own() -> None:
    query = parsed(
        "SELECT COUNT(*), COUNT(*) FILTER (WHERE mobile),"
        " SUM(age) FILTER (WHERE mobile) FROM views"
    )
    assert [one.name for one in query.aggregates] == ["count", "count_if", "sum_age_if"]


# --- what is measured -----------------------------------------------------------------


@pytest.mark.spec("QRY-24")
def test_each_aggregate_is_measured_once() -> None:
    query = parsed(
        "SELECT page, SUM(amount) / COUNT(*) AS mean, COUNT(*) AS n,"
        " 1.0 * COUNT(*) AS m FROM views GROUP BY page"
        " HAVING COUNT(*) > 3 AND AVG(age) > 3"
        " ORDER BY SUM(amount), MEDIAN(age)"
    )
    names = [one.name for one in query.aggregates]
    assert names == ["n", "sum_amount", "avg_age", "median_age"]
    assert [one.name for one in query.outputs] == ["mean", "n", "m"]


@pytest.mark.spec("QRY-24")
def test_a_hidden_aggregate_takes_no_name_that_is_given() -> None:
    query = parsed("SELECT COUNT(*) * 2 AS count, SUM(age) AS count_if FROM views")
    assert [one.name for one in query.aggregates] == ["count_if", "count+"]
    assert [one.name for one in query.outputs] == ["count", "count_if"]


@pytest.mark.parametrize(
    "plain",
    [
        "SELECT page, COUNT(*) AS n, SUM(amount) AS s FROM views GROUP BY page",
        "SELECT COUNT(*) AS a, COUNT(*) AS b FROM views",
    ],
)
def test_a_query_of_aggregates_computes_nothing(plain: str) -> None:
    query = parsed(plain)
    assert query.computed == ()
    assert [one.value for one in query.outputs] == [
        Released(one.name) for one in query.aggregates
    ]
    assert parsed(plain.replace("COUNT(*) AS", "(COUNT(*)) AS")) == query


@pytest.mark.spec("QRY-24")
def test_clauses_about_answers_change_no_mechanism_and_no_loss() -> None:
    base = "SELECT page, COUNT(*) AS n, SUM(amount) AS s FROM views GROUP BY page"
    more = " HAVING COUNT(*) > 3 AND SUM(amount) < 9 ORDER BY n DESC, page LIMIT 3"
    plain, cut = asked.query(base), asked.query(base + more)
    shared = asked.query(
        "SELECT page, SUM(amount) / NULLIF(COUNT(*), 0) AS mean, COUNT(*) AS n,"
        " SUM(amount) AS s FROM views GROUP BY page"
    )
    for other in (cut, shared):
        assert other.compiled.mechanisms() == plain.compiled.mechanisms()
        assert other.compiled.lines == plain.compiled.lines


@pytest.mark.spec("QRY-16")
def test_the_digest_of_a_query_contains_them() -> None:
    base = "SELECT page, COUNT(*) AS n FROM views GROUP BY page"
    texts = (base, f"{base} HAVING COUNT(*) > 3", f"{base} HAVING COUNT(*) > 4",
             f"{base} ORDER BY n", f"{base} LIMIT 3", f"{base} LIMIT 4")  # fmt: skip
    found = {written(asked.query(one).described)["query"] for one in texts}
    assert len(found) == len(texts)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT page FROM views GROUP BY page HAVING COUNT(*) > 3",
        "SELECT page FROM views GROUP BY page ORDER BY COUNT(*)",
        "SELECT page, 7 AS seven FROM views GROUP BY page",
        "SELECT page, RANK() OVER (ORDER BY page) AS place FROM views GROUP BY page",
    ],
)
def test_keys_alone_are_no_answer(sql: str) -> None:
    with pytest.raises(InputError, match="no aggregate is selected"):
        parsed(sql)


# --- which groups are shown -----------------------------------------------------------

GROUPED = "SELECT page, COUNT(*) AS n FROM views GROUP BY page"


@pytest.mark.spec("QRY-26")
def test_groups_are_kept_by_their_noisy_numbers() -> None:
    noisy = {"a": 5, "b": -1, "c": 9, "d": 5}
    assert pages(released(f"{GROUPED} HAVING COUNT(*) > 4", noisy)) == ["a", "c", "d"]
    assert pages(released(f"{GROUPED} HAVING n > 4 AND page < 'c'", noisy)) == ["a"]
    assert pages(released(f"{GROUPED} HAVING COUNT(*) > 99", noisy)) == []


@pytest.mark.spec("QRY-26")
def test_equal_groups_are_ordered_by_their_keys() -> None:
    for order in ({"d": 5, "b": 1, "a": 5, "c": 9}, {"a": 5, "d": 5, "c": 9, "b": 1}):
        ordered = released(f"{GROUPED} ORDER BY n DESC", order)
        assert pages(ordered) == ["c", "a", "d", "b"]
        assert pages(released(f"{GROUPED} LIMIT 2", order)) == ["a", "b"]
        assert pages(released(f"{GROUPED} LIMIT 2 OFFSET 3", order)) == ["d"]
        assert pages(released(f"{GROUPED} ORDER BY 2 LIMIT 0", order)) == []


@pytest.mark.spec("QRY-26")
def test_without_clauses_groups_stay_in_their_order() -> None:
    assert pages(released(GROUPED, {"d": 5, "b": 1, "a": 5})) == ["d", "b", "a"]


def test_an_alias_hides_a_column_in_order_by_alone() -> None:
    sql = "SELECT page, COUNT(*) AS age FROM views GROUP BY page"
    assert pages(released(f"{sql} ORDER BY age DESC", {"a": 1, "b": 2})) == ["b", "a"]
    with pytest.raises(InputError, match="both a column and the name"):
        parsed(f"{sql} HAVING age > 3")
    with pytest.raises(InputError, match="both a column and the name"):
        parsed(f"{sql} ORDER BY age + 1")


@pytest.mark.spec("QRY-26")
def test_a_window_may_order_groups_each_in_its_direction() -> None:
    sql = f"{GROUPED} ORDER BY RANK() OVER (ORDER BY COUNT(*) DESC, page ASC) DESC, n"
    assert pages(released(sql, {"a": 5, "b": 5, "c": 9})) == ["b", "a", "c"]
    with pytest.raises(InputError) as caught:
        parsed(f"{GROUPED} ORDER BY SUM(COUNT(*)) OVER (ORDER BY 2)")
    assert "name a key or an aggregate" in caught.value.render()


# --- intervals ------------------------------------------------------------------------


@pytest.mark.spec("QRY-25")
def test_aggregates_of_a_computed_number_share_the_risk() -> None:
    sql = "SELECT page, COUNT(*) - COUNT(age) AS d FROM views GROUP BY page"
    ((one,),) = [row.estimates for row in released(sql, {"a": 9}, {"a": 4}).rows]
    strays = width("laplace", SCALE, Fraction(1, 20))
    assert one.value == 5
    assert one.low == 5 - 2 * strays
    assert one.high == 5 + 2 * strays


@pytest.mark.spec("QRY-25")
def test_all_groups_of_a_window_share_the_risk() -> None:
    sql = "SELECT page, SUM(COUNT(*)) OVER () AS t FROM views GROUP BY page"
    found = released(sql, {"a": 9, "b": 4, "c": 1})
    strays = width("laplace", SCALE, Fraction(1, 30))
    for row in found.rows:
        (one,) = row.estimates
        assert one.value == 14
        assert one.low == 14 - 3 * strays
        assert one.high == 14 + 3 * strays


@pytest.mark.spec("QRY-25")
@pytest.mark.parametrize(
    ("computed", "value"),
    [
        ("100 / COUNT(*)", Fraction(20)),  # 0 is in the interval of the count.
        ("CASE WHEN COUNT(*) > 4 THEN 1 ELSE 0 END", Fraction(1)),
        ("NULLIF(COUNT(*), 0)", Fraction(5)),
        ("RANK() OVER (ORDER BY COUNT(*))", Fraction(1)),
        ("SUM(COUNT(*)) OVER (ORDER BY COUNT(*))", Fraction(5)),
        ("SQRT(COUNT(*) - 1)", Fraction(2)),
    ],
)
def test_an_interval_that_is_not_known_is_not_told(
    computed: str, value: Fraction
) -> None:
    sql = f"SELECT page, {computed} AS c FROM views GROUP BY page"
    found = released(sql, {"a": 5})
    ((one,),) = [row.estimates for row in found.rows]
    assert (one.value, one.low, one.high) == (value, None, None)
    assert "unknown" in str(found)
    assert found.to_dict()["rows"] == [
        {"keys": ["a"], "answers": [{"value": str(value), "low": None, "high": None}]}
    ]


@pytest.mark.spec("QRY-25")
def test_a_computed_number_has_few_digits_and_an_interval_around_the_exact_one() -> (
    None
):
    sql = "SELECT page, COUNT(*) / COUNT(age) AS r FROM views GROUP BY page"
    ((one,),) = [row.estimates for row in released(sql, {"a": 1000}, {"a": 300}).rows]
    strays = width("laplace", SCALE, Fraction(1, 20))
    assert one.value == Fraction("3.33333333333")
    assert one.low is not None
    assert one.high is not None
    low = Fraction(1000 - strays, 300 + strays)
    high = Fraction(1000 + strays, 300 - strays)
    assert low - Fraction(1, 10**10) < one.low <= low
    assert high <= one.high < high + Fraction(1, 10**10)


@pytest.mark.spec("QRY-25")
def test_intervals_of_computed_numbers_hold_the_truth_as_often_as_they_say() -> None:
    sql = (
        "SELECT page, SUM(age) / COUNT(*) AS mean, COUNT(*) - COUNT(age) AS d,"
        " COUNT(*) / SUM(COUNT(*)) OVER () AS share,"
        " SUM(COUNT(*)) OVER (ORDER BY page) AS so_far FROM views GROUP BY page"
    )
    found = lowered(sql)
    exact: dict[str, dict[Any, int]] = {
        line.statistic.name: {("a",): 900 + place, ("b",): 500 + place, ("c",): 300}
        for place, line in enumerate(found.lines)
    }
    true = answers_of(found, exact, CONFIDENCE)
    rng, rounds = np.random.default_rng(int(seed())), counted(300)
    missed = dict.fromkeys(true.aggregates, 0)
    for _ in range(rounds):
        noisy: dict[str, dict[Any, int]] = {
            name: {
                group: value + int(draw)
                for (group, value), draw in zip(
                    cells.items(), drawn("laplace", SCALE, 3, rng), strict=True
                )
            }
            for name, cells in exact.items()
        }
        told = answers_of(found, noisy, CONFIDENCE)
        for place, name in enumerate(missed):
            one, truth = (each.rows[1].estimates[place] for each in (told, true))
            assert one.low is not None
            assert one.high is not None
            assert truth.value is not None
            missed[name] += not one.low <= truth.value <= one.high
    for name, times in missed.items():
        assert times <= 0.1 * rounds + 5 * (0.09 * rounds) ** 0.5, name


# --- words ----------------------------------------------------------------------------


def test_a_plan_says_what_is_computed_at_no_cost() -> None:
    found = asked.query(
        "SELECT page, COUNT(*) / NULLIF(SUM(amount), 0) AS r, COUNT(*) AS n FROM views"
        " GROUP BY page HAVING COUNT(*) > 3 ORDER BY n LIMIT 3"
    ).compiled
    assert derivation(found)[-3:] == [
        "r: computed of noisy answers, at no cost: n, sum_amount",
        "HAVING: decided by noisy answers, at no cost: n",
        "ORDER BY, LIMIT: applied to noisy answers, at no cost",
    ]
    assert [one.aggregate for one in errors_of(found, CONFIDENCE)] == [
        "n",
        "sum_amount",
    ]


@pytest.mark.parametrize(
    ("clause", "chosen"),
    [
        ("HAVING n > 3", True),
        ("ORDER BY n LIMIT 3", True),
        ("ORDER BY page DESC, n OFFSET 3", True),
        ("", False),
        ("ORDER BY n", False),
        ("ORDER BY page LIMIT 3", False),
        ("HAVING page <> 'a'", False),
    ],
)
def test_notes_say_that_groups_were_chosen_by_noise(clause: str, chosen: bool) -> None:
    notes = released(f"{GROUPED} {clause}", {"a": 5}).notes
    assert any("by chance" in one for one in notes) == chosen


@pytest.mark.spec("QRY-25")
def test_a_window_over_groups_that_noise_chose_has_no_interval() -> None:
    sql = "SELECT page, SUM(COUNT(*)) OVER () AS t FROM views GROUP BY page"
    for having, told in (("page > 'a'", True), ("COUNT(*) > 0", False)):
        found = released(f"{sql} HAVING {having}", {"a": -5, "b": 9, "c": 3})
        for row in found.rows:
            (one,) = row.estimates
            assert one.value == 12
            assert (one.low is not None) == told


def test_synthetic_answers_have_the_columns_and_groups_of_answers() -> None:
    query = parsed(
        "SELECT page, COUNT(*) / 2 AS half, COUNT(*) AS n FROM views GROUP BY page"
        " HAVING COUNT(*) >= 0 ORDER BY n DESC LIMIT 1"
    )
    table = dummy_answers(query, TABLES, random.Random(3))
    assert table.columns == ("page", "half", "n")
    ((page, half, number),) = table.rows
    assert page in ("help", "main")
    assert isinstance(half, int | float)
    assert half * 2 == number
