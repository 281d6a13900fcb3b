"""The table of mechanisms: each row is read, and has all that prices ask of it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from modicum.accounting import mechanisms
from modicum.accounting.curves import UNKNOWN
from modicum.accounting.mechanisms import (
    ACCOUNT_KINDS,
    MECHANISM_KINDS,
    RELEASE_KINDS,
)
from modicum.accounting.mechanisms.kind import Kind, Parameter
from modicum.accounting.named_mechanisms import complete_values
from modicum.core.document import from_python
from modicum.core.errors import Code, InputError

EVERY = {**ACCOUNT_KINDS, **RELEASE_KINDS}


def test_every_row_has_its_module_and_every_place_is_known() -> None:
    names = [name for name, _, _ in mechanisms._TABLE]
    assert len(names) == len(set(names))
    assert set(EVERY) == set(names)
    assert {place for _, _, one in mechanisms._TABLE for place in one.split()} == {
        *("account", "release")
    }
    assert all(EVERY[name].name == name for name in names)
    assert tuple(sorted(RELEASE_KINDS)) == MECHANISM_KINDS


def test_a_name_that_bears_its_module_s_name_is_the_function() -> None:
    for name in ("gaussian", "laplace", "discrete_gaussian", "randomized_response"):
        assert callable(getattr(mechanisms, name))


@pytest.mark.parametrize("kind", EVERY.values(), ids=EVERY)
def test_a_kind_is_whole(kind: Kind) -> None:
    names = [parameter.name for parameter in kind.parameters]
    assert len(names) == len(set(names))
    assert (kind.norm is not None) == ("sensitivity" in names)
    assert kind.norm in {None, "l1", "l2", "linf", "teachers"}
    assert all(one in names for one in (kind.repeats, kind.target) if one)
    if kind.noise is not None:
        assert kind.noise.law in {"laplace", "gaussian"}
        assert kind.noise.scale in kind.needed


@pytest.mark.parametrize(
    "kind",
    [one for one in RELEASE_KINDS.values() if one.parameters],
    ids=lambda one: one.name,
)
def test_a_release_can_price_it(kind: Kind) -> None:
    assert kind.measure in {"eps", "rho"}
    assert kind.needed
    assert not kind.local or kind.repeats in kind.defaults  # Else answers are free.
    assert not set(kind.slips) & set(kind.described)
    for parameter in kind.described.values():
        # What the reader of files, and the JSON Schema, can say.
        assert parameter.least == 0 or parameter.whole
        assert parameter.most in {None, 1}
    more = {
        name: parameter.default or Fraction(100 if parameter.whole else "0.9")
        for name, parameter in {**kind.described, **kind.of_unit}.items()
    }
    if kind.samples:
        more["sampling-rate"] = Fraction(1, 100)
    curve = kind.build(complete_values(kind, more))
    index = 0 if kind.measure == "eps" else 1
    assert curve.loss().coordinates[index] < UNKNOWN.loss().coordinates[index]


def test_of_what_only_is_declared_nothing_is_proven() -> None:
    declared = RELEASE_KINDS["declared"]
    assert declared.build({}) is UNKNOWN
    assert not declared.local
    assert not declared.needed


def test_a_parameter_is_read_within_its_range() -> None:
    half = Parameter("share", "of something", most=Fraction(1), least=Fraction(1, 2))
    assert half.read(from_python(0.75), "`share`") == Fraction(3, 4)
    for value in (0.5, 0.25, 1):
        with pytest.raises(InputError) as caught:
            half.read(from_python(value), "`share`")
        assert caught.value.code is Code.OUT_OF_RANGE
