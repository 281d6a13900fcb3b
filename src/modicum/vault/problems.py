"""Errors of a vault, without any of its contents."""

from __future__ import annotations

from pathlib import Path

from modicum.core.errors import (
    Code,
    ConflictError,
    Problem,
    UnavailableError,
    VerificationError,
)


def broken(identifier: str, why: str) -> VerificationError:
    """Return the error of an object whose content was changed."""
    return VerificationError(
        Problem(
            Code.SEALED_BROKEN,
            f"`{identifier}` in the vault is not what was put in: {why}",
            notes=("nothing of it was read",),
            help="restore the vault from a copy",
        )
    )


def shredded(identifier: str) -> UnavailableError:
    """Return the error of an object whose key was destroyed."""
    return UnavailableError(
        Problem(
            Code.KEY_DESTROYED,
            f"the key of `{identifier}` was destroyed: nobody can read it again",
        )
    )


def no_key(why: str, remedy: str = "") -> UnavailableError:
    """Return the error of a key that cannot be had or used."""
    return UnavailableError(Problem(Code.KEY_UNAVAILABLE, why, help=remedy))


def used_before(identifier: str, *, is_shredded: bool) -> ConflictError:
    """Return the error of an id that is, or was, in use."""
    what = "was shredded" if is_shredded else "lies in the vault already"
    return ConflictError(
        Problem(
            Code.SEALED_BEFORE,
            f"`{identifier}` {what}",
            help="use another id: each stands for one thing, for good",
        )
    )


def unusable(folder: Path, why: str, remedy: str = "") -> UnavailableError:
    """Return the error of a folder that nothing can be kept in."""
    problem = Problem(
        Code.VAULT_UNUSABLE, f"the folder {folder} cannot be used: {why}", help=remedy
    )
    return UnavailableError(problem)
