"""Options of planning: active groups, budget, and unlocking."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli import account_options as words

if TYPE_CHECKING:
    from modicum.accounting.budgets import Budget

#: The text of `--slack` for unlocking everything when a group becomes active.
AT_ONCE = "at-once"

Active = Annotated[
    int,
    typer.Option(
        "--active",
        min=1,
        help="The number of active groups; also the lifetime of a group, in rounds.",
    ),
]
Horizon = Annotated[
    int,
    typer.Option(
        "--horizon",
        min=1,
        help="The number of coming groups that new users are spread over; 1: by"
        " arrival.",
    ),
]
Slack = Annotated[
    str,
    typer.Option(
        "--slack",
        help="How much more early rounds of a group unlock, 0 to 1; or at-once.",
        metavar="NUMBER",
    ),
]
RoundDays = Annotated[
    int, typer.Option("--round-days", min=1, help="The length of a round in days.")
]
Eps = Annotated[
    str, typer.Option("--eps", help="The lifetime budget of a user.", metavar="NUMBER")
]
Delta = Annotated[
    str | None,
    typer.Option(
        "--delta",
        help="Its delta, 1e-7 if not given; 0 for pure epsilon.",
        metavar="NUMBER",
    ),
]
Rho = Annotated[
    str | None,
    typer.Option(
        "--rho", help="A budget in zCDP, in place of --eps.", metavar="NUMBER"
    ),
]
FilterName = Annotated[
    str,
    typer.Option("--filter", help="The filter of an eps.", metavar="NAME"),
]
UsersPerRound = Annotated[
    str,
    typer.Option(
        "--users-per-round",
        help="Users who join in a round; or a list from round 0 on, such as 90000,500,"
        " whose last number repeats.",
        metavar="NUMBERS",
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option(
        "--rounds",
        min=1,
        help="The number of rounds shown; by default, until the number of users is"
        " steady.",
    ),
]
Compare = Annotated[
    list[str] | None,
    typer.Option(
        "--compare",
        help="Values to compare: active, horizon or slack; repeatable.",
        metavar="NAME=V,V...",
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot", help="Write a plot, as .svg.", metavar="FILE", dir_okay=False
    ),
]


#: The default delta of a budget.
_DELTA = "1e-7"


@dataclass(frozen=True, slots=True)
class Yardstick:
    """A whole budget, on a scale on which losses add up.

    Attributes:
        budget: The budget as a policy writes it.
        filter: Which filter it is spent through.
        coordinate: The name of the scale.
        cap: The maximum loss during a life, in ledger units.
        several: Whether the filter has other scales, too, of which one must hold.
    """

    budget: str
    filter: str
    coordinate: str
    cap: int
    several: bool

    def amount(self, share: Fraction) -> Fraction:
        """Return a share of the cap as an amount, rounded down to ledger units."""
        from modicum.core.rationals import LOSS_UNIT

        return Fraction(int(self.cap * share), LOSS_UNIT)


def yardstick(
    eps: str, delta: str | None, rho: str | None, filter_name: str
) -> Yardstick:
    """Return the budget given by options, on a scale."""
    from modicum.accounting.filters.budget import FILTERS

    if filter_name not in FILTERS:
        raise typer.BadParameter(
            f"--filter: `{filter_name}` is not one of {', '.join(FILTERS)}"
        )
    return measured(_budget(eps, delta, rho), filter_name)


def measured(budget: Budget, filter_name: str) -> Yardstick:
    """Return a budget on its most informative scale: rho, if it has one."""
    from modicum.accounting.budgets import budget_text
    from modicum.accounting.filters.budget import filter_for
    from modicum.accounting.grid import RHO, coordinate_name

    admits = filter_for(budget, filter_name)
    caps = {i: cap for i, cap in admits.caps if cap > 0}
    index = RHO if RHO in caps else next(iter(caps), None)
    if index is None:
        raise typer.BadParameter(f"no mechanism fits into {budget_text(budget)}")
    return Yardstick(
        budget_text(budget),
        filter_name,
        coordinate_name(index),
        caps[index],
        several=len(caps) > 1 and not admits.every,
    )


def _budget(eps: str, delta: str | None, rho: str | None) -> Budget:
    from modicum.accounting.budgets import ApproxBudget, PureBudget, ZcdpBudget

    if rho is not None:
        if delta is not None:
            raise typer.BadParameter("--delta cannot be combined with --rho")
        return ZcdpBudget(_positive(rho, "--rho"))
    epsilon = _positive(eps, "--eps")
    at = words.number(delta or _DELTA, "--delta")
    if not 0 <= at < 1:
        raise typer.BadParameter("--delta: it must be at least 0 and below 1")
    return ApproxBudget(epsilon, at) if at else PureBudget(epsilon)


def _positive(text: str, option: str) -> Fraction:
    found = words.number(text, option)
    if found <= 0:
        raise typer.BadParameter(f"{option}: it must be above 0")
    return found
