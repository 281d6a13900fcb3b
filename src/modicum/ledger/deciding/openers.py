"""Who may open rounds: each unlocks more of the budgets, or retires a user group."""

from __future__ import annotations

from modicum.ledger.deciding.approvals import roles_of
from modicum.policy import Policy


def may_open_rounds(person: str, policy: Policy) -> bool:
    """Return whether somebody may open rounds under a policy.

    Args:
        person: The actor, spelled as the roles spell them.
        policy: The policy that is active before the round.
    """
    rotation = policy.rotation
    if rotation is None or rotation.opened_by is None:
        return True
    return not {*rotation.opened_by}.isdisjoint(roles_of(person, policy))
