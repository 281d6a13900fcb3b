"""The commands by which people govern a ledger: what they print, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from samples.small import POLICY, counts
from typer.testing import CliRunner

from modicum.cli.exit_codes import Exit
from modicum.cli.main import app

RUNNER = CliRunner()
ASKING = (
    POLICY
    + """
roles: {officer: [olga, pavel]}
approvals: [{when: 'release.audience == "public"', need: 1, from: [officer]}]
activation: {need: 1, from: [officer]}
"""
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a ledger and some files, as working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MODICUM_LEDGER", raising=False)
    monkeypatch.delenv("MODICUM_POLICY", raising=False)
    Path("policy.yaml").write_text(POLICY)
    Path("asking.yaml").write_text(ASKING)
    Path("tight.yaml").write_text(POLICY.replace("budget: 2.0}", "budget: 0.1}"))
    Path("public.yaml").write_text(json.dumps(counts("r-1", audience="public")))
    run("init")
    return tmp_path


def run(*command: str, code: Exit = Exit.OK) -> str:
    """Return what a command prints; it must leave with a code."""
    found = RUNNER.invoke(app, command)
    assert found.exit_code == code, found.output
    return found.output


def document(*command: str, code: Exit = Exit.OK) -> Any:
    return json.loads(run(*command, "--json", code=code))


@pytest.mark.usefixtures("folder")
def test_people_agree_and_the_release_goes_on() -> None:
    run("policy", "activate", "asking.yaml", "--reason", "two eyes")
    submit = ("release", "submit", "public.yaml", "--actor", "ann")
    assert "missing 1 of olga, pavel" in run(*submit, code=Exit.NEEDS_APPROVAL)
    listed = document("release", "approvals", "public.yaml", code=Exit.NEEDS_APPROVAL)
    assert listed["approvals"][0]["left"] == ["olga", "pavel"]
    approve = ("release", "approve", "public.yaml", "--reason", "fine")
    run(*approve, "--actor", "ann", code=Exit.NEEDS_APPROVAL)
    (vote,) = document(*approve, "--actor", "olga")["votes"]
    assert (vote["by"], vote["approves"], vote["id"]) == ("olga", True, "r-1")
    reject = ("release", "reject", "r-1", "--reason", "no", "--actor", "pavel")
    assert "rejected by pavel" in run(*reject)
    run(*submit, code=Exit.NEEDS_APPROVAL)
    assert "\n  approves: false\n" in run("ledger", "show", "4")
    run("release", "approve", "public.yaml", "--reason", "yes", "--actor", "pavel")
    assert "olga approved as officer: fine" in run("release", "approvals", "r-1")
    run("release", "approvals", "public.yaml")
    run(*submit)
    # It stands: nobody is asked any more, by its file or by its id, come what may.
    Path("more.yaml").write_text(ASKING.replace("need: 1", "need: 2", 1))
    agree = ("--reason", "more eyes", "--actor")
    run("policy", "approve", "more.yaml", *agree, "olga")
    run("policy", "activate", "more.yaml", *agree, "ann")
    run("release", "reject", "public.yaml", *agree, "pavel", code=Exit.INVALID)
    for named in ("r-1", "public.yaml"):
        printed = run("release", "approvals", named)
        assert printed.startswith("r-1 is reserved (entry ")
        assert "no approval is pending" in printed
    (entry,) = [
        one
        for one in document("ledger", "list")["entries"]
        if one["kind"] == "release-reserved"
    ]
    shown = document("ledger", "show", str(entry["seq"]))
    assert shown["body"]["approved_by"] == ["olga", "pavel"]
    run("ledger", "verify")


@pytest.mark.usefixtures("folder")
def test_a_policy_is_activated_with_its_conflicts_accepted() -> None:
    Path("r.yaml").write_text(json.dumps(counts("r-2", rho="0.002")))
    run("release", "submit", "r.yaml", "--publish")
    activate = ("policy", "activate", "tight.yaml", "--reason", "less")
    for extra in ((), ("--dry-run",)):
        output = run(*activate, *extra, code=Exit.INVALID)
        assert "--accept-conflict 'global @standard'" in output
    accepted = (*activate, "--accept-conflict", "global")
    assert "would be active" in run(*accepted, "--dry-run")
    assert len(document("ledger", "list")["entries"]) == 4
    run(*accepted, "--replaces", "0" * 64, code=Exit.STALE)
    run(*accepted, "--accept-conflict", "globall", code=Exit.INVALID)
    done = document(*accepted)
    assert (done["changed"], done["ledger"]["seq"]) == (True, 5)
    assert [(one["rule"], one["accepted"]) for one in done["conflicts"]] == [
        ("global @standard", True),
        ("global @black-box", True),
    ]
    assert "is already active" in run(*accepted)
    run("release", "check", "public.yaml", code=Exit.DENIED)
    run("ledger", "verify")


@pytest.mark.usefixtures("folder")
def test_the_active_policy_asks_people_about_the_next_one() -> None:
    run("policy", "activate", "asking.yaml", "--reason", "two eyes")
    back = ("policy", "activate", "policy.yaml", "--reason", "back")
    for extra in ((), ("--dry-run",)):
        output = run(*back, "--actor", "ann", *extra, code=Exit.NEEDS_APPROVAL)
        assert "modicum policy approve FILE" in output
    reject = ("policy", "reject", "policy.yaml", "--reason", "no")
    assert "rejected by olga" in run(*reject, "--actor", "olga")
    run(*back, "--actor", "ann", code=Exit.NEEDS_APPROVAL)
    approve = ("policy", "approve", "policy.yaml", "--reason", "yes")
    assert document(*approve, "--actor", "olga")["votes"][0]["subject"] == "policy"
    run(*back, "--actor", "olga", code=Exit.NEEDS_APPROVAL)
    run(*back, "--actor", "ann")


@pytest.mark.usefixtures("folder")
def test_who_agrees_to_a_policy_sees_what_history_exceeds() -> None:
    run("policy", "activate", "asking.yaml", "--reason", "two eyes")
    Path("r.yaml").write_text(json.dumps(counts("r-2", rho="0.002")))
    run("release", "submit", "r.yaml", "--publish")
    conflict = "CONFLICT  releases already made exceed the rule global @standard"
    assert "MISSING  approval by 1 of officer" in run(
        "policy", "approvals", "tight.yaml", code=Exit.NEEDS_APPROVAL
    )
    approve = ("policy", "approve", "tight.yaml", "--reason", "yes", "--actor", "olga")
    assert conflict in run(*approve)
    listed = len(document("ledger", "list")["entries"])
    printed = document(*approve)
    assert (printed["votes"][0]["repeated"], printed["votes"][0]["entry"]) == (
        True,
        listed,
    )
    assert [
        (one["rule"], one["made"], one["accepted"]) for one in printed["conflicts"]
    ] == [
        ("global @standard", True, False),
        ("global @black-box", True, False),
    ]
    assert f"approved by olga as officer already (entry {listed})" in run(*approve)
    assert len(document("ledger", "list")["entries"]) == listed
    output = run("policy", "approvals", "tight.yaml")
    assert "olga approved as officer: yes" in output
    found = document("policy", "approvals", "tight.yaml")
    assert found["approvals"][0]["approved_by"] == ["olga"]
    assert [one["current"] for one in found["votes"]] == [True]


@pytest.mark.usefixtures("folder")
def test_words_under_an_earlier_policy_are_shown_as_such() -> None:
    run("policy", "activate", "asking.yaml", "--reason", "two eyes")
    why = ("--reason", "yes", "--actor", "olga")
    later = Path("later.yaml")
    later.write_text(ASKING.replace("name: small", "name: later"))
    run("policy", "approve", "later.yaml", *why)
    run("policy", "approve", "policy.yaml", *why)
    activate = ("policy", "activate", "later.yaml", "--reason", "so", "--actor", "ann")
    assert "  ok       approval by 1 of officer" in run(*activate)
    # It is active: nobody is asked about it any more.
    printed = run("policy", "approvals", "later.yaml")
    assert printed.startswith("no approval is needed\n")
    assert document("policy", "approvals", "later.yaml")["approvals"] == []
    # What was said of another one before does not count for the next change.
    args = ("policy", "approvals", "policy.yaml")
    printed = run(*args, code=Exit.NEEDS_APPROVAL)
    assert "MISSING" in printed
    assert "olga approved (under an earlier policy) as officer: yes" in printed
    run("policy", "approve", "policy.yaml", *why)
    found = document(*args)
    assert [one["current"] for one in found["votes"]] == [False, True]
    assert found["approvals"][0]["approved_by"] == ["olga"]


@pytest.mark.parametrize("identifier", ["r" * 5000, "a\0b"], ids=["long", "zero"])
@pytest.mark.usefixtures("folder")
def test_what_can_be_no_path_is_an_id(identifier: str) -> None:
    run("policy", "activate", "asking.yaml", "--reason", "two eyes")
    who = ("--reason", "yes", "--actor", "olga")
    for command in (("approve", *who), ("reject", *who), ("approvals",)):
        name, *rest = command
        printed = run("release", name, identifier, *rest, code=Exit.INVALID)
        verb = "has requested" if name == "approve" else "has voted on"
        assert f"nobody {verb} a release" in printed


@pytest.mark.usefixtures("folder")
def test_past_releases_of_several_files_are_all_recorded_or_none() -> None:
    unknown = counts("old-2")
    unknown["mechanisms"][0]["attributes"] = "all"
    Path("a.yaml").write_text(json.dumps([counts("old-1", ml="none"), unknown]))
    wrong = counts("old-3", attributes=("diagnoses",))
    Path("b.yaml").write_text(json.dumps(wrong))
    record = ("release", "backfill", "a.yaml", "b.yaml")
    run(*record, code=Exit.INVALID)
    assert len(document("ledger", "list")["entries"]) == 1
    Path("b.yaml").write_text(json.dumps(counts("old-3", ml="none", rho="0.1")))
    output = run(*record)
    assert "assumed: the mechanism: attributes unknown" in output
    assert "3 releases recorded; over their limit now: " in output
    found = document(*record)["releases"]
    assert [one["retry"] for one in found] == [True, True, True]
    Path("b.yaml").write_text(json.dumps(counts("old-3", ml="none", rho="0.2")))
    run(*record, code=Exit.INVALID)  # The id stands with other contents.


def test_what_recording_would_do_is_said_without_a_byte(folder: Path) -> None:
    """It is what recording then says, of each release after those before it."""
    past = [counts(f"old-{n}", ml="none", rho="0.02") for n in range(4)]
    Path("past.yaml").write_text(json.dumps([*past, past[0]]))
    record = ("release", "backfill", "past.yaml")
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    printed = document(*record, "--dry-run")
    vote = run(*record, "--dry-run")
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == before
    assert printed.pop("dry_run") is True
    assert "old-0: would be recorded" in vote
    assert (
        "4 releases would be recorded; 1 already existed; over their limit then: "
        in vote
    )
    assert ": recorded" not in vote
    done = document(*record)
    assert done.pop("dry_run") is False
    assert any(one["over_limit"] for one in printed["releases"])
    assert len({len(one["over_limit"]) for one in printed["releases"]}) > 1
    for one in (*printed["releases"], *done["releases"]):
        del one["ledger"]["head"]  # Entries have other times.
    assert printed == done
    # A mistake is a mistake: of a file, of an id that stands, of another policy.
    Path("past.yaml").write_text(json.dumps(counts("old-0", ml="none", rho="0.03")))
    run(*record, "--dry-run", code=Exit.INVALID)
    wrong = [counts("new", ml="none"), counts("new", ml="none", rho="0.03")]
    Path("past.yaml").write_text(json.dumps(wrong))
    run(*record, "--dry-run", code=Exit.INVALID)
    Path("past.yaml").write_text(json.dumps(counts("new", ml="none")))
    run(*record, "--dry-run", "--policy", "tight.yaml", code=Exit.STALE)
    run(*record, "--dry-run", "--ledger", "nothing.db", code=Exit.USAGE)
    assert not Path("nothing.db").exists()


@pytest.mark.usefixtures("folder")
def test_of_past_releases_little_is_said_and_always_a_summary() -> None:
    Path("one.yaml").write_text(json.dumps(counts("old", ml="none", rho="0.5")))
    record = ("release", "backfill", "one.yaml")
    full = run(*record, "--dry-run", "--full")
    short = run(*record)
    assert "1 release recorded; over their limit now: " in short
    assert len(short.splitlines()) < len(full.splitlines()) / 2
    assert "more over their limit (--full)" in short
    over = [line for line in short.splitlines() if line.startswith("  OVER ")]
    assert len(over) == 5
    assert {*over} < {*full.splitlines()}
    assert "the filter sums" in full
    assert "0 releases recorded; 1 already existed" in run(*record)


def test_what_is_past_is_not_of_a_day_to_come(folder: Path) -> None:
    record = ("release", "backfill", "old.yaml")
    future = counts("old", ml="none", released_on="9999-12-30")
    entries = len(document("ledger", "list")["entries"])
    Path("old.yaml").write_text(json.dumps(future))
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    output = run(*record, code=Exit.INVALID)
    assert "error[MOD106]: `released_on` is 9999-12-30, and today is " in output
    assert "--> old.yaml:1:" in output
    assert "help: correct the date, or submit what is not yet published" in output
    refused = document(*record, code=Exit.INVALID)
    assert refused["error"]["code"] == "MOD106"
    # Nothing is written, not one byte.
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == before
    # Nor of what stands before it.
    past = counts("older", ml="none", released_on="2024-03-02")
    Path("older.yaml").write_text(json.dumps(past))
    both = ("release", "backfill", "older.yaml", "old.yaml")
    assert "error[MOD106]" in run(*both, code=Exit.INVALID)
    assert len(document("ledger", "list")["entries"]) == entries
    past = counts("old", ml="none", released_on="2024-03-02")
    Path("old.yaml").write_text(json.dumps(past))
    assert "old: recorded" in run(*record)


@pytest.mark.usefixtures("folder")
def test_remarks_and_disclosures_are_listed_and_shown() -> None:
    Path("d.yaml").write_text(
        "{disclosure: d-1, what: counts, attributes: all, reason: law}"
    )
    assert "no rule counts it" in run("ledger", "disclose", "d.yaml")
    assert document("ledger", "annotate", "looked\nat it") == {
        "entry": 3,
        "about": None,
    }
    listed = run("ledger", "list")
    assert "d-1" in listed
    assert "looked\\nat it" in listed
    assert "reason: law" in run("ledger", "show", "2")
    run("ledger", "show", "9", code=Exit.INVALID)
    run("ledger", "disclose", "d.yaml", code=Exit.INVALID)
    run("ledger", "annotate", "what?", "--about", "r-9", code=Exit.INVALID)
    assert len(document("ledger", "list")["entries"]) == 3


@pytest.mark.usefixtures("folder")
def test_who_agrees_is_told_that_nobody_asks() -> None:
    run("policy", "activate", "asking.yaml", "--reason", "two eyes")
    agree = ("--reason", "fine", "--actor", "olga")
    assert "it does not name a `requester`" in run(
        "release", "approve", "public.yaml", *agree
    )
    request = counts("r-2", audience="public", requester="ann")
    Path("asked.yaml").write_text(json.dumps(request))
    for again in (
        run("release", "approve", "asked.yaml", *agree),
        run("release", "reject", "public.yaml", *agree),
        run("release", "reject", "r-1", *agree),
    ):
        assert "`requester`" not in again
    nobody = [counts(f"r-{n}", audience="public") for n in (3, 4)]
    Path("several.yaml").write_text(json.dumps([*nobody, request]))
    vote = run("release", "approve", "several.yaml", *agree)
    assert "note: 2 of these do not name a `requester`" in vote
    assert vote.count("note:") == 1


# --- what waits for people ------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_a_release_is_requested_approved_by_its_id_and_submitted() -> None:
    run("policy", "activate", "asking.yaml", "--reason", "two eyes")
    assert run("request", "list") == "there are no requests\n"
    submit = ("release", "submit", "public.yaml", "--actor", "ann")
    args = (*submit, "--request", "for the report")
    printed = run(*args, code=Exit.NEEDS_APPROVAL)
    assert "release `r-1` is requested by ann since " in printed
    assert "MISSING  approval by 1 of officer" in printed
    again = document(*args, code=Exit.NEEDS_APPROVAL)
    assert (again["release"], again["by"], again["entry"]) == ("r-1", "ann", 3)
    assert again["repeated"]
    (waiting,) = document("request", "list")["requests"]
    assert waiting["reason"] == "for the report"
    assert (waiting["current"], waiting["complete"]) == (True, False)
    shown = document("request", "show", "r-1")
    assert shown["body"]["id"] == "r-1"
    printed = run("request", "show", "r-1")
    assert "mechanism counts: gaussian, reads diagnosis" in printed
    assert "audience: public" in printed
    run("request", "show", "r-2", code=Exit.INVALID)
    approve = ("release", "approve", "r-1", "--reason", "fine", "--actor", "olga")
    run(*approve, "--head", "0" * 64, code=Exit.STALE)
    head = document("ledger", "verify")["head"]
    run(*approve, "--head", head[:12])
    assert document("request", "list")["requests"][0]["complete"]
    withdraw = ("request", "withdraw", "r-1", "--reason", "not now", "--actor")
    run(*withdraw, "bob", code=Exit.INVALID)
    assert document(*withdraw, "ann")["withdrawn"]["release"] == "r-1"
    run(*submit, "--request", "it is approved already")
    assert "release-requested  r-1" in run("ledger", "show", "3")


@pytest.mark.usefixtures("folder")
def test_what_is_denied_is_not_requested() -> None:
    run("policy", "activate", "asking.yaml", "--reason", "two eyes")
    Path("much.yaml").write_text(json.dumps(counts("r-1", rho=3, audience="public")))
    args = ("release", "submit", "much.yaml", "--request", "please")
    run(*args, code=Exit.DENIED)
    assert document("request", "list")["requests"] == []


@pytest.mark.usefixtures("folder")
def test_people_sign_with_keys_that_the_policy_names() -> None:
    Path("phrase").write_text("a long secret\n")
    secret = ("--passphrase-file", "phrase")
    run("ledger", "key", "new", "olga.key", *secret)
    raw = run("ledger", "key", "show", "olga.key.pub").strip()
    assert document("ledger", "key", "show", "olga.key.pub")["public_key"] == raw
    Path("signing.yaml").write_text(f"{ASKING}keys: {{olga: {raw}}}\n")
    run("policy", "activate", "signing.yaml", "--reason", "signed words")
    approve = ("release", "approve", "public.yaml", "--reason", "x", "--actor", "olga")
    printed = run(*approve, code=Exit.NEEDS_APPROVAL)
    assert "MOD607" in printed
    (vote,) = document(*approve, "--key", "olga.key", *secret)["votes"]
    assert vote["key"] == raw
    assert f"olga approved as officer, signed with {raw[:12]}" in run(
        "release", "approvals", "public.yaml"
    )
    found = document("ledger", "verify")
    assert (found["approvals"], found["signed_approvals"]) == (1, 1)
    assert "1 of 1 approvals are signed, and all signatures are valid" in run(
        "ledger", "verify"
    )
    reject = ("release", "reject", "public.yaml", "--reason", "x", "--actor", "olga")
    assert document(*reject)["votes"][0]["key"] is None


@pytest.mark.usefixtures("folder")
def test_a_policy_is_proposed_and_approved_by_its_digest() -> None:
    run("policy", "activate", "asking.yaml", "--reason", "two eyes")
    assert run("policy", "proposals") == "no policy is proposed\n"
    Path("next.yaml").write_text(ASKING.replace("name: small", "name: next"))
    propose = ("policy", "propose", "next.yaml", "--reason", "a name", "--actor", "ann")
    printed = document(*propose, code=Exit.NEEDS_APPROVAL)
    assert (printed["name"], printed["repeated"]) == ("next", False)
    digest = printed["digest"]
    assert "is proposed by ann since" in run(*propose, code=Exit.NEEDS_APPROVAL)
    (listed,) = document("policy", "proposals")["proposals"]
    assert listed["text"] == Path("next.yaml").read_text()
    assert "name: next" in run("policy", "proposals", "--text")
    agree = ("policy", "approve", digest[:12], "--reason", "fine", "--actor")
    run(*agree, "ann", code=Exit.NEEDS_APPROVAL)
    run("policy", "reject", digest, "--reason", "hm", "--actor", "pavel")
    run(*agree, "pavel", "--head", "0" * 64, code=Exit.STALE)
    assert document(*agree, "pavel")["conflicts"] == []
    activate = ("policy", "activate", "next.yaml", "--reason", "a name")
    run(*activate, "--actor", "bob")
    run(*agree, "olga", code=Exit.INVALID)
