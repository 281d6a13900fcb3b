"""What a log says twice must be the same both times, and what it claims must be so."""

from __future__ import annotations

from collections.abc import Mapping

from modicum.ledger.approvals import (
    approved_by,
    hearings_of_policy,
    hearings_of_release,
    roles_of,
)
from modicum.ledger.events import (
    ApprovalGiven,
    Event,
    PolicyActivated,
    RecordedMechanism,
    RecordedRelease,
    ReleaseReserved,
)
from modicum.ledger.state import State
from modicum.policy import Policy
from modicum.release import EVERYTHING, Vocabulary
from modicum.release.parts import part_to_plain


def contradiction(release: RecordedRelease, vocabulary: Vocabulary) -> str:
    """Return how a release contradicts itself, in words; empty if it does not.

    Rules go by the attributes, labels and parts that stand beside the description of
    a mechanism. They must be those that the description leads to.

    Args:
        release: The release, as it is stored.
        vocabulary: The words of the policy that it was read under.
    """
    names = [str(one.description.get("name")) for one in release.mechanisms]
    if len(set(names)) != len(names):
        return "two mechanisms have one name"
    if not _are_completed(release.labels, {}, vocabulary):
        return "its labels are not those of the policy"
    for name, one in zip(names, release.mechanisms, strict=True):
        if list(one.attributes) != one.description.get("attributes"):
            return f"mechanism `{name}` is described with other attributes"
        given = one.description.get("labels")
        if not isinstance(given, Mapping) or dict(one.labels) != {
            label: given.get(label, declared.default)
            for label, declared in vocabulary.labels.items()
        }:
            return f"mechanism `{name}` is described with other labels"
        if not _are_completed(one.labels, given, vocabulary):
            return f"the labels of mechanism `{name}` are not those of the policy"
        if _part_described(one) != part_to_plain(one.part):
            return f"mechanism `{name}` is described with another part of the data"
    return ""


def _are_completed(
    labels: Mapping[str, str], given: Mapping[str, object], vocabulary: Vocabulary
) -> bool:
    """Return whether there is a known value for each label of the policy, and no other.

    Args:
        labels: The labels that are stored.
        given: The labels that the description gives.
        vocabulary: The words of the policy.
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


def unfounded(event: Event, policy: Policy, state: State) -> str:
    """Return what an event claims about approvals and is not so; empty if all is so.

    Args:
        event: The event.
        policy: The policy that is active before it.
        state: The state before it.
    """
    body = event.body
    if isinstance(body, ReleaseReserved):
        heard = hearings_of_release(body.release, policy, state, event.actor)
        if not all(one.given for one in heard):
            return f"release `{body.release.id}` was reserved without approval"
        if approved_by(heard) != body.approved_by:
            return f"release `{body.release.id}` names others than those who agreed"
    elif isinstance(body, PolicyActivated):
        heard = hearings_of_policy(body.digest, policy, state, event.actor)
        if not all(one.given for one in heard):
            return f"policy `{body.name}` was activated without approval"
    elif isinstance(body, ApprovalGiven) and (
        not body.roles or not {*body.roles} <= {*roles_of(event.actor, policy)}
    ):
        return f"`{event.actor}` speaks in a role that is not theirs"
    return ""
