"""What cannot be computed is told before a row is read, or anything is spent."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from modicum.core.errors import Code, InputError
from modicum.risk.measurement import rdr, unseen_risk
from modicum.risk.measurement.charge import NoDraws

VISITS = pa.table({"patient": [1, 1, 2], "s": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]})
SUM = "SELECT SUM(x) FROM t"


def refused(query: str = SUM, **facts: Any) -> tuple[Code, str, str]:
    with pytest.raises(InputError) as caught:
        rdr(VISITS, query, **facts)
    (problem,) = caught.value.problems
    return problem.code, problem.message, problem.help


@pytest.mark.parametrize("number", ["1e400", "1e-400", "1e61", "9e-61"])
@pytest.mark.parametrize(
    "fact", ["sensitivity", "epsilons", "bounds", "negative bounds"]
)
def test_numbers_that_floats_do_not_hold(number: str, fact: str) -> None:
    given: dict[str, dict[str, Any]] = {
        "sensitivity": {"sensitivity": number},
        "epsilons": {"sensitivity": 1, "epsilons": [number]},
        "bounds": {"bounds": (0, number)},
        "negative bounds": {"bounds": (f"-{number}", 0)},
    }
    code, message, remedy = refused(**given[fact])
    assert code is Code.OUT_OF_RANGE
    assert number in message
    assert "1e60" in message + remedy


@pytest.mark.parametrize("number", ["1e60", "1e-60"])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_numbers_that_they_hold(number: str, mechanism: Any) -> None:
    noise: dict[str, Any] = {"mechanism": mechanism, "delta": "1e-6"}
    for width, epsilon in ((number, 1), (1, number)):
        risk = rdr(VISITS, SUM, sensitivity=width, epsilons=[epsilon], **noise)
        assert all(row.greatest > 0 for row in risk.rows())
    assert rdr(VISITS, SUM, bounds=(0, number)).rows()


@pytest.mark.parametrize("bounds", [(0, 10), {"x": (0, 10)}])
def test_bounds_that_nothing_would_keep(bounds: Any) -> None:
    """Where a query is asked again, values are as they are."""
    query = "SELECT SUM(x) + 0 FROM t"
    code, message, _ = refused(query, bounds=bounds, sensitivity=10)
    assert code is Code.KEYS_CONFLICT
    assert "no value of the query can be clamped" in message
    assert rdr(VISITS, query, sensitivity=10).rows()


def test_names_that_only_the_whole_query_knows() -> None:
    """DuckDB lets conditions read names of the output; parts of a query do not."""
    query = "SELECT s AS c, COUNT(*) FROM t WHERE c = 'a' GROUP BY s"
    code, message, _ = refused(query, sensitivity=1)
    assert (code, message) == (Code.UNKNOWN_NAME, "unknown column `c`")
    facts: dict[str, Any] = {"sensitivity": 1, "dimensions": 2}
    with pytest.raises(InputError, match="unknown column `c`"):
        unseen_risk(VISITS, query, **facts)
    assert rdr(VISITS, query.replace("c =", "s ="), sensitivity=1).rows()


def test_noise_that_cannot_be_drawn() -> None:
    facts: dict[str, Any] = {"sensitivity": 1, "unit": "patient", "rows_max": 1}
    unseen = unseen_risk(VISITS, "SELECT COUNT(*) FROM t", **facts)
    options: dict[str, Any] = {"choice": "private-selection", "allowance": 5}
    with pytest.raises(InputError, match="too large to be drawn") as caught:
        unseen.choose("0.5", **options, eps_select="1e-30", draws=NoDraws())
    assert "eps_select" in caught.value.problems[0].help
    assert unseen.choose("0.5", **options, eps_select="1e-3", draws=NoDraws()).charge


@pytest.mark.parametrize("now", ["LOCALTIMESTAMP", "LOCALTIME", "CURRENT_DATE"])
def test_times_that_pass(now: str) -> None:
    code, message, _ = refused(f"SELECT COUNT(*) FROM t WHERE {now} IS NULL")
    assert code is Code.NOT_IN_SUBSET
    assert "a different answer each time" in message
