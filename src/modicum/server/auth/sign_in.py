"""Signing in with an OpenID provider: authorization code flow with PKCE."""

from __future__ import annotations

import base64
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, quote_plus

from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from cryptography.fernet import Fernet, InvalidToken

from modicum.server.auth.grants import groups_in
from modicum.server.auth.http_fetch import Fetch
from modicum.server.auth.jwt import check_claims, read_token, seconds
from modicum.server.auth.names import person_name
from modicum.server.auth.ports import Clock
from modicum.server.auth.problems import forbidden, not_accepted, unusable
from modicum.server.auth.provider import Provider
from modicum.server.auth.safe_redirect import own_path
from modicum.server.auth.secret_files import Secret
from modicum.server.settings.model import Oidc

#: Time limit of a sign-in.
LOGIN_SECONDS: Final = 600
#: The path that starts a sign-in.
LOGIN_PATH: Final = "/login"
#: The path that the provider redirects to.
CALLBACK_PATH: Final = "/login/callback"

_AGAIN: Final = "start again at /login, in one window"


@dataclass(frozen=True, slots=True)
class Started:
    """A started sign-in.

    Attributes:
        url: The redirect address.
        sealed: The state that the browser stores meanwhile.
    """

    url: str = field(repr=False)
    sealed: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A completed sign-in.

    Attributes:
        name: Their name.
        groups: The groups reported by the provider.
    """

    name: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The values that must match after the redirect."""

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    next: str


class SignIn:
    """Redirects people to a provider, and completes their sign-in.

    The state of a sign-in is stored in the browser, encrypted with a key derived from
    the client's secret: every process can open it, and none stores it.

    Args:
        oidc: The provider's settings.
        secret: The client's secret.
        provider: The provider.
        fetch: Makes its requests.
        clock: The time.
        origin: The public origin of this server.
    """

    def __init__(
        self,
        oidc: Oidc,
        secret: Secret,
        provider: Provider,
        fetch: Fetch,
        clock: Clock,
        *,
        origin: str,
    ) -> None:
        self._oidc = oidc
        self._secret = secret
        self._provider = provider
        self._fetch = fetch
        self._clock = clock
        self._redirect_uri = origin + CALLBACK_PATH
        key = secret.derived("modicum sign-in v1")
        self._seal = Fernet(base64.urlsafe_b64encode(key))

    # --- start ---------------------------------------------------------------

    async def start(self, wanted: str) -> Started:
        """Return the redirect address, and the state for the browser."""
        metadata = await self._provider.metadata()
        attempt = _Attempt(
            secrets.token_urlsafe(32),
            secrets.token_urlsafe(32),
            secrets.token_urlsafe(48),
            own_path(wanted),
        )
        url = prepare_grant_uri(
            metadata.authorization_endpoint,
            self._oidc.client_id,
            "code",
            redirect_uri=self._redirect_uri,
            scope=" ".join(self._oidc.scopes),
            state=attempt.state,
            nonce=attempt.nonce,
            code_challenge=create_s256_code_challenge(attempt.verifier),
            code_challenge_method="S256",
        )
        return Started(str(url), self._sealed(attempt))

    # --- being back ----------------------------------------------------------

    async def finish(self, query: str, sealed: str | None) -> tuple[SignedIn, str]:
        """Return who is back from the provider, and the page that they wanted."""
        attempt = self._opened(sealed)
        fields = _once(query)
        if not hmac.compare_digest(
            fields.get("state", "").encode(), attempt.state.encode()
        ):
            raise unusable("this sign-in was not started in this browser", _AGAIN)
        await self._refuse_another_provider(fields)
        if "error" in fields or not fields.get("code"):
            raise unusable("the provider rejected the sign-in", _AGAIN)
        claims = await self._exchanged(fields["code"], attempt)
        return self._somebody(claims), attempt.next

    async def _refuse_another_provider(self, fields: Mapping[str, str]) -> None:
        """Refuse a response of another provider (RFC 9207)."""
        metadata = await self._provider.metadata()
        given = fields.get("iss")
        if given is None and not metadata.sends_issuer:
            return
        if given != metadata.issuer:
            raise unusable("the redirect is from another provider", _AGAIN)

    async def _exchanged(self, code: str, attempt: _Attempt) -> Mapping[str, Any]:
        metadata = await self._provider.metadata()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": attempt.verifier,
        }
        name, secret = self._oidc.client_id, self._secret.reveal()
        if metadata.takes_basic:  # RFC 6749, 2.3.1, has both encoded before.
            auth = quote_plus(name), quote_plus(secret)
            status, fields = await self._fetch(metadata.token_endpoint, form, auth)
        else:
            form |= {"client_id": name, "client_secret": secret}
            status, fields = await self._fetch(metadata.token_endpoint, form)
        token = fields.get("id_token")
        if status != 200 or not isinstance(token, str):
            raise not_accepted()
        claims = (await read_token(self._provider, token)).claims
        self._check(claims, attempt)
        return claims

    def _check(self, claims: Mapping[str, Any], attempt: _Attempt) -> None:
        """Refuse an ID token that is not the answer to this attempt."""
        now = seconds(self._clock.now())
        check_claims(
            claims,
            issuer=self._provider.issuer,
            audience=self._oidc.client_id,
            now=now,
            leeway_s=self._oidc.leeway_s,
        )
        audience, party = claims["aud"], claims.get("azp")
        shared = isinstance(audience, list) and len(audience) > 1
        if (shared or party is not None) and party != self._oidc.client_id:
            raise not_accepted()
        nonce = claims.get("nonce")
        sent = nonce if isinstance(nonce, str) else ""
        if not hmac.compare_digest(sent.encode(), attempt.nonce.encode()):
            raise not_accepted()
        if claims["iat"] < now - LOGIN_SECONDS - self._oidc.leeway_s:
            raise not_accepted()

    def _somebody(self, claims: Mapping[str, Any]) -> SignedIn:
        names = self._oidc.claims
        if names.name == "email" and claims.get("email_verified") is not True:
            raise forbidden(
                "the provider has not verified this e-mail address",
                "verify it there, or choose another claim for `name` in the settings",
            )
        name = person_name(claims.get(names.name), fold_case=names.fold_case)
        groups = groups_in(claims.get(names.groups))
        return SignedIn(name, groups)

    # --- browser state -------------------------------------------------------

    def _sealed(self, attempt: _Attempt) -> str:
        parts = [attempt.state, attempt.nonce, attempt.verifier, attempt.next]
        now = seconds(self._clock.now())
        return self._seal.encrypt_at_time(json.dumps(parts).encode(), now).decode()

    def _opened(self, sealed: str | None) -> _Attempt:
        now = seconds(self._clock.now())
        try:
            cookie = (sealed or "").encode()
            opened = self._seal.decrypt_at_time(cookie, LOGIN_SECONDS, now)
        except InvalidToken:
            raise unusable(
                "this sign-in was not started in this browser, or took too long", _AGAIN
            ) from None
        return _Attempt(*json.loads(opened))


def _once(query: str) -> dict[str, str]:
    """Return the parameters of a query, none of which may be repeated."""
    try:
        pairs = parse_qsl(query, max_num_fields=20)
    except ValueError:
        raise unusable("the redirect from the provider is invalid", _AGAIN) from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise unusable("the redirect from the provider is invalid", _AGAIN)
    return fields
