"""Settings in the console: rights, tokens that are shown once, and the doctor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from samples.served import Served, served
from samples.small import POLICY

from modicum.api.permissions.actions import ALLOWED, IN_WORDS, Action, Role

HOSTILE = "<script>alert(1)</script>"
TOKEN = re.compile(r"mdc_[a-z2-7]{10}_[A-Za-z0-9_-]{43}")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with served(
        tmp_path / "ledger.db", policy=tmp_path / "policy.yaml", console=True
    ) as found:
        yield found


def test_it_shows_what_the_visitor_and_each_role_may_do(server: Served) -> None:
    page = server.page("ann", "/settings").text
    own, _, table = page.partition('id="permissions"')
    for one in Action:
        may = one in ALLOWED[Role.ANALYST]
        words = IN_WORDS[one].replace("their own", "your own")
        assert (f">{words}<" in own) is may, one
        row = table.split(f'<th scope="row">{IN_WORDS[one]}', 1)[1].split("</tr>")[0]
        assert row.count("✓") == sum(one in each for each in ALLOWED.values())
    assert "for visits" in own
    assert '<a href="/ledger/remark">' in server.page("dara", "/settings").text


def test_a_token_is_shown_once_and_works_until_it_is_revoked(server: Served) -> None:
    sent = {"name": HOSTILE, "days": "7", "grant-analyst": "visits, labs"}
    refused = server.fill("ann", "/settings/tokens", **sent)
    assert refused.status_code == 403
    assert 'value="visits, labs"' in refused.text
    assert HOSTILE not in refused.text
    assert not TOKEN.search(refused.text)
    made = server.fill("ann", "/settings/tokens", **{**sent, "grant-analyst": "visits"})
    assert made.status_code == 200
    assert made.headers["cache-control"] == "no-store"
    (text,) = set(TOKEN.findall(made.text))
    assert HOSTILE not in made.text
    assert "visits, labs" not in made.text
    later = server.page("ann", "/settings").text
    assert text not in later
    (token,) = server.get("ann", "/tokens").json()["tokens"]
    assert token["grants"] == {"analyst": ["visits"]}
    assert token["id"] in later
    assert token["id"] not in server.page("lee", "/settings").text
    path = f"/settings/tokens/{token['id']}/revoke"
    assert server.fill("lee", path).status_code == 404
    done = server.fill("ann", path)
    assert done.headers["location"] == "/settings"
    (token,) = server.get("ann", "/tokens").json()["tokens"]
    assert token["status"] == "revoked"
    assert path not in server.page("ann", "/settings").text


def test_an_admin_makes_tokens_for_programs(server: Served) -> None:
    assert "A token for a program" not in server.page("ann", "/settings").text
    assert "A token for a program" in server.page("root", "/settings").text
    sent = {"service": "yes", "actor": "report", "days": "30"}
    # A program has no roles that nobody named.
    assert server.fill("root", "/settings/tokens", **sent).status_code == 422
    sent["grant-analyst"] = "*"
    refused = server.fill("ann", "/settings/tokens", **sent)
    assert refused.status_code == 403
    made = server.fill("root", "/settings/tokens", **sent)
    assert TOKEN.search(made.text)
    (token,) = server.get("root", "/tokens").json()["tokens"]
    assert token["actor"] == "service:report"
    assert token["kind"] == "service"
    sent["days"] = "<many>"
    refused = server.fill("root", "/settings/tokens", **sent)
    assert refused.status_code == 422
    assert 'value="&lt;many&gt;"' in refused.text


def test_the_doctor_shows_facts_to_those_who_watch(server: Served) -> None:
    ledger = str(server.parts.decider.log().name)
    for who, sees in (("olga", True), ("root", True), ("ann", False), ("dara", False)):
        page = server.page(who, "/settings").text
        assert ("Check the server" in page) is sees
        page = server.page(who, "/settings?doctor=run").text
        assert ("falling times 0" in page) is sees
        assert ledger not in page
        answer = server.get(who, "/doctor")
        assert answer.status_code == (200 if sees else 403)
        if sees:
            found = answer.json()
            assert ledger not in answer.text
            checks = {one["check"]: one["facts"] for one in found["checks"]}
            assert checks["entries"]["entries"] == 1
            assert {"python", "chain", "policy"} <= checks.keys()
            assert found["failed"] == 0


def test_the_past_has_no_forms(server: Served) -> None:
    shown = server.page("olga", "/settings?as_of=1").text
    assert "<form" not in shown.split("<main")[1]
