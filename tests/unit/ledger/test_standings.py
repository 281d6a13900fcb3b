"""Standings in columns against a plain list of them."""

from __future__ import annotations

import hashlib
import random
import tracemalloc

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from modicum.ledger import ReleaseStatus, Standing
from modicum.ledger.state.release_table import Standings

NEXT = {
    ReleaseStatus.RESERVED: ("STARTED", "CANCELED", "EXPIRED"),
    ReleaseStatus.STARTED: ("PUBLISHED",),
}


def standing(number: int, status: ReleaseStatus, expires_at: str = "") -> Standing:
    content = hashlib.sha256(b"%d" % number).hexdigest()
    return Standing(f"r-{number}", content, status, expires_at, number + 1, 739000)


def moved(one: Standing, status: ReleaseStatus) -> Standing:
    """Return a standing a step on: only reservations expire."""
    return Standing(one.id, one.content, status, "", one.seq, one.day)


def at(minute: int) -> str:
    return f"2026-05-01T12:{minute:02}:00.000000Z"


def random_history(rng: random.Random, steps: int) -> tuple[Standings, list[Standing]]:
    """Return standings after random steps, and the same as a list."""
    columns, plain = Standings(), list[Standing]()
    for _ in range(steps):
        able = [place for place, one in enumerate(plain) if one.status in NEXT]
        if able and rng.random() < 0.5:
            place = rng.choice(able)
            status = ReleaseStatus[rng.choice(NEXT[plain[place].status])]
            columns.move(plain[place].id, status)
            plain[place] = moved(plain[place], status)
            continue
        status = rng.choice([ReleaseStatus.RESERVED] * 4 + [ReleaseStatus.RECORDED])
        over = at(rng.randrange(60)) if status is ReleaseStatus.RESERVED else ""
        plain.append(standing(len(plain), status, over))
        columns.add(plain[-1])
    return columns, plain


@pytest.mark.spec("LED-4")
@settings(max_examples=examples(150), deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.sampled_from([0, 1, 10, 60, 400]))
def test_columns_say_what_a_list_says(seed: int, steps: int) -> None:
    rng = random.Random(seed)
    columns, plain = random_history(rng, steps)
    assert list(columns.values()) == plain
    assert list(columns) == [one.id for one in plain]
    assert columns.counted == sum(one.status.counts for one in plain)
    for seq in (0, 1, len(plain) // 2, len(plain), len(plain) + 1):
        later = [one.id for one in plain if one.seq > seq]
        assert list(columns.after(seq)) == later
        earlier = [one.id for one in plain if one.seq < seq]
        assert list(columns.before(seq)) == earlier[::-1]
    for minute in (0, rng.randrange(60), 59):
        assert columns.due(at(minute)) == [
            one.id
            for one in plain
            if one.status is ReleaseStatus.RESERVED and one.expires_at <= at(minute)
        ]
    assert "r-9999" not in columns
    assert columns.get("r-9999") is None


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.sampled_from([0, 1, 10, 60]))
def test_columns_survive_being_written(seed: int, steps: int) -> None:
    columns, plain = random_history(random.Random(seed), steps)
    written, block = columns.to_columns()
    again = Standings.from_columns(
        list(written["ids"]),  # type: ignore[arg-type]
        dict(written["expiries"]),  # type: ignore[arg-type]
        block,
    )
    assert list(again.values()) == plain
    assert (again.digest(), again.counted) == (columns.digest(), columns.counted)
    assert again.due(at(59)) == columns.due(at(59))
    again.add(standing(9999, ReleaseStatus.RESERVED, at(30)))
    assert "r-9999" in again.due(at(30))


@pytest.mark.spec("LED-3")
@settings(max_examples=examples(100), deadline=None)
@given(seed=st.integers(0, 2**32), data=st.data())
def test_the_digest_tells_any_two_standings_apart(
    seed: int, data: st.DataObject
) -> None:
    columns, plain = random_history(random.Random(seed), 12)
    place = data.draw(st.integers(0, len(plain) - 1))
    old = plain[place]
    change = data.draw(st.sampled_from(["id", "content", "status", "seq", "day"]))
    fields = {
        "id": old.id + "x",
        "content": "0" * 64,
        "status": ReleaseStatus.RECORDED
        if old.status is not ReleaseStatus.RECORDED
        else ReleaseStatus.PUBLISHED,
        "seq": old.seq + 1,
        "day": old.day + 1,
    }
    names = ("id", "content", "status", "expires_at", "seq", "day")
    values = {name: getattr(old, name) for name in names} | {change: fields[change]}
    other = Standings()
    for one in (*plain[:place], Standing(**values), *plain[place + 1 :]):
        other.add(one)
    assert other.digest() != columns.digest()


def test_parts_that_do_not_belong_together_are_refused() -> None:
    columns, _ = random_history(random.Random(7), 20)
    written, block = columns.to_columns()
    ids: list[str] = list(written["ids"])  # type: ignore[arg-type]
    expiries: dict[str, str] = dict(written["expiries"])  # type: ignore[arg-type]
    assert expiries
    for parts in (
        (ids[1:], expiries, block),
        ([*ids[1:], ids[1]], expiries, block),
        (ids, {}, block),
        (ids, expiries, block[1:]),
    ):
        with pytest.raises(ValueError, match=r"columns|reservations"):
            Standings.from_columns(*parts)


def test_a_content_that_is_no_digest_is_refused_and_leaves_no_trace() -> None:
    columns = Standings()
    for content in ("", "00", "x" * 64):
        wrong = Standing("r", content, ReleaseStatus.RECORDED, "", 1, 1)
        with pytest.raises(ValueError, match=r"SHA-256|hex"):
            columns.add(wrong)
    assert len(columns) == 0


def test_a_standing_takes_little_room() -> None:
    count = 20_000
    tracemalloc.start()
    columns = Standings()
    for number in range(count):
        columns.add(standing(number, ReleaseStatus.RECORDED))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 250 * count
    assert len(columns) == count
