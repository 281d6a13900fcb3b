"""Data and withheld results, each encrypted under a separate key."""

from modicum.vault.key_files import (
    FileKeys,
    add_key,
    file_keys,
    new_key_file,
    retire_key,
)
from modicum.vault.key_provider import Context, KeyProvider, Wrapped
from modicum.vault.key_rotation import Rotated
from modicum.vault.transit import Transit, TransitKeys, transit_keys
from modicum.vault.vault import EncryptedVault, open_vault

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
