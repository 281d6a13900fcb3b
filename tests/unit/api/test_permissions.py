"""What somebody may do, held against a plain reading of the table."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modicum.api.permissions.actions import (
    ALLOWED,
    APART,
    IN_WORDS,
    PEOPLE_ONLY,
    REACH,
    Action,
    Reach,
    Role,
)
from modicum.api.permissions.identity import ALL, Grants, Identity, within
from modicum.core.errors import AccessError, Code

WRITES = {
    Action.PROPOSE_POLICY,
    Action.APPROVE_POLICY,
    Action.ACTIVATE_POLICY,
    Action.SUBMIT_RELEASE,
    Action.CARRY_OUT_RELEASE,
    Action.CARRY_OUT_ANY,
    Action.APPROVE_RELEASE,
    Action.RECORD_PAST,
    Action.REMARK,
    Action.PLAN_ROUND,
    Action.COMMIT_PLAN,
    Action.MANAGE_OWN_TOKENS,
    Action.MANAGE_TOKENS,
}

SETS = ("labs", "visits", ALL)


@st.composite
def grants(draw: st.DrawFn) -> dict[Role, frozenset[str]]:
    roles = draw(st.sets(st.sampled_from(Role), min_size=0, max_size=3))
    apart = any(a in roles and b in roles for a, b in APART)
    if apart:
        roles = set(list(roles)[:1])
    return {
        role: draw(st.frozensets(st.sampled_from(SETS), max_size=2)) for role in roles
    }


def plainly(given_: Grants, action: Action, data_set: str | None) -> bool:
    for role, sets in given_.items():
        if action not in ALLOWED[role] or not sets:
            continue
        if ALL in sets or REACH[action] is Reach.ANY:
            return True
        if REACH[action] is Reach.DATA_SET and data_set is not None:
            return data_set in sets
    return False


@given(
    grants(),
    st.sampled_from(Action),
    st.sampled_from(["labs", "visits", "other", None]),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_may_is_the_table_read_aloud(
    given_: Grants,
    action: Action,
    data_set: str | None,
    how: tuple[bool, bool, bool],
) -> None:
    is_service, by_token, only_proof = how
    who = Identity(
        "ann",
        given_,
        is_service=is_service,
        by_token=by_token,
        only_proof=only_proof,
    )
    absent = is_service or (by_token and not only_proof)
    expected = any(
        plainly({role: sets}, action, data_set) for role, sets in given_.items()
    ) and not (absent and action in PEOPLE_ONLY)
    assert who.may(action, data_set) is expected
    if expected:
        who.must(action, data_set)
    else:
        with pytest.raises(AccessError) as caught:
            who.must(action, data_set)
        assert caught.value.code is Code.FORBIDDEN
        assert "`ann` is not authorized" in str(caught.value)


@given(
    grants(),
    grants(),
    st.sampled_from(Action),
    st.sampled_from(["labs", "visits", "other", None]),
)
def test_what_two_grants_allow_is_what_each_role_of_both_allows(
    one: Grants, other: Grants, action: Action, data_set: str | None
) -> None:
    both = Identity("ann", within(one, other))
    expected = any(
        plainly({role: sets}, action, name) and plainly({role: most}, action, name)
        for role, sets in one.items()
        for most in [other.get(role, frozenset())]
        for name in named(action, data_set, sets | most)
    )
    assert both.may(action, data_set) is expected


def named(
    action: Action, data_set: str | None, sets: frozenset[str]
) -> list[str | None]:
    """Return the data sets by one of which both must reach an action."""
    if REACH[action] is not Reach.ANY:
        return [data_set]
    return [one for one in ("labs", "visits") if sets & {one, ALL}]


def test_a_release_without_a_data_set_is_about_all_of_them() -> None:
    who = Identity("ann", {Role.ANALYST: frozenset({"visits"})})
    assert who.may(Action.SUBMIT_RELEASE, "visits")
    assert not who.may(Action.SUBMIT_RELEASE, None)
    assert not who.may(Action.SUBMIT_RELEASE, "labs")


def test_no_role_for_a_set_lends_another_role_that_set() -> None:
    who = Identity(
        "ann",
        {
            Role.ANALYST: frozenset({"visits"}),
            Role.DATA_STEWARD: frozenset({"labs"}),
        },
    )
    assert who.may(Action.APPROVE_RELEASE, "labs")
    assert not who.may(Action.APPROVE_RELEASE, "visits")


@pytest.mark.parametrize("action", list(Action))
def test_every_action_has_a_reach_and_somebody(action: Action) -> None:
    assert action in REACH
    assert any(action in allowed for allowed in ALLOWED.values())


def test_an_auditor_writes_nothing_and_an_admin_has_no_say() -> None:
    assert ALLOWED[Role.AUDITOR].isdisjoint(WRITES)
    about_budgets = WRITES - {Action.MANAGE_OWN_TOKENS, Action.MANAGE_TOKENS}
    assert ALLOWED[Role.ADMIN].isdisjoint(about_budgets)


def test_programs_decide_nothing_that_people_decide() -> None:
    all_roles = {Role.PRIVACY_OFFICER: frozenset({ALL})}
    person, program = (
        Identity("olga", all_roles),
        Identity("job", all_roles, is_service=True),
    )
    for action in PEOPLE_ONLY:
        assert person.may(action)
        assert not program.may(action)
        with pytest.raises(AccessError, match="is not authorized") as caught:
            program.must(action)
        assert "only a person may do this" in caught.value.problems[0].help


@pytest.mark.parametrize(("one", "other"), [*combinations(Role, 2)])
def test_roles_that_stay_apart_are_nobodys(one: Role, other: Role) -> None:
    apart = (one, other) in APART or (other, one) in APART
    grants_ = {one: frozenset({ALL}), other: frozenset({ALL})}
    if not apart:
        assert set(Identity("ann", grants_).grants) == {one, other}
        return
    with pytest.raises(AccessError) as caught:
        Identity("ann", grants_)
    assert caught.value.code is Code.DUTIES_JOINED


def test_who_audits_or_gives_rights_stands_alone() -> None:
    deciding = {Role.PRIVACY_OFFICER, Role.DATA_STEWARD}
    for one, other in product([Role.AUDITOR], set(Role) - {Role.AUDITOR}):
        assert (one, other) in APART
    for other in deciding:
        assert (Role.ADMIN, other) in APART


def test_an_identity_is_not_changed_from_outside() -> None:
    given_ = {Role.ANALYST: frozenset({"visits"})}
    who = Identity("ann", given_)
    given_[Role.ADMIN] = frozenset({ALL})
    assert not who.may(Action.MANAGE_TOKENS)
    with pytest.raises(TypeError):
        who.grants[Role.ADMIN] = frozenset({ALL})  # type: ignore[index]


def test_what_somebody_may_not_is_told_in_a_sentence() -> None:
    assert IN_WORDS.keys() == set(Action)
    for action, text in IN_WORDS.items():
        with pytest.raises(AccessError) as caught:
            Identity("ann", {}).must(action)
        assert caught.value.problems[0].message == f"`ann` is not authorized to {text}"
        # The verb is that of the action itself.
        assert text.split()[0] == action.value.split("-")[0] or action is Action.REMARK
