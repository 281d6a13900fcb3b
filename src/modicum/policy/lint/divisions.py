"""Divisions that change nothing, and approvals by nobody."""

from __future__ import annotations

from collections.abc import Iterator

from modicum.core.errors import Code, Problem
from modicum.policy.model import Policy


def idle_divisions(policy: Policy) -> Iterator[Problem]:
    """Yield what is said about the population and changes no decision.

    Args:
        policy: The policy.
    """
    population = policy.vocabulary.population
    limited = {base.unit for base in (*policy.base_policies, *policy.per_release)}
    for unit in population.time_detail:
        if unit not in limited:
            yield Problem(
                Code.NEVER_TRUE,
                f"`time_detail` of `{unit}` changes nothing: no policy limits `{unit}`",
                help="leave it out, or add a policy for the unit",
            )


def nobody_to_ask(policy: Policy) -> Iterator[Problem]:
    """Yield a warning if approvals are asked for and nobody has a role.

    Args:
        policy: The policy.
    """
    asked = (*policy.approvals, *filter(None, [policy.activation]))
    if asked and policy.roles is None:
        yield Problem(
            Code.NEEDS_APPROVAL,
            "people must agree, and nothing says who they are",
            asked[0].mark,
            notes=("what needs approval is never reserved or activated",),
            help="name them:  roles: {" + asked[0].roles[0] + ": [PERSON]}",
        )
