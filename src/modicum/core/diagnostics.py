"""Collected mistakes: each with its position, once, and with the nearest known word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from modicum.core.document import Node
from modicum.core.errors import Code, InputError, Mark, Problem, printable

#: Reading stops after this many problems, and reports that.
PROBLEMS_MAX = 10_000

_STOPPED = f"reading stopped here, after {PROBLEMS_MAX} errors"


class Problems:
    """Collects mistakes in siblings, so that one run reports them all."""

    def __init__(self) -> None:
        self._found: list[Problem] = []

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Note an `InputError` raised inside, and go on after the block."""
        try:
            yield
        except InputError as error:
            self._found.extend(error.problems)
            if len(self._found) >= PROBLEMS_MAX:
                self.raise_any()

    def add(self, problem: Problem) -> None:
        """Note a mistake."""
        self._found.append(problem)

    def raise_any(self) -> None:
        """Raise the mistakes in text order; return if there are none."""
        if self._found:
            found = sorted(_once(self._found), key=_place)
            if len(self._found) >= PROBLEMS_MAX and _STOPPED not in found[-1].notes:
                last = found[-1]
                found[-1] = replace(last, notes=(*last.notes, _STOPPED))
            raise InputError(*found)


_OF_A_RULE = re.compile(r" \(rule [^()]*\)")


def _once(found: Iterable[Problem]) -> list[Problem]:
    """Return each problem once, also if it was found for several rules."""
    first: dict[Problem, Problem] = {}
    more: dict[Problem, int] = {}
    for problem in dict.fromkeys(found):
        apart = replace(problem, message=_OF_A_RULE.sub("", problem.message))
        of_nobody = apart if problem.mark is not None else problem
        if first.setdefault(of_nobody, problem) is not problem:
            more[of_nobody] = more.get(of_nobody, 0) + 1
    return [_with_more(problem, more.get(apart, 0)) for apart, problem in first.items()]


def _with_more(problem: Problem, more: int) -> Problem:
    if not more:
        return problem
    note = f"… and {more} more rule{'s' if more > 1 else ''}"
    return replace(problem, notes=(*problem.notes, note))


def _place(problem: Problem) -> tuple[str, int, int]:
    mark = problem.mark
    return (mark.file, mark.line, mark.column) if mark else ("", 0, 0)


def fail(
    code: Code,
    message: str,
    node: Node | None = None,
    *,
    label: str = "",
    notes: Iterable[str] = (),
    help: str = "",  # noqa: A002 - the word users see
) -> InputError:
    """Return the error for a mistake at `node`, ready to be raised."""
    mark = node.mark if node is not None else None
    return InputError(Problem(code, message, mark, label, tuple(notes), help))


@contextmanager
def placed(place: Node | Mark | None) -> Iterator[None]:
    """Add a position to mistakes raised inside that have none.

    Raises:
        InputError: Raised inside, with positions.
    """
    mark = place if place is None or isinstance(place, Mark) else place.mark
    try:
        yield
    except InputError as error:
        raise InputError(
            *(replace(problem, mark=problem.mark or mark) for problem in error.problems)
        ) from error


#: Common guesses and their meaning.
_GUESSED = {
    "date": ("released_on",),
    "epsilon": ("eps", "loss"),
    "eps": ("loss",),
}


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean "x"?`` for the nearest known word, or nothing.

    Examples:
        >>> nearest("diagnoses", ["diagnosis", "country"])
        'did you mean "diagnosis"?'
        >>> nearest("date", ["rate", "delta"])
        ''
    """
    close = close_matches(word, known)
    return f'did you mean "{close[0]}"?' if close else ""


def close_matches(word: str, known: Iterable[str]) -> list[str]:
    """Return the known words that a word may be a typo of, the nearest first.

    Case, hyphens and underscores do not count. The first letter must match, and at most
    every third one may be wrong, missing, extra or swapped with the next; or the word
    is the first half of the known one, or more.
    """
    wrong: dict[str, int] = {}
    typed = _letters(word)
    known = list(known)
    guessed = [one for one in _GUESSED.get(typed, ()) if one in known]
    if guessed:
        return guessed[:1]
    for one in known:
        target = _letters(one)
        if typed[:1] != target[:1] or not typed:
            continue
        short, long = sorted((len(typed), len(target)))
        most = max(1, short // 3) if long > 2 else 0
        if long - short <= most:
            slips = _slips(typed, target)
            if slips <= most:
                wrong[one] = slips
        if short >= 3 and target.startswith(typed) and 2 * short >= long:
            wrong.setdefault(one, long)
    return sorted(wrong, key=lambda one: wrong[one])


def _letters(word: str) -> str:
    return word[:100].casefold().replace("-", "").replace("_", "")


def _slips(typed: str, target: str) -> int:
    """Return the number of typos between two words (Damerau & Levenshtein)."""
    before: list[int] = []
    row = list(range(len(target) + 1))
    for i, letter in enumerate(typed, 1):
        above, before, row = before, row, [i]
        for j, other in enumerate(target, 1):
            slips = min(before[j] + 1, row[-1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and (letter, typed[i - 2]) == (target[j - 2], other):
                slips = min(slips, above[j - 2] + 1)
            row.append(slips)
    return row[-1]


def place(mark: Mark | None) -> str:
    """Return ``file:line`` for a note, or a dash when there is no file."""
    return f"{mark.file}:{mark.line}" if mark is not None else "-"


def shortened(names: Sequence[str], most: int = 5) -> str:
    """Return names separated by commas, the first of them if there are too many.

    Args:
        names: The names.
        most: The maximum number shown.
    """
    left = len(names) - most
    return ", ".join(names[:most]) + (f" and {left} more" if left > 0 else "")


def columns(text: str) -> int:
    """Return the width of a text in a monospaced font.

    Args:
        text: A line.
    """
    return sum(
        0
        if unicodedata.combining(one)
        else 2
        if unicodedata.east_asian_width(one) in "WF"
        else 1
        for one in text
    )


def cut(text: str, most: int) -> str:
    """Return a text in one line of printable characters, without its middle if long.

    Args:
        text: A name.
        most: How many columns it may have.
    """
    line = printable(" ".join(text.split()))
    if columns(line) <= most:
        return line
    start, end = line[:most], line[-most:]
    while columns(start) > 2 * most // 3 - 1:
        start = start[:-1]
    while columns(end) > most // 3:
        end = end[1:]
    return f"{start}…{end}"
