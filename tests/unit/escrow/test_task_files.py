"""Task files: what is written is read back, and each mistake is told at its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.core.errors import InputError
from modicum.core.yaml_reader import read_document
from modicum.escrow import tasks
from modicum.escrow.evaluations import LOOKS
from modicum.escrow.task_files import TaskFile, read_task_file
from modicum.escrow.tasks import MODELS

EVALUATE = "\nevaluate: r2\n"
ANSWERS = "task: answers\n"


def read(text: str) -> TaskFile:
    return read_task_file(read_document(text.encode(), "task.yaml"))


def refused(text: str) -> tuple[str, str, int, int]:
    """Return the code of the first mistake, its words, and its line and column."""
    with pytest.raises(InputError) as caught:
        read(text)
    problem = caught.value.problems[0]
    assert problem.mark is not None, problem
    return (
        problem.code.value,
        problem.message,
        problem.mark.line,
        problem.mark.column,
    )


# --- what is written is read back ----------------------------------------------------

names = st.text("abcdefgh_", min_size=1, max_size=6)
odd = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1)
numbers = st.integers(-(10**9), 10**9) | st.decimals(
    -(10**6), 10**6, allow_nan=False, places=3
).map(str)
cells = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | names


@st.composite
def fits(draw: st.DrawFn) -> dict[str, Any]:
    columns = draw(st.lists(names, min_size=4, max_size=6, unique=True))
    model = draw(st.sampled_from(sorted(MODELS)))
    found: dict[str, Any] = {"fit": model, "target": columns[0]}
    if draw(st.booleans()):
        found["weight"] = columns[1]
    if draw(st.booleans()):
        found["features"] = columns[2:]
    if MODELS[model].kind == "classifier" and draw(st.booleans()):
        found["at_least"] = draw(numbers)
    if draw(st.booleans()):
        found["table"] = draw(names)
    if model == "sklearn:RandomForestClassifier":
        found["parameters"] = {"max_depth": draw(st.integers(1, 20))}
    if model == "sklearn:Ridge":
        found["parameters"] = {"alpha": draw(st.sampled_from(["0.5", "1e-3", 2]))}
    return found


@st.composite
def evaluations(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(st.sampled_from(sorted(LOOKS)))
    if LOOKS[name] != "answers":
        return {name: {"cv": 7} if draw(st.booleans()) else {}}
    if name == "chi_square":
        one, two, three = draw(st.lists(names, min_size=3, max_size=3, unique=True))
        return {name: {"rows": one, "columns": two, "count": three}}
    key, measure = draw(st.lists(names, min_size=2, max_size=2, unique=True))
    given: dict[str, Any] = {"keys": [key]}
    if draw(st.booleans()):
        rows = [[cell, 5] for cell in draw(st.lists(names, max_size=4, unique=True))]
        rows += [["zz", draw(st.integers(0, 99))]]
        given["reference"] = {"columns": [key, measure], "rows": rows}
    of_each: dict[str, dict[str, Any]] = {
        "rank_correlation": {"left": measure},
        "relative_error": {"column": measure, "floor": 2, "over": "mean"},
        "top_k_overlap": {"k": draw(st.integers(1, 100)), "by": measure},
    }
    return {name: {**of_each[name], **given}}


def plain(value: Any) -> Any:
    """Return numbers that are written as text as YAML has them, without quotes."""
    if isinstance(value, str) and value.lstrip("-")[:1].isdigit():
        return float(value)
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return value


@settings(max_examples=examples(400, plain=60))
@given(fits())
def test_a_fit_is_the_one_that_is_written(written: dict[str, Any]) -> None:
    found = read(json.dumps({"task": plain(written), "evaluate": "r2"})).task
    task = dict(written)
    model, target = task.pop("fit"), task.pop("target")
    assert found == tasks.fit(
        model, target=target, **task.pop("parameters", {}), **task
    )


@settings(max_examples=examples(400, plain=60))
@given(evaluations())
def test_an_evaluation_is_the_one_that_is_written(written: dict[str, Any]) -> None:
    found = read(json.dumps({"task": "answers", "evaluate": written})).evaluation
    ((name, task),) = written.items()
    assert found == getattr(tasks, name)(**task)
    if not task:
        assert read(f"{ANSWERS}evaluate: {name}").evaluation == found


@given(odd)
def test_names_are_taken_as_they_are(name: str) -> None:
    try:
        expected = tasks.answers(name)
    except InputError:
        refused(json.dumps({"task": {"answers": name}, "evaluate": "r2"}))
        return
    text = json.dumps({"task": {"answers": name}, "evaluate": "r2"})
    assert read(text).task == expected


@given(st.lists(cells, min_size=2, max_size=2))
def test_cells_of_a_public_table_keep_their_kind(row: list[Any]) -> None:
    table = {"columns": ["a", "b"], "rows": [row]}
    given: dict[str, Any] = {"column": "b", "keys": ["a"], "reference": table}
    text = json.dumps({"task": "answers", "evaluate": {"relative_error": given}})
    try:
        expected = tasks.relative_error(**given)
    except InputError:
        refused(text)
        return
    found = read(text).evaluation
    assert repr(found) == repr(expected)
    assert repr(found.arguments) == repr(expected.arguments)


def test_answers_and_numbers_have_short_forms() -> None:
    assert read(ANSWERS + "evaluate: {accuracy: {}}").task == tasks.answers()
    text = 'task: {fit: "sklearn:Ridge", target: t, parameters: {alpha: 1e-3}}'
    assert read(text + EVALUATE).task == tasks.fit(
        "sklearn:Ridge", target="t", alpha="0.001"
    )


# --- mistakes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "words", "place"),
    [
        ("evaluate: r2\n", "MOD103", "`task`", (1, 1)),
        (ANSWERS, "MOD103", "`evaluate`", (1, 1)),
        (ANSWERS + "evaluate: r2\nmore: 1\n", "MOD102", "`more`", (3, 1)),
        ("task: all" + EVALUATE, "MOD104", "`task`", (1, 7)),
        ("task: {}" + EVALUATE, "MOD103", "`fit`", (1, 7)),
        ("task: {answers: 7}" + EVALUATE, "MOD104", "`answers`", (1, 17)),
        ("task: {answers: a, fit: b}" + EVALUATE, "MOD102", "`fit`", (1, 20)),
        ('task: {fit: "sklearn:Ridge"}' + EVALUATE, "MOD103", "`target`", (1, 7)),
        ('task: {fit: "skl:Ridge", target: a}' + EVALUATE, "", "skl:Ridge", (1, 7)),
        (
            'task: {fit: "sklearn:Ridge", target: a, depth: 3}' + EVALUATE,
            "MOD102",
            "`depth`",
            (1, 41),
        ),
        (
            'task: {fit: "sklearn:Ridge", target: a, parameters: {depth: 3}}'
            + EVALUATE,
            "",
            "`depth`",
            (1, 7),
        ),
        (
            'task: {fit: "sklearn:Ridge", target: a, parameters: {weight: 3}}'
            + EVALUATE,
            "MOD102",
            "`weight`",
            (1, 53),
        ),
        (
            'task: {fit: "sklearn:Ridge", target: a, parameters: {alpha: much}}'
            + EVALUATE,
            "MOD105",
            "`alpha`",
            (1, 61),
        ),
        (
            'task: {fit: "sklearn:Ridge", target: a, features: b}' + EVALUATE,
            "MOD104",
            "`features`",
            (1, 51),
        ),
        (
            'task: {fit: "sklearn:Ridge", target: a, features: [b, 7]}' + EVALUATE,
            "MOD104",
            "`features`",
            (1, 55),
        ),
        (ANSWERS + "evaluate: []\n", "MOD104", "`evaluate`", (2, 11)),
        (ANSWERS + "evaluate: 7\n", "MOD104", "`evaluate`", (2, 11)),
        (ANSWERS + "evaluate: {r2: {}, accuracy: {}}\n", "MOD104", "2 of", (2, 11)),
        (ANSWERS + "evaluate: r3\n", "", '"r3"', (2, 11)),
        (ANSWERS + "evaluate: {r2: {folds: 5}}\n", "MOD102", "`folds`", (2, 17)),
        (ANSWERS + "evaluate: {r2: {cv: five}}\n", "MOD105", "`cv`", (2, 21)),
        (ANSWERS + "evaluate: {r2: {cv: 1}}\n", "", "`cv`", (2, 11)),
        (ANSWERS + "evaluate: {r2: {cv: 2.5}}\n", "", "`cv`", (2, 11)),
        (ANSWERS + "evaluate: {top_k_overlap: {k: 3}}\n", "MOD103", "`by`", (2, 27)),
        (ANSWERS + "evaluate: chi_square\n", "MOD103", "`rows`", (2, 11)),
        (
            ANSWERS + "evaluate: {relative_error: {column: a, keys: [b],\n"
            "  reference: {columns: [b, a]}}}\n",
            "MOD103",
            "`rows`",
            (3, 14),
        ),
        (
            ANSWERS + "evaluate: {relative_error: {column: a, keys: [b],\n"
            "  reference: {columns: [b, a], rows: [[[1], 2]]}}}\n",
            "MOD104",
            "a cell of `reference`",
            (3, 40),
        ),
        (
            ANSWERS + "evaluate: {relative_error: {column: a, keys: [b],\n"
            "  reference: {columns: [b, a], rows: [7]}}}\n",
            "MOD104",
            "a row of `reference`",
            (3, 39),
        ),
    ],
)
def test_a_mistake_is_told_at_its_place(
    text: str, code: str, words: str, place: tuple[int, int]
) -> None:
    found, message, *at = refused(text)
    assert words in message
    assert tuple(at) == place
    assert not code or found == code
