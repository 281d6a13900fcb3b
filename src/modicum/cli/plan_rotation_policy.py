"""What `modicum plan rotation --policy` takes from a policy: turns, and a budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.plan_budget import Yardstick, measured

if TYPE_CHECKING:
    from modicum.accounting.budgets import Budget
    from modicum.policy import CompiledPolicy

#: So many rules are named to choose from.
_NAMED = 8

PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        help="A policy, whose `rotation` and budget are taken where no option says"
        " otherwise.",
        metavar="FILE",
        dir_okay=False,
    ),
]
RuleId = Annotated[
    str | None,
    typer.Option(
        "--rule",
        help="Whose budget, if the rules of --policy have several.",
        metavar="ID",
    ),
]


@dataclass(frozen=True, slots=True)
class Said:
    """What a policy says about taking turns.

    Attributes:
        policy: Its name.
        active: How many groups are active at a time, as an option would say it.
        slack: The slack, as an option would say it.
        rule: The id of a rule that has the budget; empty if none was asked for.
        measure: The budget; None if none was asked for.
    """

    policy: str
    active: str
    slack: str
    rule: str = ""
    measure: Yardstick | None = None


def said_by(file: Path, rule: str | None, *, with_budget: bool) -> Said:
    """Return what a policy says about taking turns.

    Args:
        file: The policy's file.
        rule: The id of a rule; None if all that take turns have the same budget.
        with_budget: Whether to ask for a budget.

    Raises:
        InputError: If the file cannot be read, or has mistakes.
    """
    from modicum.core.rationals import number_text
    from modicum.ops.files.documents import load_policy

    compiled = load_policy(file)
    name, turns = compiled.policy.name, compiled.policy.rotation
    if turns is None:
        raise typer.BadParameter(
            f"--policy: `{name}` has no `rotation`; leave --policy out, and say"
            " --active and --slack"
        )
    schedule = turns.schedule
    said = Said(name, str(schedule.rounds), number_text(schedule.slack))
    if not with_budget:
        return said
    identifier, budget = _chosen(compiled, rule)
    measure = measured(budget, compiled.policy.filter_name)
    return replace(said, rule=identifier, measure=measure)


def _chosen(compiled: CompiledPolicy, rule: str | None) -> tuple[str, Budget]:
    """Return a rule that takes turns, and its budget; of several, the one named."""
    limits = dict(_limits(compiled))
    if rule is not None:
        if rule not in limits:
            raise typer.BadParameter(
                f"--rule: no rule `{rule}` takes turns and has a limit; there are"
                f" {_some(limits)}"
            )
        return rule, limits[rule]
    if not limits:
        raise typer.BadParameter("--policy: no rule that takes turns has a limit")
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
