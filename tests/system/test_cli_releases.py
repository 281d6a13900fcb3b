"""A ledger that is there, and releases in it: what commands show, refuse and advise."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from samples import parted
from samples.small import POLICY, counts
from typer.testing import CliRunner

import modicum as mo
from modicum.cli import output
from modicum.cli.exit_codes import Exit
from modicum.cli.main import app

RUNNER = CliRunner()
ASKING = (
    POLICY
    + """
roles: {officer: [olga, pavel], lawyer: [lea]}
approvals:
  - {when: 'release.audience == "public"', need: 1, from: [officer]}
  - {when: 'release.audience == "world"', need: 1, from: [lawyer]}
"""
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a policy and two releases, as working directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("MODICUM_LEDGER", "MODICUM_POLICY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MODICUM_ACTOR", "ann")
    Path("policy.yaml").write_text(POLICY)
    write("one", rho="0.012")
    write("two", rho="0.012")
    return tmp_path


def write(name: str, **more: Any) -> None:
    Path(f"{name}.yaml").write_text(json.dumps(counts(name, **more)))


def run(*command: str, code: int = Exit.OK) -> str:
    """Return what a command prints; it must leave with a code."""
    found = RUNNER.invoke(app, command)
    assert found.exit_code == code, (command, found.output, found.exception)
    return found.output


def document(*command: str, code: int = Exit.OK) -> Any:
    return json.loads(run(*command, "--json", code=code))


def problem(*command: str, code: int = Exit.INVALID) -> Any:
    return document(*command, code=code)["error"]


# --- a ledger that is not there -------------------------------------------------


@pytest.mark.spec("LED-9")
@pytest.mark.parametrize("verb", ["submit", "backfill"])
def test_a_mistyped_ledger_is_not_begun(
    verb: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("init")
    run("release", "submit", "one.yaml")
    run("release", "submit", "two.yaml", code=Exit.DENIED)
    before = sorted(folder.iterdir())
    command = ("release", verb, "two.yaml", "--ledger", "ledgr.db")
    missing = problem(*command, "--policy", "policy.yaml", code=Exit.USAGE)
    assert missing["code"] == "MOD701"
    assert "ledgr.db" in missing["message"]
    assert "modicum init" in missing["help"]
    monkeypatch.setenv("MODICUM_POLICY", "policy.yaml")
    assert problem(*command, code=Exit.USAGE)["code"] == "MOD701"
    assert sorted(folder.iterdir()) == before


def test_what_is_asked_of_no_ledger_says_so(folder: Path) -> None:
    where = ("--policy", "policy.yaml", "--ledger", "ledgr.db")
    assert "assumes an empty ledger" in run("release", "check", "one.yaml", *where)
    run("release", "check", "one.yaml", "--ledger", "ledgr.db", code=Exit.USAGE)
    text = "there is no ledger at ledgr.db: using an empty one"
    Path("much.yaml").write_text(
        "{release: much, mechanisms: [{mechanism: gaussian, attributes: [age],"
        " sensitivity: {user: {l2: 1}}, sigma: 0.1}]}"
    )
    assert text in run("release", "fit", "much.yaml", *where)
    assert text in run("ledger", "balance", "global @standard", *where)
    assert "none exists yet" in run("status", *where)
    assert not (folder / "ledgr.db").exists()


def test_the_api_still_begins_a_ledger(folder: Path) -> None:
    workspace = mo.open(folder / "new.db", policy=folder / "policy.yaml")
    assert workspace.submit(counts("one")).allowed
    assert workspace.exists()


def test_init_says_what_holds_already() -> None:
    assert document("init")["changed"] is True
    assert "is already active" in run("init")
    assert document("init")["changed"] is False
    Path("other.yaml").write_text(POLICY.replace("name: small", "name: other"))
    stands = problem("init", "--policy", "other.yaml", code=Exit.USAGE)
    assert stands["code"] == "MOD708"
    assert "modicum policy activate" in stands["help"]
    assert "--ledger" not in stands["help"]


# --- heads ----------------------------------------------------------------------


def test_a_head_may_be_noted_as_it_is_printed() -> None:
    run("init")
    head = document("status")["ledger"]["head"]
    assert head[:12] in run("status")
    run("release", "submit", "one.yaml")
    for noted in (head, head[:12], head[:20].upper(), f" {head[:12]} "):
        assert document("ledger", "verify", "--head", noted)["noted"] == 1
    for other in ("0" * 12, head[:-1] + ("0" if head[-1] != "0" else "1")):
        lost = problem("ledger", "verify", "--head", other, code=Exit.BROKEN)
        assert lost["code"] == "MOD702"
    for no_head in ("", " ", head[:11], "entry-1-here", head + "0", "é" * 12):
        printed = run("ledger", "verify", "--head", no_head, code=Exit.USAGE)
        assert "not a head" in printed


def test_digits_that_begin_two_hashes_are_no_head() -> None:
    from modicum.cli.verification import whole_head

    first, second = "a" * 12 + "0" * 52, "a" * 12 + "1" * 52
    with pytest.raises(Exception, match="more digits"):
        whole_head("a" * 12, [first, second])
    assert whole_head("a" * 12 + "1", [first, second]) == second
    assert whole_head("b" * 12, [first, second]) == "b" * 12


# --- approvals by id ------------------------------------------------------------


@pytest.fixture
def asked() -> None:
    """Begin a ledger whose policy asks people about a public release `one`."""
    Path("policy.yaml").write_text(ASKING)
    run("init")
    write("one", audience="public")


APPROVALS = ("release", "approvals")


@pytest.mark.usefixtures("asked")
def test_nobody_knows_an_id_that_nobody_spoke_about() -> None:
    assert problem(*APPROVALS, "nonsense")["code"] == "MOD704"
    run("release", "submit", "one.yaml", code=Exit.NEEDS_APPROVAL)
    assert problem(*APPROVALS, "one")["code"] == "MOD704"


@pytest.mark.usefixtures("asked")
def test_by_id_no_more_is_given_than_by_file() -> None:
    reject = ("release", "reject", "one.yaml", "--reason", "no", "--actor", "pavel")
    run(*reject)
    for subject in ("one.yaml", "one"):
        printed = run(*APPROVALS, subject, code=Exit.NEEDS_APPROVAL)
        assert "rejected by pavel" in printed
        assert "MISSING" in printed
    found = document(*APPROVALS, "one", code=Exit.NEEDS_APPROVAL)
    assert found["exact"] is False
    assert len(found["approvals"]) == 2  # Its file would tell that one is enough.
    run("release", "approve", "one.yaml", "--reason", "yes", "--actor", "pavel")
    run(*APPROVALS, "one.yaml")
    assert "the most it can need" in run(*APPROVALS, "one", code=Exit.NEEDS_APPROVAL)
    run("release", "submit", "one.yaml")
    assert "no approval is pending" in run(*APPROVALS, "one")


@pytest.mark.usefixtures("asked")
def test_what_was_denied_is_weighed_by_its_contents() -> None:
    write("one", audience="public", rho="1")
    reject = ("release", "reject", "one.yaml", "--reason", "no", "--actor", "pavel")
    run(*reject)
    run("release", "submit", "one.yaml", code=Exit.DENIED)
    found = document(*APPROVALS, "one", code=Exit.NEEDS_APPROVAL)
    assert (found["exact"], len(found["approvals"])) == (True, 1)


@pytest.mark.usefixtures("asked")
def test_words_about_other_contents_are_marked() -> None:
    why = ("--reason", "so", "--actor")
    run("release", "reject", "one.yaml", *why, "pavel")
    write("one", audience="public", rho="0.002")
    run("release", "approve", "one.yaml", *why, "olga")
    printed = run(*APPROVALS, "one.yaml")
    assert "pavel rejected (other contents) as officer" in printed
    assert "olga approved as officer" in printed
    votes = document(*APPROVALS, "one.yaml")["votes"]
    assert [one["current"] for one in votes] == [False, True]
    assert problem(*APPROVALS, "one")["code"] == "MOD703"


# --- narrow terminals -----------------------------------------------------------


def narrow(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    def console(*, stderr: bool = False) -> Console:
        return Console(stderr=stderr, highlight=False, width=columns)

    monkeypatch.setattr(output, "console", console)


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_no_name_is_cut_on_a_narrow_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "counts-of-stays-by-ward-and-month-2026"
    run("init")
    write(name)
    run("release", "submit", f"{name}.yaml")
    narrow(monkeypatch, columns)
    listed = run("ledger", "list").splitlines()
    assert "SEQ" in listed[0]
    assert "WHAT" in listed[0]
    assert listed[2].startswith("2 ")
    assert name in listed[2]
    assert ("HASH" in listed[0]) == (columns >= 120)
    assert all(len(line) <= columns for line in listed) or columns < 70
    shown = run("status")
    for rule in ("attr:diagnosis @standard", "global @black-box"):
        assert rule in shown
    listed = run("release", "list").splitlines()
    assert name in listed[1]


def test_times_are_told_to_the_second() -> None:
    run("init")
    (entry,) = document("ledger", "list")["entries"]
    assert f"{entry['at'][:19]}Z" in run("ledger", "list")
    assert entry["at"] not in run("ledger", "list")


# --- one release, and all of them -----------------------------------------------


def test_a_release_is_shown_with_all_that_is_known_of_it() -> None:
    text = parted.POLICY.replace("NEIGHBORS", "add-remove")
    Path("policy.yaml").write_text(text)
    run("init")
    where = {"country": ["CH", "DE"], "birth": [{"from": 1990, "to": 1991}]}
    one = parted.mechanism(
        where=where, periods="2026-05", sensitivity={"user": {"l2": 1}}, sigma=9
    )
    one["cost"] = {"user-month": {"rho": 0.1}}
    release = {"release": "part", "purpose": "planning", "mechanisms": [one]}
    Path("part.yaml").write_text(json.dumps(release))
    run("release", "submit", "part.yaml", "--actor", "ben")
    printed = run("release", "show", "part")
    for part in (
        "part: reserved (entry 2)",
        "release-reserved by ben",
        "reserved until 20",
        "where birth 1990 to 1991, country CH or DE",
        "periods 2026-05",
        "sigma 9",
        "mu squared",
        "purpose: planning",
    ):
        assert part in printed, (part, printed)
    run("release", "start", "part", "--actor", "mia")
    printed = run("release", "show", "part")
    assert "release-started by mia" in printed
    assert "reserved until" not in printed
    shown = document("release", "show", "part")
    (mechanism,) = shown["mechanisms"]
    assert mechanism["where"] == [{"birth": [[1990, 1991]], "country": ["CH", "DE"]}]
    assert mechanism["periods"] == [["2026-05-01", "2026-05-31"]]
    assert [(one["entry"], one["actor"], one["kind"]) for one in shown["story"]] == [
        (2, "ben", "release-reserved"),
        (3, "mia", "release-started"),
    ]


def test_a_sample_is_told_wherever_its_release_is() -> None:
    sampled = {
        "name": "counts",
        "mechanism": "laplace",
        "attributes": ["age"],
        "scale": 20,
        "sensitivity": {"user": {"l1": 1}},
    }
    written = {
        "release": "sampled",
        "sampling": {"unit": "user", "rate": 0.1},
        "mechanisms": [sampled],
    }
    Path("sampled.yaml").write_text(json.dumps(written))
    run("init", "--policy", "policy.yaml")
    text = "on a fresh Poisson sample of 10 % by user"
    note = f"mechanism `counts` runs {text}, which must stay secret"
    assert f"note: {note}" in run("release", "check", "sampled.yaml")
    decided = document("release", "submit", "sampled.yaml")
    assert note in decided["notices"]
    shown = run("release", "show", "sampled")
    assert f"    runs {text}\n" in shown
    (mechanism,) = document("release", "show", "sampled")["mechanisms"]
    assert mechanism["sampling"] == {"unit": "user", "rate": "0.1"}
    # ln(1 + 0.1 (exp(0.05) - 1)) and no more.
    assert mechanism["losses"]["user"]["eps"] == pytest.approx(0.005114011, abs=1e-8)
    run("ledger", "verify")


def test_releases_are_listed_by_where_they_stand() -> None:
    run("init")
    for name in ("a", "b", "c"):
        write(name)
        run("release", "submit", f"{name}.yaml")
    run("release", "start", "b")
    run("release", "cancel", "c", "--reason", "called off")
    listed = document("release", "list")["releases"]
    assert [(one["release"], one["status"], one["entry"]) for one in listed] == [
        ("a", "reserved", 2),
        ("b", "started", 3),
        ("c", "canceled", 4),
    ]
    (stuck,) = document("release", "list", "--status", "started")["releases"]
    assert (stuck["release"], stuck["expires_at"]) == ("b", None)
    both = ("--status", "started", "--status", "canceled")
    assert len(document("release", "list", *both)["releases"]) == 2
    assert "no release has this status" in run(
        "release", "list", "--status", "published"
    )
    run("release", "list", "--status", "denied", code=Exit.USAGE)
    then = document("release", "list", "--as-of", "3")["releases"]
    assert [one["status"] for one in then] == ["reserved", "reserved"]
    unknown = problem("release", "start", "d")
    assert "modicum release list" in unknown["help"]


def test_of_a_denied_release_it_is_said_when() -> None:
    run("init")
    run("release", "submit", "one.yaml", "--publish")
    write("past")
    run("release", "submit", "two.yaml", code=Exit.DENIED)
    # The same again adds nothing, until something else is counted.
    assert "denied before, with entry 5" in run(
        "release", "submit", "two.yaml", code=Exit.DENIED
    )
    run("release", "backfill", "past.yaml")
    run("release", "submit", "two.yaml", code=Exit.DENIED)
    last = document("ledger", "list")["entries"][-1]
    denied = problem("release", "show", "two")
    assert denied["code"] == "MOD704"
    assert f"2 times, the last time with entry {last['seq']}" in denied["message"]
    assert denied["notes"] == [f"denied by {', '.join(last['blocking'])}"]
    assert f"--as-of {last['seq'] - 1}" in denied["help"]
    point = ("--as-of", str(last["seq"] - 1))
    run("release", "check", "two.yaml", *point, code=Exit.DENIED)
    for unknown in ("three", "", "\udcff", '"', "x" * 300):
        assert "unknown release" in problem("release", "show", unknown)["message"]
        assert problem("release", "approvals", unknown)["code"] == "MOD704"


def test_each_state_has_its_own_remedy() -> None:
    run("init")
    for name in ("kept", "gone"):
        write(name)
        run("release", "submit", f"{name}.yaml")
    run("release", "cancel", "gone", "--reason", "called off")
    past = "past"
    write(past)
    run("release", "backfill", "past.yaml")

    def advice(*command: str) -> str:
        found = problem("release", *command)
        assert found["code"] == "MOD705", found
        return str(found["help"])

    assert "start it first" in advice("publish", "kept")
    run("release", "start", "kept")
    for command in (("start", "kept"), ("cancel", "kept", "--reason", "so")):
        assert "got no response" in advice(*command)
    run("release", "publish", "kept")
    assert "nothing is left to do" in advice("publish", "kept")
    for command in (("start", "gone"), ("submit", "gone.yaml")):
        assert "submit it under a new id" in advice(*command)
    assert "a past release" in advice("start", past)
    write("kept", rho="0.003")
    twice = problem("release", "submit", "kept.yaml")
    assert twice["code"] == "MOD703"
    assert "it stays counted" in twice["help"]


def test_what_stands_needs_no_fit() -> None:
    run("init")
    run("release", "submit", "one.yaml")
    printed = run("release", "fit", "one.yaml")
    assert printed == "one already exists (reserved): no change is needed\n"
    assert document("release", "fit", "one.yaml")["found"] is False
    run("release", "options", "one.yaml")


# --- the active policy ----------------------------------------------------------


def test_the_active_policy_can_be_read(folder: Path) -> None:
    run("init")
    run("release", "submit", "one.yaml")
    assert run("policy", "show") == POLICY
    shown = document("policy", "show")
    status = document("status")
    assert (shown["name"], shown["entry"], shown["text"]) == ("small", 1, POLICY)
    assert shown["digest"] == status["policy"]["digest"]
    assert status["active"]["entry"] == 1
    assert status["policy"]["active"] is True
    assert "policy `small`" in run("status")
    denied = run("release", "check", "two.yaml", code=Exit.DENIED)
    place = denied.split("(active):")[1]
    line = int(place.split(":")[0])
    (named,) = [
        one
        for one in run("policy", "show", "--numbers").splitlines()
        if one.strip().startswith(f"{line} ")
    ]
    assert named.endswith(POLICY.splitlines()[line - 1])
    Path("other.yaml").write_text(POLICY.replace("name: small", "name: other"))
    assert "active is `small`" in run("status", "--policy", "other.yaml")
    run("policy", "activate", "other.yaml", "--reason", "a name")
    assert "name: other" in run("policy", "show")
    assert run("policy", "show", "--as-of", "2") == POLICY
    run("policy", "show", "--ledger", "none.db", code=Exit.USAGE)


def test_a_rule_of_the_active_policy_is_explained() -> None:
    run("init")
    explain = ("policy", "explain", "active", "global @standard")
    printed = run(*explain, "--ledger", "ledger.db")
    assert "(active):" in printed
    assert run(*explain) == printed  # That is the ledger if none is named.
    by_file = ("policy", "explain", "policy.yaml", "global @standard")
    ours, theirs = (
        document(*one, "--ledger", "ledger.db")["rules"][0]
        for one in (explain, by_file)
    )
    assert {**ours, "origins": ()} == {**theirs, "origins": ()}


def test_status_says_in_how_many_cells_a_rule_is_over() -> None:
    Path("policy.yaml").write_text(parted.POLICY.replace("NEIGHBORS", "add-remove"))
    run("init")
    one = parted.mechanism(where={"country": "CH"}, periods="2026-05")
    one["cost"] = parted.costs("5")
    release = {"release": "past", "mechanisms": [one]}
    Path("past.yaml").write_text(json.dumps(release))
    run("release", "backfill", "past.yaml")
    rows = document("status")["rules"]
    assert {row["state"] for row in rows} == {"near", "OVER"}
    printed = run("status").splitlines()
    for row in rows:
        (line,) = [one for one in printed if one.startswith(row["rule"] + " ")]
        count = row["cells_denying"]
        state = f"OVER in {count} cell{'' if count == 1 else 's'}"
        assert (state in line) == (row["state"] == "OVER"), line


# --- being interrupted ----------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_who_interrupts_is_answered() -> None:
    held = (
        "import sqlite3, sys, time\n"
        "from modicum.storage.sqlite_store import SqliteStore\n"
        "with SqliteStore('ledger.db').turn():\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    run("init")
    holder = subprocess.Popen(
        [sys.executable, "-c", held],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    starter = (  # It is interrupted once it stands in line for the turn.
        "import contextlib, os, signal, threading, time\n"
        "from modicum.cli.main import main\n"
        # Else a shell's background job, which ignores interrupts, hands that on.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def is_in_line():\n"
        "    for one in os.listdir('/proc/self/fd'):\n"
        "        with contextlib.suppress(OSError):  # It may be closed by now.\n"
        "            if os.readlink(f'/proc/self/fd/{one}').endswith('.queue'):\n"
        "                return True\n"
        "    return False\n"
        "def interrupt():\n"
        "    while not is_in_line():\n"
        "        time.sleep(0.01)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=interrupt, daemon=True).start()\n"
        "main()\n"
    )
    with holder:
        waiting = subprocess.run(
            [sys.executable, "-c", starter, "release", "submit", "one.yaml"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert holder.stdin is not None
        holder.stdin.close()
    assert signal.SIGINT + 128 == Exit.INTERRUPTED == waiting.returncode
    assert "interrupted: " in waiting.stderr


# --- many equal mistakes --------------------------------------------------------


def test_equal_mistakes_in_a_file_of_past_releases_are_told_once() -> None:
    run("init")
    past = [{**counts(f"r{number}"), "date": "2020-01-01"} for number in range(104)]
    Path("past.yaml").write_text(json.dumps(past, indent=0))
    text = run("release", "backfill", "past.yaml", code=Exit.INVALID)
    assert text.count("unknown key `date`") == 1
    assert "found 104 times" in text
    assert 'did you mean "released_on"?' in text
    found = document("release", "backfill", "past.yaml", code=Exit.INVALID)
    assert len(found["problems"]) == 104


# --- a denial -------------------------------------------------------------------


def test_a_denial_shows_the_rules_that_deny_and_counts_the_others() -> None:
    run("init")
    run("release", "submit", "one.yaml")
    run("release", "submit", "two.yaml", code=Exit.DENIED)  # Each further one says so.
    for verb in ("check", "submit"):
        short = run("release", verb, "two.yaml", code=Exit.DENIED).splitlines()
        whole = run("release", verb, "two.yaml", "--all", code=Exit.DENIED).splitlines()
        over = [line for line in whole if line.startswith("  OVER ")]
        holding = [line for line in whole if line.startswith("  ok  ")]
        assert over
        assert len(holding) > 1
        more = f"  {len(holding)} other rules hold (--all shows them)"
        assert short == [
            line
            for line in (more if one == holding[0] else one for one in whole)
            if line not in holding
        ]
        found = document("release", verb, "two.yaml", code=Exit.DENIED)
        assert len(found["losses"]) == len(over) + len(holding)


def test_a_release_that_is_allowed_shows_every_rule() -> None:
    run("init")
    text = run("release", "check", "one.yaml")
    assert text.count("\n  ok  ") > 1
    assert "more rules" not in text


# --- a loss that follows from another -------------------------------------------

DEVICES = POLICY.replace(
    "units: {user: {id: user_id}}",
    "units: {user: {id: user_id},"
    " device: {id: device_id, within: user, neighbors: substitute}}",
)
HOW = "4 x user, 2 removals and 2 additions"


def test_a_derived_loss_says_how_when_it_is_asked_for_and_later() -> None:
    Path("policy.yaml").write_text(DEVICES)
    run("init")
    (one,) = counts("one", rho=0.0001)["mechanisms"]
    stated = {"user": {"rho": 0.0001}, "device": {"rho": 0.0001}}
    two = [{**one, "name": "a"}, {**one, "name": "b", "cost": stated}]
    Path("one.yaml").write_text(json.dumps({"release": "one", "mechanisms": two}))
    note = f"the loss of a per device is derived from {HOW}"
    assert f"  note: {note}\n" in run("release", "check", "one.yaml")
    assert note in document("release", "check", "one.yaml")["notices"]
    run("release", "submit", "one.yaml")
    shown = run("release", "show", "one")
    assert shown.count("(derived from ") == 1
    loss = "eps inf, rho 0.0016, mu2 (mu squared) 0.0032"
    assert f"  per device: {loss}  (derived from {HOW})" in shown
    first, second = document("release", "show", "one")["mechanisms"]
    assert first["derived"] == {"device": HOW}
    assert second["derived"] == {}


def test_a_loss_that_all_mechanisms_derive_names_none() -> None:
    Path("policy.yaml").write_text(DEVICES)
    run("init")
    assert f"the loss per device is derived from {HOW}" in run(
        "release", "check", "one.yaml"
    )
