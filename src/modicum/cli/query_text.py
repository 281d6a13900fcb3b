"""Printed output of `modicum query`: plans of queries, and answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from modicum.cli.output import (
    decision_text,
    mistake_view,
    note,
    print_json,
    print_table,
)
from modicum.core.document import Entries, Items, Kind, Node, Scalar
from modicum.core.errors import ModicumError, printable
from modicum.core.rationals import brief

if TYPE_CHECKING:
    from pathlib import Path

    from modicum.api.local import Decision
    from modicum.query.query_file import QueryFile
    from modicum.query.results import Answers

#: Maximum number of answer rows shown as a table; more are shown as CSV.
_ROWS_AS_TABLE = 1000


def print_plan(query: QueryFile, decision: Decision, *, whole: bool) -> None:
    """Print the loss of a query, the error of its answers, and the reasons."""
    from rich.table import Table

    from modicum.api.local.views.queries import notes_of
    from modicum.query.explanation import computed, outlook, scale_in_answers

    compiled = query.compiled
    print(decision_text(decision, whole=whole))
    print()
    measure = "eps" if compiled.request.noise == "laplace" else "rho"
    table = Table(box=None, pad_edge=False)
    for header in ("MECHANISM", "NOISE", "SCALE", *_units(query, measure)):
        table.add_column(header, no_wrap=True)
    for line in compiled.lines:
        losses = computed(compiled, line)
        table.add_row(
            printable(line.name),
            compiled.request.noise,
            brief(scale_in_answers(compiled, line)),
            *(_brief(losses.get(unit)) for unit in compiled.moves),
        )
    selection = compiled.selection
    if selection is not None:  # Its cost has a separate measure.
        cells = [
            f"eps {brief(selection.eps[unit])}, delta {brief(selection.delta[unit])}"
            if unit in selection.eps
            else "-"
            for unit in compiled.moves
        ]
        table.add_row(selection.name, "laplace", brief(selection.scale), *cells)
    print_table(table)
    for text in notes_of(query):
        print(f"\n{text}")
    print()
    for text in outlook(compiled, query.confidence):
        print(printable(text))


def print_answers(answers: Answers) -> None:
    """Print answers as a table, all of their rows: they are released only once."""
    if len(answers.rows) <= _ROWS_AS_TABLE:
        _print_rows(answers)
    else:
        from modicum.ops.files.answers import to_csv

        print("\n".join(map(printable, to_csv(answers).splitlines())))
    for text in answers.notes:
        print(printable(f"note: {text}"))


def _print_rows(answers: Answers) -> None:
    from rich.table import Table

    from modicum.query.results import ends_text, interval_of, key_text

    table = Table(box=None, pad_edge=False)
    for key in answers.keys:
        table.add_column(printable(key.upper()), no_wrap=True)
    for name in answers.aggregates:
        table.add_column(printable(name.upper()), no_wrap=True, justify="right")
        table.add_column(interval_of(answers.confidence), no_wrap=True)
    for row in answers.rows:
        cells = [*map(key_text, row.keys)]
        for one in row.estimates:
            cells += [_brief(one.value), ends_text(one)]
        table.add_row(*cells)
    print_table(table)


class AnswerOutput:
    """Writes answers, to a file or as output, and never loses them.

    Args:
        release: The id of the query.
        out: The file; None for none.
        write: Writes it.
        as_json: Whether JSON is printed (docs/reference/json.md).
    """

    def __init__(
        self,
        release: str,
        out: Path | None,
        write: Callable[[Answers], None],
        *,
        as_json: bool,
    ) -> None:
        self._release, self._out, self._write = release, out, write
        self._as_json = as_json
        self._answers: Answers | None = None
        self._written = False

    def complete(self, answers: Answers) -> None:
        """Receive the answers, before they are published."""
        self._answers = answers
        self._write(answers)
        self._written = self._out is not None

    def print_published(self) -> None:
        """Print the answers, or their file, once they are published."""
        if self._answers is None:
            return
        if self._as_json:
            print_json(self._document("published"))
        elif self._written:
            rows = len(self._answers.rows)
            shown = "one row" if rows == 1 else f"{rows} rows"
            print(f"{self._release}: published; {shown} in {self._out}")
        else:
            print_answers(self._answers)

    def saved(self, error: ModicumError) -> bool:
        """Print answers that were complete before a failure, with the error."""
        if self._answers is None:
            return False
        if self._as_json:
            print_json({**self._document("started"), **asdict(mistake_view(error))})
            return True
        if self._written:
            print(f"{self._release}: the answer is in {self._out}")
        else:
            print_answers(self._answers)
        note(error.render())
        note(
            f"{self._release}: its loss is spent and its answer is written, but it is"
            f" not yet published; run  modicum release publish {self._release}"
        )
        return True

    def _document(self, status: str) -> dict[str, object]:
        assert self._answers is not None  # The callers looked.
        return {
            "release": self._release,
            "status": status,
            "answers": self._answers.to_dict(),
        }


def release_text(node: Node) -> str:
    """Return a release as JSON with exact numbers."""
    match node:
        case Entries(entries=entries):
            pairs = (
                f"{json.dumps(key.text, ensure_ascii=False)}: {release_text(value)}"
                for key, value in entries
            )
            return "{" + ", ".join(pairs) + "}"
        case Items(items=items):
            return "[" + ", ".join(map(release_text, items)) + "]"
        case Scalar(kind=Kind.NUMBER | Kind.BOOLEAN | Kind.NULL, text=text):
            return text
        case Scalar(text=text):
            return json.dumps(text, ensure_ascii=False)


def _units(query: QueryFile, measure: str) -> list[str]:
    return [printable(f"{measure.upper()} / {one}") for one in query.compiled.moves]


def _brief(value: Fraction | None) -> str:
    return "-" if value is None else brief(value)
