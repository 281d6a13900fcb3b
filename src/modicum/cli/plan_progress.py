"""How far a simulation has come, drawn on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from modicum.cli.output import console


@contextmanager
def rounds_drawn(rounds: int, *, quiet: bool) -> Iterator[Callable[[str, int], None]]:
    """Yield something to call with what is being done, and how many rounds are done.

    Args:
        rounds: How many there are.
        quiet: Whether to draw nothing.
    """
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
