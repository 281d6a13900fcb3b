"""Answers that are kept beside the log: what every store promises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.stores import Place, append, numbered, postgres_place, sqlite_place

from modicum.api.ports.storage import Store, StoredAnswer
from modicum.core.errors import InvariantError, VerificationError
from modicum.storage.service_tables import FORGOTTEN_MAX

AT = "2026-05-01T12:00:00.000000Z"
EARLY = "2026-04-01T12:00:00.000000Z"


@pytest.fixture(params=["sqlite", "sqlite-kept-open", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgres":
        return postgres_place(request.getfixturevalue("postgres"))
    return sqlite_place(
        tmp_path / "a.db", keep_open=request.param == "sqlite-kept-open"
    )


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    opened = place.open()
    yield opened
    opened.close()


def kept(key: str, *, at: str = AT, answer: bytes = b"{}") -> StoredAnswer:
    return StoredAnswer(key, "d" * 64, answer, at)


def keep(store: Store, *answers: StoredAnswer, forget_before: str = "") -> None:
    with store.turn() as turn:
        turn.keep(answers, forget_before=forget_before)


def known(store: Store, *keys: str) -> dict[str, StoredAnswer]:
    with store.turn() as turn:
        return dict(turn.answered(keys))


def test_what_is_kept_is_found_again_as_it_was(place: Place, store: Store) -> None:
    ones = [
        StoredAnswer("a key", "0" * 64, bytes(range(256)) * 3, AT),
        StoredAnswer("schlüssel '\";%s{s}?", "f" * 64, b"", EARLY),
    ]
    with store.turn() as turn:
        turn.append(numbered(1, 1))
        turn.keep(ones, forget_before="")
        assert turn.answered(["a key"]) == {"a key": ones[0]}
    other = place.open()
    found = known(other, "none", *(one.key for one in ones))
    assert found == {one.key: one for one in ones}
    assert known(other) == known(other, "", "a ke", "A KEY") == {}
    assert list(other.read(0)) == numbered(1, 1)
    other.close()


@pytest.mark.spec("REG-1")
def test_a_turn_that_fails_keeps_neither_entries_nor_answers(store: Store) -> None:
    append(store, numbered(1, 1))
    with pytest.raises(KeyError), store.turn() as turn:  # noqa: PT012 - in the turn
        turn.append(numbered(2, 2))
        turn.keep([kept("k")], forget_before="")
        raise KeyError
    assert known(store, "k") == {}
    assert list(store.read(0)) == numbered(1, 1)


@pytest.mark.spec("REG-1")
@pytest.mark.parametrize("when", ["in the turn", "after it"])
def test_a_process_that_is_killed_keeps_both_or_neither(
    place: Place, store: Store, when: str
) -> None:
    append(store, numbered(1, 1))
    store.close()
    script = """
from modicum.api.ports.storage import StoredAnswer
with store.turn() as turn:
    turn.append(numbered(2, 2))
    turn.keep([StoredAnswer("k", "d" * 64, b"{}", "2026")], forget_before="")
    IN
die()
"""
    place.run(script.replace("IN", "die()" if when == "in the turn" else ""))
    is_stored = when == "after it"
    assert list(store.read(1)) == (numbered(2, 2) if is_stored else [])
    assert set(known(store, "k")) == ({"k"} if is_stored else set())


def test_a_turn_that_is_over_knows_no_answers(store: Store) -> None:
    with store.turn() as turn:
        turn.append(numbered(1, 1))
    with pytest.raises(InvariantError):
        turn.answered(["k"])
    with pytest.raises(InvariantError):
        turn.keep([kept("k")], forget_before="")
    assert known(store, "k") == {}


def test_a_key_is_kept_once(store: Store) -> None:
    keep(store, kept("k"))
    with pytest.raises(VerificationError):
        keep(store, kept("k", answer=b"other"))
    assert known(store, "k") == {"k": kept("k")}


@pytest.mark.spec("REG-3")
def test_old_answers_are_forgotten_a_bounded_number_at_once(store: Store) -> None:
    more = 7
    old = [
        kept(f"old {n}", at=f"2026-04-01T12:00:00.{n:06}Z")
        for n in range(FORGOTTEN_MAX + more)
    ]
    limit = "2026-04-24"
    keep(store, *reversed(old))
    keep(store, kept("at", at=limit), kept("just before", at="2026-04-23T23:59:59Z"))
    keys = [one.key for one in old]
    assert len(known(store, *keys)) == len(keys)  # Nothing was said to be forgotten.
    keep(store, kept("new 1"), forget_before=limit)
    assert set(known(store, *keys)) == set(keys[-more:])  # The oldest went first.
    keep(store, kept("new 2"), forget_before=limit)
    assert known(store, *keys) == {}
    rest = ["at", "just before", "new 1", "new 2"]
    assert set(known(store, *rest)) == {"at", "new 1", "new 2"}


KEYS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@settings(max_examples=30)
@given(keys=st.lists(KEYS, unique=True, max_size=8), looked=st.lists(KEYS, max_size=5))
def test_any_keys_are_told_apart(keys: list[str], looked: list[str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        store = sqlite_place(Path(folder, "a.db"), keep_open=True).open()
        keep(store, *(kept(key, answer=key.encode()) for key in keys))
        found = known(store, *looked, *keys[:2])
        store.close()
    expected = {key for key in keys if key in looked} | set(keys[:2])
    assert {key: one.answer for key, one in found.items()} == {
        key: key.encode() for key in expected
    }
