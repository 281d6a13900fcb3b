"""What stands on the command line itself: which options, and whose mistake one is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from modicum.core.errors import InputError, UsageError


def was_given(context: typer.Context, parameter: str) -> bool:
    """Return whether an option of the running command was typed, not left out.

    Args:
        context: Of the command.
        parameter: What the command's function calls it.
    """
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def not_beside(option: str, other: str) -> typer.BadParameter:
    """Return the mistake of giving an option that another makes meaningless.

    Args:
        option: What nothing would hear.
        other: Why.
    """
    return typer.BadParameter(
        f"{option} does not go with {other}; leave one of them out"
    )


@contextmanager
def from_options() -> Iterator[None]:
    """Make a mistake in what options say one in the command line: exit code 2.

    Raises:
        UsageError: In place of an `InputError` from within.
    """
    try:
        yield
    except InputError as error:
        raise UsageError(*error.problems) from error
