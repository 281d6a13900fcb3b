"""Approvals and who is missing, against a plain reading of the rules in words."""

from __future__ import annotations

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from samples.small import POLICY, compiled

from modicum.ledger.decision.approvals import (
    approval_states,
    approved_by,
    policy_approvals,
    roles_of,
)
from modicum.ledger.state.consent import Agreement
from modicum.ledger.state.state import ActivePolicy, State
from modicum.policy import Policy
from modicum.policy.model import Approval
from modicum.policy.predicates import Constant

#: `Ada` and `ada` are one person.
PEOPLE = ("Ada", "ada", "bob", "cyd")
ROLES = ("officer", "steward")
KEYS = ("a" * 64, "b" * 64)
SMALL = compiled().policy

roles = st.fixed_dictionaries(
    {},
    optional={
        role: st.lists(st.sampled_from(PEOPLE), min_size=1, unique=True)
        for role in ROLES
    },
)
approvals = st.builds(
    lambda need, wanted, own: Approval(
        Constant(value=True), need, tuple(wanted), own, None
    ),
    st.integers(1, 3),
    st.lists(st.sampled_from(ROLES), min_size=1, unique=True),
    st.booleans(),
)
said = st.lists(
    st.builds(
        lambda by, approves, votes, key: Agreement(by, approves, tuple(votes), 1, key),
        st.sampled_from(PEOPLE),
        st.booleans(),
        st.lists(st.sampled_from(ROLES), min_size=1, unique=True),
        st.sampled_from(("", *KEYS)),
    ),
    max_size=6,
)
pins = st.dictionaries(
    st.sampled_from(PEOPLE),
    st.lists(st.sampled_from(KEYS), min_size=1, max_size=2, unique=True).map(tuple),
    max_size=2,
)


#: A program, and who answers for it; somebody may answer for a person, too.
PROGRAM = "service:Job"
requests = st.sets(st.sampled_from([*PEOPLE, PROGRAM]), max_size=2)
owns = st.dictionaries(
    st.sampled_from([PROGRAM, "service:other", "bob"]),
    st.lists(st.sampled_from(PEOPLE), min_size=1, max_size=2, unique=True).map(tuple),
    max_size=2,
)


def policy_of(
    known: dict[str, list[str]],
    pinned: dict[str, tuple[str, ...]],
    owned: dict[str, tuple[str, ...]] | None = None,
) -> Policy:
    """Return a policy with these people, and these keys of theirs."""
    people = {role: tuple(each) for role, each in known.items()}
    return replace(SMALL, roles=people, keys=pinned, owners=owned or {})


def counts(
    person: str,
    approval: Approval,
    votes: list[Agreement],
    known: dict[str, list[str]],
    pinned: dict[str, tuple[str, ...]],
) -> bool | None:
    """Return what somebody's last word is worth: yes, no, or nothing."""
    last = None
    for vote in votes:
        if vote.by != person:
            continue
        if vote.approves and person in pinned and vote.key not in pinned[person]:
            continue  # As if it had not been said.
        last = vote
    if last is None:
        return None
    for role in approval.roles:
        if role in last.roles and person in known.get(role, []):
            return last.approves
    return None


@pytest.mark.spec("POL-11")
@settings(max_examples=examples(400), deadline=None)
@given(approvals, said, roles, requests, pins, owns)
def test_approvals_are_counted_as_the_rules_say(
    approval: Approval,
    votes: list[Agreement],
    known: dict[str, list[str]],
    requesters: set[str],
    pinned: dict[str, tuple[str, ...]],
    owned: dict[str, tuple[str, ...]],
) -> None:
    policy = policy_of(known, pinned, owned)
    (states,) = approval_states([approval], votes, policy, requesters)
    asking = {name.lower() for name in requesters}
    for actor in requesters:
        asking |= {one.lower() for one in owned.get(actor, ())}
    worth = {one: counts(one, approval, votes, known, pinned) for one in PEOPLE}
    may = {
        one
        for one in PEOPLE
        if any(one in known.get(role, []) for role in approval.roles)
        and (approval.requester_may_approve or one.lower() not in asking)
    }
    could = {
        one
        for one in PEOPLE
        if any(one in known.get(role, []) for role in approval.roles)
    }
    yes = [one for one in PEOPLE if worth[one] is True and one in may]
    no = [one for one in PEOPLE if worth[one] is False]
    assert list(states.agreed) == yes
    assert list(states.refused) == no
    agreed = {one.lower() for one in yes}
    assert states.given == (len(agreed) >= approval.need and not no)
    assert states.given_by_names == (len(yes) >= approval.need and not no)
    assert states.missing == max(0, approval.need - len(agreed))
    left = may - set(yes) - set(no)
    assert set(states.left) == {one for one in left if one.lower() not in agreed}
    assert set(states.requesters) == could - may
    assert approved_by([states, states]) == states.agreed


def test_a_person_may_have_several_roles() -> None:
    policy = compiled(POLICY + "roles: {a: [ada, bob], b: [ada], c: [cyd]}\n").policy
    assert roles_of("ada", policy) == ("a", "b")
    assert roles_of("Ada", policy) == ()
    assert roles_of("ada", compiled(POLICY).policy) == ()


def test_an_agreement_to_a_policy_ends_with_the_policy_it_was_to_follow() -> None:
    requests = (
        POLICY + "roles: {officer: [ada]}\nactivation: {need: 1, from: [officer]}\n"
    )
    policy, successor = compiled(requests).policy, "5" * 64
    vote = Agreement("ada", True, ("officer",), 7)
    for activated, agreed in ((5, True), (9, False)):
        held = ActivePolicy(policy.digest, policy.name, requests, activated)
        state = State(policies=[held], approvals={("policy", successor): (vote,)})
        (states,) = policy_approvals(successor, policy, state, "bob")
        assert (states.agreed == ("ada",)) == agreed


@pytest.mark.parametrize("written", ["ada", "Ada", " ada ", "ADA"])
def test_a_requester_is_known_however_the_name_is_written(written: str) -> None:
    approval = Approval(Constant(value=True), 1, ("officer",), False, None)
    said = [Agreement("ada", True, ("officer",), 1)]
    policy = policy_of({"officer": ["ada", "bob"]}, {})
    (states,) = approval_states([approval], said, policy, [written])
    assert states.agreed == ()
    (other,) = approval_states([approval], said, policy, ["cyd"])
    assert other.agreed == ("ada",)
