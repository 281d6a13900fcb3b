"""Rounds, groups and plans: what the fold of the log allows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.core.errors import ConflictError
from modicum.ledger import Event, State
from modicum.ledger.log.events import (
    Annotated,
    ApprovalGiven,
    Body,
    DisclosureRecorded,
    GroupActivated,
    GroupRetired,
    PlanCommitted,
    RoundOpened,
)
from modicum.release import EVERYTHING

NOON = "2026-05-01T12:00:00.000000Z"


def after(*bodies: Body) -> State:
    state = State()
    for number, body in enumerate(bodies, 1):
        state.apply(Event(NOON, f"actor-{number}", body), f"{number:064}")
    return state


def plan(identifier: str, round_: str, *releases: str) -> PlanCommitted:
    return PlanCommitted(identifier, round_, "c" * 64, releases)


def disclosure(identifier: str) -> DisclosureRecorded:
    return DisclosureRecorded(identifier, "a table", (), EVERYTHING, "law", {})


FIRST, SECOND = RoundOpened("one", {"user": 10}), RoundOpened("two", {"user": 20})


@pytest.mark.spec("LED-13")
@pytest.mark.parametrize(
    "bodies",
    [
        (FIRST, SECOND),
        (FIRST, RoundOpened("two", {"user": 10, "day": 0})),
        (FIRST, GroupActivated(1, "one"), GroupActivated(2, "one")),
        (FIRST, GroupActivated(1, "one"), SECOND, GroupRetired(1, "two")),
        (FIRST, GroupActivated(1, "one"), GroupRetired(1, "one")),
        (FIRST, plan("p", "one", "r-1", "r-2"), SECOND, plan("q", "two")),
        (disclosure("a"), disclosure("b")),
    ],
)
def test_lawful_steps_are_taken(bodies: tuple[Body, ...]) -> None:
    assert after(*bodies).seq == len(bodies)


@pytest.mark.spec("LED-13")
@pytest.mark.parametrize(
    "bodies",
    [
        (FIRST, RoundOpened("one", {"user": 30})),
        (SECOND, RoundOpened("three", {"user": 19})),
        (FIRST, RoundOpened("two", {"day": 99})),
        (GroupActivated(1, "one"),),
        (FIRST, SECOND, GroupActivated(1, "one")),
        (FIRST, GroupActivated(1, "one"), GroupActivated(1, "one")),
        (FIRST, GroupRetired(1, "one")),
        (
            FIRST,
            GroupActivated(1, "one"),
            GroupRetired(1, "one"),
            GroupRetired(1, "one"),
        ),
        (
            FIRST,
            GroupActivated(1, "one"),
            GroupRetired(1, "one"),
            GroupActivated(1, "one"),
        ),
        (plan("p", "one"),),
        (FIRST, SECOND, plan("p", "one")),
        (FIRST, plan("p", "one"), plan("p", "one")),
        (FIRST, plan("p", "one", "r-1", "r-1")),
        (disclosure("a"), disclosure("a")),
    ],
)
def test_the_last_step_is_refused_and_leaves_no_trace(bodies: tuple[Body, ...]) -> None:
    state = after(*bodies[:-1])
    before = state.digest()
    with pytest.raises(ConflictError):
        state.apply(Event(NOON, "t", bodies[-1]), "f" * 64)
    assert state.digest() == before


STEPS = st.one_of(
    st.builds(
        RoundOpened,
        st.sampled_from("abc"),
        st.dictionaries(st.just("user"), st.integers(0, 2)),
    ),
    st.builds(GroupActivated, st.integers(0, 2), st.sampled_from("abc")),
    st.builds(GroupRetired, st.integers(0, 2), st.sampled_from("abc")),
)


@pytest.mark.spec("LED-13")
@settings(max_examples=300, deadline=None)
@given(steps=st.lists(STEPS, max_size=14))
def test_a_group_is_read_once_and_shares_never_fall(steps: list[Body]) -> None:
    state, taken = State(), list[Body]()
    for body in steps:
        try:
            state.apply(Event(NOON, "t", body), "e" * 64)
        except ConflictError:
            continue
        taken.append(body)
    began = [body.group for body in taken if isinstance(body, GroupActivated)]
    ended = [body.group for body in taken if isinstance(body, GroupRetired)]
    assert len(set(began)) == len(began)
    assert len(set(ended)) == len(ended)
    assert set(ended) <= set(began)
    active = {n for n, one in state.planning.groups.items() if not one.until}
    assert active == set(began) - set(ended)
    shares = [
        body.unlocked.get("user", 0) for body in taken if isinstance(body, RoundOpened)
    ]
    assert shares == sorted(shares)


def test_what_people_said_is_kept_in_order_by_what_it_is_about() -> None:
    def word(subject: str, content: str, *, approves: bool) -> ApprovalGiven:
        return ApprovalGiven(
            subject,  # type: ignore[arg-type]
            "id",
            content,
            approves=approves,
            roles=("officer",),
            reason="",
        )

    state = after(
        word("release", "a" * 64, approves=True),
        word("release", "b" * 64, approves=True),
        word("policy", "a" * 64, approves=True),
        word("release", "a" * 64, approves=False),
        Annotated("", "a remark"),
    )
    votes = state.approvals["release", "a" * 64]
    assert [(one.by, one.approves, one.seq) for one in votes] == [
        ("actor-1", True, 1),
        ("actor-4", False, 4),
    ]
    assert len(state.approvals) == 3
    assert state.annotations == 1


@pytest.mark.spec("LED-3")
def test_the_digest_tells_of_everything() -> None:
    word = ApprovalGiven("plan", "p", "a" * 64, approves=True, roles=("x",), reason="")
    bodies: list[tuple[Body, ...]] = [
        (),
        (FIRST,),
        (SECOND,),
        (FIRST, GroupActivated(1, "one")),
        (FIRST, GroupActivated(1, "one"), GroupRetired(1, "one")),
        (FIRST, plan("p", "one")),
        (disclosure("a"),),
        (Annotated("", "x"),),
        (word,),
    ]
    digests = []
    for some in bodies:
        state = after(*some)
        state.seq, state.head, state.at = 0, "", ""
        digests.append(state.digest())
    assert len(set(digests)) == len(bodies)
