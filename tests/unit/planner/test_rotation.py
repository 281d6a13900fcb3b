"""Rotation: who is active when, and which group a user belongs to."""

from __future__ import annotations

import hashlib
from collections import Counter
from datetime import date, timedelta

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.core.errors import Code, InputError
from modicum.planner import Rotation

KEY = bytes(range(32))

rotations = st.builds(Rotation, st.integers(1, 12), st.integers(1, 30))


def hashed(unit_id: str, key: bytes) -> int:
    """HMAC-SHA-256 from its definition, as a number below 2 to the 256."""
    block = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in block))
    inner.update(b"modicum/user-group/v1\0" + unit_id.encode())
    outer = hashlib.sha256(bytes(b ^ 0x5C for b in block) + inner.digest())
    return int(outer.hexdigest(), 16)


# --- rounds and groups ----------------------------------------------------------------


@given(rotations, st.integers(0, 60))
@settings(max_examples=examples(100))
def test_the_window_holds_the_groups_that_are_active(
    rotation: Rotation, round_: int
) -> None:
    groups = [
        group
        for group in range(1, 100)
        if rotation.activation(group) <= round_ < rotation.retirement(group)
    ]
    assert list(rotation.active_groups(round_)) == groups
    assert len(groups) == min(round_, rotation.active)
    for group in range(1, 100):
        age = rotation.age(group, round_)
        assert (group in groups) == (1 <= age <= rotation.active)
        assert age == sum(1 for t in range(round_ + 1) if t >= group)


@given(rotations, st.integers(0, 60), st.integers(1, 100))
@settings(max_examples=examples(100))
def test_arrivals_and_groups_are_two_sides_of_one_thing(
    rotation: Rotation, round_: int, group: int
) -> None:
    forward = group in rotation.groups_of_arrivals(round_)
    assert forward == (round_ in rotation.arrivals_of_group(group))
    assert len(rotation.groups_of_arrivals(round_)) == rotation.horizon


def test_with_a_horizon_of_one_groups_follow_arrival() -> None:
    rotation = Rotation(active=3, horizon=1)
    assert [rotation.group_of("anybody", joined) for joined in (0, 1, 7)] == [1, 2, 8]


def test_rounds_follow_the_calendar() -> None:
    rotation, first = Rotation(round_days=7), date(2026, 2, 26)
    found = [
        rotation.round_of(first + timedelta(n), first_day=first) for n in range(15)
    ]
    assert found == [0] * 7 + [1] * 7 + [2]
    with pytest.raises(InputError) as caught:
        rotation.round_of(date(2026, 2, 25), first_day=first)
    assert caught.value.code is Code.OUT_OF_RANGE


# --- users ----------------------------------------------------------------------------


@given(rotations, st.text(max_size=20), st.integers(0, 50), st.binary(min_size=16))
@settings(max_examples=examples(150))
def test_a_user_has_one_group_and_it_has_not_begun(
    rotation: Rotation, unit_id: str, joined: int, key: bytes
) -> None:
    """So each user is active once, for a whole life, in rounds after they joined."""
    group = rotation.group_of(unit_id, joined, key)
    assert group in rotation.groups_of_arrivals(joined)
    assert rotation.group_of(unit_id, joined, key) == group
    seen = [t for t in range(100) if group in rotation.active_groups(t)]
    assert seen == list(range(group, group + rotation.active))
    assert joined < seen[0]


@given(st.text(max_size=40), st.integers(2, 5200), st.binary(min_size=16, max_size=64))
@settings(max_examples=examples(150))
def test_the_group_is_the_scaled_hash(unit_id: str, horizon: int, key: bytes) -> None:
    """The part of all hashes below this one says which group; so all are as likely."""
    group = Rotation(horizon=horizon).group_of(unit_id, 0, key) - 1
    assert group * 2**256 <= hashed(unit_id, key) * horizon < (group + 1) * 2**256


def test_the_assignment_of_a_user_never_changes() -> None:
    """A later version that moves anybody would give them a second budget."""
    rotation = Rotation()
    found = [rotation.group_of(f"user-{n}", 10, KEY) for n in range(8)]
    assert found == [65, 88, 14, 50, 108, 33, 56, 97]


@pytest.mark.parametrize("horizon", [2, 7, 104])
def test_groups_are_equally_likely(horizon: int) -> None:
    rotation, each = Rotation(horizon=horizon), 400
    drawn = (rotation.group_of(f"u{n}", 0, KEY) for n in range(each * horizon))
    counts = Counter(drawn)
    assert set(counts) == set(range(1, horizon + 1))
    chi = sum((count - each) ** 2 / each for count in counts.values())
    # Mean horizon - 1, variance 2 (horizon - 1): within five deviations.
    assert abs(chi - (horizon - 1)) < 5 * (2 * (horizon - 1)) ** 0.5


def test_another_key_tells_nothing_about_the_groups() -> None:
    """Those of one group under one key are spread evenly under another."""
    rotation = Rotation(horizon=4)
    other = bytes(reversed(KEY))
    users = [f"u{n}" for n in range(8000)]
    pairs = Counter(
        (rotation.group_of(u, 0, KEY), rotation.group_of(u, 0, other)) for u in users
    )
    assert len(pairs) == 16
    assert all(400 < count < 600 for count in pairs.values())


# --- mistakes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "numbers",
    [
        {"active": 0},
        {"active": 1041},
        {"horizon": 0},
        {"horizon": 5201},
        {"round_days": 0},
        {"round_days": 367},
    ],
)
def test_numbers_out_of_range(numbers: dict[str, int]) -> None:
    with pytest.raises(InputError) as caught:
        Rotation(**numbers)
    assert caught.value.code is Code.OUT_OF_RANGE
    assert caught.value.problems[0].help.startswith("it is from 1 to")


@pytest.mark.parametrize("key", [None, b"", bytes(15)])
def test_a_key_that_is_missing_or_short(key: bytes | None) -> None:
    with pytest.raises(InputError) as caught:
        Rotation().group_of("u", 0, key)
    assert caught.value.code is Code.OUT_OF_RANGE
    assert "16 random bytes" in caught.value.problems[0].help


def test_an_id_that_is_no_text() -> None:
    with pytest.raises(InputError) as caught:
        Rotation().group_of("\ud800", 0, KEY)
    assert caught.value.code is Code.NOT_TEXT


def test_rounds_and_groups_that_cannot_be() -> None:
    rotation = Rotation()
    for call in (
        lambda: rotation.active_groups(-1),
        lambda: rotation.age(0, 1),
        lambda: rotation.age(1, -1),
        lambda: rotation.activation(0),
        lambda: rotation.retirement(10**9 + 1),
        lambda: rotation.groups_of_arrivals(-1),
        lambda: rotation.arrivals_of_group(0),
        lambda: rotation.group_of("u", -1, KEY),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.code is Code.OUT_OF_RANGE
