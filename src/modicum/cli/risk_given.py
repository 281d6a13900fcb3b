"""What the options of `modicum risk` say, by the names of Python's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from modicum.cli.given import not_beside, was_given
from modicum.core.diagnostics import nearest

if TYPE_CHECKING:
    from modicum.risk.arguments import Number

#: What the command's functions call an option that only a choice looks at.
_OF_A_CHOICE = {
    "choice": "--choice",
    "allowance": "--allowance",
    "people": "--people",
    "eps_select": "--eps-select",
}
_OF_GAUSSIAN = {"delta": "--delta", "calibration": "--calibration"}


def facts(
    unit: str | None,
    mechanism: str,
    epsilons: str | None,
    delta: str | None,
    sensitivity: str | None,
    bounds: Sequence[str] | None,
    rows_max: int | None,
    dimensions: int | None,
    form: str,
    calibration: str,
    engine: str,
) -> dict[str, Any]:
    """Return what is said of a query, each under the name of its argument.

    Args:
        unit: Of `--unit`.
        mechanism: Of `--mechanism`.
        epsilons: Of `--epsilons`.
        delta: Of `--delta`.
        sensitivity: Of `--sensitivity`.
        bounds: Of each `--bounds`.
        rows_max: Of `--rows-max`.
        dimensions: Of `--dimensions`.
        form: Of `--indicator`.
        calibration: Of `--calibration`.
        engine: Of `--engine`.

    Raises:
        BadParameter: If one is none of the words that it may be, or not so written.
    """
    from modicum.risk.candidates import PUBLISHED

    return {
        "unit": unit,
        "mechanism": one_of(mechanism, ("laplace", "gaussian"), "--mechanism"),
        "epsilons": PUBLISHED if epsilons is None else epsilons_given(epsilons),
        "delta": delta,
        "sensitivity": sensitivity,
        "bounds": _bounds(bounds or ()),
        "rows_max": rows_max,
        "dimensions": dimensions,
        "form": one_of(form, ("published", "exact"), "--indicator"),
        "calibration": one_of(calibration, ("exact", "published"), "--calibration"),
        "engine": one_of(engine, ("duckdb", "spark"), "--engine"),
    }


def tables(given: Sequence[str]) -> dict[str, object] | str:
    """Return where the tables are: one without a name, or each by its name.

    Args:
        given: The places that were typed.

    Raises:
        BadParameter: If one of several has no name, or two have the same.
    """
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    found: dict[str, object] = {}
    for one in given:
        table, equals, place = one.partition("=")
        if not (table and equals and place):
            raise typer.BadParameter(
                f"of several tables, write TABLE=PLACE each, not `{one}`",
                param_hint="DATA",
            )
        if table in found:
            raise typer.BadParameter(f"`{table}` is given twice", param_hint="DATA")
        found[table] = place
    return found


def refuse_unheard(
    context: typer.Context, mechanism: str, *, chooses: bool = True
) -> None:
    """Refuse options that nothing would hear.

    Args:
        context: Of the command.
        mechanism: The noise.
        chooses: Whether an epsilon is chosen.

    Raises:
        BadParameter: If there is one.
    """
    for name, option in _OF_GAUSSIAN.items():
        if mechanism == "laplace" and was_given(context, name):
            raise not_beside(option, "Laplace noise (--mechanism laplace)")
    for name, option in _OF_A_CHOICE.items():
        if not chooses and was_given(context, name):
            raise typer.BadParameter(
                "nothing is chosen without --tau or --max-variance; give one of them,"
                f" or leave {option} out",
                param_hint=option,
            )


def one_of(value: str, known: Sequence[str], option: str) -> Any:
    """Return a word that is one of those that are known.

    Args:
        value: What was typed.
        known: The words.
        option: The option.

    Raises:
        BadParameter: If it is none of them.
    """
    if value in known:
        return value
    near = nearest(value, known)
    raise typer.BadParameter(
        f"it is {' or '.join(known)}, not `{value}`" + (f"; {near}" if near else ""),
        param_hint=option,
    )


def epsilons_given(text: str) -> Sequence[Number]:
    """Return candidates as they were typed: a list, or LOW:HIGH:N.

    Args:
        text: Of `--epsilons`.

    Raises:
        BadParameter: If it is neither.
    """
    from modicum.risk.candidates import grid

    if ":" not in text:
        return text.split(",")
    low, _, rest = text.partition(":")
    high, _, n = rest.partition(":")
    if not n.isdecimal():
        raise typer.BadParameter(
            f"write LOW:HIGH:N, such as 0.01:10:20, not `{text}`",
            param_hint="--epsilons",
        )
    return grid(low, high, int(n))


def _bounds(given: Sequence[str]) -> dict[str, tuple[Number, Number]] | None:
    found: dict[str, tuple[Number, Number]] = {}
    for one in given:
        value, _, ends = one.rpartition("=")
        low, colon, high = ends.partition(":")
        if not (low and colon and high):
            raise typer.BadParameter(
                f"write LOW:HIGH or COLUMN=LOW:HIGH, not `{one}`",
                param_hint="--bounds",
            )
        if value in found:
            raise typer.BadParameter(
                f"`{value}` has bounds twice" if value else "there are two for all",
                param_hint="--bounds",
            )
        found[value] = (low, high)
    return found or None
