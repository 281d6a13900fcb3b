"""Whether user groups come and go in their turns, and plans name what they reserved."""

from __future__ import annotations

from modicum.ledger.log.events import Body, GroupActivated, GroupRetired, PlanCommitted
from modicum.ledger.state.lifecycle import ReleaseStatus
from modicum.ledger.state.rounds import Planning
from modicum.ledger.state.state import State
from modicum.policy.model import RotationRule


def out_of_turn(body: Body, rotation: RotationRule | None, planning: Planning) -> str:
    """Return why a user group may not come or go; empty if it may.

    Args:
        body: What happens.
        rotation: How groups take turns; None if they do not.
        planning: Rounds and groups before that.
    """
    if rotation is None:
        return ""
    rounds, turns = len(planning.rounds), rotation.schedule.rounds
    match body:
        case GroupActivated(group=group) if group != rounds:
            return f"group {group} becomes active in round number {rounds}"
        case GroupRetired(group=group) if planning.ages().get(group, 0) <= turns:
            return f"group {group} retires before it had all its turns"
        case _:
            return ""


def ill_planned(body: PlanCommitted, state: State) -> str:
    """Return why a plan cannot have taken what it names; empty if it can.

    Args:
        body: The plan.
        state: The state before it; what it takes is reserved by then.
    """
    taken = {
        release for plan in state.planning.plans.values() for release in plan.releases
    }
    for release in body.releases:
        standing = state.releases.get(release)
        if standing is None:
            return f"it plans `{release}`, which is not there"
        if standing.status is not ReleaseStatus.RESERVED:
            return f"it plans `{release}`, which is {standing.status.value}"
        if release in taken:
            return f"it plans `{release}`, which another plan took"
    return ""
