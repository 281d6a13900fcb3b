"""Ed25519 keys in files: made, kept from other eyes, and used to sign claims."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING

from modicum.core.ed25519 import need_cryptography
from modicum.core.errors import Code, InputError, Problem, UsageError
from modicum.ledger.proof.claims import (
    CLAIM_BYTES_MAX,
    Checkpoint,
    Claim,
    Signed,
    claim_bytes,
    key_id,
    public_pem,
    read_signed,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

#: A key file is some hundred bytes.
_KEY_BYTES_MAX = 1 << 16


class SigningKey:
    """A private key in memory.

    Attributes:
        public: The raw public key.
        id: The id of the key.
    """

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = private.public_key().public_bytes_raw()
        self.id = key_id(self.public)

    def sign(self, claim: Claim) -> Signed:
        """Return a claim with this key's signature; it must name this key."""
        return Signed(claim, self.public, self.signature_of(claim_bytes(claim)))

    def signature_of(self, message: bytes) -> bytes:
        """Return this key's signature of a message, which names its purpose."""
        return self._private.sign(message)


@dataclass(frozen=True, slots=True)
class Signing:
    """A key, and the time at which it signs."""

    key: SigningKey
    at: str

    def checkpoint(self, ledger: str, seq: int, head: str) -> Signed:
        """Return a signed checkpoint of an entry."""
        claim = Checkpoint(ledger, seq, head, self.at, self.key.id, None)
        return self.key.sign(claim)


def make_key(path: str | Path, passphrase: bytes | None = None) -> SigningKey:
    """Make a key: the private one at a path, the public one beside it as `.pub`."""
    need_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    private = Ed25519PrivateKey.generate()
    hidden = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden)
    key = SigningKey(private)
    public_path = Path(f"{path}.pub")
    if public_path.exists():
        raise _exists(public_path)
    _write_new(Path(path), pem, 0o600)
    _write_new(public_path, public_pem(key.public), 0o644)
    return key


def load_key(path: str | Path, passphrase: bytes | None = None) -> SigningKey:
    """Return the private key of a file."""
    data = _read_secret(Path(path))
    need_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        private = load_pem_private_key(data, passphrase)
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        if is_encrypted(data):
            raise _locked(path, passphrase) from error
        if passphrase is not None and isinstance(error, TypeError):
            problem = f"{path} is not encrypted, and a passphrase was given"
            raise InputError(
                Problem(Code.FILE_UNREADABLE, problem, help="leave it out")
            ) from error
        remedy = "create one with  modicum ledger key new"
        raise _no_key(path, "a private key", remedy) from error
    if not isinstance(private, Ed25519PrivateKey):
        raise _no_key(path, "an Ed25519 key", "create one with  modicum ledger key new")
    return SigningKey(private)


def _locked(path: str | Path, passphrase: bytes | None) -> InputError:
    """Return the mistake of a key that its passphrase does not open."""
    if passphrase is None:
        problem = f"{path} is encrypted, and no passphrase was given"
    else:
        problem = f"the passphrase for {path} is wrong, or the file is damaged"
    remedy = "give the right one, at a terminal or with  --passphrase-file FILE"
    return InputError(Problem(Code.FILE_UNREADABLE, problem, help=remedy))


def is_encrypted(data: bytes) -> bool:
    """Return whether a key file needs a passphrase."""
    return b"-----BEGIN ENCRYPTED PRIVATE KEY-----" in data


def needs_passphrase(path: str | Path) -> bool:
    """Return whether a private key can be read with a passphrase only."""
    return is_encrypted(_read_secret(Path(path)))


def load_public_key(path: str | Path) -> bytes:
    """Return the raw public key of a PEM file."""
    data = _read(Path(path))
    need_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        public = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm) as error:
        remedy = "a public key ends in `.pub`; never share a private one"
        raise _no_key(path, "a public key", remedy) from error
    if not isinstance(public, Ed25519PublicKey):
        raise _no_key(path, "an Ed25519 key", "checkpoints are signed with Ed25519")
    return public.public_bytes_raw()


def load_claim(path: str | Path) -> Signed:
    """Return the checkpoint or receipt of a file; its signature is not checked."""
    data = _read(Path(path), CLAIM_BYTES_MAX)
    try:
        return read_signed(data)
    except ValueError as error:
        raise InputError(
            Problem(
                Code.FILE_UNREADABLE,
                f"{path} is neither a checkpoint nor a receipt{claim_fault(error)}",
                help="use a file written by  modicum ledger checkpoint  or  modicum"
                " ledger receipt",
            )
        ) from error


def claim_fault(error: ValueError) -> str:
    """Return the fault of a claim, in brackets, for display."""
    if isinstance(error, JSONDecodeError | UnicodeDecodeError):
        return " (it is not JSON)"
    return f" ({error})"


# --- files -------------------------------------------------------------------


def _read(path: Path, most: int = _KEY_BYTES_MAX) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise _unreadable(path, error) from error


def _read_secret(path: Path) -> bytes:
    """Return the bytes of a file that only its owner may read."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_KEY_BYTES_MAX)
    except OSError as error:
        raise _unreadable(path, error) from error
    _refuse_public(path, data)
    if stat.S_IMODE(mode) & 0o077 and b"PRIVATE KEY-----" in data:
        raise UsageError(
            Problem(
                Code.FILE_UNREADABLE,
                f"{path} is accessible to other users (mode {stat.S_IMODE(mode):04o})",
                notes=("anyone who can read a private key can sign with it",),
                help=f"chmod 600 {path}, and replace the key if others may have read"
                " it",
            )
        )
    return data


def _refuse_public(path: Path, data: bytes) -> None:
    """Refuse the public half of a key: nothing about it is secret."""
    if b"-----BEGIN PUBLIC KEY-----" in data:
        own = f", such as {path.with_suffix('')}" if path.suffix == ".pub" else ""
        raise InputError(
            Problem(
                Code.FILE_UNREADABLE,
                f"{path} is a public key: it cannot sign",
                help=f"give the private key{own}",
            )
        )


def _write_new(path: Path, data: bytes, mode: int) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError as error:
        raise _exists(path) from error
    except OSError as error:
        reason = (error.strerror or "it cannot be written").lower()
        problem = Problem(Code.FILE_UNREADABLE, f"cannot write {path}: {reason}")
        raise UsageError(problem) from error


def _exists(path: Path) -> UsageError:
    return UsageError(
        Problem(
            Code.ALREADY_EXISTS,
            f"{path} exists",
            help="choose another path; keys are never overwritten",
        )
    )


def _unreadable(path: Path, error: OSError) -> InputError:
    reason = (error.strerror or "it cannot be read").lower()
    return InputError(Problem(Code.FILE_UNREADABLE, f"cannot read {path}: {reason}"))


def _no_key(path: str | Path, what: str, remedy: str) -> InputError:
    problem = Problem(Code.FILE_UNREADABLE, f"{path} is not {what}", help=remedy)
    return InputError(problem)
