"""`modicum status`: where every rule stands."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.options import DEFAULT_LEDGER, AsOf, Json, Ledger, Policy, point
from modicum.cli.output import fitting, print_json, print_table, reporting

if TYPE_CHECKING:
    from modicum.ledger import RuleLoss
    from modicum.workspace.ledger_view import LedgerView

#: How many rules are shown unless all are asked for.
SHOWN = 12


def status(
    policy: Policy = None,
    ledger: Ledger = DEFAULT_LEDGER,
    show_all: Annotated[
        bool, typer.Option("--all", help=f"Every rule, not the tightest {SHOWN}.")
    ] = False,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Show what every rule has spent, the tightest first."""
    from modicum.cli.opening import open_workspace

    with reporting(as_json=as_json):
        workspace = open_workspace(ledger, policy=policy, as_of=point(as_of))
        if as_json:
            print_json(_to_dict(workspace))
            return
        print_status(workspace, shown=None if show_all else SHOWN)


def print_status(workspace: LedgerView, *, shown: int | None) -> None:
    """Print a balance for each rule, the tightest first."""
    from rich.markup import escape
    from rich.table import Table

    from modicum.ledger.deciding.amounts import filled

    standings = sorted(workspace.standings(), key=filled, reverse=True)
    kept = standings[: fitting(len(standings), shown)]
    table = Table(box=None, pad_edge=False)
    cells = ("FULLEST CELL",) if any(loss.cell for loss in kept) else ()
    for title in ("RULE", "", "SPENT", "LIMIT", "SCALE", "STATE", *cells):
        right = title in ("SPENT", "LIMIT")
        table.add_column(
            title,
            justify="right" if right else "left",
            no_wrap=title not in ("RULE", "SCALE", *cells),
            overflow="fold",
        )
    for loss in kept:
        where = (loss.cell,) if cells else ()
        table.add_row(*(escape(cell) for cell in (*_cells(loss), *where)))
    print_table(table)
    left = len(standings) - len(kept)
    if left:
        print(f"… {left} more (--all)")
    print(_summary(workspace))


def _cells(loss: RuleLoss) -> tuple[str, ...]:
    from modicum.ledger.deciding.amounts import amounts, filled
    from modicum.workspace.explaining.explain import amount_text

    found = amounts(loss)
    return (
        loss.rule.id,
        _bar(filled(loss)),
        amount_text(found.together, found.scale),
        amount_text(found.limit, found.scale),
        _scale(loss, found.measure),
        _state(loss),
    )


def _summary(workspace: LedgerView) -> str:
    state = workspace.state()
    counted = state.releases.counted
    return (
        f"{counted} releases count, {state.denials} denials;"
        f" entry {state.seq}, head {state.head[:12]}"
    )


_BAR = 14


def _bar(filled: Fraction) -> str:
    eighths = min(int(filled * _BAR * 8), _BAR * 8)
    full, rest = divmod(eighths, 8)
    partial = " ▏▎▍▌▋▊▉"[rest].strip()
    return ("█" * full + partial).ljust(_BAR, "·")


def _scale(loss: RuleLoss, measure: str) -> str:
    from modicum.core.exact import brief

    delta = loss.report_delta
    at = f" at {brief(delta)}" if measure == "eps" and delta is not None else ""
    return f"{measure}{at} per {loss.rule.unit}"


def _state(loss: RuleLoss) -> str:
    from modicum.ledger.deciding.amounts import filled

    if not loss.own_filter.enforced:
        return "not limited"
    if not loss.allowed:
        return "OVER"
    return "near" if filled(loss) >= Fraction(4, 5) else "ok"


def _to_dict(workspace: LedgerView) -> dict[str, object]:
    from modicum.workspace.explaining.explain import loss_to_dict

    compiled, state = workspace.policy(), workspace.state()
    rules = []
    for loss in workspace.standings():
        shown = loss_to_dict(loss)
        del shown["alone"], shown["before"], shown["filter"]
        shown["spent"] = shown.pop("together")
        rules.append({**shown, "state": _state(loss)})
    return {
        "policy": {"name": compiled.policy.name, "digest": compiled.policy.digest},
        "ledger": {"seq": state.seq, "head": state.head},
        "releases": state.releases.counted,
        "denials": state.denials,
        "rules": rules,
    }
