"""`modicum account batch`: what a batch costs whose parameters are all fixed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli import account_options as words
from modicum.cli.options import Json
from modicum.cli.output import console, note, print_json, print_table, reporting

if TYPE_CHECKING:
    from fractions import Fraction

    from modicum.accounting.amounts import Amount
    from modicum.accounting.batch_format import Batch, Part
    from modicum.accounting.losses import Total

#: The filter whose figure is shown.
FILTER = "combined-v2"

#: The part of delta that the largest losses may use when a distribution is charged.
_CUT = 1000


@dataclass(frozen=True, slots=True)
class Figure:
    """One answer about a batch.

    Attributes:
        name: Which one.
        epsilon: Epsilon at delta, rounded up; None if it is not available.
        method: How it was obtained, or why it was not.
        condition: When it holds.
    """

    name: str
    epsilon: Amount | None
    method: str
    condition: str


def batch(
    file: Annotated[Path, typer.Argument(help="The mechanisms.", metavar="FILE")],
    delta: Annotated[
        str | None,
        typer.Option("--delta", help="The delta of epsilon.", metavar="NUMBER"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what a batch of mechanisms costs, if it is fixed before its first output.

    Shows epsilon at delta: as a filter charges it, by the best composition theorem,
    and by privacy loss distributions if dp-accounting is installed.
    """
    from modicum.accounting.batch_format import read_batch
    from modicum.ops.files.documents import load_release

    with reporting(as_json=as_json):
        read = read_batch(load_release(file))
        at = read.delta if delta is None else words.number(delta, "--delta")
        if at is None:
            raise typer.BadParameter("give --delta, or `delta` in the file")
        if not 0 < at < 1:
            raise typer.BadParameter("--delta: it must lie strictly between 0 and 1")
        figures = _figures(read, at)
        if as_json:
            print_json(_to_dict(read, at, figures))
        else:
            _print(read, at, figures)


# --- figures ----------------------------------------------------------------------


def _figures(read: Batch, delta: Fraction) -> list[Figure]:
    """Return every answer; what takes long shows a note meanwhile."""
    found = []
    with console(stderr=True).status("adding up") as status:
        for doing, step in _steps():
            status.update(doing)
            found.append(step(read, delta))
    return found


def _steps() -> tuple[tuple[str, Callable[[Batch, Fraction], Figure]], ...]:
    return (
        ("adding up the losses", _adaptive),
        ("looking for the best order", _fixed),
        ("convolving the privacy loss distributions", _pld),
        ("charging the distribution to a filter", _pld_charged),
    )


def _adaptive(read: Batch, delta: Fraction) -> Figure:
    return Figure(
        "adaptive",
        _filter_figure(read.total(), delta),
        f"filter {FILTER}, each run charged by itself",
        "holds even if each mechanism is chosen after seeing all earlier outputs",
    )


def _filter_figure(total: Total, delta: Fraction) -> Amount:
    from modicum.accounting.budgets import ApproxBudget
    from modicum.accounting.filters.budget import figure, filter_for
    from modicum.accounting.grid import DELTA, INFINITE

    budget = ApproxBudget(delta, delta)  # Neither figure nor delta cap asks for eps.
    if total.units(DELTA) > filter_for(budget, FILTER).delta_cap:
        return words.from_units(INFINITE)
    return words.from_units(figure(budget, FILTER, total))


def _fixed(read: Batch, delta: Fraction) -> Figure:
    from modicum.accounting.conversions.epsilon_delta import curve_epsilon

    found = curve_epsilon(read.curve(), delta)
    return Figure(
        "fixed",
        words.from_units(found.units),
        f"best of pure, zCDP, Renyi and exact Gaussian: {found.method}",
        "every parameter was fixed before the first output",
    )


def _pld(read: Batch, delta: Fraction) -> Figure:
    def compute(parts: tuple[Part, ...]) -> tuple[Amount, str]:
        from modicum.integrations.pld.batch import batch_epsilon

        return batch_epsilon(parts, delta), "privacy loss distributions"

    return _by_distribution(
        "pld",
        read,
        compute,
        "every parameter was fixed before the first output; noise of Laplace and"
        " discrete kinds is on a single number; never to be used as a filter",
    )


def _pld_charged(read: Batch, delta: Fraction) -> Figure:
    def compute(parts: tuple[Part, ...]) -> tuple[Amount, str]:
        from modicum.accounting.losses import Total
        from modicum.integrations.pld.batch import batch_curve

        curve = batch_curve(parts, delta=delta / _CUT)
        charged = Total().plus(curve.loss())
        return _filter_figure(charged, delta), (
            f"filter {FILTER}, the distribution charged as one loss"
        )

    return _by_distribution(
        "pld-charged",
        read,
        compute,
        "as for pld; the batch as a whole may be chosen after seeing earlier outputs,"
        " and is charged before it starts",
    )


def _by_distribution(
    name: str,
    read: Batch,
    compute: Callable[[tuple[Part, ...]], tuple[Amount, str]],
    condition: str,
) -> Figure:
    from modicum.core.errors import Code, InputError

    try:
        epsilon, method = compute(read.parts)
    except InputError as error:
        problem = error.problems[0]
        if problem.code is not Code.NOT_SUPPORTED:
            raise
        return Figure(name, None, f"{problem.message}; {problem.help}", condition)
    return Figure(name, epsilon, method, condition)


# --- printing ---------------------------------------------------------------------


def _print(read: Batch, delta: Fraction, figures: list[Figure]) -> None:
    from rich.markup import escape
    from rich.table import Table

    print(f"{read.runs} runs of {len(read.parts)} mechanisms, at delta {_text(delta)}")
    table = Table(box=None, pad_edge=False)
    for title in ("FIGURE", "EPSILON", "BY"):
        table.add_column(title, no_wrap=title != "BY", overflow="fold")
    for one in figures:
        shown = "-" if one.epsilon is None else words.shown(one.epsilon)
        table.add_row(one.name, shown, escape(one.method))
    print_table(table)
    print("conditions:")
    for one in figures:
        print(f"  {one.name}: {one.condition}")
    for remark in _relations(read):
        note(remark)


def _text(delta: Fraction) -> str:
    from modicum.core.rationals import brief

    return brief(delta)


def _relations(read: Batch) -> Iterator[str]:
    """Yield a remark if the kinds are made for different neighbors."""
    from modicum.accounting.mechanism_registry import KINDS

    named = {KINDS[part.kind].relation: part.kind for part in read.parts}
    named = {name: kind for name, kind in named.items() if not _is_open(name)}
    if len(named) > 1:
        listed = "; ".join(f"{kind}: {relation}" for relation, kind in named.items())
        yield f"note: one neighboring relation must hold for all ({listed})"


def _is_open(relation: str) -> bool:
    """Return whether whoever states the parameters chooses the neighbors."""
    return relation.startswith("that of")


def _to_dict(read: Batch, delta: Fraction, figures: list[Figure]) -> dict[str, object]:
    return {
        "runs": read.runs,
        "delta": words.json_amount(delta),
        "mechanisms": [
            {
                "kind": part.kind,
                "parameters": {k: words.json_amount(v) for k, v in part.values},
                "times": part.times,
            }
            for part in read.parts
        ],
        "figures": [
            {
                "figure": one.name,
                "epsilon": None
                if one.epsilon is None
                else words.json_amount(one.epsilon),
                "method": one.method,
                "condition": one.condition,
            }
            for one in figures
        ],
        "notes": list(_relations(read)),
    }
