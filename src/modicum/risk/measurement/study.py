"""The risk of one query: for which epsilon, and for whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from modicum.risk.arguments import Number
from modicum.risk.candidates import PUBLISHED
from modicum.risk.candidates import candidates as checked
from modicum.risk.choice import Choice, Row
from modicum.risk.indicator import Form, Indicator
from modicum.risk.influence.expressions import clamped
from modicum.risk.losses import person_losses
from modicum.risk.measurement.charts import picture, save_study, study_of
from modicum.risk.measurement.choices import Method, Preference, chosen
from modicum.risk.measurement.data import ControllerData
from modicum.risk.measurement.facts import (
    BoundsGiven,
    noise_of,
    people_groups,
    public_bounds,
    sensitivity_of,
    unbounded_sums,
)
from modicum.risk.measurement.influence import Progress, measure
from modicum.risk.measurement.query_checks import conversions, must_fit
from modicum.risk.noise import Calibration, LaplaceNoise, Mechanism, Noise, NoiseGiven
from modicum.risk.profile import RELATION, Influence, Profile
from modicum.risk.question import Question, read_question
from modicum.risk.selection.rows import people_row
from modicum.risk.selection.sparse_vector import Draws
from modicum.risk.selection.thresholds import Statistic
from modicum.risk.study.study import Study
from modicum.risk.study.tables import Table, units_table

if TYPE_CHECKING:
    from modicum.reports.charts.chart import Chart


def rdr(  # noqa: PLR0913 - each has a default that is a decision
    data: object,
    query: str,
    *,
    unit: str | None = None,
    mechanism: Mechanism = "laplace",
    epsilons: Sequence[Number] = PUBLISHED,
    delta: Number | None = None,
    sensitivity: Number | None = None,
    bounds: BoundsGiven = None,
    rows_max: int | None = None,
    dimensions: int | None = None,
    groups: Mapping[str, str] | Sequence[str] = (),
    form: Form = "published",
    calibration: Calibration = "exact",
    engine: str = "duckdb",
    progress: Progress = lambda done, of: None,
) -> Risk:
    """Return the risk of a query for everybody in a controller's tables."""
    candidates = checked(epsilons)
    given = NoiseGiven(mechanism, sensitivity, delta, dimensions, calibration)
    with _opened(data, engine) as opened:
        columns = opened.engine.columns()
        question = read_question(query, columns, unit)
        public = public_bounds(bounds, rows_max, question)
        parted = people_groups(groups, columns)
        must_fit(opened.engine, question, parted)
        width, unproven = sensitivity_of(opened.engine, question, public, given)
        limited = clamped(question, public)
        influence = measure(opened.engine, limited, parted, progress)
        converted = conversions(opened.engine, question)
    noise, private = noise_of(width, influence, question, given)
    return Risk(
        query=query,
        question=limited,
        influence=influence,
        noise=noise,
        private=(unproven, *private) if unproven else private,
        unbounded=(*unbounded_sums(question, public), *converted),
        typed_by_rows=opened.typed_by_rows,
        candidates=candidates,
        form=form,
        groups=tuple(one.name for one in parted),
    )


def _opened(data: object, engine: str) -> ControllerData:
    """Return the data, opened; the caller closes it."""
    return data if isinstance(data, ControllerData) else ControllerData(data, engine)


def count(where: str = "") -> str:
    """Return the query that counts rows."""
    counted = exp.select(exp.Count(this=exp.Star())).from_("data")
    return (counted.where(where, dialect="duckdb") if where else counted).sql("duckdb")


@dataclass(frozen=True, eq=False, repr=False)
class Risk:
    """What a query reveals about the people of a table, for each epsilon.

    For the data controller only: it is computed from rows without noise. A person's
    influence is how far all her rows move the answer: the neighboring relation is
    `add-remove`.

    Attributes:
        query: The original query.
        question: The query, as it was read.
        influence: How far the answer moves for everybody.
        noise: The noise that would be added.
        private: The facts about the noise taken from rows, as text; with any of these,
            no choice can be released.
        unbounded: The parts of the query that could fail on some row, as text.
        typed_by_rows: Whether column types were inferred from rows.
        candidates: Epsilons to choose from, rising.
        form: Which form the indicator has.
        groups: The names of the groups of people that are compared.
    """

    query: str
    question: Question
    influence: Influence
    noise: Noise
    private: tuple[str, ...]
    unbounded: tuple[str, ...]
    typed_by_rows: bool
    candidates: tuple[Fraction, ...]
    form: Form = "published"
    groups: tuple[str, ...] = field(default=())

    @cached_property
    def indicator(self) -> Indicator:
        """The indicator of everybody."""
        return Indicator(self.influence, self.noise, self.form)

    @property
    def people(self) -> int:
        """The number of people with rows."""
        return int(self.influence.people.sum())

    def rows(self) -> tuple[Row, ...]:
        """Return for each candidate the accuracy and the range of the indicator."""
        return tuple(
            people_row(self.indicator, epsilon, passes=None)
            for epsilon in self.candidates
        )

    def losses(self, epsilon: Number, group: str | None = None) -> Profile:
        """Return how many people have which worst-case loss at an epsilon.

        Args:
            epsilon: Above 0.
            group: Only people of this group; None for all.

        Returns:
            eps_i for Laplace noise, mu_i for Gaussian noise.
        """
        (given,) = checked([epsilon])
        distances = self.influence.profile(self.noise.norm, group)
        return person_losses(distances, self.noise, epsilon=given)

    def choose(  # noqa: PLR0913 - each has a default that is a decision
        self,
        tau: Number | None = None,
        *,
        choice: Method = "data-independent",
        max_variance: Number | None = None,
        between: Sequence[str] = (),
        statistic: Statistic = "p99",
        allowance: int | None = None,
        people: int | None = None,
        eps_select: Number | None = None,
        draws: Draws | None = None,
    ) -> Choice:
        """Return the largest epsilon that meets a preference.

        Args:
            tau: The least indicator must be at least so large a part of the greatest.
            choice: `data-independent`: it holds in any table; may be released.
                `as-published`: in this table; for the controller only.
                `private-selection`: in this table except for about `allowance` people,
                found privately for `eps_select`. `find-and-release`: the indicators
                vary by no more than `max_variance`, found privately;
                `find-and-release-as-published`: the same without a proof, for study.
            max_variance: The variance of the indicators, over the square of the
                greatest, must be so small.
            between: As published: of these groups of people a statistic must be alike,
                instead of that of all.
            statistic: Which one: `max`, `p99` or `median`.
            allowance: For a private selection: the number of people who may be exposed
                more.
            people: To find and release: the public number of people.
            eps_select: For private methods: the cost of the choice itself.
            draws: The source of noise for that; None for OpenDP.

        Returns:
            The choice, with its claim.

        Raises:
            InputError: If something is missing, out of range, or contradictory.
        """
        preference = Preference(
            tau=tau,
            max_variance=max_variance,
            between=between,
            statistic=statistic,
            allowance=allowance,
            people=people,
            eps_select=eps_select,
            draws=draws,
        )
        return chosen(self, choice, preference)

    def study(
        self,
        choice: Choice | None = None,
        *,
        tau: Number | None = None,
        statistic: Statistic | None = None,
        answers_in: str = "units of the answer",
    ) -> Study:
        """Return all data for charts, tables and reports.

        Args:
            choice: The choice; None if there is none.
            tau: The requested ratio, to be drawn.
            statistic: The statistic of groups of people that the ratio applies to.
            answers_in: The unit of the answer, such as `people`.

        Raises:
            InputError: If tau is out of range.
        """
        return study_of(
            self, choice, tau=tau, statistic=statistic, answers_in=answers_in
        )

    def table(self, choice: Choice | None = None) -> Table:
        """Return the accuracy and the range of the indicator at each candidate.

        Args:
            choice: The choice to mark; None if there is none.
        """
        return units_table(self.study(choice))

    def plot(self, choice: Choice | None = None, *, tau: Number | None = None) -> Chart:
        """Return a chart: how alike people, or groups of them, are at each candidate.

        Args:
            choice: The choice to mark; None if there is none.
            tau: The requested ratio, to be drawn.
        """
        return picture(self.study(choice, tau=tau))

    def save(
        self,
        path: str | Path,
        choice: Choice | None = None,
        *,
        tau: Number | None = None,
        statistic: Statistic | None = None,
    ) -> None:
        """Write a report (`.html`) or a chart (`.svg`).

        Args:
            path: The file.
            choice: The choice; None if there is none.
            tau: The requested ratio, to be drawn.
            statistic: The statistic of groups of people that the ratio applies to.

        Raises:
            UsageError: If the file has another ending, or cannot be written.
        """
        save_study(self.study(choice, tau=tau, statistic=statistic), path)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.table().text())}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return the documented JSON form."""
        return {
            "query": self.query,
            "unit": self.question.unit,
            "people": self.people,
            "relation": RELATION,
            "claim": "controller-only advice",
            "noise": "laplace" if isinstance(self.noise, LaplaceNoise) else "gaussian",
            "sensitivity": float(self.noise.sensitivity),
            "dimensions": self.noise.dimensions,
            "from_rows": list(self.private),
            "closed_form": not self.question.obstacle,
            "indicator": self.form,
            "candidates": [
                {**row.to_dict(), **self._quantiles(row.epsilon)} for row in self.rows()
            ],
        }

    def __repr__(self) -> str:
        return f"<Risk of {len(self.candidates)} epsilons: controller only>"

    # --- inside -----------------------------------------------------------------------

    def _quantiles(self, epsilon: Fraction) -> dict[str, float | None]:
        """Return what the picture of a candidate shows between its ends."""
        shares = {"median": 0.5, "p99": 0.99}
        return {
            name: self.indicator.quantile(share, epsilon) if self.people else None
            for name, share in shares.items()
        }
