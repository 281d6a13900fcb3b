"""A page is a call of the REST API by its visitor, and nothing more."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from markupsafe import escape
from samples.served import HEADER, Served, served
from samples.small import POLICY
from starlette.requests import Request

from modicum.api import operations
from modicum.api.operations import Operation
from modicum.api.schema.approval import Reason
from modicum.console import relay as module
from modicum.console.pages import load_pages
from modicum.console.registry import FORMS
from modicum.console.relay import FIELDS_MAX, Relay, fields_of
from modicum.core.errors import InvariantError

load_pages()

TEMPLATES = Path(module.__file__).parent / "templates"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("relay")
    (folder / "policy.yaml").write_text(POLICY)
    with served(
        folder / "ledger.db", policy=folder / "policy.yaml", console=True
    ) as found:
        yield found


def release(name: str) -> dict[str, Any]:
    """Return a release that costs next to nothing."""
    return {
        "release": name,
        "audience": "internal",
        "mechanisms": [
            {
                "name": "counts",
                "mechanism": "gaussian",
                "attributes": ["age"],
                "sensitivity": {"user": {"l2": 1}},
                "sigma": 5000,
            }
        ],
    }


def reader(**query: str) -> Relay:
    """Return a relay of a page that is read."""
    text = "&".join(f"{name}={one}" for name, one in query.items())
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "headers": [],
        "query_string": text.encode(),
    }
    return Relay(Request(scope))


@pytest.mark.parametrize(
    "operation",
    [
        one
        for one in vars(operations).values()
        if isinstance(one, Operation) and one.method != "GET"
    ],
    ids=lambda one: f"{one.method} {one.path}",
)
def test_a_page_that_is_read_changes_nothing(operation: Operation[Any]) -> None:
    ids = dict.fromkeys(operation.holes, "x")
    with pytest.raises(InvariantError, match="calls reads only"):
        asyncio.run(reader().call(operation, Reason(reason="x"), **ids))


def test_the_visitor_is_limited_and_answered_as_a_client_is(server: Served) -> None:
    answered = server.page("amir", "/requests/none")
    assert answered.status_code == 404
    told = server.get("amir", "/requests/none").json()
    assert told["code"] in answered.text
    assert told["detail"].replace("`", "") in answered.text.replace("`", "")


def test_an_id_stays_one_part_of_the_path(server: Served) -> None:
    for name in ("a/receipt", "a b%2Fc", "ä?x=1", "..", "a/../b", "a:start"):
        if server.post("amir", "/releases", release(name)).status_code != 200:
            continue
        shown = server.page("amir", f"/releases/{quote(name, safe='')}")
        assert shown.status_code == 200, name
        assert f"<h1>{name}" in shown.text or name in shown.text


def test_an_address_that_no_operation_has_is_no_page(server: Served) -> None:
    assert server.page("olga", "/risk?job=none").status_code == 200
    assert server.page("olga", "/risk?job=a%2Fb").status_code == 404


def test_a_form_counts_once(server: Served) -> None:
    assert server.post("amir", "/releases", release("once")).status_code == 200
    first = server.fill("amir", "/releases/once/start", key="same")
    head = server.parts.decider.glance(lambda view: view.state().head)
    again = server.fill("amir", "/releases/once/start", key="same")
    assert (first.status_code, again.status_code) == (303, 303)
    assert server.parts.decider.glance(lambda view: view.state().head) == head


def test_a_form_with_too_many_fields_is_refused_on_its_page(server: Served) -> None:
    many = {f"field-{number}": "" for number in range(FIELDS_MAX)}
    refused = server.fill("olga", "/rounds/open", **many)
    assert refused.status_code == 413
    assert refused.headers["content-type"].startswith("text/html")
    assert f"a form has at most {FIELDS_MAX} fields" in refused.text
    assert server.get("olga", "/rounds").json()["rounds"] == []


def test_the_past_is_shown_as_it_was_and_cannot_be_changed(server: Served) -> None:
    now = server.page("olga", "/")
    then = server.page("olga", "/?as_of=1")
    assert "shows the ledger as of" in then.text
    assert "shows the ledger as of" not in now.text
    assert "<p>0 releases counted" in then.text
    assert not re.findall('<form (?!class="who")[^>]*method="post"', then.text)
    # Links stay there.
    assert 'href="/rules?as_of=1"' in then.text


def test_no_link_makes_people_believe_that_something_was_done(server: Served) -> None:
    def shown(path: str, **headers: str) -> httpx2.Response:
        return httpx2.get(server.url + path, headers={HEADER: "olga", **headers})

    assert "is recorded" not in shown("/requests?done=approved").text
    once = shown("/requests", cookie="modicum-done=approved")
    assert "Your approval is recorded." in once.text
    assert once.headers["set-cookie"].startswith('modicum-done=""; ')
    assert "is recorded" not in shown("/requests").text


@pytest.mark.parametrize("path", FORMS)
def test_a_form_of_strangers_is_not_even_read(
    server: Served, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[str]()

    async def noted(request: Request) -> dict[str, str]:
        read.append(request.url.path)
        return await fields_of(request)

    monkeypatch.setattr("modicum.console.router.fields_of", noted)
    sent = re.sub("{[^}]*}", "x", path)
    answered = httpx2.post(server.url + sent, data={"a": "1"})
    assert (answered.status_code, read) == (401, [])
    httpx2.post(server.url + sent, data={"a": "1"}, headers={HEADER: "olga"})
    assert read == [sent]


def test_what_is_only_partly_unlocked_is_said(server: Served) -> None:
    assert "has unlocked" not in server.page("olga", "/").text
    opened = server.post("olga", "/rounds", {"round": "r1", "unlocked": {"user": 0.25}})
    assert opened.status_code == 200
    assert "Round r1 has unlocked only part of some budgets: 25 % per user" in (
        server.page("olga", "/").text
    )
    rule = server.page("olga", "/rules/global%20@standard").text
    assert "has unlocked 25 % of this budget so far" in rule
    assert "sigma of" not in rule


def test_a_form_gives_back_what_was_written(server: Served) -> None:
    text = 'a\tb\xa0c\u200dd <b> "q"'
    page = server.fill("olga", "/policy/edit", text=text, show="check").text
    assert (
        f">\n{escape(text)}</textarea>" in page or f">{escape(text)}</textarea>" in page
    )


def test_files_are_kept_only_by_their_own_digest(server: Served) -> None:
    page = server.page("olga", "/").text
    (address,) = re.findall(r"/static/[0-9a-f]{16}/console.js", page)
    kept = httpx2.get(server.url + address)
    assert (kept.status_code, "immutable" in kept.headers["cache-control"]) == (
        200,
        True,
    )
    other = address.replace(address.split("/")[2], "0" * 16)
    assert httpx2.get(server.url + other).status_code == 404


def test_templates_trust_no_text() -> None:
    for path in TEMPLATES.glob("*.html"):
        text = path.read_text("utf-8")
        assert not re.search(r"\|\s*safe|autoescape|<script(?! (src|type))", text), path
        for shown in re.findall(r'value="{{([^}]*)}}|{{([^}]*)}}</textarea>', text):
            assert "".join(shown).rstrip().endswith("| field"), (path, shown)
        assert not re.search(r"\son[a-z]+=|style=|javascript:", text), path


def test_a_field_with_several_values_has_them_in_lines() -> None:
    body = b"a=1&a=2&b=x%0D%0Ay&c="

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    request = Request({"type": "http", "headers": []}, receive)
    assert asyncio.run(fields_of(request)) == {"a": "1\n2", "b": "x\ny", "c": ""}
