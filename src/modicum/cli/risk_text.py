"""Printed output of `modicum risk`."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from modicum.cli.output import print_table
from modicum.cli.risk_release import RiskQuery, release_lines
from modicum.core.errors import printable
from modicum.core.rationals import brief
from modicum.risk.choice import Claim
from modicum.risk.measurement.documents import statistic_at
from modicum.risk.profile import RELATION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modicum.risk.choice import Choice, Row
    from modicum.risk.measurement import Risk

_CONTROLLER = "For the data controller only: computed from rows without noise."
_RELATION = f"note: neighbors are {RELATION}: with and without all rows of a person"


def print_risk(risk: Risk, choice: Choice | None) -> None:
    """Print a table of the candidates, and the choice."""
    print(_CONTROLLER)
    print(f"{risk.people:,} people; {_noise(risk)}")
    print(_RELATION)
    if not risk.people:
        print("note: the table has no rows: there is no risk to show")
    for fact in risk.private:
        print(f"note: {fact}")
    if risk.question.obstacle:
        print(f"note: computed separately for each person: {risk.question.obstacle}")
    _print_rows(risk.rows(), choice)
    if choice is not None:
        print_choice(choice, RiskQuery(risk.question))


def print_choice(choice: Choice, query: RiskQuery) -> None:
    """Print a choice, its claim, its loss, and its release."""
    text = "none" if choice.epsilon is None else brief(choice.epsilon)
    print(f"epsilon: {text}")
    print(f"claim: {choice.claim.value}")
    print(f"  {choice.why}")
    if choice.charge is not None and choice.charge.selection is not None:
        print(f"  the choice itself costs epsilon {brief(choice.charge.selection.eps)}")
    for caveat in choice.caveats:
        print(f"note: {caveat}")
    if choice.claim is not Claim.DP:
        print("note: the ledger accepts no release at this epsilon")
    release = query.release(choice)
    if release is not None:
        print(
            "A release file at this epsilon; replace the names of the unit and the"
            " attributes"
        )
        print("by those of your policy:")
        print()
        for line in release_lines(release):
            print(printable(line))


def print_groups(risk: Risk, statistic: str, choice: Choice | None) -> None:
    """Print the indicator of each group at each candidate."""
    from rich.table import Table

    print(_CONTROLLER)
    for name in risk.groups:
        print(f"{name}: {int(risk.influence.members[name].sum()):,} people")
    table = Table(box=None, pad_edge=False)
    table.add_column("epsilon", justify="right", no_wrap=True)
    for name in risk.groups:
        table.add_column(f"{statistic} of {name}", justify="right")
    table.add_column("ratio", justify="right")
    for epsilon in risk.candidates:
        found = [statistic_at(risk, statistic, epsilon, name) for name in risk.groups]
        there = [one for one in found if one is not None]
        ratio = min(there) / max(there) if there and max(there) > 0 else None
        cells = ["-" if one is None else f"{one:.6g}" for one in found]
        table.add_row(brief(epsilon), *cells, "-" if ratio is None else f"{ratio:.4f}")
    print_table(table)
    if choice is not None:
        print_choice(choice, RiskQuery(risk.question))


def _of_people(row: Row) -> tuple[str, str, str]:
    if isnan(row.ratio):  # There are no people.
        return ("-", "-", "-")
    return (f"{row.least:.6g}", f"{row.greatest:.6g}", f"{row.ratio:.4f}")


def _noise(risk: Risk) -> str:
    noise = risk.to_dict()["noise"]
    norm = risk.noise.norm.upper()
    numbers = risk.noise.dimensions
    return (
        f"{noise} noise, sensitivity {brief(risk.noise.sensitivity)} ({norm}),"
        f" {numbers} number{'s' if numbers != 1 else ''} in the answer"
    )


def _print_rows(rows: Sequence[Row], choice: Choice | None) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for header in ("epsilon", "95 % error", "RDR min", "RDR max", "ratio"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("")
    chosen = None if choice is None else choice.epsilon
    for row in rows:
        table.add_row(
            brief(row.epsilon),
            f"±{row.half_width:.4g}",
            *_of_people(row),
            "chosen" if row.epsilon == chosen else "",
        )
    print_table(table)
