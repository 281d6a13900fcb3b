"""A server that tells who asks and nothing else, with any entrance before it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from joserfc import jwt
from joserfc.jwk import ECKey, Key, RSAKey
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.testclient import TestClient

from modicum.core.errors import ModicumError
from modicum.core.yaml_reader import read_document
from modicum.server.auth.authentication import Recognizing
from modicum.server.auth.middleware import AuthMiddleware
from modicum.server.auth.setup import Authentication
from modicum.server.problems import problem_response
from modicum.server.settings.model import Settings
from modicum.server.settings.reader import read_settings

PUBLIC = "https://privacy.example.org"
AUDIENCE = f"{PUBLIC}/api"
PROXY = "10.1.2.3"
#: What a proxy that ends TLS adds.
BY_PROXY = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"}

#: Stands in secrets of tests, and must stand nowhere else.
CANARY = "canary"

WITH_OIDC = """
modicum: server/v1
ledger: ledger.db
public_url: https://privacy.example.org
trusted_proxies: [10.1.2.0/24]
api_tokens: true
oidc:
  issuer: ISSUER
  client_id: modicum
  client_secret_file: secret
  scopes: [openid, email, groups]
  programs:
    audience: https://privacy.example.org/api
grants:
  privacy-team: {privacy-officer: all}
  labs: {analyst: [labs]}
  auditors: {auditor: all}
people:
  ann@example.org: {analyst: [visits]}
programs:
  nightly-etl: {platform-engineer: all}
"""


def settings_of(
    text: str, folder: Path, issuer: str = "https://login.example.org"
) -> Settings:
    """Return the settings of a text; beside it lies the secret that it names."""
    secret = folder / "secret"
    secret.write_text("canary-client-secret\n")
    secret.chmod(0o600)
    data = text.replace("ISSUER", issuer).encode()
    return read_settings(read_document(data, "server.yaml"), folder)


def app_behind(entrance: Authentication) -> FastAPI:
    """Return a server behind an entrance."""
    app = FastAPI()
    recognizing = Recognizing([entrance.authenticator])
    for router in entrance.routers:
        app.include_router(router)

    @app.api_route("/who", methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
    async def who(request: Request) -> Response:
        found = await recognizing.identify(request)
        return JSONResponse(
            {
                "name": found.name,
                "roles": {r.value: sorted(s) for r, s in found.grants.items()},
                "is_service": found.is_service,
                "via": found.via,
                "client": request.client.host if request.client else None,
                "scheme": request.url.scheme,
                "headers": sorted(set(request.headers)),
            }
        )

    @app.exception_handler(ModicumError)
    async def mistake(_: Request, error: Exception) -> Response:
        assert isinstance(error, ModicumError)
        return problem_response(error)

    app.add_middleware(AuthMiddleware, gate=entrance.gate, refuse=problem_response)
    return app


def browser(app: FastAPI) -> TestClient:
    """Return a browser that reaches a server by https, through its proxy."""
    return TestClient(
        app,
        base_url=PUBLIC,
        headers=BY_PROXY,
        client=(PROXY, 40000),
        follow_redirects=False,
    )


def neighbor(app: FastAPI, origin: str = "http://127.0.0.1:8642") -> TestClient:
    """Return a browser on the server's own machine."""
    return TestClient(
        app, base_url=origin, client=("127.0.0.1", 40000), follow_redirects=False
    )


class FakeProvider:
    """An OpenID provider without a network: keys, answers, and what was asked.

    Args:
        issuer: Its issuer.
    """

    def __init__(self, issuer: str = "https://login.example.org") -> None:
        self.issuer = issuer
        self.keys: list[Key] = [RSAKey.generate_key(2048, {"kid": "one"})]
        self.asked: list[str] = []
        self.metadata: dict[str, Any] = {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/auth",
            "token_endpoint": f"{issuer}/token",
            "jwks_uri": f"{issuer}/jwks",
            "authorization_response_iss_parameter_supported": True,
        }
        self.forms: list[Mapping[str, str]] = []
        self.id_token = ""

    async def __call__(
        self,
        url: str,
        form: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        self.asked.append(url.removeprefix(self.issuer))
        if url.endswith("/.well-known/openid-configuration"):
            return 200, self.metadata
        if url.endswith("/jwks"):
            return 200, {"keys": [key.as_dict(private=False) for key in self.keys]}
        assert form is not None
        assert auth == ("modicum", "canary-client-secret")
        self.forms.append(form)
        return 200, {"id_token": self.id_token, "access_token": "opaque"}

    def signed(
        self,
        claims: Mapping[str, object],
        header: Mapping[str, object] | None = None,
        key: Key | None = None,
    ) -> str:
        """Return a token that this provider signed."""
        used = key or self.keys[0]
        head = {"alg": "ES256" if isinstance(used, ECKey) else "RS256"}
        own = {"kid": used.kid, **head, **(header or {})}
        kept = {name: value for name, value in own.items() if value is not None}
        return jwt.encode(kept, dict(claims), used, algorithms=[str(kept["alg"])])


def plain(value: object) -> str:
    """Return a value in the letters that a leak would be searched in."""
    return json.dumps(value, default=repr)
