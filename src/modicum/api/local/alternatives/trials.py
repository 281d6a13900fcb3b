"""Deciding variants of a release at one head."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from typing import Any

from msgspec import Struct

from modicum.api.local.evaluation import Description, price_release
from modicum.api.local.explanation.denial_text import unmatched_text
from modicum.api.local.explanation.release_text import Written, written
from modicum.api.local.explanation.remedies import ENDED_EARLY, Fit
from modicum.core.errors import InputError
from modicum.ledger import Balances, RecordedRelease, Standing, Verdict, decide
from modicum.ledger.decision.balances import ReservedRelease

#: Limit on mechanisms priced and decided in one search, over all variants. A release of
#: twenty has five hundred variants; a time limit would make results depend on the
#: machine.
WORK_MAX = 10_000
#: Work of a new price of a slow mechanism, which takes up to half a second.
SLOW_WORK = 100
#: The keys of slow mechanisms.
_SLOW = frozenset({"sampling", "selection"})
#: The keys of a mechanism that its price does not depend on.
_UNPRICED = frozenset({"name", "attributes", "where", "periods", "groups", "labels"})


class HeadView(Struct, frozen=True):
    """A read-only view of a ledger at one head, valid for a limited time.

    Attributes:
        balances: The balance of every rule.
        day: The day, as an ordinal.
        seq: The number of the last entry.
        head: Its hash.
        reserved: All releases of the log, read from it each time.
        standing: Returns the status of an id, or None.
    """

    balances: Balances
    day: int
    seq: int
    head: str
    reserved: Iterable[ReservedRelease]
    standing: Callable[[str], Standing | None]


class Trials:
    """Decides variants of one release at one head. Writes nothing.

    Args:
        head_view: The ledger.
        release: The release that the variants are of.

    Attributes:
        head_view: The ledger.
        base: The release in plain values.
        tried: The number of decided variants.
        ended_early: Whether a variant was skipped because the search reached its limit.
            A skipped variant may be allowed.
    """

    def __init__(self, head_view: HeadView, release: Description) -> None:
        self.head_view = head_view
        self.base = written(release)
        self._name_sigma()
        self.tried = 0
        self.ended_early = False
        self._work = 0
        self._slow: set[str] = set()

    def _name_sigma(self) -> None:
        """Write the sigma of Gaussian noise in the place of the eps that it is for."""
        mechanisms = self.base["mechanisms"]
        if not any("eps" in one for one in mechanisms):
            return
        recorded = price_release(self.base, self.head_view.balances.compiled).mechanisms
        for one, known in zip(mechanisms, recorded, strict=True):
            described: Mapping[str, Any] = known.description
            sigma = described["parameters"].get("sigma")
            if sigma is not None and "sigma" not in one:
                del one["eps"], one["delta"]
                one["sigma"] = Decimal(sigma)

    @cached_property
    def recorded(self) -> RecordedRelease:
        """The release itself, priced."""
        return price_release(self.base, self.head_view.balances.compiled)

    @cached_property
    def verdict(self) -> Verdict:
        """The decision about the release itself."""
        return decide(self.head_view.balances, self.recorded, self.head_view.day)

    def goes_on(self) -> bool:
        """Return whether one more variant is looked at; if not, it ends early."""
        if self._work < WORK_MAX:
            return True
        self.ended_early = True
        return False

    def priced(self, variant: Written) -> RecordedRelease | None:
        """Return a variant, priced; None if it cannot be read or priced.

        Also None once the search reached its limit: see `ended_early`.
        """
        if not self.goes_on():
            return None
        self._work += self._work_of(variant)
        try:
            return price_release(variant, self.head_view.balances.compiled)
        except InputError:
            return None

    def _work_of(self, variant: Written) -> int:
        """Return the work of a variant; prices that were computed before are cached."""
        work = 0
        for one in variant["mechanisms"]:
            work += 1
            if not _SLOW.isdisjoint((*variant, *one)):
                key = repr({k: one[k] for k in sorted(one.keys() - _UNPRICED)})
                work += 0 if key in self._slow else SLOW_WORK
                self._slow.add(key)
        return work

    def decision(self, variant: Written, day: int | None = None) -> Verdict | None:
        """Return the decision about a variant; None if it cannot be read or priced.

        Also None once the search reached its limit: see `ended_early`.
        """
        self.tried += 1
        release = self.priced(variant)
        if release is None:
            return None
        on = self.head_view.day if day is None else day
        return decide(self.head_view.balances, release, on)

    def allows(self, variant: Written, day: int | None = None) -> bool:
        """Return whether a variant can be read and every rule allows it."""
        verdict = self.decision(variant, day)
        return verdict is not None and verdict.allowed

    def fit(
        self, vary: str, variant: Written, changes: Iterable[str], why: Iterable[str]
    ) -> Fit:
        """Return an allowed variant as a fit.

        If the search ended early, the fit is marked: a closer one may be allowed, too.
        """
        at, ended = (self.head_view.seq, self.head_view.head), self.ended_early
        reasons = (*why, ENDED_EARLY) if ended else tuple(why)
        return Fit(vary, variant, tuple(changes), reasons, *at, ended)

    def nothing(self, vary: str, *why: str) -> Fit:
        """Return that no variant passes; or that the search ended early without one."""
        at, ended = (self.head_view.seq, self.head_view.head), self.ended_early
        return Fit(vary, None, (), (ENDED_EARLY,) if ended else why, *at, ended)


def full_rules(verdict: Verdict | None, most: int = 3) -> Iterator[str]:
    """Yield the rules that deny a variant, as text."""
    if verdict is None:
        yield "other variants cannot be read or priced"
        return
    if verdict.unmatched:
        yield unmatched_text(verdict.unmatched)
    denying = [loss for loss in verdict.losses if not loss.allowed]
    for loss in denying[:most]:
        where = f" in {loss.cell}" if loss.cell else ""
        yield f"{loss.rule.id} denies{where}"
    if len(denying) > most:
        yield f"and {len(denying) - most} more rules deny"
