"""The methods of choosing an epsilon for a question, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, Protocol, TypeAlias

from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Problem
from modicum.risk.arguments import Number, argument, mistake
from modicum.risk.choice import Choice
from modicum.risk.indicator import Indicator
from modicum.risk.question import Question
from modicum.risk.selection.data_independent import data_independent
from modicum.risk.selection.find_release import (
    find_and_release,
    find_and_release_published,
)
from modicum.risk.selection.private_selection import private_selection
from modicum.risk.selection.published import find_from_rdr
from modicum.risk.selection.sparse_vector import Draws, PrivateSearch
from modicum.risk.selection.spread import Spread
from modicum.risk.selection.thresholds import (
    GroupsAlike,
    RatioAtLeast,
    Statistic,
    Threshold,
    VarianceAtMost,
)

Method: TypeAlias = Literal[
    "data-independent",
    "as-published",
    "private-selection",
    "find-and-release",
    "find-and-release-as-published",
]


class Risky(Protocol):
    """The input of a choice."""

    @property
    def question(self) -> Question:
        """The query."""

    @property
    def indicator(self) -> Indicator:
        """The indicator of everybody."""

    @property
    def candidates(self) -> tuple[Fraction, ...]:
        """Epsilons to choose from, rising."""

    @property
    def private(self) -> tuple[str, ...]:
        """Return the facts about the noise that were taken from rows."""

    @property
    def unbounded(self) -> tuple[str, ...]:
        """Return the parts of the query that could fail on some row."""

    @property
    def typed_by_rows(self) -> bool:
        """Whether column types were inferred from rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """The preference; None for what is not specified.

    Attributes:
        tau: The least indicator is to be so large a part of the greatest.
        max_variance: The variance of the indicators, over the square of the greatest,
            is to be so small.
        between: Groups of people of which a statistic is to be alike.
        statistic: Which one.
        allowance: The number of people who may be exposed more.
        people: The stated public number of people in the table.
        eps_select: The cost of the choice itself.
        draws: The source of noise; None for OpenDP.
    """

    tau: Number | None = None
    max_variance: Number | None = None
    between: Sequence[str] = ()
    statistic: Statistic = "p99"
    allowance: int | None = None
    people: int | None = None
    eps_select: Number | None = None
    draws: Draws | None = None

    def given(self) -> frozenset[str]:
        """Return the names of the specified fields."""
        values = {
            "tau": self.tau,
            "max_variance": self.max_variance,
            "between": self.between or None,
            "allowance": self.allowance,
            "people": self.people,
            "eps_select": self.eps_select,
        }
        return frozenset(name for name, one in values.items() if one is not None)


def chosen(risk: Risky, method: str, preference: Preference) -> Choice:
    """Return the choice of a method."""
    if method not in _METHODS:
        raise mistake(
            f"unknown choice `{str(method)[:60]}`",
            f"{argument('choice')} is one of " + ", ".join(_METHODS),
            Code.UNKNOWN_CHOICE,
            near=nearest(str(method), _METHODS),
        )
    way = _METHODS[method]
    missing = way.needs - preference.given()
    if missing:
        raise mistake(
            f"`{method}` needs {', '.join(map(argument, sorted(missing)))}",
            f"give {_meant(missing)}",
            Code.MISSING_KEY,
        )
    # Other methods may have the parameters of a private choice, too.
    unexpected = preference.given() - way.needs - way.knows - _OF_PRIVATE
    if unexpected:
        raise mistake(
            f"`{method}` does not take {', '.join(map(argument, sorted(unexpected)))}",
            f"use as-published as {argument('choice')}, or leave it out",
            Code.KEYS_CONFLICT,
        )
    if way.public:
        _must_be_public(risk, method)
    return way.make(risk, preference)


@dataclass(frozen=True, slots=True)
class _Way:
    make: Callable[[Risky, Preference], Choice]
    needs: frozenset[str]
    knows: frozenset[str] = frozenset()
    public: bool = True


#: Facts that may be taken from rows by default.
_PUBLIC_FACTS: Final = ("dimensions", "sensitivity", "delta", "bounds")
_OF_PRIVATE: Final = frozenset({"allowance", "people", "eps_select"})


def _meant(names: Set[str]) -> str:
    texts: Mapping[str, str] = {
        "tau": "the ratio",
        "max_variance": "the largest variance",
        "allowance": "the number of people who may be exposed more",
        "people": "the public number of people",
        "eps_select": "the loss of the choice",
    }
    return " and ".join(f"{texts[one]} ({argument(one)})" for one in sorted(names))


def _must_be_public(risk: Risky, method: str) -> None:
    facts = risk.private
    if method != "data-independent":
        facts += risk.unbounded
        if risk.typed_by_rows:
            facts += ("the column types are inferred from the rows",)
    if facts:
        raise InputError(
            Problem(
                Code.NOT_BOUNDED,
                f"`{method}` cannot be released: {facts[0]}",
                notes=tuple(facts[1:]),
                help="give public values for"
                f" {', '.join(map(argument, _PUBLIC_FACTS))} (of a CSV file or"
                " a frame of pandas: write Parquet), or use as-published as"
                f" {argument('choice')}, for yourself only",
            )
        )


# --- methods --------------------------------------------------------------------------


def _data_independent(risk: Risky, preference: Preference) -> Choice:
    assert preference.tau is not None
    return data_independent(
        risk.indicator.noise,
        tau=preference.tau,
        candidates=risk.candidates,
        form=risk.indicator.form,
    )


def _as_published(risk: Risky, preference: Preference) -> Choice:
    wanted: list[Threshold] = []
    if preference.tau is not None and preference.between:
        wanted.append(
            GroupsAlike.of(preference.tau, preference.between, preference.statistic)
        )
    elif preference.tau is not None:
        wanted.append(RatioAtLeast.of(preference.tau))
    if preference.max_variance is not None:
        wanted.append(VarianceAtMost.of(preference.max_variance))
    if not wanted:
        raise mistake(
            "no target is given",
            f"give {argument('tau')} or {argument('max_variance')}",
            Code.MISSING_KEY,
        )
    return find_from_rdr(risk.indicator, wanted, candidates=risk.candidates)


def _private_selection(risk: Risky, preference: Preference) -> Choice:
    assert preference.tau is not None
    assert preference.allowance is not None
    return private_selection(
        risk.indicator.influence,
        risk.indicator.noise,
        tau=preference.tau,
        allowance=preference.allowance,
        search=_search(risk, preference),
        own_rows_only=risk.question.own_rows_only,
    )


def _find_and_release(risk: Risky, preference: Preference) -> Choice:
    return find_and_release(
        risk.indicator.influence,
        risk.indicator.noise,
        _spread(preference),
        search=_search(risk, preference),
        own_rows_only=risk.question.own_rows_only,
    )


def _find_and_release_published(risk: Risky, preference: Preference) -> Choice:
    return find_and_release_published(
        risk.indicator, _spread(preference), search=_search(risk, preference)
    )


def _spread(preference: Preference) -> Spread:
    assert preference.max_variance is not None
    assert preference.people is not None
    return Spread.of(preference.max_variance, preference.people)


def _search(risk: Risky, preference: Preference) -> PrivateSearch:
    from modicum.risk.measurement.noise import OpenDpDraws

    assert preference.eps_select is not None
    draws = preference.draws or OpenDpDraws()
    return PrivateSearch.of(draws, preference.eps_select, risk.candidates)


_OF_SPREAD: Final = frozenset({"max_variance", "people", "eps_select"})
_METHODS: Final[Mapping[str, _Way]] = {
    "data-independent": _Way(_data_independent, frozenset({"tau"})),
    "as-published": _Way(
        _as_published,
        frozenset(),
        frozenset({"tau", "max_variance", "between"}),
        public=False,
    ),
    "private-selection": _Way(
        _private_selection, frozenset({"tau", "allowance", "eps_select"})
    ),
    "find-and-release": _Way(_find_and_release, _OF_SPREAD),
    "find-and-release-as-published": _Way(
        _find_and_release_published, _OF_SPREAD, public=False
    ),
}
#: The names of all methods.
METHODS: Final = tuple(_METHODS)
