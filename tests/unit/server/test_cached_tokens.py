"""Tokens that were read just now: they are known without a read, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from samples.small import NOON, compiled
from starlette.requests import Request

from modicum.api.local import Workspace
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import Identity
from modicum.api.permissions.tokens import Token, TokenTerms, token_digest
from modicum.core.errors import AccessError
from modicum.server.auth import authenticators
from modicum.server.auth.authenticators import ApiTokens
from modicum.server.auth.grants import CurrentGrants, GrantTable
from modicum.server.auth.registry import RecentlyRead, Registry, open_registry
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

    async def counted(read: object, digest: str) -> Token | None:
        taken.append(digest)
        return registry.token_by_digest(digest)

    monkeypatch.setattr(authenticators, "run_in_threadpool", counted)

    def identified(registry: Registry) -> Identity | None:
        header = (b"authorization", f"Bearer {text}".encode())
        request = Request({"type": "http", "headers": [header]})
        tokens = ApiTokens(registry, "cookie", CurrentGrants(GrantTable()))
        return asyncio.run(tokens.identify(request))

    for _ in range(3):
        found = identified(registry)
        assert found is not None
        assert found.name == "olga"
    assert len(taken) == 1
    clock.time = add_seconds(NOON, 60)
    with pytest.raises(AccessError):
        identified(registry)
