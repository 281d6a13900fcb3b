"""Nobody new is named so that people take them for somebody else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.entrances import PUBLIC, WITH_OIDC, settings_of
from samples.small import NOON, POLICY, compiled
from samples.stores import Place, postgres_place, sqlite_place
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient

from modicum.api.local import Workspace
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL, Identity
from modicum.api.permissions.tokens import TokenTerms
from modicum.api.ports.storage import Store
from modicum.core.canonical import encode
from modicum.core.confusables import confusable
from modicum.core.errors import Code, InputError, ModicumError
from modicum.policy.declarations.roles import person_key
from modicum.server.auth import routes
from modicum.server.auth.grants import CurrentGrants, GrantTable, grant_table
from modicum.server.auth.known_names import KnownNames
from modicum.server.auth.registry import Registry, open_registry
from modicum.server.auth.sessions import CookieJar, Sessions
from modicum.server.auth.sign_in import SignedIn
from modicum.server.problems import problem_response
from modicum.server.settings.model import SessionTimes
from modicum.server.settings_check import checked
from modicum.storage.factory import open_store
from modicum.system.clock import FixedClock

ANNA, TRICK = "anna", "\u0430nna"  # The second begins with a Cyrillic letter.
ANALYST = {Role.ANALYST: frozenset({ALL})}
CLOCK = FixedClock(NOON)
SERVER = "modicum: server/v1\nledger: ledger.db\n"


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgres":
        return postgres_place(request.getfixturevalue("postgres"))
    return sqlite_place(tmp_path / "ledger.db", keep_open=True)


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    opened = place.open()
    Workspace(opened, CLOCK, policy=compiled(), actor="olga").init()
    yield opened
    opened.close()


def acts(store: Store, name: str) -> None:
    Workspace(store, CLOCK, actor=name).governance.annotate("seen")


def terms(actor: str, *, is_service: bool = False) -> TokenTerms:
    return TokenTerms(
        actor=actor, grants=ANALYST, is_service=is_service, name="", seconds=600
    )


# --- the names of a ledger ---


@pytest.mark.spec("REG-7")
def test_who_acts_first_stays(store: Store) -> None:
    registry = open_registry(store, clock=CLOCK)
    assert registry.lookalike_of(TRICK) is None
    acts(store, ANNA)
    assert registry.lookalike_of(TRICK) == ANNA
    assert registry.lookalike_of(ANNA) is None
    assert registry.lookalike_of(ANNA, [TRICK]) is None
    assert open_registry(store, clock=CLOCK).lookalike_of(TRICK) == ANNA
    acts(store, TRICK)  # As in a ledger of before.
    assert registry.lookalike_of(TRICK) is None


@pytest.mark.spec("REG-7")
def test_owners_of_tokens_and_sessions_are_known(store: Store) -> None:
    registry = open_registry(store, clock=CLOCK)
    registry.add_token(terms("service:m", is_service=True), created_by="olga")
    with pytest.raises(InputError) as caught:
        registry.add_token(terms("service:rn", is_service=True), created_by="olga")
    (problem,) = caught.value.problems
    assert problem.code is Code.DUPLICATE_NAME
    assert "`service:rn` looks like `service:m`" in problem.message
    registry.add_token(terms("service:m", is_service=True), created_by="olga")
    registry.add_session(Identity(ANNA, ANALYST), seconds=600)
    assert registry.lookalike_of(TRICK) == ANNA
    assert registry.lookalike_of(ANNA) is None


@pytest.mark.spec("REG-7")
def test_both_names_are_shown_with_their_code_points(store: Store) -> None:
    acts(store, ANNA)
    with pytest.raises(InputError) as caught:
        open_registry(store, clock=CLOCK).add_token(terms(TRICK), created_by="olga")
    shown = caught.value.render()
    for text in (ANNA, TRICK, "U+0061 U+006E U+006E", "U+0430 U+006E U+006E"):
        assert text in shown


@pytest.mark.spec("REG-7")
def test_people_of_the_policy_are_known(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "ledger.db"))
    policy = compiled(POLICY + "\nroles: {officers: [anna]}\n")
    Workspace(store, CLOCK, policy=policy, actor="olga").init()
    assert open_registry(store, clock=CLOCK).lookalike_of(TRICK) == ANNA


NAMES = st.one_of(
    st.text(alphabet="mrnlI1\u0430aO0", min_size=1, max_size=4),
    st.sampled_from([',"at":"', 'm,"at":"rn', "\\"]),
)


@given(st.lists(NAMES, max_size=6), st.lists(NAMES, max_size=3), NAMES)
@settings(deadline=None)
def test_every_lookalike_is_found(acted: list[str], own: list[str], name: str) -> None:
    class Log:
        def read(self, after: int) -> Iterator[Any]:
            for seq, actor in enumerate(acted, 1):
                event: dict[str, Any] = {
                    "actor": actor,
                    "at": "t",
                    "body": {},
                    "kind": "x",
                }
                if seq > after:
                    yield Line(seq, encode({"event": event}))

    known = KnownNames(Log(), lambda: own)  # type: ignore[arg-type]
    found = known.lookalike_of(name)
    old, name = {*map(person_key, (*acted, *own))}, person_key(name)
    expected = set() if name in old else {n for n in old if confusable(n, name)}
    assert (found in expected) if expected else found is None


class Line:
    def __init__(self, seq: int, payload: bytes) -> None:
        self.seq, self.payload = seq, payload


@pytest.mark.parametrize("by", ["ann.lee", "Ann.Lee"])
def test_capitals_make_no_other_person(store: Store, by: str) -> None:
    acts(store, by)
    registry = open_registry(store, clock=CLOCK)
    assert registry.lookalike_of("ann.lee") is None
    assert registry.lookalike_of("ann.1ee") == "ann.lee"


# --- settings ---


@pytest.mark.parametrize("section", ["people", "programs", "local_people"])
def test_settings_do_not_name_two_that_look_alike(tmp_path: Path, section: str) -> None:
    text = f"{section}:\n  {ANNA}: {{analyst: all}}\n  {TRICK}: {{analyst: all}}\n"
    with pytest.raises(InputError) as caught:
        settings_of(SERVER + text, tmp_path)
    (problem,) = caught.value.problems
    assert problem.code is Code.DUPLICATE_NAME
    assert problem.mark is not None
    assert problem.mark.line == 5
    assert any("U+0430" in note for note in problem.notes)


def test_people_of_both_sections_are_compared(tmp_path: Path) -> None:
    text = f"people: {{{ANNA}: {{analyst: all}}}}\n"
    text += f"local_people: {{{TRICK}: {{analyst: all}}}}\n"
    with pytest.raises(InputError, match="looks like"):
        settings_of(SERVER + text, tmp_path)


def test_a_person_and_a_program_may_have_one_name(tmp_path: Path) -> None:
    text = f"people: {{{ANNA}: {{analyst: all}}}}\n"
    text += f"programs: {{{TRICK}: {{analyst: all}}}}\n"
    settings_of(SERVER + text, tmp_path)


@pytest.mark.spec("REG-7")
def test_a_server_does_not_start_with_a_new_lookalike(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "ledger.db"))
    Workspace(store, CLOCK, policy=compiled(), actor=ANNA).init()
    own = f"local_people: {{{ANNA}: {{analyst: all}}}}\n"
    checked(settings_of(SERVER + own, tmp_path), "olga")
    other = f"local_people: {{{TRICK}: {{analyst: all}}}}\n"
    with pytest.raises(InputError) as caught:
        checked(settings_of(SERVER + other, tmp_path), "olga")
    assert caught.value.code is Code.DUPLICATE_NAME


# --- signing in ---


class Provider:
    """Signs in whom it is given."""

    def __init__(self) -> None:
        self.name = ANNA

    async def finish(self, query: str, sealed: str | None) -> tuple[SignedIn, str]:
        await asyncio.sleep(0)
        return SignedIn(self.name, ("labs",)), "/rules"


def page_of(registry: Registry, provider: Provider) -> TestClient:
    jar = CookieJar(PUBLIC)
    sessions = Sessions(registry, CLOCK, SessionTimes(), jar, "provider")
    grants = CurrentGrants(GrantTable({"labs": ANALYST}, {}, {}))
    app = FastAPI()
    sign_in: Any = provider
    app.include_router(routes.with_provider(sign_in, grants, sessions, jar, registry))

    @app.exception_handler(ModicumError)
    async def mistake(_: Request, error: Exception) -> Response:
        assert isinstance(error, ModicumError)
        return problem_response(error)

    return TestClient(app, base_url=PUBLIC, follow_redirects=False)


@pytest.mark.spec("REG-7")
def test_a_new_lookalike_does_not_sign_in(store: Store) -> None:
    provider = Provider()
    page = page_of(open_registry(store, clock=CLOCK), provider)
    assert page.get("/login/callback").status_code == 303
    provider.name = TRICK
    refused = page.get("/login/callback")
    assert refused.status_code == 403
    assert refused.json()["code"] == Code.DUPLICATE_NAME.value
    assert "set-cookie" not in refused.headers
    provider.name = ANNA
    assert page.get("/login/callback").status_code == 303


def test_people_of_the_settings_are_known_at_sign_in(
    tmp_path: Path, store: Store
) -> None:
    scope = grant_table(settings_of(WITH_OIDC, tmp_path))
    assert "ann@example.org" in scope.names
    assert "service:nightly-etl" in scope.names
    registry = open_registry(store, clock=CLOCK)
    assert registry.lookalike_of("ann@examp1e.org", scope.names) == "ann@example.org"
