"""Who may open rounds: each unlocks more of the budgets, or retires a user group."""

from __future__ import annotations

from modicum.ledger.decision.approvals import roles_of
from modicum.policy import Policy


def may_open_rounds(person: str, policy: Policy) -> bool:
    """Return whether somebody may open rounds under a policy.

    Args:
        person: The actor, spelled as the roles spell them.
        policy: The policy that is active before the round.
    """
    return roles_missing(person, policy) is None


def roles_missing(person: str, policy: Policy) -> tuple[str, ...] | None:
    """Return the roles of which somebody lacks one to open rounds; None if they may.

    Args:
        person: The actor, spelled as the roles spell them.
        policy: The policy that is active before the round.
    """
    rotation = policy.rotation
    wanted = None if rotation is None else rotation.opened_by
    if wanted is None or not {*wanted}.isdisjoint(roles_of(person, policy)):
        return None
    return wanted
