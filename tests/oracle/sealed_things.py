"""Opening what a vault holds, written from docs/reference/vault-format.md alone."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import GCM


def opened(vault: Path, key_file: Path, identifier: str) -> bytes:
    """Return what lies in a vault, with the keys of a file."""
    name = hashlib.sha256(b"modicum-vault/v1\0" + identifier.encode()).hexdigest()
    content = (vault / f"{name}.sealed").read_bytes()
    record = json.loads((vault / f"{name}.key").read_bytes())
    assert record["kind"] == "modicum-wrapped-key/v1"
    assert record["id"] == identifier
    assert record["digest"] == hashlib.sha256(content).hexdigest()
    return decrypt(content, unwrap(record, key_file), identifier)


def unwrap(record: dict[str, Any], key_file: Path) -> bytes:
    """Return the data key of a thing."""
    held = json.loads(key_file.read_bytes())
    [key] = [one["key"] for one in held["keys"] if one["id"] == record["key"]]
    about = json.dumps(
        {"digest": record["digest"], "id": record["id"], "kind": "modicum-wrap/v1"},
        ensure_ascii=False,
        separators=(",", ":"),
    )
    wrapped = base64.b64decode(record["wrapped"])
    beside = record["key"].encode() + b"\0" + about.encode()
    return gcm(base64.b64decode(key), wrapped[:12], wrapped[12:], beside)


def decrypt(content: bytes, key: bytes, identifier: str) -> bytes:
    """Return what is encrypted, all at once."""
    tag = hashlib.sha256(b"modicum-vault/v1\0" + identifier.encode()).digest()
    header, rest = content[:48], content[48:]
    assert header[:8] == b"modseal\x01"
    assert header[16:48] == tag
    size = 2 ** header[8] + 16
    chunks = [rest[at : at + size] for at in range(0, len(rest), size)]
    plain = b""
    for number, chunk in enumerate(chunks):
        last = b"\x01" if number == len(chunks) - 1 else b"\x00"
        place = number.to_bytes(4, "big") + last
        plain += gcm(
            key, header[9:16] + place, chunk, header + place + identifier.encode()
        )
    return plain


def gcm(key: bytes, nonce: bytes, sealed: bytes, beside: bytes) -> bytes:
    """Return what AES-GCM sealed, with its tag at the end."""
    one = Cipher(AES(key), GCM(nonce, sealed[-16:])).decryptor()
    one.authenticate_additional_data(beside)
    return one.update(sealed[:-16]) + one.finalize()
