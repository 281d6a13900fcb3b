"""Approvals: who approved a release or a policy, and who is still missing.

The last vote of a person counts. Votes count only of people who have a required role
now and had it when they voted, so removing somebody from a role cancels their votes in
it. A refusal blocks until it is withdrawn: no number of approvals outvotes it. If the
policy lists a person's keys, their approval counts only if one of these keys signed it.
See ADR 0014 and ADR 0030.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from modicum.ledger.decision.balances import facts_of
from modicum.ledger.log.recorded_release import RecordedRelease
from modicum.ledger.state.consent import Agreement
from modicum.ledger.state.state import State
from modicum.policy import Policy
from modicum.policy.declarations.roles import person_key
from modicum.policy.model import Approval
from modicum.policy.predicates import Facts, Scope, holds


class ApprovalState(Struct, frozen=True):
    """The state of one approval.

    Attributes:
        approval: The required approval.
        agreed: The people who agree and count, in the order of their names.
        refused: The people who refuse, in the order of their names.
        left: The people who could still agree, in the order of their names.
        requesters: The people who could approve if they were not requesters, in the
            order of their names.
    """

    approval: Approval
    agreed: tuple[str, ...]
    refused: tuple[str, ...]
    left: tuple[str, ...]
    requesters: tuple[str, ...] = ()

    @property
    def missing(self) -> int:
        """The number of further approvals needed. Who has two names is one of them."""
        people = {person_key(name) for name in self.agreed}
        return max(self.approval.need - len(people), 0)

    @property
    def given(self) -> bool:
        """Whether enough people approved and nobody refused."""
        return not self.missing and not self.refused

    @property
    def given_by_names(self) -> bool:
        """Whether enough names approved and nobody refused.

        Earlier versions counted names, and accepted policies whose roles spell one
        person in two ways. What they allowed stays valid, so an audit requires only
        this.
        """
        return len(self.agreed) >= self.approval.need and not self.refused


def approvals_required(
    release: RecordedRelease, policy: Policy
) -> tuple[Approval, ...]:
    """Return the approvals that a release needs under a policy.

    A mechanism may have its own labels, which rules use. So an approval applies if it
    does to the release as a whole, or to the release with the labels of any one of its
    mechanisms.
    """
    if not policy.approvals:
        return ()
    facts = facts_of(release, policy.vocabulary)
    readings = [reading for one in facts for reading in (one, _by_own_labels(one))]
    return tuple(
        approval
        for approval in policy.approvals
        if any(holds(approval.when, reading) for reading in readings)
    )


def _by_own_labels(facts: Facts) -> Facts:
    """Return facts as if the release had the labels of the mechanism."""
    own = {
        (Scope.RELEASE, label): value
        for (scope, label), value in facts.labels.items()
        if scope is Scope.MECHANISM
    }
    return replace(facts, labels={**facts.labels, **own})


def release_approvals(
    release: RecordedRelease, policy: Policy, state: State, *actors: str
) -> tuple[ApprovalState, ...]:
    """Return the state of each approval that a release needs under a policy.

    Args:
        release: The release.
        policy: The policy.
        state: The votes so far.
        actors: The submitters, if known. They are requesters, and so are the release's
            own `requester`, and its requester in the ledger.

    Returns:
        A correction of a past release is approved only after it is requested, and never
        by its requester. Earlier refusals stay valid until withdrawn.
    """
    required = approvals_required(release, policy)
    if not required:
        return ()
    requesters = [*actors, *state.waiting.requesters.get(release.content, ())]
    votes = state.approvals.get(("release", release.content), ())
    correction = state.correction_of(release.id, release.content)
    if correction is not None:
        before = [one for one in votes if one.seq <= correction.seq]
        last = {one.by: one for one in before if is_approved(one, policy)}
        refused = [one for one in last.values() if not one.approves]
        votes = (*refused, *votes[len(before) :])
        required = tuple(replace(one, requester_may_approve=False) for one in required)
    named = {**release.metadata, **release.labels}.get("requester")
    if named is not None:
        requesters.append(named)
    return approval_states(required, votes, policy, requesters)


def policy_approvals(
    successor: str, policy: Policy, state: State, *actors: str
) -> tuple[ApprovalState, ...]:
    """Return the state of the approval that activating another policy needs.

    Args:
        successor: The digest of the policy that is to hold.
        policy: The active policy: it determines the approvers.
        state: The votes so far.
        actors: Those who activate it, if known. They are requesters, and so is its
            proposer.
    """
    if policy.activation is None:
        return ()
    votes = state.approvals.get(("policy", successor), ())
    # Approvals under an earlier policy were for another change.
    since = state.policy.seq if state.policy else 0
    counted = [one for one in votes if one.seq > since]
    proposal = state.waiting.proposals.get(successor)
    requesters = actors if proposal is None else (*actors, proposal.by)
    return approval_states([policy.activation], counted, policy, requesters)


def approval_states(
    required: Sequence[Approval],
    votes: Iterable[Agreement],
    policy: Policy,
    requesters: Iterable[str],
) -> tuple[ApprovalState, ...]:
    """Return the state of each approval.

    Args:
        required: The approvals that are needed.
        votes: The votes, oldest first.
        policy: The policy: the people who have each role, and their keys.
        requesters: The requesters. They and their owners may refuse; their approval
            counts only where the policy allows it.
    """
    roles = policy.roles or {}
    last = {one.by: one for one in votes if is_approved(one, policy)}
    asking = asking_people(requesters, policy)
    people = {person for each in roles.values() for person in each}
    own = frozenset(person for person in people if person_key(person) in asking)
    return tuple(_approval_state(approval, last, roles, own) for approval in required)


def asking_people(requesters: Iterable[str], policy: Policy) -> frozenset[str]:
    """Return the keys of all who request something: also the owners of a program."""
    asking = {person_key(one) for one in requesters}
    return frozenset(asking).union(
        person_key(owner)
        for actor, owners in policy.owners.items()
        if person_key(actor) in asking
        for owner in owners
    )


def is_approved(one: Agreement, policy: Policy) -> bool:
    """Return whether a vote may count: a refusal always, an approval by the right key.

    A vote that does not count withdraws nothing either: an earlier refusal stays valid.

    Args:
        one: The vote; if it is signed, its signature was checked.
        policy: The policy that decides.
    """
    pinned = policy.keys.get(one.by)
    return not one.approves or pinned is None or one.key in pinned


def _approval_state(
    approval: Approval,
    last: Mapping[str, Agreement],
    roles: Mapping[str, Sequence[str]],
    requesters: frozenset[str],
) -> ApprovalState:
    entitled = {one for role in approval.roles for one in roles.get(role, ())}
    counted = {
        person: last[person].approves
        for person in entitled & last.keys()
        if any(
            role in approval.roles and person in roles.get(role, ())
            for role in last[person].roles
        )
    }
    may = entitled if approval.requester_may_approve else entitled - requesters
    agreed = {person for person, approves in counted.items() if approves} & may
    refused = {person for person, approves in counted.items() if not approves}
    return ApprovalState(
        approval,
        tuple(sorted(agreed)),
        tuple(sorted(refused)),
        _left(may - refused, agreed),
        tuple(sorted(entitled - may)),
    )


def _left(may: set[str], agreed: set[str]) -> tuple[str, ...]:
    """Return those who may still approve: not those who did under another name."""
    known = {person_key(name) for name in agreed}
    return tuple(sorted(name for name in may if person_key(name) not in known))


def approved_by(counted: Iterable[ApprovalState]) -> tuple[str, ...]:
    """Return the people whose agreement counts, in the order of their names."""
    return tuple(sorted({person for one in counted for person in one.agreed}))


def roles_of(person: str, policy: Policy) -> tuple[str, ...]:
    """Return the roles of a person under a policy, in its order."""
    return tuple(
        role for role, people in (policy.roles or {}).items() if person in people
    )


def may_open_rounds(person: str, policy: Policy) -> bool:
    """Return whether a person may open rounds under a policy."""
    return roles_missing(person, policy) is None


def ill_agreed(person: str, requester: str, policy: Policy) -> str:
    """Return why a person may not agree to go on after a loss; empty if they may.

    It may make room in every budget, as another policy may: so those agree who may
    approve that, and none who answers for a program that asks, or for the same one.
    """
    activation = policy.activation
    if activation and {*activation.roles}.isdisjoint(roles_of(person, policy)):
        return f"`{person}` agrees to a loss without a role of `activation`"
    hands = (asking_people([one], policy) for one in (person, requester))
    if not frozenset.isdisjoint(*hands):
        both = (
            f"`{person}`" if person == requester else f"`{requester}`, for `{person}`,"
        )
        return f"{both} asked; another person must agree"
    return ""


def plans_freely(person: str, policy: Policy) -> bool:
    """Return whether what a person's plans reserve is not limited by identity.

    So it is if the policy names who may open rounds, and this person may.
    """
    rotation = policy.rotation
    named = rotation is not None and rotation.opened_by is not None
    return named and may_open_rounds(person, policy)


def roles_missing(person: str, policy: Policy) -> tuple[str, ...] | None:
    """Return the roles a person needs to open rounds; None if they may."""
    rotation = policy.rotation
    wanted = None if rotation is None else rotation.opened_by
    if wanted is None or not {*wanted}.isdisjoint(roles_of(person, policy)):
        return None
    return wanted
