"""Programs of tasks, with the texts of the catalog as they are installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from modicum.escrow import tasks
from modicum.escrow.catalog import CATALOGUE
from modicum.escrow.evaluations import Evaluation
from modicum.escrow.programs import Program


@cache
def installed() -> dict[str, bytes]:
    """Return each text that is there, by its name and version.

    Whether it is the one that was vetted is seen where it is used.
    """
    folder = files("modicum.sandbox") / "programs"
    found = ((name, folder / entry.file) for name, entry in CATALOGUE.items())
    return {name: place.read_bytes() for name, place in found if place.is_file()}


def task_program(
    task: tasks.Task,
    evaluation: Evaluation,
    columns: Mapping[str, Sequence[str]] | None = None,
) -> Program:
    """Return the program of a task of the catalogue and its evaluation.

    Args:
        task: The task, of `mo.tasks`.
        evaluation: The evaluation, of `mo.tasks`.
        columns: By table, the columns that the answers will have, for checking names;
            None to check nothing.

    Raises:
        InputError: If they do not go together, or a table or column is not there.
        VerificationError: If a text is missing, or differs from the reviewed one.
    """
    return tasks.program(task, evaluation, installed(), columns)
