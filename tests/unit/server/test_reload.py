"""Grants that are read again: they count at once, and nobody is signed out."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TypeVar

import pytest
from samples.small import NOON, compiled
from starlette.requests import Request

from modicum.api.local import Workspace
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import (
    ALL,
    Identity,
    identity_of,
    identity_text,
)
from modicum.api.permissions.tokens import TokenTerms
from modicum.core.errors import AccessError, Code, InputError
from modicum.server.auth.authenticators import ProgramTokens
from modicum.server.auth.registry import Registry, open_registry
from modicum.server.auth.sessions import Sessions
from modicum.server.auth.setup import Authentication, PublicAddress, authentication
from modicum.server.reload import current_settings, on_hangup, reload_grants
from modicum.server.settings.model import Settings
from modicum.server.settings.reader import load_settings
from modicum.server.telemetry.log import Log
from modicum.storage.factory import open_store
from modicum.system.clock import FixedClock

T = TypeVar("T")
DOOR = PublicAddress("127.0.0.1", 8642, "dana")
BEGIN = """
modicum: server/v1
public_url: https://privacy.example.org
api_tokens: true
oidc:
  issuer: https://login.example.org
  client_id: m
  client_secret_file: secret
  programs: {audience: api}
"""
GRANTS = "grants: {labs: {analyst: [labs]}, team: {privacy-officer: all}}\n"
SETS = frozenset({"labs"})


class Server:
    """A server's entrance, whose settings file changes."""

    def __init__(self, folder: Path, text: str = BEGIN + GRANTS) -> None:
        self.file = folder / "server.yaml"
        secret = folder / "secret"
        secret.write_text("canary-client-secret\n")
        secret.chmod(0o600)
        self.file.write_text(text)
        self.store = open_store(str(folder / "ledger.db"))
        clock = FixedClock(NOON)
        Workspace(self.store, clock, policy=compiled()).init()
        self.registry: Registry = open_registry(self.store, clock=clock)
        self.settings: Settings = load_settings(self.file)
        self.way: Authentication = authentication(
            self.settings, self.registry, clock, DOOR
        )
        self.lines = StringIO()

    def write(self, text: str, begin: str = BEGIN) -> None:
        self.file.write_text(begin + text)

    def reload(self, text: str, begin: str = BEGIN) -> dict[str, str]:
        """Change the file, and return what a reload logs."""
        self.write(text, begin)
        log = Log(self.lines)
        reload_grants(self.settings, self.way.grants, self.registry, log)
        line: dict[str, str] = json.loads(self.lines.getvalue().splitlines()[-1])
        return line

    def part(self, kind: type[T]) -> T:
        (found,) = [
            one
            for one in self.way.authenticator._authenticators
            if isinstance(one, kind)
        ]
        return found

    def signed_in(self, name: str, *groups: str) -> Request:
        """Return a request of the session of somebody who signs in."""
        sessions = self.part(Sessions)
        identity = self.way.grants.table.person(name, groups, sessions.via)
        opened = self.registry.add_session(identity, seconds=3600)
        return request(f"{sessions._jar.session}={opened.secret}", "cookie")

    def who(self, shown: Request) -> Identity:
        found = asyncio.run(self.way.authenticator.identify(shown))
        assert found is not None
        return found


def request(value: str, header: str = "authorization") -> Request:
    headers = [(header.encode(), value.encode())]
    return Request({"type": "http", "method": "GET", "headers": headers})


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    found = Server(tmp_path)
    yield found
    found.store.close()


@pytest.mark.spec("REG-14")
def test_a_session_has_the_grants_of_now(server: Server) -> None:
    bob = server.signed_in("bob", "labs", "unnamed")
    assert server.who(bob).grants == {Role.ANALYST: SETS}
    assert server.reload("grants: {labs: {analyst: [visits]}}")["event"] == (
        "grants-read"
    )
    assert server.who(bob).grants == {Role.ANALYST: {"visits"}}
    server.reload("people: {bob: {auditor: all}}")
    assert server.who(bob).grants == {Role.AUDITOR: {ALL}}
    server.reload("people: {ann: {auditor: all}}")
    with pytest.raises(AccessError, match="`bob` is authenticated, and has no role"):
        server.who(bob)
    server.reload(GRANTS)
    assert server.who(bob).grants == {Role.ANALYST: SETS}
    # The provider was not asked about this group when he signed in.
    server.reload("grants: {unnamed: {auditor: all}, labs: {analyst: [labs]}}")
    assert server.who(bob).grants == {Role.ANALYST: SETS}


@pytest.mark.spec("REG-14")
def test_a_token_has_at_most_the_grants_of_now(server: Server) -> None:
    program = TokenTerms("service:job", {Role.ANALYST: SETS}, is_service=True)
    shown = [
        request(f"Bearer {server.registry.add_token(terms, created_by='x').text}")
        for terms in (TokenTerms("ann", {Role.ANALYST: SETS}), program)
    ]
    server.reload("people: {ann: {analyst: all}}\nprograms: {job: {analyst: all}}")
    assert [server.who(one).name for one in shown] == ["ann", "service:job"]
    server.reload(GRANTS)
    assert server.who(shown[0]).name == "ann"  # Her groups are not known.
    with pytest.raises(AccessError, match="no longer has a role"):
        server.who(shown[1])


def test_a_program_of_the_provider_has_the_grants_of_now(server: Server) -> None:
    grants = server.part(ProgramTokens)._grants
    server.reload("programs: {job: {analyst: all}}")
    assert grants.table.program("service:job", "x").grants == {Role.ANALYST: {ALL}}
    server.reload(GRANTS)
    with pytest.raises(AccessError):
        grants.table.program("service:job", "x")


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("grants: {labs: {analist: all}}", BEGIN),
        ("people: {ann: {auditor: all, privacy-officer: all}}", BEGIN),
        ("people: {ann: {auditor: all}, \u0430nn: {auditor: all}}", BEGIN),
        (GRANTS, BEGIN + "limits: {body_bytes: none}\n"),
        (GRANTS, "modicum: server/v2\n"),
    ],
)
def test_a_mistake_changes_nothing(server: Server, text: str, begin: str) -> None:
    before = server.way.grants.table
    line = server.reload(text, begin)
    assert (line["event"], line["level"]) == ("grants-not-read", "error")
    assert line["code"] in {one.value for one in Code}
    assert server.way.grants.table is before


def test_naming_nobody_any_more_widens_no_token(tmp_path: Path) -> None:
    """Without sign-in, tokens are not limited where the settings name nobody."""
    begin = "modicum: server/v1\napi_tokens: true\n"
    server = Server(tmp_path, begin + "people: {ann: {analyst: [labs]}}\n")
    terms = TokenTerms("ann", {Role.ANALYST: frozenset({ALL})})
    issued = server.registry.add_token(terms, created_by="x")
    shown = request(f"Bearer {issued.text}")
    assert server.who(shown).grants == {Role.ANALYST: SETS}
    assert server.reload("", begin)["event"] == "grants-not-read"
    assert server.who(shown).grants == {Role.ANALYST: SETS}
    with pytest.raises(InputError, match="no people"):
        current_settings(server.settings)  # Nor does another process start.
    server.store.close()


def test_who_has_no_role_any_more_can_sign_out(server: Server) -> None:
    bob = server.signed_in("bob", "labs")
    server.reload("people: {ann: {auditor: all}}")
    sessions = server.part(Sessions)
    assert asyncio.run(sessions.session_of(bob)) is not None
    with pytest.raises(AccessError):
        server.who(bob)


def test_a_missing_file_changes_nothing(server: Server) -> None:
    before = server.way.grants.table
    server.file.unlink()
    reload_grants(server.settings, server.way.grants, server.registry, Log())
    assert server.way.grants.table is before
    with pytest.raises(InputError):
        current_settings(server.settings)  # Nor does another process start.


@pytest.mark.spec("REG-14")
def test_other_settings_stay_until_the_next_start(server: Server) -> None:
    server.write("people: {ann: {auditor: all}}", BEGIN + "workers: 3\n")
    found = current_settings(server.settings)
    assert found.people
    assert not found.grants
    assert replace(found, people={}, grants=server.settings.grants) == server.settings
    assert current_settings(Settings()) == Settings()


def test_what_is_stored_has_the_groups(server: Server) -> None:
    ann = server.way.grants.table.person("ann", ("team", "x", "labs"), "v")
    assert ann.groups == ("labs", "team")
    assert identity_of(identity_text(ann)) == ann
    stored = json.loads(identity_text(ann))
    del stored["groups"]  # As earlier versions wrote it.
    assert identity_of(json.dumps(stored)) == replace(ann, groups=())
    with pytest.raises(ValueError, match="names"):
        identity_of(json.dumps({**stored, "groups": ["a", 1]}))


def test_signals_are_worked_off_one_by_one() -> None:
    begun, end = threading.Semaphore(0), threading.Semaphore(0)

    def call() -> None:
        begun.release()
        end.acquire()

    async def run() -> None:
        with on_hangup(call):
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGHUP)
                await asyncio.sleep(0)
            assert await asyncio.to_thread(begun.acquire, timeout=10)
            await asyncio.sleep(0.05)
            assert not begun.acquire(blocking=False)
            end.release()
            end.release()

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        asyncio.run(run())
    finally:
        signal.signal(signal.SIGHUP, before)
