"""The command line: exit codes, documents, and nothing written by asking."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from samples.small import POLICY, counts
from typer.main import get_command
from typer.testing import CliRunner

from modicum.cli.exit_codes import Exit
from modicum.cli.group import group_of
from modicum.cli.main import app

RUNNER = CliRunner()

RELEASE = """
release: {name}
mechanisms:
  - mechanism: gaussian
    attributes: [diagnosis]
    sensitivity: {{user: {{l2: 1}}}}
    sigma: {sigma}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a policy and three releases, as working directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("MODICUM_LEDGER", "MODICUM_POLICY", "MODICUM_ACTOR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "policy.yaml").write_text(POLICY)
    for name, sigma in (("one", "6.4516"), ("two", "6.4516"), ("big", "0.5")):
        text = RELEASE.format(name=name, sigma=sigma)
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def run(*args: str, exit_code: int = 0) -> str:
    result = RUNNER.invoke(app, args)
    assert result.exit_code == exit_code, (result.output, result.exception)
    return str(result.stdout)


def document(*args: str, exit_code: int = 0) -> Any:
    return json.loads(run(*args, "--json", exit_code=exit_code))


def test_the_main_job(folder: Path) -> None:
    assert "ok (" in run("policy", "lint", "policy.yaml")
    assert "is active" in run("init", "--policy", "policy.yaml")
    assert "ALLOW one" in run("release", "check", "one.yaml")
    assert "reserved until" in run("release", "submit", "one.yaml")
    assert "DENY two" in run("release", "submit", "two.yaml", exit_code=3)
    assert "started" in run("release", "start", "one")
    assert "published" in run("release", "publish", "one")
    shown = run("release", "show", "one")
    assert "reads diagnosis" in shown
    assert "rho 0.01201" in shown
    assert "release-denied" in run("ledger", "list")
    assert "chain ok, 5 entries, 2 decisions" in run("ledger", "verify")
    assert "attr:diagnosis @standard" in run("status")


def test_the_documented_decision(folder: Path) -> None:
    """Two releases of rho 0.012012: about 0.76 each, and 1.0966 together."""
    for name in ("one", "two"):
        (folder / f"{name}.json").write_text(json.dumps(counts(name, rho="0.012012")))
    run("init", "--policy", "policy.yaml")
    where = ("--policy", "policy.yaml", "--ledger", "ledger.db")
    allowed = document("release", "check", "one.json", *where)
    assert allowed["decision"] == "allow"
    assert allowed["blocking"] == []
    run("release", "submit", "one.json", "--publish")
    denied = document("release", "check", "two.json", *where, exit_code=3)
    assert denied["decision"] == "deny"
    assert denied["blocking"] == ["attr:diagnosis @standard"]
    rows = {row["rule"]: row for row in denied["losses"]}
    row = rows["attr:diagnosis @standard"]
    assert {"rule", "unit", "before", "alone", "together", "limit", "measure"} <= set(
        row
    )
    assert (row["unit"], row["measure"], row["limit"]) == ("user", "eps", 1.0)
    near = row["approx_dp"]
    assert near["delta"] == 1e-7
    # Never below the value computed with 40 digits, and at most 1e-6 above it.
    assert near["before"] == near["alone"]
    assert 0 <= near["alone"] - 0.7599866484447 < 1e-6
    assert 0 <= near["together"] - 1.0965831608827 < 1e-6
    assert near["method"] == "zcdp"
    # The filter's own figure stands beside it, and is what decides.
    assert near["together"] < row["together"] < 1.2
    assert row["filter"]["coordinate"] == "rho"
    assert row["filter"]["together"] == pytest.approx(0.024024, abs=1e-12)
    assert row["filter"]["together"] > row["filter"]["cap"]
    for one in denied["losses"]:
        assert (float(one["together"]) > float(one["limit"])) == (
            one["rule"] in denied["blocking"]
        )


def test_infinity_is_text(folder: Path) -> None:
    run("init", "--policy", "policy.yaml")
    release = json.dumps(counts("inf", rho="5000000"))
    (folder / "inf.json").write_text(release)
    denied = document("release", "check", "inf.json", exit_code=3)
    assert denied["losses"][0]["together"] == "inf"


def test_checking_writes_nothing(folder: Path) -> None:
    def everything() -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in folder.iterdir()}

    before = everything()
    document("release", "check", "one.yaml", "--policy", "policy.yaml")
    assert everything() == before  # No ledger is made by asking.
    run("init", "--policy", "policy.yaml")
    before = everything()
    for args in (
        ("release", "check", "one.yaml"),
        ("release", "check", "one.yaml", "--policy", "policy.yaml"),
        ("status",),
        ("ledger", "list"),
        ("ledger", "verify"),
        ("policy", "compile", "policy.yaml"),
    ):
        document(*args)
    document("release", "check", "big.yaml", exit_code=3)
    document("release", "show", "one", exit_code=4)
    assert everything() == before


def test_a_missing_ledger_is_an_error_unless_a_policy_begins_one(folder: Path) -> None:
    refused = document("release", "check", "one.yaml", exit_code=2)
    assert refused["error"]["code"] == "MOD701"
    started = document("release", "check", "one.yaml", "--policy", "policy.yaml")
    assert any("is empty" in notice for notice in started["notices"])
    for args in (("status",), ("ledger", "list"), ("ledger", "verify")):
        assert document(*args, exit_code=2)["error"]["code"] == "MOD701"
    assert not (folder / "ledger.db").exists()


def test_another_policy_is_stale(folder: Path) -> None:
    run("init", "--policy", "policy.yaml")
    (folder / "other.yaml").write_text(POLICY.replace("name: small", "name: other"))
    checked = document("release", "check", "one.yaml", "--policy", "other.yaml")
    assert checked["policy"]["active"] is False
    stale = document(
        "release", "submit", "one.yaml", "--policy", "other.yaml", exit_code=7
    )
    assert stale["error"]["code"] == "MOD602"


def test_a_broken_ledger_exits_six_everywhere(folder: Path) -> None:
    run("init", "--policy", "policy.yaml")
    run("release", "submit", "one.yaml")
    path = folder / "ledger.db"
    image = path.read_bytes()
    at = (
        image.index(b'"reserved"')
        if b'"reserved"' in image
        else image.index(b'"sigma"')
    )
    path.write_bytes(image[:at] + bytes([image[at] ^ 1]) + image[at + 1 :])
    for args in (
        ("ledger", "verify"),
        ("release", "check", "two.yaml"),
        ("release", "submit", "two.yaml"),
        ("status",),
    ):
        assert document(*args, exit_code=6)["error"]["code"] == "MOD702"


def test_the_head_tells_a_cut(folder: Path) -> None:
    run("init", "--policy", "policy.yaml")
    head = document("ledger", "verify")["head"]
    run("release", "submit", "one.yaml")
    later = document("ledger", "verify")["head"]
    assert document("ledger", "verify", "--head", head)["noted"] == 1
    assert document("ledger", "verify", "--head", later)["noted"] == 2
    with closing(sqlite3.connect(folder / "ledger.db")) as connection:
        connection.execute("DELETE FROM events WHERE seq = 2")
        connection.commit()
    assert document("ledger", "verify")["entries"] == 1  # Whole, but shorter.
    cut = document("ledger", "verify", "--head", later, exit_code=6)
    assert cut["error"]["code"] == "MOD702"


def test_usage_is_two_and_malformed_is_four(folder: Path) -> None:
    run("release", "check", exit_code=2)
    run("release", "submit", "one.yaml", "--expires-in", "soon", exit_code=2)
    missing = document("policy", "lint", "none.yaml", exit_code=4)
    assert missing["error"]["code"] == "MOD001"
    (folder / "bad.yaml").write_text("release: [\n")
    broken = document(
        "release", "check", "bad.yaml", "--policy", "policy.yaml", exit_code=4
    )["error"]
    assert (broken["code"], broken["file"]) == ("MOD003", "bad.yaml")
    assert not (folder / "ledger.db").exists()
    run("init", "--policy", "policy.yaml")
    run("release", "submit", "one.yaml", "--expires-in", "9999d", exit_code=4)


def test_a_release_from_standard_input(folder: Path) -> None:
    result = RUNNER.invoke(
        app,
        ["release", "check", "-", "--policy", "policy.yaml", "--json"],
        input=json.dumps(counts("r-1")),
    )
    assert result.exit_code == 0
    assert json.loads(result.stdout)["release"] == "r-1"


def test_the_past_from_a_list(folder: Path) -> None:
    past = json.dumps([counts("old-1"), counts("old-2", rho="0.5")])
    (folder / "past.json").write_text(past)
    run("init")
    output = run("release", "backfill", "past.json")
    assert "old-1: recorded\n" in output
    assert "old-2: recorded; " in output
    assert document("status")["releases"] == 2


def test_void_needs_a_reason(folder: Path) -> None:
    run("init")
    run("release", "submit", "one.yaml")
    run("release", "cancel", "one", exit_code=2)
    assert "canceled" in run("release", "cancel", "one", "--reason", "called off")


def test_the_compiled_policy_as_a_document(folder: Path) -> None:
    compiled = document("policy", "compile", "policy.yaml")
    assert compiled["base_rules"] == 1 + 3 + 3
    assert compiled["rules"] == 14
    assert compiled["release_rules"] == 1
    assert len(compiled["list"]) == 15
    first = compiled["list"][0]
    assert first["id"] == "global @standard"
    assert first["budget"] == "{eps: 2, delta: 1e-7}"
    assert all(mark.startswith("policy.yaml:") for mark in first["source"])
    assert document("policy", "lint", "policy.yaml")["rules"] == 14


def test_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    output = run("demo", "--dir", "acme")
    for part in (
        "base rules",
        "40 releases recorded",
        "ALLOW prevalence",
        "OVER",
        "DENY cohort-diagnosis",
        "Next steps",
    ):
        assert part in output
    assert (tmp_path / "acme" / "policy.yaml").exists()
    assert (tmp_path / "acme" / "ledger.db").exists()
    assert len(list((tmp_path / "acme" / "releases").glob("*.yaml"))) == 6
    monkeypatch.chdir(tmp_path / "acme")
    status = document("status")
    over = [row["rule"] for row in status["rules"] if row["state"] == "OVER"]
    assert over == ["attr:salary @standard"]
    assert document("ledger", "verify")["decisions"] == 6
    monkeypatch.chdir(tmp_path)
    run("demo", "--dir", "acme", exit_code=2)  # Nothing is overwritten.
    run("demo", "nowhere", exit_code=4)
    again = run("demo", "--dir", "acme2").replace("acme2", "acme")
    same = [line for line in output.splitlines() if "head" not in line]
    assert same == [line for line in again.splitlines() if "head" not in line]
    past = [
        (tmp_path / d / "past-releases.yaml").read_bytes() for d in ("acme", "acme2")
    ]
    assert past[0] == past[1]


def test_an_unforeseen_error_shows_no_traceback(tmp_path: Path) -> None:
    script = (
        "import modicum.cli.policy as p, modicum.cli.main as m, sys\n"
        "def boom(_): raise KeyError('row 7')\n"
        "p._load = boom\n"
        "sys.argv = ['modicum', 'policy', 'lint', 'x']\n"
        "m.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "MOD900" in done.stderr
    assert "Traceback" not in done.stderr
    assert "row 7" not in done.stderr


GAUSSIAN = """\
release: one
mechanisms:
  - mechanism: gaussian
    attributes: [diagnosis]
    sensitivity: {user: {l2: 1}}
    sigma: 6.5
"""

#: Ten ways to be wrong: what is changed, in which file, the code, and the place.
MALFORMED = {
    "unknown key": ("release", ("sigma: 6.5", "sigmaa: 6.5"), "MOD102", (6, 5)),
    "unknown attribute": ("release", ("[diagnosis]", "[diagnoses]"), "MOD117", (4, 18)),
    "quoted number": ("release", ("sigma: 6.5", 'sigma: "6.5"'), "MOD105", (6, 12)),
    "negative sigma": ("release", ("sigma: 6.5", "sigma: -6.5"), "MOD106", (6, 12)),
    "nan": ("release", ("sigma: 6.5", "sigma: .nan"), "MOD106", (6, 12)),
    "other contents": (
        "release",
        ("sigma: 6.5", "sigma: 7"),
        "MOD703",
        (1, 10),
    ),
    "delta 0": ("policy", ("delta: 1e-7}}", "delta: 0}}"), "MOD106", (4, 44)),
    "delta 1": ("policy", ("delta: 1e-7}}", "delta: 1}}"), "MOD106", (4, 44)),
    "missing cost": (
        "release",
        ("sensitivity: {user: {l2: 1}}\n    sigma: 6.5", "cost: {}"),
        "MOD501",
        (5, 11),
    ),
    "bad CEL": ("policy", ('m.ml == "none"', 'm.ml = "none"'), "MOD301", (23, 30)),
    "binary file": ("release", ("release", "\x00\xff"), "MOD002", (1, 2)),
}


@pytest.mark.spec("LED-11")
@pytest.mark.parametrize("wrong", MALFORMED)
@pytest.mark.parametrize("verb", ["check", "submit"])
def test_malformed_input_is_refused_with_its_place_and_changes_nothing(
    folder: Path, wrong: str, verb: str
) -> None:
    run("init", "--policy", "policy.yaml")
    (folder / "release.yaml").write_text(GAUSSIAN)
    run("release", "submit", "release.yaml")
    kind, (old, new), code, (line, column) = MALFORMED[wrong]
    broken = folder / f"{kind}.yaml"
    text = broken.read_text()
    assert old in text
    broken.write_text(text.replace(old, new, 1), encoding="latin-1")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    args = ("release", verb, "release.yaml", "--policy", "policy.yaml")
    error = document(*args, exit_code=4)["error"]
    place = (error["file"], error["line"], error["column"])
    assert (error["code"], place) == (code, (broken.name, line, column))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def every_command(group: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the words of each command and of each group of commands."""
    found = [path]
    for name, command in getattr(group, "commands", {}).items():
        found += every_command(command, (*path, name))
    return found


COMMANDS = every_command(get_command(app))


def test_every_command_is_found() -> None:
    assert len(COMMANDS) > 100
    assert ("release", "check") in COMMANDS


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_h_is_help_for_every_command(command: tuple[str, ...]) -> None:
    assert run(*command, "-h") == run(*command, "--help")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("check", "`modicum release check`"),
        ("submit", "`modicum release submit` or `modicum escrow submit`"),
        ("start", "`modicum release start`"),
        ("publish", "`modicum release publish`"),
        (
            "approve",
            "`modicum policy approve` or `modicum release approve`"
            " or `modicum escrow approve`",
        ),
        ("verify", "`modicum ledger verify` or `modicum audit verify`"),
        ("chek", "`modicum release check`"),
        ("relese", "`modicum release`"),
        ("release sbmit", "`modicum release submit`"),
        ("release verify", "`modicum ledger verify` or `modicum audit verify`"),
        ("policy list", "`modicum policy lint` or `modicum release list`"),
    ],
)
def test_an_unknown_command_is_looked_for_among_all(typed: str, meant: str) -> None:
    found = RUNNER.invoke(app, typed.split())
    assert found.exit_code == 2
    last = typed.rsplit(maxsplit=1)[-1]
    text = f"No such command '{last}'. Did you mean {meant}"
    assert text in " ".join(found.output.split())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("release post", "release publish"),
        ("release void", "release cancel"),
        ("release record-past", "release backfill"),
        ("query lower", "query compile"),
    ],
)
def test_earlier_names_of_commands_work_and_are_not_listed(old: str, new: str) -> None:
    group, name = old.split()
    assert run(*old.split(), "-h") == run(*new.split(), "-h").replace(
        f"modicum {new}", f"modicum {old}"
    )
    assert f"  {name} " not in run(group, "-h")


def test_help_lists_rarer_commands_below_the_others() -> None:
    for group, rare in (
        ((), ("escrow", "workload")),
        (("plan",), ("rotation", "simulate", "compare")),
    ):
        usual, _, advanced = run(*group, "-h").partition("Advanced:")
        for name in rare:
            assert f"\n  {name} " not in usual
            assert f"\n  {name} " in advanced


def test_an_unknown_command_like_no_other_gets_no_suggestion() -> None:
    found = RUNNER.invoke(app, ["zzz"])
    assert found.exit_code == 2
    assert "No such command 'zzz'." in found.output
    assert "Did you mean" not in found.output


@pytest.mark.parametrize(
    ("kind", "option", "values"),
    [
        (str, {}, ["", "text", None]),
        (Path, {}, ["a//b/./c", "none", ".", Path("a"), None]),
        (Path, {"exists": True}, [".", "none"]),
        (Path, {"dir_okay": False}, [".", "none"]),
        (list[str], {}, [["a", "b"], ("a",), [], None, "a"]),
        (list[Path], {}, [["a//b", "c"], [], None]),
        (int, {"min": 1}, ["3", "0", "x", 7, None]),
        (float, {}, ["0.5", "x", 0.25]),
        (Exit, {}, [Exit.OK, "no"]),
    ],
)
def test_parameters_are_read_as_typer_reads_them(
    kind: Any, option: dict[str, Any], values: list[object]
) -> None:
    app = typer.Typer()

    def command(given: Any) -> None: ...

    command.__annotations__["given"] = Annotated[
        kind, typer.Option("--given", **option)
    ]
    app.command()(command)
    (own,) = group_of(app, "").commands.values()
    usual = get_command(app)
    with typer.Context(own) as ctx:
        (quick, *_), (slow, *_) = own.get_params(ctx), usual.params
        for value in values:
            assert read(quick, value, ctx) == read(slow, value, ctx), value


def read(parameter: Any, value: object, ctx: Any) -> object:
    """Return what a parameter reads, or what it says is wrong."""
    try:
        found = parameter.get_runtime_param().coerce(value, parameter, ctx)
    except typer.BadParameter as error:
        return error.message
    return type(found), found
