"""Whether people agree to a release that somebody else hands in, with many others."""

from __future__ import annotations

from collections.abc import Iterator

from modicum.ledger import RecordedRelease, State
from modicum.ledger.deciding.approvals import hearings_of_release
from modicum.policy import Policy
from modicum.workspace.governing.governance import missing_approvals


def missing_consent(
    release: RecordedRelease, policy: Policy, state: State, actor: str
) -> Iterator[str]:
    """Yield what is missing before a plan may reserve a release, line by line.

    Who plans is seldom who asks. So where who asks may not be among those who agree,
    the release must say who that is: else they could agree to it themselves.

    Args:
        release: The release.
        policy: The policy that says who must agree.
        state: What was said so far.
        actor: Who plans, or commits.
    """
    heard = hearings_of_release(release, policy, state, actor)
    named = "requester" in {**release.metadata, **release.labels}
    if not named and any(not one.approval.requester_may_approve for one in heard):
        yield "people must agree to it, and it does not name its `requester`"
    for one in missing_approvals(heard):
        people = f"{one.approval.need} of {' or '.join(one.approval.roles)}"
        yield f"{people} must agree first: modicum release approve"
