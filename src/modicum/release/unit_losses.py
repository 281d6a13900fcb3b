"""What a mechanism's own parameters and costs prove for one privacy unit."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from msgspec import Struct

from modicum.accounting import (
    ApproxBudget,
    Budget,
    GdpBudget,
    PureBudget,
    Unlimited,
    ZcdpBudget,
    mechanisms,
)
from modicum.accounting.budgets import RenyiBudget, budget_text, measure
from modicum.accounting.curves import Curve
from modicum.accounting.grid import EPS, RHO
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import LOSS_UNIT, brief, number_text
from modicum.release.mechanism_kinds import KINDS
from modicum.release.model import Mechanism
from modicum.release.price_problems import wrong
from modicum.release.units import Relation
from modicum.release.vocabulary import Vocabulary

#: What the loss of a unit comes from, if from nothing of another unit.
STATED = frozenset({"declared", "computed", "declared, covers the computed"})


class Stated(Struct, frozen=True):
    """A curve that is proven for one unit, and where it comes from.

    Attributes:
        curve: What changes of the unit cost, under the unit's own relation.
        source: `declared`, `computed`, or `declared, covers the computed`.
    """

    curve: Curve
    source: str


def stated(mechanism: Mechanism, unit: str, vocabulary: Vocabulary) -> Stated | None:
    """Return what is given for a unit, or None if nothing is.

    Args:
        mechanism: The description.
        unit: The unit.
        vocabulary: Tells the relation that its sensitivities and costs hold under.

    Raises:
        InputError: If a declared cost is below the computed one or impossible, or
            no loss follows from the parameters under this relation.
    """
    declared = mechanism.cost.get(unit)
    computed = _computed(mechanism, unit, vocabulary.relation(unit))
    if computed is not None and mechanism.sampling is not None:
        from modicum.release.sample_price import on_sample

        computed = on_sample(mechanism, unit, computed, vocabulary)
    if declared is None:
        return None if computed is None else Stated(computed, "computed")
    if computed is None:
        return Stated(_declared(mechanism, declared), "declared")
    curve = _not_below(mechanism, unit, declared, computed)
    return Stated(curve, "declared, covers the computed")


def refuse_halves(mechanism: Mechanism) -> None:
    """Refuse parameters that no price can be computed from: none is ever ignored.

    Raises:
        InputError: If there are any.
    """
    pairs = {
        "laplace": ("scale", "l1"),
        "discrete-laplace": ("scale", "l1"),
        "gaussian": ("sigma", "l2"),
        "discrete-gaussian": ("sigma", "l2"),
    }
    if mechanism.kind in pairs and not mechanism.sensitivity:
        parameter, norm = pairs[mechanism.kind]
        if parameter in mechanism.parameters:
            raise wrong(
                mechanism,
                Code.MISSING_KEY,
                f"`{parameter}` says nothing without `sensitivity`",
                help=f"give `sensitivity: {{UNIT: {{{norm}: …}}}}` for each unit, or"
                f" leave `{parameter}` out and declare a `cost`",
            )
    if mechanism.kind == "randomized-response" and "truth" not in mechanism.parameters:
        given_keys = [
            key
            for key, present in (
                ("values", "values" in mechanism.parameters),
                ("contribution_bound", bool(mechanism.contribution_bound)),
                ("public_frame", mechanism.public_frame),
            )
            if present
        ]
        if given_keys:
            raise wrong(
                mechanism,
                Code.MISSING_KEY,
                f"`{given_keys[0]}` says nothing without `truth`",
                help="give `truth`, or leave these out and declare a `cost`",
            )


def _computed(mechanism: Mechanism, unit: str, relation: Relation) -> Curve | None:
    """Return the curve that the parameters imply, or None if they are not given."""
    parameters = mechanism.parameters
    sensitivity = mechanism.sensitivity.get(unit)
    match mechanism.kind:
        case "laplace" if "scale" in parameters and sensitivity is not None:
            return mechanisms.laplace(
                sensitivity_l1=sensitivity, scale=parameters["scale"]
            )
        case "gaussian" if "sigma" in parameters and sensitivity is not None:
            rho = mechanisms.gaussian_rho(
                sensitivity_l2=sensitivity, sigma=parameters["sigma"]
            )
            return mechanisms.gaussian(rho=rho)
        case "discrete-laplace" if "scale" in parameters and sensitivity is not None:
            return mechanisms.discrete_laplace(
                sensitivity_l1=_whole(mechanism, unit, sensitivity),
                scale=parameters["scale"],
            )
        case "discrete-gaussian" if "sigma" in parameters and sensitivity is not None:
            return mechanisms.discrete_gaussian(
                sensitivity_l2=sensitivity, sigma=parameters["sigma"]
            )
        case "randomized-response" if "truth" in parameters:
            return _randomized_response(mechanism, unit, relation)
        case _:
            return None


def _whole(mechanism: Mechanism, unit: str, sensitivity: Fraction) -> int:
    """Return a sensitivity that must be a whole number of steps of the noise."""
    if sensitivity.denominator != 1:
        raise wrong(
            mechanism,
            Code.OUT_OF_RANGE,
            f"the l1 sensitivity of discrete noise must be a whole number, got"
            f" {number_text(sensitivity)} for `{unit}`",
            help="count in the steps of the noise: whole answers, whole changes",
        )
    return sensitivity.numerator


def _randomized_response(
    mechanism: Mechanism, unit: str, relation: Relation
) -> Curve | None:
    truth = mechanism.parameters["truth"]
    values = mechanism.parameters.get("values", Fraction(2))
    if truth * values < 1:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"`truth` must be at least 1/values = 1/{values}, got {brief(truth)}",
                mechanism.truth_mark,
            )
        )
    declared = unit in mechanism.cost  # Then at least what so many answers cost.
    if not declared and unit not in mechanism.contribution_bound:
        return None
    answers = mechanism.contribution_bound.get(unit, 1)
    # Whoever is replaced, when each gives one answer, leaves their number as it was.
    counted = relation != "substitute" or answers > 1
    if not declared and not mechanism.public_frame and counted:
        raise _shows_who(mechanism, relation)
    return mechanisms.randomized_response(
        truth=truth, values=int(values), answers=answers
    )


def _shows_who(mechanism: Mechanism, relation: Relation) -> InputError:
    shown = "who" if relation == "substitute" else "whether somebody"
    return wrong(
        mechanism,
        Code.COST_NOT_DERIVABLE,
        "randomized response does not hide who takes part",
        notes=(
            f"under {relation} neighbors the number of answers may show {shown}"
            " is in the data: no loss is proven",
        ),
        help="if everybody on a public list answers, in the data or not, write"
        " `public_frame: true`; else declare a `cost`",
    )


def _declared(mechanism: Mechanism, cost: Budget) -> Curve:
    whole = mechanism.sampling is None  # On a sample, Gaussian noise is no longer that.
    match cost:
        case PureBudget() if mechanism.kind in {"gaussian", "discrete-gaussian"}:
            raise wrong(
                mechanism,
                Code.COST_TOO_LOW,
                "Gaussian noise is not pure eps-DP, whatever its sigma",
                help="declare {rho: …} or {eps: …, delta: …}",
            )
        case PureBudget(eps=eps):
            return mechanisms.declared_pure(eps=eps)
        case ApproxBudget(eps=eps, delta=delta):
            return mechanisms.declared_pure(eps=eps, delta=delta)
        case ZcdpBudget(rho=rho) if mechanism.kind == "gaussian" and whole:
            return mechanisms.gaussian(rho=rho)
        case ZcdpBudget(rho=rho):
            return mechanisms.declared_zcdp(rho=rho)
        case GdpBudget(mu=mu):
            return mechanisms.declared_gdp(mu=mu)
        case RenyiBudget(limits=known):
            return mechanisms.declared_renyi(dict(known))
        case Unlimited():
            raise wrong(mechanism, Code.NO_MEASURE, "a cost must be a number")


def _not_below(mechanism: Mechanism, unit: str, cost: Budget, computed: Curve) -> Curve:
    """Return the curve of a declared cost that covers the computed one."""
    native = KINDS[mechanism.kind].measure
    if measure(cost) != native:
        raise wrong(
            mechanism,
            Code.NOT_SUPPORTED,
            f"a cost beside the parameters of `{mechanism.kind}` must be in {native},"
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
