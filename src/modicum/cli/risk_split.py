"""`modicum risk split`: one cap divided among several questions by priority."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from modicum.cli.options import Json
from modicum.cli.output import print_json, print_table, reporting
from modicum.cli.risk_options import Delta, Mechanism, in_options, one_of, refuse_unused
from modicum.core.errors import printable
from modicum.core.rationals import brief

if TYPE_CHECKING:
    from fractions import Fraction

    from modicum.risk.choice import Choice
    from modicum.risk.selection.priorities import Priority

Cap = Annotated[
    str,
    typer.Argument(
        help="The total epsilon of all questions.", metavar="CAP", show_default=False
    ),
]
Questions = Annotated[
    list[str],
    typer.Argument(
        help="A question, and its weight.",
        metavar="NAME=WEIGHT...",
        show_default=False,
    ),
]
Sensitivities = Annotated[
    list[str],
    typer.Option(
        "--sensitivity",
        help="How far one person can move the answer in any table, in the norm of the"
        " noise; of all questions, or of one.",
        metavar="[NAME=]VALUE",
    ),
]


def split(
    context: typer.Context,
    cap: Cap,
    questions: Questions,
    sensitivity: Sensitivities,
    mechanism: Mechanism = "laplace",
    delta: Delta = None,
    as_json: Json = False,
) -> None:
    """Split a public epsilon between several questions, by their weights.

    No row is read, so each share may be disclosed, and used for a release. Their sum is
    at most the cap; with Gaussian noise, the deltas add up.
    """
    from modicum.risk.selection.priorities import by_priority

    with reporting(as_json=as_json), in_options():
        noise = one_of(mechanism, ("laplace", "gaussian"), "--mechanism")
        refuse_unused(context, mechanism)
        priorities = _priorities(questions, sensitivity, noise, delta)
        shares = by_priority(cap, priorities)
        if as_json:
            print_json(_to_dict(cap, priorities, shares))
        else:
            _print(priorities, shares)


def _priorities(
    questions: Sequence[str],
    sensitivity: Sequence[str],
    mechanism: Literal["laplace", "gaussian"],
    delta: str | None,
) -> dict[str, Priority]:
    from modicum.risk.noise import NoiseGiven
    from modicum.risk.selection.priorities import Priority as Wish

    weights = _by_name(questions, "NAME=WEIGHT", "NAME=WEIGHT...")
    widths = _by_name(sensitivity, "VALUE or NAME=VALUE", "--sensitivity", all_of=True)
    for name in widths:
        if name:
            one_of(name, list(weights), "--sensitivity")
    missing = [name for name in weights if name not in widths and "" not in widths]
    if missing:
        raise typer.BadParameter(
            f"give one for `{missing[0]}`, or one for all", param_hint="--sensitivity"
        )
    noises = {
        name: NoiseGiven(
            mechanism, widths[name if name in widths else ""], delta
        ).noise()
        for name in weights
    }
    return {name: Wish.of(weight, noises[name]) for name, weight in weights.items()}


def _by_name(
    given: Sequence[str], form: str, hint: str, *, all_of: bool = False
) -> dict[str, str]:
    """Return arguments of the form NAME=VALUE; a value for all has no name."""
    found: dict[str, str] = {}
    for one in given:
        name, equals, value = one.rpartition("=")
        if not value or not (name or (all_of and not equals)):
            raise typer.BadParameter(f"write {form}, not `{one}`", param_hint=hint)
        if name in found:
            text = (
                f"`{name}` is given twice" if name else "two values are given for all"
            )
            raise typer.BadParameter(text, param_hint=hint)
        found[name] = value
    return found


def _delta(priorities: dict[str, Priority]) -> Fraction:
    """Return the total delta of all questions."""
    from fractions import Fraction

    from modicum.risk.noise import GaussianNoise

    noises = [priority.noise for priority in priorities.values()]
    each = [one.delta for one in noises if isinstance(one, GaussianNoise)]
    return sum(each, Fraction(0))


def _to_dict(
    cap: str, priorities: dict[str, Priority], shares: dict[str, Choice]
) -> dict[str, Any]:
    from modicum.risk.arguments import exact

    return {
        "cap": float(exact("the cap", cap)),
        "delta": float(_delta(priorities)),
        "questions": {
            name: {"weight": float(priorities[name].weight), **share.to_dict()}
            for name, share in shares.items()
        },
    }


def _print(priorities: dict[str, Priority], shares: dict[str, Choice]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("question", "weight", "epsilon", "95 % error", "noise"):
        table.add_column(title, justify="left" if title == "question" else "right")
    for name, share in shares.items():
        noise, (row,) = priorities[name].noise, share.rows
        if share.epsilon is None or share.charge is None:
            table.add_row(
                printable(name), brief(priorities[name].weight), "none", "-", "-"
            )
            continue
        text = share.charge.release or {}
        parameters = ", ".join(f"{key} {value}" for key, value in text.items())
        table.add_row(
            printable(name),
            brief(priorities[name].weight),
            brief(share.epsilon),
            f"{noise.half_width(row.epsilon):.6g}",
            parameters.removeprefix("kind "),
        )
    print_table(table)
    one = next(iter(shares.values()))
    print(f"claim: {one.claim.value}")
    print(f"in the file of each release: epsilon_choice: {one.claim.value} by", end=" ")
    print(one.method)
    delta = _delta(priorities)
    if delta:
        print(f"note: the deltas of all add up to {brief(delta)}")
    for caveat in dict.fromkeys(c for share in shares.values() for c in share.caveats):
        print(f"note: {caveat}")
