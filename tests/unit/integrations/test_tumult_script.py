"""Scripts under a reservation, with a runner that does as it is told.

Tumult itself is asked in `test_tumult_sessions.py`; here it is played, so that it can
also be wrong, or gone.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from budget import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import fake_runner
from samples.scripts import DAY, DEVICE, PERSON, SEAT, declared, generous

from modicum.api.local import Workspace
from modicum.api.local.reservation_use import Use
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    ModicumError,
    UnavailableError,
    UsageError,
)
from modicum.integrations import tumult_script as tumult_answers
from modicum.integrations.loader import Adapters
from modicum.integrations.tumult_script import TUMULT

RHO = Fraction(1, 2)
#: What a runner answers that did all as it should.
WELL = {"tables": [], "granted": {"rho": "1/2"}, "remaining": {"rho": "1/8"}}


@pytest.fixture(autouse=True)
def _played(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = replace(TUMULT, file=Path(fake_runner.__file__))
    monkeypatch.setattr(tumult_answers, "TUMULT", runner)


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return generous(tmp_path)


def reserve(ws: Workspace, cost: Any = None, kind: str = "declared") -> Use:
    assert ws.submit(declared(cost or {"rho": RHO}, kind)).allowed
    return Use(ws, "r-1", Adapters())


def tumult(use: Use, **more: Any) -> Any:
    return use.tumult("visits", python=sys.executable, **more)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    file = tmp_path / "visits.parquet"
    file.write_bytes(b"never read here")
    return file


@pytest.fixture
def prepared(ws: Workspace, tmp_path: Path, rows: Path) -> Callable[..., Any]:
    """Return a script that comes to what it is told."""

    def prepare(answer: Any = None, code: str = "") -> tuple[Use, Any]:
        use = reserve(ws)
        script = tmp_path / "script.py"
        script.write_text(f"{code}\nanswer = {WELL | (answer or {})!r}")
        engine = tumult(use)
        return use, engine.prepare(script, {"visits": engine.rows_with_id(rows)})

    return prepare


def status(ws: Workspace) -> str:
    return ws.standing("r-1").status.value


# --- a script -----------------------------------------------------------------------


def test_a_script_that_ends_well_is_posted(
    ws: Workspace, prepared: Callable[..., Any]
) -> None:
    code = (
        "import pyarrow as pa\n"
        "table = pa.table({'n': [3]})\n"
        "with pa.ipc.new_file(str(scratch / 'counts.arrow'), table.schema) as file:\n"
        "    file.write_table(table)\n"
    )
    use, script = prepared({"tables": ["counts"]}, code)
    assert status(ws) == "reserved"
    with use:
        answers = script.run()
    assert status(ws) == "published"
    assert answers.tables["counts"] == pa.table({"n": [3]})
    assert answers.granted == {"rho": RHO}
    assert answers.remaining == {"rho": Fraction(1, 8)}
    assert not script._worker.scratch.exists()


def test_the_runner_is_told_exact_numbers_and_what_is_protected(
    tmp_path: Path, rows: Path
) -> None:
    ws = generous(tmp_path)
    use = reserve(ws, {"eps": Fraction(1, 10), "delta": Fraction(1, 10**9)})
    script = tmp_path / "script.py"
    script.write_text("import json\nanswer = None\nraise KeyError")
    csv = tmp_path / "beds.csv"
    csv.touch()
    engine = tumult(use, settings={"a.b": "c"})
    columns = {"bed": "integer"}
    sources = {
        "visits": engine.rows_with_id(rows),
        "stays": engine.max_rows(rows, 3),
        "months": engine.max_rows_in_max_groups(rows, 3, 2, column="month"),
        "beds": engine.public(csv, columns=columns),
    }
    one = engine.prepare(script, sources)
    job = one._job
    assert json.loads(json.dumps(job)) == job
    assert job["budget"] == {"eps": "1/10", "delta": "1/1000000000"}
    assert job["settings"] == {"a.b": "c"}
    assert {name: found["change"] for name, found in job["sources"].items()} == {
        "visits": {"id_column": "user_id"},
        "stays": {"max_rows": 3},
        "months": {
            "grouping_column": "month",
            "max_groups": 2,
            "max_rows_per_group": 3,
        },
        "beds": None,
    }
    assert job["sources"]["beds"] == {
        "file": str(csv),
        "form": "csv",
        "change": None,
        "columns": columns,
    }
    one.close()


def test_each_mechanism_runs_one_script(
    ws: Workspace, tmp_path: Path, rows: Path, prepared: Callable[..., Any]
) -> None:
    use, script = prepared()
    engine = tumult(use)
    sources = {"visits": engine.rows_with_id(rows)}
    other = engine.prepare(tmp_path / "script.py", sources)
    with use:
        script.run()
        for one in (script, other):
            with pytest.raises(ConflictError, match="has already run"):
                one.run()
    assert status(ws) == "published"
    other.close()


def test_nothing_runs_outside_of_the_block(
    ws: Workspace, prepared: Callable[..., Any]
) -> None:
    use, script = prepared()
    with pytest.raises(ConflictError, match="nothing runs before the block"):
        script.run()
    assert status(ws) == "reserved"
    with use:
        script.run()


# --- what goes wrong is spent -------------------------------------------------------

OF_ROWS = {
    "another budget": {"granted": {"rho": "0.5"}},
    "more": {"granted": {"rho": "501/1000"}},
    "less": {"granted": {"rho": "499/1000"}},
    "another measure": {"granted": {"eps": "1/2"}},
    "both": {"granted": {"rho": "1/2", "delta": "0"}},
    "nothing": {"granted": {}},
    "more left": {"remaining": {"rho": "2/3"}},
    "left in another measure": {"remaining": {"eps": "1/8"}},
    "nothing left": {"remaining": {}},
    "negative": {"remaining": {"rho": "-1/8"}},
    "no number": {"remaining": {"rho": "oo"}},
    "division": {"remaining": {"rho": "1/0"}},
    "no list": {"tables": {"a": 1}},
    "path": {"tables": ["../x"]},
    "not there": {"tables": ["missing"]},
    "unknown": {"note": fake_runner.SECRET},
}


@pytest.mark.parametrize("answer", OF_ROWS.values(), ids=OF_ROWS.keys())
def test_an_answer_that_is_not_as_reserved_is_not_posted(
    ws: Workspace, prepared: Callable[..., Any], answer: dict[str, Any]
) -> None:
    use, script = prepared(answer)
    with pytest.raises(ModicumError) as caught, use:
        script.run()
    assert fake_runner.SECRET not in caught.value.render()
    assert status(ws) == "started"


FILES = {
    "garbage": "(scratch / 'a.arrow').write_bytes(b'row-4711' * 100)",
    "empty": "(scratch / 'a.arrow').touch()",
    # A table that somebody may not read, but this process may.
    "a link": "import pyarrow as pa, pathlib\n"
    "elsewhere = str(pathlib.Path(job['script']['folder']) / 'other.arrow')\n"
    "table = pa.table({'n': [3]})\n"
    "with pa.ipc.new_file(elsewhere, table.schema) as file:\n"
    "    file.write_table(table)\n"
    "(scratch / 'a.arrow').symlink_to(elsewhere)",
    "a pipe": "import os; os.mkfifo(scratch / 'a.arrow')",
    "a folder": "(scratch / 'a.arrow').mkdir()",
}


@pytest.mark.parametrize("code", FILES.values(), ids=FILES.keys())
def test_an_answer_that_is_no_table_is_not_posted(
    ws: Workspace, prepared: Callable[..., Any], code: str
) -> None:
    use, script = prepared({"tables": ["a"]}, code)
    with pytest.raises((UnavailableError, InputError)) as caught, use:
        script.run()
    assert fake_runner.SECRET not in caught.value.render()
    assert status(ws) == "started"


def test_answers_have_a_limit_together(
    ws: Workspace, prepared: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tumult_answers, "ANSWERS_MAX", 1500)
    code = (
        "import pyarrow as pa\n"
        "table = pa.table({'n': [3]})\n"
        "for name in 'abcde':\n"
        "    path = str(scratch / f'{name}.arrow')\n"
        "    with pa.ipc.new_file(path, table.schema) as file:\n"
        "        file.write_table(table)\n"
    )
    use, script = prepared({"tables": list("abcde")}, code)
    with pytest.raises(UnavailableError, match="more than 1500 bytes") as caught, use:
        script.run()
    assert caught.value.code is Code.TOO_LARGE
    assert status(ws) == "started"


DEATHS = {
    "killed": f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})",
    "ended": "import os; os._exit(0)",
    "an exit": "raise SystemExit(0)",
    "an error": "raise ValueError('row-4711')",
}


@pytest.mark.parametrize("code", DEATHS.values(), ids=DEATHS.keys())
@pytest.mark.parametrize("held", [True, False])
def test_what_dies_midway_is_spent_even_if_the_error_is_caught(
    ws: Workspace, prepared: Callable[..., Any], code: str, held: bool
) -> None:
    use, script = prepared({}, code)

    caught_inside = (UnavailableError,) if held else ()

    def run() -> None:
        with use, suppress(*caught_inside):
            script.run()

    with pytest.raises(ConflictError if held else UnavailableError) as caught:
        run()
    assert "row-4711" not in caught.value.render()
    assert status(ws) == "started"


def test_what_takes_too_long_is_spent(
    ws: Workspace, prepared: Callable[..., Any]
) -> None:
    use, script = prepared({}, "import time; time.sleep(1000)")
    with pytest.raises(UnavailableError, match=r"within 0\.1 seconds"), use:
        script.run(seconds=0.1)
    assert status(ws) == "started"


# --- before anything is spent -------------------------------------------------------


def test_a_wrong_environment_costs_nothing(
    ws: Workspace, tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use = reserve(ws)
    script = tmp_path / "script.py"
    script.write_text("")
    older = {"tmlt.analytics": ("0.20",), "tmlt.core": ("0.19",)}
    runner = replace(tumult_answers.TUMULT, versions=older)
    monkeypatch.setattr(tumult_answers, "TUMULT", runner)
    one = tumult(use)
    with pytest.raises(UsageError, match=r"tmlt\.analytics has version 0\.21\.0"):
        one.prepare(script, {"visits": one.rows_with_id(rows)})
    assert status(ws) == "reserved"


@pytest.mark.parametrize(
    ("text", "code"),
    [(b"\xff", Code.NOT_TEXT), (b" " * (2**19 + 1), Code.TOO_LARGE)],
)
def test_a_script_that_cannot_be_read_costs_nothing(
    ws: Workspace, tmp_path: Path, rows: Path, text: bytes, code: Code
) -> None:
    use = reserve(ws)
    script = tmp_path / "script.py"
    one = tumult(use)
    sources = {"visits": one.rows_with_id(rows)}
    with pytest.raises(InputError, match="no such file"):
        one.prepare(script, sources)
    script.write_bytes(text)
    with pytest.raises(InputError) as caught:
        one.prepare(script, sources)
    assert caught.value.code is code
    assert status(ws) == "reserved"


@pytest.mark.parametrize("name", ["", "a b", "1", "a.b", "ä", "a" * 81, "a\n"])
def test_tables_have_names_that_every_engine_takes(
    ws: Workspace, tmp_path: Path, rows: Path, name: str
) -> None:
    one = tumult(reserve(ws))
    with pytest.raises(InputError, match="invalid name"):
        one.prepare(tmp_path / "script.py", {name: one.rows_with_id(rows)})


def test_a_session_needs_a_private_table(
    ws: Workspace, tmp_path: Path, rows: Path
) -> None:
    one = tumult(reserve(ws))
    for sources in ({}, {"clinics": one.public(rows)}):
        with pytest.raises(InputError, match="a table that is not public"):
            one.prepare(tmp_path / "script.py", sources)


@pytest.mark.parametrize(
    ("name", "columns", "right"),
    [
        ("a.parquet", None, True),
        ("a.arrow", None, True),
        ("a.feather", None, True),
        ("A.CSV", {"x": "number", "y z": "date"}, True),
        ("a.csv", None, False),
        ("a.parquet", {"x": "text"}, False),
        ("a.csv", {"x": "boolean"}, False),
        ("a.csv", {"x`": "text"}, False),
        ("a.txt", None, False),
        ("a", None, False),
        ("a*.parquet", None, False),
        ("a{b}.parquet", None, False),
    ],
)
def test_files_are_of_forms_that_are_read_row_by_row(
    ws: Workspace,
    tmp_path: Path,
    name: str,
    columns: dict[str, str] | None,
    right: bool,
) -> None:
    one = tumult(reserve(ws))
    with pytest.raises(InputError, match="no such file"):
        one.public(tmp_path / name, columns=columns)
    (tmp_path / name).touch()
    if right:
        assert one.public(tmp_path / name, columns=columns).columns == columns
        return
    with pytest.raises(InputError):
        one.public(tmp_path / name, columns=columns)


@pytest.mark.parametrize("number", [0, -1, True, 1.0, "1", None])
def test_bounds_are_whole_numbers(ws: Workspace, rows: Path, number: Any) -> None:
    one = tumult(reserve(ws))
    refused = pytest.raises(InputError, match="must be an integer from 1 on")
    with refused:
        one.max_rows(rows, number)
    with refused:
        one.max_rows_in_max_groups(rows, number, 1, column="g")
    with refused:
        one.max_rows_in_max_groups(rows, 1, number, column="g")


# --- what a unit means --------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "column"),
    [(PERSON, "user_id"), (SEAT, "seat_id"), (DEVICE, "device_id"), (DAY, None)],
)
def test_an_id_protects_a_unit_that_is_all_its_rows(
    tmp_path: Path, rows: Path, unit: str, column: str | None
) -> None:
    one = tumult(reserve(generous(tmp_path, unit)))
    assert one.max_rows(rows, 2).change == {"max_rows": 2}
    if column is None:
        with pytest.raises(
            InputError, match="no column identifies the instances"
        ) as caught:
            one.rows_with_id(rows)
        assert caught.value.code is Code.DOES_NOT_FIT
        return
    assert one.rows_with_id(rows).change == {"id_column": column}


AMOUNT = st.fractions(Fraction(1, 10**6), 50).map(
    lambda exact: Fraction(round(exact * 10**9), 10**9)
)
DELTA = st.integers(1, 10**6).map(lambda n: Fraction(n, 10**9))


def steps(unit: str) -> int:
    """Return how many rows-with-an-id come or go in one change: an oracle."""
    return 1 if unit in {PERSON, DAY} else 2


@settings(max_examples=examples(40), deadline=None)
@given(
    unit=st.sampled_from([PERSON, DAY, SEAT, DEVICE]),
    cost=st.one_of(
        st.builds(lambda eps: {"eps": eps}, AMOUNT),
        st.builds(lambda rho: {"rho": rho}, AMOUNT),
        st.builds(lambda eps, delta: {"eps": eps, "delta": delta}, AMOUNT, DELTA),
    ),
)
def test_a_session_gets_what_is_reserved_exactly(
    unit: str, cost: dict[str, Fraction], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What its neighbors cost, in all steps, is the cost: no more, no less."""
    ws = generous(tmp_path_factory.mktemp("ledger"), unit)
    use = reserve(ws, cost)
    many = steps(unit)
    if many > 1 and "delta" in cost:
        with pytest.raises(InputError, match="added and removed rows") as caught:
            tumult(use)
        assert caught.value.code is Code.DOES_NOT_FIT
        return
    budget = tumult(use).budget
    power = {"eps": 1, "rho": 2, "delta": 1}
    assert {n: one * many ** power[n] for n, one in budget.items()} == cost
    charged = use.mechanism("visits").loss("user")
    for name, one in budget.items():
        assert one * many ** power[name] <= (getattr(charged, name) or 0)


@pytest.mark.parametrize(
    ("cost", "kind"),
    [
        ({"mu": 1}, "declared"),
        ({"rdp": {8: 1}}, "declared"),
        ({"rho": 1}, "gaussian"),
    ],
)
def test_what_no_session_could_have_is_refused(
    ws: Workspace, cost: Any, kind: str
) -> None:
    use = reserve(ws, cost, kind)
    with pytest.raises(InputError, match="no session fits") as caught:
        tumult(use)
    assert caught.value.code is Code.DOES_NOT_FIT
