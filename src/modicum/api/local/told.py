"""The history of a ledger, read from its log each time it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from modicum.api.local.balances import Reader
from modicum.ledger import State
from modicum.ledger.decision.balances import Brought
from modicum.ledger.replay.fold import loss_changes
from modicum.ledger.replay.part_migration import Retelling
from modicum.policy import CompiledPolicy


class Told(Iterable[Brought]):
    """All that was ever brought into a log, in the words of one policy.

    It is read from the log each time: a history may be larger than memory.

    Args:
        state: The state at the head up to which it is read.
        read: Reads the log.
        now: The time; reservations that have run out by then count no more.
        compiled: The policy.
    """

    def __init__(
        self, state: State, read: Reader, now: str, compiled: CompiledPolicy
    ) -> None:
        self._state = state
        self._read = read
        self._due = frozenset(state.due(now))
        self._words = Retelling(
            state.policies, compiled.policy.vocabulary.population, compiled.policy.text
        )

    def __iter__(self) -> Iterator[Brought]:
        standings = self._state.releases
        if not standings:
            return  # There may be no log yet.
        # Until the last of its corrections, a description does not count any more.
        left = {one: len(seqs) for one, seqs in self._state.redescribed.items()}
        for change in loss_changes(self._read(0), self._state):
            if not change.taken_back:
                known = standings[change.release.id]
                if change.instead_of is not None:
                    left[known.id] -= 1
                counts = (
                    known.status.counts
                    and known.id not in self._due
                    and not left.get(known.id)
                )
                told = self._words.release(change.release, change.seq)
                yield Brought(told, change.day, counts)
