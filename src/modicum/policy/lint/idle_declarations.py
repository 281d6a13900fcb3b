"""Declarations without effect, and approvals without approvers."""

from __future__ import annotations

from collections.abc import Iterator

from modicum.accounting import Unlimited
from modicum.core.errors import Code, Problem
from modicum.policy.declarations.roles import person_key
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
                f"`rotation` applies to no rule of `{unit}`: it has no fixed user"
                " group",
                rotation.mark,
                notes=("the whole budget of these rules may be used at once",),
                help=f"keep it if that is intended, or add `{unit}` to"
                " population: {groups: {immutable: […]}}",
            )
    if rotation.schedule.rounds == 1 and rotation.schedule.slack:
        yield Problem(
            Code.NEVER_TRUE,
            "`slack` changes nothing: a group that is active for one round may use"
            " its whole budget",
            rotation.mark,
            help="leave `slack` out, or let groups be active for more rounds",
        )


def open_turns(policy: Policy) -> Iterator[Problem]:
    """Yield a warning if everybody may open rounds in spite of roles, or no one may.

    Args:
        policy: The policy.
    """
    rotation, roles = policy.rotation, policy.roles
    if rotation is None:
        return
    if rotation.opened_by is None and roles:
        yield Problem(
            Code.NEEDS_APPROVAL,
            "anybody who can write to the ledger may open rounds",
            rotation.mark,
            notes=("each round unlocks more of the budgets, or retires a group",),
            help="limit it to roles:  opened_by: [" + next(iter(roles)) + "]",
        )
    if rotation.opened_by is not None and roles is None:
        yield Problem(
            Code.NEEDS_APPROVAL,
            "nobody may open rounds: nobody has a role of `opened_by`",
            rotation.mark,
            notes=("without a round nothing is unlocked",),
            help="add them:  roles: {" + rotation.opened_by[0] + ": [PERSON]}",
        )


def idle_divisions(policy: Policy) -> Iterator[Problem]:
    """Yield declarations about the population that affect no decision."""
    population = policy.vocabulary.population
    limited = {base.unit for base in (*policy.base_policies, *policy.per_release)}
    for unit in population.time_detail:
        if unit not in limited:
            yield Problem(
                Code.NEVER_TRUE,
                f"`time_detail` of `{unit}` changes nothing: no policy limits `{unit}`",
                help="leave it out, or add a policy for the unit",
            )


def unassigned_approvals(policy: Policy) -> Iterator[Problem]:
    """Yield a warning if approvals are required and no one has a role."""
    approvals = (*policy.approvals, *filter(None, [policy.activation]))
    if approvals and policy.roles is None:
        yield Problem(
            Code.NEEDS_APPROVAL,
            "approval is required, and nobody has its roles",
            approvals[0].mark,
            notes=("nothing that needs approval can be reserved or activated",),
            help="add them:  roles: {" + approvals[0].roles[0] + ": [PERSON]}",
        )


def written_twice(policy: Policy) -> Iterator[Problem]:
    """Yield a mistake for each person whom the roles spell in two ways.

    One person could approve twice. A log may contain such a policy of an earlier
    version; only policies to be activated are checked for this.
    """
    first: dict[str, tuple[str, str]] = {}
    for role, people in (policy.roles or {}).items():
        for person in people:
            known, known_role = first.setdefault(person_key(person), (person, role))
            if known != person:
                yield Problem(
                    Code.DUPLICATE_NAME,
                    f"`{known}` and `{person}` are one person",
                    policy.roles_mark,
                    notes=(
                        f"`{known}` is in role `{known_role}`, `{person}` in `{role}`;"
                        " case does not distinguish people",
                    ),
                    help="use one spelling of the name",
                )
