"""`modicum escrow try`: a task on made-up answers, without a trace."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples.escrow_commands import OWN, WHY, Desk
from samples.escrows import query
from samples.sandboxed import sandbox, users

OPEN = ("--code", "own.py", "--no-sandbox")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    found = Desk(tmp_path, monkeypatch)
    found.register()
    return found


def test_it_touches_no_data_and_leaves_no_trace(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = desk.held_loosely()
    # Without a vault there is no data, and no ledger is written.
    monkeypatch.delenv("MODICUM_VAULT")
    monkeypatch.delenv("MODICUM_VAULT_KEYS")
    before = Path("ledger.db").read_bytes()
    Path("vault").rename("elsewhere")
    found = desk.told("amir", "try", "q.yaml", "--code", "own.py")
    assert Path("ledger.db").read_bytes() == before
    assert found["queries"] == {"r-1": 2}
    assert found["sandbox"] == "bubblewrap"
    assert found["runs"].keys() == {"exact", "private"}
    (exact, _), (private, _) = box.given
    first = [exact["r-1"].rows[row][1] for row in (0, 1)]
    assert exact["r-1"].columns == ("town", "people")
    # What stands for private answers is noisy, and not far off.
    second = [private["r-1"].rows[row][1] for row in (0, 1)]
    assert all(abs(one - two) < 30 for one, two in zip(first, second, strict=True))
    scores = [found["runs"][name]["score"] for name in ("exact", "private")]
    assert scores == [first[0] / 300, second[0] / 300]


def test_answers_are_the_same_until_others_are_asked_for(desk: Desk) -> None:
    box = desk.held_loosely()
    Path("q.yaml").write_text(query("r-1", "0.0001"))
    for seed in ((), (), ("--seed", "2")):
        desk.told("amir", "try", "q.yaml", "--code", "own.py", *seed)
    tables = [one for one, _ in box.given]
    assert tables[0] == tables[2] != tables[4]
    assert tables[1] == tables[3] != tables[5]
    assert any(tables[place] != tables[place + 1] for place in (0, 4))


def test_a_query_is_named_by_its_contract_or_its_file(desk: Desk) -> None:
    Path("two.yaml").write_text(query("r-2", "0.0001"))
    desk.escrow("amir", "submit", "query", "q", "q.yaml", "two.yaml", *WHY)
    Path("task.yaml").write_text(
        "task: {answers: r-2}\n"
        "evaluate: {relative_error: {column: people, keys: [town]}}"
    )
    desk.held_loosely()
    named = desk.told("amir", "try", "--query", "q", "--task", "task.yaml")
    written = desk.told("amir", "try", "q.yaml", "two.yaml", "--task", "task.yaml")
    assert named == written
    assert named["queries"] == {"r-1": 2, "r-2": 2}
    assert named["runs"].keys() == {"exact"}  # It compares.
    assert named["catalogue"] == "relative_error@1"
    assert named["runs"]["exact"]["score"] > 0
    assert desk.error("amir", "try", "--query", "no", "--task", "task.yaml") == "MOD866"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--code", "own.py"), "name query files, or the contract"),
        (("q.yaml", "--query", "q", "--code", "own.py"), "name query files, or the"),
        (("q.yaml",), "with --task, or custom code with --code"),
        (("q.yaml", *OPEN, "--tier", "bubblewrap"), "without a sandbox, none"),
        (("q.yaml", "--code", "own.py", "--tier", "wasm"), "does not run programs"),
    ],
)
def test_what_cannot_be_meant_is_no_command(
    desk: Desk, given: tuple[str, ...], words: str
) -> None:
    assert words in " ".join(desk.escrow("amir", "try", *given, code=2).split())


def test_a_changed_policy_is_told(desk: Desk) -> None:
    desk.escrow("amir", "submit", "query", "q", "q.yaml", *WHY)
    text = Path("policy.yaml").read_text().replace("income: high", "pay: high")
    Path("other.yaml").write_text(text)
    desk.run("olga", "policy", "activate", "other.yaml", *WHY)
    assert desk.error("amir", "try", "--query", "q", *OPEN, code=7) == "MOD602"


def test_without_a_sandbox_it_tells_why_there_is_no_score(desk: Desk) -> None:
    Path("own.py").write_text(OWN.replace("(table,)", "print('\\x1b[31m!')\n    none"))
    shown = desk.escrow("amir", "try", "q.yaml", *OPEN)
    assert "on exact answers: no score (it failed)\n  | \\x1b[31m!\n" in shown
    assert "NameError" in shown
    assert "\x1b" not in shown
    assert "a score that depends on few cells reveals their values" in shown
    assert "the answers are synthetic" in shown
    runs = desk.told("amir", "try", "q.yaml", *OPEN)["runs"]
    assert runs["private"]["remark"] == "it failed"
    assert "NameError" in runs["private"]["printed"]


def test_it_runs_in_the_real_sandbox(desk: Desk) -> None:
    sandbox()
    uid = users()
    given = () if uid is None else ("--sandbox-uid", str(uid))
    limits = ("--seconds", "2", "--memory-mib", "512")
    result = desk.told("amir", "try", "q.yaml", "--code", "own.py", *limits, *given)
    free = desk.told("amir", "try", "q.yaml", *OPEN)
    for name in ("exact", "private"):
        held, loose = (one["runs"][name]["score"] for one in (result, free))
        assert abs(held - loose) < 1e-8
    Path("own.py").write_text("def score(tables, arguments, reference):\n    none\n")
    shown = desk.escrow("amir", "try", "q.yaml", "--code", "own.py", *limits, *given)
    assert "on exact answers: no score\n" in shown
    assert "a sandbox hides why there is no score" in shown
