"""Failures of work that touches rows: what is told of them, and what is not."""

from __future__ import annotations

import traceback

import pytest

from modicum.core.errors import (
    Code,
    InputError,
    ModicumError,
    Problem,
    UnavailableError,
)
from modicum.core.redaction import scrubbed

SECRET = "row-4711"


def failure() -> UnavailableError:
    return UnavailableError(Problem(Code.ENGINE_FAILED, "it failed"))


def caught_of(error: BaseException, cause: BaseException | None) -> ModicumError:
    """Return what is told of an error that comes through frames that hold a row."""

    def work() -> None:
        row = SECRET
        try:
            raise LookupError(row)
        except LookupError:
            raise error from cause

    with pytest.raises(ModicumError) as caught:
        scrubbed(work, failure())
    return caught.value


def frames(error: BaseException) -> list[str]:
    """Return the functions that an error came through, as far as it tells."""
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_what_works_is_returned_as_it_is() -> None:
    rows = [object()]
    assert scrubbed(lambda: rows, failure()) is rows


@pytest.mark.parametrize("cause", [None, KeyError(SECRET)])
@pytest.mark.parametrize(
    "error", [ValueError(SECRET), MemoryError(SECRET), StopIteration(SECRET)]
)
def test_an_error_of_others_is_replaced(
    error: Exception, cause: BaseException | None
) -> None:
    found = caught_of(error, cause)
    assert type(found) is UnavailableError
    assert found.problems == failure().problems
    assert found.__cause__ is found.__context__ is None
    assert "work" not in frames(found)


@pytest.mark.parametrize("cause", [None, KeyError(SECRET)])
def test_a_mistake_that_modicum_found_is_told_alone(
    cause: BaseException | None,
) -> None:
    own = InputError(Problem(Code.DOES_NOT_FIT, "no column `n`"))
    found = caught_of(own, cause)
    assert found is own
    assert found.__cause__ is found.__context__ is None
    assert "work" not in frames(found)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interruption_is_no_failure(kind: type[BaseException]) -> None:
    def work() -> None:
        raise kind

    with pytest.raises(kind):
        scrubbed(work, failure())
