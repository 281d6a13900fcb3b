"""`modicum plan rotation`: what a choice of rotation and unlocking means."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from modicum.cli import account_options as words
from modicum.cli.given import from_options, not_beside, was_given
from modicum.cli.options import Json
from modicum.cli.output import note, print_json, reporting
from modicum.cli.plan_budget import Yardstick, yardstick
from modicum.cli.plan_options import (
    AT_ONCE,
    Active,
    Compare,
    Delta,
    Eps,
    FilterName,
    Horizon,
    Plot,
    Rho,
    RoundDays,
    Rounds,
    Slack,
    UsersPerRound,
)
from modicum.cli.plan_rotation_policy import (
    PolicyFile,
    RuleId,
    Said,
    said_by,
)
from modicum.core.errors import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modicum.planner import Choice, Outlook, Schedule

#: More choices than that are not seen side by side.
CHOICES_MAX = 12

_COMPARED = ("active", "horizon", "slack")
#: The options that say what budget there is.
_BUDGET = ("eps", "delta", "rho", "filter_name")


def rotation(
    context: typer.Context,
    active: Active = 12,
    horizon: Horizon = 104,
    slack: Slack = "0.4",
    round_days: RoundDays = 7,
    eps: Eps = "3",
    delta: Delta = None,
    rho: Rho = None,
    filter_name: FilterName = "combined-v2",
    policy: PolicyFile = None,
    rule: RuleId = None,
    joining: UsersPerRound = "1000",
    rounds: Rounds = None,
    compare: Compare = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Say what user rotation and budget unlocking mean, round by round.

    Reads no data and no ledger: it computes from what is given, or from a policy.
    """
    from modicum.planner.outlook import look_ahead, steady_from

    with reporting(as_json=as_json):
        if plot is not None:
            _check_plot(plot)
        _check_budget(context, delta, rho)
        said = _said(context, policy, rule)
        measure = said.measure if said else None
        measure = measure or yardstick(eps, delta, rho, filter_name)
        given = {"active": str(active), "horizon": str(horizon), "slack": slack}
        given |= _unsaid(context, said)
        people = _counts(joining)
        people = _counts(joining)
        with from_options():
            choices = _choices(given, compare or (), round_days)
            steady = max(steady_from(one.rotation, people) for one in choices)
            told = rounds or 1 + steady
            outlooks = [look_ahead(choice, people, rounds=told) for choice in choices]
        if plot is not None:
            _draw(outlooks, plot)
        if as_json:
            print_json(_to_dict(outlooks, measure, said))
        else:
            if said is not None:
                print(printable(_said_text(said)))
            _print(outlooks, measure)
            if plot is not None:
                note(f"drawn: {plot}")


# --- reading --------------------------------------------------------------------------


def _check_budget(context: typer.Context, delta: str | None, rho: str | None) -> None:
    """Refuse what says nothing about a budget of this kind, where it was given."""
    if rho is not None and was_given(context, "eps"):
        raise not_beside("--eps", "--rho")
    pure = delta is not None and words.number(delta, "--delta") == 0
    if was_given(context, "filter_name") and (pure or rho is not None):
        raise not_beside("--filter", "--delta 0" if rho is None else "--rho")


def _said(context: typer.Context, policy: Path | None, rule: str | None) -> Said | None:
    """Return what a policy says, if one is given; a budget only if no option does."""
    budgets = [each for each in _BUDGET if was_given(context, each)]
    if rule is not None and (policy is None or budgets):
        raise typer.BadParameter(
            "--rule says whose budget of a --policy; without one, or beside another"
            " budget, leave it out"
        )
    if policy is None:
        return None
    return said_by(policy, rule, with_budget=not budgets)


def _unsaid(context: typer.Context, said: Said | None) -> dict[str, str]:
    """Return the settings of a policy that no option says otherwise."""
    if said is None:
        return {}
    known = {"active": said.active, "slack": said.slack}
    return {name: one for name, one in known.items() if not was_given(context, name)}


def _counts(text: str) -> list[int]:
    return [_whole(word, "--users-per-round") for word in text.split(",")]


def _whole(text: str, where: str) -> int:
    found = words.number(text, where)
    if found.denominator != 1:
        raise typer.BadParameter(f"{where}: `{text}` is not a whole number")
    return int(found)


def _choices(
    given: dict[str, str], compare: Sequence[str], round_days: int
) -> list[Choice]:
    """Return every combination of what is compared; what is not, is as given."""
    varied: dict[str, list[str]] = {}
    for text in compare:
        name, _, values = text.partition("=")
        if name not in _COMPARED or not values or name in varied:
            raise typer.BadParameter(
                f"--compare: `{text}` is not of the form NAME=V,V... with a NAME of"
                f" its own among {', '.join(_COMPARED)}"
            )
        varied[name] = values.split(",")
    settings = [
        dict(zip(varied, values, strict=True)) for values in product(*varied.values())
    ]
    if len(settings) > CHOICES_MAX:
        raise typer.BadParameter(
            f"--compare: {len(settings)} choices, at most {CHOICES_MAX} are shown"
        )
    return [_choice(given | setting, setting, round_days) for setting in settings]


def _choice(given: dict[str, str], told: dict[str, str], round_days: int) -> Choice:
    from modicum.planner import Choice, Rotation

    active = _whole(given["active"], "active")
    return Choice(
        " ".join(f"{name}={value}" for name, value in (told or given).items()),
        Rotation(active, _whole(given["horizon"], "horizon"), round_days),
        _schedule(active, given["slack"]),
    )


def _schedule(active: int, slack: str) -> Schedule:
    from modicum.planner import AtOnce, Unlocking

    if slack == AT_ONCE:
        return AtOnce(active)
    return Unlocking(active, words.number(slack, "slack"))


# --- answering ------------------------------------------------------------------------


def _check_plot(plot: Path) -> None:
    from modicum.reports.charts import check_path

    check_path(plot)


def _draw(outlooks: Sequence[Outlook], plot: Path) -> None:
    from modicum.reports.charts import rotation_outlook, save

    save(rotation_outlook(outlooks), plot)


def _print(outlooks: Sequence[Outlook], measure: Yardstick) -> None:
    from modicum.cli.plan_rotation_text import print_comparison, print_outlook

    if len(outlooks) == 1:
        print_outlook(outlooks[0], measure)
    else:
        print_comparison(outlooks, measure)


def _said_text(said: Said) -> str:
    rule = f", budget of rule `{said.rule}`" if said.rule else ""
    return f"By policy `{said.policy}`{rule}."


def _to_dict(
    outlooks: Sequence[Outlook], measure: Yardstick, said: Said | None
) -> dict[str, object]:
    return {
        "policy": said.policy if said else None,
        "rule": (said.rule or None) if said else None,
        "budget": {
            "text": measure.budget,
            "filter": measure.filter,
            "coordinate": measure.coordinate,
            "cap": words.json_amount(measure.amount(Fraction(1))),
        },
        "choices": [_outlook_to_dict(one, measure) for one in outlooks],
    }


def _outlook_to_dict(one: Outlook, measure: Yardstick) -> dict[str, object]:
    from modicum.planner import Unlocking

    choice, number = one.choice, words.json_amount
    schedule = choice.schedule
    slack = number(schedule.slack) if isinstance(schedule, Unlocking) else AT_ONCE
    ages = enumerate(zip(one.unlocked, schedule.steps(), strict=True), start=1)
    return {
        "name": choice.name,
        "active": choice.rotation.active,
        "horizon": choice.rotation.horizon,
        "slack": slack,
        "round_days": choice.rotation.round_days,
        "least": number(schedule.least),
        "even": number(Fraction(1, schedule.rounds)),
        "most": number(schedule.most),
        "steady_from": one.steady_from,
        "users_steady": one.users_steady,
        "unlocked": [
            {
                "age": age,
                "share": number(share),
                "step": number(step),
                "cap": number(measure.amount(share)),
            }
            for age, (share, step) in ages
        ],
        "rounds": [
            {
                "round": told.round,
                "groups": told.groups,
                "users": number(told.users),
                "users_oldest": number(told.users_oldest),
                "users_newest": number(told.users_newest),
                "greedy": number(told.greedy),
                "balanced": number(told.balanced),
            }
            for told in one.rounds
        ],
    }
