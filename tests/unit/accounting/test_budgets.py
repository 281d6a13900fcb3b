"""Budgets as values, as text, and as read from a file."""

from __future__ import annotations

from fractions import Fraction

import pytest
from msgspec.structs import replace

from modicum.accounting import (
    COORDINATES,
    INFINITE,
    ApproxBudget,
    Budget,
    GdpBudget,
    Loss,
    PureBudget,
    Unlimited,
    ZcdpBudget,
)
from modicum.accounting.budget_format import cost_delta, limit_delta, read_measured
from modicum.accounting.budgets import (
    RenyiBudget,
    budget_text,
    measure,
    parameter,
    with_parameter,
)
from modicum.accounting.grid import order_index
from modicum.accounting.losses import total_of
from modicum.core.document import Node
from modicum.core.errors import Code, InputError
from modicum.core.yaml_reader import read_document
from modicum.ledger.decision.amounts import amounts, sums
from modicum.ledger.decision.balances import Balances
from modicum.ledger.decision.decide import verdict_over_history
from modicum.ledger.decision.single_release import RuleLoss, by_itself
from modicum.policy.budget_maps import apply_map, parse_map
from modicum.policy.compiler import compile_text
from modicum.release import parse_release, price

EVERY: list[tuple[str, Budget]] = [
    ("{eps: 1.5}", PureBudget(Fraction(3, 2))),
    ("{eps: 1, delta: 1e-7}", ApproxBudget(Fraction(1), Fraction(1, 10**7))),
    (
        "{eps: 1e-20, delta: 1e-12}",
        ApproxBudget(Fraction(1, 10**20), Fraction(1, 10**12)),
    ),
    ("{rho: 0.005}", ZcdpBudget(Fraction(1, 200))),
    ("{mu: 2}", GdpBudget(Fraction(2))),
]
BY_ORDER = RenyiBudget(
    (
        (Fraction(3, 2), Fraction(1, 100)),
        (Fraction(8), Fraction(1, 2)),
        (Fraction(32), Fraction(6, 5)),
    )
)


def read(text: str) -> Budget:
    node = read_document(text.encode(), "policy.yaml")
    return read_measured(node, "the limit", limit_delta)


@pytest.mark.parametrize(("text", "budget"), EVERY)
def test_the_key_names_the_measure(text: str, budget: Budget) -> None:
    assert read(text) == budget
    assert budget_text(budget) == text
    assert measure(budget) == text.strip("{}").replace(": 1e-7", "").split(":")[0] + (
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


def test_a_budget_by_order_is_read_in_any_order_and_written_in_one() -> None:
    text = "{rdp: {1.5: 0.01, 8: 0.5, 32: 1.2}}"
    assert read("{rdp: {32: 1.2, 8: 0.50, 1.5: 1e-2}}") == BY_ORDER
    assert read(text) == BY_ORDER
    assert budget_text(BY_ORDER) == text
    assert measure(BY_ORDER) == "rdp"


def test_a_budget_by_order_has_no_single_parameter() -> None:
    assert parameter(BY_ORDER) is None
    with pytest.raises(InputError, match="has no single parameter") as caught:
        with_parameter(BY_ORDER, Fraction(2))
    assert caught.value.code is Code.MAP_MEASURE


@pytest.mark.parametrize("form", ["{scale: 2}", "{add: {rho: 1}}", "{map: {1: 2}}"])
def test_a_map_refuses_to_change_a_budget_by_order(form: str) -> None:
    budget_map = parse_map(read_document(form.encode(), "policy.yaml"), reading)
    with pytest.raises(InputError, match="by Renyi orders \\(rule global\\)") as caught:
        apply_map(budget_map, BY_ORDER, "global")
    problem = caught.value.problems[0]
    assert problem.code is Code.MAP_MEASURE
    assert problem.mark is not None
    assert "{to: {rdp: …}}" in problem.help


def test_a_map_refuses_to_add_a_budget_by_order() -> None:
    text = b"{add: {rdp: {8: 1}}}"
    budget_map = parse_map(read_document(text, "policy.yaml"), reading)
    with pytest.raises(InputError, match="by Renyi orders"):
        apply_map(budget_map, PureBudget(Fraction(1)), "global")


def test_a_map_may_keep_or_replace_a_budget_by_order() -> None:
    for form, expected in (
        ("same", BY_ORDER),
        ("{to: {rho: 1}}", ZcdpBudget(Fraction(1))),
    ):
        budget_map = parse_map(read_document(form.encode(), "policy.yaml"), reading)
        assert apply_map(budget_map, BY_ORDER, "global") == expected


def reading(node: Node) -> Budget:
    return read_measured(node, "a budget", limit_delta)


POLICY = """
modicum: policy/v1
name: small
units: {user: {id: user_id}}
schema: {categories: {health: high}, attributes: {age: [low, {health: weak}]}}
policies:
  - {name: global, when: "true", unit: user, budget: {rdp: {8: 0.5, 32: 1.2}}}
per_release:
  - {name: cap, when: "true", unit: user, budget: {rdp: {8: 0.3}}}
"""


def verdict(units: int, order: int) -> RuleLoss:
    """What the rule over history says to a loss of so much at one order."""
    compiled = compile_text(POLICY.encode(), "policy.yaml")
    coordinates = [0] * COORDINATES
    coordinates[order_index(Fraction(order))] = units
    alone = total_of([Loss(tuple(coordinates))])
    found = verdict_over_history(Balances(compiled), compiled.rules[0])
    return replace(found, alone=alone, allowed=found.own_filter.admits(alone))


@pytest.mark.parametrize(
    ("order", "limit"), [(8, 5 * 10**11), (32, 12 * 10**11)], ids=["8", "32"]
)
@pytest.mark.parametrize("more", [0, 1])
def test_a_rule_by_order_is_explained_on_the_order_that_is_filled_most(
    order: int, limit: int, more: int
) -> None:
    loss = verdict(limit + more, order)
    found = amounts(loss)
    assert loss.allowed == (more == 0)
    assert found.measure == f"rdp({order})"
    assert (found.before, found.alone) == (0, limit + more)
    assert (found.together, found.limit) == (limit + more, limit)
    assert sums(loss) == found


@pytest.mark.parametrize("more", [0, 1])
def test_a_rule_for_single_releases_may_be_by_order(more: int) -> None:
    compiled = compile_text(POLICY.encode(), "policy.yaml")
    coordinates = [0] * COORDINATES
    coordinates[order_index(Fraction(8))] = 3 * 10**11 + more
    alone = total_of([Loss(tuple(coordinates))])
    loss = by_itself(compiled, compiled.release_rules[0], {alone: 1})
    found = amounts(loss)
    assert loss.allowed == (more == 0)
    assert (found.measure, found.limit) == ("rdp(8)", 3 * 10**11)
    assert (found.before, found.together) == (0, 3 * 10**11 + more)


def test_a_declared_cost_by_order_is_charged_at_every_order_it_bounds() -> None:
    compiled = compile_text(POLICY.encode(), "policy.yaml")
    text = b"""
release: r1
mechanisms:
  - {mechanism: declared, attributes: [age], cost: {user: {rdp: {8: 0.4, 32: 1}}}}
"""
    vocabulary = compiled.policy.vocabulary
    priced = price(
        parse_release(read_document(text, "release.yaml"), vocabulary), vocabulary
    )
    coordinates = priced.mechanisms[0].losses["user"].coordinates
    assert coordinates[order_index(Fraction(8))] == 4 * 10**11
    assert coordinates[order_index(Fraction(4))] == 4 * 10**11, "it does not fall"
    assert coordinates[order_index(Fraction(32))] == 10**12
    assert coordinates[order_index(Fraction(48))] == INFINITE
    assert coordinates[:3] == (INFINITE,) * 3


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
        ("{rdp: {}}", Code.WRONG_TYPE),
        ("{rdp: 8}", Code.WRONG_TYPE),
        ("{rdp: {7: 1}}", Code.OUT_OF_RANGE),
        ("{rdp: {1: 1}}", Code.OUT_OF_RANGE),
        ("{rdp: {8: 0}}", Code.OUT_OF_RANGE),
        ("{rdp: {eight: 1}}", Code.NOT_A_NUMBER),
        ("{rdp: {8: 1, 8.0: 2}}", Code.DUPLICATE_KEY),
        ("{rdp: {8: 1}, delta: 1e-7}", Code.KEYS_CONFLICT),
        ("{rdp: {8: 1}, rho: 1}", Code.KEYS_CONFLICT),
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
