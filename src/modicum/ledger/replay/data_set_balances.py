"""What is held reserved for each data set, against limits."""

from __future__ import annotations

from collections.abc import Set

from modicum.ledger.log.data_sets import DataSets, data_sets_recorded
from modicum.ledger.replay.actor_balances import Holdings, Migrate
from modicum.ledger.state.state import State
from modicum.policy import CompiledPolicy


class DataSetHoldings(Holdings):
    """Balances of the reservations of each data set that are not started.

    They are of all actors. A release that names no data set is about every one.

    Args:
        compiled: The policy.
        migrate: Returns a release re-keyed to the policy.
        state: The state at the head; its owner moves it on.
    """

    def __init__(
        self, compiled: CompiledPolicy, migrate: Migrate, state: State
    ) -> None:
        super().__init__(compiled, migrate, state)
        self._about: dict[str, DataSets] = {}

    def held(self, holder: str) -> Set[str]:
        """Return the releases of a data set that anybody holds, oldest first."""
        held, about = self._state.holders.by.keys(), self._about
        for gone in about.keys() - held:
            del about[gone]
        for new in held - about.keys():
            about[new] = data_sets_recorded(self._state.open[new])
        return {
            one: None
            for one in held
            if not about[one].isdisjoint((holder, None)) and one not in self.due
        }.keys()
