"""Which sandbox holds which programs, and for how long."""

from __future__ import annotations

from typing import Final

from modicum.core.errors import Code, InputError, Problem
from modicum.core.mistakes import nearest
from modicum.escrow.programs import Program
from modicum.ledger.log.contracts import TaskTerms
from modicum.workspace.escrowing.ports import Limits, Vault
from modicum.workspace.escrowing.programs_kept import program_of

#: The sandboxes that contracts may name.
TIERS: Final = ("bubblewrap", "gvisor", "wasm")


def refuse_misplaced(program: Program, tier: str) -> None:
    """Refuse a program that its sandbox does not hold, before anybody is asked.

    Args:
        program: The program.
        tier: The sandbox.

    Raises:
        InputError: If there is no such sandbox, or it holds programs in another
            language.
    """
    if tier not in TIERS:
        raise InputError(
            Problem(
                Code.UNKNOWN_NAME,
                f"there is no sandbox `{tier[:60]}`",
                label=nearest(tier, TIERS),
                help=f"choose one of {', '.join(TIERS)}",
            )
        )
    if (program.language == "wasm") != (tier == "wasm"):
        raise InputError(
            Problem(
                Code.DOES_NOT_FIT,
                f"the sandbox `{tier}` holds no programs in {program.language}",
                help="hold modules of WebAssembly by the tier wasm, and Python by"
                " another",
            )
        )


def to_run(vault: Vault, terms: TaskTerms) -> tuple[Program, Limits]:
    """Return the program of a contract and what it may use up, if it can run at all.

    Args:
        vault: The vault.
        terms: What the contract says.

    Raises:
        InputError: If its sandbox does not hold it, or its time is too short.
        UnavailableError: If its code cannot be read.
        VerificationError: If its code is not there, or is another one.
    """
    program = program_of(vault, terms.program)
    refuse_misplaced(program, terms.tier)
    limits = Limits(float(terms.seconds), terms.memory_mib * 2**20)
    limits.refuse_short()
    return program, limits
