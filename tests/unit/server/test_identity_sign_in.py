"""Signing in with a provider, and what goes wrong when somebody interferes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from cryptography.fernet import Fernet
from joserfc.jwk import RSAKey
from samples.entrances import PUBLIC, WITH_OIDC, FakeProvider, settings_of
from samples.small import NOON

from modicum.core.errors import AccessError, Code, ModicumError
from modicum.server.auth.jwt import seconds
from modicum.server.auth.provider import Provider
from modicum.server.auth.secret_files import read_secret
from modicum.server.auth.sign_in import LOGIN_SECONDS, SignedIn, SignIn, Started
from modicum.server.settings.model import ClaimNames, Oidc
from modicum.system.clock import FixedClock, add_seconds

CALLBACK = f"{PUBLIC}/login/callback"


@dataclass
class Desk:
    """A server's side of signing in, and the provider's."""

    oidc: Oidc
    provider: FakeProvider
    clock: FixedClock
    sign_in: SignIn

    def start(self, wanted: str = "/rules") -> tuple[Started, dict[str, str]]:
        started = asyncio.run(self.sign_in.start(wanted))
        sent = parse_qs(urlsplit(started.url).query, strict_parsing=True)
        assert all(len(values) == 1 for values in sent.values())
        return started, {name: values[0] for name, values in sent.items()}

    def claims(self, nonce: str) -> dict[str, object]:
        now = seconds(self.clock.now())
        return {
            "iss": self.provider.issuer,
            "aud": "modicum",
            "sub": "7",
            "nonce": nonce,
            "iat": now,
            "exp": now + 300,
            "email": "dana@example.org",
            "email_verified": True,
            "groups": ["privacy-team"],
        }

    def back(self, sent: Mapping[str, str], **changed: str | None) -> str:
        result: dict[str, str | None] = {
            "code": "abc",
            "state": sent["state"],
            "iss": self.provider.issuer,
            **changed,
        }
        return "&".join(f"{k}={quote(v)}" for k, v in result.items() if v is not None)

    def finish(self, query: str, sealed: str | None) -> tuple[SignedIn, str]:
        return asyncio.run(self.sign_in.finish(query, sealed))


@pytest.fixture(scope="module")
def keys() -> FakeProvider:
    return FakeProvider()


@pytest.fixture
def desk(tmp_path: Path, keys: FakeProvider) -> Desk:
    oidc = settings_of(WITH_OIDC, tmp_path).oidc
    assert oidc is not None
    return desk_of(oidc, keys)


def desk_of(oidc: Oidc, keys: FakeProvider) -> Desk:
    provider, clock = FakeProvider.__new__(FakeProvider), FixedClock(NOON)
    provider.__dict__.update(keys.__dict__)
    provider.metadata, provider.asked, provider.forms = {**keys.metadata}, [], []
    known = Provider(provider.issuer, provider)
    secret = read_secret(oidc.client_secret_file)
    sign_in = SignIn(oidc, secret, known, provider, clock, origin=PUBLIC)
    return Desk(oidc, provider, clock, sign_in)


def refused(desk: Desk, query: str, sealed: str | None) -> AccessError:
    with pytest.raises(AccessError) as caught:
        desk.finish(query, sealed)
    assert caught.value.code in (Code.NOT_RECOGNIZED, Code.FORBIDDEN)
    return caught.value


def test_somebody_signs_in(desk: Desk) -> None:
    started, sent = desk.start()
    desk.provider.id_token = desk.provider.signed(desk.claims(sent["nonce"]))

    somebody, wanted = desk.finish(desk.back(sent), started.sealed)

    assert started.url.startswith("https://login.example.org/auth?")
    assert somebody == SignedIn("dana@example.org", ("privacy-team",))
    assert wanted == "/rules"
    assert sent["response_type"] == "code"
    assert sent["redirect_uri"] == CALLBACK
    assert sent["client_id"] == "modicum"
    assert sent["code_challenge_method"] == "S256"
    (form,) = desk.provider.forms
    assert create_s256_code_challenge(form["code_verifier"]) == sent["code_challenge"]
    assert form["redirect_uri"] == CALLBACK
    assert form["code"] == "abc"
    assert len(form["code_verifier"]) >= 43


def test_nothing_is_used_twice(desk: Desk) -> None:
    several = [desk.start()[1] for _ in range(20)]
    for name in ("state", "nonce", "code_challenge"):
        values = {one[name] for one in several}
        assert len(values) == 20
        assert min(map(len, values)) >= 43
    assert not {one["state"] for one in several} & {one["nonce"] for one in several}


def test_what_the_browser_keeps_tells_it_nothing(desk: Desk) -> None:
    started, sent = desk.start()
    for secret in (sent["state"], sent["nonce"], sent["code_challenge"]):
        assert secret not in started.sealed
        assert secret not in repr(started)
    assert started.sealed not in repr(started)


def test_nobody_is_sent_elsewhere_afterwards(desk: Desk) -> None:
    started, sent = desk.start("//evil.example")
    desk.provider.id_token = desk.provider.signed(desk.claims(sent["nonce"]))
    assert desk.finish(desk.back(sent), started.sealed)[1] == "/"


# --- on the way back ---------------------------------------------------------


def test_another_browser_is_not_let_in(desk: Desk) -> None:
    started, sent = desk.start()
    other, other_sent = desk.start()
    desk.provider.id_token = desk.provider.signed(desk.claims(sent["nonce"]))
    forged = Fernet(Fernet.generate_key()).encrypt(b'["a","b","c","/"]').decode()
    for sealed in (None, "", other.sealed, started.sealed[:-8], forged, "ä"):
        refused(desk, desk.back(sent), sealed)
    for state in ("", None, sent["state"][:-1], other_sent["state"], "ä"):
        refused(desk, desk.back(sent, state=state), started.sealed)
    assert not desk.provider.forms  # No code went out for any of them.


@pytest.mark.parametrize(("seconds_", "holds"), [(0, True), (1, False)])
def test_whoever_takes_too_long_begins_again(
    desk: Desk, seconds_: int, holds: bool
) -> None:
    started, sent = desk.start()
    desk.clock.time = add_seconds(NOON, LOGIN_SECONDS + seconds_)
    desk.provider.id_token = desk.provider.signed(desk.claims(sent["nonce"]))
    if holds:
        assert desk.finish(desk.back(sent), started.sealed)
    else:
        refused(desk, desk.back(sent), started.sealed)


@pytest.mark.parametrize(
    "issuer", [None, "", "https://evil.example", "https://login.example.org/"]
)
def test_another_provider_is_not_believed(desk: Desk, issuer: str | None) -> None:
    started, sent = desk.start()
    desk.provider.id_token = desk.provider.signed(desk.claims(sent["nonce"]))
    refused(desk, desk.back(sent, iss=issuer), started.sealed)
    assert not desk.provider.forms


def test_a_provider_that_never_says_who_it_is_may_be_silent(desk: Desk) -> None:
    del desk.provider.metadata["authorization_response_iss_parameter_supported"]
    started, sent = desk.start()
    desk.provider.id_token = desk.provider.signed(desk.claims(sent["nonce"]))
    refused(desk, desk.back(sent, iss="https://evil.example"), started.sealed)
    assert desk.finish(desk.back(sent, iss=None), started.sealed)


def test_parameters_stand_once_and_errors_are_not_repeated(desk: Desk) -> None:
    started, sent = desk.start()
    desk.provider.id_token = desk.provider.signed(desk.claims(sent["nonce"]))
    good = desk.back(sent)
    refused(desk, f"{good}&code=other", started.sealed)
    refused(desk, f"{good}&state={sent['state']}", started.sealed)
    refused(desk, desk.back(sent, code=None), started.sealed)
    refused(desk, desk.back(sent, code=""), started.sealed)
    refused(desk, "&".join(f"a{one}=1" for one in range(50)), started.sealed)
    failed = desk.back(sent, error="<script>canary", error_description="canary")
    assert "canary" not in refused(desk, failed, started.sealed).render()
    assert not desk.provider.forms


# --- the ID token ------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "https://evil.example"},
        {"aud": "other"},
        {"aud": ["modicum", "other"]},
        {"aud": ["modicum", "other"], "azp": "other"},
        {"aud": f"{PUBLIC}/api"},
        {"azp": "other"},
        {"azp": 7},
        {"exp": seconds(NOON) - 30},
        {"exp": None},
        {"iat": None},
        {"iat": seconds(NOON) + 31},
        {"iat": seconds(NOON) - LOGIN_SECONDS - 31},
        {"nonce": None},
        {"nonce": ""},
        {"nonce": "another"},
        {"nonce": 7},
        {"sub": None},
        {"email_verified": False},
        {"email_verified": "true"},
        {"email_verified": None},
        {"email": None},
        {"email": "Dana@example.org"},
        {"email": " dana@example.org"},
    ],
)
def test_an_id_token_that_is_not_the_answer_is_refused(
    desk: Desk, changed: Mapping[str, object]
) -> None:
    started, sent = desk.start()
    claims = {**desk.claims(sent["nonce"]), **changed}
    kept = {name: value for name, value in claims.items() if value is not None}
    desk.provider.id_token = desk.provider.signed(kept)
    refused(desk, desk.back(sent), started.sealed)


@pytest.mark.parametrize(
    "changed",
    [
        {"aud": ["modicum"]},
        {"aud": ["modicum", "other"], "azp": "modicum"},
        {"azp": "modicum"},
        {"groups": None},
        {"iat": seconds(NOON) - LOGIN_SECONDS},
    ],
)
def test_other_ways_to_say_the_same_are_taken(
    desk: Desk, changed: Mapping[str, object]
) -> None:
    started, sent = desk.start()
    claims = {**desk.claims(sent["nonce"]), **changed}
    kept = {name: value for name, value in claims.items() if value is not None}
    desk.provider.id_token = desk.provider.signed(kept)
    assert desk.finish(desk.back(sent), started.sealed)[0].name == "dana@example.org"


def test_an_id_token_that_another_signed_is_refused(desk: Desk) -> None:
    started, sent = desk.start()
    claims = desk.claims(sent["nonce"])
    own = RSAKey.generate_key(2048, {"kid": "one"})
    for token in (desk.provider.signed(claims, key=own), "", "a.b.c", "x"):
        desk.provider.id_token = token
        refused(desk, desk.back(sent), started.sealed)


def test_an_answer_to_another_attempt_is_refused(desk: Desk) -> None:
    started, sent = desk.start()
    _, other = desk.start()
    desk.provider.id_token = desk.provider.signed(desk.claims(other["nonce"]))
    refused(desk, desk.back(sent), started.sealed)


def test_names_come_from_the_claim_that_settings_name(
    desk: Desk, keys: FakeProvider
) -> None:
    names = ClaimNames("preferred_username", "roles", fold_case=True)
    other = desk_of(replace(desk.oidc, claims=names), keys)
    started, sent = other.start()
    claims = {**other.claims(sent["nonce"]), "preferred_username": "DaNa", "roles": "x"}
    del claims["email_verified"]
    other.provider.id_token = other.provider.signed(claims)
    assert other.finish(other.back(sent), started.sealed)[0] == SignedIn("dana", ("x",))


def test_no_secret_is_logged_or_told(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    started, sent = desk.start()
    desk.provider.id_token = desk.provider.signed(desk.claims("another"))
    secrets = [sent["state"], sent["nonce"], started.sealed, "canary-client-secret"]
    result = []
    for query, sealed in (
        (desk.back(sent), started.sealed),
        (desk.back(sent, state="x"), started.sealed),
        (desk.back(sent), None),
    ):
        try:
            desk.finish(query, sealed)
        except ModicumError as error:
            frames = []
            at = error.__traceback__
            while at is not None:
                frames.append(str(at.tb_frame.f_code.co_name))
                at = at.tb_next
            result.append(f"{error!r} {error.render()} {frames}")
    assert len(result) == 3
    secrets += [form["code_verifier"] for form in desk.provider.forms]
    for secret in secrets:
        assert secret not in " ".join(result)
        assert secret not in caplog.text
        assert secret not in repr(desk.sign_in.__dict__)
