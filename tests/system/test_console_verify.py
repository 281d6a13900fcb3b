"""The chain is verified in the browser: what was altered on the way is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from samples.browser import Site

if TYPE_CHECKING:
    from playwright.sync_api import FilePayload, Page, Route

Json = dict[str, Any]
ZEROS = "0" * 64


def verified(page: Page, noted: str = "", claims: tuple[Json, ...] = ()) -> str:
    """Verify the ledger in the browser, and return what is shown in the end."""
    page.goto("/ledger")
    page.get_by_text("Verify the ledger").click()
    page.get_by_label("Head that you noted").fill(noted)
    files: list[FilePayload] = [
        {
            "name": f"{number}.json",
            "mimeType": "application/json",
            "buffer": json.dumps(one).encode(),
        }
        for number, one in enumerate(claims)
    ]
    page.get_by_label("Checkpoint or receipt files").set_input_files(files)
    page.get_by_role("button", name="Verify here").click()
    result = page.locator("[data-result]:is(.done, .problem, .warning)")
    result.wait_for()
    kind = str(result.get_attribute("class"))
    return f"{kind}: {result.inner_text()}"


def test_a_chain_that_holds_is_compared_with_what_was_noted(acme: Site) -> None:
    with acme.as_("audra") as audra:
        page = audra.page
        entries = page.request.get("/api/v1/ledger/entries").json()["entries"]
        first, last = entries[0], entries[-1]
        shown = verified(page)
        assert shown.startswith(f"done: ✓ {last['seq']} of {last['seq']} entries")
        assert f"{last['hash']} equals the head shown" in shown
        noted = entries[4]
        head = f"5:{noted['hash'].upper()}"
        claim = {"ledger": first["hash"], "seq": 5, "head": noted["hash"]}
        assert "2 noted heads match" in verified(page, head, ({"claim": claim},))
        assert f"Entry 5 has the hash {noted['hash']}, but you noted {ZEROS}" in (
            verified(page, f"5:{ZEROS}")
        )
        assert "Entry 9999 is missing" in verified(page, f"9999:{ZEROS}")
        other = {"claim": {**claim, "ledger": ZEROS}}
        assert "problem: ■ This is another ledger" in verified(page, "", (other,))
        assert "warning: Not verified: the file 0.json" in verified(page, "", ({},))
        assert "warning: Not verified: “x” is no number" in verified(page, "x")


def contents(proof: Json) -> None:
    """Change a letter of an entry."""
    link = proof["links"][6]
    link["payload"] = link["payload"].replace("a", "b", 1)


def gap(proof: Json) -> None:
    """Leave an entry out."""
    del proof["links"][6]


def end(proof: Json) -> None:
    """Leave the last entry out, and claim a head before it."""
    proof["links"].pop()
    last = proof["links"][-1]
    proof["ledger"] = {"seq": last["seq"], "head": last["hash"]}


def stored_hash(proof: Json) -> None:
    """Change a stored hash."""
    proof["links"][6]["hash"] = ZEROS


def checkpoint(proof: Json) -> None:
    """Publish a checkpoint of another history."""
    claim = {"ledger": proof["first"], "seq": 7, "head": ZEROS}
    proof["checkpoints"] = [{"claim": claim}]


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (contents, "Entry 7 does not hold: its contents"),
        (gap, "Entry 7 is missing"),
        (end, "is missing: the chain ends"),
        (stored_hash, "Entry 7 does not hold"),
        (checkpoint, f"but a checkpoint claims {ZEROS}"),
    ],
)
def test_what_was_altered_is_named(
    acme: Site, alter: Callable[[Json], None], message: str
) -> None:
    def answer(route: Route) -> None:
        answered = route.fetch()
        proof = answered.json()
        alter(proof)
        route.fulfill(response=answered, json=proof)

    with acme.as_("audra") as audra:
        audra.page.route("**/api/v1/ledger/proof?*", answer)
        shown = verified(audra.page)
        assert shown.startswith("problem: ■")
        assert message in shown


def test_an_entry_that_was_sealed_anew_does_not_follow(acme: Site) -> None:
    """A forger who recomputes one hash has not recomputed those after it."""

    def answer(route: Route) -> None:
        answered = route.fetch()
        proof = answered.json()
        contents(proof)
        link = proof["links"][6]
        link["hash"] = sha256(link["payload"].encode()).hexdigest()
        route.fulfill(response=answered, json=proof)

    with acme.as_("audra") as audra:
        audra.page.route("**/api/v1/ledger/proof?*", answer)
        assert "Entry 8 does not hold: it does not name" in verified(audra.page)


def test_without_a_secure_context_the_page_says_so(acme: Site) -> None:
    with acme.as_("audra") as audra:
        script = "Object.defineProperty(window, 'isSecureContext', {value: false})"
        audra.page.add_init_script(script)
        assert "only on pages of https or of localhost" in verified(audra.page)


def test_the_server_verifies_with_progress_or_without_scripts(acme: Site) -> None:
    for scripts in (True, False):
        with acme.as_("audra", java_script_enabled=scripts) as audra:
            page = audra.page
            page.goto("/ledger")
            page.get_by_text("Verify the ledger").click()
            page.get_by_role("button", name="Verify on the server").click()
            page.get_by_text("The ledger holds").wait_for()
            assert page.url.startswith(f"{acme.url}/jobs/")


def test_a_token_is_made_by_a_form(acme: Site) -> None:
    with acme.as_("amir") as amir:
        page = amir.page
        page.goto("/settings")
        page.get_by_label("Purpose").fill("my notebook")
        page.get_by_role("button", name="Create the token").click()
        token = page.locator(".secret").inner_text()
        headers = {"Authorization": f"Bearer {token}"}
        with acme.as_("") as program:
            answer = program.page.request.get("/api/v1/me", headers=headers)
            assert answer.json()["name"] == "amir"
        page.goto("/settings")
        page.get_by_text("my notebook").wait_for()
        assert token not in page.content()
