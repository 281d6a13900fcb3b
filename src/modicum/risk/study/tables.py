"""The numbers of each picture, as a table: for who cannot see it, and to check it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from modicum.core.errors import printable
from modicum.core.rationals import brief
from modicum.risk.study.histograms import Histogram
from modicum.risk.study.rounding import at_least, at_most, near
from modicum.risk.study.study import Candidate, Spread, Study

#: The text of an empty cell.
NONE = "-"
_NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers as text.

    Attributes:
        caption: Their caption.
        titles: The columns.
        rows: A cell for each column.
        notice: The notice; None if it may be released.
    """

    caption: str
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notice: str | None

    def text(self) -> str:
        """Return the table for a terminal or a file, with a line for each row."""
        text = (self.titles, *self.rows)
        every = [tuple(map(printable, row)) for row in text]
        widths = [max(map(len, column)) for column in zip(*every, strict=True)]
        lines = ["  ".join(map(str.rjust, row, widths)) for row in every]
        head = [self.notice] if self.notice else []
        return "\n".join((*head, printable(self.caption), *lines)) + "\n"


def ranges_table(study: Study) -> Table:
    """Return the numbers of the range plot.

    Args:
        study: The displayed data.

    Returns:
        A row for each candidate. Parts of the greatest indicator are rounded down, half
        widths up.

    Neighboring relation:
        None: numbers are shown as they are.

    Source:
        The study.

    Examples:
        >>> from fractions import Fraction
        >>> from modicum.risk.selection.data_independent import data_independent
        >>> from modicum.risk.noise import LaplaceNoise
        >>> from modicum.risk.study.candidates import of_any_table
        >>> from modicum.risk.study.study import QuestionText
        >>> noise = LaplaceNoise(Fraction(1))
        >>> choice = data_independent(noise, tau=0.5)
        >>> query = QuestionText("SELECT COUNT(*) FROM t", "one row", "people", noise)
        >>> ranges_table(Study(query, choice, of_any_table(choice))).rows
        (('1 (chosen)', '2.996', '2', '0.5', 'yes'),)
    """
    counted = study.seen is not None
    reference = study.reference
    titles = ["Epsilon", f"95 % half width, {study.query.unit}"]
    titles += [f"Also in % of {reference.source}"] if reference else []
    titles += [f"Largest RDR, {study.query.unit}", "Smallest, share of largest"]
    titles += ["Median, share", "99 %, share"] if counted else []
    titles += ["Meets the target"]
    return Table(
        "Similarity of people, and error of the answer, at each epsilon",
        tuple(titles),
        tuple(tuple(_range_cells(study, one)) for one in study.candidates),
        study.notice,
    )


def units_table(study: Study) -> Table:
    """Return the numbers behind the range plot, in units, and people's own losses.

    Args:
        study: The displayed data.

    Returns:
        A row for each candidate. Losses are rounded up.

    Neighboring relation:
        None: numbers are shown as they are.

    Source:
        The study.

    Examples:
        >>> from fractions import Fraction
        >>> from modicum.risk.selection.data_independent import data_independent
        >>> from modicum.risk.noise import LaplaceNoise
        >>> from modicum.risk.study.candidates import of_any_table
        >>> from modicum.risk.study.study import QuestionText
        >>> noise = LaplaceNoise(Fraction(1))
        >>> choice = data_independent(noise, tau=0.5)
        >>> query = QuestionText("SELECT COUNT(*) FROM t", "one row", "people", noise)
        >>> units_table(Study(query, choice, of_any_table(choice))).rows
        (('1', '1', '2'),)
    """
    unit, loss = study.query.unit, study.query.loss_name
    titles = ["Epsilon", f"Smallest RDR, {unit}"]
    caption = "Indicators in units of the answer"
    if study.seen is not None:
        titles += ["Median", "99 %", "Largest"]
        titles += [f"Median own {loss}", f"Largest own {loss}"]
        caption += ", and a bound on what a release can reveal about a person"
    else:
        titles += ["Largest"]
    rows = tuple(tuple(_unit_cells(study, one)) for one in study.candidates)
    return Table(caption, tuple(titles), rows, study.notice)


def groups_table(study: Study) -> Table:
    """Return the numbers of the comparison of groups.

    Args:
        study: The displayed data.

    Returns:
        A row for each group at each candidate, as parts of the greatest indicator of
        all people at this candidate.

    Neighboring relation:
        None: numbers are shown as they are.

    Source:
        The study.

    Examples:
        >>> from fractions import Fraction
        >>> from modicum.risk.selection.data_independent import data_independent
        >>> from modicum.risk.noise import LaplaceNoise
        >>> from modicum.risk.study.study import QuestionText
        >>> noise = LaplaceNoise(Fraction(1))
        >>> query = QuestionText("SELECT COUNT(*) FROM t", "one row", "people", noise)
        >>> groups_table(Study(query, data_independent(noise, tau=0.5), ())).rows
        ()
    """
    names = ["Smallest", "Median", "99 %", "Largest"]
    rows = (
        (group.name, brief(one.epsilon), f"{group.people:,}", *_parts(spread, one.rdr))
        for one in study.candidates
        for group, spread in zip(study.groups, one.groups, strict=True)
    )
    return Table(
        "RDR of each group, as a share of the largest of all people",
        ("Group", "Epsilon", "People", *names),
        tuple(rows),
        study.notice,
    )


def histogram_table(study: Study, shown: Histogram) -> Table:
    """Return the numbers of a histogram.

    Args:
        study: Its study.
        shown: The histogram.

    Returns:
        A row for each bin that is not empty. A person's own loss is rounded up.

    Neighboring relation:
        None: numbers are shown as they are.

    Source:
        The histogram.

    Examples:
        >>> from fractions import Fraction
        >>> from modicum.risk.selection.data_independent import data_independent
        >>> from modicum.risk.noise import LaplaceNoise
        >>> from modicum.risk.study.histograms import Bin
        >>> from modicum.risk.study.study import QuestionText, Observed
        >>> noise = LaplaceNoise(Fraction(1))
        >>> counted = Histogram(Fraction(1), "rdr", (Bin(1.0, 2.0, 9),))
        >>> query = QuestionText("SELECT COUNT(*) FROM t", "one row", "people", noise)
        >>> seen = Observed(9, histograms=(counted,))
        >>> study = Study(query, data_independent(noise, tau=0.5), (), seen)
        >>> histogram_table(study, counted).rows
        (('1', '2', '9'),)
    """
    text = near if shown.quantity == "rdr" else at_most
    rows = ((text(b.low), text(b.high), f"{b.people:,}") for b in shown.bins)
    return Table(
        f"Number of people by {quantity_text(study, shown)}"
        f", at epsilon {brief(shown.epsilon)}",
        ("From", "To", "People"),
        tuple(rows),
        study.notice,
    )


def quantity_text(study: Study, shown: Histogram) -> str:
    """Return the counted quantity of a histogram, with its unit.

    Args:
        study: Its study.
        shown: The histogram.

    Returns:
        A text such as ``RDR, in people``.

    Neighboring relation:
        None.

    Source:
        None.

    Examples:
        >>> from fractions import Fraction
        >>> from modicum.risk.selection.data_independent import data_independent
        >>> from modicum.risk.noise import LaplaceNoise
        >>> from modicum.risk.study.study import QuestionText
        >>> noise = LaplaceNoise(Fraction(1))
        >>> query = QuestionText("SELECT COUNT(*) FROM t", "one row", "people", noise)
        >>> study = Study(query, data_independent(noise, tau=0.5), ())
        >>> quantity_text(study, Histogram(Fraction(1), "own-loss", ()))
        'own epsilon'
    """
    if shown.quantity == "rdr":
        return f"RDR, in {study.query.unit}"
    return f"own {study.query.loss_name}"


def _range_cells(study: Study, one: Candidate) -> Iterator[str]:
    chosen = " (chosen)" if one is study.chosen else ""
    yield f"{brief(one.epsilon)}{chosen}"
    yield at_most(one.half_width)
    if study.reference is not None:
        yield at_most(100 * one.half_width / abs(study.reference.value))
    if one.rdr is None:
        yield from (_NOBODY, NONE, NONE, NONE)
    else:
        yield near(one.rdr.greatest)
        yield from _parts(one.rdr, one.rdr)[:-1]
    yield _passes(study, one)


def _parts(spread: Spread | None, whole: Spread | None) -> Sequence[str]:
    if spread is None or whole is None:
        return (_NOBODY, NONE, NONE, NONE)
    return [at_least(whole.part(value)) for value in _known(spread)]


def _unit_cells(study: Study, one: Candidate) -> Iterator[str]:
    yield brief(one.epsilon)
    if one.rdr is None:
        yield from (_NOBODY, *[NONE] * 5)
        return
    yield from (near(value) for value in _known(one.rdr))
    if one.losses is not None and one.losses.median is not None:
        yield from map(at_most, (one.losses.median, one.losses.greatest))
    elif study.seen is not None:
        yield from (NONE, NONE)


def _known(spread: Spread) -> list[float]:
    every = (spread.least, spread.median, spread.p99, spread.greatest)
    return [one for one in every if one is not None]


def _passes(study: Study, one: Candidate) -> str:
    text = {row.epsilon: row.passes for row in study.choice.rows}
    return {True: "yes", False: "no", None: "not evaluated"}[text.get(one.epsilon)]
