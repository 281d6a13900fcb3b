"""Verification of Ed25519 signatures. No secrets here."""

from __future__ import annotations

from modicum.core.errors import Code, Problem, UsageError


def verify_signature(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether a signature of a message is by a raw public key.

    Args:
        public_key: The raw key, 32 bytes.
        message: The signed message.
        signature: The signature, 64 bytes.

    Raises:
        UsageError: If signatures cannot be checked here.
    """
    need_cryptography()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def need_cryptography() -> None:
    """Refuse to continue without the library for signatures.

    Raises:
        UsageError: If it is not installed.
    """
    try:
        import cryptography  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise UsageError(
            Problem(
                Code.NOT_SUPPORTED,
                "signatures need the package `cryptography`",
                help="install it with  pip install cryptography",
            )
        ) from error
