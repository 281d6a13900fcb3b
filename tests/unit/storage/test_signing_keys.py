"""Keys in files, and the claims they sign."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from samples.audited import checkpoint, log

from modicum.core.ed25519 import verify_signature
from modicum.core.errors import Code, InputError, ModicumError, UsageError
from modicum.ledger.proof.claims import key_id, public_pem, signed_bytes
from modicum.storage.proofs.signing_keys import (
    load_claim,
    load_key,
    load_public_key,
    make_key,
    needs_passphrase,
)


@pytest.mark.spec("AUD-8")
def test_a_key_is_made_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    old = os.umask(0)
    try:
        made = make_key(path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not needs_passphrase(path)
    assert load_key(path).id == made.id == key_id(made.public)
    assert load_public_key(f"{path}.pub") == made.public


def test_a_signature_is_by_its_key_and_of_its_message(tmp_path: Path) -> None:
    one, other = make_key(tmp_path / "one"), make_key(tmp_path / "other")
    signed = checkpoint(log(), 3, one)
    assert signed.is_genuine(verify_signature)
    assert not verify_signature(one.public, b"something else", signed.signature)
    assert not verify_signature(other.public, b"", signed.signature)
    assert not verify_signature(b"short", b"", signed.signature)


@pytest.mark.spec("AUD-8")
def test_a_key_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    make_key(path)
    before = path.read_bytes()
    for taken in (path, tmp_path / "fresh"):
        (tmp_path / "fresh.pub").write_text("mine")
        with pytest.raises(UsageError) as caught:
            make_key(taken)
        assert caught.value.code is Code.ALREADY_EXISTS
    assert path.read_bytes() == before
    assert not (tmp_path / "fresh").exists()


@pytest.mark.spec("AUD-8")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o777])
def test_a_key_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key.pem"
    make_key(path)
    path.chmod(mode)
    with pytest.raises(UsageError, match="accessible to other users"):
        load_key(path)


def test_an_encrypted_key_needs_its_passphrase(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    made = make_key(path, b"correct horse")
    assert needs_passphrase(path)
    assert load_key(path, b"correct horse").id == made.id
    for wrong in (None, b"", b"wrong"):
        with pytest.raises(InputError) as caught:
            load_key(path, wrong)
        assert "passphrase" in caught.value.render()
        assert "is not a private key" not in caught.value.render()
    bare = tmp_path / "bare.pem"
    make_key(bare)
    with pytest.raises(InputError, match="is not encrypted"):
        load_key(bare, b"correct horse")


@pytest.mark.parametrize("name", ["key.pem.pub", "renamed"])
def test_a_public_key_does_not_sign_and_is_no_secret(tmp_path: Path, name: str) -> None:
    make_key(tmp_path / "key.pem")
    (tmp_path / "key.pem.pub").rename(tmp_path / name)
    for read in (load_key, needs_passphrase):
        with pytest.raises(InputError, match="is a public key") as caught:
            read(tmp_path / name)
        assert "chmod" not in caught.value.render()


def test_a_parser_is_not_heard_about_a_claim(tmp_path: Path) -> None:
    for data in (b"junk\n", b"\xff\xfe", b""):
        (tmp_path / "claim").write_bytes(data)
        with pytest.raises(
            InputError, match="neither a checkpoint nor a receipt"
        ) as caught:
            load_claim(tmp_path / "claim")
        result = caught.value.render()
        assert "it is not JSON" in result
        assert "line 1 column 1" not in result


def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ec import (
        SECP256R1,
        generate_private_key,
    )
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    curve = generate_private_key(SECP256R1())
    files = {
        "empty": b"",
        "text": b"not a key",
        "other": curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        "other.pub": curve.public_key().public_bytes(
            Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
        ),
    }
    for name, data in files.items():
        path = tmp_path / name
        path.write_bytes(data)
        path.chmod(0o600)
        with pytest.raises(InputError):
            load_key(path)
        with pytest.raises(InputError):
            load_public_key(path)
    make_key(tmp_path / "mine")
    with pytest.raises(InputError, match="not a public key"):
        load_public_key(tmp_path / "mine")  # A private key is not handed around.
    with pytest.raises(ModicumError):
        load_key(tmp_path / "missing")


def test_the_public_form_is_the_one_that_others_write(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    made = make_key(tmp_path / "key")
    theirs = Ed25519PublicKey.from_public_bytes(made.public).public_bytes(
        Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
    )
    assert public_pem(made.public) == theirs


def test_a_claim_is_read_from_its_file(tmp_path: Path) -> None:
    signed = checkpoint(log(), 3, make_key(tmp_path / "key"))
    path = tmp_path / "claim.json"
    path.write_bytes(signed_bytes(signed))
    assert load_claim(path) == signed
    for other in (b"", b"{}", b"[" * 3000, signed_bytes(signed) + b"\n", b"\xff"):
        path.write_bytes(other)
        with pytest.raises(InputError, match="neither a checkpoint"):
            load_claim(path)
