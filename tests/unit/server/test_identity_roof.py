"""API tokens are held to what their owners may do now, as far as settings tell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samples.entrances import app_behind, browser, settings_of
from samples.served import Served, served
from samples.small import NOON, POLICY, compiled

from modicum.api.local import Workspace
from modicum.api.permissions.actions import PEOPLE_ONLY, Action, Role
from modicum.api.permissions.identity import Grants, Identity
from modicum.api.permissions.tokens import DAY_SECONDS, TokenTerms
from modicum.server.auth.grants import CurrentGrants, GrantTable
from modicum.server.auth.registry import Registry, open_registry
from modicum.server.auth.setup import PublicAddress, authentication
from modicum.storage.factory import open_store
from modicum.system.clock import FixedClock

DOOR = PublicAddress("127.0.0.1", 8642, "dana")
BEGIN = """
modicum: server/v1
public_url: https://privacy.example.org
trusted_proxies: [10.1.2.0/24]
api_tokens: true
"""
OIDC = """
oidc: {issuer: "https://login.example.org", client_id: m, client_secret_file: secret}
"""
VISITS = frozenset({"visits"})
BOTH = frozenset({"visits", "labs"})
ALL_SETS = frozenset({"*"})


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOON)


@pytest.fixture
def registry(tmp_path: Path, clock: FixedClock) -> Iterator[Registry]:
    store = open_store(str(tmp_path / "ledger.db"))
    Workspace(store, clock, policy=compiled()).init()
    yield open_registry(store, clock=clock)
    store.close()


def recognized(
    registry: Registry, folder: Path, text: str, terms: TokenTerms
) -> tuple[int, Any]:
    """Return what a server with these settings says to who shows a token."""
    way = authentication(
        settings_of(BEGIN + text, folder), registry, FixedClock(NOON), DOOR
    )
    issued = registry.add_token(terms, created_by="dana")
    bearer = {"Authorization": f"Bearer {issued.text}"}
    answered = browser(app_behind(way)).get("/who", headers=bearer)
    return answered.status_code, answered.json()


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        # Nobody signs in, and nobody is named: the token is all that is known.
        ("", {"analyst": ["labs", "visits"]}),
        # They are named: what they have now counts, and no more than the token.
        ("people: {ann: {analyst: all}}", {"analyst": ["labs", "visits"]}),
        ("people: {ann: {analyst: [visits]}}", {"analyst": ["visits"]}),
        ("people: {ann: {analyst: [visits, hr]}}", {"analyst": ["visits"]}),
        # Some group gives it: whether they are in it is not known.
        (
            "grants: {labs-people: {analyst: [labs]}, others: {auditor: all}}",
            {"analyst": ["labs"]},
        ),
        (
            "people: {ann: {analyst: [visits]}}\ngrants: {g: {analyst: [labs]}}",
            {"analyst": ["labs", "visits"]},
        ),
        # They have lost it.
        ("people: {ann: {data-steward: all}}", None),
        ("people: {ann: {analyst: [hr]}}", None),
        ("people: {bob: {analyst: all}}", None),
        ("grants: {g: {auditor: all}}", None),
        # Where people sign in, whom the settings do not name is nobody.
        (OIDC, None),
        (OIDC + "people: {ann: {analyst: [labs]}}", {"analyst": ["labs"]}),
    ],
)
def test_a_person_s_token_gives_no_role_that_they_lost(
    registry: Registry, tmp_path: Path, text: str, roles: dict[str, Any] | None
) -> None:
    terms = TokenTerms("ann", {Role.ANALYST: BOTH})
    status, body = recognized(registry, tmp_path, text, terms)
    if roles is None:
        assert (status, body["code"]) == (403, "MOD832")
    else:
        assert (status, body["name"], body["roles"]) == (200, "ann", roles)


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ("", {"analyst": ["visits"]}),
        ("people: {ann: {analyst: all}}", {"analyst": ["visits"]}),
        ("programs: {nightly: {analyst: all}}", {"analyst": ["visits"]}),
        ("programs: {nightly: {analyst: [labs]}}", None),
        ("programs: {other: {analyst: all}}", None),
        # What a person of the same name may do is not theirs.
        ("programs: {other: {analyst: all}}\npeople: {nightly: {analyst: all}}", None),
    ],
)
def test_a_program_s_token_gives_no_role_that_it_lost(
    registry: Registry, tmp_path: Path, text: str, roles: dict[str, Any] | None
) -> None:
    terms = TokenTerms("service:nightly", {Role.ANALYST: VISITS}, is_service=True)
    status, body = recognized(registry, tmp_path, text, terms)
    if roles is None:
        assert (status, body["code"]) == (403, "MOD832")
    else:
        assert (status, body["roles"]) == (200, roles)


OFFICER: Grants = {Role.PRIVACY_OFFICER: ALL_SETS}


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("", True),
        ("people: {olga: {privacy-officer: all}}", True),
        (OIDC + "people: {olga: {privacy-officer: all}}", False),
    ],
)
def test_what_a_person_must_do_a_token_does_only_where_nobody_can_sign_in(
    registry: Registry, tmp_path: Path, text: str, counts: bool
) -> None:
    settings = settings_of(BEGIN + text, tmp_path)
    way = authentication(settings, registry, FixedClock(NOON), DOOR)
    token = registry.add_token(TokenTerms("olga", OFFICER), created_by="x").token
    olga = way.grants.table.under(token.identity())
    assert {one for one in Action if olga.may(one)} >= {Action.READ_LEDGER}
    for action in PEOPLE_ONLY:
        assert olga.may(action) is counts
    program = TokenTerms("service:job", OFFICER, is_service=True)
    job = registry.add_token(program, created_by="x").token
    roof = GrantTable(only_way=way.grants.table.only_way)
    assert not any(roof.under(job.identity()).may(one) for one in PEOPLE_ONLY)


def test_in_local_mode_a_token_does_not_what_a_person_must_do(
    registry: Registry, tmp_path: Path
) -> None:
    settings = settings_of("modicum: server/v1", tmp_path)
    way = authentication(settings, registry, FixedClock(NOON), DOOR)
    token = registry.add_token(TokenTerms("olga", OFFICER), created_by="x").token
    assert not any(
        way.grants.table.under(token.identity()).may(one) for one in PEOPLE_ONLY
    )


# --- how long -------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with served(tmp_path / "ledger.db", policy=tmp_path / "policy.yaml") as found:
        yield found


@pytest.mark.parametrize(
    ("roof", "days"),
    [
        # Nobody is in a group.
        (GrantTable(), 60),
        (GrantTable(people={"ann": {Role.ANALYST: VISITS}}, all_people=True), 60),
        # By name they may it, whatever their groups give.
        (
            GrantTable(
                people={"ann": {Role.ANALYST: ALL_SETS}},
                groups={"g": {Role.ANALYST: ALL_SETS}},
                all_people=True,
            ),
            60,
        ),
        # Part of it, or all of it, rests on groups.
        (GrantTable(groups={"g": {Role.ANALYST: VISITS}}, all_people=True), 7),
        (
            GrantTable(
                people={"ann": {Role.ANALYST: frozenset({"hr"})}},
                groups={"g": {Role.ANALYST: VISITS}},
                all_people=True,
            ),
            7,
        ),
    ],
)
def test_a_token_that_rests_on_groups_ends_within_a_week(
    server: Served, monkeypatch: pytest.MonkeyPatch, roof: GrantTable, days: int
) -> None:
    tokens = server.parts.service.tokens
    monkeypatch.setattr(tokens, "_grants", CurrentGrants(roof))
    for days_asked, given in ((60, days), (2, 2)):
        made = server.post("ann", "/tokens", {"expires_in_days": days_asked})
        assert made.status_code == 201
        found = made.json()
        clock = FixedClock(found["created_at"])
        end = clock.after(found["created_at"], given * DAY_SECONDS)
        assert found["expires_at"] == end


def test_whoever_is_under_a_roof_may_no_more_than_before() -> None:
    roof = GrantTable(people={"ann": {Role.ANALYST: ALL_SETS}}, all_people=True)
    ann = Identity("ann", {Role.ANALYST: VISITS}, by_token=True, via="token x")
    under = roof.under(ann)
    assert (under.name, under.via, under.by_token) == ("ann", "token x", True)
    assert under.grants == {Role.ANALYST: VISITS}
