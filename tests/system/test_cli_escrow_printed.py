"""What `modicum escrow` prints for people: complete, in its place, and harmless."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples.escrow_commands import OWN, RUNNER, WHY, Desk

from modicum.cli.main import app

ESCAPE = "\x1b[31mred\x07\u202e"
HARMFUL = {"\x1b", "\x07", "\u202e", "\x85", "\r"}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    found = Desk(tmp_path, monkeypatch)
    found.queried()
    return found


def test_names_and_programs_are_never_obeyed_by_a_terminal(desk: Desk) -> None:
    wild = f"olga{ESCAPE}"
    Path("own.py").write_text(
        f"# {ESCAPE}\n# one\x85two\rthree\n{OWN}# {ESCAPE}\n", newline=""
    )
    desk.escrow("amir", "submit", "task", "t", "q", "--code", "own.py", *WHY)
    printed = [desk.escrow("olga", "show", "t")]
    given = ("people", "people.csv", "--table", "tables.yaml")
    for who, *command in (
        ("olga", "approve", "t", "--reason", wild),
        ("olga", "approve", wild, *WHY),
        ("amir", "submit", "output", "o", "q", *WHY, "--to", wild),
        (wild, "submit", "output", "p", "q", *WHY),
        ("amir", "submit", "query", wild, "q.yaml", *WHY),
        ("amir", "submit", "query", "z", ESCAPE, *WHY),
        (wild, "approve", "t", *WHY),
        ("olga", "show", "o"),
        ("olga", "show", "p"),
        ("olga", "list"),
        ("amir", "show", ESCAPE),
        ("amir", "run", ESCAPE),
        (wild, "register", *given),
        ("olga", "register", *given, "--owner", wild),
        ("olga", "show", "t", "--json"),
        ("olga", "list", "--json"),
    ):
        env = {"MODICUM_ACTOR": who}
        printed.append(RUNNER.invoke(app, ["escrow", *command], env=env).output)
    for text in printed:
        assert not HARMFUL & set(text), text
    assert "red" in printed[0]
    # A line that an editor shows is a line here: nothing hides behind another number.
    assert "    2 | # one\\x85two\\rthree\n    3 | def score(" in printed[0]


def test_all_of_an_own_program_is_shown_with_remarks(desk: Desk) -> None:
    given = ("--code", "own.py", "--range", "-1", "2.5", "--seconds", "7")
    desk.escrow("amir", "submit", "task", "t", "q", *given, *WHY)
    shown = desk.escrow("olga", "show", "t")
    assert "program, on private answers, in bubblewrap (7 s, 2048" in shown
    assert "  scores      from -1 to 5/2\n" in shown
    assert "a score that depends on few cells reveals their values" in shown
    lines = OWN.splitlines()
    for number, line in enumerate(lines, start=1):
        assert f"\n{number:5} | {line}\n" in shown
    assert f"\n{len(lines) + 1:5} |" not in shown
    result = desk.told("olga", "show", "t")["program"]
    assert (result["text"], result["range"]) == (OWN, ["-1", "5/2"])
    assert {one["kind"] for one in result["remarks"]} == {"cell"}
    assert (result["seconds"], result["compares"], result["catalogue"]) == (
        7,
        False,
        None,
    )


def test_of_a_catalogue_program_the_arguments_are_shown_and_the_text_if_asked(
    desk: Desk,
) -> None:
    desk.escrow("amir", "submit", "task", "t", "q", "--task", "task.yaml", *WHY)
    shown = desk.escrow("olga", "show", "t")
    assert "text of the catalogue, rank_correlation@1: " in shown
    assert '  keys: ["town"]' in shown.replace("  arguments   ", "  " * 7)
    assert '[["north", "1"], ["south", "2"]]' in shown
    assert "answers are compared with 2 numbers from the analyst, which is few" in shown
    assert "def score(" not in shown
    assert "    1 | " in desk.escrow("olga", "show", "t", "--code")
    result = desk.told("olga", "show", "t")["program"]
    assert result["catalogue"] == "rank_correlation@1"
    assert "def score(" in result["text"]


def test_without_the_vault_it_says_where_the_program_lies(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.escrow("amir", "submit", "task", "t", "q", "--code", "own.py", *WHY)
    monkeypatch.delenv("MODICUM_VAULT")
    monkeypatch.delenv("MODICUM_VAULT_KEYS")
    shown = desk.escrow("olga", "show", "t")
    assert "read it with  --vault DIR --vault-keys FILE" in shown
    assert desk.told("olga", "show", "t")["program"] is None


def test_a_query_is_shown_below_its_contract(desk: Desk) -> None:
    shown = desk.escrow("olga", "show", "q")
    assert "\n\nquery r-1:\n  | release: r-1\n" in shown
    assert "\\n" not in shown
    assert "also exact answers, for scores; they are never disclosed" in shown
    listed = desk.escrow("olga", "list")
    assert listed.splitlines()[0].split() == [
        "CONTRACT",
        "FLOW",
        "ANALYST",
        "DATA",
        "ENDS",
        "STANDS",
    ]
    assert "it has run, and its results are withheld" in listed


def test_who_asks_is_told_what_is_next(desk: Desk) -> None:
    request = desk.escrow("amir", "submit", "output", "out", "q", *WHY)
    assert request.endswith("next: its owners review it:  modicum escrow show out\n")
    desk.escrow("olga", "approve", "out", *WHY)
    vote = desk.escrow("pavel", "approve", "out", *WHY)
    assert vote.endswith("next:  modicum escrow receive out\n")


def test_owners_are_shown_what_a_score_by_blocks_costs(desk: Desk) -> None:
    given = ("--code", "own.wasm", "--blocks", "20", "--loss", "0.5")
    desk.escrow("amir", "submit", "task", "t", "q", *given, *WHY)
    printed = desk.escrow("olga", "show", "t")
    for text in (
        "score t:",
        "number: 20",
        "eps: 0.5",
        "ALLOW t: 1 of 1",
        "moves the mean by at most 0.05; laplace noise of scale 0.1 ",
        "program, on exact answers about each of 20 blocks",
    ):
        assert text in printed
    (result,) = desk.told("olga", "show", "t")["queries"]
    assert result["release"] == "t"
    assert result["problem"] is None
    assert result["decision"]["decision"] == "allow"
