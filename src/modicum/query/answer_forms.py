"""Answers as tables: of text, for notebooks, and for libraries of tables."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from importlib import import_module
from typing import Any

from modicum.core.errors import UsageError
from modicum.core.extras import not_installed

#: The lines of a table that are written out in a notebook.
HTML_ROWS_MAX = 1000


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], words: int
) -> Iterator[str]:
    """Yield the lines of a table, its columns two blanks apart.

    Args:
        header: What stands above.
        rows: The cells.
        words: How many of the first columns are words; numbers stand to the right.
    """
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [
            cell.ljust(width) if place < words else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def html_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]
) -> str:
    """Return a table of HTML. Everything in it is escaped.

    Args:
        header: What stands above.
        rows: The cells; of very many, the first ones are shown.
        notes: What stands below.
    """
    body = [_html_row("td", row) for row in rows[:HTML_ROWS_MAX]]
    left = len(rows) - len(body)
    more = [f"<p>… and {left} more rows</p>"] if left > 0 else []
    below = [f"<p>{html.escape(one)}</p>" for one in notes]
    head = _html_row("th", header)
    parts = (f"<thead>{head}</thead>", f"<tbody>{''.join(body)}</tbody>")
    return "".join(("<table>", *parts, "</table>", *more, *below))


def _html_row(tag: str, cells: Sequence[str]) -> str:
    written = (f"<{tag}>{html.escape(one)}</{tag}>" for one in cells)
    return f"<tr>{''.join(written)}</tr>"


def arrow_table(
    header: Sequence[str],
    keys: Sequence[Sequence[object]],
    numbers: Sequence[Sequence[float | None]],
) -> Any:
    """Return an Arrow table of keys, and of numbers as doubles.

    Args:
        header: The names of the columns.
        keys: The first columns.
        numbers: The others.

    Raises:
        UsageError: If pyarrow is not installed.
    """
    library = needed("pyarrow")
    doubles = [library.array(one, type=library.float64()) for one in numbers]
    arrays = [*(library.array(one) for one in keys), *doubles]
    return library.Table.from_arrays(arrays, names=list(header))


def needed(library: str) -> Any:
    """Return a library.

    Args:
        library: Its name.

    Raises:
        UsageError: If it is not installed.
    """
    try:
        return import_module(library)
    except ImportError:
        raise UsageError(not_installed(f"`{library}`", library)) from None


def float_at(value: Fraction | None, *, towards: float | None = None) -> float | None:
    """Return a number as a float; None for none.

    Args:
        value: The number.
        towards: On which side of it the float must lie, infinity or minus infinity;
            None for the nearest.
    """
    if value is None:
        return None
    try:
        near = float(value)
    except OverflowError:
        near = math.inf if value > 0 else -math.inf
    if towards is None:
        return near
    beyond = near < value if towards > 0 else near > value
    return math.nextafter(near, towards) if beyond else near
