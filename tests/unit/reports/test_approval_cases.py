"""What a statement shows of who agreed: every word and key, safely, in bounds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from samples.audited import HOSTILE, key
from samples.pages import Reader, read
from samples.small import NOON, POLICY, compiled, counts

from modicum.api.local import Workspace
from modicum.api.local.evaluation import price_release
from modicum.ledger.log.events import (
    ApprovalGiven,
    PlanCommitted,
    PolicyActivated,
    PolicyProposed,
    ReleaseRequested,
    RequestWithdrawn,
)
from modicum.reports.log_position import Placed
from modicum.reports.markup import visible
from modicum.reports.sources import opened_ledger, report_on
from modicum.reports.statement import Statement
from modicum.reports.statement_html import page
from modicum.reports.text import SHOWN
from modicum.reports.timeline import Timeline
from modicum.storage.proofs.verification import Trust
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock

OWN, OTHER = (key(number).public.hex() for number in (1, 2))
ASKING = POLICY + (
    "roles: {officer: [olga, pavel, quin]}\n"
    "approvals: [{when: 'release.purpose == \"press\"', need: 2, from: [officer]}]\n"
    "activation: {need: 1, from: [officer]}\n"
)
KEYS = f"keys: {{olga: {OWN}}}\n"
WIDER = ASKING.replace("name: small", "name: wider") + KEYS
#: Obeyed by what shows text, or meant to be read as something else.
BIDI = "olga\u202eevil\u2066 \u200b\x1b[31m"


class Office:
    """A ledger in a folder, and people who come by."""

    def __init__(self, folder: Path) -> None:
        self.ledger = folder / "ledger.db"
        self.of("admin", ASKING + KEYS).init()

    def of(self, actor: str, policy: str | None = None) -> Workspace:
        given = None if policy is None else compiled(policy)
        store = SqliteStore(self.ledger, wait_seconds=20)
        return Workspace(store, FixedClock(NOON), policy=given, actor=actor)

    def statement(self) -> Statement:
        with opened_ledger(self.ledger) as source:
            return report_on(source, Trust())


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


def press(identifier: str) -> dict[str, object]:
    return counts(identifier, rho="0.0001", purpose="press")


def section(statement: Statement) -> Reader:
    """Return what the section says, read from the whole page."""
    text = page(statement)
    read(text)
    start = text.index('<section aria-labelledby="agreed">')
    return read(text[start : text.index("</section>", start) + len("</section>")])


def said(statement: Statement) -> str:
    return " | ".join(section(statement).said)


@pytest.mark.spec("AUD-10")
def test_a_change_of_the_policy_is_told_from_its_proposal_on(office: Office) -> None:
    office.of("ann").governance.propose_policy(compiled(WIDER), reason="more room")
    olga, pavel = office.of("olga").governance, office.of("pavel").governance
    pavel.reject_policy(compiled(WIDER), reason="too wide")
    waiting = said(office.statement())
    digest = compiled(WIDER).policy.digest
    assert "Pending approvals" in waiting
    assert f"policy wider ({digest[:12]}) | ann, 2026-05-01 12:00 UTC (entry 2)" in (
        waiting
    )
    assert "rejected by pavel, who must withdraw that" in waiting
    pavel.reject_policy(compiled(WIDER), reason="still")
    pavel.approve_policy(compiled(WIDER), reason="well then", key=key(2))
    olga.approve_policy(compiled(WIDER), reason="agreed", key=key(1))
    office.of("ann").governance.activate(compiled(WIDER), reason="as agreed")
    statement = office.statement()
    text = said(statement)
    assert "Nothing awaits approval." in text
    assert "Pending approvals" not in text
    assert (
        "People voted 4 times. Signed votes: 2, and all signatures are valid; signed"
        " by a key that the policy then listed for the voter: 1."
    ) in text
    assert (
        "more room | pavel refuses (entry 3); pavel refuses (entry 4); pavel agrees"
        " (entry 5, signed); olga agrees (entry 6, signed) | activated by ann,"
        " 2026-05-01 12:00 UTC (entry 7): as agreed | olga (entry 6, signed by"
        f" {OWN[:12]}, their own key); pavel (entry 5, signed by {OTHER[:12]}, a key"
        " that the policy does not list for them)"
    ) in text
    for part in ("too wide | not signed", "well then | signed by", "agreed | signed"):
        assert part in text
    shown = section(statement).said
    for full, name in ((OWN, "olga"), (OTHER, "pavel")):
        assert shown[shown.index(full) + 1] == name


@pytest.mark.spec("AUD-10")
def test_a_release_is_told_with_who_asked_and_who_agreed(office: Office) -> None:
    ann = office.of("ann")
    ann.governance.request(press("out"), reason="for the press")
    office.of("olga").governance.approve("out", reason="fine", key=key(1))
    office.of("quin").governance.approve("out", reason="fine too")
    ann.submit(press("out"))
    ann.governance.request(press("waits"), reason="again")
    ann.governance.request(press("back"), reason="perhaps")
    ann.governance.withdraw_request("back", reason="rather not")
    ann.submit(counts("free", rho="0.0001"))
    statement = office.statement()
    text = said(statement)
    assert (
        "release out | ann, 2026-05-01 12:00 UTC (entry 2) | for the press | olga"
        " agrees (entry 3, signed); quin agrees (entry 4) | reserved by ann,"
        f" 2026-05-01 12:00 UTC (entry 5) | olga (entry 3, signed by {OWN[:12]}, their"
        " own key); quin (entry 4, not signed)"
    ) in text
    assert "missing 2 of olga, pavel, quin" in text
    assert "withdrawn by ann, 2026-05-01 12:00 UTC (entry 8): rather not" in text
    assert "release free" not in text, "nobody was asked about it"
    approval_cases = {one["id"]: one for one in listed(statement, "cases")}
    assert approval_cases["out"]["state"] == "reserved"
    assert approval_cases["waits"]["state"] == "pending"
    assert approval_cases["back"]["state"] == "withdrawn"
    assert "free" not in approval_cases
    json.dumps(statement.to_dict(), allow_nan=False)


def listed(statement: Statement, name: str) -> list[dict[str, object]]:
    found = statement.to_dict()[name]
    assert isinstance(found, list)
    return found


@pytest.mark.spec("AUD-10")
def test_agreement_without_the_key_that_is_named_is_said_not_to_count(
    office: Office,
) -> None:
    statement = office.statement()
    placed = Placed(2, NOON, "olga")
    for signed, received in (("", False), (OTHER, False), (OWN, True)):
        for approves in (True, False):
            story = story_with(office, placed, word(signed, approves=approves))
            text = said(replace(statement, story=story))
            assert ("it does not count" in text) == (approves and not received)
            assert (", a key that the policy does not list for them" in text) == (
                signed == OTHER
            )
            assert (", their own key" in text) == (signed == OWN)
            assert ("not signed" in text) == (not signed)


@pytest.mark.spec("AUD-10")
def test_a_plan_that_people_spoke_about_is_told_too(office: Office) -> None:
    statement = office.statement()
    approval_cases = statement.story.approval_cases
    about = structs.replace(word(about="plan-1"), subject="plan", content="c" * 64)
    approval_cases.add(Placed(2, NOON, "pavel"), about)
    before = said(statement)
    assert "plan plan-1 | nobody | pavel agrees (entry 2) | not requested" in before
    approval_cases.add(
        Placed(3, NOON, "ann"), PlanCommitted("plan-1", "w", "d" * 64, ())
    )
    assert said(statement) == before, "another plan is another matter"
    approval_cases.add(
        Placed(3, NOON, "ann"), PlanCommitted("plan-2", "w", "c" * 64, ())
    )
    assert said(statement) == before, "so is one of another name"
    approval_cases.add(
        Placed(4, NOON, "ann"), PlanCommitted("plan-1", "w", "c" * 64, ())
    )
    assert "committed by ann, 2026-05-01 12:00 UTC (entry 4)" in said(statement)


def word(
    signed: str = "", *, approves: bool = True, about: str = "r", reason: str = "x"
) -> ApprovalGiven:
    return ApprovalGiven(
        "release",
        about,
        about,
        approves,
        ("officer",),
        reason,
        "0" * 64,
        signed,
        signed and "00" * 64,
    )


def story_with(
    office: Office, placed: Placed, *bodies: ApprovalGiven | PolicyProposed
) -> Timeline:
    """Return a story that goes on from the first entry; nothing of it is checked."""
    story = office.statement().story
    for body in bodies:
        story.approval_cases.add(placed, body)
    return story


@pytest.mark.spec("AUD-6")
@pytest.mark.parametrize("text", [HOSTILE, BIDI, "<img src=x onerror=alert(1)>\u2028"])
def test_no_name_and_no_reason_is_obeyed(office: Office, text: str) -> None:
    statement = office.statement()
    plain = section(statement)
    story = statement.story
    approval_cases = story.approval_cases
    policy = compiled(ASKING).policy
    release = price_release(press("r"), compiled(ASKING))
    held = story.activations[0][1].digest
    placed = Placed(2, NOON, text)
    approval_cases.add(placed, ReleaseRequested(release, held, text))
    approval_cases.add(
        placed,
        structs.replace(word(OTHER, about="r", reason=text), content=release.content),
    )
    approval_cases.add(placed, PolicyProposed(policy.digest, text, "", text))
    approval_cases.count_pending()
    first = section(statement)
    approval_cases.add(placed, RequestWithdrawn("r", text))
    approval_cases.add(placed, PolicyActivated(policy.digest, text, policy.text, text))
    second = section(statement)
    shown = visible(text)
    assert all(one.isprintable() for one in "".join(first.said + second.said))
    for reader in (first, second):
        assert {*reader.tags} <= {*plain.tags, "p", "code"}
        assert {name for name, _ in reader.attributes} <= {
            name for name, _ in plain.attributes
        }
        cells = " | ".join(reader.said)
        assert f"{shown} agrees (entry 2, signed)" in cells
        assert f"| {shown} |" in cells
    ended = " | ".join(second.said)
    assert f"withdrawn by {shown}, 2026-05-01 12:00 UTC (entry 2): {shown}" in ended
    assert f"policy {shown} (" in ended
    # For programs it is as it was said.
    assert listed(statement, "approvals")[0]["actor"] == text
    assert listed(statement, "cases")[-1]["name"] == text


@pytest.mark.spec("AUD-10")
def test_of_a_long_ledger_the_newest_is_shown_and_the_rest_is_counted(
    office: Office,
) -> None:
    many = SHOWN + 70
    statement = office.statement()
    approval_cases = statement.story.approval_cases
    for number in range(many):
        signed = f"{number:064x}"
        result = Placed(number + 2, NOON, f"person-{number}")
        approval_cases.add(result, word(signed, about=f"r-{number}"))
        approval_cases.add(result, PolicyProposed(f"{number:064x}", "p", "", "why"))
    for number in range(100):
        approval_cases.add(
            Placed(9000 + number, NOON, "olga"), word(about=f"r-{many - 1}")
        )
    approval_cases.count_pending()
    text = page(statement)
    shown = said(statement)
    # What waits, releases, keys; changes are one more, words a hundred more.
    assert shown.count("| 70 more are in the JSON form of this statement.") == 3
    assert shown.count("| 71 more are in") == 1
    assert shown.count("| 170 more are in") == 1
    assert f"91 earlier; olga agrees (entry {9090})" in shown
    assert f"release r-{many - 1} |" in shown
    assert "release r-69 |" not in shown
    assert "release r-70 |" in shown
    assert len(text) < 1_000_000
    assert len(listed(statement, "approvals")) == many + 100
    assert len(listed(statement, "cases")) == 2 * many + 1


def test_where_nobody_was_asked_it_is_said(office: Office) -> None:
    shown = said(office.statement())
    assert "There are no votes." in shown
    assert "Nothing awaits approval." in shown
    assert "| nobody |" in shown
    assert "Every word" not in shown
    assert "Every key" not in shown
