"""A column of numbers: each mistake is said, and no other."""

from __future__ import annotations

import pytest
from samples import asked

from modicum.core.errors import Code, InputError


def mistakes(declared: str) -> list[Code]:
    text = asked.TABLES.replace("step: 0.5, bounds: [0, 8]", declared)
    assert text != asked.TABLES
    with pytest.raises(InputError) as caught:
        asked.tables(asked.compiled(), text)
    return [one.code for one in caught.value.problems]


@pytest.mark.parametrize("bounds", ["bounds: [0, 8]", "bounds: [0, 0.25]"])
def test_bounds_without_a_step_are_no_mistake_of_their_own(bounds: str) -> None:
    assert mistakes(bounds) == [Code.MISSING_KEY]
    assert mistakes(f"step: 0, {bounds}") == [Code.OUT_OF_RANGE]


def test_other_keys_still_are() -> None:
    found = mistakes("bounds: [0, 8], color: 1")
    assert set(found) == {Code.MISSING_KEY, Code.UNKNOWN_KEY}
    assert mistakes("step: 0.5, bounds: [0, 0.25]") == [Code.OUT_OF_RANGE]
