"""Losses of privacy units derived from others, and errors for missing ones.

A change of one unit is made by some number of changes of another (`units.all_steps`);
their total cost follows from group privacy, applied to the whole curve before it is
rounded into a loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from msgspec import Struct

from modicum.accounting import INFINITE, Loss
from modicum.accounting.amounts import decimal_of, is_infinite
from modicum.accounting.budgets import budget_text
from modicum.accounting.curves import Curve
from modicum.accounting.decimals import precise
from modicum.accounting.grid import DELTA, EPS
from modicum.accounting.group_privacy import group
from modicum.accounting.mechanisms import RELEASE_KINDS
from modicum.core.errors import Code, InputError
from modicum.release.model import Mechanism, wrong
from modicum.release.unit_losses import Stated
from modicum.release.units import Relation
from modicum.release.vocabulary import Vocabulary

#: Numbers of steps by (unit that changes, unit of the steps).
Steps = Mapping[tuple[str, str], int]


class Proven(Struct, frozen=True):
    """A loss that is proven for a unit.

    Attributes:
        loss: The loss.
        source: Its source, as text.
    """

    loss: Loss
    source: str


def completed(
    unit: str, given: Mapping[str, Stated], steps: Steps, vocabulary: Vocabulary
) -> Proven | None:
    """Return the best loss that is proven for a unit, or None if none is.

    The stated loss of the unit itself is kept, unless a derived one is nowhere more.
    Where neither has a delta, the lesser holds in every coordinate. If nothing is
    stated, a loss without a delta is preferred to one with a delta; among the latter
    the one of the least eps is chosen.

    Args:
        unit: The unit.
        given: The stated losses, by unit.
        steps: How many changes of one unit make one of another.
        vocabulary: Its units, in order, and their relations.
    """
    derived = [
        _derived(
            given[other],
            other,
            count,
            (vocabulary.relation(unit), vocabulary.relation(other)),
        )
        for other in vocabulary.units
        if other != unit
        and other in given
        and (count := steps.get((unit, other))) is not None
    ]
    useful = [proven for proven in derived if bounds_something(proven.loss)]
    own = given.get(unit)
    if own is not None:
        return _best(Proven(own.curve.loss(), own.source), useful)
    exact = [proven for proven in useful if not proven.loss.coordinates[DELTA]]
    if exact:
        return _best(exact[0], exact[1:])
    return min(useful, key=_eps_and_delta, default=None)


def bounds_something(loss: Loss) -> bool:
    """Return whether a loss bounds anything: some measure, with a delta below 1.

    Args:
        loss: A loss; where nothing is proven, all measures are infinite.
    """
    return any(value < INFINITE for value in loss.coordinates[:DELTA])


def better(first: Loss, second: Loss) -> Loss:
    """Return the better of two losses that are both proven for the same change.

    Args:
        first: The one that is kept if neither is everywhere at most the other and
            a delta forbids to mix them: eps at one delta and at another are no
            guarantee together.
        second: The other one.
    """
    if nowhere_more(first, second):
        return first
    if nowhere_more(second, first):
        return second
    if first.coordinates[DELTA] or second.coordinates[DELTA]:
        return first
    return Loss(tuple(map(min, first.coordinates, second.coordinates)))


def nowhere_more(loss: Loss, other: Loss) -> bool:
    """Return whether a loss is at most another one, in every coordinate."""
    pairs = zip(loss.coordinates, other.coordinates, strict=True)
    return all(mine <= most for mine, most in pairs)


def _derived(
    stated: Stated, other: str, count: int, relations: tuple[Relation, Relation]
) -> Proven:
    text = _words(other, count, *relations)
    return Proven(group(stated.curve, count).loss(), text)


def _words(other: str, count: int, change: Relation, step: Relation) -> str:
    if count > 1 and step == "add-remove" != change:
        pairs = f"{count // 2} removals and {count // 2} additions"
        return (
            f"{count} x {other}, {'1 removal and 1 addition' if count == 2 else pairs}"
        )
    if count > 1:
        return f"{count} x {other}"
    return {
        "add-remove": other,
        "substitute": f"{other}, substitution",
        "any-change": f"{other}, any change",
    }[step]


def _best(own: Proven, others: list[Proven]) -> Proven:
    for other in others:
        loss = better(own.loss, other.loss)
        if loss == own.loss:
            continue
        source = f"{own.source} or {other.source}, whichever is less"
        own = Proven(loss, other.source if loss == other.loss else source)
    return own


def _eps_and_delta(proven: Proven) -> tuple[int, int]:
    return proven.loss.coordinates[EPS], proven.loss.coordinates[DELTA]


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
        given: The stated losses of other units.
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
            "every mechanism needs a loss for every unit of the policy",
            *_why_not(unit, given, vocabulary),
        ),
        help=f"give {wanted}, or {declare}" if wanted else f"give {declare}",
    )


def _wanted(mechanism: Mechanism, unit: str) -> str:
    """Return the parameters from which a loss would be computed, if there are any."""
    kind = RELEASE_KINDS[mechanism.kind]
    parameters = " and ".join(f"`{name}`" for name in kind.needed)
    if kind.norm is not None:
        return f"{parameters} and `sensitivity: {{{unit}: {kind.amount}}}`"
    if kind.samples:
        return f"{parameters} and `sampling: {{unit: {unit}, rate: …}}`"
    if kind.local:
        return f"{parameters} and `contribution_bound: {{{unit}: …}}`"
    return ""


def _wanted_too(mechanism: Mechanism, unit: str) -> str:
    """Return how to give a unit a loss, as other units of the mechanism have one."""
    kind = RELEASE_KINDS[mechanism.kind]
    if mechanism.sensitivity and kind.norm is not None:
        wanted = f"`sensitivity: {{{unit}: {kind.amount}}}` too"
        if mechanism.contribution_bound:  # As every query is described.
            wanted += f" (in a query, `bounds: {{{unit}: …}}`)"
        return wanted
    return f"`cost: {{{unit}: …}}` too"


def _why_not(
    unit: str, given: Mapping[str, Stated], vocabulary: Vocabulary
) -> list[str]:
    """Return why the units that have a loss give none to this one."""
    if all(len(covers) == 1 for covers in vocabulary.covers.values()):
        return []  # Units without an order give no losses.
    notes = []
    for other in given:
        related = other in vocabulary.covers.get(unit, ()) or (
            unit in vocabulary.covers.get(other, ())
        )
        notes.append(
            f"`{other}` gives none: replacing one does not bound adding, removing or"
            f" changing part of one `{unit}`"
            if related and vocabulary.relation(other) == "substitute"
            else f"`{other}` gives none: neither of `{unit}` and `{other}` is"
            " declared within the other"
        )
    return notes


def _unbounded(mechanism: Mechanism, unit: str, other: str) -> InputError:
    return wrong(
        mechanism,
        Code.COST_NOT_DERIVABLE,
        f"no guarantee at `{unit}` from the cost per `{other}`",
        notes=(
            f"the number of `{other}` per `{unit}` has no bound; without an enforced"
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
        help=f"give {_wanted_too(mechanism, unit)}, by a contribution bound;"
        f" or declare the cost of `{other}` in rho",
    )


@precise
def _too_much(curve: Curve, count: int, other: str) -> str:
    """Return what group privacy makes of a curve that becomes useless."""
    text = f"group privacy over {count} x {other} gives"
    if not curve.delta:
        return f"{text} no finite loss"
    if is_infinite(curve.eps) or count * decimal_of(curve.eps) > _EXPONENT_SHOWN_MAX:
        return f"{text} no delta below 1"
    eps = decimal_of(curve.eps)
    tiny = eps < _EPS_TINY
    grown = count * Decimal(1) if tiny else ((count * eps).exp() - 1) / (eps.exp() - 1)
    return f"{text} delta = {decimal_of(curve.delta) * grown:.1e}, which exceeds 1"
