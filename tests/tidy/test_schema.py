"""The shapes of answers: unique names, frozen, and amounts where they are amounts."""

from __future__ import annotations

import inspect
import typing

import pytest
from samples.tools import tool

from modicum.api import operations
from modicum.api.permissions.actions import Role
from modicum.api.schema import account, escrow_input
from modicum.api.schema.policy import RuleStanding
from modicum.api.schema.shape import Amount, Input, Shape, columns, meanings
from modicum.api.schema.shape import shapes as imported
from modicum.escrow.blocks import BLOCKS_MAX, BLOCKS_MIN
from modicum.escrow.programs import CODE_BYTES_MAX
from modicum.ledger.state.contract_checks import RECIPIENTS_MAX

SHAPES = [*tool("json_reference").shapes().values()]
INPUTS = [one for one in imported().values() if issubclass(one, Input)]
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


@pytest.mark.parametrize("shape", [*SHAPES, *INPUTS], ids=lambda one: one.__name__)
def test_each_field_has_a_meaning(shape: type[Shape | Input]) -> None:
    told = meanings(shape)
    assert [one for one in shape.__struct_fields__ if not told.get(one)] == []


@pytest.mark.parametrize("kind", INPUTS, ids=lambda one: one.__name__)
def test_an_input_is_frozen_and_takes_no_other_keys(kind: type[Input]) -> None:
    own = kind.__struct_config__
    assert own.frozen
    assert own.forbid_unknown_fields or kind.__name__ == "AnalysisRequest"
    given = inspect.signature(kind).parameters.values()
    assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in given)


def test_names_are_of_one_shape_or_input() -> None:
    names = [one.__name__ for one in (*SHAPES, *INPUTS)]
    assert sorted(names) == sorted({*names})


def test_what_an_operation_takes_is_an_input_or_a_document() -> None:
    found = [
        one.takes
        for one in vars(operations).values()
        if isinstance(one, operations.Operation)
    ]
    documents = [one for one in found if isinstance(one, operations.Document)]
    inputs = [one for one in found if one is not None and one not in documents]
    assert len(documents) > 10
    assert len(inputs) > 10
    for one in inputs:
        assert all(issubclass(kind, Input) for kind in typing.get_args(one) or (one,))


def test_limits_and_words_of_inputs_are_those_of_what_takes_them() -> None:
    assert escrow_input.BLOCKS == (BLOCKS_MIN, BLOCKS_MAX)
    assert escrow_input.RECIPIENTS_MAX == RECIPIENTS_MAX
    assert 2 * max(CODE_BYTES_MAX.values()) == escrow_input.CODE_MAX
    assert [*typing.get_args(account.RoleName)] == [role.value for role in Role]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda one: one.__name__)
def test_columns_have_a_heading_and_a_place_of_their_own(shape: type[Shape]) -> None:
    found = columns(shape).values()
    assert len({one.heading for one in found}) == len(found)
    assert len({one.place for one in found}) == len(found)


def test_columns_stand_in_their_places() -> None:
    headings = [one.heading for one in columns(RuleStanding).values()]
    assert headings == ["RULE", "", "SPENT", "LIMIT", "SCALE", "STATE", "FULLEST CELL"]
