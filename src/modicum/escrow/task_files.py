"""Task files: the use of answers, and its evaluation, as YAML.

task: {fit: "sklearn:LogisticRegression", target: income, weight: people}
evaluate: {accuracy: {cv: 5}}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from modicum.core.diagnostics import fail, placed
from modicum.core.document import Entries, Kind, Node, Scalar, describe
from modicum.core.errors import Code
from modicum.core.fields import Fields
from modicum.core.rationals import number_text
from modicum.core.reader import choice, items, number, text
from modicum.escrow import tasks
from modicum.escrow.evaluations import Evaluation

_TASKS: Final = "write  {fit: MODEL, target: COLUMN}  ,  {answers: TABLE}  or  answers"
_ONE: Final = "write  evaluate: NAME  or  evaluate: {NAME: {ARGUMENT: VALUE}}"


@dataclass(frozen=True, slots=True)
class TaskFile:
    """The contents of a task file.

    Attributes:
        task: The task.
        evaluation: How it is evaluated.
    """

    task: tasks.Task
    evaluation: Evaluation


def read_task_file(node: Node) -> TaskFile:
    """Return the contents of a task file.

    Raises:
        InputError: If anything in it is missing, unknown or out of range.
    """
    fields = Fields(node, "the task file", help="start with  task:")
    task, evaluate = fields.take("task"), fields.take("evaluate")
    fields.finish()
    return TaskFile(_task(task), _evaluation(evaluate))


# --- tasks ---------------------------------------------------------------------------


def _task(node: Node) -> tasks.Task:
    if isinstance(node, Scalar) and node.text == "answers":
        return tasks.answers()
    fields = Fields(node, "`task`", help=_TASKS)
    if "answers" in fields:
        table = text(fields.take("answers"), "`answers`")
        fields.finish()
        with placed(node):
            return tasks.answers(table)
    return _fit(node, fields)


def _fit(node: Node, fields: Fields) -> tasks.Fit:
    model = text(fields.take("fit", help=_TASKS), "`fit`")
    target = text(fields.take("target"), "`target`")
    given = {
        key: read(found, f"`{key}`")
        for key, read in _OF_FIT.items()
        if (found := fields.take_optional(key)) is not None
    }
    parameters = _parameters(fields.take_optional("parameters"))
    fields.finish()
    with placed(node):
        return tasks.fit(model, target=target, **given, **parameters)


def _parameters(node: Node | None) -> dict[str, Any]:
    if node is None:
        return {}
    fields = Fields(node, "`parameters`")
    found = {
        key.text: _quantity(value, f"`{key.text}`") for key, value in fields.rest()
    }
    taken = found.keys() & {*_OF_FIT, "target", "model"}
    if taken:
        raise fail(
            Code.UNKNOWN_KEY,
            f"`{min(taken)}` is not a parameter of a model",
            node,
            help="write it next to `fit`",
        )
    return found


# --- evaluations ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of an evaluation in a file.

    Attributes:
        make: Makes it.
        arguments: How each argument is read, by name.
        needs: The arguments that must be there.
    """

    make: Callable[..., Evaluation]
    arguments: Mapping[str, _Read] = field(repr=False)
    needs: tuple[str, ...] = ()


def _evaluation(node: Node) -> Evaluation:
    name, inner = _named(node)
    chosen = choice(name, "evaluation", _FORMS, Code.UNKNOWN_CHOICE)
    form = _FORMS[chosen]
    fields = Fields(inner, f"`{chosen}`", help=_ONE)
    given = {}
    for key, read in form.arguments.items():
        take = fields.take if key in form.needs else fields.take_optional
        found = take(key)
        if found is not None:
            given[key] = read(found, f"`{key}`")
    fields.finish()
    with placed(node):
        return form.make(**given)


def _named(node: Node) -> tuple[Scalar, Node]:
    """Return the name of an evaluation, and its arguments."""
    if isinstance(node, Scalar) and node.kind is Kind.TEXT:
        return node, Entries((), node.mark)
    if isinstance(node, Entries) and len(node.entries) == 1:
        return node.entries[0]
    what = describe(node)
    if isinstance(node, Entries):
        what = f"{len(node.entries)} of them"
    raise fail(
        Code.WRONG_TYPE,
        f"`evaluate` must be one evaluation, got {what}",
        node,
        help=_ONE,
    )


# --- values --------------------------------------------------------------------------

_Read: TypeAlias = Callable[[Node, str], Any]


def _quantity(node: Node, what: str) -> Any:
    """Return a number: a whole one as it is, any other as a decimal text."""
    found = number(node, what)
    return found.numerator if found.denominator == 1 else number_text(found)


def _texts(node: Node, what: str) -> list[str]:
    return [text(one, f"each of {what}") for one in items(node, what)]


def _table(node: Node, what: str) -> dict[str, Any]:
    fields = Fields(node, what)
    columns, rows = fields.take("columns"), fields.take("rows")
    fields.finish()
    return {
        "columns": _texts(columns, "`columns`"),
        "rows": [
            [_cell(cell) for cell in items(row, "a row of `reference`")]
            for row in items(rows, "`rows`")
        ],
    }


def _cell(node: Node) -> Any:
    if not isinstance(node, Scalar):
        message = f"a cell of `reference` is a single value, got {describe(node)}"
        raise fail(Code.WRONG_TYPE, message, node)
    match node.kind:
        case Kind.NUMBER:
            return _quantity(node, "a cell of `reference`")
        case Kind.BOOLEAN:
            return node.text.lower() == "true"
        case Kind.NULL:
            return None
        case Kind.TEXT:
            return text(node, "a cell of `reference`")


_OF_FIT: Final[Mapping[str, _Read]] = MappingProxyType(
    {"features": _texts, "at_least": _quantity, "weight": text, "table": text}
)
_FOLDS: Final[Mapping[str, _Read]] = MappingProxyType({"cv": _quantity})
_AGAINST: Final[Mapping[str, _Read]] = MappingProxyType(
    {"keys": _texts, "reference": _table}
)
_FORMS: Final[Mapping[str, _Form]] = MappingProxyType(
    {
        "accuracy": _Form(tasks.accuracy, _FOLDS),
        "balanced_accuracy": _Form(tasks.balanced_accuracy, _FOLDS),
        "transfer_accuracy": _Form(tasks.transfer_accuracy, _FOLDS),
        "r2": _Form(tasks.r2, _FOLDS),
        "rank_correlation": _Form(
            tasks.rank_correlation, {"left": text, "right": text, **_AGAINST}, ("left",)
        ),
        "relative_error": _Form(
            tasks.relative_error,
            {"column": text, "floor": _quantity, "over": text, **_AGAINST},
            ("column",),
        ),
        "top_k_overlap": _Form(
            tasks.top_k_overlap, {"k": _quantity, "by": text, **_AGAINST}, ("k", "by")
        ),
        "chi_square": _Form(
            tasks.chi_square,
            {"rows": text, "columns": text, "count": text},
            ("rows", "columns", "count"),
        ),
    }
)
