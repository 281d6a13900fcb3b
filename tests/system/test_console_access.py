"""Everybody can use the console: by keyboard, in any size, in both themes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import pytest
from playwright.sync_api import Page, expect
from samples.browser import Site, Visit, axe

from modicum.console.pages import load_pages
from modicum.console.registry import PAGES

load_pages()
#: Pages with forms that a privacy officer has no use for.
OF_STEWARDS: Final = ("/escrow/propose", "/new-release", "/risk")
#: Pages about contracts and data, which the example lacks: `test_console_no_script`.
OF_ESCROW: Final = ("/escrow/contracts/{name:path}", "/escrow/data/{name}")
DENIED: Final = """\
release: cohort-2026-05
mechanisms:
  - mechanism: gaussian
    attributes: [diagnosis]
    sensitivity: {patient: {l2: 1}}
    sigma: 0.4
"""
#: Wider than the window, or than the box that it is in and that does not scroll.
_WIDE = """() => document.documentElement.scrollWidth > innerWidth
  ? [...document.querySelectorAll("body *")].filter((one) =>
      one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll"))
    .map((one) => one.outerHTML.slice(0, 90)).slice(0, 3).concat("the page")
  : []"""


def parts_of(olga: Visit) -> dict[str, str]:
    """Return what the parameters of paths are in the example, some of it new."""
    page = olga.page
    page.goto("/rounds")
    page.get_by_label("Name, such as its week").fill("2026-w18")
    page.get_by_role("button", name="Open the round").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("2026-w18")
    page.goto("/policy")
    table = page.get_by_role("table", name="Proposals that wait")
    proposal = str(table.locator("a").first.get_attribute("href"))
    page.goto(f"{proposal}#review")
    page.get_by_role("button", name="Simulate past releases").click()
    page.wait_for_url("**/jobs/*")
    expect(page.get_by_role("heading", name="Conflicts")).to_be_visible()
    active = page.request.get("/api/v1/policies").json()["policies"][-1]["digest"]
    return {
        "/releases/{release:path}": "beds-by-month",
        "/requests/{release:path}": "visits-by-clinic",
        "/rounds/{round_id:path}": "2026-w18",
        "/policy/{digest}": active,
        "/policy/proposals/{digest}": proposal.rpartition("/")[2],
        "/rules/{rule:path}": "attr:salary%20@standard",
        "/ledger/{seq}": "57",
        "/jobs/{job}": page.url.rpartition("/")[2],
    }


def addresses(parts: Mapping[str, str]) -> list[str]:
    """Return the address of each page, once."""
    return [
        re.sub("{[^}]+}", parts.get(path, ""), path)
        for path in PAGES
        if path not in OF_ESCROW
    ]


def findings(page: Page, theme: str) -> list[str]:
    """Return what somebody cannot use of a page, in three sizes.

    A theme has colors of its own, and no sizes.
    """
    # Some pages ask for more by themselves, and say so until it is there.
    expect(page.locator(".htmx-request")).to_have_count(0)
    found = axe(page)
    if theme == "dark":
        return found
    if page.locator("h1").count() != 1:
        found.append(f"{page.locator('h1').count()} first headings")
    for width in (640, 320):
        page.set_viewport_size({"width": width, "height": 720})
        found += [f"{width}: {one}" for one in page.evaluate(_WIDE)]
    page.set_viewport_size({"width": 1280, "height": 720})
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_read_every_page(
    acme: Site, theme: Literal["light", "dark"]
) -> None:
    found: dict[str, Any] = {}
    with (
        acme.as_("olga", color_scheme=theme) as olga,
        acme.as_("dara", color_scheme=theme) as dara,
    ):
        for path in addresses(parts_of(olga)):
            visit = dara if path in OF_STEWARDS else olga
            answer = visit.page.goto(path)
            assert answer is not None, path
            assert answer.status == 200, path
            found[path] = findings(visit.page, theme)
        # What forms answer.
        dara.page.goto("/new-release?way=yaml")
        dara.page.get_by_label("Release file").fill(DENIED)
        dara.page.get_by_role("button", name="Check", exact=True).click()
        expect(dara.page.locator("#verdict")).to_contain_text("DENY")
        found["a denial"] = findings(dara.page, theme)
        olga.page.goto("/policy/edit")
        olga.page.get_by_role("button", name="Show the impact").click()
        expect(olga.page.locator("#result")).to_contain_text("The text is valid")
        found["the impact of a policy"] = findings(olga.page, theme)
        olga.page.goto("/releases?as_of=20")
        found["the past"] = findings(olga.page, theme)
    assert {path: one for path, one in found.items() if one} == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_read_why_there_is_no_page(
    acme: Site, theme: Literal["light", "dark"]
) -> None:
    found: dict[str, Any] = {}
    for who, path, status in (
        ("amir", "/ledger", 403),
        ("amir", "/releases/nothing", 404),
        ("amir", "/nowhere", 404),
        ("", "/", 401),
    ):
        with acme.as_(who, color_scheme=theme) as visit:
            visit.page.goto(path)
            visit.expect(f"status of {status}")
            found[path] = findings(visit.page, theme)
    assert {path: one for path, one in found.items() if one} == {}


# --- by keyboard alone ----------------------------------------------------------------


def test_a_request_is_approved_by_keyboard(acme: Site) -> None:
    with acme.as_("olga") as olga:
        page = olga.page
        page.goto("/requests/visits-by-clinic")
        page.keyboard.press("Tab")
        skip = page.get_by_role("link", name="Skip to the contents")
        expect(skip).to_be_focused()
        expect(skip).to_be_in_viewport()
        page.keyboard.press("Enter")
        olga.tab_to("textbox", "Reason")
        page.keyboard.type("it helps")
        olga.tab_to("button", "Approve")
        page.keyboard.press("Enter")
        expect(page.locator("p.done")).to_contain_text("Your approval is recorded.")


def test_the_focus_goes_to_what_was_refused(acme: Site) -> None:
    with acme.as_("olga") as olga:
        page = olga.page
        page.goto("/audit")
        olga.tab_to("textbox", "Release")
        page.keyboard.type("no-such-release")
        page.keyboard.press("Enter")
        olga.expect("status of 409")
        expect(page.get_by_role("alert")).to_be_focused()
        expect(page.get_by_label("Release", exact=True)).to_have_value(
            "no-such-release"
        )


def test_an_epsilon_is_chosen_by_keyboard(acme: Site) -> None:
    label = "Target tau: how alike the risks of people must be"
    with acme.as_("olga") as olga:
        page = olga.page
        page.goto("/risk")
        slider = olga.tab_to("slider", "Target tau")
        before = float(slider.input_value())
        page.keyboard.press("ArrowLeft")
        number = olga.tab_to("spinbutton", label)
        assert float(number.input_value()) == pytest.approx(before - 0.01)
        page.keyboard.press("Control+a")
        page.keyboard.type("0.5")
        slider = olga.tab_to("slider", "Target tau", back=True)
        assert float(slider.input_value()) == 0.5
        expect(slider).to_have_attribute("aria-valuetext", "tau 0.50")
        olga.tab_to(
            "textbox",
            "Profile: distance, people, and maybe a group, in each line",
            back=True,
        )
        page.keyboard.type("0,120\n1,80")
        olga.tab_to("button", "Study")
        page.keyboard.press("Enter")
        expect(
            page.get_by_role("table", name="What each epsilon means")
        ).to_be_visible()
        slider = olga.tab_to("slider", "Target tau")
        page.keyboard.press("ArrowRight")
        expect(page.locator("output").first).to_contain_text("epsilon")


def test_a_policy_is_edited_by_keyboard(acme: Site) -> None:
    name = "Text of the policy, as YAML. To leave, press Escape and then Tab."
    with acme.as_("olga") as olga:
        page = olga.page
        page.goto("/policy/edit")
        expect(page.get_by_role("textbox", name=name)).to_be_visible()
        olga.tab_to("textbox", name)
        page.keyboard.press("Control+End")
        page.keyboard.type("\n# a remark\n")
        for key in ("Tab", "Escape", "Tab"):  # The first one indents.
            page.keyboard.press(key)
        expect(page.get_by_role("textbox", name=name)).not_to_be_focused()
        expect(page.get_by_role("button", name="Check")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#result")).to_contain_text("The text is valid")
        expect(page.locator("#result")).to_be_focused()
        expect(page.locator("#text")).to_have_value(re.compile("\n# a remark\n  $"))
