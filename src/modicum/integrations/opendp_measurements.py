"""Measurements of OpenDP under a reservation: looked at before, run once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from modicum.accounting.budgets import (
    ApproxBudget,
    Budget,
    PureBudget,
    ZcdpBudget,
    budget_text,
)
from modicum.accounting.grid import coordinate_name
from modicum.api.ports.in_use import InUse
from modicum.api.ports.reservation import Reserved
from modicum.core.diagnostics import fail
from modicum.core.errors import Code, InputError, Problem
from modicum.integrations.library_errors import loaded, unquoted
from modicum.integrations.opendp_proofs import (
    measure_of,
    proven_amounts,
    proven_curve,
    refuse_unproven,
)

_STEPS_MAX = 64
_OF_ROWS = {"SymmetricDistance", "InsertDeleteDistance"}
_OF_CHANGES = {"ChangeOneDistance", "HammingDistance"}


@dataclass(frozen=True, slots=True)
class Checked:
    """A measurement that is within what is reserved; it can be called once.

    Attributes:
        measurement: The measurement.
        stated: By unit, what OpenDP states: eps or rho, and delta.
        measure: What that is in, such as `rho` or `eps and delta`.
    """

    measurement: Any
    stated: Mapping[str, tuple[Fraction, Fraction]]
    measure: str
    _use: InUse
    _mechanism: str

    def __call__(self, data: Any) -> Any:
        """Return the noisy answer.

        Args:
            data: A value of the measurement's input domain.

        Raises:
            ConflictError: If the mechanism ran already, or rows may not be read now.
            InputError: If the data does not lie in the domain.
            UnavailableError: If OpenDP fails.
        """
        self._use.claim(self._mechanism)
        # OpenDP does not look: a NaN where none may be would go through, unprotected.
        domain = self.measurement.input_domain
        if not unquoted("OpenDP", "reading the data", lambda: domain.member(data)):
            raise InputError(
                Problem(
                    Code.DATA_NOT_AS_DECLARED,
                    "the data does not lie in the measurement's input domain",
                    notes=("the proof holds for data of that domain only",),
                    help="look at its type and size, and for NaN",
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
        """Return the measurement, if what it states is within what is reserved.

        Nothing is read for that. Before the block of the reservation is entered, a
        refusal costs nothing.

        Args:
            measurement: A measurement of OpenDP.
            d_in: How far the data of two neighbors may be apart, in the measurement's
                input metric; by unit, where the loss of several is stated.
            unit: The unit whose neighbors are meant; not needed if the mechanism's
                loss is stated for one unit only.

        Raises:
            InputError: If its loss is above what is reserved, or is not believed.
            UnavailableError: If its map fails.
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
        """Return a measurement with the least scale, from one on, that is reserved.

        OpenDP computes with floats, and rounds losses up: the scale that is right on
        paper may be short by a last digit.

        Args:
            build: Returns the measurement with a scale.
            scale: What is right on paper.
            d_in: As for `check`.
            unit: As for `check`.

        Raises:
            InputError: As for `check`, also with a scale that is a little larger.
            UnavailableError: If its map fails.
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
        """Return a `dp.Context` that answers one query, within what is reserved.

        Args:
            data: The data, such as a LazyFrame of Polars.
            privacy_unit: What `dp.unit_of` returns, for `unit`.
            unit: As for `check`.
            domain: The domain of the data; by default what OpenDP makes of it.
            margins: What is known in advance about groups, as OpenDP takes it.

        Raises:
            InputError: If what is reserved is in no measure of OpenDP.
            ConflictError: If rows may not be read now.
            UnavailableError: If OpenDP fails.
        """
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
    """Refuse a distance that says less than what neighbors of a unit may differ by."""
    metric = str(measurement.input_metric).removesuffix("()")
    if metric in _OF_CHANGES and relation == "add-remove":
        raise fail(
            Code.DOES_NOT_FIT,
            f"OpenDP's `{metric}` knows no rows that come or go, and a neighbor here"
            " has some more, or fewer",
            help="build the measurement for dp.symmetric_distance()",
        )
    whole = metric in _OF_ROWS and isinstance(distance, int)
    if whole and relation != "add-remove" and distance < 2:
        raise fail(
            Code.DOES_NOT_FIT,
            f"in OpenDP's `{metric}` an exchanged row is 2 apart, and neighbors are"
            f" `{relation}` here",
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
        f"OpenDP states {shown} for `{unit}`, which is not within what"
        f" `{mechanism.name}` reserves: {reserved}",
        notes=(
            f"it exceeds what is charged as {', '.join(over[:3])}"
            if over
            else "it exceeds what was declared by a last digit",
        ),
        help="give it a little more noise, as `fit` does; or reserve"
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
