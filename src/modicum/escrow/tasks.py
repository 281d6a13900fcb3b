"""Tasks: the use of answers, and the program that performs and evaluates it.

task = tasks.fit("sklearn:LogisticRegression", target="income", weight="people")
tasks.program(task, tasks.accuracy(cv=5), texts)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from modicum.core.canonical import Plain
from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import number_text
from modicum.escrow.arguments import (
    Number,
    exact,
    mistake,
    name_of,
    names_of,
    one_of,
    unknown_column,
    whole,
)
from modicum.escrow.catalog import CURRENT, text_of
from modicum.escrow.evaluations import (
    LOOKS,
    Evaluation,
    accuracy,
    balanced_accuracy,
    chi_square,
    r2,
    rank_correlation,
    relative_error,
    top_k_overlap,
    transfer_accuracy,
)
from modicum.escrow.own_code import own
from modicum.escrow.programs import Program

ModelKind: TypeAlias = Literal["classifier", "regressor"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a model.

    Attributes:
        low: The least value.
        high: The greatest.
        usual: Its default.
        whole: Whether it is a whole number.
    """

    low: Fraction
    high: Fraction
    usual: Fraction
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Model:
    """A model.

    Attributes:
        name: Its name, as `LIBRARY:CLASS`.
        kind: Whether it predicts classes or numbers.
        parameters: The parameters, by name.
    """

    name: str
    kind: ModelKind
    parameters: Mapping[str, Parameter]


def _whole(low: int, high: int, usual: int) -> Parameter:
    return Parameter(Fraction(low), Fraction(high), Fraction(usual), whole=True)


def _real(low: str, high: str, usual: str) -> Parameter:
    return Parameter(Fraction(low), Fraction(high), Fraction(usual))


_TREE: Final = {"max_depth": _whole(1, 20, 5), "min_samples_leaf": _whole(1, 1000, 1)}
_FOREST: Final = {
    "n_estimators": _whole(1, 50, 20),
    "max_depth": _whole(1, 20, 8),
    "min_samples_leaf": _whole(1, 1000, 1),
}

_LISTED: Final[tuple[tuple[str, ModelKind, dict[str, Parameter]], ...]] = (
    ("LogisticRegression", "classifier", {"C": _real("1/1000", "1000", "1")}),
    ("DecisionTreeClassifier", "classifier", _TREE),
    ("RandomForestClassifier", "classifier", _FOREST),
    ("GaussianNB", "classifier", {"var_smoothing": _real("1e-12", "1", "1e-9")}),
    ("LinearRegression", "regressor", {}),
    ("Ridge", "regressor", {"alpha": _real("0", "1000000", "1")}),
    ("DecisionTreeRegressor", "regressor", _TREE),
)

#: Every model by its name.
MODELS: Final[Mapping[str, Model]] = MappingProxyType(
    {
        f"sklearn:{name}": Model(f"sklearn:{name}", kind, MappingProxyType(parameters))
        for name, kind, parameters in _LISTED
    }
)


def settled(model: Model, given: Mapping[str, object]) -> dict[str, Plain]:
    """Return every parameter of a model, with defaults.

    Args:
        model: The model.
        given: The chosen values, by name.

    Raises:
        InputError: If a parameter is unknown, or its value is out of range.
    """
    for name in given:
        if name not in model.parameters:
            listed = ", ".join(f"`{one}`" for one in model.parameters)
            raise InputError(
                Problem(
                    Code.UNKNOWN_KEY,
                    f"`{model.name}` has no parameter `{name}`",
                    label=nearest(name, model.parameters),
                    help=f"it has {listed}" if listed else "it has none",
                )
            )
    found: dict[str, Plain] = {}
    for name, one in model.parameters.items():
        value = given.get(name)
        if one.whole:
            least, most, usual = int(one.low), int(one.high), int(one.usual)
            found[name] = usual if value is None else whole(name, value, least, most)
        else:
            chosen = (
                one.usual if value is None else exact(name, value, one.low, one.high)
            )
            found[name] = number_text(chosen)
    return found


__all__ = [
    "Answers",
    "Evaluation",
    "Fit",
    "accuracy",
    "answers",
    "balanced_accuracy",
    "chi_square",
    "fit",
    "own",
    "program",
    "r2",
    "rank_correlation",
    "relative_error",
    "top_k_overlap",
    "transfer_accuracy",
]


@dataclass(frozen=True, slots=True)
class Fit:
    """A model fitted to the rows of a table.

    Attributes:
        model: The model.
        table: Which table; None for the only one.
        arguments: The arguments of the program.
        columns: The columns that it names.
    """

    model: Model
    table: str | None
    arguments: Mapping[str, Plain] = field(repr=False)
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answers:
    """A table as it is.

    Attributes:
        table: Which table; None for the only one.
    """

    table: str | None


Task: TypeAlias = "Fit | Answers"


def fit(
    model: str,
    *,
    target: str,
    features: Sequence[str] | None = None,
    at_least: Number | None = None,
    weight: str | None = None,
    table: str | None = None,
    **parameters: object,
) -> Fit:
    """Return the task of fitting a model to the rows of a table.

    Args:
        model: Which one, as `sklearn:LogisticRegression`.
        target: The column to predict: for a classifier with few values, or with
            `at_least`.
        features: The input columns; None for all others.
        at_least: For a classifier, a public number: it predicts whether the target is
            at least that.
        weight: A column of counts, the weights of rows. Negative ones are 0.
        table: The table; None if there is only one.
        **parameters: The model's parameters; omitted ones have defaults.

    Raises:
        InputError: If a model or parameter is unknown, a value is out of range, or a
            column has two roles.
    """
    found = MODELS[one_of("model", model, MODELS)]
    names = None if features is None else names_of("features", features)
    parts = [name_of("target", target)]
    parts += [] if weight is None else [name_of("weight", weight)]
    parts += names or ()
    twice = next((one for one in parts if parts.count(one) > 1), None)
    if twice is not None:
        raise mistake(
            Code.DUPLICATE_NAME,
            f"`{twice}` has two roles in `fit`",
            "a column is the target, the weight or a feature",
        )
    if names == ():
        raise mistake(
            Code.OUT_OF_RANGE, "`features` is empty", "leave it out for all columns"
        )
    if at_least is not None and found.kind != "classifier":
        raise mistake(
            Code.TASK_MISMATCH,
            f"`{found.name}` predicts numbers, and `at_least` makes classes",
            "leave out `at_least`, or choose a classifier",
        )
    arguments: dict[str, Plain] = {
        "table": _table(table),
        "model": found.name,
        "target": target,
        "features": None if names is None else list(names),
        "weight": weight,
        "at_least": None
        if at_least is None
        else number_text(exact("at_least", at_least)),
        "parameters": settled(found, parameters),
    }
    return Fit(found, table, arguments, tuple(parts))


def answers(table: str | None = None) -> Answers:
    """Return the task of taking a table as it is.

    Args:
        table: The table; None if there is only one.

    Raises:
        InputError: If it is no name.
    """
    return Answers(_table(table))


def program(
    task: Task,
    evaluation: Evaluation,
    texts: Mapping[str, bytes],
    columns: Mapping[str, Sequence[str]] | None = None,
) -> Program:
    """Return the program of a task and its evaluation.

    Args:
        task: The task.
        evaluation: The evaluation.
        texts: The texts of the catalogue by name and version, as they are installed.
        columns: By table, the columns that the answers will have, for checking names;
            None to check nothing.

    Raises:
        InputError: If they do not go together, or a table or column is not there.
        VerificationError: If a text is missing, or differs from the reviewed one.
    """
    kind = task.model.kind if isinstance(task, Fit) else "answers"
    if evaluation.looks != kind:
        raise _apart(task, evaluation, kind)
    entry = CURRENT[evaluation.name]
    given = task.arguments if isinstance(task, Fit) else {"table": task.table}
    named = task.columns if isinstance(task, Fit) else ()
    if columns is not None:
        _look_up(task.table, (*named, *evaluation.columns), columns)
    return Program(
        "python",
        text_of(entry, texts),
        {**given, **evaluation.arguments},
        evaluation.range,
        evaluation.compares,
        entry.name,
    )


def _apart(task: Task, evaluation: Evaluation, kind: str) -> InputError:
    what = (
        f"`{task.model.name}` is a {task.model.kind}"
        if isinstance(task, Fit)
        else "`answers` has no model"
    )
    needs = {
        "classifier": "is for classifiers",
        "regressor": "is for regressors",
        "answers": "is for answers without a model",
    }
    fitting = ", ".join(f"`{name}`" for name, looks in LOOKS.items() if looks == kind)
    return mistake(
        Code.TASK_MISMATCH,
        f"{what}, and `{evaluation.name}` {needs[evaluation.looks]}",
        f"evaluate it with one of {fitting}",
    )


def _look_up(
    table: str | None, named: Sequence[str], columns: Mapping[str, Sequence[str]]
) -> None:
    """Refuse a table or column that answers will not have."""
    if table is None and len(columns) != 1:
        listed = ", ".join(f"`{one}`" for one in columns)
        raise mistake(
            Code.MISSING_KEY,
            f"there are {len(columns)} tables, and `table` is missing",
            f"one of {listed}",
        )
    name = next(iter(columns)) if table is None else table
    if name not in columns:
        listed = ", ".join(f"`{one}`" for one in columns)
        raise InputError(
            Problem(
                Code.UNKNOWN_NAME,
                f"unknown table `{name}`",
                label=nearest(name, columns),
                help=f"one of {listed}",
            )
        )
    for one in named:
        if one not in columns[name]:
            raise unknown_column(f"table `{name}`", one, columns[name])


def _table(table: str | None) -> str | None:
    return None if table is None else name_of("table", table)
