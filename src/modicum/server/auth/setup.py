"""The entrance of one server, put together from its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

from fastapi import APIRouter

from modicum.api.permissions.identity import Identity
from modicum.console.router import Console
from modicum.core.canonical import Plain, digest, encode
from modicum.core.errors import Code, Problem, UsageError
from modicum.server.auth import routes
from modicum.server.auth.authentication import Authenticator
from modicum.server.auth.authenticators import ApiTokens, Authenticators, ProgramTokens
from modicum.server.auth.grants import CurrentGrants, GrantTable, grant_table
from modicum.server.auth.http_fetch import HttpFetch
from modicum.server.auth.local_link import LOCAL_GRANTS, OneTimeLinks
from modicum.server.auth.middleware import Gate
from modicum.server.auth.names import owner_name
from modicum.server.auth.ports import Clock, Names, SessionStore, Tokens
from modicum.server.auth.provider import Provider
from modicum.server.auth.secret_files import read_secret
from modicum.server.auth.sessions import CookieJar, Sessions
from modicum.server.auth.sign_in import LOGIN_PATH, SignIn
from modicum.server.settings.model import GrantsByName, Oidc, Settings


class Registry(Tokens, SessionStore, Names, Protocol):
    """The store of tokens and sessions, and the names that are known."""


@dataclass(frozen=True, slots=True)
class PublicAddress:
    """The public address of a server and its user.

    Attributes:
        address: The address that it is bound to, in digits.
        port: Its port.
        user: The name of the user of a server without sign-in, unless its settings
            name `local_people`.
    """

    address: str
    port: int
    user: str

    @property
    def origin(self) -> str:
        """The address for browsers on this machine."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{host}" + ("" if self.port == 80 else f":{self.port}")


@dataclass(frozen=True, slots=True)
class Authentication:
    """The authentication of a server.

    Attributes:
        authenticator: Authenticates callers.
        gate: The checks of every request, for `Guard`.
        routers: The routes for sign-in and sign-out.
        links: The one-time links of a server without sign-in, by person; empty if it
            has sign-in.
        grants: The grants in force.
        csrf_cookie: The name of the cookie whose value pages send back; empty if
            nobody can sign in with a browser.
        login: The path that starts a sign-in; empty without a provider.
    """

    authenticator: Authenticators
    gate: Gate
    routers: tuple[APIRouter, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict, repr=False)
    grants: CurrentGrants = field(default_factory=lambda: CurrentGrants(GrantTable()))
    csrf_cookie: str = ""
    login: str = ""
    _fetch: HttpFetch | None = field(default=None, repr=False)

    def console(self) -> Console | None:
        """Return the web console; None if nobody can sign in with a browser."""
        return Console(self.login, self.csrf_cookie) if self.csrf_cookie else None

    async def aclose(self) -> None:
        """Close open connections when the server stops."""
        if self._fetch is not None:
            await self._fetch.aclose()


def authentication(
    settings: Settings, registry: Registry, clock: Clock, door: PublicAddress
) -> Authentication:
    """Return the entrance of a server."""
    if settings.oidc is not None:
        return _with_provider(settings, settings.oidc, registry, clock, door)
    jar = CookieJar(settings.public_url or door.origin)
    grants = CurrentGrants(grant_table(settings))
    tokens = ApiTokens(registry, jar.session, grants)
    if not settings.is_local:
        return Authentication(
            Authenticators([tokens], jar.session), _gate(settings, door), grants=grants
        )
    named = {owner_name(one): own for one, own in settings.local_people.items()}
    people = named or {door.user: LOCAL_GRANTS}
    # Sessions opened under other settings are invalid, as with a provider.
    via = f"one-time link ({digest(encode(_plain(people)))[:8]})"
    sessions = Sessions(registry, clock, settings.sessions, jar, via)
    links = OneTimeLinks(clock)
    return Authentication(
        Authenticators([tokens, sessions], jar.session),
        _gate(settings, door),
        (routes.with_links(links, sessions), routes.leaving(sessions)),
        {
            name: links.make(Identity(name, grants, via=via), jar.origin)
            for name, grants in people.items()
        },
        grants,
        jar.csrf,
    )


def _with_provider(
    settings: Settings,
    oidc: Oidc,
    registry: Registry,
    clock: Clock,
    door: PublicAddress,
) -> Authentication:
    if settings.public_url is None:
        raise UsageError(
            Problem(
                Code.MISSING_KEY,
                "`oidc` needs `public_url`: the provider redirects there",
                help="write  public_url: https://NAME",
            )
        )
    jar = CookieJar(settings.public_url)
    secret = read_secret(oidc.client_secret_file)
    fetch = HttpFetch(oidc.issuer)
    provider = Provider(oidc.issuer, fetch)
    grants = CurrentGrants(grant_table(settings))
    via = f"sign-in at {oidc.issuer} ({_version_of(oidc)})"
    sessions = Sessions(registry, clock, settings.sessions, jar, via, grants.of_session)
    sign_in = SignIn(oidc, secret, provider, fetch, clock, origin=jar.origin)
    known: list[Authenticator] = [sessions]
    if settings.api_tokens:
        known.append(ApiTokens(registry, jar.session, grants))
    if oidc.programs is not None:
        known.append(
            ProgramTokens(
                provider,
                oidc.programs,
                grants,
                clock,
                oidc.leeway_s,
                cookie=jar.session,
            )
        )
    return Authentication(
        Authenticators(known, jar.session),
        _gate(settings, door),
        (
            routes.with_provider(sign_in, grants, sessions, jar, registry),
            routes.leaving(sessions),
        ),
        grants=grants,
        csrf_cookie=jar.csrf,
        login=LOGIN_PATH,
        _fetch=fetch,
    )


def _gate(settings: Settings, door: PublicAddress) -> Gate:
    hosts = set(settings.allowed_hosts)
    if settings.public_url is not None:
        hosts.add(urlsplit(settings.public_url).netloc)
    # The loopback names, used by health checks, are never public names.
    names = ("127.0.0.1", "[::1]", "localhost")
    hosts |= {f"{name}:{door.port}" for name in names}
    hosts |= set(names) if door.port == 80 else set()
    return Gate(
        frozenset(hosts),
        settings.trusted_proxies,
        is_https=(settings.public_url or "").startswith("https://"),
        is_local=settings.is_local,
    )


def _version_of(oidc: Oidc) -> str:
    """Return a short digest of what makes names and groups of a sign-in.

    Sessions opened under other settings are invalid: the same name may be another
    person's.
    """
    claims = oidc.claims
    payload: list[Plain] = [claims.name, claims.groups, claims.fold_case]
    return digest(encode(payload))[:8]


def _plain(grants: GrantsByName) -> Plain:
    return {
        name: {role.value: sorted(sets) for role, sets in given.items()}
        for name, given in grants.items()
    }
