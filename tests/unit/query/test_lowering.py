"""From queries to mechanisms: what they cost each unit, and how it is described."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from samples import asked

from modicum.core.errors import Code, InputError
from modicum.core.rationals import LOSS_UNIT
from modicum.query.explanation import computed, derivation
from modicum.query.query_file import QueryFile
from modicum.release import parse_release, price

VOCABULARY = asked.compiled().policy.vocabulary
SCALAR = "SELECT page, COUNT(*) AS views FROM views GROUP BY page"


def losses(query: QueryFile) -> dict[str, dict[str, Fraction]]:
    """Return what each mechanism costs each unit, as it is told."""
    return {
        line.statistic.name: dict(computed(query.compiled, line))
        for line in query.compiled.lines
    }


def priced(
    query: QueryFile, vocabulary: Any = VOCABULARY
) -> dict[str, Mapping[str, Any]]:
    """Return what each mechanism costs each unit, as the ledger prices it."""
    found = price(parse_release(query.described, vocabulary), vocabulary)
    return {one.mechanism.name: one.losses for one in found.mechanisms}


def near(value: Fraction, wanted: str) -> bool:
    """Tell whether a loss is hardly less than it is wanted, and no more."""
    exact = Fraction(wanted)
    return exact * (1 - Fraction(1, 10**5)) <= value <= exact


# --- page views, bounded by day and month ---------------------------------------------


@pytest.mark.spec("QRY-8")
@pytest.mark.parametrize(
    ("bounds", "sql", "day", "month"),
    [
        ({"user-day": 10, "user-month": 70}, asked.COUNTED, "0.03", "0.105"),
        ({"user-day": 10}, asked.COUNTED, "0.015", "0.465"),
        ({"user-day": 10, "user-month": 70}, SCALAR, "0.03", "0.735"),
    ],
)
def test_page_views_of_a_month_with_noise_for_a_day(
    bounds: dict[str, int], sql: str, day: str, month: str
) -> None:
    query = asked.query(sql, bounds=bounds, loss={"user-day": {"rho": Fraction(day)}})
    found = losses(query)["views"]
    assert near(found["user-day"], day)
    assert near(found["user-month"], month)
    assert near(found["user"], month)  # One month is read.


def test_a_day_costs_half_where_no_other_day_moves() -> None:
    query = asked.query(periods="2026-10-07", bounds={"user-day": 10},
                        loss={"user-day": {"rho": Fraction("0.015")}})  # fmt: skip
    found = losses(query)["views"]
    assert near(found["user-day"], "0.015")
    assert near(found["user-month"], "0.015")


def test_why_is_told_line_by_line() -> None:
    text = "\n".join(derivation(asked.query().compiled))
    assert "10 rows of each user-day, then 70 rows of each user-month" in text
    assert "one user-month: adds or removes at most 70 rows" in text
    assert "one user-day: adds at most 10 rows and removes at most 10" in text
    assert "rho = 700 / (2 · 57.735²) = 0.105" in text


# --- as the ledger prices it ----------------------------------------------------------


@pytest.mark.spec("QRY-9")
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("unit", ["user", "user-month", "user-day"])
def test_the_ledger_prices_what_is_told(noise: str, unit: str) -> None:
    measure = "rho" if noise == "gaussian" else "eps"
    sql = (
        "SELECT page, COUNT(*) AS n, AVG(amount) AS mean, STDDEV(amount) AS spread,"
        " SUM(amount) AS total, QUANTILE(amount, 0.9) AS top,"
        " COUNT(DISTINCT user_id) AS readers, COUNT(DISTINCT topic) AS topics"
        " FROM views GROUP BY page"
    )
    query = asked.query(sql, noise=noise, loss={unit: {measure: Fraction("0.25")}})
    at = 1 if noise == "gaussian" else 0
    ledger = priced(query)
    for name, by_unit in losses(query).items():
        for one, loss in by_unit.items():
            units = loss * LOSS_UNIT
            assert 0 <= ledger[name][one].coordinates[at] - units < 2, (name, one)
    spent = sum((by_unit[unit] for by_unit in losses(query).values()), Fraction(0))
    assert near(spent, "0.25")


def test_weights_divide_the_loss() -> None:
    sql = "SELECT COUNT(*) AS n, SUM(amount) AS total FROM views"
    query = asked.query(sql, weights={"n": 3})
    found = losses(query)
    assert near(found["n"]["user-day"], "0.0225")
    assert near(found["total"]["user-day"], "0.0075")


def test_keys_that_are_told_take_their_share() -> None:
    query = asked.query(
        asked.BY_TOPIC, discover={"delta": Fraction("1e-9"), "share": Fraction("0.4")}
    )
    assert near(losses(query)["views"]["user-day"], "0.018")
    assert query.compiled.selection is not None
    eps = query.compiled.selection.eps["user-day"]
    assert near(eps * eps / 2, "0.012")
    assert priced(query).keys() == {"keys", "views"}


def test_a_unit_that_is_bounded_by_too_many_rows_is_priced_all_the_same() -> None:
    query = asked.query(bounds={"user-day": 10**6})
    (mechanism,) = query.compiled.mechanisms()
    assert mechanism["contribution_bound"] == {"user-day": 10**6}
    assert priced(query)["views"].keys() == {"user", "user-month", "user-day"}


def test_the_largest_numbers_that_may_be_declared_are_priced() -> None:
    sql = "SELECT VARIANCE(amount) AS spread FROM views"
    query = asked.query(
        sql,
        bounds={"user-day": 10**6},
        loss={"user-day": {"rho": Fraction(1, 10**9)}},
    )
    assert set(priced(query)) == set(losses(query))


# --- statistics are told once ---------------------------------------------------------


def served(query: QueryFile) -> dict[str, tuple[str, ...]]:
    return {line.statistic.name: line.serves for line in query.compiled.lines}


def test_averages_of_one_column_share_what_they_need() -> None:
    sql = (
        "SELECT AVG(amount) AS mean, VAR_POP(amount) AS v, COUNT(amount) AS n"
        " FROM views"
    )
    assert served(asked.query(sql)) == {
        "mean.rows": ("mean", "v", "n"),
        "mean.total": ("mean", "v"),
        "v.squares": ("v",),
    }


def test_rows_and_values_are_counted_apart() -> None:
    sql = "SELECT COUNT(*) AS n, AVG(amount) AS mean, COUNT(topic) AS topics FROM views"
    assert list(served(asked.query(sql))) == ["n", "mean.rows", "mean.total", "topics"]


def test_no_two_statistics_have_one_name() -> None:
    sql = 'SELECT AVG(amount) AS a, COUNT(page) AS "a.rows" FROM views'
    assert served(asked.query(sql)) == {
        "a.rows+": ("a",),
        "a.total": ("a",),
        "a.rows": ("a.rows",),
    }
    longest = "n" * 128
    query = asked.query(f"SELECT AVG(amount) AS {longest} FROM views")
    assert all(len(name) <= 128 for name in served(query))
    assert len(priced(query)) == 2


@pytest.mark.parametrize(
    ("function", "population"), [("VAR_POP", True), ("VARIANCE", False)]
)
def test_who_is_everybody_is_kept(function: str, population: bool) -> None:
    query = asked.query(f"SELECT {function}(amount) AS v FROM views")
    assert query.request.query.aggregates[0].population is population


def test_attributes_are_those_that_answers_depend_on() -> None:
    sql = "SELECT page, COUNT(*) AS n FROM views WHERE amount > 3 GROUP BY page"
    assert asked.query(sql).compiled.attributes == ("amount", "page")
    sql = (
        "SELECT SUM(amount) AS n FROM views WHERE NOT (topic IS NULL OR page = 'help')"
    )
    assert asked.query(sql).compiled.attributes == ("amount", "page", "topic")


# --- refusals -------------------------------------------------------------------------


def test_what_nothing_bounds_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        asked.query("SELECT COUNT(*) AS n FROM views", bounds={})
    assert caught.value.code is Code.NOT_BOUNDED
    assert "`user-day: …`" in caught.value.render()


def test_a_cap_of_months_bounds_no_user_who_has_many() -> None:
    sql = "SELECT COUNT(*) AS n FROM views"
    bounds, loss = {"user-month": 5}, {"user": {"rho": Fraction(1)}}
    query = asked.query(sql, bounds=bounds, loss=loss, periods=["2026-10", "2026-11"])
    assert query.compiled.moves["user"].coming == 10
    node = asked.document(sql, bounds=bounds, loss=loss)
    del node["periods"]
    with pytest.raises(InputError) as caught:
        asked.read(node)
    assert caught.value.code is Code.NOT_BOUNDED


def test_trees_that_are_too_large_are_refused() -> None:
    tables = asked.TABLES.replace("step: 0.5, bounds: [0, 8]", "bounds: [0, 100000]")
    tables = tables.replace("type: number", "type: integer")
    sql = (
        "SELECT DATE_TRUNC('day', read_at) AS day, MEDIAN(amount) AS m FROM views"
        " GROUP BY day"
    )
    few = asked.query(sql, declared=tables, bins=2**14)
    assert few.compiled.lines[0].statistic.numbers == 2**15 - 2
    with pytest.raises(InputError) as caught:
        asked.query(sql, declared=tables, bins=2**16, periods="2026")
    assert caught.value.code is Code.DOES_NOT_FIT
    assert "`m` takes" in caught.value.render()


def test_groups_that_are_too_many_are_refused() -> None:
    pages = ", ".join(f"p{number}" for number in range(3000))
    tables = asked.TABLES.replace("[help, main]", f"[{pages}]")
    with pytest.raises(InputError) as caught:
        asked.query(declared=tables, periods={"from": "2026-01-01", "to": "2026-12-31"})
    assert caught.value.code is Code.DOES_NOT_FIT
    assert "1095000 groups" in caught.value.render()
