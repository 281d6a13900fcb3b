"""Each text of the catalogue, against what is obvious and slow."""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.escrow import tasks
from modicum.escrow.catalog import CATALOGUE
from modicum.escrow.evaluations import Evaluation
from modicum.escrow.programs import Cell, Program, Table
from modicum.sandbox.catalog import installed
from modicum.sandbox.trial import dry_run

Score = Callable[..., float | None]


@cache
def scoring(name: str) -> Score:
    """Return the function that a text of the catalogue defines."""
    space: dict[str, Any] = {"__name__": "program"}
    exec(compile(installed()[name], name, "exec"), space)
    found: Score = space["score"]
    return found


def scored(
    task: tasks.Task,
    evaluation: Evaluation,
    table: Table,
    reference: Table | None = None,
) -> float | None:
    program = tasks.program(task, evaluation, installed())
    compared = None if reference is None else {"t": plain(reference)}
    return scoring(program.catalogue)(
        {"t": plain(table)}, dict(program.arguments), compared
    )


def plain(table: Table) -> dict[str, Any]:
    return {
        "columns": list(table.columns),
        "rows": [list(row) for row in table.rows],
    }


def table(columns: str, rows: Sequence[Sequence[Any]]) -> Table:
    return Table(tuple(columns.split()), tuple(tuple(row) for row in rows))


# --- models ---------------------------------------------------------------------------

CLASSIFIERS: Mapping[str, Mapping[str, Any]] = {
    "sklearn:LogisticRegression": {"C": "0.5"},
    "sklearn:GaussianNB": {"var_smoothing": "1e-3"},
    "sklearn:DecisionTreeClassifier": {"max_depth": 3},
    "sklearn:RandomForestClassifier": {"n_estimators": 3, "max_depth": 2},
}
REGRESSORS: Mapping[str, Mapping[str, Any]] = {
    "sklearn:LinearRegression": {},
    "sklearn:Ridge": {"alpha": "0.5"},
    "sklearn:DecisionTreeRegressor": {"max_depth": 3, "min_samples_leaf": 2},
}


def estimator(name: str, parameters: Mapping[str, Any]) -> Any:
    """Return the model itself, with what the catalogue always gives it."""
    import sklearn.ensemble
    import sklearn.linear_model
    import sklearn.naive_bayes
    import sklearn.tree

    short = name.removeprefix("sklearn:")
    given = {
        key: float(Fraction(value)) if isinstance(value, str) else value
        for key, value in parameters.items()
    }
    if short in ("Ridge",) or short.startswith(("Decision", "Random")):
        given["random_state"] = 0
    if short == "RandomForestClassifier":
        given["min_samples_leaf"] = 1
    if short == "LogisticRegression":
        given["max_iter"] = 500
    rooms = ("ensemble", "linear_model", "naive_bayes", "tree")
    return next(
        getattr(room, short)(**given)
        for room in (getattr(sklearn, one) for one in rooms)
        if hasattr(room, short)
    )


def people(seed: int, cells: int) -> Table:
    """Return counts by town, age and income, as many cells as asked for."""
    dice = np.random.default_rng(seed)
    rows: list[list[Cell]] = []
    for place in range(cells):
        town = ["north", "south", "west"][place % 3]
        age = int(dice.integers(20, 70)) + place / 1000
        for income in ("high", "low"):
            lean = 3 if (income == "high") == (age > 45) else 1
            rows.append([town, age, income, int(dice.poisson(4 * lean)) + 1])
    return table("town age income people", rows)


def in_order(found: Table) -> list[tuple[Any, ...]]:
    """Return rows by what they have: target, features and weight."""
    rows: list[tuple[Any, ...]] = list(found.rows)
    return sorted(rows, key=lambda row: repr((row[2], [*row[:2]], float(row[3]))))


def one_by_one(found: Table, model: str, parameters: Mapping[str, Any]) -> Any:
    """Return what each group is told by a model of all other groups, with the truth.

    With as many folds as there are different features, this is what folds come to.
    """
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    rows = in_order(found)
    towns = OneHotEncoder(sparse_output=False).fit_transform([[r[0]] for r in rows])
    ages = StandardScaler().fit_transform([[row[1]] for row in rows])
    x = np.hstack([towns, ages])
    y = np.array([row[2] for row in rows])
    w = np.array([float(row[3]) for row in rows])
    result = y.copy()
    for left_out in {row[:2] for row in rows}:
        fold = np.array([row[:2] == left_out for row in rows])
        fitted = estimator(model, parameters)
        fitted.fit(x[~fold], y[~fold], w[~fold] / w[~fold].mean())
        result[fold] = fitted.predict(x[fold])
    return result, y, w


@pytest.mark.parametrize("model", CLASSIFIERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_accuracy_is_that_of_fitting_to_all_others(model: str, seed: int) -> None:
    found, parameters = people(seed, 12), CLASSIFIERS[model]
    result, y, w = one_by_one(found, model, parameters)
    task = tasks.fit(model, target="income", weight="people", **parameters)
    expected = w[result == y].sum() / w.sum()
    assert scored(task, tasks.accuracy(cv=12), found) == pytest.approx(expected)
    shares = [w[(result == y) & (y == one)].sum() / w[y == one].sum() for one in set(y)]
    expected = sum(shares) / len(shares)
    got = scored(task, tasks.balanced_accuracy(cv=12), found)
    assert got == pytest.approx(expected)


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_a_model_of_the_same_answers_transfers_as_it_is(model: str) -> None:
    """Where nothing is private, it is the accuracy."""
    found = people(7, 30)
    task = tasks.fit(model, target="income", weight="people", **CLASSIFIERS[model])
    alone = scored(task, tasks.accuracy(), found)
    assert scored(task, tasks.transfer_accuracy(), found, found) == alone
    assert scored(task, tasks.transfer_accuracy(), found) is None


def test_what_is_learned_is_private_and_what_is_asked_is_exact() -> None:
    """Private answers that say the opposite make a model that is always wrong."""
    ages = range(60)
    exact = table("age old n", [[age, "ny"[age >= 30], 1 + age] for age in ages])
    turned = table("age old n", [[age, "yn"[age >= 30], 5] for age in ages])
    task = tasks.fit("sklearn:DecisionTreeClassifier", target="old", weight="n")
    right = scored(task, tasks.transfer_accuracy(), exact, exact)
    wrong = scored(task, tasks.transfer_accuracy(), exact, turned)
    assert right is not None
    assert wrong is not None
    assert right > 0.9
    assert wrong < 0.1
    # Of the private rows only one side is there, so all are told to be of that side.
    young = Table(turned.columns, tuple(row for row in turned.rows if row[1] == "y"))
    score = scored(task, tasks.transfer_accuracy(), exact, young)
    weight = sum(1 + age for age in ages if age >= 30)
    assert score == pytest.approx(weight / sum(1 + age for age in ages))
    for one, other in ((exact, table("age n", [])), (table("age old n", []), exact)):
        assert scored(task, tasks.transfer_accuracy(), one, other) is None
        assert scored(task, tasks.transfer_accuracy(), other, one) is None


@pytest.mark.parametrize("model", REGRESSORS)
@pytest.mark.parametrize("seed", [1, 2])
def test_r2_is_that_of_fitting_to_all_others(model: str, seed: int) -> None:
    dice = np.random.default_rng(seed)
    rows: list[list[Cell]] = [
        [town, float(age), 2.0 * age + float(dice.normal(0, 20)), int(dice.integers(9))]
        for town, age in zip(["a", "b", "c"] * 5, dice.integers(0, 90, 15), strict=True)
    ]
    found = table("town age price people", [row for row in rows if row[3]])
    groups = len({row[:2] for row in found.rows})
    # Models are the same whatever the unit of the target, but for a penalty's size.
    ordered = in_order(found)
    prices = [row[2] for row in ordered]
    middle = math.fsum(prices) / len(prices)
    most = max(abs(one - middle) for one in prices)
    scaled = Table(
        found.columns,
        tuple((a, b, (c - middle) / most, d) for a, b, c, d in ordered),
    )
    result, y, w = one_by_one(scaled, model, REGRESSORS[model])
    spread = (w * (y - np.average(y, weights=w)) ** 2).sum()
    expected = max(1 - (w * (y - result) ** 2).sum() / spread, -1)
    task = tasks.fit(model, target="price", weight="people", **REGRESSORS[model])
    assert scored(task, tasks.r2(cv=groups), found) == pytest.approx(expected, abs=1e-6)


def test_a_model_of_what_hangs_together_is_right() -> None:
    """One that learns nothing would be right about half of these."""
    rows = [[place, "yes" if place >= 30 else "no"] for place in range(60)]
    found = table("age old", rows)
    for model in CLASSIFIERS:
        task = tasks.fit(model, target="old")
        score = scored(task, tasks.accuracy(), found)
        assert score is not None
        assert score > 0.9, model
    task = tasks.fit("sklearn:LogisticRegression", target="age", at_least=30)
    twice = table("age twice", [[age, 2 * age] for age in range(60)])
    assert scored(task, tasks.accuracy(), twice) >= 0.9  # type: ignore[operator]
    line = table("x y", [[x, 3 * x + 1] for x in range(20)])
    task = tasks.fit("sklearn:LinearRegression", target="y")
    assert scored(task, tasks.r2(), line) == pytest.approx(1)


def test_rows_with_the_same_features_are_never_on_both_sides() -> None:
    """Who could look up a row by its features would always be right."""
    dice = np.random.default_rng(3)
    rows: list[list[Cell]] = []
    for place in range(40):
        label = "ab"[int(dice.integers(2))]
        rows += [[f"t{place}", label], [f"t{place}", label]]
    task = tasks.fit("sklearn:DecisionTreeClassifier", target="label", max_depth=20)
    score = scored(task, tasks.accuracy(), table("town label", rows))
    assert score is not None
    assert score < 0.75


def test_the_order_of_rows_says_nothing() -> None:
    found = people(4, 20)
    turned = Table(found.columns, found.rows[::-1])
    for model, parameters in CLASSIFIERS.items():
        task = tasks.fit(model, target="income", weight="people", **parameters)
        assert scored(task, tasks.accuracy(), found) == scored(
            task, tasks.accuracy(), turned
        )


def test_negative_counts_are_none() -> None:
    found = people(5, 20)
    noise = tuple(("north", float(age), "low", -50) for age in range(10))
    task = tasks.fit("sklearn:LogisticRegression", target="income", weight="people")
    score = scored(task, tasks.accuracy(), found)
    assert score is not None
    assert scored(task, tasks.accuracy(), Table(found.columns, found.rows + noise)) == (
        score
    )


DEGENERATE = {
    "empty": table("town age income people", []),
    "one row": table("town age income people", [["a", 1, "low", 3]]),
    "one class": table(
        "town age income people", [["a", n, "low", 3] for n in range(9)]
    ),
    "no weight": table(
        "town age income people", [["a", n, "hl"[n % 2], -n] for n in range(9)]
    ),
    "no target": table("town age people", [["a", n, 3] for n in range(9)]),
    "all the same": table("town age income people", [["a", 1, "low", 3]] * 9),
    "all unknown": table("town age income people", [[None] * 4] * 9),
    "many classes": table(
        "town age income people", [["a", n, f"c{n}", 1] for n in range(50)]
    ),
    "many texts": table(
        "town age income people", [[f"t{n}", n, "hl"[n % 2], 1] for n in range(501)]
    ),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_where_there_is_nothing_to_learn_is_no_score(name: str) -> None:
    for evaluation in (tasks.accuracy(), tasks.balanced_accuracy()):
        task = tasks.fit("sklearn:LogisticRegression", target="income", weight="people")
        assert scored(task, evaluation, DEGENERATE[name]) is None
    task = tasks.fit("sklearn:Ridge", target="income", weight="people")
    assert scored(task, tasks.r2(), DEGENERATE[name]) is None


# --- answers --------------------------------------------------------------------------

NUMBERS = st.integers(-5, 20) | st.floats(-10, 10) | st.none()


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=12))
@settings(max_examples=examples(100, plain=50), deadline=None)
def test_rank_correlation_is_that_of_scipy(pairs: list[tuple[Any, Any]]) -> None:
    from scipy.stats import spearmanr  # type: ignore[import-untyped]

    found = table("left right", pairs)
    score = scored(tasks.answers(), tasks.rank_correlation("left", "right"), found)
    known = [pair for pair in pairs if None not in pair]
    varied = all(len(set(side)) > 1 for side in zip(*known, strict=True))
    if len(known) < 3 or not varied:
        assert score is None
    else:
        expected = spearmanr(*zip(*known, strict=True)).statistic
        assert score == pytest.approx(expected, abs=1e-8)


KEYED = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-3, 9), max_size=8)


def keyed(numbers: Mapping[str, int]) -> Table:
    return table("town people", [[town, many] for town, many in numbers.items()])


@given(KEYED, KEYED)
@settings(max_examples=examples(100, plain=50), deadline=None)
def test_rows_are_matched_by_their_keys(
    one: dict[str, int], true: dict[str, int]
) -> None:
    """The private answers are the reference, and the exact ones are what is true."""
    by = ["town"]
    both = one.keys() | true.keys()
    errors = [
        min(
            Fraction(abs(one.get(key, 0) - true.get(key, 0)))
            / max(abs(true.get(key, 0)), 2),
            Fraction(1),
        )
        for key in both
    ]
    for over, middle in (("median", statistics.median), ("mean", statistics.mean)):
        task = tasks.relative_error("people", keys=by, floor=2, over=over)
        score = scored(tasks.answers(), task, keyed(true), keyed(one))
        assert (score is None) == (not both)
        if both:
            assert score == pytest.approx(float(middle(errors)), abs=1e-8)
    top = tasks.top_k_overlap(3, by="people", keys=by)
    score = scored(tasks.answers(), top, keyed(true), keyed(one))
    first, second = (
        set(sorted(numbers, key=lambda key: (-numbers[key], key))[:3])
        for numbers in (one, true)
    )
    expected = len(first & second) / len(second) if second else None
    assert score == (None if expected is None else pytest.approx(expected, abs=1e-8))


def test_a_public_table_takes_the_place_of_the_exact_answers() -> None:
    here = keyed({"a": 10, "b": 30, "c": 20, "d": 5})
    public = table("year people town", [[1, 12, "a"], [1, 10, "b"], [1, None, "c"]])
    evaluation = tasks.relative_error("people", keys=["town"], reference=public)
    program = tasks.program(tasks.answers(), evaluation, installed())
    assert not program.compares
    # 2 of 12; 20 of 10, which is at most 1; and two that the public table lacks.
    assert scored(
        tasks.answers(),
        tasks.relative_error("people", keys=["town"], reference=public, over="mean"),
        here,
    ) == pytest.approx((1 / 6 + 1 + 1 + 1) / 4)
    fractions = {"columns": ["town", "people"], "rows": [["a", "1e1"], ["b", 30.0]]}
    exact = tasks.relative_error(
        "people", keys=["town"], reference=fractions, over="mean"
    )
    assert scored(tasks.answers(), exact, here) == pytest.approx(0.5)


COMPARING = (
    tasks.relative_error("people", keys=["town"]),
    tasks.rank_correlation("people", keys=["town"]),
    tasks.top_k_overlap(2, by="people", keys=["town"]),
)


@pytest.mark.parametrize("evaluation", COMPARING, ids=lambda one: str(one.name))
def test_of_private_answers_alone_nothing_is_compared(evaluation: Evaluation) -> None:
    here = keyed({"a": 10, "b": 30, "c": 20, "d": 5})
    assert scored(tasks.answers(), evaluation, here) is None
    assert scored(tasks.answers(), evaluation, here, here) is not None
    twice = table("town people", [["a", 1], ["a", 2], ["b", 4], ["c", 5]])
    assert scored(tasks.answers(), evaluation, twice, here) is None
    assert scored(tasks.answers(), evaluation, here, twice) is None
    other = table("village people", [["a", 1], ["b", 2]])
    assert scored(tasks.answers(), evaluation, here, other) is None


def test_the_rank_of_one_column_is_compared_by_keys() -> None:
    here = keyed({"a": 10, "b": 30, "c": 20, "d": 5})
    turned = keyed({"d": 5, "c": 21, "b": 29, "a": 10, "e": 1000})
    evaluation = tasks.rank_correlation("people", keys=["town"])
    assert scored(tasks.answers(), evaluation, here, turned) == 1


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(-4, 30)),
        max_size=15,
    )
)
@settings(max_examples=examples(100, plain=50), deadline=None)
def test_chi_square_is_that_of_scipy(cells: list[tuple[str, str, int]]) -> None:
    from scipy.stats import chi2_contingency

    found = table("a b n", cells)
    score = scored(tasks.answers(), tasks.chi_square("a", "b", "n"), found)
    sums = np.array(
        [
            [sum(n for a, b, n in cells if (a, b) == (one, two)) for two in "xyz"]
            for one in "abc"
        ]
    )
    sums = np.maximum(sums, 0)
    sums = sums[sums.sum(axis=1) > 0][:, sums.sum(axis=0) > 0]
    if min(sums.shape) < 2:
        assert score is None
    else:
        expected = chi2_contingency(sums, correction=False).pvalue
        assert score == pytest.approx(expected, abs=1e-8)


def test_sums_below_zero_count_as_none() -> None:
    cells = [["a", "x", 10], ["a", "y", -9], ["b", "x", 3], ["b", "y", 4]]
    more = [["a", "y", 2], ["c", "x", -7], ["c", "y", 0]]
    task = tasks.chi_square("a", "b", "n")
    # What is left is 10, 0, 3 and 4, with one degree of freedom.
    distance = 17 * (10 * 4 - 0 * 3) ** 2 / (10 * 7 * 13 * 4)
    expected = math.erfc(math.sqrt(distance / 2))
    score = scored(tasks.answers(), task, table("a b n", cells + more))
    assert score == pytest.approx(expected, abs=1e-8)


# --- whatever comes -------------------------------------------------------------------

CELLS = (
    st.none()
    | st.booleans()
    | st.sampled_from([10**400, -(10**400), 2**63, 1e308, 5e-324, -0.0])
    | st.integers(-3, 3)
    | st.floats()
    | st.sampled_from(["a", "b", "", "1"])
)
WILD = st.lists(st.tuples(CELLS, CELLS, CELLS, CELLS), max_size=12).map(
    lambda rows: table("town age income people", rows)
)
EVERY: tuple[tuple[tasks.Task, Evaluation], ...] = (
    *(
        (tasks.fit(model, target="income", weight=weight), evaluation)
        for model in CLASSIFIERS
        for weight, evaluation in (
            ("people", tasks.accuracy(cv=2)),
            (None, tasks.balanced_accuracy(cv=3)),
        )
    ),
    (
        tasks.fit("sklearn:LogisticRegression", target="income", at_least="0.5"),
        tasks.accuracy(cv=2),
    ),
    *(
        (tasks.fit(model, target="income", weight=weight), tasks.transfer_accuracy(2))
        for model in CLASSIFIERS
        for weight in ("people", None)
    ),
    *(
        (tasks.fit(model, target="income", weight=weight), tasks.r2(cv=2))
        for model in REGRESSORS
        for weight in ("people", None)
    ),
    (tasks.answers(), tasks.rank_correlation("age", "income")),
    (tasks.answers(), tasks.rank_correlation("age", keys=["town"])),
    (tasks.answers(), tasks.relative_error("age", keys=["town"])),
    (tasks.answers(), tasks.relative_error("age", keys=["town"], over="mean")),
    (tasks.answers(), tasks.top_k_overlap(2, by="age", keys=["town"])),
    (tasks.answers(), tasks.chi_square("town", "income", "people")),
)


@pytest.mark.parametrize(
    ("task", "evaluation"), EVERY, ids=lambda one: getattr(one, "name", "")
)
@given(found=WILD, other=WILD)
@settings(max_examples=examples(60, plain=12), deadline=None)
def test_whatever_comes_is_a_score_in_range_or_none(
    task: tasks.Task, evaluation: Evaluation, found: Table, other: Table
) -> None:
    reference = other if evaluation.compares else None
    score = scored(task, evaluation, found, reference)
    if score is not None:
        assert type(score) is float
        assert evaluation.range.low <= score <= evaluation.range.high


def test_scores_are_the_same_in_every_process() -> None:
    found, model = people(6, 30), "sklearn:RandomForestClassifier"
    task = tasks.fit(model, target="income", weight="people", **CLASSIFIERS[model])
    program = tasks.program(task, tasks.accuracy(), installed())
    first, second = (dry_run(program, {"t": found}) for _ in range(2))
    assert first.score is not None, first
    assert first == second
    assert first.printed == ""
    assert first.score == scored(task, tasks.accuracy(), found)


def test_no_table_or_another_is_no_score() -> None:
    for task, evaluation in EVERY:
        program: Program = tasks.program(task, evaluation, installed())
        score = scoring(program.catalogue)
        assert score({}, dict(program.arguments), None) is None
        two = {"a": plain(people(1, 3)), "b": plain(people(1, 3))}
        assert score(two, dict(program.arguments), None) is None


def test_every_text_was_looked_at() -> None:
    tried = {tasks.program(*one, installed()).catalogue for one in EVERY}
    assert tried == set(CATALOGUE)
    for name, entry in CATALOGUE.items():
        assert hashlib.sha256(installed()[name]).hexdigest() == entry.digest
