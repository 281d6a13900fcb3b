"""Trying a program out says what a sandbox would not: why there is no score."""

from __future__ import annotations

import random

import pytest
from samples.declared import TABLES

from modicum.core.errors import Code, InputError
from modicum.escrow import tasks
from modicum.escrow.dummy_data import dummy_answers
from modicum.escrow.programs import Program, Table
from modicum.query.parser import parse_query
from modicum.sandbox.catalog import installed
from modicum.sandbox.trial import PRINTED_MAX, UNHELD, dry_run

TABLE = {"t": Table(("town", "n"), (("a", 1), ("b", None)))}


def tried(body: str, **given: object) -> tuple[float | None, str, str]:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    program = tasks.own(f"def score(tables, arguments, reference):\n{lines}")
    found = dry_run(program, TABLE, seconds=20)
    assert UNHELD in str(found)
    return found.score, found.remark, found.printed


@pytest.mark.parametrize(
    ("body", "score", "remark"),
    [
        ("return 0.5", 0.5, ""),
        ("return 1", 1, ""),
        ("return 7", 1, "moved from 7"),
        ("return float('-inf')", 0, "moved from -inf"),
        ("return float('nan')", None, "it returned NaN"),
        ("return None", None, ""),
        ("return True", None, "it returned a bool"),
        ("return 'x'", None, "it returned a str"),
        ("raise ValueError('no')", None, "it failed"),
        ("raise SystemExit(0)", None, "it failed"),
    ],
)
def test_whatever_a_program_returns_is_told(
    body: str, score: float | None, remark: str
) -> None:
    assert tried(body)[:2] == (score, remark)


def test_it_is_given_what_a_program_is_given() -> None:
    body = (
        "print(tables, arguments, reference)\n"
        "return float(tables['t']['rows'] == [['a', 1], ['b', None]])"
    )
    score, _, printed = tried(body)
    assert score == 1
    assert printed.endswith("{} None\n")


def test_what_it_wrote_is_shown_up_to_a_length() -> None:
    _, _, printed = tried("print('x' * 100_000)\nraise ValueError('the end')")
    assert len(printed) == PRINTED_MAX
    assert printed.endswith("ValueError: the end\n")


def test_it_is_given_up_when_its_time_is_over() -> None:
    program = tasks.own(
        "def score(tables, arguments, reference):\n"
        "    print('begun', flush=True)\n"
        "    while True: pass\n"
    )
    found = dry_run(program, TABLE, seconds=1.5)
    assert (found.score, found.remark) == (None, "it took more than 1.5 seconds")


def test_only_python_is_tried_out() -> None:
    module = Program("wasm", b"\0asm", {}, tasks.accuracy().range)
    with pytest.raises(InputError) as caught:
        dry_run(module, TABLE)
    assert caught.value.code is Code.NOT_SUPPORTED


def test_a_task_is_tried_on_made_up_answers() -> None:
    """From the text of a query to a score, without any data."""
    query = parse_query(
        "SELECT page, country, COUNT(*) AS n FROM views GROUP BY page, country",
        TABLES,
        "query.sql",
    )
    made_up = dummy_answers(query, TABLES, random.Random(5))
    task = tasks.chi_square("page", "country", "n")
    program = tasks.program(
        tasks.answers("t"), task, installed(), {"t": made_up.columns}
    )
    found = dry_run(program, {"t": made_up})
    assert found.score is not None
    assert found.printed == ""
