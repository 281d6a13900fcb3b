"""Does the quick decorator make the classes that the standard one makes?"""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from modicum.core import record

Decorator = Callable[..., Any]


def classes(dataclass: Decorator) -> dict[str, Any]:
    """Return the same classes, made by a decorator."""

    @dataclass(frozen=True, slots=True)
    class Nothing:
        """No field."""

    @dataclass(frozen=True, slots=True)
    class One:
        """One field."""

        a: float

    @dataclass(frozen=True, slots=True)
    class Slots:
        """Fields of all kinds."""

        a: int
        kind: str = dataclasses.field(init=False, default="k")
        b: tuple[int, ...] = (1, 2)
        c: list[int] = dataclasses.field(default_factory=list, hash=False)
        hidden: str = dataclasses.field(default="h", repr=False, compare=False)
        made: list[int] = dataclasses.field(
            init=False, default_factory=list, hash=False
        )
        after: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "after", self.a + 1)

    @dataclass(frozen=True)
    class Attributes:
        """A class without slots."""

        a: int
        self_: str = "s"

        @property
        def twice(self) -> int:
            return 2 * self.a

    @dataclass(frozen=True, slots=True, eq=False)
    class Identity:
        """Objects that are equal to themselves only."""

        a: int

    @dataclass(frozen=True, slots=True, repr=False)
    class Secret:
        """Objects that do not show themselves."""

        a: int

    @dataclass(frozen=True, slots=True)
    class Own:  # noqa: PLW1641 - the decorator makes it
        """A class with methods of its own."""

        a: int

        def __eq__(self, other: object) -> bool:
            if not isinstance(other, Own):
                return NotImplemented
            return self.a % 2 == other.a % 2

        def __repr__(self) -> str:
            return "own"

    @dataclass(frozen=True, slots=True)
    class Hashed:
        """A class with a hash of its own."""

        a: int

        def __hash__(self) -> int:
            return 7

    @dataclass(frozen=True, slots=True)
    class Inner(Slots):
        """A class on top of another one."""

        d: int = 0

    @dataclasses.dataclass(frozen=True, slots=True)
    class Outer(Slots):
        """A class on top of another one, by the standard decorator."""

        e: str = "e"

    return {name: one for name, one in locals().items() if isinstance(one, type)}


STANDARD, QUICK = classes(dataclasses.dataclass), classes(record.dataclass)
GIVEN: dict[str, list[tuple[Any, ...]]] = {
    "Nothing": [()],
    "Slots": [(1,), (2, (3,)), (1, (1, 2), [4], "x")],
}
EACH = pytest.mark.parametrize("name", STANDARD)


def objects(cls: Any, name: str) -> list[Any]:
    """Return objects of a class, always the same."""
    return [cls(*given) for given in GIVEN.get(name, [(1,), (2,), (1,)])]


@EACH
def test_objects_are_equal_and_hashed_alike(name: str) -> None:
    expected, found = objects(STANDARD[name], name), objects(QUICK[name], name)
    for one, other in zip(expected, found, strict=True):
        for first, second in zip(expected, found, strict=True):
            assert (one == first) is (other == second)
            assert (one != first) is (other != second)
        assert other != one
        assert other.__eq__(3) is NotImplemented
        if name not in {"Identity", "Secret"}:
            assert hash(other) == hash(one)
            assert repr(other) == repr(one)
    not_a_number = float("nan")
    assert QUICK["One"](not_a_number) == QUICK["One"](not_a_number)


@EACH
def test_fields_are_those_of_the_standard_decorator(name: str) -> None:
    standard, quick = STANDARD[name], QUICK[name]
    assert dataclasses.is_dataclass(QUICK[name])
    assert [(one.name, one.type) for one in dataclasses.fields(quick)] == [
        (one.name, one.type) for one in dataclasses.fields(standard)
    ]
    assert quick.__match_args__ == standard.__match_args__
    assert quick.__dict__.get("__slots__") == standard.__dict__.get("__slots__")
    for one, other in zip(objects(standard, name), objects(quick, name), strict=True):
        assert dataclasses.asdict(other) == dataclasses.asdict(one)
        copied = dataclasses.replace(other)
        assert dataclasses.asdict(copied) == dataclasses.asdict(other)
        again = object.__new__(quick)
        if "__setstate__" in vars(quick):
            again.__setstate__(other.__getstate__())
            assert dataclasses.asdict(again) == dataclasses.asdict(other)
    own, expected = inspect.signature(quick), inspect.signature(standard)
    assert list(own.parameters) == list(expected.parameters)


@EACH
def test_objects_cannot_be_changed(name: str) -> None:
    found = objects(QUICK[name], name)[0]
    # The standard decorator cannot say it of a name that is no field.
    alone = not {"Inner", "Outer"} & {name}
    for field in ("a", "another") if alone else ("a",):
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"assign.*{field}"):
            setattr(found, field, 3)
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"delete.*{field}"):
            delattr(found, field)


@pytest.mark.parametrize("given", [(), (1, 2, 3, 4, 5), (1, (), [], "", 6)])
def test_wrong_arguments_are_refused(given: tuple[object, ...]) -> None:
    for cls in (STANDARD["Slots"], QUICK["Slots"]):
        with pytest.raises(TypeError, match="argument"):
            cls(*given)
        with pytest.raises(TypeError, match="argument"):
            cls(1, kind="k")


def test_defaults_that_are_made_are_made_for_each() -> None:
    one, other = QUICK["Slots"](1), QUICK["Slots"](1)
    assert one.c is not other.c
    assert one.made is not other.made


@record.dataclass(frozen=True, slots=True)
class Stored:
    """A class that can be found by its name."""

    a: int
    b: str = "b"


def test_objects_are_stored_and_loaded() -> None:
    assert pickle.loads(pickle.dumps(Stored(1))) == Stored(1)
