"""Answers: the estimates of each aggregate from noisy statistics, with intervals.

Each interval covers the exact answer with the requested probability: for one aggregate
of one group, not for all of them together. The components of an aggregate share its
error probability evenly.

Counts and sums are released as sampled. They may be negative: if these were raised to
0, sums over many groups would be too large.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from importlib import import_module
from itertools import product
from typing import Any, Self

from msgspec import Struct

from modicum.core.errors import UsageError, printable
from modicum.core.extras import not_installed
from modicum.core.rationals import brief, number_text
from modicum.query.answer_expressions import (
    UNKNOWN,
    Cell,
    Column,
    aggregates_in_having,
    chosen_by_noise,
    column_of,
    parts_of,
    released_in,
    shown_groups,
    sure,
)
from modicum.query.averages import Range, few_digits
from modicum.query.compiler import CompiledQuery
from modicum.query.estimates import (
    Group,
    Keys,
    Noisy,
    Numbers,
    numbers_of,
    reader_of,
)
from modicum.query.model import Expression, Released, Window, grouping_of
from modicum.query.statistics import KeyValue

#: Maximum number of table rows in a notebook.
HTML_ROWS_MAX = 1000


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], words: int
) -> Iterator[str]:
    """Yield the lines of a table, its columns two blanks apart.

    Args:
        header: The column headings.
        rows: The cells.
        words: The number of leading text columns; numbers are right-aligned.
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
        header: The column headings.
        rows: The cells; of very many, the first ones are shown.
        notes: The notes below.
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

    Raises:
        UsageError: If pyarrow is not installed.
    """
    library = needed("pyarrow")
    doubles = [library.array(one, type=library.float64()) for one in numbers]
    arrays = [*(library.array(one) for one in keys), *doubles]
    return library.Table.from_arrays(arrays, names=list(header))


def needed(library: str) -> Any:
    """Return a library.

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


class Estimate(Struct, frozen=True, gc=False):
    """An answer about one group, in the units of the column.

    All three are None where there may be no row to compute it from.

    Attributes:
        value: The answer.
        low: Without noise, it would hardly be less; None if that is unknown, too.
        high: Nor more.
    """

    value: Fraction | None
    low: Fraction | None
    high: Fraction | None


class Row(Struct, frozen=True, gc=False):
    """The answers about one group.

    Attributes:
        keys: The values of the keys.
        estimates: The answers, in the order of the aggregates.
    """

    keys: Group
    estimates: tuple[Estimate, ...]


class Answers(Struct, frozen=True):
    """The answers to a query.

    Attributes:
        keys: The names of the keys.
        aggregates: The names of the aggregates.
        rows: One for each group.
        confidence: How sure each interval is.
        notes: What the intervals do not cover, as text.
    """

    keys: tuple[str, ...]
    aggregates: tuple[str, ...]
    rows: tuple[Row, ...]
    confidence: Fraction
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """Return the documented JSON form (docs/reference/json.md)."""
        return {
            "keys": list(self.keys),
            "aggregates": list(self.aggregates),
            "confidence": number_text(self.confidence),
            "rows": [
                {
                    "keys": list(row.keys),
                    "answers": [_estimate_to_dict(one) for one in row.estimates],
                }
                for row in self.rows
            ],
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the answers that `to_dict` returned."""
        return cls(
            tuple(plain["keys"]),
            tuple(plain["aggregates"]),
            tuple(
                Row(
                    tuple(row["keys"]),
                    tuple(Estimate(**_numbers(one)) for one in row["answers"]),
                )
                for row in plain["rows"]
            ),
            Fraction(plain["confidence"]),
            tuple(plain["notes"]),
        )

    def to_arrow(self) -> Any:
        """Return an Arrow table: the keys, and value, low and high of each aggregate.

        Values are the nearest floats, and intervals are rounded outward; `rows` has
        the exact fractions. A number that there is not is NULL.

        Raises:
            UsageError: If pyarrow is not installed.
        """
        keys = [
            [row.keys[place] for row in self.rows] for place in range(len(self.keys))
        ]
        numbers = [
            column
            for place in range(len(self.aggregates))
            for column in _floats([row.estimates[place] for row in self.rows])
        ]
        header = [*self.keys]
        for name in self.aggregates:
            header += [name, f"{name}.low", f"{name}.high"]
        return arrow_table(header, keys, numbers)

    def to_pandas(self) -> Any:
        """Return a DataFrame of pandas, with the columns of `to_arrow`.

        Raises:
            UsageError: If pyarrow or pandas is not installed.
        """
        needed("pandas")
        return self.to_arrow().to_pandas()

    def __str__(self) -> str:
        lines = text_table(*self._in_words(), words=len(self.keys))
        return "\n".join((*lines, *(f"note: {one}" for one in self.notes)))

    def _repr_html_(self) -> str:
        return html_table(*self._in_words(), notes=self.notes)

    def _in_words(self) -> tuple[list[str], list[list[str]]]:
        header = [*self.keys]
        for name in self.aggregates:
            header += [name, interval_of(self.confidence)]
        rows = [[*map(key_text, row.keys), *_cells(row.estimates)] for row in self.rows]
        return [printable(one) for one in header], rows


def _cells(estimates: Sequence[Estimate]) -> list[str]:
    return [cell for one in estimates for cell in (_short(one.value), ends_text(one))]


def key_text(key: KeyValue) -> str:
    """Return the value of a key, for people."""
    return "NULL" if key is None else printable(str(key))


def ends_text(one: Estimate) -> str:
    """Return the interval of an answer, for people."""
    if one.value is not None and (one.low is None or one.high is None):
        return "unknown"
    return f"{_short(one.low)} … {_short(one.high)}"


def _short(value: Fraction | None) -> str:
    return "-" if value is None else brief(value)


def _floats(
    estimates: Sequence[Estimate],
) -> tuple[list[float | None], list[float | None], list[float | None]]:
    """Return values, lower and upper ends as floats."""
    return (
        [float_at(one.value) for one in estimates],
        [float_at(one.low, towards=-math.inf) for one in estimates],
        [float_at(one.high, towards=math.inf) for one in estimates],
    )


def _estimate_to_dict(one: Estimate) -> dict[str, str | None]:
    return {"value": _text(one.value), "low": _text(one.low), "high": _text(one.high)}


def _numbers(plain: Mapping[str, str | None]) -> dict[str, Fraction | None]:
    return {name: None if one is None else Fraction(one) for name, one in plain.items()}


def _text(value: Fraction | None) -> str | None:
    return None if value is None else number_text(value)


def answers_of(compiled: CompiledQuery, noisy: Noisy, confidence: Fraction) -> Answers:
    """Return the answers from noisy statistics.

    Args:
        compiled: The query.
        noisy: The statistics, each with noise, of the same groups in the same order.
        confidence: How sure each interval is, above 0 and below 1.
    """
    query, rows = compiled.request.query, _rows(compiled, noisy)
    numbers = numbers_of(compiled, noisy)
    found = _Released(compiled, numbers, rows, 1 - confidence)
    columns = [found.estimates(one.value) for one in query.outputs]
    keys = map(found.keys_of, found.shown)
    return Answers(
        tuple(key.name for key in query.keys),
        tuple(one.name for one in query.outputs),
        tuple(map(Row, keys, zip(*columns, strict=True))),
        confidence,
        notes_of(compiled, confidence),
    )


class _Released:
    """The keys and aggregates of all groups, and what is computed of them.

    Which groups are shown, and in which order, follows from released numbers only.

    Args:
        compiled: The query.
        numbers: The statistics.
        groups: The groups, each with the positions of its keys.
        error: How rarely the true value of a number may lie outside its interval.
    """

    def __init__(
        self,
        compiled: CompiledQuery,
        numbers: Numbers,
        groups: Sequence[tuple[Keys, Group]],
        error: Fraction,
    ) -> None:
        self._compiled, self._numbers, self._groups = compiled, numbers, groups
        self._error = error
        self._query = compiled.request.query
        self._aggregates = {one.name: one for one in self._query.aggregates}
        self._ranges: dict[tuple[str, Fraction], list[Range | None]] = {}
        self._uncertain = bool(aggregates_in_having(self._query))
        self._keys: dict[str, Column] = {}
        self._kept = self.shown = list(range(len(groups)))
        if not self._query.is_plain:
            self._keys = self._key_columns()
            self._kept, self.shown = shown_groups(
                self._query, self._decisive(), len(groups)
            )

    def _key_columns(self) -> dict[str, Column]:
        """Return the values of the keys that something is computed of."""
        query = self._query
        values = [one.value for one in query.outputs]
        values += [one.value for one in query.order]
        values += [] if query.having is None else [query.having]
        named = {
            part.name
            for value in values
            for part in parts_of(value)
            if isinstance(part, Released)
        }
        if query.order or query.offset or query.limit is not None:
            named |= {
                key.name for key in query.keys
            }  # Equal groups are ordered by them.
        found: dict[str, Column] = {}
        for place, key in enumerate(query.keys):
            if key.name in named:
                rows = map(self.keys_of, range(len(self._groups)))
                found[key.name] = [sure(one[place]) for one in rows]
            if grouping_of(key.name) in named:
                left_out = [sure(int(place not in keys)) for keys, _ in self._groups]
                found[grouping_of(key.name)] = left_out
        return found

    def keys_of(self, number: int) -> Group:
        """Return the values of all keys in a group; None for those it is not by."""
        keys, group = self._groups[number]
        if not self._query.sets:
            return group
        found: list[KeyValue] = [None] * len(self._query.keys)
        for place, value in zip(keys, group, strict=True):
            found[place] = value
        return tuple(found)

    def _decisive(self) -> dict[str, Column]:
        """Return what decides which groups are shown, and in which order."""
        having, order = self._query.having, self._query.order
        known = dict(self._keys)
        for one in order:
            known.update(self._known(one.value))
        if having is not None:
            known.update(self._known(having))
        return known

    def estimates(self, value: Expression) -> list[Estimate]:
        """Return the answers of the groups that are shown."""
        if isinstance(value, Released) and value.name in self._aggregates:
            ranges = self._ranges_of(value.name, self._error)
            return [_estimate(ranges[group]) for group in self.shown]
        column = column_of(value, self._known(value), self._kept)
        cells = dict(zip(self._kept, column, strict=True))
        found = [_computed(cells[group]) for group in self.shown]
        if self._uncertain and any(isinstance(one, Window) for one in parts_of(value)):
            return [Estimate(one.value, None, None) for one in found]
        return found

    def _known(self, value: Expression) -> dict[str, Column]:
        """Return what an expression is computed of.

        Its interval holds if those of all numbers in it do, so these share its error:
        one of each aggregate, or of each group in a window.
        """
        inside = released_in(value, self._aggregates)
        numbers = sum(len(self._groups) if whole else 1 for whole in inside.values())
        known = dict(self._keys)
        for name in inside:
            values = self._ranges_of(name, self._error)
            ranges = self._ranges_of(name, self._error / max(numbers, 1))
            known[name] = list(map(_cell, values, ranges))
        return known

    def _ranges_of(self, name: str, error: Fraction) -> list[Range | None]:
        if (name, error) not in self._ranges:
            readers = {
                keys: reader_of(
                    self._aggregates[name], self._compiled, self._numbers, keys, error
                )
                for keys in self._query.key_sets
            }
            self._ranges[name, error] = [
                readers[keys](group) for keys, group in self._groups
            ]
        return self._ranges[name, error]


def _cell(value: Range | None, ends: Range | None) -> Cell:
    """Return a released number with its ends at another confidence."""
    if value is None:
        return UNKNOWN
    return Cell(value.value) if ends is None else Cell(value.value, ends.low, ends.high)


def _computed(cell: Cell) -> Estimate:
    """Return a computed number; it has few digits unless it is a short decimal."""
    if not isinstance(cell.value, Fraction):
        return Estimate(None, None, None)
    value = few_digits(cell.value)
    if cell.low is None or cell.high is None:
        return Estimate(value, None, None)
    return Estimate(value, few_digits(cell.low), few_digits(cell.high, up=True))


def interval_of(confidence: Fraction) -> str:
    """Return the name of an interval.

    Args:
        confidence: How sure it is, above 0 and below 1.
    """
    return f"{brief(100 * confidence)} % CI"


def notes_of(compiled: CompiledQuery, confidence: Fraction) -> tuple[str, ...]:
    """Return what the intervals of answers do not cover.

    Args:
        compiled: The query.
        confidence: How sure each interval is.
    """
    found = [
        f"Each {interval_of(confidence)} covers noise only: it covers the exact"
        f" answer with {brief(100 * confidence)} % probability. Errors from bounds on"
        " rows and values, and from rounding, are not included.",
        "The confidence is that of one interval, not of all of them together.",
    ]
    sampling = compiled.request.sampling
    if sampling is not None:
        found.append(
            f"Counts and sums are of a sample of {brief(sampling.rate)} of all, a new"
            " one for each mechanism; sampling error is not in the intervals."
        )
    if compiled.marginals:
        found.append(
            "Sums by several sets of keys are made consistent by least squares: parts"
            " add up to their totals, up to rounding."
        )
    if compiled.selection is not None:
        found.append("Groups with few contributors are left out.")
    query = compiled.request.query
    if any(not isinstance(one.value, Released) for one in query.outputs):
        found.append(
            "An interval of a computed number follows from those of its aggregates at a"
            " higher confidence; it is unknown where they do not bound it."
        )
    if chosen_by_noise(query):
        found.append(
            "Groups were chosen by noisy numbers: some may be shown or left out by"
            " chance, and the intervals of those that are shown hold less often."
        )
    return tuple(found)


def _rows(compiled: CompiledQuery, noisy: Noisy) -> list[tuple[Keys, Group]]:
    """Return the groups of the answer with their keys, in the order of the sets."""
    query, first = compiled.request.query, compiled.lines[0]
    if query.sets:
        return [
            (keys, group)
            for keys in query.sets
            for group in product(*compiled.values_of(keys))
        ]
    cells: Iterable[Group] = noisy[first.name]
    if first.statistic.kind == "histogram":
        cells = dict.fromkeys(cell[:-2] for cell in cells)
    return [(first.keys, group) for group in cells]


def _estimate(found: Range | None) -> Estimate:
    if found is None:
        return Estimate(None, None, None)
    return Estimate(found.value, found.low, found.high)
