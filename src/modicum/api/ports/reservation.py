"""A reservation: its mechanisms, their reserved losses, and what may run under it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final, Protocol

from modicum.accounting import Budget, Loss
from modicum.accounting.budgets import (
    ApproxBudget,
    GdpBudget,
    PureBudget,
    RenyiBudget,
    Unlimited,
    ZcdpBudget,
)
from modicum.accounting.grid import DELTA, EPS, INFINITE, RHO
from modicum.core.canonical import Plain
from modicum.core.diagnostics import nearest
from modicum.core.errors import Code, InputError, Problem
from modicum.core.rationals import DELTA_UNIT, LOSS_UNIT
from modicum.ledger.log.recorded_release import RecordedMechanism
from modicum.policy.past_units import Known
from modicum.release import Relation


class ReservedLoss:
    """The reserved loss for one privacy unit.

    Args:
        loss: The loss, as the ledger charges it.
    """

    def __init__(self, loss: Loss) -> None:
        #: The loss in the ledger's coordinates.
        self.charged: Final = loss

    @property
    def eps(self) -> Fraction | None:
        """Pure epsilon, or that beside `delta`; None if none is proven."""
        return self._amount(EPS, LOSS_UNIT)

    @property
    def rho(self) -> Fraction | None:
        """The rho of zCDP; None if none is proven."""
        return self._amount(RHO, LOSS_UNIT)

    @property
    def delta(self) -> Fraction:
        """The delta; 0 if there is none."""
        return Fraction(self.charged.coordinates[DELTA], DELTA_UNIT)

    def _amount(self, index: int, unit: int) -> Fraction | None:
        units = self.charged.coordinates[index]
        return None if units >= INFINITE else Fraction(units, unit)


class Reserved:
    """One mechanism of a reservation: its description and its reserved loss.

    Args:
        recorded: The mechanism as the ledger keeps it.
    """

    def __init__(self, recorded: RecordedMechanism) -> None:
        self._recorded = recorded

    @property
    def name(self) -> str:
        """Its name, unique within the release."""
        return str(self._recorded.description["name"])

    @property
    def kind(self) -> str:
        """Return its described kind, such as `declared`."""
        return str(self._recorded.description["kind"])

    @property
    def units(self) -> tuple[str, ...]:
        """The units that its loss is stated for; that for others follows from these."""
        described = self._recorded.description
        keys = ("cost", "sensitivity", "contribution_bound")
        return tuple(
            dict.fromkeys(unit for key in keys for unit in _map(described[key]))
        )

    @property
    def costs(self) -> dict[str, Plain]:
        """By unit, the guarantees that were declared, with exact numbers as text."""
        return dict(_map(self._recorded.description["cost"]))

    @property
    def sampled(self) -> bool:
        """Whether it runs on a secret sample."""
        return self._recorded.description.get("sampling") is not None

    @property
    def sensitivities(self) -> dict[str, Fraction]:
        """By unit, how far its answer moves, in the norm that its noise needs."""
        stated = _map(self._recorded.description["sensitivity"])
        return {unit: _exact(moved) for unit, moved in stated.items()}

    @property
    def parameters(self) -> dict[str, Fraction]:
        """The numbers that it was described with, such as `sigma`, exactly."""
        stated = _map(self._recorded.description["parameters"])
        return {name: _exact(value) for name, value in stated.items()}

    def parameter(self, name: str) -> Fraction:
        """Return one of them."""
        return self.parameters[name]

    def cost(self, unit: str) -> Budget | None:
        """Return the guarantee that was declared for a unit, exactly; or None."""
        plain = _map(self._recorded.description["cost"]).get(unit)
        return None if plain is None else _budget(_map(plain))

    def loss(self, unit: str) -> ReservedLoss:
        """Return its reserved loss for a unit."""
        return ReservedLoss(loss_of_unit(self._recorded.losses, unit))

    def relation(self, unit: str) -> Relation:
        """Return the neighboring relation of its loss for a unit."""
        return self._recorded.neighbors.get(unit, "add-remove")


def loss_of_unit(losses: Mapping[str, Loss], unit: str) -> Loss:
    """Return the loss of a unit."""
    if unit not in losses:
        raise InputError(
            Problem(
                Code.UNKNOWN_UNIT,
                f"unknown privacy unit `{unit[:200]}`",
                notes=(f"the units are {', '.join(f'`{one}`' for one in losses)}",),
                help=nearest(unit, losses),
            )
        )
    return losses[unit]


def _map(plain: Plain) -> Mapping[str, Plain]:
    return plain if isinstance(plain, dict) else {}


def _budget(plain: Mapping[str, Plain]) -> Budget:
    """Return the guarantee that a description declares, exactly as stated."""
    if "rdp" in plain:
        orders = _map(plain["rdp"]).items()
        return RenyiBudget(
            tuple(sorted((Fraction(order), _exact(most)) for order, most in orders))
        )
    if "rho" in plain:
        return ZcdpBudget(_exact(plain["rho"]))
    if "mu" in plain:
        return GdpBudget(_exact(plain["mu"]))
    if "eps" not in plain:
        return Unlimited()
    eps = _exact(plain["eps"])
    return (
        ApproxBudget(eps, _exact(plain["delta"]))
        if "delta" in plain
        else PureBudget(eps)
    )


def _exact(plain: Plain) -> Fraction:
    return Fraction(str(plain))


class InUse(Protocol):
    """A reservation in use."""

    @property
    def release(self) -> str:
        """The id of the release."""
        ...

    def unit(self, name: str) -> Known:
        """Return the policy's declaration of a unit at the time of reservation."""
        ...

    def must_run(self) -> None:
        """Check that rows may be read now."""
        ...

    def claim(self, mechanism: str) -> None:
        """Mark a mechanism as run; each may run once."""
        ...

    def before_post(self, ending: Callable[[], None]) -> None:
        """Register a check that must pass before the release is published."""
        ...
