"""What `modicum plan rotation` prints for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from modicum.cli.output import print_table

if TYPE_CHECKING:
    from rich.table import Table

    from modicum.cli.plan_budget import Yardstick
    from modicum.planner import Outlook, Rotation, RoundOutlook

#: So many rounds are told one by one, of many.
_ROUNDS_IN_FULL = 30
#: So many lines tell the rest.
_ROUNDS_SPARED = 8


def print_outlook(one: Outlook, measure: Yardstick) -> None:
    """Print what to expect of one choice."""
    schedule, rotation = one.choice.schedule, one.choice.rotation
    print(_rotation_text(rotation))
    print(_budget_text(measure))
    print()
    print_table(_ages(one, measure))
    print()
    print_table(_rounds(one, measure))
    print(
        "\nGREEDY is available if every round used all that was available, EVEN if"
        f" every round used 1/{schedule.rounds}."
    )
    print(
        f"Every round has at least {schedule.least} of the budget"
        f" ({_scaled(measure, schedule.least)}), and none more than"
        f" {schedule.most} ({_scaled(measure, schedule.most)})."
    )
    if measure.several:
        print(
            "The filter has other scales, too, and groups may live by different ones:"
            " what costs at most\nthe least part on every scale always fits."
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
        "\nLEAST is available in every round, whatever was used before; EVEN if every"
        " round used as much;\nno round uses more than MOST."
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
    for told in _chosen(one):
        if told.round > before + 1:
            table.add_row("...")
        before = told.round
        table.add_row(
            f"{told.round}",
            f"{told.groups}",
            _people(told.users),
            _people(told.users_oldest),
            _people(told.users_newest),
            _percent(told.greedy),
            _amount(measure, told.greedy),
            _percent(told.balanced),
        )
    return table


def _chosen(one: Outlook) -> Iterator[RoundOutlook]:
    """Yield all rounds, or a group's first life and every so many-th life after."""
    rounds, active = one.rounds, one.choice.rotation.active
    full = len(rounds)
    if full > _ROUNDS_IN_FULL:
        full = min(active + 1, _ROUNDS_IN_FULL)
    every = active * max(1, -(-len(rounds) // (active * _ROUNDS_SPARED)))
    for told in rounds:
        apart = (told.round - 1) % every == 0 or told.round == len(rounds)
        if told.round <= full or apart:
            yield told


def _table(*titles: str, left: Sequence[str] = ()) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in titles:
        side = "left" if title in left else "right"
        table.add_column(title, justify=side, no_wrap=True)  # type: ignore[arg-type]
    return table


# --- words ----------------------------------------------------------------------------


def _rotation_text(rotation: Rotation) -> str:
    groups = f"{_many(rotation.active, 'group')} of users active at a time,"
    rounds = _many(rotation.active, "round")
    days = f"each for {rounds} of {_many(rotation.round_days, 'day')}."
    if rotation.horizon == 1:
        return f"{groups} {days} Who joins is active from the next round on."
    return (
        f"{groups} {days}\n"
        f"Who joins is assigned to one of the next {rotation.horizon} groups by a keyed"
        " hash."
    )


def _budget_text(measure: Yardstick) -> str:
    return (
        f"Budget of a life: {measure.budget}, which is {_scaled(measure, Fraction(1))}"
        f" by filter {measure.filter}."
    )


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.1f}%"


def _amount(measure: Yardstick, share: Fraction) -> str:
    """Return an amount for people, rounded down: it is a limit."""
    from modicum.accounting.decimals import precise, significant
    from modicum.core.rationals import unpadded

    rounded = precise(significant)(measure.amount(share), 4, up=False)
    return unpadded(f"{float(rounded):.4g}")


def _scaled(measure: Yardstick, share: Fraction) -> str:
    """Return an amount with the name of its scale."""
    return f"{measure.coordinate} {_amount(measure, share)}"


def _people(users: Fraction | int) -> str:
    return f"{float(users):,.0f}"
