"""`modicum status`: where every rule stands."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli.options import DEFAULT_LEDGER, AsOf, Json, Ledger, Policy, point
from modicum.cli.output import fitting, note, print_json, print_table, reporting
from modicum.core.errors import printable

if TYPE_CHECKING:
    from modicum.api.local.ledger_view import LedgerView
    from modicum.ledger import RuleLoss

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
    from modicum.cli.ledger_access import open_view

    with reporting(as_json=as_json):
        workspace = open_view(ledger, policy=policy, as_of=point(as_of))
        if as_json:
            from modicum.api.local.views.ledger import status_view

            print_json(status_view(workspace))
            return
        print_status(workspace, shown=None if show_all else SHOWN)


def print_status(workspace: LedgerView, *, shown: int | None) -> None:
    """Print a balance for each rule, the tightest first."""
    from rich.markup import escape
    from rich.table import Table

    from modicum.api.local.explanation.denial_text import cause_text
    from modicum.api.local.views.ledger import understated
    from modicum.ledger.decision.amounts import filled

    standings = sorted(workspace.standings(), key=filled, reverse=True)
    kept = standings[: fitting(len(standings), shown)]
    table = Table(box=None, pad_edge=False)
    cells = ("FULLEST CELL",) if any(loss.cell for loss in kept) else ()
    for title in ("RULE", "", "SPENT", "LIMIT", "SCALE", "STATE", *cells):
        right = title in ("SPENT", "LIMIT")
        table.add_column(
            title,
            justify="right" if right else "left",
            no_wrap=title not in ("SCALE", *cells),
            overflow="fold",
        )
    for loss in kept:
        where = (loss.cell,) if cells else ()
        table.add_row(*(escape(cell) for cell in (*_cells(loss), *where)))
    print_table(table, spare=("", "SCALE"))
    for loss in kept:
        if cause := cause_text(loss):
            print(printable(f"{loss.rule.id}: {cause}"))
    left = len(standings) - len(kept)
    if left:
        print(f"… {left} more (--all)")
    print(_summary(workspace))
    print(printable(_policy_words(workspace)))
    for problem in understated(workspace):
        note(problem.render().replace("error[", "warning[", 1))


def _cells(loss: RuleLoss) -> tuple[str, ...]:
    from modicum.api.local.explanation.denial_text import amount_text
    from modicum.api.local.policies.rule_standing import in_cells
    from modicum.api.local.views.ledger import standing_word
    from modicum.ledger.decision.amounts import amounts, filled

    found, over = amounts(loss), not loss.allowed
    return (
        loss.rule.id,
        _bar(filled(loss)),
        amount_text(found.together, found.scale),
        amount_text(found.limit, found.scale),
        _scale(loss, found.measure),
        standing_word(loss)
        + (in_cells(loss.cells_denying) if loss.cell and over else ""),
    )


def _summary(workspace: LedgerView) -> str:
    state = workspace.state()
    counted, denials = state.releases.counted, state.denials
    return (
        f"{_counted(counted, 'release')} count{'s' if counted == 1 else ''},"
        f" {_counted(denials, 'denial')};"
        f" entry {state.seq}, head {state.head[:12]}"
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _policy_words(workspace: LedgerView) -> str:
    """Return which policy is shown, and which one is active if that is another."""
    given, active = workspace.policy().policy, workspace.state().policy
    called = f"policy `{given.name}` ({given.digest[:12]})"
    if active is None:
        return f"{called}, on an empty ledger: none is there yet"
    if active.digest == given.digest:
        return f"{called}, active since entry {active.seq}"
    return f"{called}; active is `{active.name}` ({active.digest[:12]})"


_BAR = 14


def _bar(filled: Fraction) -> str:
    eighths = min(int(filled * _BAR * 8), _BAR * 8)
    full, rest = divmod(eighths, 8)
    partial = " ▏▎▍▌▋▊▉"[rest].strip()
    return ("█" * full + partial).ljust(_BAR, "·")


def _scale(loss: RuleLoss, measure: str) -> str:
    from modicum.core.rationals import brief

    delta = loss.report_delta
    at = f" at {brief(delta)}" if measure == "eps" and delta is not None else ""
    return f"{measure}{at} per {loss.rule.unit}"
