"""The charge of each release in any cell of a policy: an index that follows the log."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Final, TypeAlias, get_args

from msgspec import Struct

from modicum.accounting import Total
from modicum.api.local.balances import LedgerBalances, Reader
from modicum.api.local.explanation.charges import Cell, holds_point
from modicum.api.local.explanation.contributions import Spent
from modicum.ledger import (
    ChainBreakError,
    Record,
    RecordedRelease,
    State,
    event_of,
)
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
from modicum.policy import CompiledPolicy, Rule

#: The numbers of rules, by the positions of the mechanisms that they match.
_Rules: TypeAlias = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


# Without cycles: the garbage collector need not visit them.
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

    rules: _Rules
    mechanisms: tuple[_Mechanism, ...]
    undated: tuple[int, ...]


class RuleHistory:
    """The costs of all releases under one policy, by unit.

    Args:
        compiled: The policy.
        state: The state at the head.
    """

    def __init__(self, compiled: CompiledPolicy, state: State) -> None:
        policy, self._number = compiled.policy, compiled.rules.number
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
        self._rules: dict[_Rules, _Rules] = {}

    def is_of(self, compiled: CompiledPolicy, state: State) -> bool:
        """Return whether it is about a policy, after the same policies."""
        return self._of == (compiled.policy.digest, len(state.policies))

    def follow(self, state: State, balances: Balances, read: Reader) -> None:
        """Read the entries that were added since.

        Args:
            state: The state at the head.
            balances: The balances of the policy.
            read: Reads the log after an entry.

        Raises:
            ChainBreakError: If a release is not the one that was read before.
        """
        for record in read(self._seq):
            if record.seq > state.seq:
                break
            body = _body_of(record)
            if isinstance(body, RoundOpened):
                self.opened[body.id] = record.seq
            elif body is not None:
                known = state.releases[body.release.id]
                is_last = state.described_in(known) == record.seq
                if is_last and body.release.content != known.content:
                    raise ChainBreakError(
                        record.seq, "it differs from what was read before"
                    )
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
            rules = tuple((one.about, one.numbers) for one in matched.rules)
            self._costs[matched.unit][release.id] = _Costs(
                self._rules.setdefault(rules, rules),
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

    def spent(self, cell: Cell, *, book: LedgerBalances, now: str) -> list[Spent]:
        """Return the charge of each release in a cell, if it counts as spent.

        Args:
            cell: The cell.
            book: The book, at the entry up to which it was followed.
            now: The time; reservations due by then no longer count.
        """
        found: list[Spent] = []
        #: By identity: what is the same object costs the same.
        losses: dict[int, Total | None] = {}
        for release, costs, about in self._under(cell.rule):
            there = []
            for one in about:
                mechanism = costs.mechanisms[one]
                if id(mechanism) not in losses:
                    losses[id(mechanism)] = mechanism.loss_in(cell)
                loss = losses[id(mechanism)]
                if loss is not None:
                    there.append(loss)
            standing = book.standing_at(release, now) if there else None
            if standing is not None and standing.status.counts:
                undated = any(one in costs.undated for one in about)
                found.append(Spent(release, reduce(Total.joined, there), undated))
        return found

    def sums(
        self,
        cells: Sequence[Cell],
        ends: Sequence[int],
        *,
        book: LedgerBalances,
        now: str,
    ) -> list[list[Total]]:
        """Return, by cell, the charge in each of some consecutive intervals of entries.

        Args:
            cells: Cells of one rule, at least one.
            ends: The entry after each interval, rising. The first interval begins with
                the ledger, each other one where the one before it ends.
            book: The book, at the entry up to which it was followed.
            now: The time; reservations due by then no longer count.
        """
        # Kinds of mechanisms are far fewer than releases.
        kinds: dict[int, _Mechanism] = {}
        counts: list[Counter[int]] = [Counter() for _ in ends]
        for release, costs, about in self._under(cells[0].rule):
            standing = book.standing_at(release, now) if about else None
            if standing is not None and standing.status.counts:
                kinds |= {id(one): one for one in costs.mechanisms}
                part = counts[bisect_right(ends, standing.seq)]
                part.update(id(costs.mechanisms[one]) for one in about)
        found = []
        for cell in cells:
            losses = {key: one.loss_in(cell) for key, one in kinds.items()}
            found.append(
                [
                    _sum((losses[key], times) for key, times in part.items())
                    for part in counts
                ]
            )
        return found

    def _under(self, rule: Rule) -> Iterator[tuple[str, _Costs, tuple[int, ...]]]:
        """Yield the releases of a unit, and which mechanisms a rule matches."""
        number = self._number(rule.id)
        matched: dict[int, tuple[int, ...]] = {}
        for release, costs in self._costs[rule.unit].items():
            about = matched.get(id(costs.rules))
            if about is None:
                under = (about for about, each in costs.rules if number in each)
                about = matched[id(costs.rules)] = next(under, ())
            yield release, costs, about


def _sum(losses: Iterable[tuple[Total | None, int]]) -> Total:
    """Return the sum of losses, each as often as the number beside it says."""
    finite, infinite = list(Total().finite), list(Total().infinite)
    for loss, times in losses:
        if loss is not None:
            finite = [a + b * times for a, b in zip(finite, loss.finite, strict=True)]
            pairs = zip(infinite, loss.infinite, strict=True)
            infinite = [a + b * times for a, b in pairs]
    return Total(tuple(finite), tuple(infinite))


_Body: TypeAlias = ReleaseReserved | PastRecorded | PastRedescribed | RoundOpened
_BODIES: Final = get_args(_Body)
_KINDS: Final = tuple(f'"kind":"{one.kind}"'.encode() for one in _BODIES)


def _body_of(record: Record) -> _Body | None:
    """Return what describes a release or opens a round; None for other entries."""
    if not any(kind in record.payload for kind in _KINDS):
        return None  # Most are not even decoded.
    body = event_of(record, record.seq).body
    return body if isinstance(body, _BODIES) else None
