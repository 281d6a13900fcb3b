"""The file with the keys of a vault, or with the name of a key service."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from modicum.core.document import Node
from modicum.core.fields import Fields
from modicum.core.reader import line
from modicum.core.yaml_reader import read_document
from modicum.vault.key_files import file_keys
from modicum.vault.key_provider import KeyProvider
from modicum.vault.owned_files import read_owned
from modicum.vault.transit import Transit, transit_keys

FORMAT: Final = "vault-keys/v1"
_FIRST: Final = f"modicum: {FORMAT}\n".encode()
_BYTES_MAX: Final = 2**16


def named_keys(path: Path) -> KeyProvider:
    """Return the keys in a file, or of the service that it names."""
    data = read_owned(path, _BYTES_MAX)
    if not data.startswith(_FIRST):
        return file_keys(path)  # Its errors quote nothing of the file.
    return transit_keys(_transit(read_document(data, str(path)), path.parent))


def holds_keys(path: Path) -> bool:
    """Return whether a file contains keys itself, rather than naming a service."""
    return not read_owned(path, _BYTES_MAX).startswith(_FIRST)


def _transit(node: Node, folder: Path) -> Transit:
    fields = Fields(node, "the file")
    fields.take("modicum")
    inner = Fields(fields.take("transit"), "`transit`")
    fields.finish()
    address = line(inner.take("address"), "`address`")
    key = line(inner.take("key"), "`key`")
    token = line(inner.take("token_file"), "`token_file`")
    given = {
        name: line(found, f"`{name}`")
        for name in ("mount", "namespace")
        if (found := inner.take_optional(name)) is not None
    }
    ca_file = inner.take_optional("ca_file")
    inner.finish()
    return Transit(
        address,
        key,
        folder / token,
        ca_file=None if ca_file is None else folder / line(ca_file, "`ca_file`"),
        **given,
    )
