"""`modicum account`: convert guarantees, price mechanisms, find the noise."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli import account_options as words
from modicum.cli.account_compose import compose
from modicum.cli.account_composition import batch
from modicum.cli.account_mechanisms import mechanism, subsample
from modicum.cli.options import Json
from modicum.cli.output import print_json, print_table, reporting

if TYPE_CHECKING:
    from modicum.accounting.conversions.guarantees import Guarantee, Target, Wanted
    from modicum.accounting.conversions.registry import Converted

app = typer.Typer(
    help="Convert guarantees, price mechanisms, find the noise for a target.",
    no_args_is_help=True,
)

Delta = Annotated[
    str | None, typer.Option("--delta", help="The delta of epsilon.", metavar="NUMBER")
]
Runs = Annotated[
    int, typer.Option("--times", min=1, help="How often it runs, fixed in advance.")
]

# --- convert --------------------------------------------------------------------


@app.command()
def convert(
    given: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="What is proven: eps=E; eps=E,delta=D; rho=R; mu=M;"
            " rdp=ORDER:R,ORDER:R.",
            metavar="GUARANTEE",
        ),
    ] = None,
    to: Annotated[
        str, typer.Option("--to", help="eps, delta, rho, mu or rdp.", metavar="MEASURE")
    ] = "eps",
    delta: Delta = None,
    eps: Annotated[
        str | None,
        typer.Option("--eps", help="The epsilon of delta.", metavar="NUMBER"),
    ] = None,
    order: Annotated[
        str | None, typer.Option("--order", help="The order of rdp.", metavar="NUMBER")
    ] = None,
    times: Runs = 1,
    method: Annotated[
        str | None,
        typer.Option(
            "--method", help="A named conversion; without it, the tightest that holds."
        ),
    ] = None,
    relation: Annotated[
        str,
        typer.Option("--relation", help="The neighboring relation that is proven."),
    ] = "add-remove",
    to_relation: Annotated[
        str | None, typer.Option("--to-relation", help="The one that is asked.")
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--list", help="Show the named conversions.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Convert one guarantee to another measure, rounded up.

    What no proof allows is refused, with the reason.
    """
    from modicum.accounting.conversions.guarantees import check_relation
    from modicum.accounting.conversions.registry import convert as converted

    with reporting(as_json=as_json):
        if show_all:
            _print_conversions(as_json=as_json)
            return
        if given is None:
            raise typer.BadParameter("give --from, or --list")
        check_relation(relation, to_relation or relation)
        proven = words.guarantee(given, times)
        target = _target(to, delta=delta, eps=eps, order=order)
        found = converted(proven, target, method)
        if as_json:
            print_json(_conversion_to_dict(proven, target, found))
        else:
            _print_conversion(target, found)


def _target(
    to: str, *, delta: str | None, eps: str | None, order: str | None
) -> Target:
    from modicum.accounting.conversions.guarantees import Target

    asked: dict[str, tuple[Wanted, str | None, str]] = {
        "eps": ("eps" if delta is not None else "pure", delta, "--delta"),
        "delta": ("delta", eps, "--eps"),
        "rho": ("rho", None, ""),
        "mu": ("mu", None, ""),
        "rdp": ("rdp", order, "--order"),
    }
    if to not in asked:
        raise typer.BadParameter(f"--to: `{to}` is none of {', '.join(asked)}")
    measure, at, option = asked[to]
    if at is None and measure in {"delta", "rdp"}:
        raise typer.BadParameter(f"--to {to} needs {option}")
    unused = {"--delta": delta, "--eps": eps, "--order": order}
    for name, value in unused.items():
        if value is not None and name != option:
            raise typer.BadParameter(f"{name} does not go with --to {to}")
    return Target(measure, Fraction(0) if at is None else words.number(at, option))


def _print_conversion(target: Target, found: Converted) -> None:
    at = words.shown(target.at)
    name = {
        "pure": "epsilon <= {}",
        "eps": f"epsilon <= {{}} at delta {at}",
        "delta": f"delta <= {{}} at epsilon {at}",
        "rho": "rho <= {}",
        "mu": "mu <= {}",
        "rdp": f"Renyi divergence <= {{}} at order {at}",
    }[target.measure]
    conversion = found.conversion
    print(name.format(words.shown(found.value)))
    print(f"  by {conversion.name}: {conversion.reference}")
    if conversion.condition != "always":
        print(f"  condition: {conversion.condition}")


def _conversion_to_dict(
    proven: Guarantee, target: Target, found: Converted
) -> dict[str, object]:
    value, at = words.json_amount(found.value), words.json_amount(target.at)
    answers: dict[str, dict[str, object]] = {
        "pure": {"epsilon": value, "delta": 0},
        "eps": {"epsilon": value, "delta": at},
        "delta": {"epsilon": at, "delta": value},
        "rho": {"rho": value},
        "mu": {"mu": value},
        "rdp": {"order": at, "rdp": value},
    }
    return {
        "from": _guarantee_to_dict(proven),
        "times": proven.times,
        **answers[target.measure],
        "method": found.conversion.name,
        "condition": found.conversion.condition,
        "source": found.conversion.reference,
    }


def _guarantee_to_dict(proven: Guarantee) -> dict[str, object]:
    if proven.measure == "rdp":
        return {
            "rdp": [
                {"order": words.json_amount(order), "divergence": words.json_amount(r)}
                for order, r in proven.points
            ]
        }
    if proven.measure == "eps-delta":
        return {
            "eps": words.json_amount(proven.value),
            "delta": words.json_amount(proven.delta),
        }
    return {proven.measure: words.json_amount(proven.value)}


def _print_conversions(*, as_json: bool) -> None:
    from modicum.accounting.conversions.registry import CONVERSIONS

    rows = [
        {
            "from": list(c.sources),
            "to": c.target,
            "method": c.name,
            "condition": c.condition,
            "source": c.reference,
        }
        for c in CONVERSIONS
    ]
    if as_json:
        print_json({"conversions": rows})
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("FROM", "TO", "METHOD", "CONDITION", "SOURCE"):
        table.add_column(title, overflow="fold", no_wrap=title in {"TO", "METHOD"})
    for c in CONVERSIONS:
        cells = (", ".join(c.sources), c.target, c.name, c.condition, c.reference)
        table.add_row(*cells)
    print_table(table)


app.command("mechanism")(mechanism)
app.command("subsample")(subsample)
app.command("compose")(compose)
app.command("batch")(batch)
