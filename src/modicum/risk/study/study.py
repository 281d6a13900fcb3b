"""A question, a choice of epsilon for it, and the displayed data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite, isinf, isnan

from modicum.core.errors import Code, check
from modicum.risk.arguments import mistake
from modicum.risk.choice import Choice, Claim
from modicum.risk.indicator import Form
from modicum.risk.noise import LaplaceNoise, Noise
from modicum.risk.selection.thresholds import Statistic
from modicum.risk.study.histograms import Histogram

#: The notice on everything that was computed from rows without noise.
CONTROLLER_ONLY = (
    "For the controller of the data only: computed from rows without noise"
)
#: Why a page without exact counts must stay with the controller all the same.
STUDY_ONLY = "For the controller of the data only: this choice has no guarantee"


@dataclass(frozen=True, slots=True)
class Spread:
    """The spread of people's numbers; all are actual values.

    Attributes:
        least: The least one; >= 0, may be infinite.
        greatest: The greatest one.
        median: The median; None where no rows were read.
        p99: The 99 % quantile; None where no rows were read.
    """

    least: float
    greatest: float
    median: float | None = None
    p99: float | None = None

    def __post_init__(self) -> None:
        between = [one for one in (self.median, self.p99) if one is not None]
        rising = [self.least, *between, self.greatest]
        check(not any(map(isnan, rising)), "a spread needs numbers")
        check(rising[0] >= 0 and rising == sorted(rising), "a spread increases from 0")

    def part(self, value: float) -> float:
        """Return a number as a part of the greatest one.

        Args:
            value: From 0 to the greatest.

        Returns:
            0 to 1; 1 if all are 0. Of an infinite number 0: how alike people are is
            then unknown.
        """
        if isinf(self.greatest):
            return 0.0
        return 1.0 if value == self.greatest else value / self.greatest

    @property
    def ratio(self) -> float:
        """The least as a part of the greatest, 0 to 1."""
        return self.part(self.least)


@dataclass(frozen=True, slots=True)
class Candidate:
    """The meaning of one epsilon.

    Attributes:
        epsilon: The candidate.
        half_width: Half the width of a coordinate's 95 % interval, in units of the
            answer.
        rdr: The indicators of everybody, in units of the answer; None without people.
        losses: The maximum that a release reveals about each of them: eps_i for Laplace
            noise, mu_i for Gaussian noise; None if no rows were read, or without
            people.
        groups: The indicators in each group; None for a group without people.
    """

    epsilon: Fraction
    half_width: float
    rdr: Spread | None
    losses: Spread | None = None
    groups: tuple[Spread | None, ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionText:
    """The question, in the controller's words.

    Attributes:
        question: The SQL.
        person: The definition of a person, such as ``all rows of one user_id``.
        unit: The unit of the answer, such as ``people`` or ``USD``.
        noise: The noise of a release.
        form: Which form of the indicator is shown.
    """

    question: str
    person: str
    unit: str
    noise: Noise
    form: Form = "published"

    @property
    def loss_name(self) -> str:
        """Return the name of a person's own loss."""
        return "epsilon" if isinstance(self.noise, LaplaceNoise) else "mu"


@dataclass(frozen=True, slots=True)
class Group:
    """A group of people.

    Attributes:
        name: Its name.
        people: How many belong to it.
    """

    name: str
    people: int


@dataclass(frozen=True, slots=True)
class Observed:
    """Counts in the table, without noise.

    Attributes:
        people: How many there are.
        groups: Groups of them, in the order of each candidate's.
        histograms: The number of people by indicator or loss; only those requested.
    """

    people: int
    groups: tuple[Group, ...] = ()
    histograms: tuple[Histogram, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """The requested ratio.

    Attributes:
        tau: The least ratio of two indicators; above 0, at most 1.
        statistic: Of each group; None if all people are compared.
    """

    tau: Fraction
    statistic: Statistic | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """An answer that half widths are relative to. Never the exact one.

    Attributes:
        value: The answer; not 0.
        source: Its source, such as ``the noisy answer of 2025``.
    """

    value: float
    source: str

    def __post_init__(self) -> None:
        if not isfinite(self.value) or self.value == 0:
            raise mistake(
                f"numbers cannot be relative to the answer {self.value!r}",
                "give a public or noisy answer that is a number and not 0, or none",
                Code.OUT_OF_RANGE,
            )


@dataclass(frozen=True, slots=True, repr=False)
class Study:
    """All data of a chart, a table or a report of a choice.

    Attributes:
        query: The question.
        choice: The epsilon that was chosen, or why there is none.
        candidates: Epsilons, ascending; without duplicates.
        seen: Counts in the table; None if the candidates hold for every table.
        wanted: The requested ratio; None for another condition.
        reference: The answer that half widths are relative to; None for units.
    """

    query: QuestionText
    choice: Choice
    candidates: tuple[Candidate, ...]
    seen: Observed | None = None
    wanted: Target | None = None
    reference: Reference | None = None

    def __post_init__(self) -> None:
        epsilons = [one.epsilon for one in self.candidates]
        check(epsilons == sorted(set(epsilons)), "candidates are increasing")
        groups = 0 if self.seen is None else len(self.seen.groups)
        for one in self.candidates:
            check(len(one.groups) == groups, "each group has a spread")
            check(
                _counted(one) if self.seen else _public(one),
                "people are shown only where they were counted",
            )

    def __repr__(self) -> str:
        whose = "controller only: not for release" if self.notice else "public"
        return f"<Study: {whose}>"

    @property
    def notice(self) -> str | None:
        """Return the notice for everything made of this; None if it may be released."""
        if self.seen is not None:
            return CONTROLLER_ONLY
        return None if self.choice.claim is Claim.DP else STUDY_ONLY

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of people that are compared."""
        return () if self.seen is None else self.seen.groups

    @property
    def chosen(self) -> Candidate | None:
        """The candidate that was chosen; None if none of these was."""
        same = (one for one in self.candidates if one.epsilon == self.choice.epsilon)
        return next(same, None)


def _public(candidate: Candidate) -> bool:
    spread = candidate.rdr
    plain = spread is not None and spread.median is None and spread.p99 is None
    return plain and candidate.losses is None


def _counted(candidate: Candidate) -> bool:
    every = (candidate.rdr, candidate.losses, *candidate.groups)
    there = [one for one in every if one is not None]
    return all(one.median is not None and one.p99 is not None for one in there)
