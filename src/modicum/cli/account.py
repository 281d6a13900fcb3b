"""`modicum account`: convert guarantees, price mechanisms, find the noise."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from modicum.cli import account_options as words
from modicum.cli.account_composition import batch, compose
from modicum.cli.options import Json
from modicum.cli.output import print_json, print_table, reporting

if TYPE_CHECKING:
    from decimal import Decimal

    from modicum.accounting.conversions.guarantees import Guarantee, Target, Wanted
    from modicum.accounting.conversions.moments import Epsilon
    from modicum.accounting.conversions.registry import Converted
    from modicum.accounting.curves import Curve
    from modicum.accounting.mechanisms.kind import Kind, Values

if TYPE_CHECKING:
    Amounts = dict[str, Fraction | Decimal]

Words = Annotated[
    list[str] | None,
    typer.Argument(
        help="The kind, and its parameters.", metavar="KIND [NAME=NUMBER]..."
    ),
]
Delta = Annotated[
    str | None,
    typer.Option("--delta", help="Show epsilon at this delta.", metavar="NUMBER"),
]


# --- mechanism ------------------------------------------------------------------


def mechanism(
    given: Words = None,
    delta: Delta = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--for",
            help="Find the missing parameter, or the one written NAME=?, for this"
            " target: eps=E; eps=E,delta=D; rho=R; mu=M; rdp=ORDER:R.",
            metavar="TARGET",
        ),
    ] = None,
    times: Annotated[
        int, typer.Option(min=1, help="The number of runs, fixed in advance.")
    ] = 1,
    show_all: Annotated[
        bool, typer.Option("--list", help="Show the kinds and their parameters.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the loss of a mechanism, in every measure; or the noise for a target."""
    from modicum.accounting.budgets import ApproxBudget
    from modicum.accounting.curves import composed
    from modicum.accounting.named_mechanisms import (
        calibrated,
        complete_values,
        curve_of_kind,
    )

    with reporting(as_json=as_json):
        if show_all:
            _print_kinds(as_json=as_json)
            return
        unknowns, given = _asked(given)
        kind, values = _mechanism(given)
        found = None
        if target is not None:
            budget = words.budget(target)
            name, value = calibrated(kind, values, budget, runs=times, find=unknowns)
            found, values = name, {**values, name: value}
            if delta is None and isinstance(budget, ApproxBudget):
                delta = _exact(budget.delta)
        elif unknowns:
            raise typer.BadParameter(f"`{unknowns}=?` needs a target: give --for")
        curve = composed([(curve_of_kind(kind, values), times)])
        known = complete_values(kind, values)
        if as_json:
            print_json(
                {
                    "kind": kind.name,
                    "parameters": _to_dict(known),
                    "times": times,
                    "relation": kind.relation,
                    "calibrated": found and {"parameter": found, "target": target},
                    "curve": _curve_to_dict(curve),
                    "approx_dp": _approx_to_dict(curve, delta),
                }
            )
            return
        _print_head(kind, known, times)
        if found:
            print(f"  {found}={_exact(known[found])} meets {target}")
        _print_curves({"AT MOST": curve})
        _print_epsilon("", curve, delta)


def _asked(given: list[str] | None) -> tuple[str, list[str]]:
    """Return the parameter to compute, written NAME=?, and the other words."""
    unknowns = [argument for argument in given or () if argument.endswith("=?")]
    if len(unknowns) > 1:
        raise typer.BadParameter("only one parameter can be open: one `=?`")
    others = [argument for argument in given or () if argument not in unknowns]
    return (unknowns[0].removesuffix("=?") if unknowns else ""), others


def _mechanism(given: list[str] | None) -> tuple[Kind, Values]:
    from modicum.accounting.named_mechanisms import kind_named

    if not given:
        raise typer.BadParameter("give a kind of mechanism, or --list")
    return kind_named(given[0]), words.settings(given[1:])


def _print_head(kind: Kind, known: Values, times: int) -> None:
    settings = " ".join(f"{name}={_exact(value)}" for name, value in known.items())
    often = f", {times} times" if times > 1 else ""
    print(f"{kind.name} {settings}{often}")
    print(f"  neighboring relation: {kind.relation}")


def _exact(value: Fraction) -> str:
    from modicum.core.rationals import number_text

    return number_text(value)


# --- subsample ------------------------------------------------------------------


def subsample(
    given: Words = None,
    rate: Annotated[
        str, typer.Option("--rate", help="The sampling rate.", metavar="NUMBER")
    ] = "1",
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="poisson (for add-remove) or without-replacement (for substitute).",
        ),
    ] = "poisson",
    steps: Annotated[
        int,
        typer.Option(
            "--steps", min=1, help="The number of runs, each on a fresh sample."
        ),
    ] = 1,
    delta: Delta = None,
    as_json: Json = False,
) -> None:
    """Show the loss of a mechanism on secret samples, next to that without sampling."""
    from modicum.accounting.curves import composed
    from modicum.accounting.named_mechanisms import (
        SAMPLINGS,
        complete_values,
        curve_of_kind,
        sampled_curve,
    )

    with reporting(as_json=as_json):
        kind, values = _mechanism(given)
        share = words.number(rate, "--rate")
        sampled = composed([(sampled_curve(kind, values, share, method), steps)])
        whole = composed([(curve_of_kind(kind, values), steps)])
        known = complete_values(kind, values)
        if as_json:
            print_json(
                {
                    "kind": kind.name,
                    "parameters": _to_dict(known),
                    "steps": steps,
                    "rate": words.json_amount(share),
                    "method": method,
                    "relation": SAMPLINGS[method],
                    "whole": _side_to_dict(whole, delta),
                    "sampled": _side_to_dict(sampled, delta),
                }
            )
            return
        _print_head(kind, known, steps)
        print(f"  {method} samples of rate {_exact(share)}, under {SAMPLINGS[method]}:")
        print("  secret, and drawn again for each run")
        _print_curves({"ALL AT MOST": whole, "SAMPLED AT MOST": sampled})
        _print_epsilon("all: ", whole, delta)
        _print_epsilon("sampled: ", sampled, delta)


def _side_to_dict(curve: Curve, delta: str | None) -> dict[str, object]:
    return {
        "curve": _curve_to_dict(curve),
        "approx_dp": _approx_to_dict(curve, delta),
    }


# --- curves ---------------------------------------------------------------------


def _amounts(curve: Curve) -> Amounts:
    """Return every measure of a curve in the ledger's units, by its name."""
    from modicum.accounting.amounts import INFINITY
    from modicum.accounting.decimals import precise, significant, to_decimal
    from modicum.accounting.grid import DELTA, INFINITE, MU2, coordinate_name
    from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT

    amounts: Amounts = {}
    for index, units in enumerate(curve.loss().coordinates):
        unit = DELTA_UNIT if index == DELTA else LOSS_UNIT
        infinite = units >= INFINITE and index != DELTA
        amount = INFINITY if infinite else Fraction(units, unit)
        if index != MU2:
            amounts[coordinate_name(index)] = amount
        elif isinstance(amount, Fraction):
            root = precise(lambda square: to_decimal(square).sqrt())(amount)
            amounts["mu"] = precise(significant)(root, 20, up=True)
        else:
            amounts["mu"] = amount
    return amounts


def _curve_to_dict(curve: Curve) -> dict[str, object]:
    amounts = {name: words.json_amount(a) for name, a in _amounts(curve).items()}
    orders = {
        name.removeprefix("rdp(").removesuffix(")"): amount
        for name, amount in amounts.items()
        if name.startswith("rdp(")
    }
    fixed = {name: amounts[name] for name in ("eps", "rho", "mu", "delta")}
    return {**fixed, "rdp": orders}


def _print_curves(curves: dict[str, Curve]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("MEASURE", no_wrap=True)
    for title in curves:
        table.add_column(title, justify="right", no_wrap=True)
    columns = [_amounts(curve) for curve in curves.values()]
    for name in columns[0]:
        table.add_row(name, *(words.shown(column[name]) for column in columns))
    print_table(table)


def _epsilon(curve: Curve, delta: str) -> Epsilon:
    from modicum.accounting.conversions.epsilon_delta import curve_epsilon

    return curve_epsilon(curve, words.number(delta, "--delta"))


def _approx_to_dict(curve: Curve, delta: str | None) -> dict[str, object] | None:
    if delta is None:
        return None
    found = _epsilon(curve, delta)
    return {
        "epsilon": words.json_amount(words.from_units(found.units)),
        "delta": words.json_amount(words.number(delta, "--delta")),
        "method": found.method,
    }


def _print_epsilon(label: str, curve: Curve, delta: str | None) -> None:
    if delta is None:
        return
    found = _epsilon(curve, delta)
    amount = words.shown(words.from_units(found.units))
    print(f"{label}epsilon <= {amount} at delta {delta}, by {found.method}")


def _to_dict(values: Values) -> dict[str, object]:
    return {name: words.json_amount(value) for name, value in values.items()}


# --- the list of kinds ----------------------------------------------------------


def _print_kinds(*, as_json: bool) -> None:
    from modicum.accounting.mechanisms import ACCOUNT_KINDS

    if as_json:
        print_json({"kinds": [_kind_to_dict(kind) for kind in ACCOUNT_KINDS.values()]})
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("KIND", "PARAMETER", "DEFAULT", "MEANING"):
        table.add_column(title, overflow="fold", no_wrap=title != "MEANING")
    for kind in ACCOUNT_KINDS.values():
        name = kind.name
        for p in kind.parameters:
            default = "" if p.default is None else _exact(p.default)
            table.add_row(name, p.name, default, p.meaning)
            name = ""
    print_table(table)


def _kind_to_dict(kind: Kind) -> dict[str, object]:
    return {
        "kind": kind.name,
        "relation": kind.relation,
        "parameters": [
            {
                "parameter": p.name,
                "meaning": p.meaning,
                "default": None if p.default is None else words.json_amount(p.default),
            }
            for p in kind.parameters
        ],
    }


app = typer.Typer(
    help="Convert guarantees, price mechanisms, find the noise for a target.",
    no_args_is_help=True,
)

GuaranteeDelta = Annotated[
    str | None, typer.Option("--delta", help="The delta of epsilon.", metavar="NUMBER")
]
Runs = Annotated[
    int, typer.Option("--times", min=1, help="The number of runs, fixed in advance.")
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
    delta: GuaranteeDelta = None,
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
            "--method", help="A named conversion; by default, the tightest valid one."
        ),
    ] = None,
    relation: Annotated[
        str,
        typer.Option("--relation", help="The neighboring relation of the guarantee."),
    ] = "add-remove",
    to_relation: Annotated[
        str | None,
        typer.Option("--to-relation", help="The neighboring relation of the result."),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--list", help="Show the named conversions.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Convert a guarantee to another measure, rounded up.

    A conversion without a proof is refused, with the reason.
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

    allowed: dict[str, tuple[Wanted, str | None, str]] = {
        "eps": ("eps" if delta is not None else "pure", delta, "--delta"),
        "delta": ("delta", eps, "--eps"),
        "rho": ("rho", None, ""),
        "mu": ("mu", None, ""),
        "rdp": ("rdp", order, "--order"),
    }
    if to not in allowed:
        raise typer.BadParameter(f"--to: `{to}` is not one of {', '.join(allowed)}")
    measure, at, option = allowed[to]
    if at is None and measure in {"delta", "rdp"}:
        raise typer.BadParameter(f"--to {to} needs {option}")
    unused = {"--delta": delta, "--eps": eps, "--order": order}
    for name, value in unused.items():
        if value is not None and name != option:
            raise typer.BadParameter(f"{name} cannot be combined with --to {to}")
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
