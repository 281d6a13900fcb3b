"""What a rotation says and does not do, and who opens its rounds."""

from __future__ import annotations

from collections.abc import Iterator

from modicum.accounting import Unlimited
from modicum.core.errors import Code, Problem
from modicum.policy.model import Policy
from modicum.policy.rules import RuleSet
from modicum.policy.user_groups import grouped_through


def idle_turns(policy: Policy, rules: RuleSet) -> Iterator[Problem]:
    """Yield units whose limits are not unlocked by turns, and a slack without effect.

    Args:
        policy: The policy.
        rules: Its rules over history.
    """
    rotation = policy.rotation
    if rotation is None:
        return
    limited = {
        base.unit: None
        for number, base in enumerate(rules.bases)
        if any(not isinstance(one, Unlimited) for one in rules.row(number))
    }
    for unit in limited:
        if not grouped_through(unit, policy.vocabulary):
            yield Problem(
                Code.NEVER_TRUE,
                f"`rotation` holds for no rule of `{unit}`: it stays in no user group",
                rotation.mark,
                notes=("all of what these rules admit may be used at once",),
                help=f"leave it if that is meant, or add `{unit}` to"
                " population: {groups: {immutable: […]}}",
            )
    if rotation.schedule.rounds == 1 and rotation.schedule.slack:
        yield Problem(
            Code.NEVER_TRUE,
            "`slack` changes nothing: a group that is active for one round may use"
            " everything in it",
            rotation.mark,
            help="leave `slack` out, or let groups be active for more rounds",
        )


def open_turns(policy: Policy) -> Iterator[Problem]:
    """Yield a warning if anybody may open rounds though there are roles, or nobody may.

    Args:
        policy: The policy.
    """
    rotation, roles = policy.rotation, policy.roles
    if rotation is None:
        return
    if rotation.opened_by is None and roles:
        yield Problem(
            Code.NEEDS_APPROVAL,
            "`rotation` lets anybody open rounds who can write to the ledger",
            rotation.mark,
            notes=("each round unlocks more of the budgets, or retires a group",),
            help="name roles whose people may:  opened_by: [" + next(iter(roles)) + "]",
        )
    if rotation.opened_by is not None and roles is None:
        yield Problem(
            Code.NEEDS_APPROVAL,
            "nobody may open rounds: nothing says who has a role of `opened_by`",
            rotation.mark,
            notes=("without a round nothing is unlocked",),
            help="name them:  roles: {" + rotation.opened_by[0] + ": [PERSON]}",
        )
