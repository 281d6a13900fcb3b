"""The charge of each release in any cell of a policy: an index that follows the log."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from modicum.accounting import Total
from modicum.api.local.balances import LedgerBalances, Reader
from modicum.api.local.explanation.charges import Cell, holds_point
from modicum.api.local.explanation.contributions import Spent
from modicum.ledger import Record, RecordedRelease, State, event_of
from modicum.ledger.cells.family import MechanismCost
from modicum.ledger.decision.balances import Balances
from modicum.ledger.decision.rule_matching import MatchedRules
from modicum.ledger.log.events import PastRecorded, PastRedescribed, ReleaseReserved
from modicum.ledger.replay.migration import Migration
from modicum.policy import CompiledPolicy


class _Costs(NamedTuple):
    """What a release costs a unit.

    Attributes:
        rules: The rules over history that it falls under, by mechanisms.
        mechanisms: The cost and regions of each mechanism.
        undated: The positions of mechanisms charged to every period for want of one.
    """

    rules: tuple[MatchedRules, ...]
    mechanisms: tuple[MechanismCost, ...]
    undated: frozenset[int]


class RuleHistory:
    """The costs of all releases under one policy, by unit.

    Args:
        compiled: The policy.
        state: The state at the head.
    """

    def __init__(self, compiled: CompiledPolicy, state: State) -> None:
        policy = compiled.policy
        self._of = policy.digest, len(state.policies)
        self._static = policy.vocabulary.population.static
        self._migration = Migration(state.policies, policy.vocabulary, policy.text)
        self._seq = 0
        #: In the order of the entries that describe them.
        self._costs: dict[str, dict[str, _Costs]] = {}
        #: Each once: most releases are like others.
        self._once: dict[Hashable, MechanismCost] = {}

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
            release = _described_by(record)
            if release is not None:
                known = state.releases[release.id]
                migrated = self._migration.release(release, known.seq)
                self._costs.pop(release.id, None)
                self._costs[release.id] = self._costs_of(migrated, balances, known.day)
            self._seq = record.seq

    def _costs_of(
        self, release: RecordedRelease, balances: Balances, day: int
    ) -> dict[str, _Costs]:
        found = {}
        for matched, costs in balances.costs_of(release, day):
            space = balances.family(matched.unit).space
            undated = frozenset(
                place
                for place, one in enumerate(release.mechanisms)
                if space.charges_every_period(
                    one.part, timeless=not self._static.isdisjoint(one.attributes)
                )
            )
            mechanisms = tuple(self._once.setdefault(_key(one), one) for one in costs)
            found[matched.unit] = _Costs(matched.rules, mechanisms, undated)
        return found

    def spent(
        self, cell: Cell, number: int, book: LedgerBalances, now: str
    ) -> list[Spent]:
        """Return the charge of each release in a cell, if it counts as spent.

        Args:
            cell: The cell.
            number: The number of its rule.
            book: The book, at the entry up to which it was followed.
            now: The time; reservations due by then no longer count.
        """
        found: list[Spent] = []
        #: By identity: what is the same object costs the same.
        places: dict[int, tuple[int, ...]] = {}
        losses: dict[int, Total | None] = {}
        for release, by_unit in self._costs.items():
            costs = by_unit.get(cell.rule.unit)
            if costs is None:
                continue
            about = places.get(id(costs.rules))
            if about is None:
                under = (each.about for each in costs.rules if number in each.numbers)
                about = places[id(costs.rules)] = next(under, ())
            total = None
            for place in about:
                one = costs.mechanisms[place]
                if id(one) not in losses:
                    losses[id(one)] = _loss_in(cell, one)
                loss = losses[id(one)]
                total = loss if total is None else total.joined(loss or Total())
            if total is None:
                continue
            standing = book.standing_at(release, now)
            if standing is not None and standing.status.counts:
                undated = not costs.undated.isdisjoint(about)
                found.append(Spent(release, total, undated))
        return found


def _loss_in(cell: Cell, mechanism: MechanismCost) -> Total | None:
    """Return the loss of a mechanism in a cell; None if it does not touch it."""
    sides = [holds_point(region, cell.point) for region in mechanism.regions]
    if all(sides):
        return mechanism.cost.loss.total(0)
    return mechanism.cost.moved.total(0) if any(sides) else None


def _key(one: MechanismCost) -> Hashable:
    loss, moved = one.cost.loss.table.tobytes(), one.cost.moved.table.tobytes()
    return one.regions, loss, moved


def _described_by(record: Record) -> RecordedRelease | None:
    """Return the release that an entry describes, also again, or None."""
    kinds = (ReleaseReserved, PastRecorded, PastRedescribed)
    if not any(b'"kind":"%s"' % kind.kind.encode() in record.payload for kind in kinds):
        return None  # Most are not even decoded.
    body = event_of(record, record.seq).body
    return body.release if isinstance(body, kinds) else None
