"""Why a privacy unit has no loss: which others could give it one, and why none does."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from modicum.accounting.amounts import decimal_of, is_infinite
from modicum.accounting.budgets import budget_text
from modicum.accounting.curves import Curve
from modicum.accounting.decimals import precise
from modicum.core.errors import Code, InputError
from modicum.release.complete import Steps
from modicum.release.mechanism_kinds import KINDS
from modicum.release.model import Mechanism
from modicum.release.price_problems import wrong
from modicum.release.unit_losses import Stated
from modicum.release.vocabulary import Vocabulary

#: e to more than this is only called large.
_EXPONENT_SHOWN_MAX = 10**4
# Below this, e^eps - 1 loses too many digits to be divided by.
_EPS_TINY = Decimal("1e-40")


def missing(
    mechanism: Mechanism,
    unit: str,
    given: Mapping[str, Stated],
    steps: Steps,
    vocabulary: Vocabulary,
) -> InputError:
    """Return the error for a unit without a loss.

    Args:
        mechanism: The description.
        unit: The unit.
        given: What is stated for other units.
        steps: How many changes of one unit make one of another.
        vocabulary: Its units and their order.
    """
    for other in given:
        if (unit, other) in steps:
            return _no_guarantee(mechanism, unit, other, given[other], steps)
    for other in given:
        covered = unit in vocabulary.covers.get(other, ())
        if covered and vocabulary.relation(other) != "substitute":
            return _unbounded(mechanism, unit, other)
    wanted = _wanted(mechanism, unit)
    declare = f"`cost: {{{unit}: …}}`"
    return wrong(
        mechanism,
        Code.COST_MISSING,
        f"mechanism `{mechanism.name}` has no cost for the unit `{unit}`",
        notes=(
            "every mechanism must have a loss for every unit of the policy",
            *_why_not(unit, given, vocabulary),
        ),
        help=f"give {wanted}, or {declare}" if wanted else f"give {declare}",
    )


def _wanted(mechanism: Mechanism, unit: str) -> str:
    """Return the parameters from which a loss would be computed, if there are any."""
    form = KINDS[mechanism.kind]
    if form.norm is not None:
        parameter = next(iter(form.parameters))
        return f"`{parameter}` and `sensitivity: {{{unit}: {{{form.norm}: …}}}}`"
    if form.parameters:
        return f"`truth` and `contribution_bound: {{{unit}: …}}`"
    return ""


def _wanted_too(mechanism: Mechanism, unit: str) -> str:
    """Return what gives a unit a loss, as other units of the mechanism have one."""
    norm = KINDS[mechanism.kind].norm
    if mechanism.sensitivity and norm is not None:
        wanted = f"`sensitivity: {{{unit}: {{{norm}: …}}}}` too"
        if mechanism.contribution_bound:  # As every query is described.
            wanted += f" (in a query, `bounds: {{{unit}: …}}`)"
        return wanted
    return f"`cost: {{{unit}: …}}` too"


def _why_not(
    unit: str, given: Mapping[str, Stated], vocabulary: Vocabulary
) -> list[str]:
    """Say why the units that have a loss give none to this one."""
    if all(len(covers) == 1 for covers in vocabulary.covers.values()):
        return []  # Nobody expects anything of units without an order.
    notes = []
    for other in given:
        related = other in vocabulary.covers.get(unit, ()) or (
            unit in vocabulary.covers.get(other, ())
        )
        notes.append(
            f"`{other}` gives none: replacing one shows nothing about adding, removing"
            f" or changing part of one `{unit}`"
            if related and vocabulary.relation(other) == "substitute"
            else f"`{other}` gives none: how `{unit}` and `{other}` lie in each other"
            " is not declared"
        )
    return notes


def _unbounded(mechanism: Mechanism, unit: str, other: str) -> InputError:
    return wrong(
        mechanism,
        Code.COST_NOT_DERIVABLE,
        f"no guarantee at `{unit}` from the cost per `{other}`",
        notes=(
            f"nothing bounds how many `{other}` one `{unit}` has; without an enforced"
            " bound there is no guarantee",
        ),
        help=f"give {_wanted_too(mechanism, unit)}, or in the policy, at `{other}`,"
        f" `groups: {{{unit}: …}}`",
    )


def _no_guarantee(
    mechanism: Mechanism, unit: str, other: str, stated: Stated, steps: Steps
) -> InputError:
    count = steps[unit, other]
    declared = mechanism.cost.get(other)
    shown = "the loss" if declared is None else budget_text(declared)
    return wrong(
        mechanism,
        Code.COST_NOT_DERIVABLE,
        f"no guarantee at `{unit}` for {shown} per `{other}`",
        notes=(_too_much(stated.curve, count, other),),
        help=f"give {_wanted_too(mechanism, unit)}, by a bound on what one contributes;"
        f" or declare the cost of `{other}` in rho",
    )


@precise
def _too_much(curve: Curve, count: int, other: str) -> str:
    """Say what group privacy makes of a curve of which nothing is left."""
    said = f"group privacy over {count} x {other} gives"
    if not curve.delta:
        return f"{said} no finite loss"
    if is_infinite(curve.eps) or count * decimal_of(curve.eps) > _EXPONENT_SHOWN_MAX:
        return f"{said} no delta below 1"
    eps = decimal_of(curve.eps)
    tiny = eps < _EPS_TINY
    grown = count * Decimal(1) if tiny else ((count * eps).exp() - 1) / (eps.exp() - 1)
    return f"{said} delta = {decimal_of(curve.delta) * grown:.1e}, which exceeds 1"
