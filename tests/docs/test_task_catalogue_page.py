"""The page about the catalogue has all of it, as it is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from modicum.core.rationals import brief
from modicum.escrow import tasks
from modicum.escrow.catalog import CURRENT
from modicum.escrow.evaluations import LOOKS
from modicum.escrow.inspection import WHY
from modicum.escrow.tasks import MODELS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "task-catalogue.md"
TEXT = PAGE.read_text(encoding="utf-8")


def rows(head: str) -> list[list[str]]:
    """Return the rows of the table whose head begins so."""
    start = TEXT.index(head)
    lines = TEXT[start:].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_model_stands_there_with_its_parameters() -> None:
    expected = []
    for model in MODELS.values():
        text = "; ".join(
            f"`{name}` {brief(one.usual)}, from {brief(one.low)} to {brief(one.high)}"
            for name, one in model.parameters.items()
        )
        expected.append([f"`{model.name}`", model.kind, text or "none"])
    assert rows("| model | kind |") == expected


def test_every_evaluation_stands_there_with_its_range_and_text() -> None:
    expected = []
    for name, looks in LOOKS.items():
        entry = CURRENT[name]
        of = "answers" if looks == "answers" else f"a {looks}"
        ends = f"{entry.range.low} to {entry.range.high}"
        expected.append([f"[`{name}`](#{name})", of, ends, f"`{entry.name}`"])
    assert rows("| evaluation | of |") == expected


def test_every_evaluation_has_a_part_that_names_its_arguments() -> None:
    for name in LOOKS:
        part = re.search(rf"^### `{name}`\n(.+?)(?=^##)", TEXT, re.M | re.S)
        assert part is not None, name
        for argument in inspect.signature(getattr(tasks, name)).parameters:
            assert re.search(rf"`{name}\([^)]*{argument}", part[1]), (name, argument)
        alike = "All else is as for" in part[1]
        assert alike or "*No score*:" in part[1], name


def test_every_argument_of_a_task_stands_there() -> None:
    named = {row[0].strip("`") for row in rows("| argument | value |")}
    given = inspect.signature(tasks.fit).parameters.keys()
    assert named == given - {"model", "parameters"}


def test_every_remark_stands_there_with_its_reason() -> None:
    assert rows("| kind | remark |") == [
        [f"`{kind}`", why] for kind, why in WHY.items()
    ]
