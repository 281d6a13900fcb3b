"""Opening a ledger that a server keeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from modicum.client.credentials import token_of
from modicum.core.errors import Code, Problem, UsageError
from modicum.core.extras import needing_extras
from modicum.integrations.loader import Adapters
from modicum.ops.wiring import token_from_environment

if TYPE_CHECKING:
    from modicum.client.workspace import RemoteWorkspace


def connect(
    url: str,
    *,
    token: str | None = None,
    token_file: str | Path | None = None,
    ca_file: str | Path | None = None,
    timeout_seconds: float = 60.0,
) -> RemoteWorkspace:
    """Open a ledger on a server. No request is made yet.

    The token is sent to this address alone: redirects are not followed, and plain
    `http` is for this machine.

    Args:
        url: The address of the server, such as `https://modicum.example`. It may end
            in `/api/v1`, or in `/api/v1/ledgers/NAME` for one of several ledgers.
        token: An API token, or a JWT of the organization's provider.
        token_file: A file with the token; if it is your own, others must not be able to
            read it. If neither is given, `MODICUM_TOKEN` is the token, or
            `MODICUM_TOKEN_FILE` names the file. Without one, requests are
            unauthenticated.
        ca_file: Certificates that are trusted, in PEM; None for those of the system.
        timeout_seconds: How long each answer is waited for; more than 0.

    Raises:
        UsageError: If the address, the token or the certificates cannot be used, or
            `httpx2` is not installed.
    """
    with needing_extras():
        from modicum.client.retry_connection import Connection
        from modicum.client.workspace import RemoteWorkspace
    if not 0 < timeout_seconds < float("inf"):
        raise UsageError(
            Problem(Code.OUT_OF_RANGE, "timeout_seconds must be finite and above 0")
        )
    if token is None and token_file is None:
        token, token_file = token_from_environment()
    return RemoteWorkspace(
        Connection(
            url,
            token_of(token, token_file),
            ca_file=ca_file,
            timeout_seconds=timeout_seconds,
        ),
        Adapters(),
    )
