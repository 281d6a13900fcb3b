"""Permission to open rounds, and obstacles of releases in a plan."""

from __future__ import annotations

from collections.abc import Iterator

from modicum.api.local.governance.approval_cases import (
    missing_approvals,
    written_otherwise,
)
from modicum.core.errors import ApprovalError, Code, Problem
from modicum.ledger import RecordedRelease, State
from modicum.ledger.decision.approvals import (
    ApprovalState,
    release_approvals,
    roles_missing,
)
from modicum.policy import Policy


def obstacles_of(
    release: RecordedRelease, policy: Policy, state: State, actor: str
) -> Iterator[str]:
    """Yield the obstacles to reserving a release by a plan, line by line."""
    known = state.releases.get(release.id)
    if known is None:
        if state.waiting.held_by_another(release.id, release.content, actor):
            yield "somebody else requested another release with this id"
        yield from _missing_consent(release, policy, state, actor)
    else:
        other = "" if known.content == release.content else " as another one"
        yield f"it is already {known.status.value}{other}"


def _missing_consent(
    release: RecordedRelease, policy: Policy, state: State, actor: str
) -> Iterator[str]:
    """Yield the missing approvals.

    The planner is rarely the requester. So where requesters do not count as approvers,
    the release must name its requester: otherwise they could approve it themselves.
    """
    states = release_approvals(release, policy, state, actor)
    named = "requester" in {**release.metadata, **release.labels}
    if not named and any(not one.approval.requester_may_approve for one in states):
        yield (
            "it needs approval, and has no `requester`: add  requester: NAME "
            " and have it approved again; earlier approvals were without it"
        )
    agreed = {
        person
        for one in release_approvals(release, policy, state)
        for person in one.agreed
    }
    for one in missing_approvals(states):
        people = f"{one.approval.need} of {' or '.join(one.approval.roles)}"
        yield f"{people} must approve it first:  modicum release approve FILE"
        yield from _uncounted(one, agreed)


def _uncounted(states: ApprovalState, agreed: set[str]) -> Iterator[str]:
    """Yield those whose approval does not count because they are the requester."""
    for person in states.requesters:
        if person in agreed:
            yield (
                f"`{person}` approved it, but requests it by planning it: somebody"
                " else must plan, or approve"
            )


def refuse_others(person: str, policy: Policy) -> None:
    """Refuse an actor who may not open rounds."""
    missing = roles_missing(person, policy)
    if missing is None:
        return
    wanted = " or ".join(missing)
    raise ApprovalError(
        Problem(
            Code.NEEDS_APPROVAL,
            f"`{person}` cannot open a round: that needs {wanted}",
            notes=(
                f"the active policy does not give them {wanted}",
                *written_otherwise(person, policy),
            ),
            help="see `opened_by` of `rotation` and `roles` in the policy",
        )
    )
