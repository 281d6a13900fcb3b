"""A ledger as one may look at it: nothing here writes a byte."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from modicum.api.local.alternatives.options import DeniedRelease
from modicum.api.local.balances import LedgerBalances, Reader
from modicum.api.local.decision import Decision
from modicum.api.local.evaluation import (
    Description,
    Evaluation,
    corrected_answer,
    every_period,
    first_answer,
    refuse_other,
    refuse_requested,
    repeated_answer,
)
from modicum.api.local.live_ledger import SNAPSHOT_EVERY, LiveLedger
from modicum.api.local.submit import Submission, prepared, seconds_held, split_refusal
from modicum.api.ports.storage import Clock, EventStore, SnapshotStore
from modicum.core.errors import Code, ConflictError, Problem, UsageError
from modicum.ledger import Record, RecordedRelease, RuleLoss, Standing, State
from modicum.ledger.log.days import day_of
from modicum.ledger.state.lifecycle import unknown_release
from modicum.policy import CompiledPolicy, Rule
from modicum.policy.model import ReservationBound

T = TypeVar("T")

#: Maximum number of releases whose data sets are kept.
DATA_SETS_MAX = 200_000
#: Maximum number of cells that are kept with those who spent them.
CELLS_MAX = 20

if TYPE_CHECKING:
    from modicum.api.local.alternatives.trials import HeadView
    from modicum.api.local.cell_balance import CellBalance
    from modicum.api.local.entry_index import EntryIndex
    from modicum.api.local.history import ReleaseEntry
    from modicum.api.local.past_ledger import PastPoint
    from modicum.api.local.rule_history import RuleHistory
    from modicum.api.local.rule_losses import RuleLosses
    from modicum.api.schema.ledger import Head
    from modicum.api.schema.policy import RuleRounds
    from modicum.ledger import AuditReport
    from modicum.ledger.log.data_sets import DataSets


class LedgerView:
    """A read-only view of one ledger under one policy, for one thread at a time.

    Args:
        store: The store of the log.
        clock: The time of day.
        policy: The policy that the caller means; None for the ledger's active one.
        actor: The actor; recorded in every event.
        snapshots: The store of snapshots for a fast start; None for none.
        snapshot_every: After how many entries the next one is written.
    """

    def __init__(
        self,
        store: EventStore,
        clock: Clock,
        *,
        policy: CompiledPolicy | None = None,
        actor: str = "unknown",
        snapshots: SnapshotStore | None = None,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy
        self._actor = actor
        self._losses: RuleLosses | None = None
        self._index: EntryIndex | None = None
        self._data_sets: dict[str, DataSets] = {}
        self._history: RuleHistory | None = None
        #: What was computed from the cells of some rules, with their loss and the
        #: revision of rounds then.
        self._cells: dict[tuple[str, int], tuple[RuleLoss, int, Any]] = {}
        #: What was computed from the loss of a rule, by function and rule.
        self._computed: dict[tuple[object, str], tuple[RuleLoss, Any]] = {}
        self._live = LiveLedger(
            store,
            clock,
            policy=policy,
            actor=actor,
            snapshots=snapshots,
            snapshot_every=snapshot_every,
        )

    # --- releases ---

    def check(self, release: Description) -> Decision:
        """Return the decision that `submit` would make now. Writes nothing.

        Any policy may be checked; the decision shows whether it is the active one.

        Args:
            release: The release.

        Raises:
            InputError: If the release is malformed.
            ConflictError: If the id is in use with other contents, or was canceled.
            UsageError: If there is neither a policy nor a ledger with one.
        """
        return self.check_by(release, self._actor)

    def check_by(
        self, release: Description, actor: str, bound: ReservationBound | None = None
    ) -> Decision:
        """Return the decision that `submit` of an actor would make; see `check`."""
        book = self._live.read(deciding=True)
        one = prepared(release, self._intended_policy(book), bound=bound)
        return self._askable(release, self._answer(book, one, actor))

    def check_prepared(self, one: Submission, *, actor: str = "") -> Decision:
        """Return the decision that `submit` would make about a prepared release.

        Args:
            one: The release, as `prepared` returns it.
            actor: The actor; by default the view's own.

        Raises:
            ConflictError: If the id is in use with other contents, or was canceled.
            UsageError: If there is neither a policy nor a ledger with one.
        """
        book = self._live.read(deciding=True)
        return self._answer(book, one, actor or self._actor)

    def standing(self, release: str) -> Standing:
        """Return the status of a release. Writes nothing.

        Args:
            release: The id.

        Raises:
            InputError: If the ledger knows no such release.
        """
        book = self._live.read()
        standing = book.standing_at(release, self._live.now)
        if standing is None:
            raise unknown_release(release)
        return standing

    def release_of(self, standing: Standing) -> RecordedRelease:
        """Return the contents and loss of a release, as stored. Writes nothing.

        Args:
            standing: Its status in this ledger.

        Raises:
            VerificationError: If its entry differs from what was read before.
        """
        return self._live.book.release_of(standing, self._store.record)

    def data_sets(self, standing: Standing) -> DataSets:
        """Return the data sets of a release, which never change. Writes nothing.

        Args:
            standing: Its status in this ledger.
        """
        from modicum.ledger.log.data_sets import data_sets_recorded

        found = self._data_sets.get(standing.id)
        if found is None:
            if len(self._data_sets) >= DATA_SETS_MAX:
                self._data_sets.clear()
            found = data_sets_recorded(self.release_of(standing))
            self._data_sets[standing.id] = found
        return found

    # --- the ledger ---

    def refuse_jump(self) -> None:
        """Refuse a clock that jumped since the last entry. Writes nothing.

        Raises:
            UnavailableError: If it did; nothing is written then.
        """
        self._live.read()
        self._live.refuse_jump()

    def record(self, seq: int) -> Record | None:
        """Return the record with a number, or None if there is none. Writes nothing.

        Args:
            seq: The number.
        """
        return self._store.record(seq)

    def state(self) -> State:
        """Return the state at the head of the log. Writes nothing.

        Raises:
            UsageError: If there is no ledger and no policy to begin one with.
            VerificationError: If the log contradicts itself.
        """
        return self._live.read().state

    def exists(self) -> bool:
        """Return whether there is a ledger. Writes nothing."""
        return self._store.exists()

    def records(self) -> Iterable[Record]:
        """Return the stored records, oldest first, unchecked. Writes nothing.

        Raises:
            UsageError: If there is no ledger.
        """
        self._live.must_exist()
        return self._store.read(0)

    def story(self, release: str, since: int) -> tuple[ReleaseEntry, ...]:
        """Return the entries about a release, oldest first. Writes nothing.

        Args:
            release: Its id.
            since: The number of the first entry to look at.
        """
        from modicum.api.local.entry_index import EntryIndex

        state = self._live.read().state
        if self._index is None:
            self._index = EntryIndex()
        read = self._store.read
        return self._index.story(release, since, state, read, self._store.record)

    def page(self, after: int, limit: int) -> Iterable[Record]:
        """Return the stored records after a number, oldest first, unchecked.

        Args:
            after: The number.
            limit: Maximum number of records.
        """
        return self._store.read(after, limit)

    def verify(
        self,
        on_entry: Callable[[int], None] | None = None,
        *,
        noted_hash: str | None = None,
    ) -> AuditReport:
        """Read the complete log and verify it. Writes nothing.

        Args:
            on_entry: Called with the number of each entry that was checked.
            noted_hash: A hash noted elsewhere; the report shows its entry.

        Raises:
            UsageError: If there is no ledger.
            VerificationError: At the first contradiction; or if rules show less than
                was released, as their unit was redefined under its name.
        """
        from modicum.ledger import audit

        report = audit(
            self.records(), on_entry, noted_hash=noted_hash, again=self.records
        )
        report.refuse_understated()
        return report

    def policy(self) -> CompiledPolicy:
        """Return the policy that this workspace decides by. Writes nothing.

        Raises:
            UsageError: If none was given and none is active.
        """
        return self._intended_policy(self._live.read())

    def policy_text_at(self, seq: int) -> str:
        """Return the text of the policy that held at an entry. Writes nothing.

        Args:
            seq: The number of the entry.

        Returns:
            The text; empty if none held yet.
        """
        held = [one.text for one in self.state().policies if one.seq <= seq]
        return held[-1] if held else ""

    def standings(self) -> list[RuleLoss]:
        """Return the status of every rule of the policy. Writes nothing.

        Rules that nothing was charged to since the last call have the same objects.

        Raises:
            UsageError: If there is neither a policy nor a ledger with one.
        """
        from modicum.api.local.rule_losses import RuleLosses

        book = self._live.read(deciding=True)
        compiled, now = self._intended_policy(book), self._live.now
        if self._losses is None:
            self._losses = RuleLosses()
        with book.followed_at(compiled, self._store.read, now) as followed:
            return self._losses.of(book, followed, now)

    def computed(self, compute: Callable[[RuleLoss], T], loss: RuleLoss) -> T:
        """Return what a function makes of one of `standings`, computed once."""
        key = compute, loss.rule.id
        known = self._computed.get(key)
        if known is None or known[0] is not loss:
            known = self._computed[key] = loss, compute(loss)
        found: T = known[1]
        return found

    def loss_of(self, rule: Rule) -> RuleLoss:
        """Return the status of one rule, as `standings` does. Writes nothing.

        Args:
            rule: A rule over history.

        Raises:
            UsageError: If there is neither a policy nor a ledger with one.
        """
        from modicum.api.local.explanation.charges import standing_in

        book = self._live.read(deciding=True)
        compiled = self._intended_policy(book)
        with book.followed_at(compiled, self._store.read, self._live.now) as followed:
            return standing_in(followed.balances, rule, day_of(self._live.now))

    def spenders(
        self,
        rule: str,
        *,
        where: object = None,
        periods: object = None,
        groups: object = None,
    ) -> CellBalance:
        """Return the charge of the fullest cell of a rule, by release.

        The log is read for that, from its beginning. Writes nothing.

        Args:
            rule: The id of a rule over history.
            where: The part to search, in the syntax of a release; by default all.
            periods: Which periods to look at.
            groups: Which user groups to look at.

        Raises:
            InputError: If there is no such rule, or no such cell.
            UsageError: If there is neither a policy nor a ledger with one.
        """
        from modicum.api.local.cell_balance import cell_balance, part_named, rule_named

        with self._lent() as head_view:
            compiled = head_view.balances.compiled
            named = {"where": where, "periods": periods, "groups": groups}
            part = part_named(compiled, **named)
            return cell_balance(head_view, rule_named(compiled, rule), part)

    def fullest_cell(self, rule: str) -> CellBalance:
        """Return the charge of the fullest cell of a rule, by release. Writes nothing.

        It equals that of `spenders`. The log is read once; later calls read what was
        added.

        Args:
            rule: The id of a rule over history.

        Raises:
            InputError: If there is no such rule.
            UsageError: If there is neither a policy nor a ledger with one.
        """
        from modicum.api.local.cell_balance import cell_balance

        def compute(head_view: HeadView, one: Rule, index: RuleHistory) -> CellBalance:
            spent = partial(index.spent, book=self._live.book, now=self._live.now)
            return cell_balance(head_view, one, spent_of=spent)

        found, head = self._of_cells(rule, "fullest", compute)
        return replace(found, seq=head.seq, head=head.head)

    def segment_budgets(self, rule: str) -> RuleRounds:
        """Return what each round left of the budget of a rule. Writes nothing.

        Args:
            rule: The id of a rule over history.

        Raises:
            InputError: If there is no such rule.
            UsageError: If there is neither a policy nor a ledger with one.
        """
        from modicum.api.local.plans.segment_budgets import segment_budgets

        def compute(head_view: HeadView, one: Rule, index: RuleHistory) -> RuleRounds:
            book = self._live.book
            sums = partial(index.sums, book=book, now=self._live.now)
            planning = book.state.planning
            return segment_budgets(head_view, one, planning, index.opened, sums)

        found, head = self._of_cells(rule, "segments", compute)
        return replace(found, ledger=head)

    def _of_cells(
        self,
        rule: str,
        name: str,
        compute: Callable[[HeadView, Rule, RuleHistory], T],
    ) -> tuple[T, Head]:
        """Return the result of a function of a rule, and the head.

        It is computed again only if the charge of the rule or the rounds changed.
        """
        from modicum.api.local.cell_balance import rule_named
        from modicum.api.local.rule_history import RuleHistory
        from modicum.api.schema.ledger import Head

        losses, seq = self.standings(), self._live.book.state.seq
        with self._lent() as head_view:
            balances, state = head_view.balances, self._live.book.state
            compiled, one = balances.compiled, rule_named(balances.compiled, rule)
            number = compiled.rules.number(one.id)
            assert number is not None
            # While these are the same, so are those who spent it, and what is unlocked.
            loss, revision = losses[number], state.planning.revision
            # An entry may have come since: then the loss may be another one.
            kept = self._cells.get((name, number)) if seq == state.seq else None
            if kept is None or kept[0] is not loss or kept[1] != revision:
                index = self._history
                if index is None or not index.is_of(compiled, state):
                    index = self._history = RuleHistory(compiled, state)
                index.follow(state, balances, self._store.read)
                if len(self._cells) >= CELLS_MAX:
                    self._cells.clear()
                kept = loss, revision, compute(head_view, one, index)
                self._cells[name, number] = kept
            found: T = kept[2]
            return found, Head(seq=head_view.seq, head=head_view.head)

    def as_of(self, point: int | str) -> LedgerView:
        """Return a view of the ledger at an earlier point. Writes nothing.

        It shows what was known then: the active policy, the reservations that had not
        expired, and the balance of every rule.

        Args:
            point: The number of an entry; or a time in UTC such as `2026-05-01`, whose
                end is meant, `2026-05-01T12:00Z`, or as entries write it.

        Raises:
            UsageError: If the ledger did not exist yet, or the point is in the future.
        """
        from modicum.api.local.past_ledger import EarlierClock, EarlierStore

        past = self.past_point(point)
        return LedgerView(
            EarlierStore(self._store, past.seq),
            EarlierClock(past.at),
            policy=self._policy,
            actor=self._actor,
        )

    def past_point(self, point: int | str) -> PastPoint:
        """Return the entry and the time of an earlier point; see `as_of`.

        Args:
            point: As for `as_of`.

        Raises:
            UsageError: As for `as_of`.
        """
        from modicum.api.local.past_ledger import past_point

        self._live.must_exist()
        state = self._live.read().state
        return past_point(point, state, self._store, self._live.now)

    def current(self, *, deciding: bool = False) -> tuple[LedgerBalances, Reader, str]:
        """Return the book of an existing ledger, a reader of its log, and the time.

        Args:
            deciding: Whether balances are needed.

        Raises:
            UsageError: If there is no ledger.
        """
        self._live.must_exist()
        book = self._live.read(deciding=deciding)
        return book, self._store.read, self._live.now

    # --- inside ---

    def _askable(self, release: Description, answer: Decision) -> Decision:
        """Return a decision that can look at its release again."""
        again = DeniedRelease(release, answer.release, self._lent)
        return replace(answer, again=again)

    @contextmanager
    def _lent(self) -> Iterator[HeadView]:
        """Lend the ledger at its head, to try releases on."""
        from modicum.api.local.alternatives.trials import HeadView as Look
        from modicum.api.local.history import RekeyedHistory

        book = self._live.read(deciding=True)
        compiled, now = self._intended_policy(book), self._live.now
        with book.followed_at(compiled, self._store.read, now) as followed:
            yield Look(
                followed.balances,
                day_of(now),
                book.state.seq,
                book.state.head,
                RekeyedHistory(book.state, self._store.read, now, compiled),
                lambda identifier: book.standing_at(identifier, now),
            )

    def _answer(self, book: LedgerBalances, one: Submission, actor: str) -> Decision:
        now = self._live.now
        known = book.standing_at(one.release.id, now)
        evaluation = Evaluation(self._store.name, book, actor)
        with book.followed_at(one.compiled, self._store.read, now) as followed:
            if known is None:
                refuse_requested(book, one.release, actor, one.mark)
                day = day_of(now)
                answer = first_answer(evaluation, followed.balances, one.release, day)
                every = every_period(one.release, one.compiled)
                if every:
                    notice = f"it has no `periods`: it is charged to {every}"
                    answer = replace(answer, notices=(*answer.notices, notice))
                if not answer.allowed:
                    return answer
                read = self._store.read
                split = split_refusal(
                    one.release, followed, book.state, read, actor, now
                )
                if split is not None:
                    return _refused_now(answer, split)
                try:
                    seconds_held(one, followed, book.state, actor, now)
                except ConflictError as refused:
                    return _refused_now(answer, refused.problems[0])
                return answer
            corrects = book.state.correction_of(one.release.id, one.release.content)
            if corrects is None:
                refuse_other(known, one.release, one.mark)
            stored = book.release_of(known, self._store.record)
            charged = followed.migrated(stored, known.seq)
            if corrects is not None:
                after = followed.migrated(one.release, known.seq)
                return corrected_answer(
                    evaluation, followed.balances, known, charged, after
                )
            return repeated_answer(evaluation, followed.balances, known, charged)

    def _intended_policy(self, book: LedgerBalances) -> CompiledPolicy:
        compiled = self._policy or book.active()
        if compiled is None:
            raise self._no_policy()
        return compiled

    def _no_policy(self) -> UsageError:
        return UsageError(
            Problem(
                Code.NO_POLICY,
                f"{self._store.name} has no active policy",
                help="give one with  --policy policy.yaml",
                places=(self._store.name,),
            )
        )


def _refused_now(answer: Decision, problem: Problem) -> Decision:
    """Return a decision with a note that submitting would be refused."""
    notice = f"submitting is refused now: {problem.message}"
    return replace(answer, notices=(*answer.notices, notice))
