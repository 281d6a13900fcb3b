"""The shapes of answers: unique names, frozen, and amounts where they are amounts."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import typing
from collections import Counter

import pytest

import modicum.api.schema
from modicum.api.schema.shape import Amount, Shape

MODULES = [one.name for one in pkgutil.iter_modules(modicum.api.schema.__path__)]
#: Numbers that are never infinite.
FINITE = frozenset({"delta", "progress", "share", "unlocked"})


def shapes() -> list[type[Shape]]:
    found, todo = [], [Shape]
    for name in MODULES:
        importlib.import_module(f"modicum.api.schema.{name}")
    while todo:
        found += (one := todo.pop().__subclasses__())
        todo += one
    return [one for one in found if one.__module__.startswith("modicum.api.schema.")]


SHAPES = shapes()


def test_names_are_unique() -> None:
    assert len(SHAPES) > 80
    (most, times), *_ = Counter(one.__name__ for one in SHAPES).most_common()
    assert times == 1, most


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
