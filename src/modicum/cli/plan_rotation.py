"""`modicum plan rotation`: the effect of a choice of rotation and unlocking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli import account_options as words
from modicum.cli.options import Json, exclusive_option, from_options, was_given
from modicum.cli.output import note, print_json, print_table, reporting
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
    Yardstick,
    measured,
    yardstick,
)
from modicum.core.errors import printable

if TYPE_CHECKING:
    from rich.table import Table

    from modicum.accounting.budgets import Budget
    from modicum.planner import Choice, Outlook, Rotation, RoundOutlook, Schedule
    from modicum.policy import CompiledPolicy

#: Maximum number of rules suggested.
_NAMED = 8

PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        help="A policy, for the defaults of `rotation` and budget.",
        metavar="FILE",
        dir_okay=False,
    ),
]
RuleId = Annotated[
    str | None,
    typer.Option(
        "--rule",
        help="The rule with the budget, if the rules of --policy have several.",
        metavar="ID",
    ),
]


@dataclass(frozen=True, slots=True)
class PolicyRotation:
    """The rotation settings of a policy.

    Attributes:
        policy: Its name.
        active: The number of active groups, in the format of the option.
        slack: The slack, in the format of the option.
        rule: The id of the rule with the budget; empty if none was requested.
        measure: The budget; None if none was requested.
    """

    policy: str
    active: str
    slack: str
    rule: str = ""
    measure: Yardstick | None = None


def rotation_of(file: Path, rule: str | None, *, with_budget: bool) -> PolicyRotation:
    """Return the rotation settings of a policy."""
    from modicum.core.rationals import number_text
    from modicum.ops.files.documents import load_policy

    compiled = load_policy(file)
    name, turns = compiled.policy.name, compiled.policy.rotation
    if turns is None:
        raise typer.BadParameter(
            f"--policy: `{name}` has no `rotation`; leave --policy out, and"
            " give --active and --slack"
        )
    schedule = turns.schedule
    stated = PolicyRotation(name, str(schedule.rounds), number_text(schedule.slack))
    if not with_budget:
        return stated
    identifier, budget = _chosen(compiled, rule)
    measure = measured(budget, compiled.policy.filter_name)
    return replace(stated, rule=identifier, measure=measure)


def _chosen(compiled: CompiledPolicy, rule: str | None) -> tuple[str, Budget]:
    """Return a rule with rotation, and its budget; among several, the given one."""
    limits = dict(_limits(compiled))
    if rule is not None:
        if rule not in limits:
            raise typer.BadParameter(
                f"--rule: no rule `{rule}` with rotation has a limit; there are"
                f" {_some(limits)}"
            )
        return rule, limits[rule]
    if not limits:
        raise typer.BadParameter("--policy: no rule with rotation has a limit")
    if len(set(limits.values())) > 1:
        raise typer.BadParameter(
            "--policy: its rules have several budgets; choose by --rule one of"
            f" {_some(limits)}"
        )
    return next(iter(limits.items()))


def _limits(compiled: CompiledPolicy) -> Iterator[tuple[str, Budget]]:
    """Yield the id and the limit of each rule for units that stay in user groups."""
    from modicum.accounting.budgets import Unlimited
    from modicum.policy.user_groups import grouped_through

    rules, vocabulary = compiled.rules, compiled.policy.vocabulary
    for place, base in enumerate(rules.bases):
        if not grouped_through(base.unit, vocabulary):
            continue
        for context, budget in zip(rules.contexts, rules.row(place), strict=True):
            if not isinstance(budget, Unlimited):
                yield base.scope + context.suffix, budget


def _some(limits: Mapping[str, Budget]) -> str:
    """Return rules to choose from, the first of each budget."""
    from modicum.accounting.budgets import budget_text

    first: dict[Budget, str] = {}
    for identifier, budget in limits.items():
        first.setdefault(budget, identifier)
    named = [f"`{rule}` {budget_text(budget)}" for budget, rule in first.items()]
    return ", ".join(named[:_NAMED]) + (", ..." if len(named) > _NAMED else "")


#: More choices than that are not seen side by side.
CHOICES_MAX = 12

_COMPARED = ("active", "horizon", "slack")
#: The options that set a budget.
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
    """Show the effects of user rotation and budget unlocking, round by round.

    Reads no data and no ledger, only options or a policy.
    """
    from modicum.planner.outlook import look_ahead, steady_from

    with reporting(as_json=as_json):
        if plot is not None:
            _check_plot(plot)
        _check_budget(context, delta, rho)
        stated = _rotation(context, policy, rule)
        measure = stated.measure if stated else None
        measure = measure or yardstick(eps, delta, rho, filter_name)
        given = {"active": str(active), "horizon": str(horizon), "slack": slack}
        given |= _defaults(context, stated)
        people = _counts(joining)
        people = _counts(joining)
        with from_options():
            choices = _choices(given, compare or (), round_days)
            steady = max(steady_from(one.rotation, people) for one in choices)
            shown = rounds or 1 + steady
            outlooks = [look_ahead(choice, people, rounds=shown) for choice in choices]
        if plot is not None:
            _draw(outlooks, plot)
        if as_json:
            print_json(_to_dict(outlooks, measure, stated))
        else:
            if stated is not None:
                print(printable(_policy_text(stated)))
            _print(outlooks, measure)
            if plot is not None:
                note(f"drawn: {plot}")


# --- reading --------------------------------------------------------------------------


def _check_budget(context: typer.Context, delta: str | None, rho: str | None) -> None:
    """Refuse what says nothing about a budget of this kind, where it was given."""
    if rho is not None and was_given(context, "eps"):
        raise exclusive_option("--eps", "--rho")
    pure = delta is not None and words.number(delta, "--delta") == 0
    if was_given(context, "filter_name") and (pure or rho is not None):
        raise exclusive_option("--filter", "--delta 0" if rho is None else "--rho")


def _rotation(
    context: typer.Context, policy: Path | None, rule: str | None
) -> PolicyRotation | None:
    """Return what a policy says, if one is given; a budget only if no option does."""
    budgets = [each for each in _BUDGET if was_given(context, each)]
    if rule is not None and (policy is None or budgets):
        raise typer.BadParameter(
            "--rule selects the budget of a --policy; leave it out without a"
            " policy, or with another budget"
        )
    if policy is None:
        return None
    return rotation_of(policy, rule, with_budget=not budgets)


def _defaults(context: typer.Context, stated: PolicyRotation | None) -> dict[str, str]:
    """Return the settings of a policy that no option says otherwise."""
    if stated is None:
        return {}
    known = {"active": stated.active, "slack": stated.slack}
    return {name: one for name, one in known.items() if not was_given(context, name)}


def _counts(text: str) -> list[int]:
    return [_whole(word, "--users-per-round") for word in text.split(",")]


def _whole(text: str, where: str) -> int:
    found = words.number(text, where)
    if found.denominator != 1:
        raise typer.BadParameter(f"{where}: `{text}` is not an integer")
    return int(found)


def _choices(
    given: dict[str, str], compare: Sequence[str], round_days: int
) -> list[Choice]:
    """Return every combination of the compared values; others are as given."""
    varied: dict[str, list[str]] = {}
    for text in compare:
        name, _, values = text.partition("=")
        if name not in _COMPARED or not values or name in varied:
            raise typer.BadParameter(
                f"--compare: `{text}` is not of the form NAME=V,V... with a"
                f" distinct NAME of {', '.join(_COMPARED)}"
            )
        varied[name] = values.split(",")
    settings = [
        dict(zip(varied, values, strict=True)) for values in product(*varied.values())
    ]
    if len(settings) > CHOICES_MAX:
        raise typer.BadParameter(
            f"--compare: {len(settings)} choices, at most {CHOICES_MAX} are allowed"
        )
    return [_choice(given | setting, setting, round_days) for setting in settings]


def _choice(given: dict[str, str], defaults: dict[str, str], round_days: int) -> Choice:
    from modicum.planner import Choice, Rotation

    active = _whole(given["active"], "active")
    return Choice(
        " ".join(f"{name}={value}" for name, value in (defaults or given).items()),
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

    if len(outlooks) == 1:
        print_outlook(outlooks[0], measure)
    else:
        print_comparison(outlooks, measure)


def _policy_text(stated: PolicyRotation) -> str:
    rule = f", budget of rule `{stated.rule}`" if stated.rule else ""
    return f"By policy `{stated.policy}`{rule}."


def _to_dict(
    outlooks: Sequence[Outlook], measure: Yardstick, stated: PolicyRotation | None
) -> dict[str, object]:
    return {
        "policy": stated.policy if stated else None,
        "rule": (stated.rule or None) if stated else None,
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
                "round": shown_round.round,
                "groups": shown_round.groups,
                "users": number(shown_round.users),
                "users_oldest": number(shown_round.users_oldest),
                "users_newest": number(shown_round.users_newest),
                "greedy": number(shown_round.greedy),
                "balanced": number(shown_round.balanced),
            }
            for shown_round in one.rounds
        ],
    }


#: Maximum number of rounds printed separately.
_ROUNDS_IN_FULL = 30
#: Number of lines that summarize the rest.
_ROUNDS_SPARED = 8


def print_outlook(one: Outlook, measure: Yardstick) -> None:
    """Print the outlook of one choice."""
    schedule, rotation = one.choice.schedule, one.choice.rotation
    print(_rotation_text(rotation))
    print(_budget_text(measure))
    print()
    print_table(_ages(one, measure))
    print()
    print_table(_rounds(one, measure))
    print(
        "\nGREEDY is available if every round uses all that is available, EVEN if"
        f" every round uses 1/{schedule.rounds}."
    )
    print(
        f"Every round has at least {schedule.least} of the budget"
        f" ({_scaled(measure, schedule.least)}), and none more than"
        f" {schedule.most} ({_scaled(measure, schedule.most)})."
    )
    if measure.several:
        print(
            "The filter also has other scales, and groups may live by different ones:"
            " what costs at most\nthe smallest share on every scale always fits."
        )
    print(
        f"From round {one.steady_from} on, {_people(one.users_steady)} users are"
        " active on average; before, groups are fewer or of other sizes."
    )


def print_comparison(outlooks: Sequence[Outlook], measure: Yardstick) -> None:
    """Print several choices, one a line."""
    titles = ("CHOICE", "LEAST", "EVEN", "MOST", "FIRST", "USERS", "STEADY FROM")
    table = _table(*titles, left=("CHOICE",))
    for one in outlooks:
        schedule = one.choice.schedule
        even = Fraction(1, schedule.rounds)
        shares = (schedule.least, even, schedule.most)
        table.add_row(
            one.choice.name,
            *(f"{_percent(share)} {_scaled(measure, share)}" for share in shares),
            _people(one.rounds[0].users),
            _people(one.users_steady),
            f"round {one.steady_from}",
        )
    print(_budget_text(measure))
    print()
    print_table(table)
    print(
        "\nLEAST is available in every round, regardless of earlier use; EVEN if every"
        " round uses the same share;\nno round uses more than MOST."
        " USERS are active on average once it is steady, FIRST in round 1."
    )


# --- tables ---------------------------------------------------------------------------


def _ages(one: Outlook, measure: Yardstick) -> Table:
    table = _table("AGE", "UNLOCKED", "STEP", measure.coordinate.upper())
    steps = one.choice.schedule.steps()
    for age, (share, step) in enumerate(zip(one.unlocked, steps, strict=True), start=1):
        row = (f"{age}", _percent(share), _percent(step), _amount(measure, share))
        table.add_row(*row)
    return table


def _rounds(one: Outlook, measure: Yardstick) -> Table:
    titles = ("ROUND", "GROUPS", "USERS", "OLDEST", "NEWEST", "GREEDY")
    table = _table(*titles, measure.coordinate.upper(), "EVEN")
    before = 0
    for shown_round in _chosen_rounds(one):
        if shown_round.round > before + 1:
            table.add_row("...")
        before = shown_round.round
        table.add_row(
            f"{shown_round.round}",
            f"{shown_round.groups}",
            _people(shown_round.users),
            _people(shown_round.users_oldest),
            _people(shown_round.users_newest),
            _percent(shown_round.greedy),
            _amount(measure, shown_round.greedy),
            _percent(shown_round.balanced),
        )
    return table


def _chosen_rounds(one: Outlook) -> Iterator[RoundOutlook]:
    """Yield all rounds, or a group's first life and every n-th life after."""
    rounds, active = one.rounds, one.choice.rotation.active
    full = len(rounds)
    if full > _ROUNDS_IN_FULL:
        full = min(active + 1, _ROUNDS_IN_FULL)
    every = active * max(1, -(-len(rounds) // (active * _ROUNDS_SPARED)))
    for shown_round in rounds:
        apart = (shown_round.round - 1) % every == 0 or shown_round.round == len(rounds)
        if shown_round.round <= full or apart:
            yield shown_round


def _table(*titles: str, left: Sequence[str] = ()) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in titles:
        side = "left" if title in left else "right"
        table.add_column(title, justify=side, no_wrap=True)  # type: ignore[arg-type]
    return table


# --- text -----------------------------------------------------------------------------


def _rotation_text(rotation: Rotation) -> str:
    groups = f"{_many(rotation.active, 'group')} of users active at a time,"
    rounds = _many(rotation.active, "round")
    days = f"each for {rounds} of {_many(rotation.round_days, 'day')}."
    if rotation.horizon == 1:
        return f"{groups} {days} New users are active from the next round on."
    return (
        f"{groups} {days}\n"
        f"New users are assigned to one of the next {rotation.horizon} groups by a"
        " keyed"
        " hash."
    )


def _budget_text(measure: Yardstick) -> str:
    return (
        f"Lifetime budget: {measure.budget}, which is {_scaled(measure, Fraction(1))}"
        f" by filter {measure.filter}."
    )


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.1f}%"


def _amount(measure: Yardstick, share: Fraction) -> str:
    """Return an amount for display, rounded down: it is a limit."""
    from modicum.accounting.decimals import precise, significant
    from modicum.core.rationals import unpadded

    rounded = precise(significant)(measure.amount(share), 4, up=False)
    return unpadded(f"{float(rounded):.4g}")


def _scaled(measure: Yardstick, share: Fraction) -> str:
    """Return an amount with the name of its scale."""
    return f"{measure.coordinate} {_amount(measure, share)}"


def _people(users: Fraction | int) -> str:
    return f"{float(users):,.0f}"
