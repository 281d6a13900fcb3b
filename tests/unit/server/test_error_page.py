"""The `type` of an answer leads to a page of the server itself, whoever asks."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from samples.small import POLICY
from starlette.testclient import TestClient

import modicum as mo
from modicum.core.errors import Code
from modicum.server.app import build
from modicum.server.auth.setup import PublicAddress
from modicum.server.factory import make_parts
from modicum.server.settings.model import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "policy.yaml").write_text(POLICY)
    policy = tmp_path / "policy.yaml"
    mo.open(tmp_path / "ledger.db", policy=policy, actor="olga").init()
    return Settings(ledger=str(tmp_path / "ledger.db"), api_tokens=True)


def test_a_type_leads_to_its_code(settings: Settings) -> None:
    parts = make_parts(settings, PublicAddress("127.0.0.1", 8080, "me"))
    try:
        with TestClient(build(parts), base_url="http://127.0.0.1:8080") as client:
            path, _, code = client.get("/api/v1/me").json()["type"].partition("#")
            page = client.get(path)
    finally:
        asyncio.run(parts.close())
    assert page.status_code == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert code == "MOD831"
    assert '<dt id="MOD831">MOD831</dt><dd>not recognized</dd>' in page.text
    assert re.findall('<dt id="(.*?)">', page.text) == [one.value for one in Code]
    assert not re.search("<(script|style|link|img|form)", page.text)
