"""A private choice is charged for every column that its query reads."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from modicum.core.errors import Code
from modicum.risk.arguments import ArgumentError
from modicum.risk.measurement.facts import attributes_read
from modicum.risk.question import Question, read_question

COLUMNS = {
    "visits": ("patient", "Clinic", "cost", "day"),
    "people": ("patient", "age", "town"),
    "towns": ("town", "size"),
}


def asked(sql: str) -> Question:
    return read_question(sql, COLUMNS, "patient")


@pytest.mark.spec("RSK-19")
@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("SELECT COUNT(*) FROM visits", []),
        ("SELECT SUM(COST) FROM visits", ["cost"]),
        ("SELECT clinic AS c, COUNT(*) FROM visits GROUP BY c", ["Clinic"]),
        ("SELECT COUNT(*) FROM visits WHERE v.day > '2020-01-01'", ["day"]),
        ("SELECT COUNT(*) FILTER (cost > 3) FROM visits", ["cost"]),
        ("SELECT COUNT(*) FROM visits GROUP BY ALL", []),
        ("SELECT AVG(age) FROM visits JOIN people USING (patient)", ["age"]),
        (
            "SELECT COUNT(*) FROM visits v JOIN people p ON p.patient = v.patient"
            " AND p.town = v.clinic",
            ["Clinic", "town"],
        ),
        (
            "SELECT COUNT(*) FROM visits JOIN people USING (patient)"
            " WHERE cost > (SELECT AVG(u.age) FROM people u)",
            ["cost", "age"],
        ),
        (
            "SELECT COUNT(*) FROM (SELECT * FROM visits) AS s",
            ["Clinic", "cost", "day"],
        ),
        (
            "SELECT COUNT(*) FROM (SELECT v.* FROM visits v) AS s",
            ["Clinic", "cost", "day"],
        ),
        ("SELECT COUNT(DISTINCT COLUMNS(*)) FROM visits", ["Clinic", "cost", "day"]),
        ("SELECT SUM(COLUMNS('c.*')) FROM visits", ["Clinic", "cost", "day"]),
        ("SELECT COUNT(*) FROM people JOIN towns USING (town)", ["town"]),
        (
            "SELECT COUNT(*) FROM visits NATURAL JOIN people",
            ["Clinic", "cost", "day", "age", "town"],
        ),
    ],
)
def test_what_a_query_reads_is_found(sql: str, reads: Sequence[str]) -> None:
    assert attributes_read(asked(sql), None) == list(reads)


@pytest.mark.spec("RSK-19")
@pytest.mark.parametrize(
    ("given", "code", "near"),
    [
        (["cost"], Code.KEYS_CONFLICT, ""),
        (["clinic", "price=day"], Code.KEYS_CONFLICT, ""),
        (["clinic", "coost"], Code.UNKNOWN_ATTRIBUTE, 'did you mean "cost"?'),
        (["clinic", "cost=price"], Code.UNKNOWN_ATTRIBUTE, ""),
        (["clinic", "cost", ""], Code.UNKNOWN_ATTRIBUTE, ""),
    ],
)
def test_what_is_left_out_or_not_there_is_refused(
    given: Sequence[str], code: Code, near: str
) -> None:
    question = asked("SELECT clinic, SUM(cost) FROM visits GROUP BY 1")
    with pytest.raises(ArgumentError) as caught:
        attributes_read(question, given)
    assert caught.value.code is code
    assert caught.value.problems[0].label == near


def test_names_are_those_of_the_policy() -> None:
    question = asked("SELECT clinic, SUM(cost) FROM visits GROUP BY 1")
    given = ["place=CLINIC", "cost", "day"]
    assert attributes_read(question, given) == ["place", "cost", "day"]
