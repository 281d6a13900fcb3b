"""Studies of risk from documents: the result of an analysis, or a profile in lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import nan
from typing import Any, Final

import numpy as np

from modicum.core.errors import Code
from modicum.core.rationals import rational
from modicum.reports.charts.chart import Chart
from modicum.risk.arguments import Number, exact, mistake, proportion
from modicum.risk.candidates import PUBLISHED, candidates
from modicum.risk.charts import risk_groups, risk_histogram, risk_ranges
from modicum.risk.charts.groups import GROUPS_MAX
from modicum.risk.choice import Charge, Choice, Claim, Row
from modicum.risk.indicator import Indicator
from modicum.risk.noise import GaussianNoise, LaplaceNoise, Noise
from modicum.risk.profile import Influence
from modicum.risk.selection.data_independent import data_independent
from modicum.risk.selection.published import find_from_rdr
from modicum.risk.selection.thresholds import RatioAtLeast
from modicum.risk.study.candidates import counted, group_sizes, of_any_table, of_people
from modicum.risk.study.histograms import Quantity
from modicum.risk.study.study import (
    Candidate,
    Observed,
    QuestionText,
    Spread,
    Study,
    Target,
)

#: The most lines, groups and candidates of a profile.
LINES_MAX: Final = 5000
_GROUPS_MAX: Final = 20
_CANDIDATES_MAX: Final = 200
#: The most people of a line, so that sums stay exact.
_PEOPLE_MAX: Final = 10**12
_UNIT: Final = "units of the answer"
_BETWEEN: Final = re.compile(r"[,;\t]\s*|\s+")
#: By the kind of noise, the norm of its sensitivity and its parameter.
_PARAMETERS: Final = {"laplace": ("l1", "scale"), "gaussian": ("l2", "sigma")}
#: It is refused until `ATTRIBUTE` is replaced: without attributes it would be charged
#: to fewer rules.
_DRAFT: Final = """\
release: NAME
epsilon_choice: dp by {method}
mechanisms:
  - mechanism: {kind}
    attributes: [ATTRIBUTE]  # all that the query reads
    sensitivity: {{{unit}: {{{norm}: {sensitivity}}}}}
    {parameter}: {width}
"""
_NOT_CHOSEN: Final = Choice(
    None, Claim.ADVICE, "none", "no target was given, so nothing was chosen"
)


@dataclass(frozen=True, slots=True)
class Line:
    """People of a profile who move the answer equally far.

    Attributes:
        distance: How far; at least 0.
        people: How many they are.
        group: The name of their group; empty for none.
    """

    distance: float
    people: int
    group: str = ""


@dataclass(frozen=True, slots=True)
class Pictures:
    """A study as a page shows it.

    Attributes:
        study: The study.
        charts: Its pictures: ranges first, then groups, then histograms.
    """

    study: Study
    charts: tuple[Chart, ...]

    def draft(self, unit: str) -> str:
        """Return a release file at the chosen epsilon; empty if there may be none.

        Args:
            unit: The privacy unit that a person is.
        """
        charge = self.study.choice.charge
        if charge is None or charge.release is None:
            return ""
        release = charge.release
        norm, parameter = _PARAMETERS[release["kind"]]
        return _DRAFT.format(
            method=self.study.choice.method,
            kind=release["kind"],
            unit=unit,
            norm=norm,
            sensitivity=release[norm],
            parameter=parameter,
            width=release[parameter],
        )


# --- a profile ------------------------------------------------------------------------


def lines_of(text: str) -> tuple[Line, ...]:
    """Return a profile: a distance, a number of people, and maybe a group, by line."""
    found = [*_lines(text)]
    if not found:
        raise mistake(
            "the profile is empty", "give a distance and a count in each line"
        )
    _limited("lines", len(found), LINES_MAX)
    _limited("groups", len({one.group for one in found}), _GROUPS_MAX)
    return tuple(found)


def _limited(what: str, count: int, most: int) -> None:
    if count > most:
        message = f"the profile has {count:,} {what}"
        raise mistake(message, f"give {most:,} {what} at most", Code.TOO_LARGE)


def _lines(text: str) -> Iterator[Line]:
    for number, line in enumerate(text.splitlines(), 1):
        cells = _BETWEEN.split(line.strip(), maxsplit=2)
        if cells == [""] or (number == 1 and cells[0][:1].isalpha()):
            continue  # Names of the columns.
        if len(cells) < 2:
            raise mistake(f"line {number} has one number", "write  distance,people")
        distance = exact(f"the distance in line {number}", cells[0])
        people = exact(f"the number of people in line {number}", cells[1])
        if distance < 0 or not 0 <= people <= _PEOPLE_MAX or people.denominator != 1:
            raise mistake(
                f"line {number} is no distance with a number of people",
                "write  distance,people  with a distance of at least 0",
            )
        yield Line(float(distance), int(people), cells[2].strip() if cells[2:] else "")


def influence_of(lines: Sequence[Line], dimensions: int) -> Influence:
    """Return the influence of people who each move one number of the answer."""
    moves = [one.distance for one in lines]
    moved = np.array([one > 0 for one in moves])
    names = sorted({one.group for one in lines if one.group})
    return Influence(
        dimensions,
        np.array([one for one in moves if one > 0], dtype=np.float64),
        np.concatenate([[0], moved.cumsum()]).astype(np.int64),
        np.array([one.people for one in lines], dtype=np.int64),
        {
            name: np.array([one.people * (one.group == name) for one in lines])
            for name in names
        },
    )


def profile_pictures(text: str, noise: Noise, asked: Mapping[str, str]) -> Pictures:
    """Return the study of a profile, for a target and candidates."""
    offered = _offered(asked.get("epsilons", ""))
    influence = influence_of(lines_of(text), noise.dimensions)
    indicator = Indicator(influence, noise)
    target = Target(proportion("tau", asked.get("tau", ""), by="tau"))
    if asked.get("choice") == "as-published":
        wanted = [RatioAtLeast(target.tau)]
        choice = find_from_rdr(indicator, wanted, candidates=offered)
    else:
        choice = data_independent(noise, tau=target.tau, candidates=offered)
    groups = [*influence.members]
    people = int(influence.people.sum())
    kinds: tuple[Quantity, ...] = ("rdr", "own-loss")
    histograms = tuple(
        counted(indicator, choice.epsilon, quantity=kind)
        for kind in kinds
        if choice.epsilon is not None and people
    )
    query = QuestionText("", "a person of the profile", _UNIT, noise)
    seen = Observed(people, group_sizes(indicator, groups), histograms)
    found = of_people(indicator, offered, groups=groups)
    return pictures(Study(query, choice, found, seen, target))


def _offered(text: str) -> tuple[Fraction, ...]:
    given = [one for one in re.split(r"[,\s]+", text.strip()) if one]
    _limited("candidates", len(given), _CANDIDATES_MAX)
    return candidates(given) if given else PUBLISHED


def noise_of(asked: Mapping[str, str]) -> Noise:
    """Return the noise that a form describes."""
    sensitivity = exact("the sensitivity", asked.get("sensitivity", ""))
    dimensions = exact("the number of numbers", asked.get("dimensions") or "1")
    if dimensions.denominator != 1:
        raise mistake("the number of numbers is not whole", "give 1 or more")
    if asked.get("mechanism") == "gaussian":
        delta = exact("delta", asked.get("delta") or "0")
        return GaussianNoise(sensitivity, delta, int(dimensions))
    return LaplaceNoise(sensitivity, int(dimensions))


def pictures(study: Study) -> Pictures:
    """Return the charts of a study."""
    charts = [risk_ranges(study)]
    if 1 <= len(study.groups) <= GROUPS_MAX:
        charts.append(risk_groups(study))
    if study.seen is not None:
        for at, one in enumerate(study.seen.histograms):
            charts.append(risk_histogram(study, one, name=f"people-{at}"))
    return Pictures(study, tuple(charts))


# --- the result of an analysis --------------------------------------------------------


def result_pictures(
    result: Mapping[str, Any] | None, tau: Number | None
) -> Pictures | None:
    """Return the study of an analysis; None for none, or if its table has no people.

    The result is that of the job `analyze-risk`.
    """
    if not result or not result["people"]:
        return None
    found = tuple(map(_candidate, result["candidates"]))
    target = None if tau is None else Target(proportion("tau", tau, by="tau"))
    seen = Observed(int(result["people"]))
    return pictures(Study(_question(result), choice_of(result), found, seen, target))


def public_pictures(
    result: Mapping[str, Any] | None, tau: Number | None
) -> Pictures | None:
    """Return what the choice says about any table; None if it may not be shared."""
    choice = choice_of(result or {})
    if not result or choice.claim is not Claim.DP or not choice.rows:
        return None
    target = None if tau is None else Target(proportion("tau", tau, by="tau"))
    study = Study(_question(result), choice, of_any_table(choice), wanted=target)
    return Pictures(study, (risk_ranges(study, name="any-table"),))


def choice_of(result: Mapping[str, Any]) -> Choice:
    """Return the choice of an analysis."""
    document = result.get("choice")
    if document is None:
        return _NOT_CHOSEN
    charge, epsilon = document["charge"], document["epsilon"]
    return Choice(
        epsilon=None if epsilon is None else rational(epsilon),
        claim=Claim(document["claim"]),
        method=document["method"],
        why=document["why"],
        rows=tuple(map(_row, document["rows"])),
        charge=None if charge is None else Charge(charge["release"]),
        caveats=tuple(document["caveats"]),
    )


def _question(result: Mapping[str, Any]) -> QuestionText:
    person = f"all rows of one {result['unit']}" if result["unit"] else "a row"
    sensitivity = rational(result["sensitivity"])
    noise: Noise = LaplaceNoise(sensitivity, result["dimensions"])
    if result["noise"] == "gaussian":
        # The result does not hold delta, and no picture or table of it does.
        noise = GaussianNoise(sensitivity, Fraction(1, 2), result["dimensions"])
    form = result["indicator"]
    return QuestionText(result["query"], person, _UNIT, noise, form)


def _candidate(one: Mapping[str, Any]) -> Candidate:
    # Numbers that are the same but for rounding may fall by their last digit.
    numbers = [one[name] for name in ("least", "median", "p99", "greatest")]
    least, median, p99, greatest = np.maximum.accumulate(numbers).tolist()
    spread = Spread(least, greatest, median, p99)
    return Candidate(rational(one["epsilon"]), one["half_width"], spread)


def _row(one: Mapping[str, Any]) -> Row:
    keys = ("least", "greatest", "ratio")
    least, greatest, ratio = (nan if one[key] is None else one[key] for key in keys)
    width, passes = one["half_width"], one["passes"]
    return Row(rational(one["epsilon"]), width, least, greatest, ratio, passes)
