"""Tokens and sessions beside the log, on every store."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from samples.small import NOON, compiled
from samples.stores import Place, postgres_place, sqlite_place

from modicum.api.local import Workspace
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL, Identity
from modicum.api.permissions.tokens import (
    Token,
    TokenTerms,
    secret_digest,
    token_digest,
)
from modicum.api.ports.storage import Store
from modicum.core.errors import (
    AccessError,
    Code,
    InputError,
    UsageError,
    VerificationError,
)
from modicum.server.auth import registry as recently_read
from modicum.server.auth import registry_rows
from modicum.server.auth.registry import (
    IssuedToken,
    RecentlyRead,
    Registry,
    open_registry,
)
from modicum.server.auth.registry_rows import FORGOTTEN_MAX
from modicum.storage.read_only import ReadOnlyStore
from modicum.system.clock import FixedClock, add_seconds

DAY = 24 * 60 * 60
ANALYST = {Role.ANALYST: frozenset({"hr", "bank"})}
PATIENCE = 20.0


@pytest.fixture(params=["sqlite", "sqlite-kept-open", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgres":
        return postgres_place(request.getfixturevalue("postgres"))
    return sqlite_place(
        tmp_path / "a.db", keep_open=request.param == "sqlite-kept-open"
    )


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOON)


@pytest.fixture
def store(place: Place, clock: FixedClock) -> Iterator[Store]:
    opened = place.open()
    Workspace(opened, clock, policy=compiled()).init()
    yield opened
    opened.close()


@pytest.fixture
def registry(store: Store, clock: FixedClock) -> Registry:
    return open_registry(store, clock=clock)


def found(registry: Registry, issued: IssuedToken) -> Token | None:
    digest = token_digest(issued.text)
    assert digest is not None
    return registry.token_by_digest(digest)


def later(clock: FixedClock, seconds: float) -> None:
    clock.time = add_seconds(NOON, round(seconds))


# --- tokens ---


def test_a_token_is_found_by_what_was_shown(
    registry: Registry, store: Store, clock: FixedClock
) -> None:
    terms = TokenTerms("olga ∆ 'o", ANALYST, name='a "notebook" {s} %s', seconds=60)
    issued = registry.add_token(terms, created_by="ada")
    token = found(registry, issued)
    assert token == issued.token == found(open_registry(store, clock=clock), issued)
    assert token is not None
    assert registry.tokens() == [token]
    assert token.identity() == Identity(
        "olga ∆ 'o",
        ANALYST,
        is_service=False,
        via=f"token {token.id}",
        by_token=True,
    )
    assert (token.name, token.created_by) == (terms.name, "ada")
    assert (token.created_at, token.expires_at) == (NOON, add_seconds(NOON, 60))
    other = TokenTerms("bot", {Role.AUDITOR: frozenset({ALL})}, is_service=True)
    second = registry.add_token(other, created_by="ada")
    assert {one.id for one in registry.tokens()} == {token.id, second.token.id}
    kept = found(registry, second)
    assert kept is not None
    assert kept.identity().is_service
    assert kept.expires_at == add_seconds(NOON, 90 * DAY)


def test_an_actor_has_a_hundred_active_tokens_at_most(
    registry: Registry, store: Store, clock: FixedClock
) -> None:
    short, terms = TokenTerms("olga", ANALYST, seconds=60), TokenTerms("olga", ANALYST)
    registry.add_token(short, created_by="olga")
    issued = [registry.add_token(terms, created_by="olga") for _ in range(99)]

    def refused(by: Registry) -> str:
        before = by.tokens()
        with pytest.raises(AccessError) as caught:
            by.add_token(terms, created_by="ada")  # Whoever makes it.
        assert caught.value.code is Code.FORBIDDEN
        assert by.tokens() == before
        return caught.value.render()

    assert "revoke an unused one" in refused(registry)
    refused(open_registry(store, clock=clock))
    # Others have their own, also whose name is alike.
    registry.add_token(TokenTerms("Olga", ANALYST), created_by="olga")
    # There is room for one where one is revoked, and where one has ended.
    registry.revoke_token(issued[7].token.id)
    assert found(registry, registry.add_token(terms, created_by="olga")) is not None
    refused(registry)
    later(clock, 59)
    refused(registry)
    later(clock, 60)
    registry.add_token(terms, created_by="olga")
    refused(registry)


def test_who_makes_tokens_at_once_makes_no_more_than_there_may_be(
    place: Place, store: Store, clock: FixedClock
) -> None:
    terms = TokenTerms("olga", ANALYST)
    first = open_registry(store, clock=clock)
    for _ in range(97):
        first.add_token(terms, created_by="olga")
    stores = [place.open() for _ in range(2)]

    def make(one: int) -> bool:
        try:
            open_registry(stores[one % 2], clock=clock).add_token(
                terms, created_by="olga"
            )
        except AccessError:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(make, range(8)))
    for one in stores:
        one.close()
    assert sum(made) == 3
    assert len(first.tokens()) == 100


@pytest.mark.spec("REG-4")
def test_no_secret_is_stored_or_shown_again(
    registry: Registry, place: Place, clock: FixedClock, tmp_path: Path
) -> None:
    issued = registry.add_token(TokenTerms("olga", ANALYST), created_by="ada")
    opened = registry.add_session(Identity("olga", ANALYST), seconds=60)
    secret = issued.text.partition(issued.token.id)[2].lstrip("_")
    for text in (issued.text, secret, opened.secret, opened.csrf):
        for shown in (issued, opened, issued.token, opened.session, registry.tokens()):
            assert text not in repr(shown)
        assert text not in str(issued.token.view(NOON))
        for path in tmp_path.rglob("*"):  # The SQLite file and what lies beside it.
            assert text.encode() not in path.read_bytes()
    for shown in (issued, opened, registry.tokens()):
        assert issued.token.digest not in repr(shown)
        assert opened.session.digest not in repr(shown)
    # What is stored is the SHA-256 of what was shown, and nothing that leads to it.
    assert issued.token.digest == sha256(issued.text.encode()).hexdigest()
    assert opened.session.digest == sha256(opened.secret.encode()).hexdigest()
    assert opened.session.csrf == sha256(opened.csrf.encode()).hexdigest()


def test_tokens_are_long_and_different(registry: Registry) -> None:
    issued = [
        registry.add_token(TokenTerms("olga", ANALYST), created_by="ada")
        for _ in range(20)
    ]
    for one in issued:
        assert re.fullmatch(rf"mdc_{one.token.id}_[\w-]{{43}}", one.text)
        assert re.fullmatch(r"[a-z2-7]{10}", one.token.id)
        assert token_digest(one.text) == one.token.digest
    for part in (slice(0, 14), slice(15, 30), slice(30, None)):
        assert len({one.text[part] for one in issued}) == len(issued)


@pytest.mark.spec("REG-4")
def test_a_token_ends_when_it_expires(registry: Registry, clock: FixedClock) -> None:
    terms = TokenTerms("olga", ANALYST, seconds=DAY)
    issued = registry.add_token(terms, created_by="ada")
    later(clock, DAY - 1)
    assert found(registry, issued) is not None
    later(clock, DAY)
    assert found(registry, issued) is None  # Also where it was read a moment ago.
    (token,) = registry.tokens()
    assert token.status(clock.now()).value == "expired"


@pytest.mark.spec("REG-4")
def test_a_revoked_token_lets_nobody_in_and_stays_listed(
    registry: Registry, clock: FixedClock
) -> None:
    issued, other = (
        registry.add_token(TokenTerms(name, ANALYST), created_by="ada")
        for name in ("olga", "paul")
    )
    assert found(registry, issued) is not None
    later(clock, 5)
    revoked = registry.revoke_token(issued.token.id)
    assert found(registry, issued) is None
    assert found(registry, other) is not None
    assert revoked.revoked_at == clock.now()
    later(clock, 10)
    assert registry.revoke_token(issued.token.id) == revoked
    listed = {one.id: one for one in registry.tokens()}
    assert listed[issued.token.id] == revoked
    assert revoked.status(clock.now()).value == "revoked"
    for unknown in ("a" * 10, "none", "\x00", "\ud800", ""):
        with pytest.raises(InputError) as caught:
            registry.revoke_token(unknown)
        assert caught.value.code is Code.NOT_FOUND


def test_of_two_who_revoke_at_once_the_first_counts(
    registry: Registry, store: Any
) -> None:
    issued = registry.add_token(TokenTerms("olga", ANALYST), created_by="ada")
    first, second = (registry_rows.revoking(issued.token.id, at) for at in ("1", "2"))
    assert store.change_beside([first, second]) == [1, 0]
    assert [one.revoked_at for one in registry.tokens()] == ["1"]


def test_what_is_no_token_is_found_nowhere(registry: Registry) -> None:
    issued = registry.add_token(TokenTerms("olga", ANALYST), created_by="ada")
    for wrong in ("", "mdc_", issued.text[:-1], issued.text + "A", issued.text.upper()):
        assert token_digest(wrong) is None
    assert token_digest(f" {issued.text}") is None
    assert token_digest(f"{issued.text}\n") is None
    swapped = issued.text[:-1] + ("A" if issued.text[-1] != "A" else "B")
    digest = token_digest(swapped)
    assert digest is not None
    assert registry.token_by_digest(digest) is None
    assert registry.token_by_digest("") is None


@pytest.mark.spec("REG-5")
def test_another_process_hears_of_it_within_seconds(
    store: Store, clock: FixedClock, place: Place
) -> None:
    ticks = [0.0]
    here = open_registry(store, clock=clock, fresh_seconds=5.0)
    here._tokens = RecentlyRead(here._read_token, 5.0, lambda: ticks[0])
    there = open_registry(place.open(), clock=clock)
    issued = there.add_token(TokenTerms("olga", ANALYST), created_by="ada")
    assert found(here, issued) is not None  # What is new is seen at once.
    there.revoke_token(issued.token.id)
    assert found(there, issued) is None
    ticks[0] = 4.9
    assert found(here, issued) is not None
    ticks[0] = 5.0
    assert found(here, issued) is None
    always = open_registry(store, clock=clock, fresh_seconds=0)
    assert found(always, issued) is None


@pytest.mark.spec("REG-4")
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("grants", "{}'"),
        ("grants", '{"king":["*"]}'),
        ("grants", '{"analyst":"*"}'),
        ("grants", '["analyst"]'),
        ("kind", "robot"),
    ],
)
def test_a_damaged_token_lets_nobody_in(
    registry: Registry, place: Place, column: str, value: str
) -> None:
    issued = registry.add_token(TokenTerms("olga", ANALYST), created_by="ada")
    escaped = value.replace("'", "''").replace("{", "{{").replace("}", "}}")
    place.damage(f"UPDATE {{s}}tokens SET {column} = '{escaped}'")
    with pytest.raises(VerificationError) as caught:
        found(registry, issued)
    assert caught.value.code is Code.LEDGER_BROKEN


# --- what a token may be ---


@pytest.mark.parametrize(
    "actor", ["", " olga", "olga\n", "ol\x00ga", "a" * 201, "\u202e"]
)
def test_an_actor_that_cannot_be_written_is_refused(actor: str) -> None:
    with pytest.raises(InputError):
        TokenTerms(actor, ANALYST)
    with pytest.raises(InputError):
        TokenTerms("olga", {Role.ANALYST: frozenset({"hr", actor})})


@pytest.mark.parametrize("days", [0, 367, -1])
def test_tokens_always_end(days: int) -> None:
    with pytest.raises(InputError):
        TokenTerms("olga", ANALYST, seconds=days * DAY)
    TokenTerms("olga", ANALYST, seconds=366 * DAY)
    TokenTerms("olga", ANALYST, seconds=1)


def test_grants_that_are_none_or_stay_apart_are_refused() -> None:
    for nothing in ({}, {Role.ANALYST: frozenset[str]()}):
        with pytest.raises(InputError):
            TokenTerms("olga", nothing)
    every = frozenset({ALL})
    with pytest.raises(AccessError):
        TokenTerms("olga", {Role.AUDITOR: every, Role.ANALYST: every})


# --- sessions ---


def test_a_session_lasts_until_it_ends(registry: Registry, clock: FixedClock) -> None:
    identity = Identity("olga", ANALYST, via="https://id.example.org")
    opened = registry.add_session(identity, seconds=60)
    digest = secret_digest(opened.secret)
    assert registry.session_by_digest(digest) == opened.session
    assert opened.session.identity == identity
    assert opened.session.comes_from_a_page(opened.csrf)
    for wrong in ("", opened.secret, opened.csrf[:-1]):
        assert not opened.session.comes_from_a_page(wrong)
    later(clock, 59)
    assert registry.session_by_digest(digest) is not None
    later(clock, 60)
    assert registry.session_by_digest(digest) is None


def test_a_session_ends_later_and_never_sooner(
    registry: Registry, store: Store, clock: FixedClock
) -> None:
    who = Identity("olga", ANALYST)
    one = registry.add_session(who, seconds=60).session
    other = registry.add_session(who, seconds=60).session
    registry.prolong_session(one.digest, add_seconds(NOON, 120))
    registry.prolong_session(one.digest, add_seconds(NOON, 90))
    registry.prolong_session(secret_digest("no people"), add_seconds(NOON, 120))
    for seconds, left in ((59, {one.digest, other.digest}), (119, {one.digest})):
        later(clock, seconds)
        for known in (registry, open_registry(store, clock=clock)):
            found_now = {
                each.digest
                for each in (one, other)
                if known.session_by_digest(each.digest) is not None
            }
            assert found_now == left
    later(clock, 120)
    assert registry.session_by_digest(one.digest) is None


@pytest.mark.spec("REG-4")
def test_a_session_that_was_ended_is_gone(registry: Registry) -> None:
    one = registry.add_session(Identity("olga", ANALYST), seconds=60)
    two = registry.add_session(Identity("olga", ANALYST), seconds=60)
    assert registry.session_by_digest(one.session.digest) is not None
    registry.end_session(one.session.digest)
    registry.end_session(one.session.digest)
    assert registry.session_by_digest(one.session.digest) is None
    assert registry.session_by_digest(two.session.digest) == two.session


@pytest.mark.parametrize("seconds", [0, -1, 30 * DAY + 1])
def test_a_session_has_an_end(registry: Registry, seconds: int) -> None:
    with pytest.raises(InputError):
        registry.add_session(Identity("olga", ANALYST), seconds=seconds)


def test_sessions_that_are_over_are_forgotten(
    registry: Registry, store: Store, clock: FixedClock
) -> None:
    someone = Identity("olga", ANALYST)
    for seconds in (10, 20, 30, 1000):
        registry.add_session(someone, seconds=seconds)
    assert count(store) == 4
    later(clock, 20)
    registry.add_session(someone, seconds=1000)
    assert count(store) == 3
    later(clock, 30)
    assert registry.purge() == 1
    assert registry.purge() == 0
    assert count(store) == 2


def test_few_sessions_are_forgotten_at_once(
    registry: Registry, store: Store, clock: FixedClock
) -> None:
    session = registry.add_session(Identity("olga", ANALYST), seconds=10).session
    more = [
        registry_rows.beginning(
            type(session)(f"{n}", session.identity, "", NOON, NOON[:-1] + f"{n:03}Z")
        )
        for n in range(FORGOTTEN_MAX + 5)
    ]
    store.change_beside(more)  # type: ignore[attr-defined]
    later(clock, 1)
    assert registry.purge() == FORGOTTEN_MAX
    assert registry.purge() == 5
    assert registry.session_by_digest(session.digest) is not None


def count(store: Any) -> int:
    from modicum.storage.service_tables import Statement

    return int(store.rows_beside(Statement("SELECT count(*) FROM {s}.sessions"))[0][0])


@pytest.mark.spec("REG-4")
@pytest.mark.parametrize(
    "identity", ["[]", "{}", '{"name":"a","grants":{"auditor":["*"],"admin":["*"]}']
)
def test_a_damaged_session_lets_nobody_in(
    registry: Registry, place: Place, identity: str
) -> None:
    opened = registry.add_session(Identity("olga", ANALYST), seconds=60)
    if identity.endswith("]}"):
        identity += ',"is_service":false,"via":""}'
    escaped = identity.replace("{", "{{").replace("}", "}}")
    place.damage(f"UPDATE {{s}}sessions SET identity = '{escaped}'")
    with pytest.raises(VerificationError):
        registry.session_by_digest(opened.session.digest)


# --- where there is nothing ---


def test_no_ledger_is_begun_by_a_token(place: Place, clock: FixedClock) -> None:
    registry = open_registry(place.open(), clock=clock)
    with pytest.raises(UsageError) as caught:
        registry.add_token(TokenTerms("olga", ANALYST), created_by="ada")
    assert caught.value.code is Code.LEDGER_MISSING
    assert not place.open().exists()


def test_what_is_only_read_keeps_no_tokens() -> None:
    with pytest.raises(UsageError):
        open_registry(ReadOnlyStore("a bundle", lambda after, limit: iter(())))


# --- what was read a moment ago ---


class Shelf:
    """Things that can be changed, and a clock."""

    def __init__(self) -> None:
        self.things: dict[str, str] = {}
        self.reads = 0
        self.time = 0.0
        self.meanwhile: Callable[[], None] = lambda: None
        self.recent = RecentlyRead(self._read, 5.0, lambda: self.time)

    def _read(self, key: str) -> str | None:
        self.reads += 1
        found = self.things.get(key)
        self.meanwhile()
        return found


def test_a_thing_is_read_once_in_a_while() -> None:
    shelf = Shelf()
    shelf.things["a"] = "one"
    assert [shelf.recent.get("a") for _ in range(3)] == ["one"] * 3
    assert shelf.reads == 1
    shelf.things["a"] = "two"
    shelf.time = 4.9
    assert shelf.recent.get("a") == "one"
    shelf.time = 5.0
    assert shelf.recent.get("a") == "two"
    shelf.recent.forget()
    assert (shelf.recent.get("a"), shelf.reads) == ("two", 3)


def test_its_age_counts_from_before_it_was_read() -> None:
    shelf = Shelf()
    shelf.things["a"] = "one"

    def slowly() -> None:
        shelf.time += 4

    shelf.meanwhile = slowly
    assert shelf.recent.get("a") == "one"  # It was so at 0, and it is 4 now.
    shelf.time = 4.9
    shelf.recent.get("a")
    assert shelf.reads == 1
    shelf.time = 5.0
    shelf.recent.get("a")
    assert shelf.reads == 2


def test_what_is_not_there_is_looked_for_again() -> None:
    shelf = Shelf()
    assert shelf.recent.get("a") is None
    shelf.things["a"] = "one"
    assert shelf.recent.get("a") == "one"


def test_what_changed_while_it_was_read_is_not_remembered() -> None:
    shelf = Shelf()
    shelf.things["a"] = "one"

    def change() -> None:
        shelf.meanwhile = lambda: None
        shelf.things["a"] = "two"
        shelf.recent.forget()

    shelf.meanwhile = change
    assert shelf.recent.get("a") == "one"  # It began before the change.
    assert shelf.recent.get("a") == "two"


def test_what_was_read_longest_ago_is_forgotten_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recently_read, "REMEMBERED_MAX", 3)
    shelf = Shelf()
    shelf.things = {key: key for key in "abcd"}
    for key in "abcd":
        shelf.recent.get(key)
    assert len(shelf.recent._known) == 3
    for key in "bcd":
        shelf.recent.get(key)
    assert shelf.reads == 4
    shelf.recent.get("a")
    assert shelf.reads == 5


def test_many_threads_add_and_revoke(
    registry: Registry, store: Store, clock: FixedClock
) -> None:
    failed: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for _ in range(4):
                issued = registry.add_token(TokenTerms(name, ANALYST), created_by="ada")
                assert found(registry, issued) == issued.token
                registry.revoke_token(issued.token.id)
                assert found(registry, issued) is None
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(PATIENCE)
    assert failed == []
    assert len(registry.tokens()) == 16
    assert all(one.revoked_at for one in registry.tokens())
