"""Requests, proposals, and what people said to them, as plain JSON."""

from __future__ import annotations

from collections.abc import Iterable

from modicum.ledger.deciding.approvals import Hearing
from modicum.ledger.state.waiting import Proposal, Request
from modicum.workspace.documents.conflicts import conflict_to_dict
from modicum.workspace.governing.activation import Activation, Weighed
from modicum.workspace.governing.governance import hearing_to_dict
from modicum.workspace.governing.proposing import PendingPolicy, Proposed
from modicum.workspace.governing.requesting import PendingRequest, Requested
from modicum.workspace.governing.saying import Said
from modicum.workspace.governing.topics import Spoken


def hearings_to_list(heard: Iterable[Hearing]) -> list[dict[str, object]]:
    """Return where approvals stand.

    Args:
        heard: The approvals.
    """
    return [hearing_to_dict(one) for one in heard]


def spoken_to_dict(one: Spoken, *, current: bool) -> dict[str, object]:
    """Return what somebody said once.

    Args:
        one: What they said.
        current: Whether it is about what is weighed here.
    """
    return {
        "entry": one.seq,
        "at": one.at,
        "by": one.by,
        "approves": one.approves,
        "roles": list(one.roles),
        "reason": one.reason,
        "key": one.key or None,
        "content": one.content,
        "current": current,
    }


def said_to_dict(said: Said) -> dict[str, object]:
    """Return what somebody said just now, and where the approvals stand after it.

    Args:
        said: What they said.
    """
    return {
        "subject": said.topic.subject,
        "id": said.topic.id,
        "content": said.topic.content,
        "by": said.by,
        "approves": said.approves,
        "roles": list(said.roles),
        "key": said.key or None,
        "entry": said.seq,
        "repeated": said.repeated,
        "corrected_in": said.corrected_in or None,
        "approvals": hearings_to_list(said.hearings),
    }


def request_to_dict(request: Request) -> dict[str, object]:
    """Return a request.

    Args:
        request: The request.
    """
    return {
        "release": request.release,
        "content": request.content,
        "policy": request.policy,
        "by": request.by,
        "at": request.at,
        "entry": request.seq,
    }


def requested_to_dict(found: Requested) -> dict[str, object]:
    """Return a request that was made just now.

    Args:
        found: The request.
    """
    return {
        **request_to_dict(found.request),
        "repeated": found.repeated,
        "approvals": hearings_to_list(found.hearings),
    }


def redescribed_to_dict(release: str, found: Requested | None) -> dict[str, object]:
    """Return a correction of a past release that was asked for just now.

    Args:
        release: The id of the release.
        found: The request; None if the release is described so already.
    """
    return {
        "release": release,
        "request": None if found is None else requested_to_dict(found),
        "over_limit": [] if found is None else list(found.decision.over_limit),
    }


def pending_to_dict(one: PendingRequest) -> dict[str, object]:
    """Return a request that waits.

    Args:
        one: The request.
    """
    return {
        **request_to_dict(one.request),
        "reason": one.reason,
        "current": one.current,
        "corrects": one.corrects,
        "complete": one.complete,
        "approvals": hearings_to_list(one.hearings),
    }


def proposal_to_dict(one: Proposal) -> dict[str, object]:
    """Return a policy that somebody asks for.

    Args:
        one: The proposal.
    """
    return {
        "digest": one.digest,
        "name": one.name,
        "by": one.by,
        "at": one.at,
        "entry": one.seq,
    }


def proposed_to_dict(found: Proposed) -> dict[str, object]:
    """Return a policy that was proposed just now.

    Args:
        found: The proposal.
    """
    return {
        **proposal_to_dict(found.proposal),
        "repeated": found.repeated,
        "approvals": hearings_to_list(found.hearings),
    }


def pending_policy_to_dict(one: PendingPolicy) -> dict[str, object]:
    """Return a policy that is proposed and waits.

    Args:
        one: The policy.
    """
    return {
        **proposal_to_dict(one.proposal),
        "reason": one.reason,
        "complete": one.complete,
        "approvals": hearings_to_list(one.hearings),
        "text": one.text,
    }


def conflicts_to_list(weighed: Weighed) -> list[dict[str, object]]:
    """Return the rules that history exceeds under a policy.

    Args:
        weighed: What it means to activate it.
    """
    return [
        {
            **conflict_to_dict(one),
            "made": one.rule.id in weighed.made,
            "accepted": one.rule.id in weighed.accepted,
        }
        for one in weighed.conflicts
    ]


def weighed_to_dict(
    weighed: Weighed, done: Activation | None = None
) -> dict[str, object]:
    """Return what it means to activate a policy, or that it was.

    Args:
        weighed: What it means.
        done: What was done; None if it is only weighed.
    """
    new, old = weighed.successor.policy, weighed.replaced.policy
    changed = done is not None and done.changed
    return {
        "policy": {
            "name": new.name,
            "digest": new.digest,
            "rules": len(weighed.successor.rules),
        },
        "replaced": {"name": old.name, "digest": old.digest},
        "changed": changed,
        "ledger": {"seq": done.seq, "head": done.head} if done and changed else None,
        "conflicts": conflicts_to_list(weighed),
        "accepted": list(weighed.accepted),
        "problems": [one.to_dict() for one in weighed.problems],
        "approvals": hearings_to_list(weighed.hearings),
    }
