"""Names of people and programs, unique and unconfusable."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from modicum.core.errors import Code, InputError, Problem, printable
from modicum.policy.declarations.roles import person_key
from modicum.server.auth.problems import forbidden

#: The prefix of every program's name, and of no other.
PROGRAM_PREFIX: Final = "service:"

_NAME: Final = re.compile(r"\w[\w.@+-]{0,191}")


def person_name(claimed: object, *, fold_case: bool) -> str:
    """Return the name of a person in the ledger.

    Two people whom a policy cannot distinguish must not both sign in, so only one
    spelling is accepted: lower case, no blanks, no lookalikes.
    """
    name = _taken(claimed, fold_case=fold_case)
    if name is None:
        raise forbidden(
            "the provider returned a name that may be ambiguous",
            "configure names in lower case without spaces, or choose another"
            " claim for `name` in the settings",
        )
    return name


def owner_name(claimed: str) -> str:
    """Return the name of the person that a token is to be for, as at sign-in."""
    name = _taken(claimed, fold_case=True)
    if name is None:
        raise InputError(
            Problem(
                Code.BAD_NAME,
                f"`{printable(claimed[:60])}` is not a valid name of a person",
                help="a person's name has letters, digits and any of  . _ @ + -  ; mark"
                " the token as one for a program, if it is",
            )
        )
    return name


def program_name(claimed: object) -> str:
    """Return the name by which the ledger knows a program."""
    name = claimed if isinstance(claimed, str) else ""
    if not is_plain(name):
        raise forbidden(
            "the provider returned an ambiguous name for the program",
            "give it a name in lower case, without spaces",
        )
    return f"{PROGRAM_PREFIX}{name}"


def program_actor(claimed: str) -> str:
    """Return the name of the program that a token is to be for."""
    name = claimed.removeprefix(PROGRAM_PREFIX)
    if not is_plain(name):
        raise InputError(
            Problem(
                Code.BAD_NAME,
                f"`{printable(claimed[:60])}` is not a valid name of a program",
                help=f"use  {PROGRAM_PREFIX}NAME , or  NAME : lower-case letters,"
                " digits and any of  . _ @ + -",
            )
        )
    return f"{PROGRAM_PREFIX}{name}"


def _taken(claimed: object, *, fold_case: bool) -> str | None:
    """Return a person's name in canonical form; None if it is invalid."""
    name = claimed if isinstance(claimed, str) else ""
    if fold_case and unicodedata.is_normalized("NFKC", name):
        # Where lower case is more than a matter of case, as with a long s, the check
        # below refuses.
        name = name.lower()
    return name if is_plain(name) else None


def is_plain(name: str) -> bool:
    """Return whether a name is in canonical form."""
    return (
        _NAME.fullmatch(name) is not None
        and unicodedata.is_normalized("NFKC", name)
        and person_key(name) == name
    )
