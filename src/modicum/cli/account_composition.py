"""`modicum account compose` and `batch`: the composed loss of many releases."""

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
    from collections.abc import Sequence
    from fractions import Fraction

    from modicum.accounting.amounts import Amount
    from modicum.accounting.batch_format import Batch, Part
    from modicum.accounting.losses import Loss, Total
    from modicum.accounting.neighborhoods.entries import Entry
    from modicum.accounting.neighborhoods.joint_loss import Engine, Joint
    from modicum.accounting.neighborhoods.question_format import Question

#: The filter whose figure is shown.
FILTER = "combined-v2"

#: The part of delta that the largest losses may use when a distribution is charged.
_CUT = 1000


@dataclass(frozen=True, slots=True)
class Figure:
    """One result about a batch.

    Attributes:
        name: Which one.
        epsilon: Epsilon at delta, rounded up; None if it is not available.
        method: How it was obtained, or why it was not.
        condition: Its condition.
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
    """Compose a batch of mechanisms that is fixed before its first output.

    Shows epsilon at delta: by a filter, by the best composition theorem, and by privacy
    loss distributions if dp-accounting is installed.
    """
    from modicum.accounting.batch_format import read_batch
    from modicum.ops.files.documents import load_release

    with reporting(as_json=as_json):
        read = read_batch(load_release(file))
        at = read.delta if delta is None else words.number(delta, "--delta")
        if at is None:
            raise typer.BadParameter("give --delta, or `delta` in the file")
        if not 0 < at < 1:
            raise typer.BadParameter("--delta: it must be strictly between 0 and 1")
        figures = _figures(read, at)
        if as_json:
            print_json(_to_dict(read, at, figures))
        else:
            _print(read, at, figures)


# --- figures ----------------------------------------------------------------------


def _figures(read: Batch, delta: Fraction) -> list[Figure]:
    """Return every result; slow ones show progress."""
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
        f"filter {FILTER}, each run charged separately",
        "valid even if each mechanism is chosen after seeing all earlier outputs",
    )


def _filter_figure(total: Total, delta: Fraction) -> Amount:
    from modicum.accounting.budgets import ApproxBudget
    from modicum.accounting.filters.budget import figure, filter_for
    from modicum.accounting.grid import DELTA, INFINITE

    budget = ApproxBudget(delta, delta)  # Neither figure nor delta cap uses eps.
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
        "every parameter was fixed before the first output; Laplace and discrete"
        " noise is on a single number; not valid as a filter",
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
        "as for pld; the batch as a whole may depend on earlier outputs, and is"
        " charged before it starts",
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
    from modicum.accounting.mechanisms import ACCOUNT_KINDS

    kinds = [ACCOUNT_KINDS[part.kind] for part in read.parts]
    named = {kind.relation: kind.name for kind in kinds if not kind.open_relation}
    if len(named) > 1:
        listed = "; ".join(f"{kind}: {relation}" for relation, kind in named.items())
        yield f"note: one neighboring relation must hold for all ({listed})"


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


def compose(
    file: Annotated[
        Path, typer.Argument(help="Axes, entries and a target.", metavar="FILE")
    ],
    delta: Annotated[
        str | None,
        typer.Option("--delta", help="The delta of epsilon.", metavar="NUMBER"),
    ] = None,
    charges: Annotated[
        bool, typer.Option("--charges", help="Show every charged entry.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compose many releases under any neighboring relation.

    Prints the joint loss in each measure with its worst move: the change between two
    neighbors that attains it.
    """
    from modicum.accounting.neighborhoods.joint_loss import Engine
    from modicum.accounting.neighborhoods.question_format import read_question
    from modicum.ops.files.documents import load_release

    with reporting(as_json=as_json):
        question = read_question(load_release(file))
        at = words.number(delta, "--delta") if delta is not None else question.delta
        if at is not None and not 0 < at < 1:
            raise typer.BadParameter("--delta: it must be strictly between 0 and 1")
        engine = Engine(question.entries, question.axes, question.target)
        answers = _answers(engine, at)
        if as_json:
            print_json(_composed_to_dict(question, answers, at))
        else:
            _print_composed(question, answers, at, every_charge=charges)


def _answers(engine: Engine, delta: Fraction | None) -> dict[str, Joint]:
    """Return the joint loss in each measure, slow ones with a note meanwhile."""
    from modicum.accounting.grid import DELTA, EPS, MU2, RHO

    found = {}
    with console(stderr=True).status("looking for the worst move") as status:
        measures = (("eps", EPS), ("rho", RHO), ("mu2", MU2), ("delta", DELTA))
        for name, index in measures:
            status.update(f"looking for the worst move in {name}")
            found[name] = engine.worst(index)
        if delta is not None:
            status.update("converting the moves to epsilon")
            found["approx"] = engine.epsilon(delta)
    return found


def _measure(name: str, delta: Fraction | None) -> str:
    if name == "approx" and delta is not None:
        return f"eps at delta {words.shown(delta)}"
    return {"mu2": "mu squared", "delta": "delta, separately"}.get(name, name)


def _print_composed(
    question: Question,
    answers: dict[str, Joint],
    delta: Fraction | None,
    *,
    every_charge: bool,
) -> None:
    from rich.table import Table

    from modicum.accounting.grid import INFINITE
    from modicum.core.rationals import DELTA_UNIT

    entries, axes = len(question.entries), len(question.axes)
    print(
        f"{entries} {'entry' if entries == 1 else 'entries'},"
        f" {axes} {'axis' if axes == 1 else 'axes'}"
    )
    table = Table(box=None, pad_edge=False)
    for title in ("MEASURE", "AT MOST", "IS", "METHOD"):
        table.add_column(title)
    for name, joint in answers.items():
        if name == "delta" and not 0 < joint.units < DELTA_UNIT:
            continue  # All guarantees are without a delta, or there are none.
        table.add_row(
            _measure(name, delta),
            _amount(joint.units) if name != "delta" else _delta_text(joint.units),
            "attained" if joint.exact else "a bound",
            joint.method,
        )
    print_table(table)
    if 0 < answers["delta"].units < DELTA_UNIT:
        note("note: eps, rho and mu hold except with probability delta")
    finite = [
        name
        for name, joint in answers.items()
        if joint.units < INFINITE and name != "delta"
    ]
    shown = "approx" if "approx" in answers else (finite or ["eps"])[0]
    _print_move(question.entries, answers[shown], _measure(shown, delta), every_charge)
    if not answers[shown].exact:
        note("note: a bound may be higher than the loss of any single move")
    if answers[shown].units >= INFINITE:
        _print_unproven(question.entries, answers[shown])


_CHARGES_SHOWN = 12


def _print_move(
    entries: Sequence[Entry], joint: Joint, measure: str, every: bool
) -> None:
    print(
        f"{'worst move' if joint.exact else 'most expensive move found'} in {measure}:"
    )
    print(f"  {joint.move.text}")
    charges = joint.move.charges
    for charge in charges if every else charges[:_CHARGES_SHOWN]:
        entry = entries[charge.entry].id
        print(f"  {entry}: {charge.step}, {_loss_text(charge.loss)}")
    if not every and len(charges) > _CHARGES_SHOWN:
        print(f"  and {len(charges) - _CHARGES_SHOWN} more (--charges shows all)")


def _print_unproven(entries: Sequence[Entry], joint: Joint) -> None:
    from modicum.accounting.grid import EPS, INFINITE, RHO

    unproven = [
        entries[charge.entry].id
        for charge in joint.move.charges
        if min(charge.loss.coordinates[EPS], charge.loss.coordinates[RHO]) >= INFINITE
    ]
    note(
        "note: no finite bound is proven for such a change of "
        + (", ".join(unproven[:_CHARGES_SHOWN]) or "some entries")
        + "; give the unit that each is proven for (`proven-for`), or an enforced"
        " bound on a user's records (`rows`)"
    )


def _loss_text(loss: Loss) -> str:
    from modicum.accounting.grid import DELTA, EPS, INFINITE, MU2, RHO
    from modicum.core.rationals import DELTA_UNIT

    parts = [
        f"{name} {_amount(loss.coordinates[index])}"
        for name, index in (("eps", EPS), ("rho", RHO), ("mu squared", MU2))
        if loss.coordinates[index] < INFINITE
    ]
    if loss.coordinates[DELTA]:
        from fractions import Fraction

        delta = Fraction(loss.coordinates[DELTA], DELTA_UNIT)
        parts.append(f"delta {words.shown(delta)}")
    if loss.coordinates[DELTA] >= DELTA_UNIT:
        return "nothing is proven"
    return ", ".join(parts) or "nothing is proven"


def _delta_text(units: int) -> str:
    from fractions import Fraction

    from modicum.core.rationals import DELTA_UNIT

    return words.shown(min(Fraction(1), Fraction(units, DELTA_UNIT)))


def _amount(units: int) -> str:
    text = words.shown(words.from_units(units))
    return "infinite" if text == "inf" else text


# --- JSON ------------------------------------------------------------------------


def _composed_to_dict(
    question: Question, answers: dict[str, Joint], delta: Fraction | None
) -> dict[str, object]:
    from fractions import Fraction

    from modicum.core.rationals import DELTA_UNIT

    losses = {
        name: _joint_to_dict(question.entries, joint)
        for name, joint in answers.items()
        if name not in {"approx", "delta"}
    }
    own = Fraction(answers["delta"].units, DELTA_UNIT)
    approx = answers.get("approx")
    return {
        "entries": len(question.entries),
        "axes": [axis.name for axis in question.axes],
        "losses": losses,
        "delta": words.json_amount(min(own, Fraction(1))),
        "approx_dp": None
        if approx is None or delta is None
        else {
            "delta": words.json_amount(delta),
            **_joint_to_dict(question.entries, approx),
        },
    }


def _loss_to_dict(loss: Loss) -> dict[str, object]:
    from modicum.accounting.grid import EPS, MU2, RHO

    return {
        name: words.json_amount(words.from_units(loss.coordinates[index]))
        for name, index in (("eps", EPS), ("rho", RHO), ("mu2", MU2))
    }


def _joint_to_dict(entries: Sequence[Entry], joint: Joint) -> dict[str, object]:
    move = joint.move
    return {
        "amount": words.json_amount(words.from_units(joint.units)),
        "method": joint.method,
        "attained": joint.exact,
        "move": {
            "text": move.text,
            "before": None if move.before is None else dict(move.before),
            "after": None if move.after is None else dict(move.after),
            "changed": list(move.changed),
            "size": move.size,
            "charges": [
                {
                    "entry": entries[charge.entry].id,
                    "step": charge.step,
                    **_loss_to_dict(charge.loss),
                }
                for charge in move.charges
            ],
        },
    }
