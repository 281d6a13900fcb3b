"""Remedies as they are typed: options in place of the arguments of Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from modicum.core.errors import ModicumError, Problem, UsageError

#: Arguments whose options are called otherwise.
_OTHERWISE: Final = {"form": "--indicator", "between": "--groups"}
_ARGUMENT: Final = re.compile(r"`([a-z_]+)=`")


@contextmanager
def in_options() -> Iterator[None]:
    """Name options in mistakes from within; one in what options say is one of usage.

    Raises:
        ModicumError: What was raised within, in these words.
    """
    from modicum.risk.arguments import GivenError

    try:
        yield
    except ModicumError as error:
        kind = UsageError if isinstance(error, GivenError) else type(error)
        raise kind(*map(_told, error.problems)) from error


def _told(problem: Problem) -> Problem:
    return replace(
        problem,
        message=_with_options(problem.message),
        notes=tuple(map(_with_options, problem.notes)),
        help=_with_options(problem.help),
    )


def _with_options(text: str) -> str:
    return _ARGUMENT.sub(lambda found: f"`{_option(found[1])}`", text)


def _option(argument: str) -> str:
    return _OTHERWISE.get(argument) or f"--{argument.replace('_', '-')}"
