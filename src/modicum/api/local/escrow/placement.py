"""The assignment of programs to sandboxes, and time limits."""

from __future__ import annotations

from typing import Final

from modicum.api.local.escrow.execution import Tools
from modicum.api.local.escrow.programs import program_of
from modicum.api.ports.escrow import Limits
from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Problem
from modicum.escrow.catalog import vetted
from modicum.escrow.programs import Program
from modicum.ledger.log.contracts import TaskTerms

#: The sandboxes that contracts may name.
TIERS: Final = ("bubblewrap", "gvisor", "wasm")


def refuse_misplaced(program: Program, tier: str) -> None:
    """Refuse a program that its sandbox does not support, before any request."""
    if tier not in TIERS:
        raise InputError(
            Problem(
                Code.UNKNOWN_NAME,
                f"unknown sandbox `{tier[:60]}`",
                label=nearest(tier, TIERS),
                help=f"choose one of {', '.join(TIERS)}",
            )
        )
    if (program.language == "wasm") != (tier == "wasm"):
        raise InputError(
            Problem(
                Code.DOES_NOT_FIT,
                f"the sandbox `{tier}` does not run programs in {program.language}",
                help="use the tier wasm for WebAssembly modules, and another for"
                " Python",
            )
        )


def may_see_exact(program: Program, tier: str) -> bool:
    """Return whether a program may receive exact answers in a sandbox.

    Unreviewed code could leave traces of them in a kernel that later runs share, and
    private scores of those would not be charged.
    """
    return tier == "wasm" or vetted(program)


def refuse_exact(program: Program, tier: str) -> None:
    """Refuse exact answers for a program that may not receive them."""
    if not may_see_exact(program, tier):
        raise InputError(
            Problem(
                Code.DOES_NOT_FIT,
                f"custom code in {program.language} may not see exact answers: in the"
                f" tier {tier} it shares a kernel with later runs, and could signal to"
                " them",
                help="use a task of the catalogue, or compile it to"
                " WebAssembly for the tier wasm",
            )
        )


def refuse_long(terms: TaskTerms, most: int) -> None:
    """Refuse a task whose programs others would wait too long for."""
    runs = terms.blocks or len(terms.results)
    if terms.seconds * runs > most:
        what = "blocks of people" if terms.blocks else "kinds of answers"
        times = f", once for each of {runs} {what}," if runs > 1 else ""
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"a program that runs for {terms.seconds} seconds{times} is too long: a"
                f" task has {most} seconds here",
                notes=("a machine runs one task at a time",),
                help="give it less time"
                + (", or fewer blocks" if terms.blocks else ""),
            )
        )


def runnable(tools: Tools, terms: TaskTerms) -> tuple[Program, Limits]:
    """Return the program of a contract and its limits, if it can run at all."""
    program = program_of(tools.equipment.vault, terms.program)
    refuse_misplaced(program, terms.tier)
    if terms.blocks or "exact" in terms.results:
        refuse_exact(program, terms.tier)
    limits = Limits(float(terms.seconds), terms.memory_mib * 2**20)
    limits.refuse_short()
    refuse_long(terms, tools.task_seconds)
    return program, limits
