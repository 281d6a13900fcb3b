"""A query that is answered day by day: one loss, its folder, and what goes wrong."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from samples import asked
from samples.spark import spark_or_skip

from modicum.api.local import Workspace
from modicum.api.local.queries.actions import QueryDays, Ran
from modicum.core.errors import (
    Code,
    InvariantError,
    ModicumError,
    UnavailableError,
    UsageError,
)
from modicum.engines import contributions
from modicum.engines.contributions import Contributions
from modicum.engines.sql_engine import SqlEngine
from modicum.integrations.loader import Adapters
from modicum.query.query_file import QueryFile

CANARY = "canary-5309"
BOUNDS = {"user-day": 2, "user-month": 3}


class Exactly:
    """Noise of nothing."""

    def check(self, noise: str, scale: Fraction, sensitivity: Fraction) -> None:
        pass

    def add(self, noise: str, scale: Fraction, values: Sequence[int]) -> list[int]:
        return list(values)


class WithoutNoise(Adapters):
    def sampler(self) -> Any:
        return Exactly()


def rows(*users: str, days: int = 4, each: int = 3) -> pa.Table:
    """Return some views of each user on each of some days."""
    start = datetime(2026, 10, 1, 23, 59, 59)  # noqa: DTZ001 - a time without a zone
    found = [
        {
            "view_id": 1000 * n + 10 * day + one,
            "user_id": f"{CANARY} {user}",
            "read_at": start + timedelta(days=day),
            "page": "main",
            "topic": CANARY,
            "amount": 1.0,
        }
        for n, user in enumerate(users or ("a", "b"))
        for day in range(days)
        for one in range(each)
    ]
    return pa.Table.from_pylist(found)


@pytest.fixture
def ledger(tmp_path: Path) -> Workspace:
    found = asked.workspace(tmp_path)
    found.adapters = WithoutNoise()
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "views.contributions"


def days(ledger: Workspace, folder: Path, query: QueryFile | None = None) -> QueryDays:
    return ledger.queries.by_days(query or asked.query(bounds=BOUNDS), folder)


def counted(ran: Ran) -> dict[str, int]:
    """Return the views of the page `main` by day."""
    assert ran.answers is not None
    return {
        str(row.keys[0]): int(row.estimates[0].value or 0)
        for row in ran.answers.rows
        if row.keys[1] == "main"
    }


def status(ledger: Workspace) -> str:
    return ledger.standing("views").status.value


def spent(ledger: Workspace) -> list[str]:
    """Return all that the ledger says about losses."""
    return [str(one) for one in ledger.state().releases.values()]


def refused(run: Any, code: Code = Code.RELEASE_STATE) -> ModicumError:
    with pytest.raises(ModicumError) as caught:
        run()
    assert caught.value.code is code
    assert CANARY not in caught.value.render()
    assert caught.value.__cause__ is None
    return caught.value


# --- days, one after the other --------------------------------------------------------


@pytest.mark.spec("QRY-30")
def test_days_are_answered_under_one_loss_and_keep_to_the_cap_of_the_month(
    ledger: Workspace, folder: Path
) -> None:
    seen: list[str] = []
    asked_days = days(ledger, folder)

    def note(_: object) -> None:
        seen.append(status(ledger))

    first = asked_days.run("2026-10-01", rows(), on_start=note, complete=note)
    assert counted(first) == {"2026-10-01": 4}
    assert seen == ["started", "started"]
    assert status(ledger) == "published"
    before = spent(ledger)
    second = asked_days.run("2026-10-02", rows(), on_start=note, complete=note)
    assert counted(second) == {"2026-10-02": 2}
    assert seen[2:] == ["published"]
    assert second.to_dict()["status"] == "published"
    assert counted(asked_days.run("2026-10-04", rows())) == {"2026-10-04": 0}
    assert counted(asked_days.run("2026-10-05", rows("c", days=5))) == {"2026-10-05": 2}
    assert spent(ledger) == before


def test_without_a_cap_that_cuts_days_add_up_to_the_query(
    ledger: Workspace, folder: Path
) -> None:
    loss = {"user-day": {"rho": Fraction("0.02")}}
    asked_days, found = days(ledger, folder, asked.query(loss=loss)), dict[str, int]()
    for day in range(1, 32):
        found |= counted(asked_days.run(f"2026-10-{day:02}", rows()))
    whole = ledger.queries.run(asked.query(release="whole", loss=loss), rows())
    assert found == counted(whole)
    assert sum(found.values()) == 24


def test_a_row_that_comes_late_is_never_read(ledger: Workspace, folder: Path) -> None:
    asked_days = days(ledger, folder)
    asked_days.run("2026-10-01", rows("a"))
    late = rows("a", "late")
    assert counted(asked_days.run("2026-10-01", late)) == {"2026-10-01": 2}
    assert counted(asked_days.run("2026-10-02", late)) == {"2026-10-02": 3}


@pytest.mark.spec("QRY-32")
def test_a_day_that_was_answered_is_given_the_same_answers_and_reads_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = asked.workspace(tmp_path)
    ledger.adapters = Adapters()
    asked_days = days(ledger, folder)
    first = asked_days.run("2026-10-01", rows())
    asked_days.run("2026-10-02", rows())
    monkeypatch.delattr(SqlEngine, "run_day")
    again = asked_days.run("2026-10-01", rows("x"))
    assert again.answers == first.answers
    assert first.answers is not None
    assert any(one.estimates[0].value for one in first.answers.rows)


@pytest.mark.spec("QRY-32")
def test_a_day_before_one_that_was_begun_is_refused(
    ledger: Workspace, folder: Path
) -> None:
    asked_days = days(ledger, folder)
    asked_days.run("2026-10-03", rows())
    error = refused(lambda: asked_days.run("2026-10-02", rows()))
    assert "2026-10-03 was begun before 2026-10-02" in error.render()


# --- what is refused before anything is written ---------------------------------------

BY_PAGE = "SELECT page, COUNT(*) AS views FROM views GROUP BY page"
BY_TIME = "SELECT DATE_TRUNC('{}', read_at) AS day, {} FROM views GROUP BY 1"


@pytest.mark.parametrize(
    ("query", "day"),
    [
        (asked.query(), "2026-09-30"),
        (asked.query(), "2026-11-01"),
        (asked.query(periods=["2026-10-03", "2026-10-05"]), "2026-10-04"),
        (asked.query(BY_PAGE), "2026-10-01"),
        (asked.query(BY_TIME.format("week", "COUNT(*) AS n")), "2026-10-01"),
        (asked.query(f"{asked.COUNTED} LIMIT 5"), "2026-10-01"),
        (asked.query(f"{asked.COUNTED[:-9]}ROLLUP (day, page)"), "2026-10-01"),
        (asked.query(f"{asked.COUNTED} LIMIT 40 OFFSET 1"), "2026-10-01"),
        (
            asked.query(
                BY_TIME.format("day", "RANK() OVER (ORDER BY COUNT(*)) AS place")
            ),
            "2026-10-01",
        ),
        (
            asked.query(
                "SELECT DATE_TRUNC('day', read_at) AS day, COUNT(*) AS n FROM views"
                " WHERE user_id IN (SELECT user_id FROM views WHERE page = 'help')"
                " GROUP BY 1",
                bounds={"user": 3},
            ),
            "2026-10-01",
        ),
    ],
)
@pytest.mark.spec("QRY-30")
def test_what_cannot_be_answered_by_days_spends_nothing(
    ledger: Workspace, folder: Path, query: QueryFile, day: str
) -> None:
    run = days(ledger, folder, query).run
    refused(lambda: run(day, rows()), Code.DOES_NOT_FIT)
    assert not folder.exists()
    assert "views" not in ledger.state().releases


def test_having_and_an_order_look_at_one_day(ledger: Workspace, folder: Path) -> None:
    query = asked.query(f"{asked.COUNTED} HAVING COUNT(*) > 1 ORDER BY views DESC")
    ran = days(ledger, folder, query).run("2026-10-01", rows())
    assert counted(ran) == {"2026-10-01": 6}
    assert ran.answers is not None
    assert len(ran.answers.rows) == 1


def test_keys_that_are_discovered_and_samples_are_of_all_days(
    tmp_path: Path, folder: Path
) -> None:
    policy = asked.compiled(asked.WITH_DELTA)
    ledger = asked.workspace(tmp_path, asked.WITH_DELTA)
    ledger.adapters = Adapters()
    sql = asked.COUNTED.replace("page", "topic")
    query = asked.query(
        sql,
        policy=policy,
        noise="laplace",
        loss={"user-day": {"eps": 1}},
        discover={"delta": Fraction(1, 10**6)},
    )
    run = days(ledger, folder, query).run
    error = refused(lambda: run("2026-10-01", rows()), Code.DOES_NOT_FIT)
    assert "discovered" in error.render()


@pytest.mark.parametrize("day", ["tomorrow", "2026-13-01", 7, None])
def test_a_day_is_a_day(ledger: Workspace, folder: Path, day: Any) -> None:
    with pytest.raises(UsageError, match="is not a day"):
        days(ledger, folder).run(day, rows())


def test_a_denied_query_leaves_no_folder(ledger: Workspace, folder: Path) -> None:
    query = asked.query(bounds=BOUNDS, loss={"user-day": {"rho": Fraction("0.2")}})
    ran = days(ledger, folder, query).run("2026-10-01", rows())
    assert ran.answers is None
    assert not ran.decision.allowed
    assert not folder.exists()


# --- the folder -----------------------------------------------------------------------


@pytest.mark.spec("QRY-31")
def test_only_its_owner_can_read_the_folder(ledger: Workspace, folder: Path) -> None:
    before = os.umask(0)
    try:
        days(ledger, folder).run("2026-10-01", rows())
    finally:
        os.umask(before)
    every = [folder, *folder.rglob("*")]
    assert len(every) == 7
    assert not any(stat.S_IMODE(one.stat().st_mode) & 0o077 for one in every)
    public = [one for one in every if one.suffix == ".json"]
    assert not any(CANARY in one.read_text() for one in public)


@pytest.mark.spec("QRY-31")
def test_a_folder_that_others_can_read_is_refused(
    ledger: Workspace, folder: Path
) -> None:
    folder.mkdir(mode=0o750)
    run = days(ledger, folder).run
    refused(lambda: run("2026-10-01", rows()), Code.FILE_UNREADABLE)
    assert "views" not in ledger.state().releases


def test_a_folder_that_cannot_be_made_spends_nothing(
    ledger: Workspace, folder: Path
) -> None:
    run = days(ledger, folder / "inside").run
    refused(lambda: run("2026-10-01", rows()), Code.FILE_UNREADABLE)
    assert "views" not in ledger.state().releases


@pytest.mark.spec("QRY-31")
def test_a_folder_that_cannot_be_written_loses_no_day(
    ledger: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> NoReturn:
        raise OSError(errno.EROFS, "Read-only file system")

    run = days(ledger, folder).run
    run("2026-10-01", rows())
    with monkeypatch.context() as patch:
        patch.setattr(contributions, "_write", fail)
        error = refused(lambda: run("2026-10-02", rows()), Code.FILE_UNREADABLE)
    assert "read-only file system" in error.render()
    assert counted(run("2026-10-02", rows())) == {"2026-10-02": 2}


def test_a_folder_in_use_is_refused(ledger: Workspace, folder: Path) -> None:
    run = days(ledger, folder).run
    run("2026-10-01", rows())
    with Contributions(folder, new=False):
        error = refused(lambda: run("2026-10-02", rows()), Code.FILE_UNREADABLE)
    assert isinstance(error, UnavailableError)
    assert counted(run("2026-10-02", rows())) == {"2026-10-02": 2}


@pytest.mark.spec("QRY-31")
@pytest.mark.parametrize(
    "lost", ["folder", "stream.json", "used", "one", "day", "whole day", "emptied"]
)
def test_without_what_was_kept_no_day_is_read(
    ledger: Workspace, folder: Path, lost: str
) -> None:
    run, day = days(ledger, folder).run, folder / "days/2026-10-01.json"
    run("2026-10-01", rows())
    if "day" in lost or lost == "emptied":
        run("2026-10-02", rows())
    if lost == "folder":
        folder.rename(folder.with_name("elsewhere"))
    elif lost == "emptied":
        day.write_bytes(b"")
    elif "day" in lost:
        day.unlink()
        if "whole" in lost:
            shutil.rmtree(folder / "used/2026-10-01")
    elif lost == "one":
        file = folder / "used/2026-10-01/1.parquet"
        file.write_bytes(file.read_bytes()[:-1] + b"x")
    else:
        (folder / lost).rename(folder / "elsewhere")
    error = refused(lambda: run("2026-10-03", rows()))
    assert "lost" in error.render()
    assert not (folder / "days/2026-10-03.json").exists()


@pytest.mark.spec("QRY-31")
def test_a_run_that_finds_the_folder_in_use_leaves_it(folder: Path) -> None:
    with Contributions(folder, new=True) as first:
        with pytest.raises(UnavailableError):
            Contributions(folder, new=True)
        first.start("0" * 64)
    assert (folder / "stream.json").exists()


def test_a_release_that_another_run_started_has_no_folder(
    ledger: Workspace, folder: Path
) -> None:
    query = asked.query(bounds=BOUNDS)
    ledger.queries.run(query, rows())
    for there in (False, True):
        if there:
            folder.mkdir(mode=0o700)
        refused(lambda: days(ledger, folder, query).run("2026-10-01", rows()))
    assert not [*folder.iterdir()]


def test_a_query_by_days_is_not_answered_as_a_whole(
    ledger: Workspace, folder: Path
) -> None:
    query = asked.query(bounds=BOUNDS)
    days(ledger, folder, query).run("2026-10-01", rows())
    refused(lambda: ledger.queries.run(query, rows()))


@pytest.mark.spec("QRY-31")
def test_the_folder_of_another_release_is_refused(
    ledger: Workspace, folder: Path, tmp_path: Path
) -> None:
    days(ledger, folder).run("2026-10-01", rows())
    other = asked.query(
        release="other", bounds=BOUNDS, loss={"user-day": {"rho": Fraction("0.01")}}
    )
    run = days(ledger, folder, other).run
    refused(lambda: run("2026-10-02", rows()), Code.ALREADY_EXISTS)
    assert "other" not in ledger.state().releases
    days(ledger, tmp_path / "its own", other).run("2026-10-02", rows())
    error = refused(lambda: run("2026-10-03", rows()))
    assert "of another release" in error.render()


@pytest.mark.spec("QRY-31")
def test_a_policy_that_finds_other_instances_is_refused(
    ledger: Workspace, folder: Path, tmp_path: Path
) -> None:
    """A release does not say the columns of its units."""
    declared = asked.TABLES.replace("{type: text}", "{type: text, attribute: topic}")
    query = asked.query(bounds=BOUNDS, declared=declared)
    days(ledger, folder, query).run("2026-10-01", rows())
    policy = asked.compiled(asked.POLICY.replace("user_id", "topic"))
    changed = asked.opened(tmp_path, policy)
    changed.adapters = WithoutNoise()
    query = asked.query(bounds=BOUNDS, policy=policy, declared=declared)
    error = refused(lambda: days(changed, folder, query).run("2026-10-02", rows()))
    assert "the policy's units have changed" in error.render()


def test_a_policy_with_another_budget_changes_nothing(
    ledger: Workspace, folder: Path, tmp_path: Path
) -> None:
    days(ledger, folder).run("2026-10-01", rows())
    policy = asked.compiled(asked.POLICY.replace("0.75", "0.9"))
    changed = asked.opened(tmp_path, policy)
    changed.adapters = WithoutNoise()
    run = days(changed, folder, asked.query(bounds=BOUNDS, policy=policy)).run
    assert counted(run("2026-10-02", rows())) == {"2026-10-02": 2}


@pytest.mark.parametrize(
    "change", [{"bounds": {**BOUNDS, "user-month": 4}}, {"sql": asked.COUNTED + " "}]
)
def test_a_query_that_was_changed_is_refused(
    ledger: Workspace, folder: Path, change: dict[str, Any]
) -> None:
    days(ledger, folder).run("2026-10-01", rows())
    query = asked.query(**{"bounds": BOUNDS, **change})
    run = days(ledger, folder, query).run
    refused(lambda: run("2026-10-02", rows()), Code.RELEASE_CONFLICT)


def test_a_folder_with_something_else_is_refused(
    ledger: Workspace, folder: Path
) -> None:
    folder.mkdir(mode=0o700)
    (folder / "diary.txt").write_text("mine")
    run = days(ledger, folder).run
    refused(lambda: run("2026-10-01", rows()), Code.ALREADY_EXISTS)
    assert [one.name for one in folder.iterdir()] == ["diary.txt"]
    assert "views" not in ledger.state().releases


# --- runs that end in between ---------------------------------------------------------


class KilledError(BaseException):
    """The process ends here."""


def kill(*_: object, **__: object) -> NoReturn:
    raise KilledError


STEPS = ["begin", "run_day", "finish", "rename"]


def break_at(step: str, patch: pytest.MonkeyPatch, how: Any) -> None:
    target = {
        "begin": (Contributions, "begin"),
        "run_day": (SqlEngine, "run_day"),
        "finish": (Contributions, "finish"),
        "rename": (Path, "replace"),
    }[step]
    patch.setattr(*target, how)


@pytest.mark.spec("QRY-31")
@pytest.mark.spec("QRY-32")
@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_ends_in_between_counts_nothing_and_gives_nothing_out(
    ledger: Workspace, folder: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = days(ledger, folder).run
    run("2026-10-01", rows())
    with monkeypatch.context() as patch:
        break_at(step, patch, kill)
        with pytest.raises(KilledError):
            run("2026-10-02", rows(), complete=lambda _: pytest.fail("given out"))
    if step == "begin":
        assert counted(run("2026-10-02", rows())) == {"2026-10-02": 2}
        return
    error = refused(lambda: run("2026-10-02", rows()))
    assert "2026-10-02 was begun, and its run did not end" in error.render()
    assert counted(run("2026-10-03", rows())) == {"2026-10-03": 2}


def test_a_first_day_that_fails_leaves_the_other_days(
    ledger: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = days(ledger, folder).run
    with monkeypatch.context() as patch:
        break_at("run_day", patch, kill)
        with pytest.raises(KilledError):
            run("2026-10-01", rows())
    assert status(ledger) == "started"
    assert counted(run("2026-10-02", rows())) == {"2026-10-02": 4}
    assert status(ledger) == "published"


def test_an_end_between_the_start_and_the_folder_loses_the_stream(
    ledger: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = days(ledger, folder).run
    with monkeypatch.context() as patch:
        patch.setattr(Contributions, "start", kill)
        with pytest.raises(KilledError):
            run("2026-10-01", rows())
    refused(lambda: run("2026-10-02", rows()))


def test_answers_are_kept_before_they_are_given_out(
    ledger: Workspace, folder: Path
) -> None:
    run = days(ledger, folder).run
    with pytest.raises(KilledError):
        run("2026-10-01", rows(), complete=kill)
    assert status(ledger) == "started"
    assert counted(run("2026-10-01", rows("x"))) == {"2026-10-01": 4}
    assert status(ledger) == "published"
    assert counted(run("2026-10-02", rows())) == {"2026-10-02": 2}


@pytest.mark.spec("QRY-14")
@pytest.mark.parametrize("step", ["run_day", "finish"])
def test_a_failure_behind_the_rows_quotes_none(
    ledger: Workspace, folder: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> NoReturn:
        raise ValueError(CANARY)

    break_at(step, monkeypatch, fail)
    error = refused(
        lambda: days(ledger, folder).run("2026-10-01", rows()), Code.INTERNAL
    )
    assert isinstance(error, InvariantError)


@pytest.mark.spec("QRY-13")
def test_the_engine_may_differ_from_day_to_day(ledger: Workspace, folder: Path) -> None:
    spark_or_skip()
    run = days(ledger, folder).run
    assert counted(run("2026-10-01", rows())) == {"2026-10-01": 4}
    assert counted(run("2026-10-02", rows("a"), engine="spark")) == {"2026-10-02": 1}
    assert counted(run("2026-10-03", rows())) == {"2026-10-03": 1}
