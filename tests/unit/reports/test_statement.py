"""The statement about a log: complete, well formed, and safe to open."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples.audited import HOSTILE, bundle, checkpoint, key, log
from samples.first_version import strange_log
from samples.pages import read
from samples.small import NOON, POLICY, compiled, counts

from modicum.api.local import Workspace
from modicum.core.errors import VerificationError
from modicum.reports.charts import meter
from modicum.reports.markup import element, joined, table, visible
from modicum.reports.sources import opened_bundle, opened_ledger, report_on
from modicum.reports.statement import Statement
from modicum.reports.statement_html import page
from modicum.reports.text import SHOWN
from modicum.storage.proofs.verification import Trust
from modicum.storage.sqlite_store import SqliteStore
from modicum.system.clock import FixedClock


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("bundle") / "ledger.modicum-audit"
    place.write_bytes(bundle(log(), [checkpoint(log(), 5, key())]))
    return place


@pytest.fixture(scope="module")
def statement(path: Path) -> Statement:
    with opened_bundle(path) as source:
        return report_on(source, Trust(frozenset({key().id})))


def test_a_page_is_well_formed_and_loads_nothing(statement: Statement) -> None:
    text = page(statement)
    reader = read(text)
    assert text.startswith("<!DOCTYPE html>\n<html lang=")
    assert not {"script", "link", "img", "iframe", "object", "form"} & {*reader.tags}
    names = {name for name, _ in reader.attributes}
    assert not {one for one in names if one.startswith("on")}
    assert not {"src", "href", "srcset", "style"} & names
    assert "@import" not in text
    assert "url(" not in text
    assert reader.tags.count("h1") == 1
    assert ("scope", "col") in reader.attributes
    assert ("aria-labelledby", "rules") in reader.attributes
    labels = [value for name, value in reader.attributes if name == "aria-label"]
    assert "over the limit" in labels


@pytest.mark.spec("AUD-6")
def test_what_a_hostile_writer_says_is_only_said(statement: Statement) -> None:
    """Every text of the log that a page shows is shown as it is, and obeyed never."""
    reader = read(page(statement))
    message = "".join(reader.said)
    story = statement.story
    for text in (
        story.releases["old"].assumptions[0],
        story.releases["r-2"].reason,
        story.disclosures[0][1].what,
        story.activations[1][1].reason,
        story.approval_cases.votes[0].body.reason,
        story.remarks[0][1].text,
    ):
        assert HOSTILE in text
        assert text in message


def test_a_statement_tells_everything_that_a_reader_must_know(
    statement: Statement,
) -> None:
    shown = statement.to_dict()
    json.dumps(shown, allow_nan=False)
    releases = {one["release"]: one["status"] for one in _list(shown["releases"])}
    assert releases == {
        "old": "recorded",
        "r-1": "published",
        "r-2": "canceled",
        "loud": "recorded",
        "r-4": "reserved",
    }
    assert shown["denials"] == 1
    assert len(_list(shown["policies"])) == 2
    assert len(_list(shown["disclosures"])) == 1
    assert _list(shown["approvals"])[0]["actor"] == "olga"
    assert len(_list(shown["rules"])) == len(statement.policy.rules)
    states = [one["state"] for one in _list(shown["rules"])]
    assert "over" in states
    assert "ok" in states
    assert states == sorted(states, key=lambda one: one != "over")
    for rule in statement.rules:
        assert (rule.state == "over") == (rule.share > 1)
    accepted = [rule.id for rule in statement.rules if rule.accepted]
    assert accepted == ["attr:diagnosis @standard"]
    message = " ".join(read(page(statement)).said)
    for rule in statement.over:
        assert rule.id in message
    for part in ("does not promise", "descriptions are true", "entries 1 to 5"):
        assert part in message


def test_what_was_accepted_is_told_beside_what_it_came_to(tmp_path: Path) -> None:
    """What is recorded later may be more than anybody accepted, and in other cells."""
    text = POLICY + "population: {partition_by: {region: {values: [A, B], "
    text += "immutable: [user]}}}\n"
    ledger = tmp_path / "ledger.db"

    def office(policy: str | None = None) -> Workspace:
        given = None if policy is None else compiled(policy)
        store = SqliteStore(ledger, wait_seconds=20)
        return Workspace(store, FixedClock(NOON), policy=given, actor="ana")

    def told() -> tuple[dict[str, object], str]:
        with opened_ledger(ledger) as source:
            found = report_on(source, Trust())
        (line,) = [
            one
            for one in _list(found.to_dict()["rules"])
            if one["rule"] == "global @standard"
        ]
        return line, " ".join(read(page(found)).said)

    office(text).init()
    office().submit(counts("a", rho="0.002", where={"region": "A"}), publish=True)
    tight = compiled(text.replace("budget: 2.0}", "budget: 0.1}"))
    office().governance.activate(tight, reason="less", accept=["global"])
    first, message = told()
    assert first["accepted"] is True
    then = {
        "entry": 5,
        "scale": first["scale"],
        "spent": first["spent"],
        "cells_denying": 1,
    }
    assert first["accepted_at"] == then
    assert "over in 1 cell; accepted at " in message
    assert "in 1 cell (entry 5)" in message
    office().backfill(counts("b", rho="0.2", where={"region": "B"}))
    later, message = told()
    assert later["accepted_at"] == then
    assert later["cells_denying"] == 2
    assert later["spent"] != then["spent"]
    assert "over in 2 cells; accepted at " in message
    assert "in the cells over the limit" in message
    for rule in _list(told_of(ledger)["rules"]):
        assert (rule["accepted_at"] is None) == (not rule["accepted"])


def told_of(ledger: Path) -> dict[str, object]:
    with opened_ledger(ledger) as source:
        return report_on(source, Trust()).to_dict()


def _list(value: object) -> list[dict[str, object]]:
    assert isinstance(value, list)
    return value


def test_a_rule_with_many_cells_says_where_it_is_fullest(statement: Statement) -> None:
    rule = replace(statement.rules[0], cell="country CH, May 2026", denying=3)
    shown = replace(statement, rules=(rule,))
    assert "most of it in: country CH, May 2026" in " ".join(read(page(shown)).said)
    line = _list(shown.to_dict()["rules"])[0]
    assert (line["cell"], line["cells_denying"]) == ("country CH, May 2026", 3)


def test_nobody_vouches_where_no_key_was_named(path: Path) -> None:
    with opened_bundle(path) as source:
        message = " ".join(read(page(report_on(source, Trust()))).said)
    assert "no entry" in message
    assert "could have rewritten all of it" in message


@pytest.mark.spec("AUD-9")
@pytest.mark.parametrize("many", [1, 5, 7])
def test_losses_that_are_believed_are_told(tmp_path: Path, many: int) -> None:
    place = tmp_path / "old.modicum-audit"
    place.write_bytes(bundle(strange_log(many, HOSTILE)))
    with opened_bundle(place) as source:
        old = report_on(source, Trust())
    reader = read(page(old))
    message = " ".join(reader.said)
    count = "1 release" if many == 1 else f"{many} releases"
    assert (
        f"{count} could not be priced again; their recorded losses are taken" in message
    )
    assert ("The first 5 of them" in message) == (many > 5)
    rows = old.verified.report.unpriced.first
    assert len(rows) == min(many, 5)
    assert HOSTILE in rows[0].why
    told = [
        cell
        for one in rows
        for cell in (str(one.seq), one.release, one.mechanism, one.why)
    ]
    start = reader.said.index(rows[0].why) - 3
    assert reader.said[start : start + len(told)] == told
    # The JSON form says the same.
    verified = old.to_dict()["verified"]
    assert isinstance(verified, dict)
    assert verified["unpriced"] == old.verified.report.unpriced.to_dict()


@pytest.mark.spec("AUD-9")
def test_of_losses_that_were_compared_nothing_is_told(statement: Statement) -> None:
    assert "could not be priced again" not in "".join(read(page(statement)).said)


@pytest.mark.spec("AUD-6")
def test_the_same_log_has_the_same_statement(path: Path, statement: Statement) -> None:
    with opened_bundle(path) as source:
        again = report_on(source, Trust(frozenset({key().id})))
    assert page(again) == page(statement)


def test_a_long_ledger_has_a_page_that_can_be_read(statement: Statement) -> None:
    one = statement.story.releases["r-1"]
    many = {f"r-{number}": replace(one, id=f"r-{number}") for number in range(2000)}
    story = replace(statement.story, releases=many)
    long = replace(statement, story=story, rules=statement.rules * 100)
    text = page(long)
    message = " ".join(read(text).said)
    assert f"{2000 - SHOWN} more" in message
    assert "r-1999" in message
    assert len(text) < 2_000_000
    assert len(_list(long.to_dict()["releases"])) == 2000


@pytest.mark.spec("AUD-6")
def test_nothing_is_stated_about_a_log_that_does_not_hold(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    data = bundle(log()).replace(b'"actor":"olga"', b'"actor":"otto"')
    broken.write_bytes(data)
    with pytest.raises(VerificationError), opened_bundle(broken) as source:
        report_on(source, Trust())


@settings(max_examples=examples(200), deadline=None)
@given(text=st.text(max_size=60), name=st.text(max_size=60))
def test_any_text_comes_back_as_it_was_said(text: str, name: str) -> None:
    made = joined(
        [
            element("p", text, title=name),
            table(name, ("a", "b"), [(text, name)]),
            meter(Fraction(1, 3), name),
        ]
    )
    reader = read(made)
    assert set(reader.tags) == {
        "p", "table", "caption", "thead", "tbody", "tr", "th", "td", "svg", "title",
        "rect",
    }  # fmt: skip
    assert ("title", visible(name)) in reader.attributes
    assert visible(text) in "".join(reader.said)
