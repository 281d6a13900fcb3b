"""Studies of risk to look at: usual ones, empty ones, and extreme ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from modicum.risk.candidates import PUBLISHED, grid
from modicum.risk.indicator import Form, Indicator
from modicum.risk.noise import GaussianNoise, LaplaceNoise, Noise
from modicum.risk.selection.data_independent import data_independent
from modicum.risk.selection.published import find_from_rdr
from modicum.risk.selection.thresholds import GroupsAlike, RatioAtLeast
from modicum.risk.study.candidates import counted, group_sizes, of_any_table, of_people
from modicum.risk.study.study import (
    Candidate,
    Observed,
    QuestionText,
    Reference,
    Spread,
    Study,
    Target,
)
from samples.influences import influence

FOUR = tuple(map(Fraction, ("0.1", "0.5", "1", "2")))
SIXTY = grid("0.01", 10, 60)
#: Text that must be said as it is, and obeyed by nothing.
HOSTILE = "<script>alert('x')</script> $\\frac{$ & \"q\" </code> `"
#: A count that 3 of 200 people are in; a sum in which 40 have different amounts.
COUNTED = [[1.0]] * 3 + [[]] * 197
SUMMED = [[float(n * n)] for n in range(1, 41)] + [[]] * 160
COUNT, SUM = LaplaceNoise(Fraction(1)), LaplaceNoise(Fraction(1600))
LARGE = LaplaceNoise(Fraction(10**18))
GAUSSIAN = GaussianNoise(Fraction(1600), Fraction(1, 10**6))
TAU = Fraction(1, 2)
INFINITE = float("inf")


def study(
    people: Sequence[Sequence[float]],
    noise: Noise = COUNT,
    epsilons: Sequence[Fraction] = FOUR,
    *,
    groups: Mapping[str, Sequence[int]] | None = None,
    reference: Reference | None = None,
    form: Form = "published",
) -> Study:
    """Return what the controller sees of these people, everything asked for."""
    every = influence(people, groups=groups or {})
    indicator = Indicator(every, noise, form)
    names = list(groups or {})
    alike = len(names) > 1
    choice = find_from_rdr(
        indicator,
        [GroupsAlike.of(TAU, names) if alike else RatioAtLeast.of(TAU)],
        candidates=epsilons,
    )
    at = choice.epsilon or epsilons[-1]
    return Study(
        QuestionText(
            "SELECT COUNT(*)\nFROM t", "all rows of one id", "people", noise, form
        ),
        choice,
        of_people(indicator, epsilons, groups=names),
        Observed(
            len(people),
            group_sizes(indicator, names),
            (counted(indicator, at), counted(indicator, at, quantity="own-loss")),
        ),
        Target(TAU, "p99" if alike else None),
        reference,
    )


def public(epsilons: Sequence[Fraction] = PUBLISHED) -> Study:
    """Return what holds in every table."""
    choice = data_independent(COUNT, tau=TAU, candidates=epsilons)
    query = QuestionText("SELECT COUNT(*) FROM t", "one row", "people", COUNT)
    return Study(query, choice, of_any_table(choice), wanted=Target(TAU))


def extreme() -> Study:
    """Return numbers that no axis has room for."""
    every = [Spread(0.0, 0.0, 0.0, 0.0), Spread(1.0, INFINITE, 2.0, 3.0)]
    every += [Spread(1e-300, 1e300, 1e-5, 1e299), Spread(*[INFINITE] * 4)]
    widths = [1e300, INFINITE, 0.5, 1e-3]
    candidates = zip(FOUR, widths, every, every, strict=True)
    usual = study(COUNTED)
    return Study(
        usual.query,
        usual.choice,
        tuple(Candidate(e, w, s, own) for e, w, s, own in candidates),
        Observed(7),
        usual.wanted,
    )


def six(people: int) -> dict[str, list[int]]:
    """Return six groups that share people, by names that pictures stumble over."""
    names = [
        "_old",
        "$x$",
        HOSTILE,
        "a\nb\x1b[2J",
        "n" * 90,
        "\N{GREEK SMALL LETTER PI}",
    ]
    return {name: list(range(n, people, n + 1)) for n, name in enumerate(names)}


STUDIES = {
    "count": study(COUNTED),
    "sum": study(SUMMED, SUM, PUBLISHED),
    "exact": study(SUMMED, SUM, form="exact"),
    "sixty": study(SUMMED, GAUSSIAN, SIXTY, reference=Reference(-2e4, "that of 2025")),
    "one candidate": study(COUNTED, COUNT, FOUR[2:3]),
    "one group": study(COUNTED, groups={"all": range(200)}),
    "two groups": study(SUMMED, SUM, groups={"few": range(20), "more": range(10, 99)}),
    "six groups": study(SUMMED, SUM, PUBLISHED, groups=six(200)),
    "empty group": study(COUNTED, groups={"some": range(9), "none": []}),
    "nobody": study([], groups={"some": [], "none": []}),
    "all the same": study([[1.0]] * 5),
    "nobody moves": study([[]] * 5),
    "large": study([[1e15 * x for x in one] for one in SUMMED], LARGE),
    "extreme": extreme(),
    "public": public(),
    "public, none": public([Fraction(10)]),
    "public, no candidates": Study(
        public().query, data_independent(COUNT, tau=1), (), wanted=Target(Fraction(1))
    ),
}
