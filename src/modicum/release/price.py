"""Pricing: the loss of every mechanism, for every privacy unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from modicum.accounting import (
    ApproxBudget,
    Budget,
    GdpBudget,
    Loss,
    PureBudget,
    Unlimited,
    ZcdpBudget,
    mechanisms,
)
from modicum.accounting.budgets import RenyiBudget, budget_text, measure
from modicum.core.errors import Code, InputError, Problem
from modicum.core.exact import LOSS_UNIT, number_text
from modicum.core.reading import Problems
from modicum.release.model import Mechanism, Release
from modicum.release.parse import KINDS
from modicum.release.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class PricedMechanism:
    """A mechanism with its labels completed and its loss for every unit.

    Attributes:
        mechanism: The description.
        labels: A value for every label of the vocabulary, defaults filled in.
        losses: A loss for every unit of the vocabulary.
    """

    mechanism: Mechanism
    labels: Mapping[str, str]
    losses: Mapping[str, Loss]


@dataclass(frozen=True, slots=True)
class PricedRelease:
    """A release whose every mechanism is priced for every unit.

    Attributes:
        release: The description.
        labels: A value for every label, for the release as a whole.
        mechanisms: The priced mechanisms, in the order of the description.
    """

    release: Release
    labels: Mapping[str, str]
    mechanisms: tuple[PricedMechanism, ...]


def price(release: Release, vocabulary: Vocabulary) -> PricedRelease:
    """Return the release with the loss of each mechanism for each unit.

    Args:
        release: The description.
        vocabulary: Its units are the ones that must be priced; its neighboring
            relation is the one sensitivities and declared costs must hold under.

    Raises:
        InputError: If a loss is neither declared nor derivable for some unit, or a
            declared cost is below the one computed from the parameters.
    """
    found = Problems()
    priced: list[PricedMechanism] = []
    for mechanism in release.mechanisms:
        losses: dict[str, Loss] = {}
        for unit in vocabulary.units:
            with found.guard():
                losses[unit] = _loss(mechanism, unit)
        labels = _completed(mechanism.labels, vocabulary)
        priced.append(PricedMechanism(mechanism, labels, losses))
    found.raise_any()
    return PricedRelease(release, _completed(release.labels, vocabulary), tuple(priced))


def _completed(given: Mapping[str, str], vocabulary: Vocabulary) -> dict[str, str]:
    return {
        name: given.get(name, label.default)
        for name, label in vocabulary.labels.items()
    }


def _loss(mechanism: Mechanism, unit: str) -> Loss:
    _refuse_halves(mechanism)
    declared = mechanism.cost.get(unit)
    computed = _computed(mechanism, unit)
    if computed is None and declared is None:
        raise _missing(mechanism, unit)
    if declared is None:
        assert computed is not None
        return computed
    if computed is None:
        return _declared(mechanism, declared)
    return _not_below(mechanism, unit, declared, computed)


def _refuse_halves(mechanism: Mechanism) -> None:
    """Refuse parameters that no price can be computed from: none is ever ignored."""
    pairs = {
        "laplace": ("scale", "l1"),
        "discrete-laplace": ("scale", "l1"),
        "gaussian": ("sigma", "l2"),
        "discrete-gaussian": ("sigma", "l2"),
    }
    if mechanism.kind in pairs and not mechanism.sensitivity:
        parameter, norm = pairs[mechanism.kind]
        if parameter in mechanism.parameters:
            raise _wrong(
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
            raise _wrong(
                mechanism,
                Code.MISSING_KEY,
                f"`{given_keys[0]}` says nothing without `truth`",
                help="give `truth`, or leave these out and declare a `cost`",
            )


def _computed(mechanism: Mechanism, unit: str) -> Loss | None:
    """Return the loss that the parameters imply, or None if they are not given."""
    parameters = mechanism.parameters
    sensitivity = mechanism.sensitivity.get(unit)
    match mechanism.kind:
        case "laplace" if "scale" in parameters and sensitivity is not None:
            return mechanisms.laplace(
                sensitivity_l1=sensitivity, scale=parameters["scale"]
            ).loss()
        case "gaussian" if "sigma" in parameters and sensitivity is not None:
            rho = mechanisms.gaussian_rho(
                sensitivity_l2=sensitivity, sigma=parameters["sigma"]
            )
            return mechanisms.gaussian(rho=rho).loss()
        case "discrete-laplace" if "scale" in parameters and sensitivity is not None:
            return mechanisms.discrete_laplace(
                sensitivity_l1=_whole(mechanism, unit, sensitivity),
                scale=parameters["scale"],
            ).loss()
        case "discrete-gaussian" if "sigma" in parameters and sensitivity is not None:
            return mechanisms.discrete_gaussian(
                sensitivity_l2=sensitivity, sigma=parameters["sigma"]
            ).loss()
        case "randomized-response" if "truth" in parameters:
            return _randomized_response(mechanism, unit)
        case _:
            return None


def _whole(mechanism: Mechanism, unit: str, sensitivity: Fraction) -> int:
    """Return a sensitivity that must be a whole number of steps of the noise."""
    if sensitivity.denominator != 1:
        raise _wrong(
            mechanism,
            Code.OUT_OF_RANGE,
            f"the l1 sensitivity of discrete noise must be a whole number, got"
            f" {number_text(sensitivity)} for `{unit}`",
            help="count in the steps of the noise: whole answers, whole changes",
        )
    return sensitivity.numerator


def _randomized_response(mechanism: Mechanism, unit: str) -> Loss | None:
    truth = mechanism.parameters["truth"]
    values = mechanism.parameters.get("values", Fraction(2))
    if truth * values < 1:
        raise InputError(
            Problem(
                Code.OUT_OF_RANGE,
                f"`truth` must be at least 1/values = 1/{values}, got {float(truth):g}",
                mechanism.truth_mark,
            )
        )
    declared = unit in mechanism.cost  # Then at least what so many answers cost.
    if not declared and unit not in mechanism.contribution_bound:
        return None
    if not declared and not mechanism.public_frame:
        raise _wrong(
            mechanism,
            Code.COST_NOT_DERIVABLE,
            "randomized response does not hide who takes part",
            notes=(
                "under add-remove neighbors the number of answers may show whether"
                " somebody is in the data: no loss is proven",
            ),
            help="if everybody on a public list answers, in the data or not, write"
            " `public_frame: true`; else declare a `cost`",
        )
    return mechanisms.randomized_response(
        truth=truth,
        values=int(values),
        answers=mechanism.contribution_bound.get(unit, 1),
    ).loss()


def _declared(mechanism: Mechanism, cost: Budget) -> Loss:
    match cost:
        case PureBudget() if mechanism.kind in {"gaussian", "discrete-gaussian"}:
            raise _wrong(
                mechanism,
                Code.COST_TOO_LOW,
                "Gaussian noise is not pure eps-DP, whatever its sigma",
                help="declare {rho: …} or {eps: …, delta: …}",
            )
        case PureBudget(eps=eps):
            return mechanisms.declared_pure(eps=eps).loss()
        case ApproxBudget(eps=eps, delta=delta):
            return mechanisms.declared_pure(eps=eps, delta=delta).loss()
        case ZcdpBudget(rho=rho) if mechanism.kind == "gaussian":
            return mechanisms.gaussian(rho=rho).loss()
        case ZcdpBudget(rho=rho):
            return mechanisms.declared_zcdp(rho=rho).loss()
        case GdpBudget(mu=mu):
            return mechanisms.declared_gdp(mu=mu).loss()
        case RenyiBudget(limits=known):
            return mechanisms.declared_renyi(dict(known)).loss()
        case Unlimited():
            raise _wrong(mechanism, Code.NO_MEASURE, "a cost must be a number")


def _not_below(mechanism: Mechanism, unit: str, cost: Budget, computed: Loss) -> Loss:
    """Return the declared loss if it covers the computed one."""
    native = KINDS[mechanism.kind].measure
    if measure(cost) != native:
        raise _wrong(
            mechanism,
            Code.NOT_SUPPORTED,
            f"a cost beside the parameters of `{mechanism.kind}` must be in {native},"
            f" got {budget_text(cost)} for `{unit}`",
            help=f"declare it in {native}, or leave the cost out: it is computed",
        )
    declared = _declared(mechanism, cost)
    index = 0 if native == "eps" else 1
    if declared.coordinates[index] < computed.coordinates[index]:
        raise _wrong(
            mechanism,
            Code.COST_TOO_LOW,
            f"the cost {budget_text(cost)} for `{unit}` is below the computed"
            f" {native} {_units_text(computed.coordinates[index])}",
            help="leave the cost out: it is computed from the parameters",
        )
    # Both are proven; the declared one may cover more than the parameters show.
    return Loss(
        tuple(
            max(pair)
            for pair in zip(declared.coordinates, computed.coordinates, strict=True)
        )
    )


def _missing(mechanism: Mechanism, unit: str) -> InputError:
    wanted = {
        "laplace": f"`scale` and `sensitivity: {{{unit}: {{l1: …}}}}`",
        "discrete-laplace": f"`scale` and `sensitivity: {{{unit}: {{l1: …}}}}`",
        "discrete-gaussian": f"`sigma` and `sensitivity: {{{unit}: {{l2: …}}}}`",
        "gaussian": f"`sigma` and `sensitivity: {{{unit}: {{l2: …}}}}`",
        "randomized-response": f"`truth` and `contribution_bound: {{{unit}: …}}`",
    }.get(mechanism.kind)
    declare = f"`cost: {{{unit}: …}}`"
    return _wrong(
        mechanism,
        Code.COST_MISSING,
        f"mechanism `{mechanism.name}` has no cost for the unit `{unit}`",
        notes=("every mechanism must have a loss for every unit of the policy",),
        help=f"give {wanted}, or {declare}" if wanted else f"give {declare}",
    )


def _wrong(
    mechanism: Mechanism,
    code: Code,
    message: str,
    *,
    notes: tuple[str, ...] = (),
    help: str = "",  # noqa: A002 - the word users see
) -> InputError:
    return InputError(
        Problem(code, message, mechanism.cost_mark, notes=notes, help=help)
    )


def _units_text(units: int) -> str:
    return number_text(Fraction(units, LOSS_UNIT))
