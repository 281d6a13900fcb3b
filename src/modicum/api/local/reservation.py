"""What a release may run, and what that may cost, as the ledger has reserved it."""

from __future__ import annotations

from typing import Final

from modicum.accounting import Loss
from modicum.accounting.losses import total_of
from modicum.api.local.using_ports import Ledger
from modicum.api.ports.reservation import Reserved, ReservedLoss, loss_of_unit
from modicum.core.canonical import Plain
from modicum.core.diagnostics import fail, nearest
from modicum.core.errors import Code
from modicum.ledger import Standing
from modicum.policy.past_units import Known, units_of


class Reservation:
    """What is reserved for a release. Reading it changes nothing.

    Args:
        ledger: The ledger.
        standing: Where the release stands.
    """

    def __init__(self, ledger: Ledger, standing: Standing) -> None:
        recorded = ledger.release_of(standing)
        self._ledger = ledger
        self._mechanisms = {one.name: one for one in map(Reserved, recorded.mechanisms)}
        self._charged = [one.losses for one in recorded.mechanisms]
        self._seq = standing.seq
        #: The id of the release.
        self.release: Final = standing.id

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The names of the mechanisms that are reserved; each may run once."""
        return tuple(self._mechanisms)

    def mechanism(self, name: str) -> Reserved:
        """Return a mechanism of the reservation.

        Args:
            name: Its name.

        Raises:
            InputError: If the release has no such mechanism.
        """
        found = self._mechanisms.get(name)
        if found is None:
            raise fail(
                Code.UNKNOWN_NAME,
                f"release `{self.release}` has no mechanism `{name[:200]}`",
                notes=(f"it has {', '.join(f'`{one}`' for one in self._mechanisms)}",),
                help=nearest(name, self._mechanisms),
            )
        return found

    def loss(self, unit: str) -> ReservedLoss:
        """Return what all mechanisms together may cost a unit.

        Args:
            unit: The unit.

        Raises:
            InputError: If the policy has no such unit.
        """
        total = total_of(loss_of_unit(losses, unit) for losses in self._charged)
        units = tuple(total.units(index) for index in range(len(total.finite)))
        return ReservedLoss(Loss(units))

    def unit(self, name: str) -> Known:
        """Return what the policy said about a unit when the release was reserved.

        Args:
            name: The unit.

        Raises:
            InputError: If it had no such unit.
        """
        text = self._ledger.policy_text_at(self._seq)
        known = units_of(text) if text else None
        if known is None or name not in known:
            raise fail(
                Code.UNKNOWN_UNIT,
                f"the policy of `{self.release}` has no privacy unit `{name[:200]}`",
                help=nearest(name, known or ()),
            )
        return known[name]

    @property
    def costs(self) -> dict[str, dict[str, Plain]]:
        """By mechanism and unit, the declared guarantees, with exact numbers as text.

        They are plain data, for programs that cannot import this package.
        """
        return {name: one.costs for name, one in self._mechanisms.items()}
