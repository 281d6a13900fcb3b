"""Queries of Python values: their tables are read under the policy that is named."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from samples import asked

from modicum.core.document import to_plain
from modicum.core.errors import Code, InputError
from modicum.ops.files.queries import sql_query
from modicum.policy import CompiledPolicy
from modicum.query.query_file import QueryFile

#: What `asked.TABLES` declares, as Python values.
DECLARED = {
    "modicum": "tables/v1",
    "tables": {
        "views": {
            "row_id": "view_id",
            "columns": {
                "view_id": {"type": "integer"},
                "user_id": {"type": "text"},
                "read_at": {"type": "timestamp"},
                "page": {
                    "type": "text",
                    "attribute": "page",
                    "values": ["help", "main"],
                },
                "topic": {"type": "text", "attribute": "topic"},
                "amount": {
                    "type": "number",
                    "attribute": "amount",
                    "step": Fraction(1, 2),
                    "bounds": [0, 8],
                },
            },
        }
    },
}
#: What is declared there of `amount` means nothing under this policy.
WITHOUT_AMOUNT = asked.POLICY.replace(", amount: high", "")
#: Under this one, the column of the user's id is a column like others.
OF_PERSONS = asked.POLICY.replace("id: user_id", "id: person_id")


@pytest.fixture(params=["path", "text", "values"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Return what is declared, in a form that `sql_query` takes."""
    file = tmp_path / "tables.yaml"
    file.write_text(asked.TABLES)
    forms: dict[str, object] = {"path": file, "text": str(file), "values": DECLARED}
    return forms[request.param]


def question(tables: Any, policy: CompiledPolicy) -> QueryFile:
    return sql_query(
        "views",
        asked.COUNTED,
        tables=tables,
        policy=policy,
        periods="2026-10",
        bounds={"user-day": 10, "user-month": 70},
        noise="gaussian",
        loss={"user-day": {"rho": Fraction("0.03")}},
    )


def test_in_all_forms_it_is_the_query_of_the_file(tables: Any) -> None:
    found, of_file = question(tables, asked.compiled()), asked.query()
    assert to_plain(found.described) == to_plain(of_file.described)
    assert found.policy == of_file.policy


@pytest.mark.parametrize(
    ("other", "word"), [(WITHOUT_AMOUNT, "`amount`"), (OF_PERSONS, "`user_id`")]
)
def test_tables_that_do_not_fit_the_policy_are_refused(
    tables: Any, other: str, word: str
) -> None:
    with pytest.raises(InputError) as caught:
        question(tables, asked.compiled(other))
    assert caught.value.code is Code.UNKNOWN_ATTRIBUTE
    assert word in caught.value.problems[0].message


@pytest.mark.parametrize("other", [asked.POLICY, asked.WITH_DELTA, WITHOUT_AMOUNT])
def test_tables_that_were_read_before_are_refused(other: str) -> None:
    """They do not tell by which policy, and would mean something else by another."""
    with pytest.raises(InputError) as caught:
        question(asked.tables(asked.compiled()), asked.compiled(other))
    assert caught.value.code is Code.WRONG_TYPE
    assert "`Tables`" in caught.value.problems[0].message
