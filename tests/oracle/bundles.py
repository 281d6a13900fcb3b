"""A second reader of bundles, written from the manual with other tools.

It knows nothing of the decisions; it checks the container, the chain, the manifest,
the policies' texts and the signatures.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from io import BytesIO
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)


def canonical(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def holds(data: bytes) -> bool:
    """Return whether a bundle holds together, decisions apart."""
    broken = zipfile.BadZipFile, KeyError, ValueError, TypeError
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            names = archive.namelist()
            return _holds(names, {name: archive.read(name) for name in names})
    except (*broken, InvalidSignature, UnsupportedAlgorithm):
        return False


def _holds(names: list[str], found: dict[str, bytes]) -> bool:
    document = json.loads(found["manifest.json"])
    pages = [name for name in names if name.startswith("records/")]
    lines = [line for page in pages for line in _lines(found[page])]
    policies = _chain(lines)
    claims = [name for name in names if name.startswith("checkpoints/")]
    keys = [_claim(found[name], lines) for name in claims]
    expected = {
        "kind": "modicum-audit/v1",
        "ledger": sha(lines[0]),
        "entries": len(lines),
        "head": sha(lines[-1]),
        "pages": len(pages),
        "checkpoints": len(claims),
        "keys": sorted({sha(key) for key in keys}),
        "policies": len(policies),
    }
    pems = [f"keys/{key}.pem" for key in expected["keys"]]  # type: ignore[attr-defined]
    for name in pems:
        public = load_pem_public_key(found[name])
        if not isinstance(public, Ed25519PublicKey):
            return False
        # A PEM reader overlooks odd blanks; a bundle has the one form.
        only = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        if found[name] != only or sha(public.public_bytes_raw()) != name[5:-4]:
            return False
    return (
        canonical(document) + b"\n"
        == found["manifest.json"]
        == canonical(expected) + b"\n"
        and names == ["manifest.json", *pems, *claims, *pages, *policies]
        and claims
        == [f"checkpoints/{one:06}.json" for one in range(1, len(claims) + 1)]
        and pages == [f"records/{one:08}.jsonl" for one in range(1, len(pages) + 1)]
        and all(found[name] == text for name, text in policies.items())
    )


def _lines(page: bytes) -> list[bytes]:
    if not page.endswith(b"\n"):
        raise ValueError(page)
    return page[:-1].split(b"\n")


def _chain(lines: list[bytes]) -> dict[str, bytes]:
    previous, policies = "0" * 64, {}
    for seq, line in enumerate(lines, 1):
        record = json.loads(line)
        if canonical(record) != line or set(record) != {"seq", "prev", "event"}:
            raise ValueError(line)
        if (record["seq"], record["prev"]) != (seq, previous):
            raise ValueError(line)
        event = record["event"]
        if event["kind"] == "policy-activated":
            name = f"policies/{seq:08}-{event['body']['digest']}.yaml"
            policies[name] = event["body"]["text"].encode()
        previous = sha(line)
    return policies


def _claim(data: bytes, lines: list[bytes]) -> bytes:
    """Return the key of a checkpoint that is genuine and agrees with the log."""
    signed = json.loads(data)
    claim, key = signed["claim"], bytes.fromhex(signed["public_key"])
    signature = bytes.fromhex(signed["signature"])
    Ed25519PublicKey.from_public_bytes(key).verify(signature, canonical(claim))
    if (
        canonical(signed) + b"\n" != data
        or (key.hex(), signature.hex()) != (signed["public_key"], signed["signature"])
        or claim["kind"] != "modicum-checkpoint/v1"
        or claim["key"] != sha(key)
        or claim["ledger"] != sha(lines[0])
        or claim["head"] != sha(lines[claim["seq"] - 1])
    ):
        raise ValueError(data)
    return key
