"""The witness of a name, and a store with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from modicum.api.ports.storage import HeadWitness, MaintainedStore, Store
from modicum.core.errors import Code, Problem, UsageError
from modicum.core.extras import needing_extras
from modicum.storage.proofs.signing_keys import SigningKey
from modicum.storage.witness.file import FileWitness
from modicum.storage.witness.http import HttpWitness
from modicum.storage.witness.s3 import S3Witness
from modicum.storage.witness.store import WitnessedStore

#: No place for a password.
_BUCKET: Final = re.compile(r"[A-Za-z0-9._-]+")
#: Names no witness.
NONE: Final = "none"


def open_witness(name: str | None) -> HeadWitness | None:
    """Return the witness of a name; nothing is read or made yet.

    Args:
        name: The path of a file, or a URL: `postgresql://…`, `s3://…`, `https://…`,
            `http://…`; None or `none` for none.

    Raises:
        UsageError: If it is another URL, or a library is not installed.
    """
    if name is None or name == NONE:
        return None
    scheme, slashes, rest = name.partition("://")
    if not slashes:
        return FileWitness(Path(name))
    if scheme == "postgresql":
        with needing_extras():
            from modicum.storage.witness.postgres import PostgresWitness
        return PostgresWitness(name)
    if scheme in {"http", "https"} and rest.strip("/"):
        return HttpWitness(name)
    bucket, _, key = rest.partition("/")
    if scheme == "s3" and _BUCKET.fullmatch(bucket) and key:
        return S3Witness(bucket, key)
    raise UsageError(
        Problem(
            Code.BAD_NAME,
            "the witness's name is neither a path nor a URL that can be used",
            notes=("it is hidden, because it may contain a password",),
            help="write the path of a file, postgresql://user@host:5432/database,"
            " s3://bucket/key, or https://host/path",
        )
    )


def witnessed(
    store: MaintainedStore, name: str | None, key: SigningKey | None = None
) -> Store:
    """Return a store with the witness of a name; the store itself if there is none."""
    witness = open_witness(name)
    return store if witness is None else WitnessedStore(store, witness, key)
