"""Audits of a ledger that a server keeps: bundles that are verified here."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from modicum.api import operations
from modicum.client.jobs import Job
from modicum.client.retry_connection import ATTEMPTS_MAX, Connection, Request
from modicum.core.errors import UnavailableError
from modicum.storage.proofs.bundles import open_bundle, verify_bundle
from modicum.storage.proofs.verification import Trust, Verified, load_trust
from modicum.system.files import write_whole

_ZIP: Final = "application/zip"
#: Chunk size of a bundle, in bytes.
_PIECE: Final = 2**18


class RemoteAudits:
    """Audit operations on a server's ledger.

    Args:
        connection: The server.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def export(
        self,
        path: str | Path,
        *,
        public_keys: Sequence[Path] = (),
        claims: Sequence[Path] = (),
    ) -> Verified:
        """Fetch an audit bundle of the ledger as it is, verify it, and keep it.

        All of it is checked here, as `modicum audit verify` does; the server is
        believed in nothing. A bundle that does not hold is not kept.
        """
        trust = load_trust(public_keys, claims)
        with tempfile.TemporaryDirectory(prefix="modicum-bundle-") as folder:
            draft = Path(folder) / "audit.bundle"
            self._fetch(draft)
            found = verified(draft, trust)
            with draft.open("rb") as file:
                write_whole(path, _pieces(file))
        return found

    def start_verification(self, *, noted_hash: str = "") -> Job:
        """Start a verification of the server's ledger by the server."""
        request = Request(operations.VERIFY_LEDGER, query={"head": noted_hash})
        return Job(self._connection, self._connection.send(request))

    def _fetch(self, path: Path) -> None:
        """Write a bundle while receiving it; after a disconnection, start over."""
        for left in reversed(range(ATTEMPTS_MAX)):
            try:
                with (
                    path.open("wb") as file,
                    self._connection.pieces(
                        Request(operations.BUNDLE, accept=_ZIP)
                    ) as pieces,
                ):
                    for piece in pieces:
                        file.write(piece)
            except UnavailableError:
                if not left:
                    raise
            else:
                return


def verified(path: Path, trust: Trust) -> Verified:
    """Return the verification result of a bundle, after checking all of it."""
    with open_bundle(path) as bundle:
        return verify_bundle(bundle, trust, path=path)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece
