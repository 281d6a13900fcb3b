"""Without JavaScript, every form but the marks of the editor does its work."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect
from samples.browser import PATIENCE_MS, Site, Visit, axe
from samples.escrows import POLICY, ROWS, TABLES, MemoryEquipment, query
from samples.served import HEADER, Served, served

from modicum.api.local.escrow.execution import Tools
from modicum.api.permissions.actions import Role
from modicum.api.permissions.identity import Grants
from modicum.integrations.loader import Adapters
from modicum.policy.compiler import compile_text
from modicum.server.resources import Equipment

PLAIN: dict[str, Any] = {"java_script_enabled": False}
FITS = "mechanisms: [{mechanism: gaussian, attributes: [clinic], sigma: 100,"
FITS += " sensitivity: {patient: {l2: 1}}}]"
REQUESTS = f"""\
- {{release: planned-1, utility: 2, audience: internal, {FITS}}}
- {{release: planned-2, utility: 1, audience: internal, {FITS}}}
"""
DISCLOSED = """\
disclosure: payroll-2018
what: the payroll table, to the auditor
attributes: [employer, salary]
reason: court order
"""
SQL = """\
release: visits-2026-05
audience: internal
query:
  sql: "SELECT clinic, COUNT(*) AS visits FROM visits GROUP BY clinic"
  noise: gaussian
  loss: {patient: {rho: 0.001}}
"""
DECLARED = """\
modicum: tables/v1
tables:
  visits:
    one_per: patient_id
    columns:
      patient_id: {type: text}
      clinic: {type: text, attribute: clinic, values: [north, south]}
"""


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def done(page: Page, text: str) -> None:
    expect(page.locator("p.done[role=status]")).to_contain_text(text)


def shown(page: Page, text: str) -> None:
    expect(page.locator("main")).to_contain_text(text)


def wait_for_job(page: Page) -> None:
    """Look again until the job that a page waits for is over."""
    again = page.get_by_role("link", name="Look again")
    while again.count():
        with page.expect_navigation():  # Between two pages there is no link either.
            again.click()


def test_an_officer_needs_no_script(acme: Site) -> None:
    with acme.as_("olga", **PLAIN) as olga:
        page = olga.page
        page.goto("/requests/visits-by-clinic")
        page.get_by_label("Reason", exact=True).fill("it helps")
        press(page, "Approve")
        done(page, "Your approval is recorded.")
        page.goto("/requests/visits-by-clinic")
        press(page, "Take my approval back")
        done(page, "Your approval is taken back.")
        page.get_by_label("Reason", exact=True).fill("not yet")
        press(page, "Reject")
        done(page, "Your rejection is recorded.")
        page.goto("/ledger/remark")
        page.get_by_label("About").fill("beds-by-month")
        page.get_by_role("textbox", name="Remark").fill("beds of two clinics")
        press(page, "Add the remark")
        done(page, "Your remark is recorded.")
        page.get_by_label("Disclosure, as YAML").fill(DISCLOSED)
        press(page, "Record the disclosure")
        done(page, "The disclosure is recorded.")

        page.goto("/rounds")
        page.get_by_label("Name, such as its week").fill("2026-w18")
        press(page, "Open the round")
        done(page, "The round is open.")
        page.get_by_label("Requests", exact=True).fill(REQUESTS)
        press(page, "Make a plan")
        wait_for_job(page)
        shown(page, "● accepted")
        press(page, "Commit the plan")
        done(page, "The plan is committed.")

        page.goto("/audit")
        page.get_by_label("Release", exact=True).fill("nothing")
        press(page, "Sign a receipt")
        olga.expect("status of 409")
        expect(page.get_by_role("alert")).to_be_visible()


def test_a_policy_is_changed_without_a_script(acme: Site) -> None:
    with acme.as_("olga", **PLAIN) as olga, acme.as_("omar", **PLAIN) as omar:
        page = olga.page
        page.goto("/policy/edit")
        text = page.get_by_label("Text of the policy, as YAML")
        old = text.input_value()
        text.fill(old.replace("budget: 3}", "budget: x}"))
        press(page, "Check")
        shown(page, "1 problem")
        text.fill(old.replace("budget: 3}", "budget: 2.5}"))
        press(page, "Compare")
        shown(page, "▼ tighter")
        press(page, "Show the impact")
        shown(page, "Past releases under this policy")
        page.get_by_label("Reason", exact=True).fill("half less")
        press(page, "Propose for approval")
        done(page, "The policy is proposed.")
        page.goto("/policy")
        table = page.get_by_role("table", name="Proposals that wait")
        table.locator("a").first.click()
        proposal = page.url
        press(page, "Compare with the active policy")
        shown(page, "▼ tighter")
        press(page, "Simulate past releases")
        expect(page.get_by_role("heading", name="Conflicts")).to_be_visible(
            timeout=PATIENCE_MS
        )
        for vote, reason, said in (
            ("Reject", "not yet", "Your rejection is recorded."),
            ("Approve", "now it is", "Your approval is recorded."),
        ):
            page.goto(proposal)
            page.get_by_label("Reason", exact=True).fill(reason)
            press(page, vote)
            done(page, said)
        press(page, "Take my approval back")
        done(page, "Your approval is taken back.")
        page.get_by_label("Reason", exact=True).fill("it is enough")
        press(page, "Approve")
        omar.page.goto(proposal)
        press(omar.page, "Compare with the active policy")
        omar.page.get_by_label("Reason for the activation").fill("agreed")
        for box in omar.page.get_by_role("checkbox").all():
            box.check()
        press(omar.page, "Activate")
        done(omar.page, "The policy is active now.")


def test_an_analyst_needs_no_script(acme: Site) -> None:
    with acme.as_("amir", **PLAIN) as amir:
        page = amir.page
        page.goto("/new-release")
        page.get_by_label("Id", exact=True).fill("beds-2026-06")
        page.get_by_label("audience").select_option("internal")
        page.get_by_label("Kind").select_option("laplace")
        press(page, "Show its parameters")
        page.get_by_role("checkbox", name="diagnosis").check()
        page.get_by_label("sensitivity: l1").fill("1")
        page.get_by_label("scale").fill("1")
        press(page, "Check")
        verdict = page.locator("#verdict")
        expect(verdict).to_contain_text("DENY beds-2026-06")
        expect(page.get_by_role("button", name="Submit")).to_be_disabled()
        press(page, "Edit as YAML")
        expect(page.get_by_label("Release file")).to_have_value(re.compile("laplace"))
        press(page, "Check")
        page.get_by_role("button", name="Use this").first.click()
        press(page, "Check")
        expect(verdict).to_contain_text("ALLOW beds-2026-06")
        press(page, "Submit")
        done(page, "It is allowed, and its loss is reserved.")
        press(page, "Start")
        done(page, "It is started")
        press(page, "Record as published")
        done(page, "It is published.")

        page.goto("/requests/steps-by-age")
        page.get_by_label("Reason for the withdrawal").fill("nobody reads it")
        press(page, "Withdraw the request")
        done(page, "It is withdrawn.")
        page.goto("/releases/beds-by-month")
        page.get_by_label("Reason for the cancellation").fill("no beds")
        press(page, "Cancel the release")
        done(page, "It is canceled")

        page.goto("/new-release?way=sql")
        page.get_by_label("Query file").fill(SQL)
        page.get_by_label("Tables file").fill(DECLARED)
        press(page, "Check")
        expect(verdict).to_contain_text("ALLOW visits-2026-05")
        shown(page, "Cost and accuracy")
        press(page, "Submit")
        done(page, "It is allowed")

        page.goto("/settings")
        form = page.get_by_role("region", name="A token for yourself")
        form.get_by_label("Purpose").fill("nightly")
        form.get_by_label("Days until it expires").fill("365")
        form.get_by_role("button", name="Create the token").click()
        shown(page, "New token: copy it now")
        press(page, "Revoke nightly")
        done(page, "The token is revoked.")
        shown(page, "■ revoked")


def test_what_is_read_needs_no_script(acme: Site) -> None:
    with acme.as_("audra", **PLAIN) as audra:
        page = audra.page
        page.goto("/risk")
        form = page.get_by_role("form", name="Study a profile")
        form.get_by_label("Profile").fill("0,120\n1,80")
        form.get_by_role("button", name="Study").click()
        expect(
            page.get_by_role("table", name="What each epsilon means")
        ).to_be_visible()
        for path, label, choice, button, seen in (
            ("/", "", "", "", "Remaining budget"),
            ("/releases", "Status", "reserved", "Show", "beds-by-month"),
            ("/rules", "Context", "black-box", "Show", "attr:salary @black-box"),
            ("/ledger", "Kind", "approval-given", "Filter", "visits-by-clinic"),
        ):
            page.goto(path)
            if label:
                page.get_by_label(label).select_option(choice)
                page.locator("main").get_by_role(
                    "button", name=button, exact=True
                ).click()
            shown(page, seen)
        page.get_by_text("Verify the ledger", exact=True).click()
        press(page, "Verify on the server")
        expect(page.get_by_text("The ledger holds")).to_be_visible(timeout=PATIENCE_MS)
        page.goto("/releases")
        page.get_by_label("As of").fill("20")
        page.get_by_role("banner").get_by_role("button", name="Show").click()
        shown(page, "It is read-only.")


def test_who_signs_out_is_out(acme: Site) -> None:
    with acme.as_("amir", **PLAIN) as amir:
        page = amir.page
        page.goto("/releases")
        press(page, "Sign out")
        shown(page, "You are not signed in.")
        for path in ("/", "/releases", "/settings"):
            page.goto(path)
            amir.expect("status of 401")
            shown(page, "You are not signed in.")


# --- data in escrow -------------------------------------------------------------------

OF_PEOPLE = frozenset({"people"})
WHO: dict[str, Grants] = {
    "olga": {Role.DATA_STEWARD: OF_PEOPLE},
    "pavel": {Role.DATA_STEWARD: OF_PEOPLE},
    "amir": {Role.ANALYST: OF_PEOPLE},
}


@contextmanager
def visiting(browser: Browser, server: Served, who: str, **more: Any) -> Iterator[Page]:
    """Yield a page of somebody whom a server believes by a header."""
    with browser.new_context(
        base_url=server.url, extra_http_headers={HEADER: who}, **more
    ) as context:
        context.set_default_timeout(PATIENCE_MS)
        visit = Visit(who, context.new_page(), server.url)
        yield visit.page
    assert visit.noticed == []


def agreed(browser: Browser, server: Served, contract: str) -> None:
    """Have both owners approve a contract."""
    for who in ("olga", "pavel"):
        with visiting(browser, server, who, **PLAIN) as page:
            page.goto(f"/escrow/contracts/{contract}")
            page.get_by_label("Reason", exact=True).fill("it is little")
            press(page, "Approve")
            done(page, "Your approval is recorded.")


def test_an_escrow_needs_no_script(tmp_path: Path, chromium: Browser) -> None:
    policy = compile_text(POLICY.encode(), "policy.yaml")
    own = Equipment(escrow=Tools(MemoryEquipment(), Adapters()))
    with served(
        tmp_path / "l.db", policy=policy, people=WHO, own=own, console=True
    ) as server:
        sent = {"table": TABLES, "rows": base64.b64encode(ROWS).decode()}
        sent |= {"owners": {"olga": [], "pavel": []}, "quorum": 2}  # type: ignore[dict-item]
        for rows in (sent, {"table": TABLES, "rows": sent["rows"]}):
            answer = server.post("olga", "/escrow/data/people/versions", rows)
            assert answer.status_code == 200, answer.text
        with visiting(chromium, server, "pavel", **PLAIN) as page:
            page.goto("/escrow/data/people")
            page.get_by_label("Reason for your vote").first.fill("they are right")
            press(page, "Approve")
            done(page, "Your approval is recorded.")
        with visiting(chromium, server, "amir", **PLAIN) as page:
            page.goto("/escrow/propose")
            page.get_by_label("Name of the contract").fill("towns")
            page.get_by_label("Query file").fill(query("by-town"))
            page.get_by_label("Reason").fill("to know")
            press(page, "Request the contract")
            done(page, "The contract is requested.")
            page.get_by_label("Delta, for Gaussian noise").fill("1e-6")
            press(page, "Find epsilon")
            shown(page, "It requests user")
        agreed(chromium, server, "towns")
        with visiting(chromium, server, "amir", **PLAIN) as page:
            page.goto("/escrow/contracts/towns")
            press(page, "Run")
            wait_for_job(page)
            page.goto("/escrow/propose?flow=output&of=towns")
            page.get_by_label("Name of the contract").fill("towns-out")
            page.get_by_label("Reason").fill("to know")
            press(page, "Request the contract")
            done(page, "The contract is requested.")
        agreed(chromium, server, "towns-out")
        with visiting(chromium, server, "amir", **PLAIN) as page:
            page.goto("/escrow/contracts/towns-out")
            press(page, "Receive")
            shown(page, "north")
            page.get_by_label("Reason for the withdrawal").fill("it is enough")
            press(page, "Withdraw the contract")
            done(page, "The contract is withdrawn.")
        for theme in ("light", "dark"):
            with visiting(chromium, server, "olga", color_scheme=theme) as page:
                for path in ("contracts/towns", "contracts/towns-out", "data/people"):
                    page.goto(f"/escrow/{path}")
                    rules = ["color-contrast"] if theme == "dark" else []
                    assert axe(page, rules=rules) == [], path
