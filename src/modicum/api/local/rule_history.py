"""The charge of each release in any cell of a policy: an index that follows the log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from functools import reduce
from typing import Final, TypeAlias, get_args

from msgspec import Struct

from modicum.accounting import Total
from modicum.api.local.balances import LedgerBalances, Reader
from modicum.api.local.explanation.charges import Cell, holds_point
from modicum.api.local.explanation.contributions import Spent
from modicum.ledger import Record, RecordedRelease, State, event_of
from modicum.ledger.cells.axes import Region
from modicum.ledger.cells.family import MechanismCost
from modicum.ledger.decision.balances import Balances
from modicum.ledger.log.events import (
    PastRecorded,
    PastRedescribed,
    ReleaseReserved,
    RoundOpened,
)
from modicum.ledger.replay.migration import Migration
from modicum.policy import CompiledPolicy


# Neither is tracked by the garbage collector, which would look at each for nothing.
class _Mechanism(Struct, frozen=True, gc=False):
    """What a mechanism costs a unit: inside its regions, and where one side is."""

    regions: tuple[Region, ...]
    inside: Total
    moved: Total

    def loss_in(self, cell: Cell) -> Total | None:
        """Return its loss in a cell; None if it does not touch it."""
        sides = [holds_point(region, cell.point) for region in self.regions]
        if all(sides):
            return self.inside
        return self.moved if any(sides) else None


class _Costs(Struct, frozen=True, gc=False):
    """What a release costs a unit.

    Attributes:
        rules: The numbers of the rules over history that it falls under, by the
            positions of the mechanisms that they match.
        mechanisms: The cost of each mechanism.
        undated: The positions of mechanisms charged to every period for want of one.
    """

    rules: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    mechanisms: tuple[_Mechanism, ...]
    undated: tuple[int, ...]


class RuleHistory:
    """The costs of all releases under one policy, by unit.

    Args:
        compiled: The policy.
        state: The state at the head.
    """

    def __init__(self, compiled: CompiledPolicy, state: State) -> None:
        policy, self._rules = compiled.policy, compiled.rules
        self._of = policy.digest, len(state.policies)
        self._static = policy.vocabulary.population.static
        self._migration = Migration(state.policies, policy.vocabulary, policy.text)
        self._seq = 0
        #: The entry that opened each round.
        self.opened: dict[str, int] = {}
        #: By unit and release, in the order of the entries that describe them.
        self._costs: dict[str, dict[str, _Costs]] = defaultdict(dict)
        #: Each once: most releases are like others.
        self._mechanisms: dict[Hashable, _Mechanism] = {}

    def is_of(self, compiled: CompiledPolicy, state: State) -> bool:
        """Return whether it is about a policy, after the same policies."""
        return self._of == (compiled.policy.digest, len(state.policies))

    def follow(self, state: State, balances: Balances, read: Reader) -> None:
        """Read the entries that were added since.

        Args:
            state: The state at the head.
            balances: The balances of the policy.
            read: Reads the log after an entry.
        """
        for record in read(self._seq):
            if record.seq > state.seq:
                break
            body = _body_of(record)
            if isinstance(body, RoundOpened):
                self.opened[body.id] = record.seq
            elif body is not None:
                known = state.releases[body.release.id]
                migrated = self._migration.release(body.release, known.seq)
                self._take(migrated, balances, known.day)
            self._seq = record.seq

    def _take(self, release: RecordedRelease, balances: Balances, day: int) -> None:
        """Replace the costs of a release."""
        for each in self._costs.values():
            each.pop(release.id, None)
        for matched, costs in balances.costs_of(release, day):
            space = balances.family(matched.unit).space
            undated = (
                place
                for place, one in enumerate(release.mechanisms)
                if space.charges_every_period(
                    one.part, timeless=not self._static.isdisjoint(one.attributes)
                )
            )
            self._costs[matched.unit][release.id] = _Costs(
                tuple((one.about, one.numbers) for one in matched.rules),
                tuple(map(self._mechanism, costs)),
                tuple(undated),
            )

    def _mechanism(self, one: MechanismCost) -> _Mechanism:
        loss, moved = one.cost.loss, one.cost.moved
        key = one.regions, loss.table.tobytes(), moved.table.tobytes()
        known = self._mechanisms.get(key)
        if known is None:
            known = _Mechanism(one.regions, loss.total(0), moved.total(0))
            self._mechanisms[key] = known
        return known

    def spent(
        self, cells: Sequence[Cell], *, book: LedgerBalances, now: str
    ) -> list[list[Spent]]:
        """Return, by cell, the charge of each release that counts as spent.

        Args:
            cells: The cells, of one rule.
            book: The book, at the entry up to which it was followed.
            now: The time; reservations due by then no longer count.
        """
        found: list[list[Spent]] = [[] for _ in cells]
        #: By identity, by cell: what is the same object costs the same.
        losses: dict[int, list[Total | None]] = {}
        if not cells:
            return found
        rule = cells[0].rule
        number = self._rules.number(rule.id)
        for release, costs in self._costs[rule.unit].items():
            under = (about for about, numbers in costs.rules if number in numbers)
            about = next(under, ())
            for place in about:
                one = costs.mechanisms[place]
                if id(one) not in losses:
                    losses[id(one)] = [one.loss_in(cell) for cell in cells]
            each = [losses[id(costs.mechanisms[place])] for place in about]
            if not any(loss is not None for one in each for loss in one):
                continue
            standing = book.standing_at(release, now)
            if standing is None or not standing.status.counts:
                continue
            undated = any(one in costs.undated for one in about)
            for spent, *parts in zip(found, *each, strict=True):
                there = [loss for loss in parts if loss is not None]
                if there:
                    total = reduce(Total.joined, there)
                    spent.append(Spent(release, total, undated))
        return found


_Body: TypeAlias = ReleaseReserved | PastRecorded | PastRedescribed | RoundOpened
_BODIES: Final = get_args(_Body)
_KINDS: Final = tuple(f'"kind":"{one.kind}"'.encode() for one in _BODIES)


def _body_of(record: Record) -> _Body | None:
    """Return what describes a release or opens a round; None for other entries."""
    if not any(kind in record.payload for kind in _KINDS):
        return None  # Most are not even decoded.
    body = event_of(record, record.seq).body
    return body if isinstance(body, _BODIES) else None
