"""A statement as one HTML page: no script, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil

from modicum.api.local.policies.rule_standing import in_cells
from modicum.core.diagnostics import shortened
from modicum.ledger import RecordedRelease
from modicum.reports import limitations
from modicum.reports.approvals_html import who_agreed
from modicum.reports.charts.charges import meter
from modicum.reports.escrow_html import escrowed, not_private
from modicum.reports.limitations import lost_entries, unverified_losses
from modicum.reports.markup import Child, Markup, element, joined, table
from modicum.reports.statement import RuleLine, Statement
from modicum.reports.style import STYLE
from modicum.reports.text import (
    NOTHING,
    SHOWN,
    left_out,
    minute,
    newest,
    part_text,
    when,
)
from modicum.reports.timeline import ReleaseTimeline

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(statement: Statement) -> str:
    """Return a statement as a whole HTML document."""
    name = statement.policy.policy.name
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width"),
        element("title", f"Privacy statement: {name}"),
        element("style", Markup(STYLE)),
    )
    body = element("body", element("main", *_sections(statement)))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _sections(statement: Statement) -> Iterator[Markup]:
    yield element("h1", f"Privacy statement: {statement.policy.policy.name}")
    yield element("p", _as_of(statement), class_="soft")
    yield from _over(statement.over)
    yield from not_private(statement.story.escrow)
    yield _section("verified", "Verification", _verified(statement))
    yield _section("rules", "Rules", _rules(statement.rules))
    yield _section("policies", "Policies", _policies(statement))
    yield _section("releases", "Releases", _releases(statement))
    yield _section("agreed", "Approvals", who_agreed(statement))
    escrow = escrowed(statement.story.escrow)
    yield _section("escrow", "Flows of data in escrow", escrow)
    yield _section(
        "assumptions", "Assumptions about past releases", _assumed(statement)
    )
    yield _section("corrections", "Corrections of past releases", _corrected(statement))
    yield _section("outside", "Outside differential privacy", _disclosures(statement))
    yield _section("remarks", "Remarks", _remarks(statement))
    yield _section("promises", "What a rule promises", _promises())


def _section(name: str, title: str, contents: Iterable[Markup]) -> Markup:
    return element(
        "section", element("h2", title, id=name), *contents, aria_labelledby=name
    )


def _as_of(statement: Statement) -> str:
    last = statement.story.last
    if last is None:
        return f"{statement.source}, without entries"
    return f"{statement.source}, as of entry {last.seq} of {minute(last.at)}"


def _over(rules: Sequence[RuleLine]) -> Iterator[Markup]:
    """Yield a warning that names the rules that are over their limits."""
    if not rules:
        return
    count = "1 rule is" if len(rules) == 1 else f"{len(rules)} rules are"
    names = shortened([rule.id for rule in rules], 20)
    yield element(
        "div",
        element("p", f"{count} over the limit: ", names, class_="over"),
        element(
            "p",
            "Past releases exceed them. They deny all further matching releases; a rule"
            " with several cells does so in the cells over the limit.",
        ),
        class_="box",
        role="note",
    )


def _verified(statement: Statement) -> Iterator[Markup]:
    verified = statement.verified
    report = verified.report
    yield element("p", limitations.CHECKED)
    yield _definitions(
        ("Entries", str(report.entries)),
        ("Decisions replayed, all match", str(report.decisions)),
        ("Ledger", element("code", verified.ledger)),
        ("Head", element("code", report.head)),
        (
            "Signed by trusted keys",
            f"entries 1 to {verified.pinned}" if verified.pinned else "no entry",
        ),
    )
    yield from lost_entries(report.gaps)
    yield from unverified_losses(report.unpriced)
    yield element(
        "p", limitations.PINNED if verified.pinned else limitations.NOT_PINNED
    )
    if verified.findings:
        yield table(
            "Verified checkpoints and receipts",
            ("From", "Entry", "Signed", "Key", "Trusted key"),
            [
                (
                    one.source,
                    str(one.claim.seq),
                    minute(one.claim.at),
                    element("code", one.claim.key[:12]),
                    "yes" if one.trusted else "no",
                )
                for one in verified.findings
            ],
        )
    yield element("p", limitations.NOBODY_PROVES_IDENTITY, class_="soft")


def _rules(rules: Sequence[RuleLine]) -> Iterator[Markup]:
    yield table(
        "Every rule over all releases, those over their limit first",
        ("Rule", "Unit", "Spent", "Limit", "Share", "State", "About"),
        [_rule_cells(rule) for rule in rules[:SHOWN]],
    )
    yield from left_out(len(rules))


def _rule_cells(rule: RuleLine) -> Sequence[Child]:
    percent = min(ceil(rule.share * 100), 100)
    label = "over the limit" if rule.state == "over" else f"{percent} % of the limit"
    drawn = "" if rule.state == "not limited" else meter(rule.share, label, rule.state)
    state: Child = f"{_state(rule)}{_accepted(rule)}"
    if rule.state in ("over", "near"):
        state = element("span", state, class_=rule.state)
    cell = f", most of it in: {rule.cell}" if rule.cell else ""
    return (
        rule.id,
        rule.unit,
        f"{rule.spent} {rule.scale}{cell}",
        f"{rule.limit}; {rule.changes}" if rule.changes else rule.limit,
        drawn,
        state,
        element("code", rule.about),
    )


def _state(rule: RuleLine) -> str:
    over = rule.state == "over" and rule.cell
    return f"{rule.state}{in_cells(rule.denying)}" if over else rule.state


def _accepted(rule: RuleLine) -> str:
    """Return the charge of a rule when accepted: the present one may be higher."""
    then = rule.accepted
    if then is None:
        return ""
    cells = in_cells(then.denying) if rule.cell else ""
    return f"; accepted at {then.spent} {then.scale}{cells} (entry {then.seq})"


def _policies(statement: Statement) -> Iterator[Markup]:
    yield table(
        "Every activation, oldest first; the last one is active",
        ("Policy", "Since", "By", "Reason", "Accepted conflicts", "Digest"),
        [
            (
                one.name,
                when(entry),
                entry.actor,
                one.reason or NOTHING,
                ", ".join(one.accepted) or NOTHING,
                element("code", one.digest[:12]),
            )
            for entry, one in statement.story.activations
        ],
    )


def _releases(statement: Statement) -> Iterator[Markup]:
    story = statement.story
    releases = list(story.releases.values())
    yield element(
        "p",
        f"{len(releases)} releases were allowed or recorded, {statement.given_up} of"
        f" them canceled or expired before they started; {story.denials} requests were"
        " denied. A denial spends nothing.",
    )
    yield table(
        "Newest first",
        ("Release", "Status", "Since", "By", "Mechanisms", "Reads", "Approved by"),
        [_release_cells(one) for one in newest(releases)],
    )
    yield from left_out(len(releases))


def _release_cells(one: ReleaseTimeline) -> Sequence[Child]:
    reason = f": {one.reason}" if one.reason else ""
    return (
        one.id,
        f"{one.status}{reason}",
        minute(one.changed_at),
        one.recorded.actor,
        "; ".join(one.mechanisms),
        ", ".join(one.attributes) or "no attribute",
        ", ".join(one.approved_by) or NOTHING,
    )


def _assumed(statement: Statement) -> Iterator[Markup]:
    past = [one for one in statement.story.releases.values() if one.assumptions]
    recorded = statement.story.kinds["past-recorded"]
    yield element(
        "p",
        f"{recorded} releases were recorded after the fact. They are counted as"
        f" described; {len(past)} of them note their assumptions.",
    )
    if past:
        yield table(
            "Assumptions, as recorded",
            ("Release", "Assumptions"),
            [(one.id, "; ".join(one.assumptions)) for one in newest(past)],
        )
        yield from left_out(len(past))


def _corrected(statement: Statement) -> Iterator[Markup]:
    found = statement.story.corrections
    if not found:
        yield element("p", "There are no corrections.")
        return
    yield element("p", limitations.CORRECTED)
    yield table(
        "Newest first",
        ("Release", "Requested by", "Why", "Approved by", "Why", "Before", "Now"),
        [
            (
                one.body.release.id,
                f"{one.requested.actor}, {when(one.requested)}",
                one.why,
                f"{', '.join(one.approved_by)}, {when(one.entry)}",
                one.body.reason,
                _read(one.body.before),
                _read(one.body.release),
            )
            for one in newest(found)
        ],
    )
    yield from left_out(len(found))


def _read(release: RecordedRelease) -> str:
    return "; ".join(
        f"{one.description.get('name')}: {part_text(one.part)}"
        for one in release.mechanisms
    )


def _disclosures(statement: Statement) -> Iterator[Markup]:
    found = statement.story.disclosures
    invariants = statement.policy.policy.disclosed_invariants
    if not found and not invariants:
        yield element("p", "None recorded.")
        return
    yield element(
        "p", "Every promise on this page is conditional on what is listed here."
    )
    if found:
        yield table(
            "Disclosures",
            ("Disclosure", "What", "Attributes", "Recorded", "Reason"),
            [
                (
                    one.id,
                    one.what,
                    ", ".join(one.attributes) or NOTHING,
                    when(entry),
                    one.reason,
                )
                for entry, one in found
            ],
        )
    if invariants:
        yield element(
            "p", "The active policy declares that these are published exactly:"
        )
        yield element("ul", *(element("li", one) for one in invariants))


def _remarks(statement: Statement) -> Iterator[Markup]:
    found = statement.story.remarks
    if not found:
        yield element("p", "There are none.")
        return
    yield table(
        "Remarks",
        ("About", "Who", "When", "Remark"),
        [
            (one.about or "the ledger", entry.actor, when(entry), one.text)
            for entry, one in newest(found)
        ],
    )
    yield from left_out(len(found))


def _promises() -> Iterator[Markup]:
    for paragraph in limitations.PROMISES:
        yield element("p", paragraph)
    yield element("h3", "What it does not promise")
    yield element("ul", *(element("li", one) for one in limitations.LIMITS))


def _definitions(*pairs: tuple[str, Child]) -> Markup:
    return element(
        "dl",
        *(
            joined((element("dt", term), element("dd", meaning)))
            for term, meaning in pairs
        ),
    )
