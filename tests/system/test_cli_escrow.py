"""`modicum escrow`: from a query to a score, as people type it; who is refused what."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from samples.escrow_commands import WHY, Desk
from samples.escrows import POLICY, query
from samples.sandboxed import sandbox, users

from modicum.cli.exit_codes import Exit


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


def test_a_query_is_agreed_to_run_and_let_go(desk: Desk) -> None:
    desk.register()
    request = desk.told("amir", "submit", "query", "q", "q.yaml", *WHY)
    assert (request["flow"], request["analyst"], request["uses"]) == (
        "query",
        "amir",
        1,
    )
    assert request["consent"]["given"] is False
    # Nothing runs before both owners agree.
    assert desk.error("amir", "run", "q") == "MOD865"
    first = desk.escrow("olga", "approve", "q", *WHY)
    assert "missing 1 of pavel" in first
    assert "next:" not in first
    assert desk.error("amir", "run", "q") == "MOD865"
    vote = desk.told("pavel", "approve", "q", *WHY)
    assert (vote["by"], vote["approves"], vote["consent"]["given"]) == (
        "pavel",
        True,
        True,
    )
    assert desk.told("amir", "run", "q") == {"contract": "q", "results": ["private"]}
    assert desk.error("amir", "run", "q") == "MOD865"
    desk.escrow("amir", "submit", "output", "out", "q", "--to", "rita", *WHY)
    desk.agree("out")
    assert desk.error("amir", "receive", "out") == "MOD865"
    gone = desk.told("rita", "receive", "out")
    assert (gone["flow"], gone["differentially_private"]) == ("output", True)
    rows = gone["answers"]["r-1"]["rows"]
    assert [row["keys"] for row in rows] == [["north"], ["south"]]
    assert all(abs(Fraction(row["answers"][0]["value"]) - 150) < 20 for row in rows)
    shown = desk.escrow("rita", "receive", "out")
    assert shown.startswith("r-1:\nTOWN")
    assert "\nnorth " in shown
    desk.run("olga", "ledger", "verify")


def test_scores_go_out_privately_and_else_loudly(desk: Desk) -> None:
    desk.queried()
    desk.scored()
    desk.escrow("amir", "submit", "signal", "s", "t", *WHY)
    desk.agree("s")
    signal = desk.told("amir", "receive", "s")
    assert signal["differentially_private"] is True
    assert abs(Fraction(signal["score"]) - Fraction(1, 2)) < Fraction(1, 10)
    loud = "WARNING: the score on exact answers is NOT differentially private"
    raw = ("submit", "raw-signal", "raw", "t", *WHY)
    assert loud in desk.escrow("amir", *raw, "--width", "0.05")
    assert loud in desk.escrow("olga", "approve", "raw", *WHY)
    assert loud in desk.escrow("pavel", "approve", "raw", *WHY)
    shown = desk.escrow("pavel", "show", "raw")
    assert "one of 20 bins, of EXACT answers: at most 5 bits" in shown
    assert "WARNING     this is NOT differentially private" in shown
    result = desk.escrow("amir", "receive", "raw")
    assert result == "raw: score from 0.5 to 0.55  (NOT differentially private)\n"
    found = desk.told("amir", "receive", "raw")
    assert found["differentially_private"] is False
    assert found["bin"] == {"low": "0.5", "high": "0.55"}
    # The other words are never loud.
    assert "WARNING" not in desk.escrow("olga", "show", "s")
    desk.escrow("amir", "submit", "raw-signal", "exact", "t", "--exact", *WHY)
    assert desk.told("olga", "show", "exact")["bits"] == 64
    desk.agree("exact")
    assert desk.escrow("amir", "receive", "exact").startswith("exact: score 0.5  (NOT")
    listed = desk.run("olga", "ledger", "list")
    assert listed.count("disclosure") >= 2


def test_a_task_file_runs_and_a_task_that_compares_says_what_is_next(
    desk: Desk,
) -> None:
    desk.queried()
    Path("compares.yaml").write_text(
        "task: answers\nevaluate: {relative_error: {column: people, keys: [town]}}\n"
    )
    box = desk.held_loosely()
    given = ("submit", "task", "c", "q", "--task", "compares.yaml", *WHY)
    assert desk.told("amir", *given)["consent"]["given"] is False
    desk.agree("c")
    ran = desk.escrow("amir", "run", "c")
    assert "withheld: exact\n" in ran
    assert "submit raw-signal NAME c" in ran
    ((tables, reference),) = box.given
    assert tables.keys() == (reference or {}).keys() == {"r-1"}
    given = ("submit", "task", "t", "q", "--task", "task.yaml", *WHY)
    desk.escrow("amir", *given)
    desk.agree("t")
    ran = desk.escrow("amir", "run", "t")
    assert "withheld: exact and private\n" in ran
    assert "submit signal NAME t" in ran


def test_columns_of_a_task_file_are_looked_up(desk: Desk) -> None:
    desk.queried()
    Path("other.yaml").write_text(
        "task: answers\nevaluate: {chi_square: {rows: town, columns: age, count: n}}\n"
    )
    given = ("submit", "task", "t", "q", "--task", "other.yaml", *WHY)
    assert "`age`" in desk.told("amir", *given, code=4)["error"]["message"]
    desk.run("olga", "ledger", "verify")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((), "with --task, or custom code with --code"),
        (("--task", "task.yaml", "--code", "own.py"), "with --task, or custom"),
        (("--task", "task.yaml", "--range", "0", "1"), "leave it out"),
        (("--task", "task.yaml", "--compares"), "leave it out"),
        (("--code", "own.py", "--range", "a", "1"), "write two numbers"),
        (("--code", "own.py", "--tier", "wasm"), "does not run programs in python"),
        (("--code", "own.py", "--tier", "docker"), "unknown sandbox `docker`"),
        (("--code", "own.py", "--seconds", "0"), "--seconds"),
        (("--code", "own.py", "--days", "0"), "--days"),
        (("--code", "own.py", "--blocks", "20"), "needs --blocks and --loss"),
        (("--code", "own.py", "--loss", "1"), "needs --blocks and --loss"),
        (("--code", "own.py", "--blocks", "1", "--loss", "1"), "--blocks"),
        (("--code", "own.py", "--blocks", "2", "--loss", "much"), "is not a number"),
        (("--code", "own.py", "--unit", "user"), "it needs --blocks"),
        (("--code", "own.py", "--noise", "gaussian"), "it needs --blocks"),
        (
            ("--code", "own.py", "--blocks", "2", "--loss", "1", "--noise", "loud"),
            "neither laplace nor gaussian",
        ),
    ],
)
def test_a_task_that_cannot_be_meant_is_no_command(
    desk: Desk, given: tuple[str, ...], words: str
) -> None:
    desk.queried()
    before = desk.told("amir", "list")
    output = desk.escrow("amir", "submit", "task", "t", "q", *given, *WHY, code=2)
    assert words in " ".join(output.replace("│", " ").split())
    assert desk.told("amir", "list") == before


@pytest.mark.parametrize("given", [(), ("--width", "0.1", "--exact"), ("--width", "x")])
def test_a_raw_signal_says_how_it_is_told(desk: Desk, given: tuple[str, ...]) -> None:
    output = desk.escrow("amir", "submit", "raw-signal", "r", "t", *given, *WHY, code=2)
    assert "--width" in output


def test_refusals_have_codes_and_change_nothing(desk: Desk) -> None:
    desk.queried()
    assert desk.error("amir", "submit", "query", "q", "q.yaml", *WHY) == "MOD867"
    assert desk.error("amir", "submit", "query", "x", "gone.yaml", *WHY) == "MOD001"
    assert desk.error("amir", "submit", "query", "x", "q.yaml", "--reason", "") == (
        "MOD103"
    )
    for command in ("approve", "reject", "withdraw"):
        assert desk.error("olga", command, "nowhere", *WHY) == "MOD866"
    for command in ("run", "receive", "show"):
        assert desk.error("olga", command, "nowhere") == "MOD866"
    assert desk.error("olga", "withdraw", "q", *WHY) == "MOD865"  # It is amir's.
    assert desk.error("rita", "approve", "q", *WHY) == "MOD865"  # She owns nothing.
    assert desk.error("amir", "receive", "q") == "MOD865"
    assert desk.error("amir", "submit", "signal", "s", "q", *WHY) == "MOD867"
    stale = ("--content", "0" * 64)
    assert desk.error("olga", "approve", "q", *stale, *WHY, code=7).startswith("MOD")
    stale = ("--head", "0" * 64)
    assert desk.error("olga", "approve", "q", *stale, *WHY, code=7).startswith("MOD")
    assert [one["contract"] for one in desk.told("olga", "list")["contracts"]] == ["q"]


def test_what_a_rule_denies_leaves_with_3_and_reads_nothing(desk: Desk) -> None:
    desk.register()
    Path("q.yaml").write_text(query("dear", "1.9"))
    desk.escrow("amir", "submit", "query", "q", "q.yaml", *WHY)
    desk.agree("q")
    Path("tight.yaml").write_text(POLICY.replace("rho: 2", "rho: 1"))
    desk.run("olga", "policy", "activate", "tight.yaml", *WHY)
    assert desk.escrow("olga", "show", "q").count("DENY dear") == 1
    denied = desk.told("amir", "run", "q", code=Exit.DENIED)
    assert denied["release"] == "dear"
    (one,) = desk.told("amir", "list")["contracts"]
    assert (one["uses_left"], one["results"]) == (1, [])


def test_an_owner_takes_an_agreement_back_and_an_analyst_a_contract(desk: Desk) -> None:
    desk.queried()
    desk.escrow("amir", "submit", "output", "out", "q", *WHY)
    desk.agree("out")
    vote = desk.escrow("pavel", "reject", "out", *WHY)
    assert "rejected by pavel" in vote
    assert "next:" not in vote
    assert desk.error("amir", "receive", "out") == "MOD865"
    assert desk.told("pavel", "approve", "out", *WHY)["consent"]["given"] is True
    assert desk.told("pavel", "approve", "out", *WHY)["repeated"] is True
    desk.told("amir", "receive", "out")
    gone = desk.told("amir", "withdraw", "out", *WHY)["withdrawn"]
    assert (gone["contract"], gone["withdrawn"], gone["released"]) == ("out", True, 1)
    assert desk.error("amir", "receive", "out") == "MOD865"


def test_what_is_shown_is_what_is_agreed_to(desk: Desk) -> None:
    desk.register()
    desk.escrow("amir", "submit", "query", "q", "q.yaml", *WHY)
    shown = desk.told("olga", "show", "q")
    text = desk.escrow("olga", "show", "q")
    assert f"--content {shown['digest']} --head {shown['ledger']['head']}" in text
    assert shown["queries"][0]["text"] == query("r-1")
    assert shown["queries"][0]["decision"]["release"] == "r-1"
    seen = ("--content", shown["digest"], "--head", shown["ledger"]["head"])
    desk.escrow("olga", "approve", "q", *seen, *WHY)
    # Something came in since pavel looked.
    desk.error("pavel", "approve", "q", *seen, *WHY, code=7)
    desk.escrow("pavel", "approve", "q", *seen[:2], *WHY)
    assert "agree to exactly this" not in desk.escrow("olga", "show", "q")


def test_without_a_sandbox_nothing_ran(desk: Desk) -> None:
    desk.queried()
    desk.escrow("amir", "submit", "task", "t", "q", "--code", "own.py", *WHY)
    desk.agree("t")
    assert desk.error("amir", "run", "t", "--sandbox-uid", "65534", code=1) in (
        "MOD855",
        "MOD856",
    )
    assert desk.told("amir", "show", "t")["uses_left"] == 3


def test_a_task_runs_in_the_real_sandbox(desk: Desk) -> None:
    sandbox()
    desk.queried()
    limits = ("--seconds", "3", "--memory-mib", "1024")
    desk.escrow("amir", "submit", "task", "t", "q", "--code", "own.py", *limits, *WHY)
    desk.agree("t")
    uid = users()
    given = () if uid is None else ("--sandbox-uid", str(uid))
    desk.escrow("amir", "run", "t", *given)
    # It is given no exact answers: it shares its kernel with other runs.
    desk.escrow("amir", "submit", "signal", "s", "t", *WHY)
    desk.agree("s")
    score = Fraction(desk.told("amir", "receive", "s")["score"])
    assert abs(score - Fraction(1, 2)) < Fraction(1, 10)
