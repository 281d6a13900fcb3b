"""Consistency: duplicated facts in a log must agree, and its claims must be true."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias, assert_never

from modicum.core.canonical import Plain, digest, encode
from modicum.ledger.decision.approvals import (
    ApprovalState,
    approvals_required,
    approved_by,
    asking_people,
    ill_agreed,
    is_approved,
    may_open_rounds,
    policy_approvals,
    release_approvals,
    roles_of,
)
from modicum.ledger.log.events import (
    ApprovalGiven,
    Body,
    Event,
    GapClosed,
    GroupActivated,
    GroupRetired,
    LedgerResumed,
    PastRedescribed,
    PlanBody,
    PlanCommitted,
    PolicyActivated,
    ReleaseDenied,
    ReleaseRequested,
    ReleaseReserved,
    RoundOpened,
)
from modicum.ledger.log.recorded_release import RecordedMechanism, RecordedRelease
from modicum.ledger.state.lifecycle import ReleaseStatus
from modicum.ledger.state.rounds import Planning
from modicum.ledger.state.state import State
from modicum.policy import Policy
from modicum.policy.declarations.roles import person_key
from modicum.policy.model import RESERVATION_DAYS_MAX, RotationRule
from modicum.release import EVERYTHING, Vocabulary
from modicum.release.parts import part_to_plain
from modicum.release.vocabulary import (
    CHOICE,
    CHOICE_CLAIM,
    CHOICE_METHODS,
    METADATA,
    PAST_METADATA,
    QUERY,
)


def out_of_turn(body: Body, rotation: RotationRule | None, planning: Planning) -> str:
    """Return why a user group may not start or retire; empty if it may.

    Args:
        body: The event.
        rotation: The rotation of user groups; None if there is none.
        planning: Rounds and groups before that.
    """
    if rotation is None:
        return ""
    rounds, turns = len(planning.rounds), rotation.schedule.rounds
    match body:
        case GroupActivated(group=group) if group != rounds:
            return f"group {group} becomes active in round number {rounds}"
        case GroupRetired(group=group) if planning.ages().get(group, 0) <= turns:
            return f"group {group} retires before all its rounds"
        case _:
            return ""


def ill_planned(body: PlanCommitted, state: State) -> str:
    """Return why a plan cannot have accepted its releases; empty if it can.

    Args:
        body: The plan.
        state: The state before it; its releases are reserved by then.
    """
    taken = {
        release for plan in state.planning.plans.values() for release in plan.releases
    }
    for release in body.releases:
        standing = state.releases.get(release)
        if standing is None:
            return f"it plans `{release}`, which does not exist"
        if standing.status is not ReleaseStatus.RESERVED:
            return f"it plans `{release}`, which is {standing.status.value}"
        if release in taken:
            return f"it plans `{release}`, which belongs to another plan"
    return ""


#: Open text of releases, besides labels.
_OPEN_TEXT = frozenset({*METADATA, *PAST_METADATA, QUERY, CHOICE})
#: Since this event version, an approval names the entry reviewed.
_LOOKED_SINCE = 3
#: No reservation is written for longer.
RESERVATION_MAX = timedelta(days=RESERVATION_DAYS_MAX)


def contradiction(release: RecordedRelease, vocabulary: Vocabulary) -> str:
    """Return how a release contradicts itself, as text; empty if it does not.

    Rules use the attributes, labels and parts stored beside the description of a
    mechanism. They must be those that follow from the description.
    """
    if not release.mechanisms:
        return "it has no mechanism"
    if not _are_completed(release.labels, {}, vocabulary):
        return "its labels are not in the policy"
    for key in release.metadata:
        # A later policy may have a label of that name, and would read it.
        if key not in _OPEN_TEXT or key in vocabulary.labels:
            return f"it has `{key}`, which is not a free text of a release"
    claim, by, method = release.metadata.get(CHOICE, "").partition(" by ")
    promised = claim == CHOICE_CLAIM and method in CHOICE_METHODS
    if CHOICE in release.metadata and not (by and promised):
        return "its epsilon was chosen in a way without a known bound"
    names = set()
    for one in release.mechanisms:
        name, kind = one.description.get("name"), one.description.get("kind")
        if not isinstance(name, str) or not isinstance(kind, str):
            return "the name or the kind of a mechanism is not text"
        if name in names:
            return "two mechanisms have the same name"
        names.add(name)
        found = _other_mechanism(one, vocabulary)
        if found:
            return f"mechanism `{name}` {found}"
    return ""


def _other_mechanism(one: RecordedMechanism, vocabulary: Vocabulary) -> str:
    if list(one.attributes) != one.description.get("attributes"):
        return "is described with different attributes"
    if not vocabulary.attributes.issuperset(one.attributes):
        return "reads attributes that are not in the policy"
    given = one.description.get("labels")
    if not isinstance(given, Mapping) or dict(one.labels) != {
        label: given.get(label, declared.default)
        for label, declared in vocabulary.labels.items()
    }:
        return "is described with different labels"
    if not _are_completed(one.labels, given, vocabulary):
        return "has labels that are not in the policy"
    if _part_described(one) != part_to_plain(one.part):
        return "is described with a different part of the data"
    return ""


def is_described(release: RecordedRelease, vocabulary: Vocabulary) -> bool:
    """Return whether the content of a release is the digest of its record."""
    given, labels = release.given, release.labels
    if given is None or not labels.keys() >= {*given}:
        return False
    if any(
        labels[name] != declared.default
        for name, declared in vocabulary.labels.items()
        if name not in given
    ):
        return False
    return list(given) == sorted(set(given)) and content_of(release) == release.content


def content_of(release: RecordedRelease) -> str:
    """Return the SHA-256 of a release's content, recomputed from its record.

    Args:
        release: The release; it records which labels were given.
    """
    plain: dict[str, Plain] = {
        "id": release.id,
        "labels": {name: release.labels[name] for name in release.given or ()},
        "metadata": dict(release.metadata),
        "mechanisms": [dict(one.description) for one in release.mechanisms],
    }
    return digest(encode(plain))


def _are_completed(
    labels: Mapping[str, str], given: Mapping[str, object], vocabulary: Vocabulary
) -> bool:
    """Return whether each label of the policy has a known value, and no other exists.

    Args:
        labels: The labels that are stored.
        given: The labels in the description.
        vocabulary: The vocabulary of the policy.
    """
    known = vocabulary.labels
    return (
        labels.keys() == known.keys()
        and given.keys() <= known.keys()
        and all(value in known[label].values for label, value in labels.items())
    )


def _part_described(one: RecordedMechanism) -> Mapping[str, object]:
    everything = part_to_plain(EVERYTHING)
    return {key: one.description.get(key, none) for key, none in everything.items()}


#: Events with claims under the active policy.
Claim: TypeAlias = (
    PolicyActivated
    | ReleaseReserved
    | ReleaseDenied
    | PastRedescribed
    | ApprovalGiven
    | ReleaseRequested
    | PlanBody
    | LedgerResumed
    | GapClosed
)


def unfounded(event: Event, policy: Policy, state: State) -> str:
    """Return the false claim of an event; empty if all are true."""
    body = event.body
    if not isinstance(body, Claim):
        return ""
    match body:
        case ReleaseReserved():
            return _ill_reserved(body, event, policy, state)
        case ReleaseDenied(release=release):
            stands = release.id in state.releases
            return f"release `{release.id}` already exists and is denied" * stands
        case PolicyActivated():
            return _ill_activated(body, event, policy, state)
        case ApprovalGiven() | ReleaseRequested() | PastRedescribed():
            return _malformed(body, event, policy, state)
        case RoundOpened() | GroupActivated() | GroupRetired():
            return _ill_opened(body, event, policy, state)
        case PlanCommitted():
            return ill_planned(body, state)
        case LedgerResumed() | GapClosed():
            agrees = isinstance(body, LedgerResumed) or body.accepted
            requester = state.planning.gaps.requester(body)
            return ill_agreed(event.actor, requester, policy) if agrees else ""
        case _:
            assert_never(body)


def _ill_opened(
    body: RoundOpened | GroupActivated | GroupRetired,
    event: Event,
    policy: Policy,
    state: State,
) -> str:
    # Groups begin and retire with a round, in one turn and by one actor.
    if not may_open_rounds(event.actor, policy):
        return f"`{event.actor}` opens a round without a role that may"
    # A name accepted once stays valid, also under a policy without it.
    known = {*policy.vocabulary.units, *_unlocked_before(state)}
    if isinstance(body, RoundOpened) and not body.unlocked.keys() <= known:
        return "it unlocks a share of a unit that the policy does not have"
    return out_of_turn(body, policy.rotation, state.planning)


def _unlocked_before(state: State) -> Iterable[str]:
    opened = state.planning.present_round
    return opened.unlocked if opened else ()


def _malformed(
    body: ApprovalGiven | ReleaseRequested | PastRedescribed,
    event: Event,
    policy: Policy,
    state: State,
) -> str:
    if isinstance(body, PastRedescribed):
        known = state.correction_of(body.release.id, body.release.content)
        votes = state.approvals.get(("release", body.release.content), ())
        if (
            event.actor in policy.keys
            and known
            and not any(
                one.by == event.actor and one.approves and is_approved(one, policy)
                for one in votes
                if one.seq > known.seq
            )
        ):
            return f"`{event.actor}` did not sign the correction with a named key"
        asking = state.waiting.requesters.get(body.release.content, ())
        if person_key(event.actor) in asking_people(asking, policy):
            return f"`{event.actor}` requested the correction, and approves it"
        return _ill_approved(body, release_approvals(body.release, policy, state))
    if isinstance(body, ReleaseRequested):
        # A correction always needs a second person.
        if body.release.id in state.releases or approvals_required(
            body.release, policy
        ):
            return ""
        return f"release `{body.release.id}` needs no approval and is requested"
    # Owners vote on contracts without a role; the fold checks them.
    own = {*roles_of(event.actor, policy)}
    if body.subject not in {"contract", "data"} and not (
        body.roles and {*body.roles} <= own
    ):
        return f"`{event.actor}` votes in a role that they do not have"
    if event.version >= _LOOKED_SINCE and not body.head:
        return f"`{event.actor}` does not state what they reviewed"
    return ""


def _ill_reserved(
    body: ReleaseReserved, event: Event, policy: Policy, state: State
) -> str:
    states = release_approvals(body.release, policy, state, event.actor)
    found = _ill_approved(body, states)
    if found:
        return found
    called = f"release `{body.release.id}`"
    bound = policy.reservations
    most = RESERVATION_MAX if bound is None else timedelta(days=bound.days)
    if not timedelta() < lasts(body, event) <= most:
        return f"{called} was reserved for longer than is possible"
    return ""


def lasts(body: ReleaseReserved, event: Event) -> timedelta:
    """Return for how long a release is reserved."""
    return datetime.fromisoformat(body.expires_at) - datetime.fromisoformat(event.at)


def _ill_approved(
    body: ReleaseReserved | PastRedescribed, states: Sequence[ApprovalState]
) -> str:
    called = f"release `{body.release.id}`"
    if not all(one.given_by_names for one in states):
        done = "reserved" if isinstance(body, ReleaseReserved) else "corrected"
        return f"{called} was {done} without approval"
    if approved_by(states) != body.approved_by:
        return f"{called} names approvers who did not approve"
    return ""


def _ill_activated(
    body: PolicyActivated, event: Event, policy: Policy, state: State
) -> str:
    states = policy_approvals(body.digest, policy, state, event.actor)
    if not all(one.given_by_names for one in states):
        return f"policy `{body.name}` was activated without approval"
    if event.version > 1 and not body.reason.strip():
        return f"policy `{body.name}` replaced another without a reason"
    return ""
