"""The display of a workload: tables as text, or one document."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from modicum.accounting.grid import EPS, coordinate_name, order_index
from modicum.cli.account_options import from_units, json_amount, shown
from modicum.cli.output import print_table
from modicum.core.errors import printable
from modicum.core.rationals import number_text
from modicum.workloads.summary import Share, summary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modicum.workloads.model import Workload
    from modicum.workloads.request_types import Pricing, RequestType

#: Coordinates at which an ordinary budget admits something.
_SHOWN = (*(order_index(Fraction(n)) for n in (8, 16, 32, 64, 10**6)), EPS)


# --- for programs ---------------------------------------------------------------------


def outline(workload: Workload) -> dict[str, object]:
    """Return a summary of a workload, as plain data."""
    return {
        "name": workload.name,
        "seed": workload.seed,
        "repetition": workload.repetition,
        "objective": workload.objective,
        "sampling": [json_amount(rate) for rate in workload.sampling],
        "rounds": workload.rounds,
        "first_round": workload.first_round,
        "domain": workload.domain,
        "window": workload.window,
        "requests": len(workload.requests),
        "utility": int(workload.requests.utility.sum()),
    }


def description(workload: Workload, pricing: Pricing) -> dict[str, object]:
    """Return the contents of a workload, as plain data."""
    found = summary(workload)

    def part(share: Share) -> dict[str, object]:
        return {
            "requests": share.requests,
            "mean_width": _ratio(share.width, share.requests),
            "utility": share.utility,
            "utility_fraction": _ratio(share.utility, found.all.utility),
        }

    return {
        **outline(workload),
        "mechanisms": {name: part(one) for name, one in found.by_mechanism.items()},
        "sizes": {name: part(one) for name, one in found.by_size.items()},
        "by_round": {str(number): count for number, count in found.by_round.items()},
        "pricing": pricing,
        "types": [
            {**_type_to_dict(kind, pricing), **part(share)}
            for kind, share in found.by_type.items()
        ],
    }


def _type_to_dict(kind: RequestType, pricing: Pricing) -> dict[str, object]:
    costs = kind.loss(pricing).coordinates
    return {
        "mechanism": kind.mechanism,
        "size": kind.size,
        "sampling": json_amount(kind.sampling),
        "eps": json_amount(kind.eps),
        "noise": json_amount(kind.noise),
        "cost": {
            coordinate_name(index): json_amount(from_units(costs[index]))
            for index in _SHOWN
        },
    }


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


# --- text -----------------------------------------------------------------------------


def sentence(workload: Workload) -> str:
    """Return a one-line summary of a workload."""
    last = workload.round_numbers[-1]
    return (
        f"{len(workload.requests)} requests of {printable(workload.name)} in"
        f" {workload.rounds} rounds ({workload.first_round} to {last}),"
        f" seed {workload.seed}, repetition {workload.repetition}"
    )


def print_description(workload: Workload, pricing: Pricing) -> None:
    """Print the contents of a workload."""
    found = summary(workload)
    counts = found.by_round.values()
    rates = ", ".join(number_text(rate) for rate in workload.sampling)
    print(sentence(workload))
    print(f"  objective {workload.objective}, sampling {rates}")
    print(f"  ring of {workload.domain} elements, groups active for {workload.window}")
    print(f"  requests a round: {min(counts)} to {max(counts)}")
    print()
    _print_shares(workload, {**found.by_mechanism, **found.by_size, "all": found.all})
    print()
    print(f"Costs, {pricing}:")
    _print_costs(workload, pricing)


def _print_shares(workload: Workload, shares: Mapping[str, Share]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("REQUESTS OF")
    for title in ("NUMBER", "MEAN WIDTH", "UTILITY"):
        table.add_column(title, justify="right")
    utility = shares["all"].utility
    for name, one in shares.items():
        width = _ratio(one.width, one.requests * workload.domain)
        worth = _ratio(one.utility, utility)
        table.add_row(name, str(one.requests), f"{width:.1%}", f"{worth:.1%}")
    print_table(table)


def _print_costs(workload: Workload, pricing: Pricing) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("TYPE", no_wrap=True)
    for index in _SHOWN:
        table.add_column(coordinate_name(index), justify="right")
    for kind in workload.types:
        costs = kind.loss(pricing).coordinates
        cells = (shown(from_units(costs[index])) for index in _SHOWN)
        table.add_row(kind.name, *cells)
    print_table(table)
