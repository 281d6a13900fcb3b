"""`modicum query`: planned, described as a release, and run on DuckDB."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import typer
from samples import asked
from typer.testing import CliRunner

import modicum as mo
from modicum.api.local import Workspace
from modicum.cli.exit_codes import Exit
from modicum.cli.main import app
from modicum.cli.query import _sources
from modicum.cli.query_text import release_text
from modicum.core.document import from_python
from modicum.core.errors import Code, Problem, UnavailableError
from modicum.engines import factory
from modicum.engines.duckdb_engine import DuckdbEngine
from modicum.ops.files.queries import load_query

RUNNER = CliRunner()
CANARY = "canary-5309"
LITERAL = "77.5"
SCALAR = asked.COUNTED.replace("DATE_TRUNC('day', read_at) AS day, ", "").replace(
    "BY day, ", "BY "
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a ledger, a query and its data, as working directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("MODICUM_LEDGER", "MODICUM_POLICY", "MODICUM_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MODICUM_ACTOR", "ann")
    Path("policy.yaml").write_text(asked.POLICY)
    Path("tables.yaml").write_text(asked.TABLES)
    write("views")
    run("init")
    pq.write_table(views(), "views.parquet")
    pa.csv.write_csv(views(), "views.csv")
    return tmp_path


def views(number: int = 500) -> pa.Table:
    """Return views of pages in October, and one odd row."""
    start = datetime(2026, 10, 1, 6)  # noqa: DTZ001 - a time without a zone
    rows = [
        {
            "view_id": one,
            "user_id": f"{CANARY} u{one % 25}",
            "read_at": start + timedelta(hours=one),
            "page": ("main", "help", CANARY)[one % 3],
            "topic": f"{CANARY} {one % 2}",
            "amount": one / 7,
        }
        for one in range(number)
    ]
    return pa.Table.from_pylist(rows)


def write(name: str, sql: str = asked.COUNTED, **more: Any) -> None:
    node = from_python(asked.document(sql, **{"release": name, **more}))
    Path(f"{name}.yaml").write_text(release_text(node))


def run(*command: str, code: int = Exit.OK) -> str:
    """Return what a command prints; it must leave with a code."""
    found = RUNNER.invoke(app, command)
    assert found.exit_code == code, (command, found.output, found.exception)
    return found.stdout if code == Exit.OK else found.output


def document(*command: str, code: int = Exit.OK) -> Any:
    found = RUNNER.invoke(app, [*command, "--json"])
    assert found.exit_code == code, (command, found.output, found.exception)
    return json.loads(found.stdout)


def error(*command: str, code: int = Exit.INVALID) -> dict[str, Any]:
    found: dict[str, Any] = document(*command, code=code)["error"]
    return found


def status(release: str) -> str:
    found = document("release", "list")["releases"]
    known: dict[str, str] = {one["release"]: one["status"] for one in found}
    return known.get(release, "unknown")


# --- planned --------------------------------------------------------------------------


def told(name: str) -> dict[str, float]:
    """Return what a plan says that a query costs each unit."""
    (mechanism,) = document("query", "plan", f"{name}.yaml")["mechanisms"]
    return {unit: float(loss) for unit, loss in mechanism["losses"].items()}


@pytest.mark.spec("QRY-8")
def test_page_views_with_bounds_of_day_and_month() -> None:
    """Daily releases add up; one release of a month is charged jointly."""
    shared = {"user-day": 10, "user-month": 70}
    day = {"user-day": 10}
    cases: list[tuple[dict[str, int], str, str, float, float]] = [
        (shared, asked.COUNTED, "0.03", 0.03, 0.105),
        (day, asked.COUNTED, "0.015", 0.015, 0.465),
        (shared, SCALAR, "0.03", 0.03, 0.735),
    ]
    for bounds, sql, rho, of_day, of_month in cases:
        loss = {"user-day": {"rho": Fraction(rho)}}
        write("views", sql, bounds=bounds, loss=loss)
        found = told("views")
        assert found["user-day"] == pytest.approx(of_day, rel=1e-5)
        assert found["user-month"] == pytest.approx(of_month, rel=1e-5)
    document_ = document("query", "plan", "views.yaml")
    assert any(
        "rho = 4900 / (2 · 57.735²) = 0.735" in x for x in document_["derivation"]
    )


@pytest.mark.spec("QRY-8")
def test_a_month_of_daily_page_views_adds_up_in_the_ledger() -> None:
    loss = {"user-day": {"rho": Fraction("0.015")}}
    ledger = mo.open("ledger.db", actor="ann")
    for day in range(1, 32):
        period = f"2026-10-{day:02}"
        write("day", SCALAR, release=f"day-{day}", periods=period,
              bounds={"user-day": 10}, loss=loss)  # fmt: skip
        if day < 31:
            described = load_query("day.yaml", ledger.policy()).described
            assert ledger.submit(described).allowed, day
    decision = document("query", "plan", "day.yaml")["decision"]
    losses = {one["rule"]: one for one in decision["losses"]}
    assert losses["month"]["together"] == pytest.approx(0.465, rel=1e-5)
    assert losses["day"]["together"] == pytest.approx(0.015, rel=1e-5)


def test_a_plan_says_what_it_costs_how_far_it_strays_and_why() -> None:
    text = run("query", "plan", "views.yaml")
    assert "ALLOW views" in text
    assert "RHO / user-month" in text
    assert "groups of the answer: 62" in text
    assert "views: ± 113 with 95 % confidence" in text
    assert "rho = 700 / (2 · 57.735²) = 0.105" in text
    assert status("views") == "unknown"


def test_a_plan_that_is_denied_leaves_with_3() -> None:
    write("views", loss={"user-day": {"rho": Fraction("0.06")}})
    run("query", "plan", "views.yaml", code=Exit.DENIED)
    assert document("query", "plan", "views.yaml", code=Exit.DENIED)["allowed"] is False


def test_a_plan_shows_how_keys_are_told() -> None:
    write("views", asked.BY_TOPIC, discover={"delta": Fraction("1e-7")})
    text = run("query", "plan", "views.yaml", code=Exit.DENIED)
    assert "groups of the answer: noisy discovery" in text
    assert "threshold" in text


def test_a_plan_as_json_tells_how_keys_are_told() -> None:
    write("views", asked.BY_TOPIC, discover={"delta": Fraction("1e-7")})
    found = document("query", "plan", "views.yaml", code=Exit.DENIED)
    keys = found["keys"]
    assert keys["name"] == "keys"
    assert f"threshold {keys['threshold']}:" in "".join(found["derivation"])
    assert float(keys["losses"]["user-day"]["delta"]) <= 1e-7
    write("views")
    assert document("query", "plan", "views.yaml")["keys"] is None


def test_a_plan_of_a_sample_says_what_its_losses_are() -> None:
    sampled = {"sampling": {"unit": "user", "rate": Fraction("0.5")}}
    write("views", heading=sampled)
    (note,) = document("query", "plan", "views.yaml")["notes"]
    assert "without amplification" in note
    assert note in run("query", "plan", "views.yaml")
    write("views")
    assert document("query", "plan", "views.yaml")["notes"] == []
    assert note not in run("query", "plan", "views.yaml")


def test_a_plan_remarks_on_values_that_are_not_declared() -> None:
    write("views", f"{SCALAR.replace('GROUP', f'WHERE page = {LITERAL!r} GROUP')}")
    text = run("query", "plan", "views.yaml")
    assert "note: WHERE compares `page` with a value" in text
    assert LITERAL not in text


def test_a_plan_speaks_of_sums_in_one_unit() -> None:
    """The table is in units of the answer; the derivation names the step."""
    sql = "SELECT page, SUM(amount) AS total FROM views GROUP BY page"
    write("views", sql)
    text = run("query", "plan", "views.yaml")
    (row,) = (x.split() for x in text.splitlines() if x.startswith("total  "))
    (why,) = (x for x in text.splitlines() if "total, one user-day" in x)
    assert "in steps of 0.5" in why
    steps = float(why.split("(2 · ")[1].split("²")[0])
    assert float(row[2]) == pytest.approx(steps * 0.5, rel=1e-4)


def test_one_row_is_spoken_of_as_one() -> None:
    write("views", bounds={"user-day": 1, "user-month": 1})
    text = run("query", "plan", "views.yaml")
    assert "1 rows" not in text
    assert "at most 1 row of each user-day, then 1 row of each user-month is" in text
    assert "one user-day: adds at most 1 row and removes at most 1" in text
    assert "one user-month: adds or removes at most 1 row" in text


def test_what_would_pass_is_said_in_words_of_the_query() -> None:
    write("views", loss={"user-day": {"rho": Fraction("0.06")}})
    for command in (["plan"], ["run", "--data", "views=views.csv"]):
        name, *more = command
        text = run("query", name, "views.yaml", *more, code=Exit.DENIED)
        assert (
            "would be allowed with: loss of user-day: rho 0.05 instead of 0.06" in text
        )
        assert "sigma" not in text


def test_what_is_lowered_is_the_release_that_runs() -> None:
    Path("lowered.json").write_text(run("query", "compile", "views.yaml"))
    checked = document("release", "check", "lowered.json")
    assert checked["decision"] == "allow"
    run("init", "--ledger", "other.db", "--policy", "policy.yaml")
    run("release", "submit", "lowered.json", "--ledger", "other.db")
    document("query", "run", "views.yaml", "--data", "views=views.parquet")
    ours, theirs = (
        document("release", "show", "views", "--ledger", name)
        for name in ("ledger.db", "other.db")
    )
    assert ours["content"] == theirs["content"]
    assert ours["status"] == "published"
    assert theirs["status"] == "reserved"


def test_data_of_the_only_table_needs_no_name() -> None:
    alone = document("query", "run", "views.yaml", "--data", "views.csv")
    assert alone["status"] == "published"


@pytest.mark.spec("QRY-20")
@pytest.mark.spec("QRY-21")
@pytest.mark.parametrize(
    ("sql", "more"),
    [
        (
            "SELECT COUNT(*) AS n FROM (SELECT user_id, COUNT(*) AS m FROM views"
            " GROUP BY user_id) AS t",
            (),
        ),
        (
            "SELECT COUNT(*) AS n FROM views WHERE user_id IN (SELECT user_id FROM"
            " views WHERE page = 'help')",
            (),
        ),
        (
            "SELECT kind, COUNT(*) AS n FROM views JOIN pages USING (page)"
            " GROUP BY kind",
            ("--data", "pages=pages.csv"),
        ),
    ],
)
def test_tables_within_a_query_have_data(sql: str, more: tuple[str, ...]) -> None:
    public = "    public: true\n    key: page\n    columns:\n      page: {type: text}\n"
    kind = "      kind: {type: text, values: [a, b]}\n"
    Path("tables.yaml").write_text(f"{asked.TABLES}  pages:\n{public}{kind}")
    Path("pages.csv").write_text("page,kind\nmain,a\nhelp,b\n")
    policy = asked.POLICY + (
        '  - {name: all, when: "true", unit: user, budget: {rho: 5}}\n'
    )
    Path("policy.yaml").write_text(policy)
    Path("ledger.db").unlink()
    run("init")
    write("deep", sql, bounds={"user": 9}, loss={"user": {"rho": 0.005}})
    lines = Path("deep.yaml").read_text().splitlines(keepends=True)
    timeless = (line for line in lines if not line.startswith("periods"))
    Path("deep.yaml").write_text("".join(timeless))
    asked_for = ("query", "run", "deep.yaml", "--data", "views=views.csv", *more)
    assert document(*asked_for)["answers"]["rows"]


def test_data_of_several_tables_is_told_to_say_of_which() -> None:
    tables = ("views", "people")
    with pytest.raises(typer.BadParameter, match="give the table of") as caught:
        _sources(["x.csv"], tables)
    assert "--data views=PLACE --data people=PLACE" in str(caught.value)
    placed = _sources(["views=x.csv", "people=a=b.csv"], tables)
    assert placed == {"views": "x.csv", "people": "a=b.csv"}
    assert _sources(["x.csv"], ["views"]) == {"views": "x.csv"}
    hive = "s3://box/day=1/x.parquet"
    assert _sources([hive], ["views"]) == {"views": hive}
    for login in (f"mysql://a:{CANARY}@b/c?d=e", f"a:{CANARY}@b"):
        with pytest.raises(typer.BadParameter, match="give the table of") as caught:
            _sources([login], tables)
        assert CANARY not in str(caught.value)
    with pytest.raises(typer.BadParameter, match="does not read the table `vews`"):
        _sources(["vews=x.csv"], ["views"])


def test_who_reserved_a_query_is_told_to_run_it_and_nobody_else_is() -> None:
    """`release start` would spend the loss of a query without an answer."""
    Path("lowered.json").write_text(run("query", "compile", "views.yaml"))
    lowered = json.loads(Path("lowered.json").read_text())
    by_hand = {**lowered, "release": "by-hand", "periods": "2026-09"}
    del by_hand["query"]
    Path("by-hand.json").write_text(json.dumps(by_hand))
    for release, step, other in (
        ("lowered.json", "modicum query run QUERY", "release start"),
        ("by-hand.json", "modicum release start by-hand", "query run"),
    ):
        submitted = run("release", "submit", release)
        shown = run("release", "show", json.loads(Path(release).read_text())["release"])
        for told in (submitted, shown):
            assert f"; next:  {step}" in told
            assert other not in told.split("; next:")[1].splitlines()[0]
    ran = document("query", "run", "views.yaml", "--data", "views=views.parquet")
    assert ran["status"] == "published"  # What was advised can be done.


# --- lint -----------------------------------------------------------------------------


def test_good_files_are_told_so_without_a_ledger() -> None:
    Path("ledger.db").unlink()
    told = run("query", "lint", "tables.yaml", "views.yaml", "--policy", "policy.yaml")
    assert told == "tables.yaml: ok (1 table)\nviews.yaml: ok (1 mechanism)\n"
    assert not Path("ledger.db").exists()


def test_the_policy_is_that_of_the_ledger_unless_another_is_given() -> None:
    assert run("query", "lint", "views.yaml") == "views.yaml: ok (1 mechanism)\n"
    Path("policy.yaml").write_text(asked.POLICY.replace(", amount: high", ""))
    run("query", "lint", "views.yaml")
    told = run("query", "lint", "views.yaml", "--policy", "policy.yaml", code=4)
    assert "unknown attribute" in told


def test_mistakes_of_all_files_are_told_and_the_others_are_ok() -> None:
    write("bad", bounds={"user-dya": 3})
    Path("worse.yaml").write_text(asked.TABLES.replace("columns:", "colums:"))
    files = ("query", "lint", "bad.yaml", "worse.yaml", "views.yaml")
    found = RUNNER.invoke(app, files)
    assert found.exit_code == Exit.INVALID
    assert found.stdout == "views.yaml: ok (1 mechanism)\n"
    assert 'did you mean "user-day"?' in found.stderr
    assert 'did you mean "columns"?' in found.stderr
    one = error(*files)
    assert one["code"] == Code.UNKNOWN_UNIT.value


def test_remarks_are_told_and_strictly_are_mistakes() -> None:
    sql = "SELECT COUNT(*) AS n FROM views WHERE topic = 'a' AND topic = 'b'"
    write("never", sql)
    found = RUNNER.invoke(app, ["query", "lint", "never.yaml"])
    assert (found.exit_code, found.stdout) == (0, "never.yaml: ok (1 mechanism)\n")
    assert found.stderr.startswith("never.yaml: WHERE matches no row")
    strict = ("query", "lint", "never.yaml", "views.yaml", "--strict")
    assert RUNNER.invoke(app, strict).exit_code == Exit.INVALID
    data = json.loads(RUNNER.invoke(app, [*strict, "--json"]).stdout)
    assert [one["ok"] for one in data["files"]] == [False, True]
    assert data["ok"] is False
    assert document("query", "lint", "never.yaml")["ok"] is True


# --- run ------------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["views.parquet", "views.csv"])
def test_a_query_is_answered_into_a_file(data: str) -> None:
    found = RUNNER.invoke(
        app, ["query", "run", "views.yaml", "--data", f"views={data}", "-o", "out.csv"]
    )
    assert found.exit_code == Exit.OK, found.output
    assert found.stdout == "views: published; 62 rows in out.csv\n"
    assert found.stderr == "views: started; its loss is spent\n"
    with Path("out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["day", "page", "views", "views.low", "views.high"]
    assert [one["page"] for one in rows[:2]] == ["help", "main"]
    assert all(int(one["views.low"]) < int(one["views.high"]) for one in rows)
    assert status("views") == "published"
    assert sorted(one.name for one in Path().glob(".out*")) == []


def test_a_query_is_answered_as_json() -> None:
    found = document(
        "query", "run", "views.yaml", "--data", "views=views.csv", "-o", "out.json"
    )
    assert found["status"] == "published"
    assert json.loads(Path("out.json").read_text()) == found["answers"]
    assert len(found["answers"]["rows"]) == 62
    assert found["answers"]["confidence"] == "0.95"


def test_an_answer_is_printed_with_all_its_rows() -> None:
    write("views", periods={"from": "2026-10", "to": "2026-11"})
    found = run("query", "run", "views.yaml", "--data", "views=views.parquet")
    assert sum(line.startswith("2026-1") for line in found.splitlines()) == 122
    assert "note: " in found


def test_averages_without_rows_are_no_numbers() -> None:
    sql = "SELECT page, AVG(amount) AS mean FROM views GROUP BY page"
    write("views", sql, periods="2026-09", confidence=1 - Fraction(1, 10**12))
    run("query", "run", "views.yaml", "--data", "views=views.parquet", "-o", "out.csv")
    with Path("out.csv").open(newline="") as file:
        assert [one["mean"] for one in csv.DictReader(file)] == ["", ""]


def test_a_query_is_run_once() -> None:
    run("query", "run", "views.yaml", "--data", "views=views.parquet")
    again = error("query", "run", "views.yaml", "--data", "views=views.parquet")
    assert again["code"] == Code.RELEASE_STATE.value
    assert again["message"].startswith("query `views` was already answered")
    assert "new id" in again["help"]
    write("views", bounds={"user-day": 9})
    other = error("query", "run", "views.yaml", "--data", "views=views.parquet")
    assert other["code"] != again["code"]


# --- refused before anything is spent -------------------------------------------------


@pytest.mark.parametrize(
    ("more", "code", "word"),
    [
        (["--engine", "duck", "--data", "views=views.csv"], Exit.USAGE, "duckdb"),
        (["--data", "=x"], Exit.USAGE, "TABLE=PLACE"),
        (["--data", "views="], Exit.USAGE, "TABLE=PLACE"),
        (["--data", "views"], Exit.INVALID, "no such Parquet file"),
        (["--data", "views=a.csv", "--data", "views=b.csv"], Exit.USAGE, "twice"),
        (["--data", "views=gone.parquet"], Exit.INVALID, "no such"),
        (["--data", "other=views.csv"], Exit.USAGE, "does not read the table `other`"),
        (
            ["--data", "views=views.csv", "--data", "other=views.csv"],
            Exit.USAGE,
            "does not read the table `other`",
        ),
        (["--data", "views=views.csv", "-o", "there.csv"], Exit.USAGE, "already"),
        (["--data", "views=views.csv", "-o", "out.txt"], Exit.USAGE, "form"),
        (["--data", "views=views.csv", "-o", "no/out.csv"], Exit.USAGE, "no such"),
        (["--data", "views=lacking.csv"], Exit.INVALID, "amount"),
        (["--data", "views=typed.parquet"], Exit.INVALID, "another type"),
        (["--data", f"mysql://a:{CANARY}@b/c?d=e"], Exit.INVALID, "`mysql:` is no"),
        (["--data", f"views=mysql://a:{CANARY}@b/c"], Exit.INVALID, "`mysql:` is no"),
        (["--data", "table:main.sales.views"], Exit.INVALID, "or use Spark"),
    ],
)
def test_what_can_be_refused_spends_nothing(
    more: list[str], code: int, word: str
) -> None:
    Path("there.csv").write_text("kept")
    pa.csv.write_csv(views().drop_columns(["amount"]), "lacking.csv")
    typed = views().drop_columns(["amount"])
    pq.write_table(typed.append_column("amount", typed["read_at"]), "typed.parquet")
    text = run("query", "run", "views.yaml", *more, code=code)
    assert word in text
    assert CANARY not in text
    assert status("views") == "unknown"
    assert Path("there.csv").read_text() == "kept"
    assert not list(Path().glob(".*csv*"))


@pytest.mark.parametrize("name", ["duckdb", "spark"])
def test_an_engine_that_is_not_installed_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factory, "find_spec", lambda _: None)
    command = ["query", "run", "views.yaml", "--data", "views=views.csv"]
    text = run(*command, "--engine", name, code=Exit.USAGE)
    assert f"`{name}` is not installed" in text
    assert "pip install 'modicum[" in text
    assert status("views") == "unknown"


def test_a_denied_query_reads_nothing_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(DuckdbEngine, "run", None)
    write("views", loss={"user-day": {"rho": Fraction("0.06")}})
    command = ["query", "run", "views.yaml", "--data", "views=views.csv"]
    text = run(*command, "-o", "out.csv", code=Exit.DENIED)
    assert "DENY views" in text
    assert document(*command, code=Exit.DENIED)["decision"] == "deny"
    assert not Path("out.csv").exists()
    assert not list(Path().glob(".out*"))


# --- what fails after the start -------------------------------------------------------


def test_an_engine_that_fails_has_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        message = f"row {CANARY}"
        raise RuntimeError(message)

    monkeypatch.setattr(DuckdbEngine, "_select", broken)
    command = ["query", "run", "views.yaml", "--data", "views=views.csv"]
    text = run(*command, "-o", "out.csv", code=Exit.INTERNAL)
    assert "views: started; its loss is spent" in text
    assert Code.ENGINE_FAILED.value in text
    assert CANARY not in text
    assert status("views") == "started"
    assert not list(Path().glob("*out.csv*"))


@pytest.mark.parametrize("as_json", [False, True])
def test_an_answer_that_cannot_be_written_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, *, as_json: bool
) -> None:
    def taken(*_: object) -> None:
        raise FileExistsError(17, "File exists")

    monkeypatch.setattr(os, "link", taken)
    command = ["query", "run", "views.yaml", "--data", "views=views.csv"]
    command += ["-o", "out.csv", *(["--json"] if as_json else [])]
    found = RUNNER.invoke(app, command)
    assert found.exit_code == Exit.INTERNAL, found.output
    (kept,) = Path().glob(".out.csv.*")
    assert len(kept.read_text().splitlines()) == 63
    assert kept.name in found.output
    assert status("views") == "started"
    if as_json:
        told = json.loads(found.stdout)
        assert len(told["answers"]["rows"]) == 62
        assert told["status"] == "started"
        assert told["error"]["code"]
    else:
        assert found.stdout.count("2026-10-") == 62
        assert "modicum release publish views" in found.stderr
    run("release", "publish", "views")


def test_a_full_disk_loses_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("modicum.ops.files.answers.os.fsync", full)
    command = ["query", "run", "views.yaml", "--data", "views=views.csv"]
    found = RUNNER.invoke(app, [*command, "-o", "out.csv"])
    assert found.exit_code == Exit.INTERNAL, found.output
    assert "no space left" in found.stderr
    assert found.stdout.count("2026-10-") == 62
    assert not list(Path().glob("*out.csv*"))
    assert status("views") == "started"


def test_a_disk_without_links_is_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    command = ["query", "run", "views.yaml", "--data", "views=views.csv"]
    run(*command, "-o", "out.csv")
    assert len(Path("out.csv").read_text().splitlines()) == 63
    assert not list(Path().glob(".out*"))


def test_an_answer_that_cannot_be_posted_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise UnavailableError(Problem(Code.ENGINE_FAILED, "the ledger is gone"))

    monkeypatch.setattr(Workspace, "publish", broken)
    command = ["query", "run", "views.yaml", "--data", "views=views.csv"]
    found = RUNNER.invoke(app, [*command, "-o", "out.csv"])
    assert found.exit_code == Exit.INTERNAL
    assert "the answer is in out.csv" in found.stdout
    assert "the ledger is gone" in found.stderr
    assert len(Path("out.csv").read_text().splitlines()) == 63
    assert status("views") == "started"


# --- what is told to nobody -----------------------------------------------------------


@pytest.mark.spec("QRY-14")
def test_no_literal_value_or_number_of_rows_is_told(folder: Path) -> None:
    """In a process of its own: all that it writes is looked through."""
    sql = (
        "SELECT page, COUNT(*) AS n FROM views"
        f" WHERE amount < {LITERAL} AND topic <> '{CANARY} 0' GROUP BY page"
    )
    write("views", sql)
    number = 4_871
    pq.write_table(views(number), "views.parquet")
    text = views(number).set_column(
        5, "amount", pa.array([f"{CANARY} {one}" for one in range(number)])
    )
    pa.csv.write_csv(text, "views.csv")  # No amount can be read.
    for name, data in (("views", "views.parquet"), ("other", "views.csv")):
        write(name, sql, loss={"user-day": {"rho": Fraction("0.01")}})
        found = subprocess.run(
            [sys.executable, "-m", "modicum", "query", "run", f"{name}.yaml",
             "--data", f"views={data}", "-o", f"{name}.json"],
            capture_output=True, text=True, check=False, cwd=folder,
        )  # fmt: skip
        assert found.returncode == Exit.OK, found.stderr
        for stream in (found.stdout, found.stderr):
            assert CANARY not in stream
            assert LITERAL not in stream
            assert str(number) not in stream
    for file in folder.iterdir():
        if file.name.startswith("ledger.db"):
            content = file.read_bytes()
            for word in (CANARY, LITERAL, "SELECT", "WHERE"):
                assert word.encode() not in content, (file, word)


# --- drafts of tables files -----------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_draft_of_a_file_can_be_asked(folder: Path, kind: str) -> None:
    # The table has a column for each need of the policy; a code keeps its zeros.
    views = pa.csv.read_csv("views.csv")
    codes = pa.array([f"0{number:04}" for number in range(len(views))])
    views = views.append_column("topics", codes)
    pq.write_table(views, "drafted.parquet")
    pa.csv.write_csv(views, "drafted.csv")
    done = run("query", "init", f"views=drafted.{kind}", "--out", "draft.yaml")
    assert "draft.yaml: review each line marked `guess`" in done
    written = Path("draft.yaml").read_text()
    assert "view_id: {type: integer}  # guess: type" in written
    assert "topics: {type: text, attribute: topic}  # guess: type; attribute" in written
    assert CANARY not in written
    found = RUNNER.invoke(app, ["query", "lint", "draft.yaml"])
    assert (found.exit_code, found.stdout) == (0, "draft.yaml: a draft (1 table)\n")
    lines = written.splitlines()
    guesses = [n for n, one in enumerate(lines, 1) if "# guess: " in one]
    assert len(guesses) > 3
    assert found.stderr.splitlines() == [
        f"draft.yaml: line {n} is marked `guess`: {lines[n - 1].split('# guess: ')[1]}"
        for n in guesses
    ]
    strict = RUNNER.invoke(app, ["query", "lint", "draft.yaml", "--strict"])
    assert strict.exit_code == Exit.INVALID
    Path("draft.yaml").write_text(written.replace("# guess: ", "# "))
    assert run("query", "lint", "draft.yaml") == "draft.yaml: ok (1 table)\n"


def test_a_draft_overwrites_nothing(folder: Path) -> None:
    before = Path("tables.yaml").read_text()
    done = RUNNER.invoke(app, ["query", "init", "views.csv"])
    assert (done.exit_code, Path("tables.yaml").read_text()) == (2, before)
    assert "error[MOD708]: tables.yaml already exists" in done.output
    assert run("query", "init", "views.csv", "--out", "-").startswith("# A draft:")
    done = RUNNER.invoke(app, ["query", "init", "views.csv", "views.parquet"])
    assert "two tables would be named `views`" in done.output


def test_a_file_that_is_no_table_is_refused_without_its_rows(folder: Path) -> None:
    Path("odd.csv").write_bytes(f'a,b\n1,2\n"{CANARY}\n'.encode() + b"\xff")
    Path("wide.csv").write_text(f"page,b\n1,{CANARY},3\n")
    for name in ("odd.csv", "wide.csv", "missing.csv"):
        done = RUNNER.invoke(app, ["query", "init", name, "--out", "-"])
        assert done.exit_code == 4
        assert "error[MOD817]" in done.output
        assert CANARY not in done.output


@pytest.mark.spec("QRY-30")
@pytest.mark.spec("QRY-32")
def test_a_query_is_run_day_by_day(folder: Path) -> None:
    by_days = ("query", "run", "views.yaml", "--data", "views.parquet")
    kept = ("--contributions", "kept")
    first = RUNNER.invoke(app, [*by_days, *kept, "--day", "2026-10-02"])
    assert first.exit_code == 0
    assert first.stderr == "views: started; its loss is spent\n"
    assert [one.split()[:2] for one in first.stdout.splitlines()[1:3]] == [
        ["2026-10-02", "help"],
        ["2026-10-02", "main"],
    ]
    assert CANARY not in first.output
    again = RUNNER.invoke(app, [*by_days, *kept, "--day", "2026-10-02"])
    assert (again.stdout, again.stderr) == (first.stdout, "")
    found = document(*by_days, *kept, "--day", "2026-10-05")
    assert found["status"] == "published"
    assert [one["keys"][0] for one in found["answers"]["rows"]] == ["2026-10-05"] * 2
    one = [*by_days, *kept, "--day", "2026-10-07", "--out", "7.csv"]
    assert run(*one) == "views: published; 2 rows in 7.csv\n"
    assert error(*by_days, *kept, "--day", "2026-10-06")["code"] == "MOD705"
    assert error(*by_days, *kept, "--day", "2026-11-06")["code"] == "MOD815"


@pytest.mark.parametrize("given", [["--day", "2026-10-02"], ["--contributions", "k"]])
def test_a_day_and_a_folder_are_given_together(folder: Path, given: list[str]) -> None:
    command = ["query", "run", "views.yaml", "--data", "views.parquet", *given]
    done = RUNNER.invoke(app, command)
    assert done.exit_code == Exit.USAGE
    assert "give both, or neither" in done.output
    assert status("views") == "unknown"
    assert not Path("k").exists()
