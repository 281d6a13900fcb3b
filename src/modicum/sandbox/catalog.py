"""Programs of tasks, with the texts of the catalogue as they are installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from modicum.escrow import tasks
from modicum.escrow.evaluations import Evaluation
from modicum.escrow.programs import Program
from modicum.sandbox.texts import installed


def task_program(
    task: tasks.Task,
    evaluation: Evaluation,
    columns: Mapping[str, Sequence[str]] | None = None,
) -> Program:
    """Return the program of a task of the catalogue and how it is evaluated.

    Args:
        task: The task, of `mo.tasks`.
        evaluation: The evaluation, of `mo.tasks`.
        columns: By table, the columns that the answers will have, to look up what is
            named; None to look nothing up.

    Raises:
        InputError: If they do not go together, or a table or column is not there.
        VerificationError: If a text is missing, or is not what was vetted.
    """
    return tasks.program(task, evaluation, installed(), columns)
