"""Which sandbox holds which programs, and for how long."""

from __future__ import annotations

from typing import Final

from modicum.core.errors import Code, InputError, Problem
from modicum.core.mistakes import nearest
from modicum.escrow.programs import Program
from modicum.ledger.log.contracts import TaskTerms
from modicum.workspace.escrowing.ports import Limits
from modicum.workspace.escrowing.programs_kept import program_of
from modicum.workspace.escrowing.runs import Tools

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


def refuse_long(terms: TaskTerms, most: int) -> None:
    """Refuse a task whose programs others would wait too long for.

    Args:
        terms: What its contract says.
        most: How many seconds its programs may have in all.

    Raises:
        InputError: If they are to have more.
    """
    runs = terms.blocks or len(terms.results)
    if terms.seconds * runs > most:
        what = "blocks of people" if terms.blocks else "kinds of answers"
        times = f", once for each of {runs} {what}," if runs > 1 else ""
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"a program that runs for {terms.seconds} seconds{times} is too long: a"
                f" task has {most} seconds here",
                notes=("one task has the sandboxes of a machine at a time",),
                help="give it less time"
                + (", or fewer blocks" if terms.blocks else ""),
            )
        )


def to_run(tools: Tools, terms: TaskTerms) -> tuple[Program, Limits]:
    """Return the program of a contract and what it may use up, if it can run at all.

    Args:
        tools: What it needs.
        terms: What the contract says.

    Raises:
        InputError: If its sandbox does not hold it; or its time is too short, or longer
            than it may be here.
        UnavailableError: If its code cannot be read.
        VerificationError: If its code is not there, or is another one.
    """
    program = program_of(tools.equipment.vault, terms.program)
    refuse_misplaced(program, terms.tier)
    limits = Limits(float(terms.seconds), terms.memory_mib * 2**20)
    limits.refuse_short()
    refuse_long(terms, tools.task_seconds)
    return program, limits
