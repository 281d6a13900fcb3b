"""Which data belongs to which table."""

from __future__ import annotations

from typing import Any

import pytest

from modicum.api.local.queries.actions import by_table
from modicum.core.errors import UsageError


def test_data_is_given_by_table() -> None:
    given = {"b": 2, "a": "a.csv"}
    assert by_table(given, ("a", "b")) == {"a": "a.csv", "b": 2}
    assert by_table({"a": None}, ("a",)) == {"a": None}


@pytest.mark.parametrize("one", ["a.csv", ["x.parquet", "y.parquet"], object()])
def test_that_of_the_only_table_may_stand_alone(one: object) -> None:
    assert by_table(one, ("a",)) == {"a": one}


@pytest.mark.parametrize(
    ("data", "tables", "words"),
    [
        ("a.csv", ("a", "b"), "give the source of `a` and `b`"),
        (None, ("a",), "give the source of `a`"),
        ({}, ("a",), "give the source of `a`"),
        ({"a": 1}, ("a", "b"), "give the source of `b`"),
        ({"a": 1, "order": 2}, ("a", "orders"), "does not read the table `order`"),
        ({1: 2}, ("a",), "does not read the table `1`"),
    ],
)
def test_each_table_has_data_and_no_other(
    data: Any, tables: tuple[str, ...], words: str
) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        by_table(data, tables)
    assert 'data={"a": …' in caught.value.problems[0].help
