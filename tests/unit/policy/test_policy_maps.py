"""Budget maps, by hand: tables, factors, sums, and what each refuses."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from modicum.accounting import (
    ApproxBudget,
    Budget,
    GdpBudget,
    PureBudget,
    Unlimited,
    ZcdpBudget,
)
from modicum.accounting.budget_format import limit_delta, read_measured
from modicum.core.document import Kind, Node, Scalar
from modicum.core.errors import Code, InputError
from modicum.core.yaml_reader import read_document
from modicum.policy.budget_maps import BudgetMap, Same, Table, apply_map, parse_map

DELTA = Fraction(1, 10**7)

#: The relaxation of DPolicy's first scenario, its points in no order.
RELAXATION = "{2.0: 10, 1.7: 3, 2.5: 20, 1.83: 5, 2.25: 15, 1.9: 7}"
POINTS = {"1.7": 3, "1.83": 5, "1.9": 7, "2.0": 10, "2.25": 15, "2.5": 20}


def read_budget(node: Node) -> Budget:
    if isinstance(node, Scalar) and node.kind is Kind.TEXT:
        return Unlimited()
    return read_measured(node, "a budget", limit_delta)


def parsed(text: str) -> BudgetMap:
    return parse_map(read_document(text.encode(), "map.yaml"), read_budget)


def applied(text: str, value: str | int | Fraction) -> Budget:
    return apply_map(parsed(text), ApproxBudget(Fraction(value), DELTA), "rule")


def table(options: str = "", points: str = RELAXATION) -> str:
    return f"{{map: {points}{', ' if options else ''}{options}}}"


def value_at(text: str, value: str | int | Fraction) -> Fraction:
    """Return the eps a map gives; the delta has to stay."""
    budget = applied(text, value)
    assert isinstance(budget, ApproxBudget)
    assert budget.delta == DELTA
    return budget.eps


# --- tables ---


@pytest.mark.parametrize("between", ["", "between: linear", "between: floor"])
@pytest.mark.parametrize(("key", "expected"), list(POINTS.items()))
def test_a_key_of_the_table_gives_exactly_its_value(
    between: str, key: str, expected: int
) -> None:
    assert value_at(table(between), key) == expected


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("1.765", "4"),  # Halfway from 1.7 to 1.83.
        ("1.75", "49/13"),  # 3 + 2 * 0.05/0.13
        ("1.8", "59/13"),  # 3 + 2 * 0.10/0.13
        ("1.865", "6"),
        ("1.95", "17/2"),
        ("2.1", "12"),  # 10 + 5 * 0.1/0.25
        ("2.3", "16"),  # 15 + 5 * 0.05/0.25
        ("2.4999999", "19.999998"),
    ],
)
def test_between_two_keys_the_table_is_a_straight_line(at: str, expected: str) -> None:
    assert value_at(table("between: linear"), at) == Fraction(expected)


@pytest.mark.parametrize(
    ("at", "expected"), [("1.7000001", 3), ("1.82", 3), ("1.84", 5), ("2.49", 15)]
)
def test_floor_takes_the_nearest_smaller_key(at: str, expected: int) -> None:
    assert value_at(table("between: floor"), at) == expected


@pytest.mark.parametrize(
    ("at", "expected"), [("1.6", "48/17"), ("0.17", "0.3"), ("0.000017", "0.00003")]
)
def test_below_the_first_key_proportional_runs_through_zero(
    at: str, expected: str
) -> None:
    assert value_at(table("below: proportional"), at) == Fraction(expected)


@pytest.mark.parametrize("at", ["2.5000001", "3", "1000000"])
def test_above_the_last_key(at: str) -> None:
    assert value_at(table("above: last"), at) == 20
    assert applied(table("above: unlimited"), at) == Unlimited()


@pytest.mark.spec("POL-5")
@pytest.mark.parametrize(
    ("options", "at", "where", "remedy"),
    [
        ("", "1.75", "between two keys", "between: linear"),
        ("between: error", "1.75", "between two keys", "between: linear"),
        ("below: proportional, above: last", "1.75", "between", "between: linear"),
        ("between: linear, above: last", "1.69", "below the first", "proportional"),
        ("between: linear, below: error", "1.69", "below the first", "proportional"),
        ("between: linear, below: proportional", "2.51", "above the last", "last"),
        ("between: linear, above: error", "2.51", "above the last", "above: last"),
    ],
)
def test_where_a_table_says_nothing_it_is_undefined(
    options: str, at: str, where: str, remedy: str
) -> None:
    with pytest.raises(InputError) as caught:
        applied(table(options), at)
    problem = caught.value.problems[0]
    assert problem.code is Code.MAP_UNDEFINED
    assert f"undefined at {at} (rule rule)" in problem.message
    assert where in problem.notes[0]
    assert "from 1.7 to 2.5" in problem.notes[0]
    assert remedy in problem.help
    assert str(problem.mark) == "map.yaml:1:1"


def test_a_table_of_one_point_is_that_point_and_its_ends() -> None:
    text = table("below: proportional, above: last", "{2: 6}")
    assert [value_at(text, at) for at in (1, 2, 3)] == [3, 6, 6]


def test_points_are_sorted_however_they_are_written() -> None:
    form = parsed(table()).form
    assert isinstance(form, Table)
    assert form.points == tuple((Fraction(x), Fraction(y)) for x, y in POINTS.items())
    assert (form.between, form.below, form.above) == ("error", "error", "error")


def test_the_relaxation_of_the_paper_never_falls() -> None:
    """The prototype handed the points unsorted to its interpolation."""
    relaxation = parsed(table("between: linear, below: proportional, above: last"))
    budgets = [
        apply_map(relaxation, PureBudget(Fraction(n, 1000)), "rule")
        for n in range(1, 3000)
    ]
    values = [budget.eps for budget in budgets if isinstance(budget, PureBudget)]
    assert len(values) == len(budgets)
    assert all(one <= other for one, other in pairwise(values))
    assert min(values) > 0


@pytest.mark.spec("POL-5")
@pytest.mark.parametrize(
    ("points", "said"),
    [
        ("{1: 2, 2: 1}", "falls from 2 at 1 to 1 at 2"),
        ("{2: 1, 1: 2}", "falls from 2 at 1 to 1 at 2"),
        ("{1: 1, 2: 3, 3: 2.999999999999999999999}", "falls from 3 at 2"),
    ],
)
def test_a_falling_table_is_refused_where_it_stands(points: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parsed(table(points=points))
    problem = caught.value.problems[0]
    assert problem.code is Code.MAP_NOT_MONOTONE
    assert said in problem.message
    assert str(problem.mark) == "map.yaml:1:7"


def test_a_flat_table_is_allowed() -> None:
    assert value_at(table("between: linear", "{1: 2, 3: 2}"), 2) == 2


@pytest.mark.parametrize("points", ["{1: 2, 1.0: 3}", "{0.1: 2, 1e-1: 2}"])
def test_a_key_in_two_spellings_is_a_key_that_stands_twice(points: str) -> None:
    with pytest.raises(InputError) as caught:
        parsed(table(points=points))
    assert "falls" not in caught.value.problems[0].message


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("sam", Code.UNKNOWN_CHOICE, 1),
        ("2.0", Code.WRONG_TYPE, 1),
        ("[same]", Code.WRONG_TYPE, 1),
        ("{}", Code.MISSING_KEY, 1),
        ("{between: linear}", Code.MISSING_KEY, 1),
        ("{scale: 0}", Code.OUT_OF_RANGE, 9),
        ("{scale: -1}", Code.OUT_OF_RANGE, 9),
        ('{scale: "2"}', Code.NOT_A_NUMBER, 9),
        ("{scale: 2, foo: 1}", Code.UNKNOWN_KEY, 12),
        ("{to: {eps: 0}}", Code.OUT_OF_RANGE, 12),
        ("{add: {eps: -1}}", Code.OUT_OF_RANGE, 13),
        ("{add: {eps: 1, delta: 1e-7}}", Code.KEYS_CONFLICT, 7),
        ("{map: {}}", Code.MAP_UNDEFINED, 7),
        ("{map: [1, 2]}", Code.WRONG_TYPE, 7),
        ("{map: {0: 1}}", Code.OUT_OF_RANGE, 8),
        ("{map: {-1: 1}}", Code.OUT_OF_RANGE, 8),
        ("{map: {1: 0}}", Code.OUT_OF_RANGE, 11),
        ("{map: {one: 1}}", Code.NOT_A_NUMBER, 8),
        ('{map: {"1": 1}}', Code.NOT_A_NUMBER, 8),
        ("{map: {1: .nan}}", Code.OUT_OF_RANGE, 11),
        ("{map: {.inf: 1}}", Code.OUT_OF_RANGE, 8),
        ("{map: {1: 1}, between: cubic}", Code.UNKNOWN_CHOICE, 24),
        ("{map: {1: 1}, below: last}", Code.UNKNOWN_CHOICE, 22),
        ("{map: {1: 1}, above: proportional}", Code.UNKNOWN_CHOICE, 22),
        ("{map: {1: 1}, beyond: last}", Code.UNKNOWN_KEY, 15),
    ],
)
def test_what_is_no_budget_map_is_refused_at_its_place(
    text: str, code: Code, column: int
) -> None:
    with pytest.raises(InputError) as caught:
        parsed(text)
    problem = caught.value.problems[0]
    assert problem.code is code
    assert str(problem.mark) == f"map.yaml:1:{column}"


@pytest.mark.parametrize(
    "text",
    [
        "{scale: 2, add: {eps: 1}}",
        "{to: {eps: 1}, scale: 2}",
        "{map: {1: 1}, to: {eps: 1}}",
    ],
)
def test_two_kinds_of_map_at_once_are_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parsed(text)
    assert caught.value.code in {Code.KEYS_CONFLICT, Code.UNKNOWN_KEY}


def test_a_word_that_is_no_map_is_told_all_forms_of_a_map() -> None:
    with pytest.raises(InputError) as caught:
        parsed("double")
    for form in ("same", "scale", "add", "to", "map"):
        assert form in caught.value.problems[0].help


# --- the other maps ---

ONE_OF_EACH: list[Budget] = [
    PureBudget(Fraction(2)),
    ApproxBudget(Fraction(2), DELTA),
    ZcdpBudget(Fraction(2)),
    GdpBudget(Fraction(2)),
    Unlimited(),
]


@pytest.mark.parametrize("budget", ONE_OF_EACH)
def test_same_and_to(budget: Budget) -> None:
    assert apply_map(parsed("same"), budget, "rule") == budget
    assert apply_map(parsed('"same"'), budget, "rule") == budget
    assert parsed("same").form == Same()
    assert apply_map(parsed("{to: {mu: 3}}"), budget, "rule") == GdpBudget(Fraction(3))
    assert apply_map(parsed("{to: unlimited}"), budget, "rule") == Unlimited()


@pytest.mark.parametrize(
    "text", ["{scale: 1.5}", "{map: {1: 1, 3: 5}, between: linear}"]
)
def test_scale_and_tables_act_on_the_parameter_and_leave_delta(text: str) -> None:
    assert [apply_map(parsed(text), budget, "rule") for budget in ONE_OF_EACH] == [
        PureBudget(Fraction(3)),
        ApproxBudget(Fraction(3), DELTA),
        ZcdpBudget(Fraction(3)),
        GdpBudget(Fraction(3)),
        Unlimited(),
    ]


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("{add: {eps: 1}}", 0, PureBudget(Fraction(3))),
        ("{add: {eps: 1}}", 1, ApproxBudget(Fraction(3), DELTA)),
        ("{add: {rho: 1}}", 2, ZcdpBudget(Fraction(3))),
        ("{add: {mu: 1}}", 3, GdpBudget(Fraction(3))),
        ("{add: {mu: 1}}", 4, Unlimited()),
        ("{add: unlimited}", 2, Unlimited()),
    ],
)
def test_add_adds_parameters_of_one_measure(
    text: str, before: int, after: Budget
) -> None:
    assert apply_map(parsed(text), ONE_OF_EACH[before], "rule") == after


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("{add: {rho: 1}}", 0),
        ("{add: {rho: 1}}", 1),
        ("{add: {mu: 1}}", 2),
        ("{add: {eps: 1}}", 2),
        ("{add: {eps: 1}}", 3),
    ],
)
def test_add_does_not_mix_measures(text: str, before: int) -> None:
    with pytest.raises(InputError) as caught:
        apply_map(parsed(text), ONE_OF_EACH[before], "attr:age")
    problem = caught.value.problems[0]
    assert problem.code is Code.MAP_MEASURE
    assert "attr:age" in problem.message
