"""Metrics of the ledger, cached for a while.

All of it follows from the policy and from descriptions of releases. None of it was
computed from rows.

A scrape must not delay anything. Reads of the ledger run one at a time, and many rules
take a while: so sampling runs in the background, rarely enough to leave others nearly
all of the time.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from heapq import nlargest
from typing import Final, TypeAlias

from modicum.accounting import Budget, Total
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.views.ledger import Fullness, fullness
from modicum.core.errors import ModicumError, VerificationError
from modicum.core.rationals import rounded_up
from modicum.ledger import RuleLoss, event_of

#: Maximum number of rules in metrics: the fullest ones.
FULLEST: Final = 20
#: A share of a budget is kept in millionths.
_MILLIONTHS: Final = 1_000_000

#: All that determines how full a rule is: the charge of its cell, its limit, whether it
#: holds, and its policy's filter and delta.
_Key: TypeAlias = tuple[Total, Budget, bool, str, Fraction | None]


@dataclass(frozen=True, slots=True)
class Utilization:
    """The utilization of a rule.

    Attributes:
        scope: The scope of the rule.
        context: Its settings, with spaces between them.
        unit: Its privacy unit.
        ratio: From 0 to 1, rounded up; 2 if it is over its limit.
    """

    scope: str
    context: str
    unit: str
    ratio: float


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """Metrics of the ledger at its head.

    Attributes:
        entries: How many entries it has.
        counted: How many releases count as spent.
        denials: The number of denials.
        disclosures: How many disclosures outside differential privacy.
        gaps: How many gaps are open.
        reservations: How many reservations are open.
        reservation_age: For how many seconds the oldest of them has been; 0 if there
            is none.
        pending: The number of releases and policies that wait for approval.
        approval_age: For how many seconds the oldest of them has waited; 0 if there
            is none.
        rounds: How many rounds of planning were opened.
        unlocked: By privacy unit, the share of its budgets that the open round unlocks.
        rules: The number of rules over history, by state.
        fullest: The rules that are fullest, fullest first.
    """

    entries: int
    counted: int
    denials: int
    disclosures: int
    gaps: int
    reservations: int
    reservation_age: float
    pending: int
    approval_age: float
    rounds: int
    unlocked: Mapping[str, float]
    rules: Mapping[str, int]
    fullest: tuple[Utilization, ...]


@dataclass(frozen=True, slots=True)
class LedgerSample:
    """A sample of the ledger, to be processed later.

    Attributes:
        facts: The metrics of the ledger without its rules.
        losses: The loss of each rule over history.
    """

    facts: LedgerFacts
    losses: tuple[RuleLoss, ...]


def glance(view: LedgerView) -> LedgerSample:
    """Return a sample of a ledger; other reads wait meanwhile."""
    losses = tuple(view.standings())
    book, _, now = view.current()
    state = book.state
    due = frozenset(state.due(now))
    reserved = [one for one in state.open if one not in due]
    waiting = [one.at for one in state.waiting.requests.values()]
    waiting += [one.at for one in state.waiting.proposals.values()]
    opened = state.planning.present_round
    facts = LedgerFacts(
        entries=state.seq,
        counted=state.releases.counted - len(due),
        denials=state.denials,
        disclosures=len(state.disclosures),
        gaps=len(state.planning.gaps.open),
        reservations=len(reserved),
        reservation_age=_age(view, (state.releases[one].seq for one in reserved), now),
        pending=len(waiting),
        approval_age=_since(min(waiting, default=now), now),
        rounds=len(state.planning.rounds),
        unlocked={
            unit: share / _MILLIONTHS
            for unit, share in (opened.unlocked if opened else {}).items()
        },
        rules={},
        fullest=(),
    )
    return LedgerSample(facts, losses)


class Working:
    """Computes the utilization of rules, which is slower than sampling.

    It caches the last results: most rules were charged nothing since.

    Args:
        most: The maximum number of rules by name.
    """

    def __init__(self, most: int = FULLEST) -> None:
        self._most = most
        self._known: dict[_Key, Fullness] = {}

    def out(self, found: LedgerSample) -> LedgerFacts:
        """Return the metrics of the ledger, its rules included."""
        known: dict[_Key, Fullness] = {}
        counts: Counter[str] = Counter()
        limiting: list[tuple[Fraction, RuleLoss]] = []
        for loss in found.losses:
            key = _key(loss)
            if key not in known:
                known[key] = self._known.get(key) or fullness(loss)
            counts[known[key].state] += 1
            if loss.own_filter.enforced:
                limiting.append((known[key].share, loss))
        self._known = known
        fullest = nlargest(self._most, limiting, key=lambda pair: pair[0])
        return replace(
            found.facts,
            rules=counts,
            fullest=tuple(_utilization(loss, ratio) for ratio, loss in fullest),
        )


def _key(loss: RuleLoss) -> _Key:
    limit = loss.rule.budget
    return loss.before, limit, loss.allowed, loss.filter_name, loss.report_delta


def _utilization(loss: RuleLoss, ratio: Fraction) -> Utilization:
    rule = loss.rule
    context = " ".join(rule.context)
    return Utilization(rule.scope, context, rule.unit, rounded_up(ratio))


def _age(view: LedgerView, seqs: Iterable[int], now: str) -> float:
    """Return how many seconds ago the first of some entries was made; 0 if none was."""
    first = min(seqs, default=None)
    record = None if first is None else view.record(first)
    if first is None or record is None:
        return 0.0
    return _since(event_of(record, first).at, now)


def _since(at: str, now: str) -> float:
    """Return how many seconds have gone since a time."""
    gone = datetime.fromisoformat(now) - datetime.fromisoformat(at)
    return max(0.0, gone.total_seconds())


#: Minimum age of a sample before it is refreshed, in seconds.
KEEP_SECONDS: Final = 5.0
#: And this multiple of the time that it took.
KEEP_TIMES: Final = 20
#: Maximum wait of a scrape for a new sample; then the old one is used.
PATIENCE_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class SampledMetrics:
    """A processed sample of the ledger.

    Attributes:
        facts: The metrics; None if it could not be read.
        is_sound: Whether it contradicts itself nowhere that was looked at; None if it
            could not be read.
        at: Its time, on the cache's clock.
    """

    facts: LedgerFacts | None
    is_sound: bool | None
    at: float


class Remembered:
    """Samples the ledger on demand, with a minimum interval; for one event loop.

    Args:
        read_facts: Looks at the ledger.
        clock: Returns seconds, from any origin.
        timeout: The maximum wait for a new sample, in seconds.
    """

    def __init__(
        self,
        read_facts: Callable[[], Awaitable[LedgerFacts]],
        clock: Callable[[], float] = time.monotonic,
        timeout: float = PATIENCE_SECONDS,
    ) -> None:
        self._read_facts = read_facts
        self._clock = clock
        self._timeout = timeout
        self._found: SampledMetrics | None = None
        self._good_until = 0.0
        self._reading: asyncio.Task[None] | None = None

    async def found(self) -> SampledMetrics | None:
        """Return the last sample; None if there is none yet."""
        if self._found is None or self._clock() >= self._good_until:
            if self._reading is None:
                self._reading = asyncio.create_task(self._refresh())
            await asyncio.wait([self._reading], timeout=self._timeout)
        return self._found

    def age(self, found: SampledMetrics) -> float:
        """Return the age of a sample in seconds."""
        return max(0.0, self._clock() - found.at)

    async def _refresh(self) -> None:
        began = self._clock()
        facts: LedgerFacts | None = None
        is_sound: bool | None = None
        try:
            facts = await self._read_facts()
            is_sound = True
        except VerificationError:
            is_sound = False
        except ModicumError:
            is_sound = None  # It cannot be read, so this is unknown.
        finally:
            ended = self._clock()
            self._found = SampledMetrics(facts, is_sound, began)
            self._good_until = ended + max(KEEP_SECONDS, KEEP_TIMES * (ended - began))
            self._reading = None
