"""The secrets of a connection, and where they may be sent."""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from modicum.api.operations import PREFIX, ledger_prefix
from modicum.core.errors import Code, Problem, UsageError

#: A longer token is none.
TOKEN_CHARACTERS_MAX: Final = 16_384


@dataclass(frozen=True, slots=True)
class Token:
    """A token; nothing shows it.

    Attributes:
        value: The token.
    """

    value: str = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse characters that a header cannot contain."""
        visible = self.value.isascii() and self.value.isprintable()
        if (
            not 0 < len(self.value) <= TOKEN_CHARACTERS_MAX
            or not visible
            or " " in self.value
        ):
            raise refused(
                "the token is empty, too long, or contains invalid characters"
            )


#: What follows the prefix in the address of one of several ledgers.
_LEDGER: Final = re.compile(r"ledgers/([a-z0-9-]+)/")


def token_of(token: str | None, token_file: str | Path | None) -> Token:
    """Return the token, from the argument or a file."""
    if token is not None and token_file is not None:
        raise refused("a token and a token file are given", "give one of them")
    if token is not None:
        return Token(token)
    if token_file is None:
        raise refused(
            "no token is given, and the server requires one",
            "give  token_file=… , or set MODICUM_TOKEN_FILE or MODICUM_TOKEN; the"
            " operator of the server creates one with  modicum token create",
        )
    try:
        with Path(token_file).open("rb") as file:
            _refuse_open(token_file, os.fstat(file.fileno()))
            content = file.read(TOKEN_CHARACTERS_MAX + 3)
    except OSError as error:
        why = f"the token file `{token_file}` cannot be read ({error.strerror})"
        raise refused(why) from None
    # An invalid encoding is reported without the file's content.
    return Token(content.decode("latin-1").rstrip("\r\n"))


def address_of(url: str) -> str:
    """Return the address of a server, or of one of its ledgers, if it may be used."""
    try:
        found = urlsplit(url)
        host, _ = found.hostname or "", found.port
    except ValueError:
        raise _no_address() from None
    if found.username is not None or found.password is not None:
        raise refused(
            "the URL of a server must not contain credentials", "give a token"
        )
    plain = found.scheme == "http"
    if (
        found.scheme not in {"http", "https"}
        or not host
        or found.query
        or found.fragment
        or not url.isprintable()
    ):
        raise _no_address()
    if plain and not _is_here(host):
        raise refused(
            f"plain http to `{host}` would expose tokens and releases",
            "use https://; plain http is for this machine only",
        )
    before, separator, more = f"{found.path.rstrip('/')}/".partition(f"{PREFIX}/")
    address = f"{found.scheme}://{found.netloc}{before.rstrip('/')}"
    ledger = _LEDGER.fullmatch(more)
    if ledger is not None:
        return address + ledger_prefix(ledger[1])
    if separator and more:
        raise refused(
            "the address of a server goes on with the query of it",
            f"give the server only:  {address}",
        )
    return address


def trusted(ca_file: str | Path | None) -> ssl.SSLContext:
    """Return the TLS context that verifies a server."""
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else ca_file)
    except OSError:  # An SSLError is one.
        raise refused(f"`{ca_file}` contains no readable certificates") from None


def _refuse_open(file: str | Path, found: os.stat_result) -> None:
    """Refuse one's own file if others can read it.

    Another owner is responsible for protecting their file, as with secrets mounted into
    a container, whose readers cannot change the mode. ssh does the same.
    """
    mode = stat.S_IMODE(found.st_mode)
    own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    if own and mode & 0o077:
        raise refused(
            f"the token file `{file}` is accessible to other users (mode {mode:04o})",
            f"chmod 600 {file} , and replace the token if others may have read it;"
            " mount a container secret with mode 0400",
        )


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _no_address() -> UsageError:
    return refused(
        "the address of a server is not a valid URL",
        "give one such as  https://modicum.example",
    )


def refused(message: str, help_: str = "") -> UsageError:
    """Return the mistake of an address, a token or certificates."""
    return UsageError(Problem(Code.BAD_ADDRESS, message, help=help_))
