"""What the ledger says of itself, for metrics: kept for a while.

All of it follows from the policy and from descriptions of releases. None of it was
computed from rows.

A scrape must not hold anybody up. Those who look at the ledger look one at a time, and
where it has many rules that takes a while: so it is looked at in the background, and
rarely enough that others have nearly all of the time.
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
from math import inf, nextafter
from typing import Final, TypeAlias

from modicum.accounting import Budget, Total
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.views.ledger import standing_word
from modicum.core.errors import ModicumError, VerificationError
from modicum.ledger import RuleLoss, event_of
from modicum.ledger.decision.amounts import filled

#: The names of so many rules are told: those that are fullest.
FULLEST: Final = 20
#: A share of a budget is kept in millionths.
_MILLIONTHS: Final = 1_000_000

#: All that tells how full a rule is: what its cell was charged, its limit, whether it
#: is within it, and by which filter and delta its policy tells.
_Key: TypeAlias = tuple[Total, Budget, bool, str, Fraction | None]


@dataclass(frozen=True, slots=True)
class Utilization:
    """How full a rule is.

    Attributes:
        scope: What the rule is about.
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
    """What the ledger says of itself at its head.

    Attributes:
        entries: How many entries it has.
        counted: How many releases count as spent.
        denials: How many denials it tells of.
        disclosures: How many disclosures outside differential privacy.
        reservations: How many reservations are open.
        reservation_age: For how many seconds the oldest of them has been; 0 if there
            is none.
        pending: How many releases and policies wait for people to agree.
        approval_age: For how many seconds the oldest of them has waited; 0 if there
            is none.
        rounds: How many rounds of planning were opened.
        unlocked: By privacy unit, the share of its budgets that the open round unlocks.
        rules: How many rules over history stand how, by the word for it.
        fullest: The rules that are fullest, fullest first.
    """

    entries: int
    counted: int
    denials: int
    disclosures: int
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
    """What a look at the ledger brings back, to be worked out afterwards.

    Attributes:
        facts: What the ledger says of itself, but of no rule.
        losses: What each rule over history was charged.
    """

    facts: LedgerFacts
    losses: tuple[RuleLoss, ...]


def glance(view: LedgerView) -> LedgerSample:
    """Return what is to be told of a ledger; others wait to look meanwhile."""
    losses = tuple(view.standings())
    book, _, now = view.look()
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
    """Works out how full rules are, which takes longer than looking at them.

    It remembers what it worked out the last time: most rules were charged nothing
    since.

    Args:
        most: How many rules are told of by name.
    """

    def __init__(self, most: int = FULLEST) -> None:
        self._most = most
        self._known: dict[_Key, tuple[str, Fraction]] = {}

    def out(self, found: LedgerSample) -> LedgerFacts:
        """Return what the ledger says of itself, its rules included."""
        known: dict[_Key, tuple[str, Fraction]] = {}
        words: Counter[str] = Counter()
        limiting: list[tuple[Fraction, RuleLoss]] = []
        for loss in found.losses:
            key = _key(loss)
            if key not in known:
                known[key] = self._known.get(key) or (standing_word(loss), filled(loss))
            word, ratio = known[key]
            words[word] += 1
            if loss.own_filter.enforced:
                limiting.append((ratio, loss))
        self._known = known
        fullest = nlargest(self._most, limiting, key=lambda pair: pair[0])
        return replace(
            found.facts,
            rules=words,
            fullest=tuple(_utilization(loss, ratio) for ratio, loss in fullest),
        )


def _key(loss: RuleLoss) -> _Key:
    limit = loss.rule.budget
    return loss.before, limit, loss.allowed, loss.filter_name, loss.report_delta


def _utilization(loss: RuleLoss, ratio: Fraction) -> Utilization:
    rule = loss.rule
    context = " ".join(rule.context)
    return Utilization(rule.scope, context, rule.unit, rounded_up(ratio))


def rounded_up(ratio: Fraction) -> float:
    """Return the least float that is not below a ratio.

    Examples:
        >>> rounded_up(Fraction(1, 2))
        0.5
        >>> rounded_up(Fraction(1, 3)) > Fraction(1, 3)
        True
    """
    near = float(ratio)
    return nextafter(near, inf) if near < ratio else near


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


#: What was found is good for so many seconds at least.
KEEP_SECONDS: Final = 5.0
#: And for so many times as long as it took to find.
KEEP_TIMES: Final = 20
#: A scrape waits so long for news; then it is told what was found before.
PATIENCE_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class SampledMetrics:
    """What was found by a look at the ledger.

    Attributes:
        facts: What the ledger says of itself; None if it could not be read.
        is_sound: Whether it contradicts itself nowhere that was looked at; None if it
            could not be read.
        at: When, on the clock of whoever remembers it.
    """

    facts: LedgerFacts | None
    is_sound: bool | None
    at: float


class Remembered:
    """Looks at the ledger when asked, but not too often; for one event loop.

    Args:
        look: Looks at the ledger.
        clock: Tells seconds, from any beginning.
        patience: How many seconds somebody waits for news.
    """

    def __init__(
        self,
        look: Callable[[], Awaitable[LedgerFacts]],
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._look = look
        self._clock = clock
        self._patience = patience
        self._found: SampledMetrics | None = None
        self._good_until = 0.0
        self._looking: asyncio.Task[None] | None = None

    async def found(self) -> SampledMetrics | None:
        """Return what was found last; None if nothing was found yet."""
        if self._found is None or self._clock() >= self._good_until:
            if self._looking is None:
                self._looking = asyncio.create_task(self._look_again())
            await asyncio.wait([self._looking], timeout=self._patience)
        return self._found

    def age(self, found: SampledMetrics) -> float:
        """Return how many seconds ago something was found."""
        return max(0.0, self._clock() - found.at)

    async def _look_again(self) -> None:
        began = self._clock()
        facts: LedgerFacts | None = None
        is_sound: bool | None = None
        try:
            facts = await self._look()
            is_sound = True
        except VerificationError:
            is_sound = False
        except ModicumError:
            is_sound = None  # It cannot be read, and nobody knows.
        finally:
            ended = self._clock()
            self._found = SampledMetrics(facts, is_sound, began)
            self._good_until = ended + max(KEEP_SECONDS, KEEP_TIMES * (ended - began))
            self._looking = None
