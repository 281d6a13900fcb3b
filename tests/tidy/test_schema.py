"""The shapes of answers: unique names, frozen, and amounts where they are amounts."""

from __future__ import annotations

import inspect
import typing

import pytest
from samples.tools import tool

from modicum.api.schema.policy import RuleStanding
from modicum.api.schema.shape import Amount, Shape, columns

SHAPES = [*tool("json_reference").shapes().values()]
#: Numbers that are never infinite.
FINITE = frozenset({"delta", "epsilon", "progress", "share", "unlocked"})


def test_there_are_shapes() -> None:
    assert len(SHAPES) > 80


@pytest.mark.parametrize("shape", SHAPES, ids=lambda one: one.__name__)
def test_a_number_that_may_be_infinite_is_an_amount(shape: type[Shape]) -> None:
    for name, kind in typing.get_type_hints(shape).items():
        args = {kind, *typing.get_args(kind)}
        assert float not in args or name in FINITE, f"{name}: is it an Amount?"
        assert not (Amount in args and name in FINITE)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda one: one.__name__)
def test_a_shape_is_frozen_and_its_fields_have_names(shape: type[Shape]) -> None:
    own = shape.__struct_config__
    assert own.frozen
    assert not own.forbid_unknown_fields
    given = inspect.signature(shape).parameters.values()
    assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in given)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda one: one.__name__)
def test_columns_have_a_heading_and_a_place_of_their_own(shape: type[Shape]) -> None:
    found = columns(shape).values()
    assert len({one.heading for one in found}) == len(found)
    assert len({one.place for one in found}) == len(found)


def test_columns_stand_in_their_places() -> None:
    headings = [one.heading for one in columns(RuleStanding).values()]
    assert headings == ["RULE", "", "SPENT", "LIMIT", "SCALE", "STATE", "FULLEST CELL"]
