"""Audit in the console: the statement, the bundle, checkpoints and receipts."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from samples.served import Served, served
from samples.small import POLICY, counts

from modicum.reports.style import STYLE
from modicum.server.resources import Equipment
from modicum.storage.proofs.signing_keys import make_key

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit")
    (folder / "policy.yaml").write_text(POLICY)
    return folder / "ledger.db"


@pytest.fixture(scope="module")
def server(ledger: Path) -> Iterator[Served]:
    folder = ledger.parent
    own = Equipment(signing_key=make_key(folder / "key.pem"))
    with served(ledger, policy=folder / "policy.yaml", own=own, console=True) as found:
        for name, data_set in (("r-1", "visits"), ("secret", "labs")):
            one = counts(name, rho="0.001", dataset=data_set)
            assert found.post("amir", "/releases", one).json()["decision"] == "allow"
        yield found


def test_who_may_export_is_shown_the_downloads(server: Served) -> None:
    page = server.page("audra", "/audit").text
    for address in ("/api/v1/audit/bundles", "/api/v1/audit/statement"):
        assert f'href="{address}"' in page
        assert server.client.get(address, headers={"X-Who": "audra"}).is_success
        assert f'href="{address}"' not in server.page("ann", "/audit").text
    assert server.get("audra", "/ledger/entries/1").json()["hash"] in page
    assert "do not allow the export" in server.page("ann", "/audit").text
    assert server.page("root", "/audit").status_code == 403


def test_a_statement_is_one_page_with_its_own_style(server: Served) -> None:
    remark = {"remark": HOSTILE}
    assert server.post("olga", "/ledger/remarks", remark).status_code == 200
    answer = server.get("audra", "/audit/statement")
    assert answer.headers["content-type"].startswith("text/html")
    assert "r-1" in answer.text
    assert str(server.parts.decider.log().name) not in answer.text
    assert HOSTILE not in answer.text
    policy = answer.headers["content-security-policy"]
    style = re.search("<style>(.*?)</style>", answer.text, re.DOTALL)
    assert style is not None
    assert style[1] == STYLE
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert ' style="' not in answer.text
    tag = {"If-None-Match": answer.headers["etag"]}
    headers = {"X-Who": "audra", **tag}
    again = server.client.get("/api/v1/audit/statement", headers=headers)
    assert again.status_code == 304
    assert server.get("audra", "/audit/statement").content == answer.content
    assert server.post("olga", "/ledger/remarks", {"remark": "later"}).is_success
    later = server.client.get("/api/v1/audit/statement", headers=headers)
    assert later.status_code == 200
    assert "later" in later.text
    assert server.get("ann", "/audit/statement").status_code == 403


def test_a_checkpoint_is_signed_and_downloaded(server: Served) -> None:
    page = server.fill("audra", "/audit/checkpoint")
    assert page.status_code == 200
    link = re.search(r'href="(/api/v1/[^"]+)" download="checkpoint-(\d+)', page.text)
    assert link is not None
    found = server.client.get(link[1], headers={"X-Who": "audra"}).json()
    head = server.get("audra", "/ledger/head").json()
    assert found["claim"]["head"] == head["head"]
    assert int(link[2]) == head["seq"]
    assert server.fill("ann", "/audit/checkpoint").status_code == 403


def test_a_receipt_is_for_who_may_see_the_release(server: Served) -> None:
    page = server.fill("ann", "/audit/receipt", release=" r-1 ")
    assert page.status_code == 200
    assert "r-1: allowed in entry" in page.text
    link = re.search(r'href="(/api/v1/[^"]+)" download="receipt', page.text)
    assert link is not None
    found = server.client.get(link[1], headers={"X-Who": "ann"}).json()
    assert found["claim"]["release"] == "r-1"
    for name in ("secret", HOSTILE):
        refused = server.fill("ann", "/audit/receipt", release=name)
        assert refused.status_code == 404
        assert HOSTILE not in refused.text
        assert 'class="problem"' in refused.text


def test_without_a_key_the_page_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with served(
        tmp_path / "ledger.db", policy=tmp_path / "policy.yaml", console=True
    ) as server:
        refused = server.fill("audra", "/audit/checkpoint")
        assert refused.status_code >= 400
        assert "signing_key_file" in refused.text
        assert "Published checkpoints" in refused.text
        page = server.page("audra", "/audit").text
        assert "No checkpoint is stored" in page
