"""Tokens that were read just now: they are known without a read, and no longer."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from samples.small import NOON, compiled
from starlette.requests import Request

from modicum.api.local import Workspace
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import Identity
from modicum.api.permissions.tokens import Token, TokenTerms, token_digest
from modicum.core.errors import (
    AccessError,
    Code,
    Problem,
    UnavailableError,
    VerificationError,
)
from modicum.server.auth import authenticators, registry_rows
from modicum.server.auth.authenticators import ApiTokens
from modicum.server.auth.grants import CurrentGrants, GrantTable
from modicum.server.auth.registry import RecentlyRead, Registry, open_registry
from modicum.storage.service_tables import Statement
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock, add_seconds

TERMS = TokenTerms("olga", {Role.ANALYST: frozenset({"visits"})}, seconds=60)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOON)


@pytest.fixture
def store(tmp_path: Path, clock: FixedClock) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "ledger.db", keep_open=True)
    Workspace(opened, clock, policy=compiled()).init()
    yield opened
    opened.close()


def digest_of(text: str) -> str:
    digest = token_digest(text)
    assert digest is not None
    return digest


def request_with(text: str) -> Request:
    header = (b"authorization", f"Bearer {text}".encode())
    return Request({"type": "http", "headers": [header]})


def api_tokens(registry: Registry) -> ApiTokens:
    return ApiTokens(registry, "cookie", CurrentGrants(GrantTable()))


def identify_all(
    tokens: ApiTokens, texts: Sequence[str]
) -> list[Identity | BaseException | None]:
    async def every() -> list[Identity | BaseException | None]:
        asked = (tokens.identify(request_with(one)) for one in texts)
        return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(every())


@pytest.mark.spec("REG-5")
def test_a_token_read_just_now_is_known_without_a_read(
    store: SqliteStore, clock: FixedClock
) -> None:
    ticks = [0.0]
    registry = open_registry(store, clock=clock)
    registry._tokens = RecentlyRead(registry._read_token, 5.0, lambda: ticks[0])
    issued = registry.add_token(TERMS, created_by="ada")
    digest = digest_of(issued.text)
    assert registry.cached_token(digest) is None  # It was not read yet.
    assert registry.token_by_digest(digest) == issued.token
    assert registry.cached_token(digest) == issued.token
    assert registry.cached_token("0" * 64) is None
    clock.time = add_seconds(NOON, 60)
    assert registry.cached_token(digest) is None  # It has expired.
    clock.time = NOON
    ticks[0] = 5.0
    assert registry.cached_token(digest) is None
    assert registry.token_by_digest(digest) == registry.cached_token(digest)
    registry.revoke_token(issued.token.id)
    assert registry.cached_token(digest) is None
    always = open_registry(store, clock=clock, fresh_seconds=0)
    other = digest_of(always.add_token(TERMS, created_by="ada").text)
    assert always.token_by_digest(other) is not None
    assert always.cached_token(other) is None


def test_no_thread_is_taken_for_it(
    store: SqliteStore, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = open_registry(store, clock=clock)
    text = registry.add_token(TERMS, created_by="ada").text
    taken = list[str]()

    async def counted(read: object, digests: list[str]) -> dict[str, Token | None]:
        taken.extend(digests)
        return registry.tokens_by_digest(digests)

    monkeypatch.setattr(authenticators, "run_in_threadpool", counted)

    def identified(registry: Registry) -> Identity | None:
        return asyncio.run(api_tokens(registry).identify(request_with(text)))

    for _ in range(3):
        found = identified(registry)
        assert found is not None
        assert found.name == "olga"
    assert len(taken) == 1
    clock.time = add_seconds(NOON, 60)
    with pytest.raises(AccessError):
        identified(registry)


class CountingStore(SqliteStore):
    """A store that counts the queries of its service tables."""

    queries = 0
    is_down = False

    def rows_beside(self, statement: Statement) -> list[tuple[Any, ...]]:
        self.queries += 1
        if self.is_down:
            raise UnavailableError(Problem(Code.LEDGER_BUSY, "no store"))
        return super().rows_beside(statement)


@pytest.fixture
def counting(store: SqliteStore, tmp_path: Path) -> Iterator[CountingStore]:
    opened = CountingStore(tmp_path / "ledger.db", keep_open=True)
    yield opened
    opened.close()


def issued(registry: Registry, count: int) -> list[str]:
    terms = [replace(TERMS, actor=f"person{number}") for number in range(count)]
    return [registry.add_token(one, created_by="ada").text for one in terms]


def names(found: Sequence[Identity | BaseException | None]) -> list[str]:
    return [one.name for one in found if isinstance(one, Identity)]


@pytest.mark.spec("REG-5")
def test_tokens_asked_for_together_are_read_together(
    counting: CountingStore, clock: FixedClock
) -> None:
    registry = open_registry(counting, clock=clock)
    texts = issued(registry, 3)
    tokens = api_tokens(registry)
    counting.queries = 0
    everybody = [*texts, *texts]
    assert (
        names(identify_all(tokens, everybody)) == ["person0", "person1", "person2"] * 2
    )
    assert counting.queries == 1
    assert len(names(identify_all(tokens, everybody))) == 6
    assert counting.queries == 1  # They are known now.
    other = open_registry(counting, clock=clock)
    other.revoke_token(texts[1])
    registry._tokens.forget()
    assert names(identify_all(tokens, texts)) == ["person0", "person2"]


@pytest.mark.spec("REG-5")
def test_more_tokens_than_one_query_reads(
    counting: CountingStore, clock: FixedClock
) -> None:
    registry = open_registry(counting, clock=clock)
    texts = issued(registry, registry_rows.TOGETHER_MAX + 1)
    counting.queries = 0
    found = identify_all(api_tokens(registry), texts)
    assert names(found) == [f"person{number}" for number in range(len(texts))]
    assert counting.queries == 2


@pytest.mark.spec("REG-5")
def test_what_changed_while_it_was_read_is_read_again() -> None:
    recent = RecentlyRead[str](lambda _: None, 5.0, lambda: 0.0)
    changes: Iterator[Callable[[], None]] = iter([recent.forget, lambda: None])

    def read(keys: Sequence[str]) -> dict[str, str | None]:
        next(changes)()
        return dict.fromkeys(keys, "found")

    for known in (None, "found"):
        assert recent.get_all(["key"], read) == {"key": "found"}
        assert recent.peek("key") == known


def test_a_damaged_token_fails_nobody_else(
    counting: CountingStore, clock: FixedClock, tmp_path: Path
) -> None:
    registry = open_registry(counting, clock=clock)
    texts = issued(registry, 3)
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        connection.execute("UPDATE tokens SET grants = '7' WHERE actor = 'person1'")
    registry._tokens.forget()
    first, second, third = identify_all(api_tokens(registry), texts)
    assert names([first, third]) == ["person0", "person2"]
    assert isinstance(second, VerificationError)


def test_a_store_that_cannot_be_read_tells_each_caller(
    counting: CountingStore, clock: FixedClock
) -> None:
    registry = open_registry(counting, clock=clock)
    texts = issued(registry, 3)
    tokens = api_tokens(registry)
    counting.is_down = True
    found = identify_all(tokens, texts)
    assert [type(one) for one in found] == [UnavailableError] * 3
    assert len(set(map(id, found))) == 3  # Each has its own.
    counting.is_down = False
    assert len(names(identify_all(tokens, texts))) == 3


def test_one_who_gives_up_takes_nothing_from_others(
    counting: CountingStore, clock: FixedClock
) -> None:
    registry = open_registry(counting, clock=clock)
    texts = issued(registry, 2)
    tokens = api_tokens(registry)

    async def ask() -> Identity | None:
        first, second = (
            asyncio.create_task(tokens.identify(request_with(one))) for one in texts
        )
        await asyncio.sleep(0)
        first.cancel()
        return await second

    found = asyncio.run(ask())
    assert found is not None
    assert found.name == "person1"
