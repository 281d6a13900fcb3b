"""People and programs of a real OpenID provider, through the whole entrance."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from samples.entrances import (
    AUDIENCE,
    PUBLIC,
    WITH_OIDC,
    app_behind,
    browser,
    settings_of,
)
from samples.oidc import OidcProvider, is_installed, running_provider
from samples.small import compiled
from starlette.testclient import TestClient

from modicum.api.local import Workspace
from modicum.server.auth.registry import open_registry
from modicum.server.auth.setup import PublicAddress, authentication
from modicum.storage.factory import open_store
from modicum.system.clock import SystemClock

CALLBACK = f"{PUBLIC}/login/callback"
COOKIE, CSRF = "__Host-modicum", "__Host-modicum-csrf"
LOGIN = "__Host-modicum-login"


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcProvider]:
    if not is_installed():
        if os.environ.get("CI") == "true":
            pytest.fail("there is no OpenID provider; `make suites` installs one")
        pytest.skip("there is no OpenID provider; `make suites` installs one")
    with running_provider(CALLBACK) as running:
        yield running


@pytest.fixture
def app(provider: OidcProvider, tmp_path: Path) -> Iterator[FastAPI]:
    settings = settings_of(WITH_OIDC, tmp_path, provider.issuer)
    clock = SystemClock()
    store = open_store(str(tmp_path / "ledger.db"))
    Workspace(store, clock, policy=compiled()).init()
    door = PublicAddress("127.0.0.1", 8642, "nobody")
    yield app_behind(authentication(settings, open_registry(store), clock, door))
    store.close()


@pytest.fixture
def page(app: FastAPI) -> Iterator[TestClient]:
    with browser(app) as one:  # One loop for all requests, as in a server.
        yield one


def sign_in(
    page: TestClient, provider: OidcProvider, account: str, wanted: str = "/"
) -> str:
    """Return the address that the provider sends the browser back to."""
    sent = page.get("/login", params={"next": wanted})
    assert sent.status_code == 303
    return provider.sign_in(sent.headers["Location"], account)


def test_a_person_signs_in_acts_and_leaves(
    page: TestClient, provider: OidcProvider
) -> None:
    back = sign_in(page, provider, "dana", "/rules?scope=labs")
    got = page.get(back)

    assert (got.status_code, got.headers["Location"]) == (303, "/rules?scope=labs")
    cookies = {one.split("=")[0]: one for one in got.headers.get_list("set-cookie")}
    assert set(cookies) == {COOKIE, CSRF, LOGIN}
    for one in cookies.values():
        assert "Secure" in one
        assert "Path=/" in one
        assert "Domain" not in one
        assert "SameSite=lax" in one
    assert "HttpOnly" in cookies[COOKIE]
    assert "Max-Age=0" in cookies[LOGIN]
    who = page.get("/who").json()
    assert who["name"] == "dana@example.org"
    assert who["roles"] == {"privacy-officer": ["*"]}
    assert who["client"] == "203.0.113.9"
    assert page.post("/who").status_code == 403
    own = {"X-CSRF-Token": page.cookies[CSRF], "Origin": PUBLIC}
    assert page.post("/who", headers=own).status_code == 200
    assert page.post("/logout", headers=own).status_code == 204
    assert page.get("/who").status_code == 401


def test_roles_of_a_person_and_of_their_groups_add_up(
    page: TestClient, provider: OidcProvider
) -> None:
    page.get(sign_in(page, provider, "ann"))
    assert page.get("/who").json()["roles"] == {"analyst": ["labs", "visits"]}


@pytest.mark.parametrize(
    ("account", "code", "said"),
    [
        ("nora", "MOD832", "no role"),
        ("mallory", "MOD832", "not verified"),
        ("shouting", "MOD832", "may be ambiguous"),
        ("both", "MOD833", "must be separate"),
    ],
)
def test_who_may_do_nothing_gets_no_session(
    page: TestClient, provider: OidcProvider, account: str, code: str, said: str
) -> None:
    got = page.get(sign_in(page, provider, account))

    assert got.status_code == 403
    assert got.json()["code"] == code
    assert said in got.json()["detail"]
    assert COOKIE not in page.cookies


def test_a_code_is_good_once_and_in_one_browser(
    page: TestClient, provider: OidcProvider
) -> None:
    back = sign_in(page, provider, "dana")
    own = {"Cookie": f"{LOGIN}={page.cookies[LOGIN]}"}
    page.cookies.clear()
    assert page.get(back).status_code == 401  # Of a thief, who began nothing,
    page.get("/login")
    assert page.get(back).status_code == 401  # or something else.
    page.cookies.clear()

    assert page.get(back, headers=own).status_code == 303
    page.cookies.clear()
    assert page.get(back, headers=own).status_code == 401  # The code was used.
    assert COOKIE not in page.cookies


def test_a_session_from_before_is_over_after_signing_in(
    page: TestClient, provider: OidcProvider
) -> None:
    page.get(sign_in(page, provider, "dana"))
    first = page.cookies[COOKIE]
    page.get(sign_in(page, provider, "dana"))
    assert page.cookies[COOKIE] != first
    page.cookies.clear()
    assert page.get("/who", headers={"Cookie": f"{COOKIE}={first}"}).status_code == 401


def test_nobody_is_sent_to_another_site(
    page: TestClient, provider: OidcProvider
) -> None:
    got = page.get(sign_in(page, provider, "dana", "https://evil.example"))
    assert got.headers["Location"] == "/"


def test_the_address_to_come_back_to_is_not_taken_from_headers(
    page: TestClient,
) -> None:
    lies = {"X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"}
    sent = page.get("/login", headers=lies).headers["Location"]
    assert "evil" not in sent
    assert "privacy.example.org%2Flogin%2Fcallback" in sent


def test_a_program_is_recognized(page: TestClient, provider: OidcProvider) -> None:
    token = provider.program_token("nightly-etl", "nightly-secret", AUDIENCE)
    bearer = {"Authorization": f"Bearer {token}"}

    who = page.get("/who", headers=bearer).json()
    assert who["name"] == "service:nightly-etl"
    assert who["is_service"]
    assert who["roles"] == {"platform-engineer": ["*"]}
    assert page.post("/who", headers=bearer).status_code == 200


def test_programs_of_the_same_provider_that_are_not_for_us_are_refused(
    page: TestClient, provider: OidcProvider
) -> None:
    other = provider.program_token("nightly-etl", "nightly-secret", "https://other.org")
    got = page.get("/who", headers={"Authorization": f"Bearer {other}"})
    assert got.status_code == 401
    stranger = provider.program_token("stranger", "stranger-secret", AUDIENCE)
    got = page.get("/who", headers={"Authorization": f"Bearer {stranger}"})
    assert (got.status_code, got.json()["code"]) == (403, "MOD832")


def test_no_secret_is_told_or_logged(
    page: TestClient, provider: OidcProvider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="modicum")
    back = sign_in(page, provider, "dana")
    pages = [page.get(back).text, page.get(back).text, page.get("/who").text]
    secrets = [page.cookies[COOKIE], page.cookies[CSRF], "canary-client-secret"]
    secrets += [back.partition("code=")[2].partition("&")[0]]
    for secret in secrets:
        assert len(secret) > 16
        assert secret not in " ".join(pages)
        assert secret not in caplog.text


def test_a_provider_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    settings = settings_of(WITH_OIDC, tmp_path, "http://127.0.0.1:9")
    clock = SystemClock()
    store = open_store(str(tmp_path / "ledger.db"))
    Workspace(store, clock, policy=compiled()).init()
    door = PublicAddress("127.0.0.1", 8642, "nobody")
    gone = app_behind(authentication(settings, open_registry(store), clock, door))
    with browser(gone) as page:
        got = page.get("/login")
        assert (got.status_code, got.json()["code"]) == (503, "MOD841")
        assert "Retry-After" in got.headers
        bearer = {"Authorization": "Bearer eyJhbGciOiJSUzI1NiJ9.e30.e30"}
        assert page.get("/who", headers=bearer).status_code == 503
    store.close()
