"""What is held reserved for each data set, against limits."""

from __future__ import annotations

from collections.abc import Iterable, KeysView
from itertools import islice

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

    #: Policies and settings name them: to recompute them would cost more.
    kept = None

    def __init__(
        self, compiled: CompiledPolicy, migrate: Migrate, state: State
    ) -> None:
        super().__init__(compiled, migrate, state)
        self._about: dict[str, DataSets] = {}
        #: By data set, the releases, oldest first; of data sets with quotas only.
        self._of_set: dict[str, dict[str, None]] = {}
        self._head = ""

    def _own(self, holder: str) -> KeysView[str]:
        if self._head != self._state.head:
            self._follow()
        if holder not in self._of_set:
            self._of_set[holder] = {}
            self._note(holder, self._about)
        return self._of_set[holder].keys()

    def _follow(self) -> None:
        """Take into account what changed since; mostly the last ones are missing."""
        held, about = self._state.holders.by.keys(), self._about
        if not about.keys() <= held:
            for gone in about.keys() - held:
                del about[gone]
                for own in self._of_set.values():
                    own.pop(gone, None)
        new = (one for one in reversed(held) if one not in about)
        missing = [*islice(new, len(held) - len(about))]
        for one in reversed(missing):
            # Data sets may be labels, which a policy may rename.
            charge = self._charge(one)
            migrated = self._migrate(charge.release, charge.seq)
            about[one] = data_sets_recorded(migrated)
        for holder in self._of_set:
            self._note(holder, reversed(missing))
        self._head = self._state.head

    def _note(self, holder: str, releases: Iterable[str]) -> None:
        own = self._of_set[holder]
        for one in releases:
            about = self._about[one]
            if holder in about or None in about:
                own[one] = None
