"""Which sandbox holds which programs."""

from __future__ import annotations

from typing import Final

from modicum.core.errors import Code, InputError, Problem
from modicum.core.mistakes import nearest
from modicum.escrow.programs import Program

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
