"""Aggregates of pairs: what is measured for them, and what they cost."""

from __future__ import annotations

from typing import Any

import pytest
from samples import asked
from samples.declared import TABLES

from modicum.core.errors import Code, InputError
from modicum.query.model import Released
from modicum.query.parser import parse_query

_PAIRED = "CASE WHEN (age * amount) IS NOT NULL THEN {} END"
_AGE, _AMOUNT = _PAIRED.format("age"), _PAIRED.format("amount")
_COVARIANCE = f"(AVG(age * amount) - AVG({_AMOUNT}) * AVG({_AGE}))"
FORMULAS = {
    "COVAR_POP": _COVARIANCE,
    "COVAR_SAMP": f"{_COVARIANCE} * COUNT(age * amount) / (COUNT(age * amount) - 1)",
    "CORR": f"{_COVARIANCE} / (STDDEV_POP({_AMOUNT}) * STDDEV_POP({_AGE}))",
    "REGR_SLOPE": f"{_COVARIANCE} / VAR_POP({_AMOUNT})",
    "REGR_INTERCEPT": f"AVG({_AGE}) - {_COVARIANCE} / VAR_POP({_AMOUNT})"
    f" * AVG({_AMOUNT})",
    "REGR_R2": f"{_COVARIANCE} * {_COVARIANCE}"
    f" / (VAR_POP({_AMOUNT}) * VAR_POP({_AGE}))",
    "REGR_COUNT": "COUNT(age * amount)",
}


def measured(sql: str) -> set[Any]:
    query = parse_query(f"SELECT {sql} AS c FROM views", TABLES)
    return {(one.function, one.value, one.population) for one in query.aggregates}


@pytest.mark.spec("QRY-29")
@pytest.mark.parametrize("name", FORMULAS)
def test_an_aggregate_of_pairs_measures_what_its_formula_does(name: str) -> None:
    assert measured(f"{name}(age, amount)") == measured(FORMULAS[name])


def test_what_is_measured_for_one_serves_another() -> None:
    sql = "SELECT {} FROM views"
    pairs = "CORR(age, amount) AS a, COVAR_POP(age, amount) AS b"
    alone = parse_query(sql.format("CORR(age, amount) AS a"), TABLES)
    both = parse_query(sql.format(pairs), TABLES)
    assert both.aggregates == alone.aggregates
    assert len(both.computed) == 2
    assert not isinstance(both.computed[0].value, Released)


def test_a_pair_is_priced_by_the_bounds_of_its_product() -> None:
    pair = asked.query("SELECT COVAR_POP(amount, amount) AS c FROM views")
    alone = asked.query("SELECT AVG(amount * amount) AS c FROM views")
    norms = [line.norms for line in pair.compiled.lines]
    assert all(line.norms in norms for line in alone.compiled.lines)
    assert len(norms) > len(alone.compiled.lines)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("CORR(page, age)", Code.DOES_NOT_FIT),
        ("CORR(age)", Code.NOT_SQL),
        ("CORR(DISTINCT age, amount)", Code.NOT_SQL),
        ("SUM(CORR(age, amount))", Code.NOT_IN_SUBSET),
        ("CORR(age, amount) FILTER (WHERE mobile)", Code.NOT_IN_SUBSET),
    ],
)
def test_other_pairs_are_refused(sql: str, code: Code) -> None:
    with pytest.raises(InputError) as caught:
        parse_query(f"SELECT {sql} AS c FROM views", TABLES)
    assert caught.value.code is code
