"""The loss proven by a mechanism's own parameters and costs for one privacy unit."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from functools import lru_cache

from msgspec import Struct

from modicum.accounting.budgets import (
    Budget,
    PureBudget,
    ZcdpBudget,
    budget_text,
    measure,
)
from modicum.accounting.curves import Curve
from modicum.accounting.grid import EPS, RHO
from modicum.accounting.mechanisms import RELEASE_KINDS
from modicum.accounting.mechanisms.declared import curve_of_guarantee
from modicum.accounting.mechanisms.kind import Kind
from modicum.core.diagnostics import placed
from modicum.core.errors import Code, InputError, check
from modicum.core.rationals import LOSS_UNIT, number_text
from modicum.release.model import Mechanism, wrong
from modicum.release.units import Relation
from modicum.release.vocabulary import Vocabulary

#: The source of a unit's loss that does not come from another unit.
STATED = frozenset({"declared", "computed", "declared, covers the computed"})


class Stated(Struct, frozen=True):
    """A curve that is proven for one unit, and its source.

    Attributes:
        curve: The cost of changes of the unit, under the unit's own relation.
        source: `declared`, `computed`, or `declared, covers the computed`.
    """

    curve: Curve
    source: str


def stated(mechanism: Mechanism, unit: str, vocabulary: Vocabulary) -> Stated | None:
    """Return the stated curve of a unit, or None if there is none.

    Args:
        mechanism: The description.
        unit: The unit.
        vocabulary: Defines the relation of its sensitivities and costs.

    Raises:
        InputError: If a declared cost is below the computed one or impossible, or
            no loss follows from the parameters under this relation.
    """
    once = _of_one_run(mechanism, unit, vocabulary)
    if once is None or mechanism.selection is None:
        return once
    from modicum.accounting.private_selection import selected

    return Stated(selected(once.curve, mechanism.selection), once.source)


def _of_one_run(
    mechanism: Mechanism, unit: str, vocabulary: Vocabulary
) -> Stated | None:
    declared = mechanism.cost.get(unit)
    computed = _computed(mechanism, unit, vocabulary.relation(unit))
    sampled = not RELEASE_KINDS[mechanism.kind].samples  # Else that is in its curve.
    if computed is not None and mechanism.sampling is not None and sampled:
        from modicum.release.sample_price import on_sample

        computed = on_sample(mechanism, unit, computed, vocabulary)
    if declared is None:
        return None if computed is None else Stated(computed, "computed")
    if computed is None:
        return Stated(_declared(mechanism, declared), "declared")
    curve = _not_below(mechanism, unit, declared, computed)
    return Stated(curve, "declared, covers the computed")


def rests_on_claims(kind: str, bounds: Collection[str], unit: str) -> bool:
    """Return whether a stated sensitivity may follow from what a policy claims.

    A query computes sensitivities from caps (QRY-5). Only that of the unit of a single
    cap needs no `within` and no `groups`.

    Args:
        kind: The kind of mechanism.
        bounds: The units with a contribution bound.
        unit: The unit of the sensitivity.
    """
    return bool(bounds) and not RELEASE_KINDS[kind].local and {*bounds} != {unit}


def refuse_selection(mechanism: Mechanism) -> None:
    """Refuse the best of several runs of which others see each.

    Raises:
        InputError: If it is a selection of a local randomizer.
    """
    if mechanism.selection is not None and RELEASE_KINDS[mechanism.kind].local:
        raise wrong(
            mechanism,
            Code.NOT_SUPPORTED,
            f"`{mechanism.kind}` has no best run: those who collect the answers see"
            " them all",
            help="leave `selection` out, and state the answers of all runs in"
            " `contribution_bound`",
        )


def refuse_halves(mechanism: Mechanism) -> None:
    """Refuse parameters that no price can be computed from: none is ever ignored.

    Raises:
        InputError: If there are any.
    """
    kind = RELEASE_KINDS[mechanism.kind]
    given = [name for name in kind.described if name in mechanism.given]
    if kind.norm is not None and given and not mechanism.sensitivity:
        raise wrong(
            mechanism,
            Code.MISSING_KEY,
            f"`{given[0]}` has no effect without `sensitivity`",
            notes=kind.assumes,
            help=f"give `sensitivity: {{UNIT: {kind.amount}}}` for each unit, or"
            f" leave `{given[0]}` out and declare a `cost`",
        )
    if kind.samples and given and mechanism.sampling is None:
        raise wrong(
            mechanism,
            Code.MISSING_KEY,
            f"`{given[0]}` has no effect without `sampling`",
            notes=("its loss is that of the unit that each step draws and clips",),
            help="give `sampling: {unit: UNIT, rate: …}` for the unit whose whole"
            f" contribution is clipped, or leave `{given[0]}` out and declare a `cost`",
        )
    if kind.local and mechanism.contribution_bound:
        given.append("contribution_bound")
    if mechanism.public_frame:
        given.append("public_frame")
    lacking = [name for name in kind.needed if name not in mechanism.given]
    if given and lacking:
        raise wrong(
            mechanism,
            Code.MISSING_KEY,
            f"`{given[0]}` has no effect without `{lacking[0]}`",
            help=f"give `{lacking[0]}`, or leave these out and declare a `cost`",
        )


def _computed(mechanism: Mechanism, unit: str, relation: Relation) -> Curve | None:
    """Return the curve that the parameters imply, or None if they are not given."""
    kind = RELEASE_KINDS[mechanism.kind]
    if not kind.parameters or not mechanism.given >= {*kind.needed}:
        return None
    values = {**kind.defaults, **mechanism.parameters}
    if kind.samples:
        return _on_own_samples(mechanism, unit, values)
    if kind.norm is None:
        return _of_answers(mechanism, unit, relation, values)
    if unit not in mechanism.sensitivity:
        return None
    values["sensitivity"] = mechanism.sensitivity[unit]
    values |= mechanism.participation.get(unit, {})
    if any(one.name == "sensitivity" and one.whole for one in kind.parameters):
        _refuse_broken(mechanism, unit, kind)
    with placed(mechanism.parameter_mark):
        if kind.of_list is not None:
            return kind.of_list(mechanism.coefficients, values)
        return kind.build(values)


def _refuse_broken(mechanism: Mechanism, unit: str, kind: Kind) -> None:
    """Refuse a sensitivity that must be a whole number, and is not."""
    sensitivity = mechanism.sensitivity[unit]
    if sensitivity.denominator != 1:
        steps = kind.noise is not None
        what = "the l1 sensitivity of discrete noise" if steps else f"`{kind.norm}`"
        raise wrong(
            mechanism,
            Code.OUT_OF_RANGE,
            f"{what} must be an integer, got {number_text(sensitivity)} for `{unit}`",
            help="use integer answers, in steps of the noise"
            if steps
            else "round it up",
        )


def _on_own_samples(
    mechanism: Mechanism, unit: str, values: dict[str, Fraction]
) -> Curve | None:
    """Return the curve of a mechanism that samples one unit, for that unit only."""
    sampling = mechanism.sampling
    if sampling is None or sampling.unit != unit:
        return None
    with placed(mechanism.parameter_mark):
        kind = RELEASE_KINDS[mechanism.kind]
        return kind.build({**values, "sampling-rate": sampling.rate})


def _of_answers(
    mechanism: Mechanism, unit: str, relation: Relation, values: dict[str, Fraction]
) -> Curve | None:
    """Return the curve of a local randomizer, if the number of answers is known."""
    kind = RELEASE_KINDS[mechanism.kind]
    declared = unit in mechanism.cost  # Then at least the cost of that many answers.
    answers = mechanism.contribution_bound.get(unit, 1)
    check(
        kind.repeats in kind.defaults,
        "the number of answers of a local randomizer is visible",
    )
    with placed(mechanism.parameter_mark):
        curve = kind.build({**values, kind.repeats: Fraction(answers)})
    if not declared and unit not in mechanism.contribution_bound:
        return None
    # A replacement, with one answer each, leaves the number of answers unchanged.
    counted = relation != "substitute" or answers > 1
    if not declared and not mechanism.public_frame and counted:
        raise _shows_who(mechanism, relation)
    return curve


def _shows_who(mechanism: Mechanism, relation: Relation) -> InputError:
    shown = "who" if relation == "substitute" else "whether somebody"
    return wrong(
        mechanism,
        Code.COST_NOT_DERIVABLE,
        f"{mechanism.kind.replace('-', ' ')} does not hide participation",
        notes=(
            f"under {relation} neighbors the number of answers may reveal"
            f" {shown} is in the data: no loss is proven",
        ),
        help="if everybody on a public list answers, whether in the data or not, write"
        " `public_frame: true`; else declare a `cost`",
    )


def _declared(mechanism: Mechanism, cost: Budget) -> Curve:
    kind = RELEASE_KINDS[mechanism.kind]
    whole = mechanism.sampling is None  # On a sample, Gaussian noise is no longer that.
    if isinstance(cost, PureBudget) and kind.measure == "rho":
        raise wrong(
            mechanism,
            Code.COST_TOO_LOW,
            f"no pure eps is proven for `{kind.name}`, whatever its {kind.needed[0]}",
            help="declare {rho: …} or {eps: …, delta: …}",
        )
    if isinstance(cost, ZcdpBudget) and kind.of_rho is not None and whole:
        return kind.of_rho(cost.rho)
    with placed(mechanism.cost_mark):
        return curve_of_guarantee(cost)


def _not_below(mechanism: Mechanism, unit: str, cost: Budget, computed: Curve) -> Curve:
    """Return the curve of a declared cost that covers the computed one."""
    native = RELEASE_KINDS[mechanism.kind].measure
    if measure(cost) != native:
        raise wrong(
            mechanism,
            Code.NOT_SUPPORTED,
            f"a cost next to the parameters of `{mechanism.kind}` must be in {native},"
            f" got {budget_text(cost)} for `{unit}`",
            help=f"declare it in {native}, or leave the cost out: it is computed",
        )
    declared = _declared(mechanism, cost)
    index = EPS if native == "eps" else RHO
    least = computed.loss().coordinates[index]
    if declared.loss().coordinates[index] < least:
        raise wrong(
            mechanism,
            Code.COST_TOO_LOW,
            f"the cost {budget_text(cost)} for `{unit}` is below the computed"
            f" {native} {number_text(Fraction(least, LOSS_UNIT))}",
            help="leave the cost out: it is computed from the parameters",
        )
    return _larger(declared, computed)


@lru_cache(maxsize=4096)
def _larger(one: Curve, other: Curve) -> Curve:
    """Return the larger of two curves everywhere.

    Both are proven; the declared one may cover more than the parameters show.
    """
    return Curve(
        eps=max(one.eps, other.eps),
        rho=max(one.rho, other.rho),
        mu2=max(one.mu2, other.mu2),
        renyi=lambda order: max(one.at(order), other.at(order)),
        delta=max(one.delta, other.delta),
    )
