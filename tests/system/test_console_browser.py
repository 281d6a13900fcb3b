"""The browser of these tests sees what people see, and notices what goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import APIRouter
from playwright.sync_api import Browser
from samples.browser import Site, axe, missing, served_site
from samples.small import NOON
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    PlainTextResponse,
    Response,
)

_PAGE = """<!doctype html>
<html lang="en"><head><title>Trial</title>
<meta name="htmx-config" content='{"includeIndicatorStyles":false,"allowEval":false}'>
<link rel="icon" href="/trial/icon.svg">
<script src="/trial/htmx.min.js" defer></script>
<script type="module" src="/trial/SCRIPT"></script></head>
<body><main><h1>Trial</h1>BODY</main></body></html>
"""
_EDITOR = """
import * as cm from "/trial/codemirror.min.js";
const problem = { from: 0, to: 3, severity: "error", message: "no such key" };
const warning = { from: 5, to: 6, severity: "warning", message: "too short" };
window.view = new cm.EditorView({
  doc: "a: 1\\nb:\\n  - 2 # two\\n",
  parent: document.getElementById("editor").attachShadow({ mode: "open" }),
  extensions: [
    cm.basicSetup, cm.yaml(), cm.noImages, cm.lintGutter(),
    cm.linter(() => [problem, warning], { delay: 0 }),
    cm.EditorView.contentAttributes.of({ "aria-label": "Policy" }),
  ],
});
"""
#: Scripts that do wrong, and what is noticed of each.
_BROKEN = {
    "error.js": ("console.error('it went wrong')", "console: it went wrong"),
    "warning.js": ("console.warn('it may go wrong')", "console: it may go wrong"),
    "throw.js": ("throw new Error('nobody catches it')", "script: .*nobody catches"),
    "style.js": (
        "const one = document.createElement('style');"
        " one.textContent = 'b { color: red }'; document.body.append(one)",
        "inline style violates .*Content Security Policy",
    ),
    "attribute.js": (
        "document.body.setAttribute('style', 'color: red')",
        "inline style violates .*Content Security Policy",
    ),
    "eval.js": ("eval('1')", "script: .*Content Security Policy"),
    "fetch.js": (
        "fetch('https://elsewhere.example/').catch(() => 0)",
        "elsewhere.example.* violates .*Content Security Policy",
    ),
    "link.js": ("location = 'http://elsewhere.example/'", "to another host: http"),
    "gone.js": ("fetch('/trial/nothing')", "status of 404 .*/trial/nothing"),
}
_STATIC = Path(__file__).parents[2] / "src/modicum/console/static"


def trial() -> APIRouter:
    """Return pages that do right and wrong."""
    router = APIRouter()

    @router.get("/trial/{name}")
    def answer(name: str, script: str = "", body: str = "") -> Response:
        if name == "page":
            page = _PAGE.replace("SCRIPT", script).replace("BODY", body)
            return HTMLResponse(page)
        if name == "part":
            return HTMLResponse("<p>new</p>")
        if name == "icon.svg":
            return FileResponse(_STATIC / name)
        if name == "nothing":
            return PlainTextResponse("", 404)
        if (_STATIC / "vendor" / name).is_file():
            return FileResponse(_STATIC / "vendor" / name)
        text = {"editor.js": _EDITOR, "still.js": ""}.get(name)
        text = _BROKEN[name][0] if text is None else text
        return Response(text, media_type="text/javascript")

    return router


@pytest.fixture
def acme(made_site: Path, tmp_path: Path, chromium: Browser) -> Iterator[Site]:
    with served_site(made_site, tmp_path / "acme", chromium, trial()) as served:
        yield served


def path(script: str = "still.js", body: str = "") -> str:
    return f"/trial/page?script={script}&body={body}"


def test_each_person_is_who_they_are(acme: Site) -> None:
    with acme.as_("olga") as olga, acme.as_("amir") as amir:
        for visit in (olga, amir, olga):
            answer = visit.page.request.get("/api/v1/me")
            assert answer.json()["name"] == visit.who
    with acme.as_("olga") as again, acme.as_("") as nobody:
        assert again.page.request.get("/api/v1/me").ok
        assert nobody.page.request.get("/api/v1/me").status == 401


def test_the_time_is_what_the_test_says(acme: Site) -> None:
    with acme.as_("audra") as audra:
        entry = audra.page.request.get("/api/v1/ledger/entries").json()["entries"][-1]
    assert entry["at"] == NOON


def test_what_goes_wrong_is_noticed(acme: Site) -> None:
    with acme.as_("olga") as olga:
        for script, (_, noticed) in _BROKEN.items():
            with pytest.raises(AssertionError):
                olga.expect(noticed, patience_ms=40)
            olga.page.goto(path(script))
            olga.expect(noticed)
            olga.page.goto(path())
            olga.noticed.clear()  # Some are told twice.


def test_what_is_noticed_fails_the_test(acme: Site) -> None:
    def visit() -> None:
        with acme.as_("olga") as olga:
            olga.page.goto(path("error.js"))
            olga.page.get_by_role("heading").wait_for()

    with pytest.raises(AssertionError, match="it went wrong"):
        visit()


def test_htmx_works_under_the_policy(acme: Site) -> None:
    body = (
        "<button hx-get='/trial/part' hx-target='%23out'>Go</button><div id=out></div>"
    )
    with acme.as_("olga") as olga:
        olga.page.goto(path(body=body))
        olga.page.get_by_role("button", name="Go").click()
        olga.page.get_by_text("new", exact=True).wait_for()


def test_the_editor_works_under_the_policy(acme: Site) -> None:
    with acme.as_("olga") as olga:
        page = olga.page
        page.goto(path("editor.js", "<div id=editor></div>"))
        page.get_by_role("textbox", name="Policy").click()
        page.keyboard.press("Control+End")
        page.keyboard.type("c: 3")
        assert page.evaluate("view.state.doc.toString()").endswith("\nc: 3")
        page.locator(".cm-lint-marker-error").wait_for()
        page.locator(".cm-lint-marker-warning").hover()
        page.get_by_text("too short").wait_for()
        assert axe(page) == []
        page.keyboard.press("Control+f")
        page.get_by_role("textbox", name="Find").wait_for()


def test_axe_finds_what_some_people_cannot_use(acme: Site) -> None:
    with acme.as_("olga") as olga:
        olga.page.goto(path(body="<label>Name <input></label>"))
        assert axe(olga.page) == []
        olga.page.goto(path(body="<p><input></p>"))
        (found,) = axe(olga.page)
    assert "label (critical)" in found


def test_tab_reaches_what_can_be_reached(acme: Site) -> None:
    body = "<a href='/a'>One</a><a href='/b'>Two</a><button tabindex=-1>Three</button>"
    with acme.as_("olga") as olga:
        olga.page.goto(path(body=body))
        assert olga.tab_to("link", "Two").get_attribute("href") == "/b"
        assert olga.tab_to("link", "One", back=True).get_attribute("href") == "/a"
        with pytest.raises(AssertionError, match="Tab reached no button 'Three'"):
            olga.tab_to("button", "Three", at_most=5)


def test_other_tests_of_the_process_have_event_loops(own_chromium: object) -> None:
    assert own_chromium is not None
    assert asyncio.run(asyncio.sleep(0, "a loop")) == "a loop"


def test_a_machine_without_a_browser_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing() == ""
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert "chromium" in missing()
