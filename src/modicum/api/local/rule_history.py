"""The releases under each rule of a policy: an index that follows the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from modicum.api.local.balances import LedgerBalances, Reader
from modicum.ledger import Record, RecordedRelease, Standing, State, event_of
from modicum.ledger.decision.balances import Balances, ReservedRelease
from modicum.ledger.log.events import PastRecorded, ReleaseReserved
from modicum.ledger.replay.migration import Migration
from modicum.policy import CompiledPolicy


class RuleHistory:
    """The ids of the releases that fall under each rule of a policy.

    Releases under the same rules share one list: there are few such lists.

    Args:
        compiled: The policy.
        state: The state at the head.
    """

    def __init__(self, compiled: CompiledPolicy, state: State) -> None:
        policy = compiled.policy
        self._of = policy.digest, len(state.policies)
        self._migration = Migration(state.policies, policy.vocabulary, policy.text)
        self._seq = 0
        self._ids: dict[frozenset[int], list[str]] = {}

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
            release = _added_by(record)
            if release is not None:
                migrated = self._migration.release(release, record.seq)
                rules = frozenset(balances.rules_of(migrated))
                self._ids.setdefault(rules, []).append(release.id)
            self._seq = record.seq

    def counted(
        self,
        rule: int,
        book: LedgerBalances,
        record: Callable[[int], Record | None],
        now: str,
    ) -> Iterator[ReservedRelease]:
        """Yield the releases under a rule that count as spent, as they are charged.

        Args:
            rule: The number of the rule.
            book: The book, at the entry up to which it was followed.
            record: Reads one record.
            now: The time; reservations due by then no longer count.
        """
        ids = (one for rules, ids in self._ids.items() if rule in rules for one in ids)
        standings = (book.standing_at(one, now) for one in ids)
        spent = [one for one in standings if one is not None and one.status.counts]

        def described_in(one: Standing) -> int:
            return book.state.described_in(one)

        for one in sorted(spent, key=described_in):
            release = book.release_of(one, record)
            migrated = self._migration.release(release, one.seq)
            yield ReservedRelease(migrated, one.day)


def _added_by(record: Record) -> RecordedRelease | None:
    """Return the release that an entry adds to the ledger; None if it adds none."""
    kinds = (b'"kind":"release-reserved"', b'"kind":"past-recorded"')
    if not any(kind in record.payload for kind in kinds):
        return None  # Most are not even decoded.
    body = event_of(record, record.seq).body
    return body.release if isinstance(body, ReleaseReserved | PastRecorded) else None
