"""Refusing a name that people may take for another one."""

from __future__ import annotations

from typing import Final

from modicum.core.errors import Code, InputError, Problem, printable

#: The end of the sentence about a name that a ledger or the settings know.
KNOWN: Final = "which is known here"


def lookalike_problem(name: str, other: str, which: str) -> Problem:
    """Return the problem of a name that looks like another one.

    Args:
        name: The new name.
        other: The known name.
        which: Where the other name is known, as the end of a sentence.
    """
    return Problem(
        Code.DUPLICATE_NAME,
        f"`{printable(name)}` looks like `{printable(other)}`, {which}",
        notes=tuple(f"`{printable(one)}` is {_points(one)}" for one in (other, name)),
        help="keep the first name, and choose another one that looks different",
    )


def refuse_lookalike(name: str, other: str | None) -> None:
    """Refuse a new name that looks like a known one."""
    if other is not None:
        raise InputError(lookalike_problem(name, other, KNOWN))


def _points(name: str) -> str:
    return " ".join(f"U+{ord(one):04X}" for one in name)
