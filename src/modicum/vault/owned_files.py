"""Files with secrets: regular ones of our own that nobody else can read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from modicum.core.errors import Code, Problem, UnavailableError
from modicum.vault.problems import no_key

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def read_owned(path: Path, most: int, *, may_be_link: bool = False) -> bytes:
    """Return the bytes of a file with a secret."""
    flags = _FLAGS | (0 if may_be_link else os.O_NOFOLLOW)
    try:
        while True:
            with os.fdopen(os.open(path, flags), "rb") as file:
                found = os.fstat(file.fileno())
                refused = _refusal(path, found)
                data = b"" if refused else file.read(most + 1)
                # An unlinked file may have been overwritten meanwhile.
                if refused or os.path.samestat(path.stat(), found):
                    break
    except OSError as error:
        why = (error.strerror or "system error").lower()
        raise no_key(f"{path} cannot be read: {why}") from None
    if refused is not None:
        raise refused
    if len(data) > most:
        raise no_key(f"{path} is too large")
    return data


def _refusal(path: Path, found: os.stat_result) -> UnavailableError | None:
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISREG(found.st_mode):
        return no_key(f"{path} is not a regular file")
    if found.st_uid != os.geteuid():
        return no_key(f"{path} has another owner", "use your own file")
    if mode & 0o077:
        return UnavailableError(
            Problem(
                Code.KEY_UNAVAILABLE,
                f"{path} is accessible to other users (mode {mode:04o})",
                notes=("anyone who can read it can decrypt the vault",),
                help=f"chmod 600 {path}, and replace the key if others may have read"
                " it",
            )
        )
    return None
