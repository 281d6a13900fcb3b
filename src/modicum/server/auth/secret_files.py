"""Secrets from files, protected against accidental disclosure."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Final

from modicum.core.errors import Code, InputError, Problem, UsageError

_BYTES_MAX: Final = 4096


class Secret:
    """A text that shows itself nowhere: not in reprs, messages, logs or tracebacks.

    Args:
        text: The secret.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the secret, for the one call that sends it."""
        return self._text

    def derived(self, purpose: str) -> bytes:
        """Return 32 bytes derived from the secret and unpredictable without it."""
        return hashlib.blake2b(
            purpose.encode(),
            key=hashlib.sha256(self._text.encode()).digest(),
            digest_size=32,
        ).digest()

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__


def read_secret(path: Path) -> Secret:
    """Return the secret of a file, without the line break at its end."""
    try:
        # Reading a pipe without a writer would block the server permanently.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_BYTES_MAX + 1) if stat.S_ISREG(mode) else b""
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        raise _unfit(path, f"cannot be read: {reason}") from None
    if stat.S_IMODE(mode) & 0o077:
        raise UsageError(
            Problem(
                Code.FILE_UNREADABLE,
                f"{path} is accessible to other users (mode {stat.S_IMODE(mode):04o})",
                notes=("anyone who can read the secret can impersonate this server",),
                help=f"chmod 600 {path}, and replace the secret if others may have"
                " read it",
            )
        )
    try:
        text = data.decode("ascii").rstrip("\r\n")
    except UnicodeDecodeError:
        raise _unfit(path, "contains invalid characters") from None
    if not text or len(data) > _BYTES_MAX or not text.isprintable() or " " in text:
        raise _unfit(path, "must contain the secret in one line, and nothing else")
    return Secret(text)


def _unfit(path: Path, why: str) -> InputError:
    return InputError(
        Problem(
            Code.FILE_UNREADABLE,
            f"the secret {path} {why}",
            help="write the secret of the provider to it, and  chmod 600  it",
        )
    )
