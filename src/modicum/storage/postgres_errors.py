"""Errors of a ledger in PostgreSQL, with remedies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import psycopg

from modicum.core.errors import (
    Code,
    ModicumError,
    Problem,
    UnavailableError,
    UsageError,
    VerificationError,
)
from modicum.storage.postgres_url import Address

#: Contention: locks, deadlocks, too many connections.
_BUSY = ("55P03", "57014", "40", "53300")
#: The server, its machine or the network: restarts, disks, lost connections.
_OUTSIDE = ("08", "25P03", "25006", "53", "57P", "58")
#: Names and rights: trying again will not help.
_REFUSED = ("28", "3D000", "42501")
#: Messages of the server when it refuses a connection, where there is no SQLSTATE.
_REFUSALS = (
    "authentication failed",
    "no pg_hba.conf entry",
    "no password supplied",
    "does not exist",
    "permission denied",
)
_TRY_AGAIN = "everything acknowledged was stored; try again: the same id is one release"
_UNKNOWN_OUTCOME = (
    "it may or may not have been stored; submit again: the same id is one"
    " release; after `start` or `publish`, check first:  modicum release show ID"
)
_NO_RIGHT = (
    "ask the owner of the ledger to grant this role its privileges; a read-only role"
    " cannot submit, start or publish"
)
_NO_ROLE = "correct the user in the URL, and the password in ~/.pgpass"
_NO_DATABASE = "correct the database in the URL, or create it with  createdb"
#: Remedies where the server refuses names or permissions: by message, the most specific
#: first; and by SQLSTATE, since messages may be localized.
_BY_WORDS = (
    ("no pg_hba.conf entry", "allow this user in the server's pg_hba.conf"),
    ("permission denied", _NO_RIGHT),
    ("authentication failed", _NO_ROLE),
    ("no password supplied", _NO_ROLE),
    ('role "', _NO_ROLE),
    ('database "', _NO_DATABASE),
)
_BY_STATE = (("28", _NO_ROLE), ("3D000", _NO_DATABASE), ("42501", _NO_RIGHT))


@contextmanager
def translated(address: Address, *, committing: bool = False) -> Iterator[None]:
    """Translate exceptions of the driver within the block into our errors."""
    try:
        yield
    except psycopg.Error as error:
        raise error_of(address, error, committing=committing) from error


def error_of(
    address: Address, error: psycopg.Error, *, committing: bool = False
) -> ModicumError:
    """Return the ledger error for an exception of the driver."""
    state = error.sqlstate or ""
    reason = _reason(address, error)
    places = (reason, address.name)  # It may name hosts, databases and users.
    if state.startswith(_BUSY):
        return UnavailableError(
            Problem(
                Code.LEDGER_BUSY,
                f"{address.name} is busy: {reason}",
                help="try again",
                places=places,
            )
        )
    if state.startswith(_REFUSED) or (
        not state and any(phrase in reason for phrase in _REFUSALS)
    ):
        return UsageError(
            Problem(
                Code.LEDGER_MISSING,
                f"cannot use {address.name}: {reason}",
                help=_remedy(state, reason),
                places=places,
            )
        )
    if is_outside(error):
        return UnavailableError(
            Problem(
                Code.LEDGER_UNWRITABLE,
                f"cannot reach {address.name}: {reason}",
                help=_UNKNOWN_OUTCOME if committing else _TRY_AGAIN,
                places=places,
            )
        )
    if state == "42P07":
        return VerificationError(
            Problem(
                Code.NOT_A_LEDGER,
                f"{address.name} is not a modicum ledger",
                places=places,
            )
        )
    return broken(address, reason)


def _remedy(state: str, reason: str) -> str:
    """Return the remedy where the server refuses a name or a permission."""
    by_words = (remedy for phrase, remedy in _BY_WORDS if phrase in reason)
    by_state = (remedy for begin, remedy in _BY_STATE if state.startswith(begin))
    return next(chain(by_words, by_state), "")


def is_outside(error: psycopg.Error) -> bool:
    """Return whether the server could not be reached, or the connection was lost."""
    state = error.sqlstate or ""
    if state:
        return state.startswith(_OUTSIDE)
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def broken(address: Address, why: str) -> VerificationError:
    """Return the mistake of a ledger whose tables contradict themselves."""
    return VerificationError(
        Problem(
            Code.LEDGER_BROKEN,
            f"the ledger {address.name} is damaged: {why}",
            help="restore a backup and compare its head",
            places=(why, address.name),
        )
    )


def forgetful(address: Address) -> UnavailableError:
    """Return the error for a server that may lose acknowledged data."""
    return UnavailableError(
        Problem(
            Code.LEDGER_UNWRITABLE,
            f"{address.name} runs with fsync off: it may lose acknowledged writes",
            help="set  fsync = on  in postgresql.conf",
            places=(address.name,),
        )
    )


def out_of_turn(address: Address, wait_seconds: float) -> UnavailableError:
    """Return the mistake of a turn that another thread kept for too long."""
    return UnavailableError(
        Problem(
            Code.LEDGER_BUSY,
            f"{address.name} was busy for {wait_seconds:g} seconds",
            help="try again",
            places=(address.name,),
        )
    )


def _reason(address: Address, error: psycopg.Error) -> str:
    """Return the first line of the driver's message, without secrets."""
    text = error.diag.message_primary or str(error) or type(error).__name__
    first = text.strip().splitlines()[0] if text.strip() else type(error).__name__
    return address.without_secrets(first)
