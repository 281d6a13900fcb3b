"""The equipment of an escrow, assembled."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from modicum.api.ports.escrow import Still, Work, go_on
from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, Problem, UsageError
from modicum.engines.file_types import header_of, must_be_parquet
from modicum.engines.sources import CsvFile, ParquetFiles, Source
from modicum.ops.escrow.reader import Reader
from modicum.sandbox import factory
from modicum.vault.named_keys import named_keys
from modicum.vault.vault import EncryptedVault, open_vault

if TYPE_CHECKING:
    from modicum.api.ports.escrow import Apart, Sandbox, Sealed
    from modicum.vault.key_provider import KeyProvider

_TIERS: Final = {
    "bubblewrap": factory.bubblewrap,
    "gvisor": factory.gvisor,
    "wasm": factory.wasm,
}


def sandbox_of(tier: str, uid: int | None = None) -> Sandbox:
    """Return the sandbox of a tier. Nothing is looked for yet."""
    if tier not in _TIERS:
        raise UsageError(
            Problem(
                Code.UNKNOWN_NAME,
                f"unknown sandbox `{tier[:60]}`",
                label=nearest(tier, list(_TIERS)),
                help=f"choose one of {', '.join(_TIERS)}",
            )
        )
    return _TIERS[tier](uid)


@dataclass(frozen=True, slots=True)
class EscrowPlace:
    """The location of an escrow's data, and the user of its programs.

    Attributes:
        vault: The folder of the vault; it is made if it is not there.
        keys: The file with its wrapping keys, or with the name of a key service; or a
            key provider.
        sandbox_uid: As root, the user that runs programs, used for nothing else.
    """

    vault: Path
    keys: Path | KeyProvider
    sandbox_uid: int | None = None


class EscrowEquipment:
    """The equipment of an escrow. It implements the port `Equipment`.

    Args:
        place: Its location.

    Raises:
        UnavailableError: If the keys cannot be read, or the vault cannot be used.
    """

    def __init__(self, place: EscrowPlace) -> None:
        self._place = place
        self._sandboxes: dict[str, Sandbox] = {}

    @cached_property
    def keys(self) -> KeyProvider:
        """The provider of the vault's wrapping keys."""
        keys = self._place.keys
        return named_keys(keys) if isinstance(keys, Path) else keys

    @cached_property
    def vault(self) -> EncryptedVault:
        """The store of data and withheld results."""
        return open_vault(self._place.vault, self.keys)

    def sandbox(self, tier: str) -> Sandbox:
        """Return the sandbox of a tier; a shared one, so that it tests itself once.

        Args:
            tier: Its name.

        Raises:
            UsageError: If there is no such tier.
        """
        if tier not in self._sandboxes:
            self._sandboxes[tier] = sandbox_of(tier, self._place.sandbox_uid)
        return self._sandboxes[tier]

    @contextmanager
    def rows(self, sealed: Sealed, media: str) -> Iterator[Source]:
        """Return the rows of a version of a data set, in anonymous memory.

        They are never in a file system, and end with this process at the latest.
        Encrypting swapped memory is up to the machine.
        """
        with self.rows_in(self.vault.open(sealed), media, sealed.id) as rows:
            yield rows

    @contextmanager
    def rows_in(self, content: bytes, media: str, name: str) -> Iterator[Source]:
        """Return the rows of a file, in memory that has no name."""
        handle = os.memfd_create("modicum", os.MFD_CLOEXEC)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            path = f"/proc/{os.getpid()}/fd/{handle}"
            if media == "csv":
                yield CsvFile(path, header_of(path, name))
            else:
                must_be_parquet(path, name)
                yield ParquetFiles((path,))

    @contextmanager
    def apart(
        self,
        work: Callable[..., Work],
        *given: object,
        opens: Collection[str] = (),
        still: Still = go_on,
    ) -> Iterator[Apart]:
        """Start work on rows in a separate process, which ends with the block."""
        folder = self._place.vault.absolute()  # The reader has another folder.
        with Reader(self.keys, opens, still) as reader:
            reader.begin((folder, work, given))
            yield reader

    def pause(self, seconds: float) -> None:
        """Wait before retrying something unavailable."""
        time.sleep(seconds)
