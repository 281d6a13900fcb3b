"""A risk as pictures, tables and a report: for the controller of the data only."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from modicum.core.errors import Code, Problem, UsageError
from modicum.risk.arguments import Number, proportion
from modicum.risk.choice import Choice, Claim
from modicum.risk.indicator import Indicator
from modicum.risk.question import Question
from modicum.risk.selection.thresholds import Statistic
from modicum.risk.study.candidates import counted, group_sizes, of_people
from modicum.risk.study.histograms import Quantity
from modicum.risk.study.study import Observed, QuestionText, Study, Target

if TYPE_CHECKING:
    from modicum.reports.charts.chart import Chart

#: Epsilons shown by default.
NOT_ASKED = Choice(
    None, Claim.ADVICE, "none", "no target was given, so nothing was chosen"
)


class Measured(Protocol):
    """The displayed data of a risk."""

    @property
    def query(self) -> str:
        """Return the original query."""

    @property
    def question(self) -> Question:
        """The query, as it was read."""

    @property
    def indicator(self) -> Indicator:
        """The indicator of everybody."""

    @property
    def candidates(self) -> tuple[Fraction, ...]:
        """Epsilons to choose from, rising."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups of people that are compared."""


def study_of(
    risk: Measured,
    choice: Choice | None = None,
    *,
    tau: Number | None = None,
    statistic: Statistic | None = None,
    answers_in: str = "units of the answer",
) -> Study:
    """Return everything that pictures, tables and reports are made of."""
    epsilon = None if choice is None else choice.epsilon
    epsilons = set(risk.candidates) | ({epsilon} if epsilon is not None else set())
    indicator = risk.indicator
    people = int(indicator.influence.people.sum())
    kinds: tuple[Quantity, ...] = ("rdr", "own-loss")
    histograms = (
        tuple(counted(indicator, epsilon, quantity=kind) for kind in kinds)
        if epsilon is not None and people
        else ()
    )
    person = f"all rows of one {risk.question.unit}" if risk.question.unit else "a row"
    return Study(
        QuestionText(risk.query, person, answers_in, indicator.noise, indicator.form),
        choice or NOT_ASKED,
        of_people(indicator, epsilons, groups=risk.groups),
        Observed(people, group_sizes(indicator, risk.groups), histograms),
        None if tau is None else Target(proportion("tau", tau, by="tau"), statistic),
    )


def picture(study: Study) -> Chart:
    """Return the picture of a study: of its groups of people, or of all."""
    from modicum.risk.charts import risk_groups, risk_ranges

    return risk_groups(study) if study.groups else risk_ranges(study)


def save_study(study: Study, path: str | Path) -> None:
    """Write a study into a file: a report (`.html`), or its picture (`.svg`).

    Args:
        study: The study.
        path: The file.

    Raises:
        UsageError: If its ending is another one, or it cannot be written.
    """
    place = Path(path)
    if place.suffix.lower() in (".html", ".htm"):
        from modicum.risk.report import risk_report

        _written(place, risk_report(study))
        return
    from modicum.reports.charts import save

    save(picture(study), place)


def _written(place: Path, text: str) -> None:
    try:
        place.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            Problem(
                Code.FILE_UNREADABLE,
                f"the report cannot be written to {place}",
                notes=(error.strerror or "system error",),
                help="use a file in an existing folder",
            )
        ) from error
