"""Permanent transport errors, where retrying does not help."""

from __future__ import annotations

import socket
import ssl
from typing import Final

from modicum.core.errors import Code, Problem, UnavailableError, printable

#: OpenSSL's errors for a certificate with another name or address.
_OTHER_NAME: Final = frozenset({62, 64})
#: Its errors for a certificate that is not valid yet, or expired.
_OTHER_TIME: Final = frozenset({9, 10})
#: Its errors for a peer without TLS, or with other versions only. A lost connection has
#: different ones.
_NO_TLS: Final = frozenset(
    {
        "HTTP_REQUEST",
        "PACKET_LENGTH_TOO_LONG",
        "RECORD_LAYER_FAILURE",
        "TLSV1_ALERT_PROTOCOL_VERSION",
        "UNSUPPORTED_PROTOCOL",
        "WRONG_VERSION_NUMBER",
    }
)
#: The system's errors for an unknown name. A failing resolver has different ones.
_UNKNOWN: Final = frozenset(
    getattr(socket, name)
    for name in ("EAI_NONAME", "EAI_NODATA")
    if hasattr(socket, name)
)


def permanent_error(lost: BaseException, url: str) -> UnavailableError | None:
    """Return the error for an unreachable server; None if a retry may help."""
    cause = _cause(lost)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _not_trusted(cause, url)
    reason = getattr(cause, "reason", None)  # Of an SSLError, but not of every one.
    if isinstance(cause, ssl.SSLError) and reason in _NO_TLS:
        return _mistake(
            f"the server at {url} does not support a common version of TLS",
            "check the port: https:// needs one with TLS",
            reason,
        )
    if isinstance(cause, socket.gaierror) and cause.errno in _UNKNOWN:
        return _mistake(
            f"unknown host in {url}",
            "check the address for typos; some names resolve in one network only",
        )
    return None


def _cause(lost: BaseException) -> OSError | None:
    """Return the system's error; its effects wrap it."""
    found: BaseException | None = lost
    while found is not None and not isinstance(found, OSError):
        found = found.__cause__ or found.__context__
    return found


def _not_trusted(cause: ssl.SSLCertVerificationError, url: str) -> UnavailableError:
    if cause.verify_code in _OTHER_NAME:
        what, remedy = "is for another name", "connect with the name in the certificate"
    elif cause.verify_code in _OTHER_TIME:
        what = "is not valid now"
        remedy = "ask the operator of the server to replace it; check your own clock"
    else:
        what = "is not trusted"
        remedy = (
            "if your organization has its own CA, pass its certificates:  ca_file=…"
            "  (PEM); ask the operator of the server for them"
        )
    message = f"the certificate of {url} {what}"
    return _mistake(message, remedy, cause.verify_message or "")


def _mistake(message: str, remedy: str, detail: str = "") -> UnavailableError:
    own = (f"details: {printable(detail[:200])}",) if detail else ()
    notes = (*own, "nothing was changed")
    return UnavailableError(Problem(Code.NO_ANSWER, message, notes=notes, help=remedy))
