"""Remedies of a denial: changes of a release, each decided by the rules.

Nothing is listed that was not read, priced, decided and allowed at one head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from modicum.api.local.alternatives.largest_fit import largest_fit
from modicum.api.local.alternatives.trials import Trials
from modicum.api.local.evaluation import Description
from modicum.api.local.explanation.release_text import Written, name_of, with_mechanisms
from modicum.api.local.explanation.remedies import (
    Explanation,
    Fit,
    FullCell,
    Option,
    Options,
)
from modicum.ledger import RuleLoss, Verdict
from modicum.ledger.cells.axes import Space
from modicum.ledger.cells.calendar import period_name, period_of
from modicum.policy.rules import Stage
from modicum.release.parts import LAST_DAY
from modicum.release.period_text import days_of

if TYPE_CHECKING:
    from modicum.api.local.alternatives.trials import HeadView
    from modicum.api.local.explanation.charges import Cell

#: The changes of numbers and parts that are tried, in order, each with its title.
_FITS = {
    "noise": "add more noise",
    "epsilon": "use a smaller eps",
    "rho": "use a smaller rho",
    "mu": "use a smaller mu",
    "sampling_rate": "draw a smaller sample",
    "where": "read fewer people",
    "periods": "read fewer periods",
}
#: A smaller declared cost is a claim, unless the mechanism is changed as well.
_DECLARED = ("epsilon", "rho", "mu")
#: A release has so few changes of one kind that each can be tried.
_TRIED_MAX = 50


def options(trials: Trials) -> Options:
    """Return changes of a release after which every rule allows it, in order.

    First those that keep the data and add noise, then those that read less, then those
    that describe it differently, and waiting last.
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
            only_if = "it runs with this bound enforced" if kind in _DECLARED else ""
            why = (*fit.changes, *fit.why)
            yield Option(kind, title, fit.release, why, only_if)


def _option(
    trials: Trials, kind: str, title: str, variant: Written, only_if: str
) -> Iterator[Option]:
    """Yield a variant as an option, if it passes."""
    verdict = trials.decision(variant)
    if verdict is not None and verdict.allowed:
        why = tuple(_left_behind(trials.verdict, verdict))
        yield Option(kind, title, variant, why, only_if)


def _left_behind(before: Verdict, after: Verdict) -> Iterator[str]:
    """Yield which of the rules that denied are not about the variant any more."""
    about = {loss.rule.id for loss in after.losses}
    freed = [rule for rule in before.blocking if rule not in about]
    if freed:
        yield f"no longer matched: {', '.join(freed)}"


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
            f"the computation does not use {attribute}",
        )


def _with_another_label(trials: Trials) -> Iterator[Option]:
    for (
        label,
        known,
    ) in trials.head_view.balances.compiled.policy.vocabulary.labels.items():
        now = {one.labels[label] for one in trials.recorded.mechanisms}
        for value in known.values[:_TRIED_MAX]:
            if now == {value}:
                continue
            mechanisms = [
                {key: stated for key, stated in one.items() if key != label}
                for one in trials.base["mechanisms"]
            ]
            base = {k: v for k, v in trials.base.items() if k != "mechanisms"}
            yield from _option(
                trials,
                "label",
                f"set {label}: {value}, if that is true",
                {**base, label: value, "mechanisms": mechanisms},
                f"{label}: {value} is true of the whole release; others rely on labels",
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
    """Yield the first day on which distant periods can be distinguished."""
    days = {day for space in _distant(trials) for day in _days_near(trials, space)}
    for day in sorted(day for day in days if trials.head_view.day < day <= LAST_DAY):
        if trials.allows(trials.base, day):
            on = period_name(day, "day")
            why = ("its periods are by then separate from later ones",)
            title = f"wait until {on}"
            yield Option("wait", title, trials.base, why, not_before=on)
            return


def _distant(trials: Trials) -> list[Space]:
    """Return the spaces of the rules that deny and put distant periods together."""
    spaces = (
        trials.head_view.balances.family(loss.rule.unit).space
        for loss in trials.verdict.losses
        if not loss.allowed
    )
    return [space for space in spaces if space.detail is not None]


def _days_near(trials: Trials, space: Space) -> Iterator[int]:
    """Yield the days on which the last periods read become distinguishable."""
    period: Any = space.period
    assert space.detail is not None
    for mechanism in trials.recorded.mechanisms:
        for _, last in mechanism.part.periods or ():
            if last < LAST_DAY:
                number = period_of(last, period) - space.detail + 1
                days = days_of(period_name(number, period))
                assert days is not None
                yield days[0]


#: Maximum number of denying rules whose spenders are shown.
_EXPLAINED = 3
#: The parameters varied to find an allowed variant, in order.
_CLOSEST = ("noise", "epsilon", "rho", "mu", "where", "periods")


class DeniedRelease(Struct, frozen=True):
    """A denied release and the ledger that decided.

    Attributes:
        release: The release; if it is a mapping, as it is when it is looked at.
        id: Its id.
        lend: Lends the ledger at its present head.
    """

    release: Description
    id: str
    lend: Callable[[], AbstractContextManager[HeadView]]

    def largest_fit(self, vary: str, mechanism: str | None) -> Fit:
        """Return the closest variant that every rule allows at the present head."""
        from modicum.api.local.alternatives.largest_fit import largest_fit
        from modicum.api.local.alternatives.trials import Trials

        with self.lend() as head_view:
            trials = Trials(head_view, self.release)
            status = self._stands(head_view)
            if status:
                why = f"{self.id} already exists ({status}): no change is needed"
                return trials.nothing(vary, why)
            return largest_fit(trials, vary, mechanism)

    def options(self) -> Options:
        """Return the changes after which it passes at the present head."""
        from modicum.api.local.alternatives.trials import Trials

        with self.lend() as head_view:
            trials = Trials(head_view, self.release)
            return Options() if self._stands(head_view) else options(trials)

    def explanation(self) -> Explanation | None:
        """Return what the log shows about the denial; None if it is allowed now."""
        from modicum.api.local.alternatives.trials import Trials

        with self.lend() as head_view:
            trials = Trials(head_view, self.release)
            if self._stands(head_view) or trials.verdict.allowed:
                return None
            return Explanation(
                tuple(_full_cells(trials)), _closest(trials), head_view.seq
            )

    def _stands(self, head_view: HeadView) -> str:
        known = head_view.standing(self.id)
        return known.status.value if known and known.status.counts else ""


def _closest(trials: Trials) -> Fit:
    """Return the first variant that passes; else why the first kind does not."""
    from modicum.api.local.alternatives.largest_fit import largest_fit

    for vary in () if trials.verdict.unmatched else _CLOSEST:
        fit = largest_fit(trials, vary)
        if fit.found:
            return fit
    return trials.nothing("one thing", "no single-parameter change would fit")


def _full_cells(trials: Trials) -> Iterator[FullCell]:
    """Yield the cells of the first rules that deny, and who filled them."""
    from modicum.api.local.explanation.budget_fit import largest_rho
    from modicum.api.local.explanation.charges import spent_in_each
    from modicum.api.local.explanation.contributions import decisive, shares

    head_view = trials.head_view
    denying = [
        loss
        for loss in trials.verdict.losses
        if not loss.allowed and loss.rule.stage is Stage.HISTORY
    ][:_EXPLAINED]
    cells = [_cell(trials, loss) for loss in denying]
    spent = spent_in_each(cells, head_view.reserved, head_view.balances.compiled)
    for loss, own in zip(denying, spent, strict=True):
        coordinate = decisive(loss)
        yield FullCell(
            rule=loss.rule.id,
            cell=loss.cell,
            rho_left=largest_rho(loss.own_filter, loss.before),
            coordinate=coordinate,
            spenders=shares(own, coordinate),
        )


def _cell(trials: Trials, loss: RuleLoss) -> Cell:
    from modicum.api.local.explanation.charges import denying_cell

    head_view = trials.head_view
    return denying_cell(head_view.balances, trials.recorded, head_view.day, loss)
