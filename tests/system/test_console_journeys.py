"""What each of the people of an organization does in the console, from end to end."""

from __future__ import annotations

import json
import re
from typing import Any

from playwright.sync_api import Page, Route, expect
from samples.browser import Site, Visit

#: A release that rules over history deny as it is.
COHORT = """\
release: cohort-2026-05
audience: internal
purpose: care-planning
mechanisms:
  - mechanism: gaussian
    attributes: [diagnosis]
    sensitivity: {patient: {l2: 1}}
    sigma: 4
"""
PUBLIC = """\
release: beds-for-the-press
audience: public
purpose: press
mechanisms:
  - mechanism: gaussian
    attributes: [clinic]
    sensitivity: {patient: {l2: 1}}
    sigma: SIGMA
"""


def entries(visit: Visit) -> int:
    """Return how many entries the ledger has, as somebody sees who may read it."""
    answer = visit.page.request.get("/api/v1/ledger/head")
    assert answer.ok, answer.text()
    return int(answer.json()["seq"])


def done(page: Page, text: str) -> None:
    """Wait for what a page says after a form was accepted."""
    expect(page.locator("p.done[role=status]")).to_contain_text(text)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def follow(page: Page, name: str) -> None:
    page.locator("main").get_by_role("link", name=name, exact=True).click()


def headline(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_contain_text(text)


def write_release(page: Page, text: str) -> None:
    """Describe a release as YAML and have it checked."""
    page.goto("/new-release?way=yaml")
    page.get_by_label("Release file").fill(text)
    press(page, "Check")


def request_release(page: Page, sigma: int, reason: str) -> None:
    """Request the approval of a public release."""
    write_release(page, PUBLIC.replace("SIGMA", str(sigma)))
    page.get_by_label("Reason").fill(reason)
    press(page, "Request approval, or submit")
    done(page, "Its approval is requested.")


def sent_by_hand(page: Page, path: str, fields: dict[str, str]) -> int:
    """Send a form that a page does not offer, as the page could; return the status."""
    token = next(
        one["value"] for one in page.context.cookies() if "csrf" in one["name"]
    )
    answer = page.request.post(
        path,
        form={"csrf": token, "key": f"by-hand-{path}", **fields},
        headers={"Accept": "text/html", "Sec-Fetch-Site": "same-origin"},
        max_redirects=0,
    )
    return answer.status


def vote_fields(page: Page) -> dict[str, str]:
    """Return the fields of the form of votes on a page, with its tag."""
    tag = page.get_by_role("form", name="Vote").locator("input[name=tag]")
    return {
        "tag": tag.get_attribute("value") or "",
        "vote": "approve",
        "reason": "nobody looks",
    }


# --- the privacy officer --------------------------------------------------------------


def test_an_officer_decides_about_what_waits(acme: Site) -> None:
    with acme.as_("olga") as olga:
        page = olga.page
        page.goto("/")
        before = entries(olga)
        page.get_by_role("complementary", name="Needs attention").get_by_role(
            "link", name="2 requests"
        ).click()
        row = page.get_by_role("row", name="visits-by-clinic")
        expect(row).to_contain_text("waits for you")
        follow(page, "visits-by-clinic")
        expect(page.locator(".decision")).to_contain_text("ALLOW visits-by-clinic")
        expect(page.locator(".decision")).to_contain_text("global @standard")
        page.get_by_role("form", name="Vote").get_by_label("Reason").fill("it helps")
        press(page, "Approve")
        done(page, "Your approval is recorded.")
        expect(row).to_contain_text("complete")
        follow(page, "visits-by-clinic")
        expect(page.get_by_text("All approvals are given.")).to_be_visible()
        expect(page.get_by_role("row", name="olga approves")).to_contain_text("it help")
        assert entries(olga) == before + 1


def test_an_officer_sees_who_spent_a_budget(acme: Site) -> None:
    with acme.as_("olga") as olga:
        page = olga.page
        page.goto("/")
        aside = page.get_by_role("complementary", name="Needs attention")
        aside.get_by_role("link", name="attr:lab_result @black-box").click()
        headline(page, "Rule attr:lab_result @black-box")
        spenders = page.get_by_role("table", name="Releases with the largest charges")
        first = spenders.get_by_role("row").nth(1)
        expect(first.get_by_role("cell").last).to_contain_text("%")
        name = first.get_by_role("link").inner_text()
        first.get_by_role("link").click()
        headline(page, name)


def test_an_officer_lowers_a_budget(acme: Site) -> None:
    with acme.as_("olga") as olga:
        page = olga.page
        page.goto("/policy")
        history = page.get_by_role("table", name="Activations")
        expect(history).to_contain_text("two officers see what becomes public")
        follow(page, "Edit a copy")
        # Only the lines near the visible ones are in the page.
        page.locator(".cm-scroller").evaluate("one => one.scrollTo(0, 500)")
        line = page.locator(".cm-line").filter(has_text="name: global")
        line.click()
        for key in ("End", "ArrowLeft", "Backspace"):
            page.keyboard.press(key)
        page.keyboard.type("x")
        expect(page.locator("#lint")).to_contain_text("■")  # Before it is corrected.
        press(page, "Check")
        result = page.locator("#result")
        expect(result).to_contain_text(re.compile("[0-9] problems?"))
        expect(result.get_by_role("link", name=re.compile("^line "))).not_to_have_count(
            0
        )
        line.click()
        for key in ("End", "ArrowLeft", "Backspace"):
            page.keyboard.press(key)
        page.keyboard.type("1.5")
        expect(page.locator("#lint")).to_contain_text("No problems")
        # The console of a browser tells what the page asked while one typed.
        olga.expect("status of 422 .*policies:lint")
        olga.noticed[:] = [one for one in olga.noticed if "policies:lint" not in one]
        press(page, "Check")
        expect(result).to_contain_text("The text is valid")
        press(page, "Compare")
        expect(result.get_by_role("row", name="global @standard")).to_contain_text(
            "tighter"
        )
        press(page, "Show the impact")
        expect(result).to_contain_text("Past releases exceed")
        expect(result.get_by_role("row", name="global @standard")).to_be_visible()
        before = entries(olga)
        page.get_by_label("Reason", exact=True).fill("one and a half is enough")
        press(page, "Propose for approval")
        done(page, "The policy is proposed.")
        expect(page.locator("main")).to_contain_text("one and a half is enough")
        # Its comparison comes by itself.
        conflicts = page.get_by_role("table", name="Rules that past releases exceed")
        expect(conflicts.get_by_role("row", name="global @standard")).to_be_visible()
        expect(page.get_by_role("button", name="Activate")).to_be_disabled()
        assert entries(olga) == before + 1
        page.goto("/policy")
        expect(page.get_by_role("table", name="Proposals that wait")).to_contain_text(
            "olga (you)"
        )


# --- the platform engineer ------------------------------------------------------------


def test_an_engineer_makes_a_release_fit(acme: Site) -> None:
    with acme.as_("erin") as erin:
        page = erin.page
        page.goto("/releases")
        follow(page, "Describe a new release")
        press(page, "YAML")
        page.get_by_label("Release file").fill(COHORT)
        press(page, "Check")
        verdict = page.locator("#verdict")
        expect(verdict).to_contain_text("DENY cohort-2026-05")
        expect(page.get_by_role("button", name="Submit")).to_be_disabled()
        page.get_by_text("The reasons in full").click()
        expect(page.locator("#result details")).to_contain_text("attr:diagnosis")
        page.get_by_role("button", name="Use this").first.click()
        press(page, "Check")
        expect(verdict).to_contain_text("ALLOW cohort-2026-05")
        press(page, "Submit")
        done(page, "It is allowed, and its loss is reserved.")
        headline(page, "cohort-2026-05")
        press(page, "Start")
        done(page, "It is started")
        press(page, "Record as published")
        done(page, "It is published.")
        story = page.get_by_role("table", name="The entries about it")
        for what in ("reserved", "started", "published"):
            expect(story.get_by_role("row", name=f"{what} erin")).to_be_visible()


# --- the analyst ----------------------------------------------------------------------


def test_an_analyst_sees_the_decision_while_typing(acme: Site) -> None:
    with acme.as_("amir") as amir, acme.as_("audra") as audra:
        page = amir.page
        before = entries(audra)
        page.goto("/new-release")
        page.get_by_label("Id", exact=True).fill("beds-2026-06")
        page.get_by_label("audience").select_option("internal")
        page.get_by_role("checkbox", name="clinic").check()
        page.get_by_label("sensitivity: l2").fill("1")
        verdict = page.locator("#verdict")
        expect(verdict).to_contain_text("It cannot be decided yet.")
        page.get_by_label("sigma").fill("0.1")
        expect(verdict).to_contain_text("DENY beds-2026-06")
        # What would be allowed follows when one pauses.
        expect(page.get_by_role("button", name="Use this").first).to_be_visible()
        page.get_by_label("sigma").fill("100")
        expect(verdict).to_contain_text("ALLOW beds-2026-06")
        expect(page.get_by_role("button", name="Submit")).to_be_enabled()
        assert page.url.endswith("/new-release")
        assert entries(audra) == before


def test_an_analyst_cannot_approve_their_own_request(acme: Site) -> None:
    with acme.as_("amir") as amir, acme.as_("audra") as audra:
        page = amir.page
        request_release(page, 100, "the press asks")
        headline(page, "Request: beds-for-the-press")
        button = page.get_by_role("button", name="Approve")
        expect(button).to_be_disabled()
        expect(button).to_have_accessible_description(
            "Your roles do not allow approvals."
        )
        before = entries(audra)
        fields, path = vote_fields(page), "/requests/beds-for-the-press/vote"
        assert sent_by_hand(page, path, fields) == 403
        # The same by a script in the page, with the cookies and headers of a browser.
        token = page.locator("input[name=csrf]").first.get_attribute("value")
        fields |= {"csrf": token or "", "key": "by-a-script"}
        assert page.evaluate(_SENT, [path, fields]) == 403
        amir.expect("status of 403")
        api = "/api/v1/requests/beds-for-the-press/approvals"
        answer = page.request.post(api, headers=_headers(fields), data=_VOTE)
        assert answer.status == 403
        # A token of somebody else is no token.
        assert sent_by_hand(page, path, fields | {"csrf": "x" * 43}) == 403
        assert entries(audra) == before
        page.reload()
        expect(page.get_by_text("Nobody has voted yet.")).to_be_visible()


_VOTE = {"approves": True, "reason": "nobody looks"}
_SENT = """([path, fields]) => fetch(path, {
  method: "POST", body: new URLSearchParams(fields), redirect: "manual",
}).then((answer) => answer.status)"""


def _headers(fields: dict[str, str]) -> dict[str, str]:
    return {
        "X-CSRF-Token": fields["csrf"],
        "Idempotency-Key": "by-the-api",
        "If-Match": fields["tag"],
    }


# --- the auditor ----------------------------------------------------------------------


def test_an_auditor_reads_the_past(acme: Site) -> None:
    with acme.as_("audra") as audra:
        page = audra.page
        page.goto("/rules/attr:salary%20@standard")
        page.get_by_label("As of").fill("20")
        press(page, "Show")
        expect(page.get_by_role("status").first).to_contain_text("as of 20")
        expect(page.get_by_role("status").first).to_contain_text("read-only")
        for name in ("Overview", "Releases", "Policy", "Escrow", "Ledger", "Settings"):
            page.get_by_role("navigation", name="Pages").get_by_role(
                "link", name=name, exact=True
            ).click()
            expect(page).to_have_url(re.compile("as_of=20"))
            headings = page.locator("main h1")
            expect(headings).to_have_count(1)
            assert changing_forms(page) == []
        follow(page, "Back to now")
        expect(page.get_by_text("It is read-only.")).to_have_count(0)


def changing_forms(page: Page) -> list[str]:
    """Return the forms of a page that may change something, and can be sent."""
    found: list[str] = page.evaluate(_FORMS)
    return [one for one in found if not one.endswith("/sign-out")]


_FORMS = """() => [...document.forms]
  .filter((one) => one.method === "post"
    && [...one.elements].some((it) => it.matches("button:enabled")))
  .map((one) => one.action)"""


def test_an_auditor_verifies_the_ledger(acme: Site) -> None:
    with acme.as_("audra") as audra:
        page = audra.page
        page.goto("/ledger")
        table = page.locator("#entries table")
        page.get_by_label("Kind").select_option("approval-given")
        expect(table.locator("caption")).to_contain_text("of the kind approval-given")
        expect(table.get_by_role("row")).to_have_count(2)
        page.get_by_label("Actor").fill("nobody")
        press(page, "Filter")
        expect(page.get_by_text("No entry matches.")).to_be_visible()
        page.get_by_text("Verify the ledger", exact=True).click()
        press(page, "Verify here")
        result = page.locator("[data-result]")
        expect(result).to_contain_text("the chain holds")
        expect(result).to_contain_text("equals the head shown")
        page.route("**/api/v1/ledger/proof?*", altered)
        press(page, "Verify here")
        expect(result).to_contain_text("■ Entry 7 does not hold")
        page.unroute("**/api/v1/ledger/proof?*")
        press(page, "Verify on the server")
        headline(page, "Verification of the ledger")
        expect(page.get_by_text("The ledger holds")).to_be_visible()
        expect(page.locator("main")).to_contain_text("all match")


def altered(route: Route) -> None:
    """Answer as the server does, but for one letter in what entry 7 records."""
    answer = route.fetch()
    found: Any = answer.json()
    link = next(one for one in found["links"] if one["seq"] == 7)
    link["payload"] = link["payload"].replace("2026", "2025", 1)
    route.fulfill(response=answer, body=json.dumps(found))


def test_a_job_shows_its_progress(acme: Site) -> None:
    """The job itself is over too soon: what the page hears of it is written here."""
    with acme.as_("audra") as audra:
        page = audra.page
        page.goto("/ledger")
        page.get_by_text("Verify the ledger", exact=True).click()
        press(page, "Verify on the server")
        expect(page.get_by_text("The ledger holds")).to_be_visible()
        address = page.url
        page.route(address, running)
        job = {"state": "running", "progress": 0.5}
        page.route("**/trial-events", lambda route: tell(route, job))
        page.goto(address)
        bar = page.get_by_role("progressbar", name="Progress")
        expect(bar).to_have_js_property("value", 0.5)
        page.unroute(address)
        job["state"] = "done"
        # The next of its events says that it is over, and the page shows the result.
        expect(page.get_by_text("The ledger holds")).to_be_visible()


def running(route: Route) -> None:
    """Answer with the page of a job as it is while the job runs."""
    answer = route.fetch()
    bar = (
        '<div data-job="/trial-events" role="status"><label for="progress">Progress'
        '</label><progress id="progress" max="1" value="0.1"></progress></div>'
    )
    body = re.sub("(?s)</h1>.*</main>", f"</h1>{bar}</main>", answer.text())
    route.fulfill(response=answer, body=body)


def tell(route: Route, job: dict[str, Any]) -> None:
    """Answer with an event of a job; the browser comes again for the next one."""
    body = f"retry: 50\nevent: job\ndata: {json.dumps(job)}\n\n"
    route.fulfill(content_type="text/event-stream", body=body)


def test_an_auditor_changes_nothing(acme: Site) -> None:
    with acme.as_("audra") as audra:
        page = audra.page
        before = entries(audra)
        page.goto("/audit")
        with page.expect_popup() as opened:
            follow(page, "Open the statement")
        statement = opened.value
        expect(statement.get_by_role("heading", level=1)).to_be_visible()
        statement.close()
        allowed = re.compile("/(audit|ledger/verify|risk|policy/edit|policy/proposals)")
        page.goto("/policy")
        digest = page.get_by_role("table", name="Proposals that wait").locator("a")
        proposal = str(digest.first.get_attribute("href"))
        for path in (
            *("/requests/visits-by-clinic", "/releases/beds-by-month", "/rounds"),
            *("/ledger/remark", "/settings", "/escrow", "/escrow/propose"),
            *("/new-release", "/ledger", "/audit", "/risk", proposal),
        ):
            page.goto(path)
            left = [one for one in changing_forms(page) if not allowed.search(one)]
            assert [one for one in left if not one.endswith("/new-release")] == []
        page.goto("/requests/visits-by-clinic")
        forged = vote_fields(page)
        for path, fields in (
            ("/requests/visits-by-clinic/vote", forged),
            ("/requests/visits-by-clinic/withdraw", {"reason": "gone"}),
            ("/releases/beds-by-month/start", {}),
            ("/releases/beds-by-month/cancel", {"reason": "gone"}),
            (f"{proposal}/vote", {"vote": "approve", "reason": "yes"}),
            ("/policy/edit/propose", {"text": "modicum: policy/v1", "reason": "yes"}),
            ("/rounds/open", {"round": "now"}),
            ("/ledger/remark", {"remark": "a remark"}),
            ("/settings/tokens", {"name": "mine", "days": "3"}),
            ("/new-release", {"way": "yaml", "text": COHORT, "do": "submit"}),
        ):
            assert sent_by_hand(page, path, fields) == 403, path
        assert entries(audra) == before


# --- four eyes ------------------------------------------------------------------------


def test_a_vote_counts_for_what_the_voter_saw(acme: Site) -> None:
    path = "/requests/beds-for-the-press"
    with (
        acme.as_("amir") as amir,
        acme.as_("olga") as olga,
        acme.as_("omar") as omar,
    ):
        request_release(amir.page, 100, "the press asks")
        for visit in (olga, omar):
            visit.page.goto(path)
            visit.page.get_by_label("Reason", exact=True).fill(f"{visit.who} read it")
        press(olga.page, "Approve")
        done(olga.page, "Your approval is recorded.")
        # Meanwhile it is requested again, with less noise, before omar has decided.
        request_release(amir.page, 90, "less noise")
        before = entries(olga)
        press(omar.page, "Approve")
        omar.expect("status of 412")
        problem = omar.page.get_by_role("alert")
        expect(problem).to_contain_text(re.compile("changed|again|another"))
        expect(problem).to_be_focused()
        assert entries(olga) == before
        # What he wrote is kept, and the page shows what he votes on now.
        expect(omar.page.get_by_label("Reason", exact=True)).to_have_value(
            "omar read it"
        )
        expect(omar.page.locator("main")).to_contain_text("(earlier contents)")
        press(omar.page, "Reject")
        done(omar.page, "Your rejection is recorded.")
        olga.page.goto(path)
        expect(olga.page.get_by_role("row", name="omar rejects")).to_be_visible()
        expect(olga.page.get_by_text("missing 2")).to_be_visible()


def test_a_new_policy_makes_pages_of_votes_stale(acme: Site) -> None:
    with acme.as_("olga") as olga, acme.as_("omar") as omar:
        omar.page.goto("/requests/steps-by-age")
        omar.page.get_by_label("Reason", exact=True).fill("omar read it")
        olga.page.goto("/policy")
        table = olga.page.get_by_role("table", name="Proposals that wait")
        proposal = str(table.locator("a").first.get_attribute("href"))
        with acme.as_("omar") as other:
            other.page.goto(proposal)
            other.page.get_by_label("Reason", exact=True).fill("less for marketing")
            press(other.page, "Approve")
            done(other.page, "Your approval is recorded.")
            expect(
                other.page.get_by_text("another person must activate it")
            ).to_be_visible()
        olga.page.goto(proposal)
        olga.page.get_by_label("Reason for the activation").fill("it is agreed")
        press(olga.page, "Activate")
        done(olga.page, "The policy is active now.")
        before = entries(olga)
        press(omar.page, "Approve")
        omar.expect("status of (409|412)")
        expect(omar.page.get_by_role("alert")).to_be_focused()
        assert entries(olga) == before
