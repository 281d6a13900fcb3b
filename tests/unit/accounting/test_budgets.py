"""Budgets as values, as text, and as read from a file."""

from __future__ import annotations

from fractions import Fraction

import pytest

from modicum.accounting import (
    ApproxBudget,
    Budget,
    GdpBudget,
    PureBudget,
    Unlimited,
    ZcdpBudget,
)
from modicum.accounting.budget_reading import cost_delta, limit_delta, read_measured
from modicum.accounting.budgets import (
    budget_text,
    measure,
    parameter,
    with_parameter,
)
from modicum.core.errors import Code, InputError
from modicum.core.yaml_reader import read_document

EVERY: list[tuple[str, Budget]] = [
    ("{eps: 1.5}", PureBudget(Fraction(3, 2))),
    ("{eps: 1, delta: 1e-07}", ApproxBudget(Fraction(1), Fraction(1, 10**7))),
    ("{rho: 0.005}", ZcdpBudget(Fraction(1, 200))),
    ("{mu: 2}", GdpBudget(Fraction(2))),
]


def read(text: str) -> Budget:
    node = read_document(text.encode(), "policy.yaml")
    return read_measured(node, "the limit", limit_delta)


@pytest.mark.parametrize(("text", "budget"), EVERY)
def test_the_key_names_the_measure(text: str, budget: Budget) -> None:
    assert read(text) == budget
    assert budget_text(budget) == text
    assert measure(budget) == text.strip("{}").replace(": 1e-07", "").split(":")[0] + (
        ", delta" if "delta" in text else ""
    )


@pytest.mark.parametrize(("text", "budget"), EVERY)
def test_a_map_changes_the_parameter_and_leaves_delta(
    text: str, budget: Budget
) -> None:
    assert text
    number = parameter(budget)
    assert number is not None
    doubled = with_parameter(budget, 2 * number)
    assert parameter(doubled) == 2 * number
    assert with_parameter(doubled, number) == budget


def test_unlimited_has_no_parameter() -> None:
    assert parameter(Unlimited()) is None
    assert with_parameter(Unlimited(), Fraction(1)) == Unlimited()
    assert measure(Unlimited()) == budget_text(Unlimited()) == "unlimited"


def test_numbers_are_exact() -> None:
    assert read("{eps: 0.1, delta: 1.0E-7}") == ApproxBudget(
        Fraction(1, 10), Fraction(1, 10**7)
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{}", Code.NO_MEASURE),
        ("{delta: 1e-7}", Code.NO_MEASURE),
        ("{epsilon: 1}", Code.UNKNOWN_KEY),
        ("{eps: 1, rho: 1}", Code.KEYS_CONFLICT),
        ("{eps: 1, mu: 1}", Code.KEYS_CONFLICT),
        ("{rho: 1, mu: 1}", Code.KEYS_CONFLICT),
        ("{rho: 1, delta: 1e-7}", Code.KEYS_CONFLICT),
        ("{rdp: {8: 1}}", Code.NOT_SUPPORTED),
        ("{eps: 0}", Code.OUT_OF_RANGE),
        ("{eps: -1}", Code.OUT_OF_RANGE),
        ("{eps: .inf}", Code.OUT_OF_RANGE),
        ("{mu: .nan}", Code.OUT_OF_RANGE),
        ('{eps: "1"}', Code.NOT_A_NUMBER),
        ("{eps: 1, delta: 0}", Code.OUT_OF_RANGE),
        ("{eps: 1, delta: 1}", Code.OUT_OF_RANGE),
        ("{eps: 1, delta: 9.9e-19}", Code.OUT_OF_RANGE),
        ("{eps: 1, delta: null}", Code.NOT_A_NUMBER),
        ("1", Code.NO_MEASURE),
        ("[1]", Code.WRONG_TYPE),
    ],
)
def test_what_is_not_a_limit_is_refused_at_its_place(text: str, code: Code) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    assert caught.value.code is code
    mark = caught.value.problems[0].mark
    assert mark is not None
    assert (mark.file, mark.line) == ("policy.yaml", 1)


def test_a_limit_needs_a_unit_of_delta_and_a_cost_does_not() -> None:
    unit = read_document(b"1e-18", "f")
    less = read_document(b"9.9e-19", "f")
    assert limit_delta(unit) == cost_delta(unit) == Fraction(1, 10**18)
    assert cost_delta(less) == Fraction(99, 10**20)
    with pytest.raises(InputError, match="at least 1e-18"):
        limit_delta(less)
