"""The vault: data and withheld results, each encrypted under a key of its own."""

from modicum.shell.vault.key_files import (
    FileKeys,
    add_key,
    file_keys,
    new_key_file,
    retire_key,
)
from modicum.shell.vault.key_provider import Context, KeyProvider, Wrapped
from modicum.shell.vault.rotation import Rotated
from modicum.shell.vault.transit import Transit, TransitKeys, transit_keys
from modicum.shell.vault.vault import EncryptedVault, open_vault

__all__ = [
    "Context",
    "EncryptedVault",
    "FileKeys",
    "KeyProvider",
    "Rotated",
    "Transit",
    "TransitKeys",
    "Wrapped",
    "add_key",
    "file_keys",
    "new_key_file",
    "open_vault",
    "retire_key",
    "transit_keys",
]
