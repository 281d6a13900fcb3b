"""Measurements of OpenDP under a reservation: checked in advance, run once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from modicum.accounting.budgets import (
    ApproxBudget,
    Budget,
    PureBudget,
    ZcdpBudget,
    budget_text,
)
from modicum.accounting.curves import Curve
from modicum.accounting.grid import coordinate_name
from modicum.accounting.mechanisms import declared_pure, declared_zcdp
from modicum.api.ports.reservation import InUse, Reserved
from modicum.core.diagnostics import fail
from modicum.core.errors import Code, InputError, Problem
from modicum.integrations.library_errors import loaded, unquoted

# Only constructors known to state their loss fully. Interactive ones are excluded:
# later questions could not be checked. So is dropping small groups by a threshold: the
# delta that OpenDP 0.16 states for that is too low.
_BELIEVED = {
    "measurements": frozenset(
        {
            "make_geometric",
            "make_gaussian",
            "make_laplace",
            "make_noisy_max",
            "make_noisy_top_k",
            "make_private_lazyframe",
            "make_private_quantile",
            "make_randomized_response",
            "make_randomized_response_bool",
        }
    ),
    "combinators": frozenset(
        {
            "make_approximate",
            "make_chain_mt",
            "make_chain_pm",
            "make_chain_tt",
            "make_composition",
            "make_fix_delta",
            "make_pureDP_to_zCDP",
            "make_zCDP_to_approxDP",
        }
    ),
}
# Everything after the noise is post-processing.
_AFTER_NOISE = {"make_chain_pm": "postprocess1"}
_MEASURES = {
    "MaxDivergence": "eps",
    "ZeroConcentratedDivergence": "rho",
    "Approximate(MaxDivergence)": "eps and delta",
    "Approximate(ZeroConcentratedDivergence)": "rho and delta",
}


def refuse_unproven(measurement: Any) -> None:
    """Refuse a measurement whose stated loss is not believed."""
    mod = loaded("opendp.mod", "OpenDP", "modicum[query]")
    if not isinstance(measurement, mod.Measurement):
        raise fail(
            Code.WRONG_TYPE,
            f"this is not an OpenDP measurement, but `{type(measurement).__name__}`",
            help="use the result of a function dp.m.make_…, or of a chain that ends in"
            " one",
        )
    parts = (mod.Measurement, mod.Transformation)
    for one in _parts(measurement, parts):
        _refuse_part(*one)


def _parts(
    found: Any, kinds: tuple[type, ...]
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield how every part of a measurement was made: module, function, arguments.

    Nothing is yielded for domains and metrics: they may name their origin, which does
    not run.
    """
    if isinstance(found, list | tuple):
        for one in found:
            yield from _parts(one, kinds)
    if not isinstance(found, kinds):
        return
    made = getattr(found, "__opendp_dict__", None)
    if made is None:
        raise _unknown("a part of unknown origin")
    name, arguments = made["__function__"], made["__kwargs__"]
    yield made["__module__"], name, arguments
    for key, value in arguments.items():
        if _AFTER_NOISE.get(name) != key:
            yield from _parts(value, kinds)


def _refuse_part(module: str, name: str, arguments: Mapping[str, Any]) -> None:
    if "threshold" in name or arguments.get("threshold") is not None:
        raise fail(
            Code.NOT_SUPPORTED,
            f"`{name}` drops small groups by a threshold, and OpenDP states a delta"
            " for that which is too low",
            help="list the groups in advance, or use  modicum query, which charges"
            " for finding groups",
        )
    if name.removeprefix("make_").startswith("user_"):
        raise fail(
            Code.NOT_SUPPORTED,
            f"the loss of `{name}` is whatever its author declared",
            help="declare its cost in a separate release, and run it with"
            "  modicum release run",
        )
    if module in _BELIEVED and name not in _BELIEVED[module]:
        raise _unknown(f"`{name}`")


def _unknown(what: str) -> InputError:
    names = sorted(one for known in _BELIEVED.values() for one in known)
    return fail(
        Code.NOT_SUPPORTED,
        f"no loss is known for {what}",
        notes=(f"supported are {', '.join(names)}, and transformations",),
        help="run supported measurements one by one, each as a mechanism",
    )


def measure_of(measurement: Any) -> str:
    """Return the measure of a measurement's loss, such as `eps and delta`."""
    given = str(measurement.output_measure)
    if given not in _MEASURES:
        raise fail(
            Code.NO_MEASURE,
            f"a loss in OpenDP's `{given[:100]}` is not supported in a reservation",
            help="convert it with dp.c.make_fix_delta, or another combinator, to one"
            f" of {', '.join(_MEASURES)}",
        )
    return _MEASURES[given]


def proven_amounts(measurement: Any, d_in: Any) -> tuple[Fraction, Fraction]:
    """Return the loss of a measurement's own map: its eps or rho, and its delta."""
    stated = unquoted("OpenDP", "mapping a distance", lambda: measurement.map(d_in))
    pair = stated if isinstance(stated, tuple) else (stated, 0)
    amounts = [Fraction(one) if math.isfinite(one) else None for one in pair]
    loss, delta = amounts
    if loss is None or delta is None or min(loss, delta) < 0 or delta >= 1:
        raise fail(
            Code.COST_NOT_DERIVABLE,
            "OpenDP states no finite loss for this distance",
            help="add noise",
        )
    return loss, delta


def proven_curve(measure: str, amounts: tuple[Fraction, Fraction]) -> Curve:
    """Return the implications of a map's loss."""
    loss, delta = amounts
    if measure.startswith("eps"):
        return declared_pure(eps=loss, delta=delta)
    return replace(declared_zcdp(rho=loss), delta=delta)


_STEPS_MAX = 64
_OF_ROWS = {"SymmetricDistance", "InsertDeleteDistance"}
_OF_CHANGES = {"ChangeOneDistance", "HammingDistance"}


@dataclass(frozen=True, slots=True)
class Checked:
    """A measurement within the reserved budget; it can be called once.

    Attributes:
        measurement: The measurement.
        stated: By unit, OpenDP's stated loss: eps or rho, and delta.
        measure: Its measure, such as `rho` or `eps and delta`.
    """

    measurement: Any
    stated: Mapping[str, tuple[Fraction, Fraction]]
    measure: str
    _use: InUse
    _mechanism: str

    def __call__(self, data: Any) -> Any:
        """Return the noisy answer."""
        self._use.claim(self._mechanism)
        # OpenDP does not check this: a forbidden NaN would pass, unprotected.
        domain = self.measurement.input_domain
        if not unquoted("OpenDP", "reading the data", lambda: domain.member(data)):
            raise InputError(
                Problem(
                    Code.DATA_NOT_AS_DECLARED,
                    "the data is not in the input domain of the measurement",
                    notes=("the proof is valid for data of that domain only",),
                    help="check its type and size, and for NaN",
                )
            )
        return unquoted("OpenDP", "measuring", lambda: self.measurement(data))


class OpenDP:
    """OpenDP as one mechanism of a reservation.

    Args:
        use: The reservation in use.
        mechanism: The mechanism.

    Raises:
        UsageError: If OpenDP is not installed.
    """

    def __init__(self, use: InUse, mechanism: Reserved) -> None:
        loaded("opendp.mod", "OpenDP", "modicum[query]")
        self._use = use
        self._mechanism = mechanism

    def check(
        self,
        measurement: Any,
        d_in: Any,
        *,
        unit: str | None = None,
    ) -> Checked:
        """Return the measurement, if its stated loss is within the reserved one.

        Nothing is read for that. Before the block of the reservation is entered, a
        refusal costs nothing.
        """
        refuse_unproven(measurement)
        distances = self._distances(d_in, unit)
        measure = measure_of(measurement)
        stated: dict[str, tuple[Fraction, Fraction]] = {}
        for one, distance in distances.items():
            _refuse_metric(measurement, distance, self._mechanism.relation(one))
            stated[one] = proven_amounts(measurement, distance)
            _refuse_excess(self._mechanism, one, measure, stated[one])
        return Checked(measurement, stated, measure, self._use, self._mechanism.name)

    def fit(
        self,
        build: Callable[[float], Any],
        scale: float,
        d_in: Any,
        *,
        unit: str | None = None,
    ) -> Checked:
        """Return a measurement with the least sufficient scale, from one on.

        OpenDP computes with floats, and rounds losses up: the theoretical scale may be
        short by a last digit.
        """
        for _ in range(_STEPS_MAX):
            try:
                return self.check(build(scale), d_in, unit=unit)
            except InputError as error:
                if error.code is not Code.COST_TOO_LOW:
                    raise
            scale = math.nextafter(scale, math.inf)
        return self.check(build(scale), d_in, unit=unit)

    def context(
        self,
        data: Any,
        *,
        privacy_unit: Any,
        unit: str | None = None,
        domain: Any = None,
        margins: Any = None,
    ) -> Any:
        """Return a `dp.Context` that answers one query, within the reserved budget."""
        from modicum.integrations.opendp_context import reserved_context

        self._use.must_run()
        units = self._distances(privacy_unit[1], unit)
        (one,) = units
        if isinstance(
            self._mechanism.cost(one), (PureBudget, ApproxBudget, ZcdpBudget)
        ):
            given = {"data": data, "domain": domain, "margins": margins}
            return reserved_context(
                self._use, self._mechanism, one, privacy_unit, given, self.check
            )
        raise fail(
            Code.NO_MEASURE,
            f"a context needs a declared cost of `{self._mechanism.name}` for `{one}`"
            " in eps, in eps and delta, or in rho",
            help="reserve  cost: {UNIT: {rho: …}}",
        )

    def _distances(self, d_in: Any, unit: str | None) -> dict[str, Any]:
        stated = self._mechanism.units
        if isinstance(d_in, Mapping):
            given = dict(d_in)
        elif unit is None and len(stated) == 1:
            given = {stated[0]: d_in}
        else:
            given = {} if unit is None else {unit: d_in}
        for one in given:
            self._mechanism.loss(one)  # Refuses a unit that there is not.
        missing = [one for one in stated if one not in given]
        if missing:
            raise fail(
                Code.MISSING_KEY,
                f"the loss of `{self._mechanism.name}` is stated for"
                f" {' and '.join(f'`{one}`' for one in stated)}, and no distance is"
                f" given for `{missing[0]}`",
                help="give  d_in={UNIT: …}  with a distance for each of them",
            )
        return given


def _refuse_metric(measurement: Any, distance: Any, relation: str) -> None:
    """Refuse a distance that covers less than the neighbors of a unit."""
    metric = str(measurement.input_metric).removesuffix("()")
    if metric in _OF_CHANGES and relation == "add-remove":
        raise fail(
            Code.DOES_NOT_FIT,
            f"OpenDP's `{metric}` does not cover added or removed rows, and"
            " neighbors here differ by some",
            help="build the measurement for dp.symmetric_distance()",
        )
    whole = metric in _OF_ROWS and isinstance(distance, int)
    if whole and relation != "add-remove" and distance < 2:
        raise fail(
            Code.DOES_NOT_FIT,
            f"in OpenDP's `{metric}` an exchanged row has distance 2, and neighbors"
            f" are `{relation}` here",
            help="give  d_in=2  for each row that may be exchanged",
        )


def _refuse_excess(
    mechanism: Reserved, unit: str, measure: str, stated: tuple[Fraction, Fraction]
) -> None:
    curve = proven_curve(measure, stated)
    charged = mechanism.loss(unit).charged.coordinates
    over = [
        coordinate_name(index)
        for index, (own, most) in enumerate(
            zip(curve.loss().coordinates, charged, strict=True)
        )
        if own > most
    ]
    cost = mechanism.cost(unit)
    if not over and not _above(measure, stated, cost):
        return
    shown = " and ".join(
        f"{name} {float(value)!r}"
        for name, value in zip(measure.split(" and "), stated, strict=False)
    )
    reserved = f"`{mechanism.kind}`" if cost is None else budget_text(cost)
    raise fail(
        Code.COST_TOO_LOW,
        f"OpenDP states {shown} for `{unit}`, which exceeds the"
        f" reservation of `{mechanism.name}`: {reserved}",
        notes=(
            f"it exceeds the charged {', '.join(over[:3])}"
            if over
            else "it exceeds the declared cost in the last digit",
        ),
        help="add a little noise, as `fit` does; or reserve"
        f"  mechanism: declared  with a cost in {measure}",
    )


def _above(
    measure: str, stated: tuple[Fraction, Fraction], cost: Budget | None
) -> bool:
    """Return whether a loss is above the very number that was declared for it."""
    loss, delta = stated
    match cost:
        case PureBudget(eps=eps) if measure.startswith("eps"):
            return loss > eps or delta > 0
        case ApproxBudget(eps=eps, delta=most) if measure.startswith("eps"):
            return loss > eps or delta > most
        case ZcdpBudget(rho=rho) if measure.startswith("rho"):
            return loss > rho or delta > 0
        case _:
            return False
