"""Public sensitivities bound what the worst tables do, and are reached."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from budget import examples, seed
from oracle import influence as oracle

from modicum.core.errors import Code, InputError
from modicum.risk.question import Question, read_question
from modicum.risk.sensitivity import (
    PublicBounds,
    public_sensitivity,
    published_sensitivity,
    read_bounds,
)

COLUMNS = {"t": ("u", "g", "x")}
NAMES = {
    "COUNT(*)": "rows",
    "COUNT(x)": "count",
    "COUNT(DISTINCT x)": "distinct",
    "SUM(x)": "sum",
    "AVG(x)": "avg",
    "VAR_POP(x)": "var_pop",
    "VARIANCE(x)": "var_samp",
    "STDDEV_POP(x)": "stddev_pop",
    "STDDEV(x)": "stddev_samp",
    "MIN(x)": "min",
    "MAX(x)": "max",
    "MEDIAN(x)": "median",
}


def asked(outputs: str, keys: str = "", unit: str | None = None) -> Question:
    select = f"{keys}, {outputs}" if keys else outputs
    group = f" GROUP BY {keys}" if keys else ""
    return read_question(f"SELECT {select} FROM t{group}", COLUMNS, unit)


def bound(low: float, high: float, rows_max: int | None = None) -> PublicBounds:
    return PublicBounds({"": read_bounds(low, high)}, rows_max)


@pytest.mark.spec("RSK-15")
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("output", list(NAMES))
@pytest.mark.parametrize(("low", "high"), [(0, 8), (-3, 5), (2, 8), (-8, -2)])
def test_no_table_moves_farther_and_some_as_far(
    norm: str, output: str, low: int, high: int
) -> None:
    draw = random.Random(f"{seed()}{norm}{output}{low}")
    farthest = 0.0
    wanted = public_sensitivity(asked(output), bound(low, high), norm)  # type: ignore[arg-type]
    for _ in range(examples(40)):
        values = [draw.choice([low, high, None, 0]) for _ in range(draw.randint(1, 6))]
        inside = [one if one is None else min(max(one, low), high) for one in values]
        moved = abs(_answer(output, inside) - _answer(output, inside[1:]))
        assert moved <= float(wanted) * (1 + 1e-12)
        farthest = max(farthest, moved)
    # From one value, or two, to none or one.
    for table in ([low], [high], [low, high], [high, low], [low, high, high]):
        moved = abs(_answer(output, table) - _answer(output, table[1:]))
        farthest = max(farthest, moved)
    if NAMES[output] in {"min", "max", "median", "avg"}:
        # From one end to the other takes several rows of one person.
        whole = [low, *[high] * 50]
        moved = abs(_answer(output, whole) - _answer(output, [low]))
        farthest = max(farthest, moved)
        assert moved <= float(wanted) * (1 + 1e-12)
    assert farthest >= 0.9 * float(wanted)


def _answer(output: str, values: Sequence[float | None]) -> float:
    return oracle.aggregate(NAMES[output], list(values))


@pytest.mark.spec("RSK-15")
@pytest.mark.parametrize(
    ("outputs", "keys", "rows_max", "l1", "l2"),
    [
        ("COUNT(*)", "", 4, 4, 4),
        ("COUNT(*)", "g", 4, 4, 4),  # All in one group, or each in another.
        ("SUM(x)", "g", 4, 32, 32),
        ("AVG(x)", "g", 4, 32, 16),
        ("AVG(x)", "", None, 8, 8),
        ("COUNT(*), SUM(x)", "", 3, 27, math.sqrt(9 + 576)),
        ("MAX(x), MIN(x)", "", None, 16, math.sqrt(128)),
        ("STDDEV(x)", "", None, math.sqrt(32), math.sqrt(32)),
    ],
)
def test_sensitivities_of_persons_with_several_rows(
    outputs: str, keys: str, rows_max: int | None, l1: float, l2: float
) -> None:
    question = asked(outputs, keys, "u")
    for norm, wanted in (("l1", l1), ("l2", l2)):
        found = public_sensitivity(question, bound(0, 8, rows_max), norm)  # type: ignore[arg-type]
        assert math.isclose(float(found), wanted, rel_tol=1e-12)
        assert found >= Fraction(wanted) or math.isclose(found, wanted, rel_tol=1e-15)


@pytest.mark.parametrize(
    ("outputs", "unit", "bounds", "word"),
    [
        ("SUM(x)", None, PublicBounds({}), "have no bound"),
        ("COUNT(*)", "u", PublicBounds({}), "any number of rows"),
        ("SUM(x) / 2", None, bound(0, 1), "more than one aggregate"),
        ("SUM(x + 1)", None, PublicBounds({"x": read_bounds(0, 1)}), "have no bound"),
    ],
)
def test_what_has_no_public_sensitivity_says_what_is_missing(
    outputs: str, unit: str | None, bounds: PublicBounds, word: str
) -> None:
    with pytest.raises(InputError, match=word) as caught:
        public_sensitivity(asked(outputs, unit=unit), bounds, "l1")
    assert caught.value.problems[0].code is Code.NOT_BOUNDED
    assert caught.value.problems[0].help


def test_bounds_by_name_hold_for_that_value_only() -> None:
    named = {"x": read_bounds(0, 2), "": read_bounds(0, 10)}
    found = public_sensitivity(asked("SUM(x), SUM(x * 2)"), PublicBounds(named), "l1")
    assert found == 12


@pytest.mark.parametrize(
    ("low", "high"), [(1, 0), ("a", 1), (float("nan"), 1), (0, float("inf")), (None, 1)]
)
def test_bounds_that_are_none_are_refused(low: object, high: object) -> None:
    with pytest.raises(InputError):
        read_bounds(low, high)


@pytest.mark.parametrize(
    ("outputs", "wanted"), [("COUNT(*)", 1), ("SUM(x)", 96), ("AVG(x)", "96.75/1000")]
)
def test_published_sensitivities_are_those_of_the_rows(
    outputs: str, wanted: str | int
) -> None:
    top, _, bottom = str(wanted).partition("/")
    found = published_sensitivity(asked(outputs), 2.75, 99.5, 1000)
    assert found == Fraction(top) / Fraction(bottom or 1) + (
        Fraction(1) if outputs == "SUM(x)" else 0
    )


@pytest.mark.parametrize(
    "outputs", ["MAX(x)", "COUNT(*), COUNT(x)", "COUNT(DISTINCT x)"]
)
def test_no_published_rule_knows_others(outputs: str) -> None:
    with pytest.raises(InputError, match="published rule"):
        published_sensitivity(asked(outputs), 0, 1, 10)


def test_a_published_range_of_nothing_is_refused() -> None:
    with pytest.raises(InputError):
        published_sensitivity(asked("SUM(x)"), math.nan, math.nan, 0)
    with pytest.raises(InputError):
        published_sensitivity(asked("SUM(x)"), 0.25, 0.75, 5)
