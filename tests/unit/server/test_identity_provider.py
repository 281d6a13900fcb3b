"""Programs' tokens, as somebody would forge them; and a provider's keys."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

import pytest
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, OctKey, RSAKey
from samples.entrances import AUDIENCE, FakeProvider
from samples.small import NOON
from starlette.requests import Request

from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import ALL, Identity
from modicum.core.errors import AccessError, Code, UnavailableError
from modicum.server.auth.authenticators import ProgramTokens
from modicum.server.auth.grants import CurrentGrants, GrantTable
from modicum.server.auth.jwt import seconds
from modicum.server.auth.problems import provider_failed
from modicum.server.auth.provider import ASK_EVERY_S, FRESH_S, STALE_S, Provider
from modicum.server.settings.model import Programs
from modicum.system.clock import FixedClock

NOW = seconds(NOON)
GRANTS = CurrentGrants(GrantTable({}, {}, {"etl": {Role.ANALYST: frozenset({ALL})}}))
LEEWAY = 30

CLAIMS: dict[str, object] = {
    "iss": "https://login.example.org",
    "aud": AUDIENCE,
    "sub": "etl",
    "client_id": "etl",
    "iat": NOW,
    "exp": NOW + 600,
}


class Ticking:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def request(*authorization: str, cookie: str = "", query: str = "") -> Request:
    headers = [(b"authorization", one.encode()) for one in authorization]
    headers += [(b"cookie", cookie.encode())] if cookie else []
    return Request(
        {
            "type": "http",
            "method": "GET",
            "path": "/",
            "headers": headers,
            "query_string": query.encode(),
        }
    )


def ask(
    provider: FakeProvider, token: str, programs: Programs | None = None
) -> Identity | None:
    known = Provider(provider.issuer, provider)
    tokens = ProgramTokens(
        known,
        programs or Programs(AUDIENCE),
        GRANTS,
        FixedClock(NOON),
        LEEWAY,
        cookie="c",
    )
    return asyncio.run(tokens.identify(request(f"Bearer {token}")))


def refused(
    provider: FakeProvider, token: str, programs: Programs | None = None
) -> AccessError:
    with pytest.raises(AccessError) as caught:
        ask(provider, token, programs)
    shown = caught.value.render()
    assert token not in shown
    assert not any(len(part) > 8 and part in shown for part in token.split("."))
    return caught.value


@pytest.fixture(scope="module")
def provider() -> FakeProvider:
    return FakeProvider()


def test_a_program_is_recognized(provider: FakeProvider) -> None:
    found = ask(provider, provider.signed(CLAIMS))
    assert found == Identity(
        "service:etl",
        {Role.ANALYST: frozenset({ALL})},
        is_service=True,
        via="token of https://login.example.org",
    )
    for typ in ("at+jwt", "AT+JWT", "JWT", None):
        assert ask(provider, provider.signed(CLAIMS, {"typ": typ})) == found
    listed = {**CLAIMS, "aud": ["other", AUDIENCE]}
    assert ask(provider, provider.signed(listed)) == found


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "https://login.example.org/"},
        {"iss": "https://evil.example"},
        {"iss": None},
        {"aud": "modicum"},
        {"aud": f"{AUDIENCE}/"},
        {"aud": []},
        {"aud": None},
        {"aud": {AUDIENCE: 1}},
        {"exp": None},
        {"exp": "9999999999"},
        {"exp": True},
        {"nbf": NOW + LEEWAY + 1},
        {"iat": NOW + LEEWAY + 1},
        {"iat": None},
        {"sub": None},
        {"sub": "dana"},
        {"sub": ["etl"]},
        {"client_id": None},
        {"client_id": "other"},
        {"nonce": "of an ID token"},
        {"cnf": {"jkt": "a key that was not shown"}},
    ],
)
def test_a_token_that_says_something_else_is_refused(
    provider: FakeProvider, changed: Mapping[str, object]
) -> None:
    claims = {k: v for k, v in {**CLAIMS, **changed}.items() if v is not None}
    error = refused(provider, provider.signed(claims))
    assert error.code is Code.NOT_RECOGNIZED
    assert "is not accepted" in error.render()


@pytest.mark.parametrize(
    ("exp", "holds"), [(NOW - LEEWAY + 1, True), (NOW - LEEWAY, False), (0, False)]
)
def test_clocks_may_differ_by_little(
    provider: FakeProvider, exp: int, holds: bool
) -> None:
    token = provider.signed({**CLAIMS, "exp": exp})
    if holds:
        assert ask(provider, token) is not None
    else:
        assert "has expired" in refused(provider, token).render()


@pytest.mark.parametrize("typ", ["logout+jwt", "dpop+jwt", "id_token+jwt", "x"])
def test_a_token_for_another_use_is_refused(provider: FakeProvider, typ: str) -> None:
    refused(provider, provider.signed(CLAIMS, {"typ": typ}))


def test_a_program_without_roles_is_recognized_and_refused(
    provider: FakeProvider,
) -> None:
    other = {**CLAIMS, "sub": "other", "client_id": "other"}
    assert refused(provider, provider.signed(other)).code is Code.FORBIDDEN


def test_programs_are_told_by_the_claim_that_settings_name(
    provider: FakeProvider,
) -> None:
    result = Programs(AUDIENCE, "azp", ("idtyp", "app"))
    claims = {**CLAIMS, "azp": "etl", "sub": "7f31", "idtyp": "app"}
    assert ask(provider, provider.signed(claims), result) is not None
    for idtyp in ("user", True, ["app"], None):
        refused(provider, provider.signed({**claims, "idtyp": idtyp}), result)
    del claims["idtyp"]
    refused(provider, provider.signed(claims), result)


# --- forged signatures -------------------------------------------------------


def encoded(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def hand_made(header: Mapping[str, object], signature: bytes = b"") -> str:
    return f"{encoded(header)}.{encoded(CLAIMS)}.{encoded(signature)}"


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "", "nOnE", "RS1", "RSA-OAEP"])
def test_a_token_without_a_signature_is_refused(
    provider: FakeProvider, alg: str
) -> None:
    refused(provider, hand_made({"alg": alg, "kid": "one"}))
    refused(provider, hand_made({"alg": alg}, b"x"))


@pytest.mark.parametrize("alg", ["HS256", "HS384", "HS512"])
@pytest.mark.parametrize("form", ["pem", "der", "jwk", "modulus"])
def test_a_public_key_is_no_shared_secret(
    provider: FakeProvider, alg: str, form: str
) -> None:
    key = provider.keys[0]
    assert isinstance(key, RSAKey)
    public = key.as_dict(private=False)
    secret = {
        "pem": key.as_pem(private=False),
        "der": key.as_der(private=False),
        "jwk": json.dumps(public).encode(),
        "modulus": str(public["n"]).encode(),
    }[form]
    head = {"alg": alg, "typ": "JWT", "kid": "one"}
    signed = f"{encoded(head)}.{encoded(CLAIMS)}".encode()
    hashes = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}
    mac = hmac.new(secret, signed, hashes[alg]).digest()
    refused(provider, f"{signed.decode()}.{encoded(mac)}")


def test_a_key_that_comes_with_the_token_counts_for_nothing(
    provider: FakeProvider,
) -> None:
    own = RSAKey.generate_key(2048, {"kid": "one"})
    public = own.as_dict(private=False)
    before = len(provider.asked)
    for header in (
        {"jwk": public},
        {"jku": "https://evil.example/keys"},
        {"x5u": "https://evil.example/cert"},
        {"kid": "one"},
        {"kid": "../../dev/null"},
        {"kid": "one' OR '1'='1"},
        {"kid": "https://evil.example/keys"},
        {"kid": ""},
        {"kid": None},
    ):
        head = {"alg": "RS256", "kid": "one", **header}
        refused(provider, hand_signed(own, head))
    assert {one.split("?")[0] for one in provider.asked[before:]} <= {
        "/.well-known/openid-configuration",
        "/jwks",
    }


def hand_signed(key: RSAKey, header: Mapping[str, object]) -> str:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    kept = {name: value for name, value in header.items() if value is not None}
    text = f"{encoded(kept)}.{encoded(CLAIMS)}"
    private = key.private_key
    assert private is not None
    made = private.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{text}.{encoded(made)}"


def test_hand_made_signatures_hold_where_they_should(provider: FakeProvider) -> None:
    """Shows that the forgeries above fail for their keys, and not for their form."""
    key = provider.keys[0]
    assert isinstance(key, RSAKey)
    assert ask(provider, hand_signed(key, {"alg": "RS256", "kid": "one"}))
    refused(provider, hand_signed(key, {"alg": "RS512", "kid": "one"}))
    refused(provider, hand_signed(key, {"alg": "PS256", "kid": "one"}))
    refused(provider, hand_signed(key, {"alg": "ES256", "kid": "one"}))
    crit = {"alg": "RS256", "kid": "one", "crit": ["exp"], "exp": 1}
    refused(provider, hand_signed(key, crit))
    refused(provider, hand_signed(key, {"alg": "RS256", "kid": 1}))
    refused(provider, hand_signed(key, {"alg": ["RS256"], "kid": "one"}))


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_changed_token_is_refused(provider: FakeProvider, part: int) -> None:
    parts = provider.signed(CLAIMS).split(".")
    middle = len(parts[part]) // 2
    other = "A" if parts[part][middle] != "A" else "B"
    parts[part] = parts[part][:middle] + other + parts[part][middle + 1 :]
    refused(provider, ".".join(parts))


@pytest.mark.parametrize(
    "token",
    ["x", "a.b", "a.b.c", "a.b.c.d.e", "..", "e30.e30.", "W10.W10.W10", "a" * 16400],
)
def test_what_is_no_token_is_refused(provider: FakeProvider, token: str) -> None:
    with pytest.raises(AccessError):
        ask(provider, token)


def test_deep_json_is_refused(provider: FakeProvider) -> None:
    deep = encoded(b"[" * 9000)
    with pytest.raises(AccessError):
        ask(provider, f"{deep}.e30.e30")


# --- keys --------------------------------------------------------------------


def test_several_keys_are_told_by_their_id_and_kind() -> None:
    provider = FakeProvider()
    second = RSAKey.generate_key(2048, {"kid": "two", "use": "sig", "alg": "RS256"})
    curve = ECKey.generate_key("P-256", {"kid": "three"})
    provider.keys += [second, curve]
    for key in provider.keys:
        assert ask(provider, provider.signed(CLAIMS, key=key)) is not None
    refused(provider, provider.signed(CLAIMS, {"kid": None}, key=second))
    assert ask(provider, provider.signed(CLAIMS, {"kid": None}, key=curve)) is not None


def test_keys_that_are_no_signing_keys_are_left_out() -> None:
    class Odd(FakeProvider):
        async def __call__(self, url: str, *rest: Any) -> tuple[int, dict[str, Any]]:
            status, result = await super().__call__(url, *rest)
            if url.endswith("/jwks"):
                result["keys"] += [
                    OctKey.generate_key(256, {"kid": "shared"}).as_dict(private=True),
                    {"kty": "PQ", "kid": "future"},
                    {"kty": "RSA", "kid": "broken"},
                    {"kid": "nothing"},
                    "text",
                ]
            return status, result

    provider = Odd()
    with pytest.warns(SecurityWarning):
        weak = RSAKey.generate_key(1024, {"kid": "weak"})
    sealing = RSAKey.generate_key(2048, {"kid": "enc", "use": "enc"})
    provider.keys += [weak, sealing]
    assert ask(provider, provider.signed(CLAIMS)) is not None
    refused(provider, provider.signed(CLAIMS, key=weak))
    plain = RSAKey.import_key({**sealing.as_dict(private=True), "use": "sig"})
    refused(provider, provider.signed(CLAIMS, key=plain))
    assert ask(provider, provider.signed(CLAIMS, {"kid": None})) is not None


def test_a_provider_is_asked_once_for_many() -> None:
    provider = FakeProvider()
    known = Provider(provider.issuer, provider, Ticking())

    async def many() -> None:
        await asyncio.gather(*(known.key("one", "RS256") for _ in range(50)))

    asyncio.run(many())
    assert sorted(provider.asked) == ["/.well-known/openid-configuration", "/jwks"]


def test_unknown_keys_have_the_provider_asked_now_and_then_only() -> None:
    provider, clock = FakeProvider(), Ticking()
    known = Provider(provider.issuer, provider, clock)

    async def unknown(count: int) -> None:
        found = await asyncio.gather(
            *(known.key(f"k{one}", "RS256") for one in range(count)),
            return_exceptions=True,
        )
        assert all(isinstance(one, AccessError) for one in found)

    async def through() -> None:
        await known.key("one", "RS256")
        await unknown(50)
        assert provider.asked.count("/jwks") == 1  # It was asked a moment ago.
        clock.at += ASK_EVERY_S
        await unknown(50)
        assert provider.asked.count("/jwks") == 2
        await unknown(50)
        assert provider.asked.count("/jwks") == 2

    asyncio.run(through())


def test_a_new_key_is_found_and_an_old_one_is_gone() -> None:
    provider, clock = FakeProvider(), Ticking()
    known = Provider(provider.issuer, provider, clock)

    async def through() -> None:
        await known.key("one", "RS256")
        provider.keys = [RSAKey.generate_key(2048, {"kid": "two"})]
        clock.at += ASK_EVERY_S
        assert (await known.key("two", "RS256")).kid == "two"
        with pytest.raises(AccessError):
            await known.key("one", "RS256")

    asyncio.run(through())


def test_a_provider_that_is_down_is_gone_by_for_a_day_and_no_longer() -> None:
    provider, clock = FakeProvider(), Ticking()
    down = False

    async def fetch(
        url: str,
        form: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        if down:
            raise provider_failed("does not respond")
        return await provider(url, form, auth)

    known = Provider(provider.issuer, fetch, clock)

    async def through() -> None:
        nonlocal down
        await known.key("one", "RS256")
        down = True
        clock.at += FRESH_S + 1
        assert (await known.key("one", "RS256")).kid == "one"
        clock.at += STALE_S
        with pytest.raises(UnavailableError):
            await known.key("one", "RS256")
        down = False
        clock.at += ASK_EVERY_S
        assert (await known.key("one", "RS256")).kid == "one"

    asyncio.run(through())


def test_those_who_wait_for_a_provider_that_is_down_wait_once() -> None:
    provider, requested, down = FakeProvider(), 0, True

    async def fetch(
        url: str,
        form: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        nonlocal requested
        requested += 1
        await asyncio.sleep(0)  # The others come and wait meanwhile.
        if down:
            raise provider_failed("does not respond")
        return await provider(url, form, auth)

    known = Provider(provider.issuer, fetch, Ticking())

    async def through() -> None:
        nonlocal down
        for times in (1, 2):  # Whoever comes later has it asked anew.
            found = await asyncio.gather(
                *(known.key("one", "RS256") for _ in range(50)),
                return_exceptions=True,
            )
            assert all(isinstance(one, UnavailableError) for one in found)
            assert requested == times
        down = False
        assert (await known.key("one", "RS256")).kid == "one"

    asyncio.run(through())


@pytest.mark.parametrize(
    "changed",
    [
        {"issuer": "https://evil.example"},
        {"issuer": "https://login.example.org/"},
        {"jwks_uri": "http://login.example.org/jwks"},
        {"jwks_uri": "http://169.254.169.254/latest/meta-data"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "https://user:pw@x.org/jwks"},
        {"jwks_uri": "https://"},
        {"jwks_uri": ["https://x.org"]},
        {"jwks_uri": None},
        {"token_endpoint": "http://x.org/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
)
def test_a_provider_that_describes_itself_oddly_is_not_gone_by(
    changed: dict[str, object],
) -> None:
    provider = FakeProvider()
    token = provider.signed(CLAIMS)
    provider.metadata |= changed
    with pytest.raises(UnavailableError) as caught:
        ask(provider, token)
    assert caught.value.code is Code.PROVIDER_FAILED
    assert provider.asked == ["/.well-known/openid-configuration"]


def test_a_provider_on_this_machine_may_speak_plainly() -> None:
    provider = FakeProvider("http://127.0.0.1:9000")
    token = provider.signed({**CLAIMS, "iss": provider.issuer})
    assert ask(provider, token) is not None
