"""Refusing people who may not open rounds."""

from __future__ import annotations

from modicum.api.local.governance.governance import written_otherwise
from modicum.core.errors import ApprovalError, Code, Problem
from modicum.ledger.decision.openers import roles_missing
from modicum.policy import Policy


def refuse_others(person: str, policy: Policy) -> None:
    """Refuse somebody who may not open rounds.

    Args:
        person: The actor.
        policy: The active policy.

    Raises:
        ApprovalError: If `opened_by` names roles and they have none of them.
    """
    missing = roles_missing(person, policy)
    if missing is None:
        return
    wanted = " or ".join(missing)
    raise ApprovalError(
        Problem(
            Code.NEEDS_APPROVAL,
            f"`{person}` cannot open a round: that takes {wanted}",
            notes=(
                f"the active policy does not give them {wanted}",
                *written_otherwise(person, policy),
            ),
            help="`opened_by` of `rotation` and `roles` of the policy say who may",
        )
    )
