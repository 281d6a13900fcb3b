"""How far a long check has come, drawn on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from modicum.cli.output import console


@contextmanager
def counting(
    doing: str, *, quiet: bool, total: int | None = None
) -> Iterator[Callable[[int], None] | None]:
    """Yield something to call with each entry's number.

    Args:
        doing: What is done, in one word.
        quiet: Whether to draw nothing.
        total: How many entries there are; None if nobody knows.
    """
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
