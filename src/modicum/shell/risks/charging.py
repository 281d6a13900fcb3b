"""A private choice under a reservation: charged before it reads a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from modicum.release import ReleaseDraft, declared, pure_dp
from modicum.risk.choice import Choice
from modicum.risk.given import Number, above_zero
from modicum.workspace import Decision, Workspace


def selection_release(
    release: str, *, unit: str, attributes: Sequence[str], eps: Number
) -> ReleaseDraft:
    """Return the release that a private selection is.

    Args:
        release: Its id.
        unit: The unit of the policy whose instances are the persons of the choice.
        attributes: What the query reads, by the policy's names.
        eps: What the choice costs, whatever it finds; > 0.

    Raises:
        InputError: If eps is not above 0.
    """
    spent = above_zero("the epsilon of the selection", eps)
    mechanism = declared(
        name="selection", attributes=list(attributes), cost={unit: pure_dp(spent)}
    )
    return ReleaseDraft(release, mechanisms=[mechanism])


def charged(
    workspace: Workspace,
    draft: ReleaseDraft,
    choose: Callable[[], Choice],
    begun: Callable[[], None] = lambda: None,
) -> tuple[Decision, Choice | None]:
    """Make a choice under a reservation.

    It is reserved and started before rows are read; what fails after that stays spent.

    Args:
        workspace: Where it is charged.
        draft: The release that the choice is.
        choose: Makes the choice.
        begun: Called once it is started.

    Returns:
        The decision, and the choice; None if it is denied.

    Raises:
        ModicumError: If the release or the choice is not as it must be.
    """
    decision = workspace.submit(draft)
    if not decision.allowed:
        return decision, None
    with workspace.use(draft.release):
        begun()
        return decision, choose()
