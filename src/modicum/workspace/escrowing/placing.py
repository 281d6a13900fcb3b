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


def refuse_long(limits: Limits, blocks: int, most: int) -> None:
    """Refuse a task that others would wait too long for.

    Args:
        limits: What each of its programs may use up.
        blocks: How many blocks of people it scores; 0 for none.
        most: How many seconds it may have in all.

    Raises:
        InputError: If it is to have more.
    """
    takes = limits.seconds * max(1, blocks)
    if takes > most:
        times = f"{blocks} times {limits.seconds:g}" if blocks else f"{takes:g}"
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"a task that takes {times} seconds is too long: it has {most} seconds"
                " here",
                notes=("one task has the sandboxes of a machine at a time",),
                help="give it less time" + (", or fewer blocks" if blocks else ""),
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
    refuse_long(limits, terms.blocks, tools.task_seconds)
    return program, limits
