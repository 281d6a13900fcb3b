"""What may be done about a denial: changes of a release, each decided anew.

Nothing is listed that was not read, priced, decided and allowed at one head.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from modicum.api.local.alternatives.largest_fit import largest_fit
from modicum.api.local.alternatives.trials import Trials
from modicum.api.local.explanation.release_text import Written, name_of, with_mechanisms
from modicum.api.local.explanation.remedies import Option, Options
from modicum.ledger import Verdict
from modicum.ledger.cells.axes import Space
from modicum.ledger.cells.calendar import period_name, period_of
from modicum.release.parts import LAST_DAY
from modicum.release.period_text import days_of

#: The changes of numbers and parts that are tried, in order, each with its title.
_FITS = {
    "noise": "add more noise",
    "epsilon": "ask for a smaller eps",
    "rho": "ask for a smaller rho",
    "mu": "ask for a smaller mu",
    "sampling_rate": "draw a smaller sample",
    "where": "read fewer people",
    "periods": "read fewer periods",
}
#: A smaller declared cost is a claim, unless the mechanism is changed as well.
_DECLARED = ("epsilon", "rho", "mu")
#: A release has so few changes of one kind that each can be tried.
_TRIED_MAX = 50


def options(trials: Trials) -> Options:
    """Return changes of a release after which every rule lets it pass, in order.

    First those that keep what is asked and make it noisier, then those that read
    less, then those that describe it otherwise, and waiting last.

    Args:
        trials: The release, and the ledger it is tried on.

    Returns:
        Nothing if the release passes as it is, or no single change helps. Of a release
        of many mechanisms, those that were found until the search took too much work.
    """
    if trials.verdict.allowed:
        return Options()
    found = [
        *_fitting(trials),
        *_without_an_attribute(trials),
        *_with_another_label(trials),
        *_without_a_mechanism(trials),
        *_waiting(trials),
    ]
    return Options(found, ended_early=trials.ended_early)


def _fitting(trials: Trials) -> Iterator[Option]:
    for kind, title in _FITS.items():
        fit = largest_fit(trials, kind)
        if fit.release is not None:
            only_if = "it is run so that it costs no more" if kind in _DECLARED else ""
            why = (*fit.changes, *fit.why)
            yield Option(kind, title, fit.release, why, only_if)


def _option(
    trials: Trials, kind: str, title: str, variant: Written, only_if: str
) -> Iterator[Option]:
    """Yield a variant as an option, if it passes."""
    verdict = trials.say(variant)
    if verdict is not None and verdict.allowed:
        why = tuple(_left_behind(trials.verdict, verdict))
        yield Option(kind, title, variant, why, only_if)


def _left_behind(before: Verdict, after: Verdict) -> Iterator[str]:
    """Yield which of the rules that denied are not about the variant any more."""
    about = {loss.rule.id for loss in after.losses}
    freed = [rule for rule in before.blocking if rule not in about]
    if freed:
        yield f"it does not fall under {', '.join(freed)} any more"


def _without_an_attribute(trials: Trials) -> Iterator[Option]:
    mechanisms: list[Written] = trials.base["mechanisms"]
    names = dict.fromkeys(name for one in mechanisms for name in one["attributes"])
    for attribute in list(names)[:_TRIED_MAX]:
        changed = [
            one
            | {"attributes": [name for name in one["attributes"] if name != attribute]}
            for one in mechanisms
        ]
        yield from _option(
            trials,
            "attribute",
            f"do not read {attribute}",
            with_mechanisms(trials.base, changed),
            f"what is computed does not look at {attribute}",
        )


def _with_another_label(trials: Trials) -> Iterator[Option]:
    for label, known in trials.look.balances.compiled.policy.vocabulary.labels.items():
        now = {one.labels[label] for one in trials.recorded.mechanisms}
        for value in known.values[:_TRIED_MAX]:
            if now == {value}:
                continue
            mechanisms = [
                {key: said for key, said in one.items() if key != label}
                for one in trials.base["mechanisms"]
            ]
            base = {k: v for k, v in trials.base.items() if k != "mechanisms"}
            yield from _option(
                trials,
                "label",
                f"if it is {label}: {value}, say so",
                {**base, label: value, "mechanisms": mechanisms},
                f"{label}: {value} is true of all of it; a label is a claim that"
                " others rely on",
            )


def _without_a_mechanism(trials: Trials) -> Iterator[Option]:
    mechanisms: list[Written] = trials.base["mechanisms"]
    named: list[Written] = [
        {"name": name_of(one, place)} | one for place, one in enumerate(mechanisms)
    ]
    if len(named) == 1:
        return
    for place, one in enumerate(named[:_TRIED_MAX]):
        rest = [*named[:place], *named[place + 1 :]]
        yield from _option(
            trials,
            "mechanism",
            f"leave out {one['name']}",
            with_mechanisms(trials.base, rest),
            "",
        )


def _waiting(trials: Trials) -> Iterator[Option]:
    """Yield the first day on which distant periods are near enough to be told apart."""
    days = {day for space in _distant(trials) for day in _days_near(trials, space)}
    for day in sorted(day for day in days if trials.look.day < day <= LAST_DAY):
        if trials.allows(trials.base, day):
            on = period_name(day, "day")
            why = ("by then its periods are told apart from those after them",)
            title = f"wait until {on}"
            yield Option("wait", title, trials.base, why, not_before=on)
            return


def _distant(trials: Trials) -> list[Space]:
    """Return the spaces of the rules that deny and put distant periods together."""
    spaces = (
        trials.look.balances.family(loss.rule.unit).space
        for loss in trials.verdict.losses
        if not loss.allowed
    )
    return [space for space in spaces if space.detail is not None]


def _days_near(trials: Trials, space: Space) -> Iterator[int]:
    """Yield the days on which the last periods that are read are told apart."""
    period: Any = space.period
    assert space.detail is not None
    for mechanism in trials.recorded.mechanisms:
        for _, last in mechanism.part.periods or ():
            if last < LAST_DAY:
                number = period_of(last, period) - space.detail + 1
                days = days_of(period_name(number, period))
                assert days is not None
                yield days[0]
