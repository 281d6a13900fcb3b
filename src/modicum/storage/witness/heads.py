"""Heads: those that a witness keeps, and those that people noted."""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import NamedTuple, NoReturn

from modicum.core.ed25519 import verify_signature
from modicum.core.errors import Code, Problem, UnavailableError, VerificationError
from modicum.ledger import Record
from modicum.ledger.proof.claims import read_witnessed

_KNOWN = re.compile(r"([1-9][0-9]{0,17}):([0-9a-f]{12,64})")
_RETRY = (
    "restore the witness, and submit again: the same id is one release; after `start`"
    " or `publish`, check first:  modicum release show ID"
)


class KnownHead(NamedTuple):
    """An entry that a ledger must have.

    Attributes:
        seq: Its number.
        digits: Its hash, or the first 12 digits of it or more.
        key: The id of the key that signed it; empty for none.
        line: The line of the witness that contains it.
        ledger: The hash of the ledger's first entry; empty if it is not known.
    """

    seq: int
    digits: str
    key: str = ""
    line: bytes | None = None
    ledger: str = ""

    @classmethod
    def read(cls, text: str) -> KnownHead | None:
        """Parse `SEQ:HASH`; return None for any other text."""
        found = _KNOWN.fullmatch(text.strip().lower())
        return cls(int(found[1]), found[2]) if found else None

    @classmethod
    def read_line(cls, line: bytes, witness: str) -> KnownHead:
        """Return the head in the line of a witness.

        Args:
            line: A signed or unsigned claim; or `SEQ:HASH`, as in head files.
            witness: The display name of the witness.

        Raises:
            VerificationError: If it is anything else, or its signature is wrong.
        """
        found = cls.read(line.decode("utf-8", "replace"))
        if found is not None:
            return found._replace(line=line)
        try:
            claim = read_witnessed(line, verify_signature)
        except ValueError as error:
            raise behind(
                f"the witness {witness} contains no head, so it is unknown whether the"
                " ledger is behind",
                "restore it; or remove it or name another one, with a  --known-head",
                witness,
            ) from error
        return cls(claim.seq, claim.head, claim.key, line, claim.ledger)

    def is_that_of(self, found: Record | None) -> bool:
        """Return whether a record is this entry."""
        if found is None or found.seq != self.seq:
            return False
        return found.hash.startswith(self.digits)

    def must_be(self, found: Record | None, ledger: str) -> None:
        """Refuse a ledger that has another record, or none, in place of this entry.

        Args:
            found: The record with its number.
            ledger: The display name of the ledger.

        Raises:
            VerificationError: If it is not this entry.
        """
        if self.is_that_of(found):
            return
        if found is not None and found.seq == self.seq:
            has = f"has another entry in its place, {found.hash[:12]}"
        else:
            has = "ends before it"
        raise behind(
            f"the ledger {ledger} does not contain the known head"
            f" {self.seq}:{self.digits[:12]}: it {has}",
            "restore a newer copy. If there is none, stop the servers, and continue"
            " with  modicum ledger resume --after-loss",
            ledger,
        )


def behind(message: str, remedy: str, place: str) -> VerificationError:
    """Return the error for a ledger that lacks what is known of it.

    Args:
        message: What is wrong.
        remedy: What to do.
        place: The display name in the message, which a server does not send.
    """
    problem = Problem(
        Code.LEDGER_BEHIND,
        message,
        notes=("no decision was made, so that nothing is spent twice",),
        help=remedy,
        places=(place,),
    )
    return VerificationError(problem)


def unreachable(witness: str, reason: str) -> UnavailableError:
    """Return the error for a witness that does not answer."""
    message = f"the witness {witness} cannot be used: {reason}"
    return UnavailableError(
        Problem(Code.NOT_WITNESSED, message, help=_RETRY, places=(reason, witness))
    )


def seconds_ahead(date: str | None, own: float) -> float | None:
    """Return by how many seconds the clock of a server is ahead of this machine's.

    Args:
        date: The `Date` of its answer.
        own: The time of this machine, in seconds since 1970.

    Returns:
        None if there is no `Date`.
    """
    try:
        found = parsedate_to_datetime(date or "")
        return found.replace(tzinfo=found.tzinfo or UTC).timestamp() - own
    except (ValueError, OverflowError):
        return None


def refuse_unconfirmed(error: UnavailableError) -> NoReturn:
    """Raise the error for entries that are stored, and that no witness confirmed."""
    problem = error.problems[0]
    raise UnavailableError(
        Problem(
            Code.NOT_WITNESSED,
            "stored, but not confirmed by the witness; a retry with the same id is"
            " safe",
            notes=(problem.message,),
            help=problem.help,
            places=problem.places,
        )
    ) from error
