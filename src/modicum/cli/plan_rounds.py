"""`modicum plan open` and `remainder`: rounds, whose turn it is, and what is left."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.options import DEFAULT_LEDGER, Actor, Json, Ledger
from modicum.cli.output import print_json, print_table, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local import Workspace
    from modicum.api.local.plans.remainder import Remainder
    from modicum.api.local.plans.rounds import Round


def open_round(
    round_id: Annotated[
        str,
        typer.Argument(help="What the round is called.", metavar="[ID]"),
    ] = "",
    unlock: Annotated[
        list[str] | None,
        typer.Option(
            "--unlock",
            help="What part of every budget of a unit may be used from here on, from 0"
            " to 1, or in percent; repeatable. It never falls.",
            metavar="UNIT=SHARE",
        ),
    ] = None,
    ledger: Ledger = DEFAULT_LEDGER,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Open the next round: budgets are unlocked, and user groups take turns.

    If the policy has a `rotation`, the next group becomes active, and one that had all
    its turns retires.
    """
    from modicum.cli.ledger_access import open_workspace

    with reporting(as_json=as_json):
        workspace = open_workspace(ledger, actor=actor)
        unlocked = _shares(unlock or (), workspace)
        opened = workspace.rounds.open(round_id, unlocked=unlocked)
        if as_json:
            from modicum.api.local.views.rounds import round_view

            print_json(round_view(opened))
        else:
            print_round(opened)


def remainder(ledger: Ledger = DEFAULT_LEDGER, as_json: Json = False) -> None:
    """Show what user groups left over when they retired.

    If the policy says `retired: first-come`, releases may use it, first come, first
    served.
    """
    from modicum.cli.ledger_access import open_workspace

    with reporting(as_json=as_json):
        workspace = open_workspace(ledger)
        found = workspace.rounds.remainders()
        rotation = workspace.policy().policy.rotation
        retired = None if rotation is None else rotation.retired.value
        if as_json:
            groups = [_remainder_to_dict(one) for one in found]
            print_json({"retired": retired, "groups": groups})
            return
        if not found:
            print("no group has retired")
            return
        _print_remainders(found)
        if retired == "closed":
            print("nobody may use it: the policy says  retired: closed")


def print_round(found: Round) -> None:
    """Print a round, and whose turn it is.

    Args:
        found: The round.
    """
    again = " (it was open already)" if found.again else ""
    number = _ordinal(found.number)
    print(printable(f"round `{found.id}` is open, the {number}{again}"))
    for unit, share in found.unlocked.items():
        print(printable(f"  {unit}: {_percent(share)} of every budget is unlocked"))
    for turn in found.active:
        print(
            f"  group {turn.group}: active for {_rounds(turn.age)},"
            f" {_percent(turn.unlocked)} unlocked"
        )
    if found.retired:
        print(f"  retired: {_groups_text(found.retired)}")


def _shares(given: Iterable[str], workspace: Workspace) -> dict[str, Fraction]:
    shares: dict[str, Fraction] = {}
    for one in given:
        unit, equals, written = one.partition("=")
        share = _share(written)
        if not (unit and equals) or share is None:
            known = next(iter(workspace.policy().policy.vocabulary.units))
            raise typer.BadParameter(
                "write UNIT=SHARE with a share from 0 to 1, such as"
                f" {known}=0.25 or {known}=25%, not `{one}`",
                param_hint="--unlock",
            )
        if unit in shares:
            raise typer.BadParameter(f"`{unit}` is given twice", param_hint="--unlock")
        shares[unit] = share
    return shares


def _share(written: str) -> Fraction | None:
    """Return a share from 0 to 1 that is a number or in percent; None if it is none."""
    from modicum.core.rationals import parse_number

    number = parse_number(written.removesuffix("%"))
    if number is None:
        return None
    share = number / 100 if written.endswith("%") else number
    return share if 0 <= share <= 1 else None


def _percent(share: Fraction) -> str:
    tenths = share.numerator * 1000 // share.denominator
    return f"{tenths / 10:g} %"


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _ordinal(number: int) -> str:
    last = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")  # codespell:ignore nd
    return f"{number}{'th' if number % 100 in (11, 12, 13) else last}"


def _groups_text(groups: tuple[int, ...]) -> str:
    if len(groups) == groups[-1] - groups[0] + 1 and len(groups) > 2:
        return f"groups {groups[0]} to {groups[-1]}"
    return ", ".join(f"group {one}" for one in groups)


def _print_remainders(found: Iterable[Remainder]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from modicum.api.local.explanation.denial_text import amount_text, room_text
    from modicum.ledger.decision.amounts import amounts

    table = Table(box=None, pad_edge=False)
    for title in ("GROUP", "RETIRED IN", "LEAST IS LEFT OF", "WHERE"):
        table.add_column(title, no_wrap=True)
    for title in ("USED", "LEFT"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in found:
        said = amounts(one.standing)
        left = max(0, said.limit - said.together)
        table.add_row(
            str(one.group),
            escape(printable(one.until)),
            escape(printable(one.standing.rule.id)),
            escape(printable(one.standing.cell)),
            f"{said.measure} {amount_text(said.together, said.scale)}",
            room_text(left, said.scale),
        )
    print_table(table, spare=("RETIRED IN",))


def _remainder_to_dict(one: Remainder) -> dict[str, object]:
    from modicum.api.local.explanation.denial_text import loss_view

    return {
        "group": one.group,
        "until": one.until,
        "standing": loss_view(one.standing),
    }
