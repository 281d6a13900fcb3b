"""Loading other libraries, and reporting their failures without their messages."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from modicum.core.errors import (
    Code,
    ModicumError,
    Problem,
    UnavailableError,
    UsageError,
)
from modicum.core.extras import not_installed

_Result = TypeVar("_Result")


def loaded(module: str, library: str, package: str) -> Any:
    """Return a module of another library."""
    try:
        return import_module(module)
    except ImportError:
        raise UsageError(not_installed(library, package)) from None


def unquoted(library: str, doing: str, work: Callable[[], _Result]) -> _Result:
    """Return the result of a library's work; a failure is reported without details."""
    try:
        return work()
    except ModicumError:
        raise
    except Exception as error:  # noqa: BLE001 - it may be anything, with rows in it
        kind = type(error).__name__
    # Outside of the handler: else the failure would stay attached to this one.
    raise UnavailableError(
        Problem(
            Code.ENGINE_FAILED,
            f"{library} failed {doing} ({kind})",
            notes=("its error message is hidden: it may quote rows",),
            help="try it on synthetic rows, without a reservation, for details",
        )
    )
