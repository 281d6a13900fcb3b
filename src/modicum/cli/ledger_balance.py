"""`modicum ledger balance`: what a cell of a rule was charged, and by whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from modicum.cli.options import DEFAULT_LEDGER, AsOf, Json, Ledger, Policy, point
from modicum.cli.output import print_json, print_table, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.cell_balance import CellBalance
    from modicum.release import Partition


def balance(
    rule: Annotated[
        str, typer.Argument(help="The id of a rule over history.", metavar="RULE")
    ],
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            help="Whose cells: country=CH, country=CH,DE or age=18..64; repeatable.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    period: Annotated[
        list[str] | None,
        typer.Option("--period", help="Of which period, such as 2026-11; repeatable."),
    ] = None,
    group: Annotated[
        list[int] | None,
        typer.Option("--group", help="Of which user group; repeatable."),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", min=1, help="How many releases to name.")
    ] = 10,
    policy: Policy = None,
    ledger: Ledger = DEFAULT_LEDGER,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Show the fullest cell of a rule: spent, limit, and the releases that filled it.

    Without --where, --period and --group, all cells are looked at. Writes nothing.
    """
    from modicum.cli.ledger_access import open_view, say_if_empty

    with reporting(as_json=as_json):
        view = open_view(ledger, policy=policy, as_of=point(as_of))
        partitions = view.policy().policy.vocabulary.population.partitions
        found = view.spenders(
            rule,
            where=_box(where, partitions) if where else None,
            periods=period or None,
            groups=group or None,
        )
        if as_json:
            print_json(found.view(top))
        else:
            say_if_empty(view, ledger)
            print_balance(found, top)


def print_balance(found: CellBalance, top: int) -> None:
    """Print what a cell was charged, and by whom.

    Args:
        found: The cell.
        top: How many releases to name.
    """
    from modicum.api.local.explanation.denial_text import amount_text, room_text

    loss, spent = found.loss, found.spent
    print(printable(f"{loss.rule.id}, per {loss.rule.unit}"))
    if loss.cell:
        of = f", the fullest of {found.cells}" if found.cells > 1 else ""
        print(printable(f"  cell   {loss.cell}{of}"))
    print(f"  spent  {spent.measure} {amount_text(spent.together, spent.scale)}")
    if not loss.own_filter.enforced:
        print("  limit  none: it is tracked, nothing is denied")
    else:
        over = "" if loss.allowed else ", OVER: it denies what falls under it here"
        print(f"  limit  {spent.measure} {amount_text(spent.limit, spent.scale)}{over}")
    if found.cause:
        print(printable(f"  cause  {found.cause}"))
    if found.rho_left is not None:
        print(f"  left   Gaussian noise may still cost rho {room_text(found.rho_left)}")
    if found.spenders:
        _print_spenders(found, top)
    if found.nearby:
        print("  charged for others, too: there are too many segments to tell apart")


def _print_spenders(found: CellBalance, top: int) -> None:
    from rich.markup import escape
    from rich.table import Table

    from modicum.accounting.grid import DELTA, coordinate_name
    from modicum.api.local.explanation.denial_text import amount_text
    from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT

    scale = DELTA_UNIT if found.coordinate == DELTA else LOSS_UNIT
    table = Table(box=None, pad_edge=False)
    table.add_column("RELEASE", overflow="fold")
    table.add_column(coordinate_name(found.coordinate).upper(), justify="right")
    table.add_column("SHARE", justify="right")
    shown = found.spenders[:top]
    if any(one.undated for one in shown):
        table.add_column("PERIODS")
    for one in shown:
        share = "" if one.share is None else f"{int(100 * one.share)} %"
        periods = ("missing" if one.undated else "",) * (len(table.columns) - 3)
        amount = amount_text(one.units, scale)
        table.add_row(escape(printable(one.release)), amount, share, *periods)
    print_table(table)
    left = len(found.spenders) - top
    if left > 0:
        print(f"… {left} more (--top)")


def _box(given: Iterable[str], partitions: Mapping[str, Partition]) -> dict[str, Any]:
    """Return a box as a release names it."""
    box: dict[str, Any] = {}
    for text in given:
        name, equals, values = text.partition("=")
        if not equals:
            raise typer.BadParameter(
                f"`{text}` is not NAME=VALUE", param_hint="--where"
            )
        numbers = name in partitions and partitions[name].values is None
        read = [_span(one) if numbers else one for one in values.split(",")]
        box.setdefault(name, []).extend(read)
    return box


def _span(text: str) -> Any:
    """Return a number, or a span such as `18..64`, as a release names it."""
    low, dots, high = text.partition("..")
    if not dots:
        return _number(text)
    ends = {"from": low, "to": high}
    return {end: _number(value) for end, value in ends.items() if value}


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(
            f"`{text}` is not a whole number", param_hint="--where"
        ) from None
