"""Sessions, tokens and the local link, as somebody would misuse them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from samples.entrances import app_behind, browser, neighbor, settings_of
from samples.small import NOON, compiled
from starlette.requests import Request
from starlette.testclient import TestClient

from modicum.api.local import Workspace
from modicum.api.permissions.actions import ALLOWED, APART, Role
from modicum.api.permissions.identity import ALL, Identity
from modicum.api.permissions.tokens import TokenTerms
from modicum.core.errors import AccessError, InputError, UsageError
from modicum.server.auth.authentication import Recognizing, Standing
from modicum.server.auth.local_link import LINK_SECONDS, LOCAL_GRANTS, OneTimeLinks
from modicum.server.auth.registry import Registry, open_registry
from modicum.server.auth.secret_files import Secret, read_secret
from modicum.server.auth.setup import Authentication, PublicAddress, authentication
from modicum.server.settings.model import SessionTimes, Settings
from modicum.storage.factory import open_store
from modicum.system.clock import FixedClock, add_seconds

ORIGIN = "http://127.0.0.1:8642"
DOOR = PublicAddress("127.0.0.1", 8642, "dana")
LABS = {Role.ANALYST: frozenset({"labs"})}
COOKIE, CSRF = "modicum-8642", "modicum-csrf-8642"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOON)


@pytest.fixture
def registry(tmp_path: Path, clock: FixedClock) -> Iterator[Registry]:
    store = open_store(str(tmp_path / "ledger.db"))
    Workspace(store, clock, policy=compiled()).init()
    yield open_registry(store, clock=clock)
    store.close()


@pytest.fixture
def local(registry: Registry, clock: FixedClock) -> Authentication:
    return authentication(Settings(), registry, clock, DOOR)


def key_of(way: Authentication, who: str = "dana") -> str:
    path = way.links[who].removeprefix(ORIGIN)
    assert re.fullmatch(r"/login/local\?key=[A-Za-z0-9_-]{43}", path)
    return path


def signed_in(way: Authentication) -> TestClient:
    page = neighbor(app_behind(way))
    assert page.get(key_of(way)).status_code == 303
    return page


def test_a_stream_does_not_keep_a_session_alive(
    local: Authentication, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it go on when the session is over."""
    monkeypatch.setattr("modicum.server.auth.authentication.STANDING_SECONDS", 0.0)
    page = signed_in(local)
    recognizing = Recognizing([local.authenticator])
    parts = SimpleNamespace(recognizing=recognizing)
    cookie = f"{COOKIE}={page.cookies[COOKIE]}".encode()
    request = Request(
        {
            "type": "http",
            "method": "GET",
            "path": "/api/v1/events",
            "query_string": b"",
            "headers": [(b"cookie", cookie)],
            "state": {},
            "app": SimpleNamespace(state=SimpleNamespace(parts=parts)),
        }
    )

    async def hears() -> list[bool]:
        standing = Standing(request, await recognizing.identify(request))
        found = []
        for minutes in (1, 20, 29, 31):
            clock.time = add_seconds(NOON, 60 * minutes)
            found.append(await standing.holds())
        return found

    assert asyncio.run(hears()) == [True, True, True, False]


# --- the link ----------------------------------------------------------------


def test_whoever_has_the_link_is_the_user(local: Authentication) -> None:
    page = neighbor(app_behind(local))
    assert page.get("/who").status_code == 401

    got = page.get(key_of(local))

    assert got.headers["Location"] == "/"
    who = page.get("/who").json()
    assert who["name"] == "dana"
    assert who["roles"] == {role.value: [ALL] for role in LOCAL_GRANTS}
    assert not who["is_service"]


def test_the_user_has_all_roles_that_may_stand_together() -> None:
    for role in set(Role) - set(LOCAL_GRANTS):
        joined = {*LOCAL_GRANTS, role}
        assert any(a in joined and b in joined for a, b in APART)
    assert ALLOWED[Role.PRIVACY_OFFICER]


def test_the_link_is_good_once(local: Authentication) -> None:
    app = app_behind(local)
    assert neighbor(app).get(key_of(local)).status_code == 303
    again = neighbor(app).get(key_of(local))
    assert again.status_code == 401
    assert "set-cookie" not in again.headers


@pytest.mark.parametrize(("seconds", "holds"), [(0, True), (1, False)])
def test_the_link_is_good_for_ten_minutes(
    local: Authentication, clock: FixedClock, seconds: int, holds: bool
) -> None:
    clock.time = add_seconds(NOON, LINK_SECONDS - 1 + seconds)
    got = neighbor(app_behind(local)).get(key_of(local))
    assert (got.status_code == 303) == holds


@pytest.mark.parametrize("key", ["", "?key=", "?key=x", "?key=%00", "?key=ä&key=b"])
def test_another_key_opens_nothing_and_leaves_the_link_as_it_is(
    local: Authentication, key: str
) -> None:
    page = neighbor(app_behind(local))
    assert page.get(f"/login/local{key}").status_code == 401
    assert page.get(key_of(local)).status_code == 303


def test_a_link_that_was_never_made_takes_no_key(clock: FixedClock) -> None:
    with pytest.raises(AccessError):
        OneTimeLinks(clock).use("")


def test_a_new_link_ends_the_old_one(clock: FixedClock) -> None:
    links, dana = OneTimeLinks(clock), Identity("dana", LABS)
    first, second = links.make(dana, ORIGIN), links.make(dana, ORIGIN)
    with pytest.raises(AccessError):
        links.use(first.partition("key=")[2])
    assert links.use(second.partition("key=")[2]) is dana


def test_a_page_with_another_name_for_this_machine_gets_nothing(
    local: Authentication,
) -> None:
    page = neighbor(app_behind(local), "http://rebound.evil.example:8642")
    assert page.get(key_of(local)).status_code == 400


def test_nobody_else_gets_in_by_the_link(local: Authentication) -> None:
    far = TestClient(app_behind(local), base_url=ORIGIN, client=("203.0.113.7", 1))
    assert far.get(key_of(local)).status_code == 401


# --- several people ----------------------------------------------------------

SEVERAL = """
modicum: server/v1
local_people:
  Olga: {privacy-officer: all}
  omar: {privacy-officer: all}
  ann: {analyst: [labs]}
"""


@pytest.fixture
def several(registry: Registry, clock: FixedClock, tmp_path: Path) -> Authentication:
    return authentication(settings_of(SEVERAL, tmp_path), registry, clock, DOOR)


def test_each_person_has_a_link_of_their_own(several: Authentication) -> None:
    app = app_behind(several)
    assert list(several.links) == ["olga", "omar", "ann"]
    assert len(set(several.links.values())) == 3
    pages = {who: neighbor(app) for who in ("ann", "omar", "olga")}
    for who, page in pages.items():
        got = page.get(key_of(several, who))
        assert (got.status_code, got.headers["Location"]) == (303, "/")
    found = {who: page.get("/who").json() for who, page in pages.items()}
    assert {who: one["name"] for who, one in found.items()} == {w: w for w in pages}
    assert found["olga"]["roles"] == {"privacy-officer": [ALL]}
    assert found["ann"]["roles"] == {"analyst": ["labs"]}
    for who in pages:
        again = neighbor(app).get(key_of(several, who))
        assert (again.status_code, "set-cookie" in again.headers) == (401, False)


@pytest.mark.parametrize("more", ["&who=omar", "&name=omar&user=omar", "#omar"])
def test_a_link_makes_nobody_another_person(several: Authentication, more: str) -> None:
    page = neighbor(app_behind(several))
    page.get(key_of(several, "ann") + more, headers={"X-Who": "omar"})
    assert page.get("/who").json()["name"] == "ann"


def test_a_link_that_is_used_or_too_old_leaves_the_others(
    several: Authentication, clock: FixedClock
) -> None:
    app = app_behind(several)
    assert neighbor(app).get(key_of(several, "olga")).status_code == 303
    clock.time = add_seconds(NOON, LINK_SECONDS - 1)
    assert neighbor(app).get(key_of(several, "omar")).status_code == 303
    clock.time = add_seconds(NOON, LINK_SECONDS)
    assert neighbor(app).get(key_of(several, "ann")).status_code == 401


def test_the_user_who_starts_it_has_no_link_beside_several(
    several: Authentication,
) -> None:
    assert DOOR.user not in several.links


def test_other_local_people_make_sessions_invalid(
    several: Authentication, registry: Registry, clock: FixedClock, tmp_path: Path
) -> None:
    page = neighbor(app_behind(several))
    page.get(key_of(several, "olga"))
    same = authentication(settings_of(SEVERAL, tmp_path), registry, clock, DOOR)
    less = SEVERAL.replace("Olga: {privacy-officer", "Olga: {data-steward")
    other = authentication(settings_of(less, tmp_path), registry, clock, DOOR)
    for way, status in ((same, 200), (other, 401)):
        found = neighbor(app_behind(way))
        found.cookies.update(dict(page.cookies))
        assert found.get("/who").status_code == status


def test_a_token_of_a_local_person_gives_no_role_that_they_lost(
    several: Authentication, registry: Registry
) -> None:
    page = neighbor(app_behind(several))
    for who, role, status in (
        ("ann", Role.ANALYST, 200),
        ("ann", Role.DATA_STEWARD, 403),
        ("dana", Role.ANALYST, 403),
    ):
        terms = TokenTerms(who, {role: frozenset({"labs"})})
        issued = registry.add_token(terms, created_by="olga")
        bearer = {"Authorization": f"Bearer {issued.text}"}
        assert page.get("/who", headers=bearer).status_code == status


@pytest.mark.parametrize("name", ["service:etl", "an n", "a|b"])
def test_a_local_person_has_the_name_of_a_person(
    registry: Registry, clock: FixedClock, tmp_path: Path, name: str
) -> None:
    text = f"modicum: server/v1\nlocal_people: {{'{name}': {{analyst: all}}}}\n"
    with pytest.raises(InputError):
        authentication(settings_of(text, tmp_path), registry, clock, DOOR)


# --- sessions ----------------------------------------------------------------


def test_cookies_on_this_machine_are_read_by_no_script_but_the_one_pages_need(
    local: Authentication,
) -> None:
    got = neighbor(app_behind(local)).get(key_of(local))
    cookies = {one.split("=")[0]: one for one in got.headers.get_list("set-cookie")}
    assert set(cookies) == {COOKIE, CSRF}
    assert "HttpOnly" in cookies[COOKIE]
    assert "HttpOnly" not in cookies[CSRF]
    for one in cookies.values():
        assert "SameSite=lax" in one
        assert "Path=/" in one
        assert "Domain" not in one
        assert "Secure" not in one  # Browsers would not send it back by http.


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_stolen_ride_has_no_effects(local: Authentication, method: str) -> None:
    page = signed_in(local)
    csrf = page.cookies[CSRF]
    own = {"X-CSRF-Token": csrf, "Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"}
    assert page.request(method, "/who", headers=own).status_code == 200
    assert page.request(method, "/who", headers={"X-CSRF-Token": csrf}).is_success
    for changed in (
        {"X-CSRF-Token": ""},
        {"X-CSRF-Token": csrf[:-1]},
        {"X-CSRF-Token": csrf + "x"},
        {"X-CSRF-Token": page.cookies[COOKIE]},
        {"Origin": "null"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://localhost:8642"},
        {"Origin": f"{ORIGIN}.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        got = page.request(method, "/who", headers={**own, **changed})
        assert got.status_code == 403, changed
        assert csrf not in got.text
    twice = [("X-CSRF-Token", csrf), ("X-CSRF-Token", csrf)]
    assert page.request(method, "/who", headers=twice).status_code == 403
    assert page.request(method, "/who").status_code == 403
    assert page.get("/who").status_code == 200


def test_the_proof_of_one_session_is_none_for_another(
    registry: Registry, clock: FixedClock
) -> None:
    one = signed_in(authentication(Settings(), registry, clock, DOOR))
    other = signed_in(authentication(Settings(), registry, clock, DOOR))
    stolen = {"X-CSRF-Token": other.cookies[CSRF]}
    assert one.post("/who", headers=stolen).status_code == 403


def test_a_session_that_was_made_up_is_none(local: Authentication) -> None:
    victim = neighbor(app_behind(local))
    for planted in ("made-up", "", "x" * 5000):
        victim.cookies.set(COOKIE, planted)
        assert victim.get("/who").status_code == 401


def test_signing_in_ends_the_session_before(
    registry: Registry, clock: FixedClock
) -> None:
    page = signed_in(authentication(Settings(), registry, clock, DOOR))
    before = page.cookies[COOKIE]
    second = authentication(Settings(), registry, clock, DOOR)
    victim = neighbor(app_behind(second))
    victim.cookies.set(COOKIE, before, domain="127.0.0.1", path="/")
    assert victim.get("/who").status_code == 200

    got = victim.get(key_of(second))

    fresh = got.headers.get_list("set-cookie")[0]
    assert before not in fresh
    old = neighbor(app_behind(second))
    old.cookies.set(COOKIE, before)
    assert old.get("/who").status_code == 401


def test_who_leaves_is_gone(local: Authentication) -> None:
    page = signed_in(local)
    secret, csrf = page.cookies[COOKIE], page.cookies[CSRF]
    assert page.post("/logout").status_code == 403
    assert page.get("/logout").status_code == 405
    assert page.get("/who").status_code == 200

    got = page.post("/logout", headers={"X-CSRF-Token": csrf})

    assert got.status_code == 204
    assert not page.cookies
    thief = neighbor(app_behind(local))
    thief.cookies.set(COOKIE, secret)
    assert thief.get("/who").status_code == 401
    assert thief.post("/logout").status_code == 401
    assert neighbor(app_behind(local)).post("/logout").status_code == 401


def test_two_cookies_of_one_name_are_refused(local: Authentication) -> None:
    page = signed_in(local)
    secret = page.cookies[COOKIE]
    page.cookies.clear()
    twice = {"Cookie": f"{COOKIE}={secret}; a=b; {COOKIE}={secret}"}
    assert page.get("/who", headers=twice).status_code == 401
    once = {"Cookie": f"x{COOKIE}=y; {COOKIE}={secret}"}
    assert page.get("/who", headers=once).status_code == 200


MINUTE = 60
IDLE, ABSOLUTE = 10 * MINUTE, 60 * MINUTE


@settings(max_examples=30)
@given(
    st.lists(
        st.sampled_from([30, 59, 61, 300, 540, 599, 600, 601]), min_size=1, max_size=14
    )
)
@example([590] * 7)  # In use to the last, which is after an hour.
@example([599] * 6 + [5, 1, 1])
def test_a_session_ends_when_it_is_not_used_and_at_last_anyhow(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int]
) -> None:
    clock = FixedClock(NOON)
    store = open_store(str(tmp_path_factory.mktemp("x") / "ledger.db"))
    try:
        Workspace(store, clock, policy=compiled()).init()
        short = replace(Settings(), sessions=SessionTimes(10, 1))
        way = authentication(short, open_registry(store, clock=clock), clock, DOOR)
        page = signed_in(way)
        at, noted, alive = 0, 0, True
        for step in steps:
            at += step
            clock.time = add_seconds(NOON, at)
            # Its end is put off only where that makes a minute of difference.
            alive = alive and at < min(noted + IDLE, ABSOLUTE)
            assert (page.get("/who").status_code == 200) == alive
            if alive and min(at + IDLE, ABSOLUTE) > min(noted + IDLE, ABSOLUTE) + 60:
                noted = at
    finally:
        store.close()


def test_a_session_begun_in_another_way_does_not_hold(
    registry: Registry, clock: FixedClock, tmp_path: Path
) -> None:
    page = signed_in(authentication(Settings(), registry, clock, DOOR))
    secret = page.cookies[COOKIE]
    text = """
modicum: server/v1
public_url: http://127.0.0.1:8642
oidc: {issuer: "https://login.example.org", client_id: m, client_secret_file: secret}
people: {dana: {analyst: all}}
"""
    way = authentication(settings_of(text, tmp_path), registry, clock, DOOR)
    other = neighbor(app_behind(way))
    other.cookies.set(COOKIE, secret)
    assert other.get("/who").status_code == 401


# --- tokens ------------------------------------------------------------------


@pytest.fixture
def way(registry: Registry, clock: FixedClock, tmp_path: Path) -> Authentication:
    text = """
modicum: server/v1
public_url: https://privacy.example.org
trusted_proxies: [10.1.2.0/24]
api_tokens: true
"""
    return authentication(settings_of(text, tmp_path), registry, clock, DOOR)


def test_a_token_is_good_for_what_it_was_made_for(
    way: Authentication, registry: Registry, clock: FixedClock
) -> None:
    terms = TokenTerms("ann", LABS, seconds=60)
    issued = registry.add_token(terms, created_by="dana")
    page = browser(app_behind(way))
    bearer = {"Authorization": f"Bearer {issued.text}"}

    who = page.get("/who", headers=bearer).json()
    assert (who["name"], who["roles"]) == ("ann", {"analyst": ["labs"]})
    assert page.post("/who", headers=bearer).status_code == 200  # No cookie, no CSRF.
    clock.time = add_seconds(NOON, 60)
    assert page.get("/who", headers=bearer).status_code == 401


def test_a_token_that_is_not_good_is_refused_without_a_reason(
    way: Authentication, registry: Registry, clock: FixedClock
) -> None:
    revoked = registry.add_token(TokenTerms("ann", LABS), created_by="dana")
    registry.revoke_token(revoked.token.id)
    late = registry.add_token(TokenTerms("ann", LABS, seconds=1), created_by="dana")
    good = registry.add_token(TokenTerms("ann", LABS), created_by="dana").text
    clock.time = add_seconds(NOON, 2)
    page = browser(app_behind(way))
    answers = set()
    for token in (
        revoked.text,
        late.text,
        good[:-1],
        good + "x",
        good.upper(),
        "mdc_",
        "mdc_x",
        "x",
        "a.b.c",
        "eyJhbGciOiJub25lIn0.e30.",
    ):
        got = page.get("/who", headers={"Authorization": f"Bearer {token}"})
        assert got.status_code == 401
        assert got.headers["WWW-Authenticate"] == "Bearer"
        answers.add(got.text)
    assert len(answers) == 1


@pytest.mark.parametrize(
    "header",
    [
        "TOKEN",
        "Basic TOKEN",
        "Bearer",
        "Bearer  ",
        "Bearer TOKEN TOKEN",
        "Bearer TOKEN,Bearer TOKEN",
        "Bearer\tTOKEN",
        "BearerTOKEN",
        'Bearer "TOKEN"',
        "Bearer TOKEN\x00",
    ],
)
def test_a_header_that_is_not_as_it_should_be_is_refused(
    way: Authentication, registry: Registry, header: str
) -> None:
    token = registry.add_token(TokenTerms("ann", LABS), created_by="dana").text
    sent = {"Authorization": header.replace("TOKEN", token)}
    got = browser(app_behind(way)).get("/who", headers=sent)
    assert got.status_code == 401
    assert token not in got.text


def test_a_token_stands_in_one_header_and_nowhere_else(
    way: Authentication, registry: Registry
) -> None:
    token = registry.add_token(TokenTerms("ann", LABS), created_by="dana").text
    page = browser(app_behind(way))
    bearer = ("Authorization", f"Bearer {token}")
    assert page.get("/who", headers=[bearer]).status_code == 200
    assert page.get("/who", headers=[bearer, bearer]).status_code == 401
    for query in (
        f"access_token={token}",
        f"x={token}",
        f"x=%6ddc_{token[4:]}",
        "token=x",
        "a=b&access_token=",
    ):
        for headers in ([], [bearer]):
            got = page.get(f"/who?{query}", headers=headers)
            assert got.status_code == 401
            assert "a token in the URL" in got.text
            assert token not in got.text
    assert page.get("/who?tokens=1", headers=[bearer]).status_code == 200
    form = {"access_token": token}
    assert page.post("/who", data=form).status_code == 401


def test_two_kinds_of_credentials_are_refused(
    local: Authentication, registry: Registry
) -> None:
    token = registry.add_token(TokenTerms("ann", LABS), created_by="dana").text
    page = signed_in(local)
    bearer = {"Authorization": f"Bearer {token}"}
    assert page.get("/who", headers=bearer).status_code == 401
    page.cookies.clear()
    assert page.get("/who", headers=bearer).json()["name"] == "ann"
    page.cookies.set(COOKIE, "dead")
    assert page.get("/who", headers=bearer).status_code == 401


# --- secrets -----------------------------------------------------------------


def test_a_secret_shows_itself_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("canary-secret\n")
    path.chmod(0o600)
    secret = read_secret(path)
    assert secret.reveal() == "canary-secret"
    for shown in (
        repr(secret),
        str(secret),
        f"{secret}",
        f"{[secret]!r}",
    ):
        assert "canary" not in shown
    assert secret.derived("a") != secret.derived("b")
    assert secret.derived("a") == Secret("canary-secret").derived("a")
    assert secret.derived("a") != Secret("canary-secrex").derived("a")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o620, 0o601])
def test_a_secret_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret"
    path.write_text("canary")
    path.chmod(mode)
    with pytest.raises(UsageError, match="accessible to other users") as caught:
        read_secret(path)
    assert "canary" not in caught.value.render()


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"canary\nmore\n", b"can ary", b"canary\xff", b"c" * 5000]
)
def test_what_is_no_secret_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "secret"
    path.write_bytes(data)
    path.chmod(0o600)
    with pytest.raises(InputError) as caught:
        read_secret(path)
    assert "can" not in caught.value.render().replace("cannot", "")


def test_a_pipe_or_a_folder_keeps_nobody_waiting(tmp_path: Path) -> None:
    import os

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    for path in (pipe, tmp_path, tmp_path / "missing"):
        with pytest.raises((InputError, UsageError)):
            read_secret(path)


def test_no_secret_stands_in_what_an_entrance_shows(local: Authentication) -> None:
    assert local.links["dana"].partition("key=")[2] not in repr(local)
