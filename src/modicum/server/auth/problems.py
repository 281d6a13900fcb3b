"""Error messages for unauthenticated callers: a remedy, and nothing to attack."""

from __future__ import annotations

from modicum.core.errors import AccessError, Code, Problem, UnavailableError

#: Never revealed of a credential: whether it is unknown, revoked, malformed, of another
#: issuer or wrongly signed. Each would help an attacker.
_NOT_ACCEPTED = "the credential of the request is not accepted"


def not_accepted() -> AccessError:
    """Return the error for a credential that does not hold, without the reason."""
    return _not_recognized(
        _NOT_ACCEPTED,
        help="sign in again, or get another token",
    )


def expired(what: str) -> AccessError:
    """Return the error for a credential that held until its time was over."""
    return _not_recognized(
        f"{what} has expired", help="sign in again, or create another"
    )


def unusable(message: str, remedy: str) -> AccessError:
    """Return the error for a request whose credentials are not even looked at."""
    return _not_recognized(message, help=remedy)


def forbidden(message: str, remedy: str) -> AccessError:
    """Return the error for an authenticated caller without permission."""
    return AccessError(Problem(Code.FORBIDDEN, message, help=remedy))


def provider_failed(what: str) -> UnavailableError:
    """Return the error for an OpenID provider that does not answer as it should."""
    return UnavailableError(
        Problem(
            Code.PROVIDER_FAILED,
            f"the OpenID provider {what}",
            help="try again; if it persists, compare `oidc` in the settings with"
            " the provider",
        )
    )


def _not_recognized(message: str, *, help: str) -> AccessError:  # noqa: A002
    return AccessError(Problem(Code.NOT_RECOGNIZED, message, help=help))
