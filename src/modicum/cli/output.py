"""Output of commands: one JSON document, or text."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from msgspec.structs import replace

from modicum.cli.exit_codes import Exit, exit_for
from modicum.core.diagnostics import shortened
from modicum.core.errors import ModicumError, printable
from modicum.core.extras import needing_extras
from modicum.core.rationals import unpadded

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from modicum.api.local import Decision
    from modicum.api.schema.problem import Mistake
    from modicum.api.schema.shape import Column, Shape


T = TypeVar("T")
R = TypeVar("R")

#: So wide that every table fits.
_ENDLESS = 100_000


def console(*, stderr: bool = False) -> Console:
    """Return a console for text output; color only on a terminal, never alone."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 140  # Piped: nothing is cut for want of room.
    return Console(stderr=stderr, highlight=False, width=width)


def print_table(table: Table, *, spare: Sequence[str] = ()) -> None:
    """Print a table without trailing blanks.

    Where space is short, spare columns are left out. Cells that do not wrap are never
    cut; lines exceed the terminal then.
    """
    from rich.console import Console

    wide, drawn = Console(width=_ENDLESS), console()
    for header in spare:
        if wide.measure(table).maximum > drawn.width:
            table = _without(table, header)
    for column in table.columns:
        if column.no_wrap:
            shown = (column.header, *column.cells)
            column.min_width = max(wide.measure(one).maximum for one in shown)
    drawn.width = max(drawn.width, wide.measure(table).minimum)
    with drawn.capture() as caught:
        drawn.print(table)
    for line in caught.get().splitlines():
        print(line.rstrip())


def print_shapes(
    kind: type[Shape],
    rows: Sequence[Shape],
    texts: Mapping[str, Callable[[Any], str]],
) -> None:
    """Print shapes as a table; empty columns are left out.

    Args:
        kind: Their type, whose fields define the columns.
        rows: The shapes.
        texts: By field, a formatter of its cell; the default is the value.
    """
    from rich.markup import escape
    from rich.table import Table

    from modicum.api.schema.shape import columns

    table = Table(box=None, pad_edge=False)
    written: list[list[str]] = []
    shown: list[Column] = []
    for name, column in columns(kind).items():
        text = texts.get(name)
        values = [getattr(one, name) if text is None else text(one) for one in rows]
        cells = list(map(_cell, values))
        if rows and not any(cells):
            continue
        table.add_column(
            column.heading,
            justify="right" if any(map(_is_number, values)) else "left",
            no_wrap=not column.wraps,
            overflow="fold",
        )
        written.append(cells)
        shown.append(column)
    for row in zip(*written, strict=True):
        table.add_row(*map(escape, row))
    print_table(table, spare=[one.heading for one in shown if one.spare])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object) -> str:
    """Return a value as people read it."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            return unpadded(f"{value:.4g}")
        case tuple():
            return ", ".join(map(_cell, value))
        case _:
            return str(value)


def _without(table: Table, header: str) -> Table:
    """Return a table without one of its columns."""
    from rich.table import Table

    kept = [one for one in table.columns if one.header != header]
    found = Table(box=table.box, pad_edge=table.pad_edge)
    for one in kept:
        found.add_column(
            one.header, justify=one.justify, no_wrap=one.no_wrap, overflow=one.overflow
        )
    for row in zip(*(one.cells for one in kept), strict=True):
        found.add_row(*row)
    return found


def fitting(total: int, most: int | None) -> int:
    """Return how many lines to print: a single last one replaces "1 more"."""
    return total if most is None or total <= most + 1 else most


def print_json(document: object) -> None:
    """Print one JSON document to standard output."""
    from modicum.api.schema.shape import plain

    text = json.dumps(plain(document), ensure_ascii=False, indent=2)
    print("\n".join(map(_harmless, text.split("\n"))))


def _harmless(line: str) -> str:
    """Return a line of JSON with terminal control characters escaped."""
    if line.isprintable():
        return line
    return "".join(
        character if character.isprintable() else json.dumps(character)[1:-1]
        for character in line
    )


def seconds(at: str) -> str:
    """Return a time as people read it: to the second, in UTC."""
    return f"{at[:19]}Z"


def note(text: str) -> None:
    """Print a remark to standard error."""
    print(text, file=sys.stderr)


def in_turn(
    items: Iterable[T], work: Callable[[T], R], name: Callable[[T], str]
) -> list[R]:
    """Return the result of some work for each of several items."""
    done: list[str] = []
    found = []
    for item in items:
        try:
            found.append(work(item))
        except ModicumError as error:
            if done:
                first, *rest = error.problems
                notes = (*first.notes, f"done before it: {shortened(done)}")
                error.problems = (replace(first, notes=notes), *rest)
            raise
        done.append(name(item))
    return found


def once(lines: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield equal lines once, with their subjects if they have several."""
    about: dict[str, list[str]] = {}
    for name, line in lines:
        about.setdefault(line, []).append(name)
    several = len({name for names in about.values() for name in names}) > 1
    for line, names in about.items():
        yield f"  {line} ({shortened(names)})" if several else f"  {line}"


@contextmanager
def reporting(*, as_json: bool) -> Iterator[None]:
    """Report an error raised inside, and exit with its code.

    With `as_json` the error is one JSON document on standard output; otherwise it is
    text on standard error.
    """
    try:
        with needing_extras():
            yield
    except ModicumError as error:
        if as_json:
            print_json(mistake_view(error))
        else:
            note(error.render())
        raise typer.Exit(exit_for(error)) from error
    except BrokenPipeError:
        # The reader closed the pipe, as `| head` does. There is nothing left to print.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        raise typer.Exit(Exit.OK) from None


def mistake_view(error: ModicumError) -> Mistake:
    """Return a mistake as commands print it."""
    from modicum.api.local.views.ledger import problems_view
    from modicum.api.schema.problem import Mistake

    problems = problems_view(error.problems)
    return Mistake(error=problems[0], problems=problems)


def count_text(count: int, noun: str) -> str:
    """Return a count with its noun, such as ``1 round`` and ``2 rounds``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def next_step(release: str, *, of_query: bool) -> str:
    """Return the next step with a reservation, as text."""
    if of_query:
        return "next:  modicum query run QUERY  , with its query file"
    return f"next:  modicum release start {release}"


def decision_text(decision: Decision, *, whole: bool) -> str:
    """Return a decision as text."""
    lines = list(map(printable, decision.explain().split("\n")))
    holding = [at for at, line in enumerate(lines) if line.startswith("  ok  ")]
    if not (whole or decision.allowed) and len(holding) > 1:
        more = f"  {len(holding)} other rules hold (--all shows them)"
        lines[holding[0] : holding[-1] + 1] = [more]
    return "\n".join(lines)


def print_decision(
    decision: Decision, *, as_json: bool, of_query: bool = False, whole: bool = True
) -> None:
    """Print a decision; leave with 3 if it denies."""
    if as_json:
        print_json(decision.to_dict(deep=True))
    else:
        print(decision_text(decision, whole=whole))
        if decision.status == "reserved":
            step = next_step(decision.release, of_query=of_query)
            print(printable(f"  reserved until {decision.expires_at}; {step}"))
    if not decision.allowed:
        raise typer.Exit(Exit.DENIED)
