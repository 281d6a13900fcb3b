"""Progress bars of long checks, only at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from modicum.cli.output import console


@contextmanager
def counting(
    doing: str, *, quiet: bool, total: int | None = None
) -> Iterator[Callable[[int], None] | None]:
    """Yield something to call with each entry's number."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed} entries"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as drawn:
        task = drawn.add_task(doing, total=total)
        yield lambda seq: drawn.update(task, completed=seq)


@contextmanager
def counted(things: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Yield a callback that takes the number of items done and the total."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, of: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as drawn:
        task = drawn.add_task(things, total=None)
        yield lambda done, of: drawn.update(task, completed=done, total=of)


@contextmanager
def rounds_drawn(rounds: int, *, quiet: bool) -> Iterator[Callable[[str, int], None]]:
    """Yield a callback that takes the present step and the number of rounds done."""
    if quiet or not sys.stderr.isatty():
        yield lambda _doing, _done: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rounds"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as drawn:
        task = drawn.add_task("", total=rounds)
        yield lambda doing, done: drawn.update(task, description=doing, completed=done)
