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
            f"`{identifier}` in the vault was changed: {why}",
            notes=("it was not read",),
            help="restore the vault from a copy",
        )
    )


def shredded(identifier: str) -> UnavailableError:
    """Return the error of an object whose key was destroyed."""
    return UnavailableError(
        Problem(
            Code.KEY_DESTROYED,
            f"the key of `{identifier}` was destroyed: it can no longer be read",
        )
    )


def no_key(why: str, remedy: str = "") -> UnavailableError:
    """Return the error of a key that cannot be had or used."""
    return UnavailableError(Problem(Code.KEY_UNAVAILABLE, why, help=remedy))


def used_before(identifier: str, *, is_shredded: bool) -> ConflictError:
    """Return the error of an id that is, or was, in use."""
    what = "was shredded" if is_shredded else "is already in the vault"
    return ConflictError(
        Problem(
            Code.SEALED_BEFORE,
            f"`{identifier}` {what}",
            help="use another id: ids are never reused",
        )
    )


def unusable(folder: Path, why: str, remedy: str = "") -> UnavailableError:
    """Return the error of a folder that nothing can be kept in."""
    problem = Problem(
        Code.VAULT_UNUSABLE, f"the folder {folder} cannot be used: {why}", help=remedy
    )
    return UnavailableError(problem)
