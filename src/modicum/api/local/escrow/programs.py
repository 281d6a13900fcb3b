"""Programs as contracts name them: all but their code, which lies in the vault."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from modicum.api.ports.escrow import Vault
from modicum.core.canonical import decode, digest, encode
from modicum.core.errors import Code, ConflictError, Problem, VerificationError
from modicum.escrow.programs import PROGRAM_KIND, Program, Range
from modicum.ledger.log.contracts import Version


def of_data(version: Version) -> str:
    """Return the vault id of a version of a data set."""
    return f"data/{version.id}/{version.number}"


def of_result(contract: str, run: int, name: str) -> str:
    """Return the vault id of a result of a run."""
    return f"result/{contract}/{run}/{name}"


def of_code(code: str) -> str:
    """Return the vault id of a program's code."""
    return f"code/{code}"


def program_text(program: Program) -> str:
    """Return a program's text in a contract."""
    return encode(program.to_plain()).decode("utf-8")


def range_of(text: str) -> Range:
    """Return where the scores of a program lie."""
    low, high = _read(text)["range"]
    return Range(Fraction(low), Fraction(high))


def keep_code(vault: Vault, program: Program) -> None:
    """Put the code of a program into the vault, if it is not there."""
    place = of_code(digest(program.code))
    if vault.find(place) is None:
        try:
            vault.seal(place, program.code)
        except ConflictError:
            if vault.find(place) is None:  # Another process has just stored it.
                raise


def program_of(vault: Vault, text: str) -> Program:
    """Return the program that a contract names."""
    plain = _read(text)
    sealed = vault.find(of_code(plain["code"]))
    code = b"" if sealed is None else vault.open(sealed)
    if digest(code) != plain["code"]:
        raise VerificationError(
            Problem(
                Code.LEDGER_BROKEN,
                "the approved code is not in the vault",
                help="check that this is the right vault",
            )
        )
    return Program(
        language=plain["language"],
        code=code,
        arguments=plain["arguments"],
        range=range_of(text),
        compares=plain["compares"],
        catalogue=plain["catalogue"],
    )


def _read(text: str) -> dict[str, Any]:
    plain: Any = decode(text.encode("utf-8"))
    if plain["kind"] != PROGRAM_KIND:
        raise VerificationError(
            Problem(
                Code.LEDGER_BROKEN,
                "the program of a contract has an unknown form",
                help="use a later version of modicum",
            )
        )
    return dict(plain)
