"""The options of scores by blocks of people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from modicum.escrow.blocks import ByBlocks

Number = Annotated[
    int | None,
    typer.Option(
        "--blocks",
        min=2,
        max=1000,
        help="Divide people into so many blocks, and withhold the mean of the"
        " scores on exact answers about each, with noise: differentially private,"
        " and charged.",
    ),
]
Loss = Annotated[
    str | None,
    typer.Option(
        "--loss",
        help="With --blocks, what that may cost: eps of laplace, rho of gaussian.",
        metavar="NUMBER",
    ),
]
Noise = Annotated[
    str, typer.Option("--noise", help="With --blocks: laplace or gaussian.")
]
Unit = Annotated[
    str,
    typer.Option(
        "--unit",
        help="With --blocks, the privacy unit that is divided; needed if several"
        " have no period.",
    ),
]


def chosen_blocks(
    number: int | None, loss: str | None, noise: str, unit: str
) -> ByBlocks | None:
    """Return how people are divided, as options say; None if they are not.

    Args:
        number: Into how many blocks.
        loss: What it may cost.
        noise: The kind of noise.
        unit: The privacy unit; empty for the only one.

    Raises:
        InputError: If there are too few blocks, or too many.
    """
    from modicum.core.rationals import parse_number
    from modicum.escrow.blocks import ByBlocks

    if (number is None) != (loss is None):
        raise typer.BadParameter(
            "a score by blocks has both --blocks and --loss", param_hint="--blocks"
        )
    if number is None or loss is None:
        if unit or noise != "laplace":
            hint = "--unit" if unit else "--noise"
            raise typer.BadParameter("it needs --blocks", param_hint=hint)
        return None
    amount = parse_number(loss)
    if amount is None:
        raise typer.BadParameter(f"`{loss}` is no number", param_hint="--loss")
    if noise not in ("laplace", "gaussian"):
        message = f"`{noise}` is neither laplace nor gaussian"
        raise typer.BadParameter(message, param_hint="--noise")
    return ByBlocks(
        number, amount, unit, "gaussian" if noise == "gaussian" else "laplace"
    )
