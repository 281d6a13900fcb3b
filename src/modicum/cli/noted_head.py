"""A head as people note it: the hash of an entry, or the first digits of it."""

from __future__ import annotations

import re
from collections.abc import Iterable

import typer

#: Commands print so many digits of a head; fewer of them are not taken for one.
DIGITS_MIN = 12
_HEAD = re.compile(rf"[0-9a-f]{{{DIGITS_MIN},64}}")


def noted_head(given: str) -> str:
    """Return the digits of a head that was noted.

    Args:
        given: What was typed.

    Raises:
        BadParameter: If that is not 12 to 64 hexadecimal digits.
    """
    digits = given.strip().lower()
    if not _HEAD.fullmatch(digits):
        raise typer.BadParameter(
            f"not a head: a head is {DIGITS_MIN} to 64 hexadecimal digits, as"
            " `status` and `ledger list` print them",
            param_hint="--head",
        )
    return digits


def whole_head(digits: str, hashes: Iterable[str]) -> str:
    """Return the hash that begins with some digits; the digits if none does.

    Args:
        digits: What `noted_head` returns.
        hashes: The hashes of all entries.

    Raises:
        BadParameter: If several begin so.
    """
    found = {one for one in hashes if one.startswith(digits)}
    if len(found) > 1:
        raise typer.BadParameter(
            f"{len(found)} entries have a hash that begins so: give more digits",
            param_hint="--head",
        )
    return found.pop() if found else digits
