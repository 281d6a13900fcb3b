"""Service operations with telemetry: durations and outcomes.

They behave like the service, and add only counts, times, and the numbers of entries,
but no id that a client chose.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from modicum.api.local import Decision
from modicum.api.local.ledger_view import LedgerView
from modicum.api.permissions.identity import Identity
from modicum.core.errors import ApprovalError
from modicum.policy import CompiledPolicy
from modicum.server.inputs.body import Body
from modicum.server.service.policies import Policies
from modicum.server.service.release_batches import Outcome, ReleaseBatches
from modicum.server.service.releases import SubmitOptions
from modicum.server.service.threads import Threads
from modicum.server.service.visibility import Visibility
from modicum.server.settings.quotas import Quotas
from modicum.server.telemetry.context import TelemetryContext
from modicum.server.telemetry.counters import VERSION_CHARACTERS
from modicum.server.telemetry.traces import Spanned
from modicum.writer.idempotency import IdempotencyKey
from modicum.writer.service import Decider

P = ParamSpec("P")
T = TypeVar("T")


class WatchedThreads(Threads):
    """Threads with traced work.

    Args:
        decider: The ledger.
        watch: The telemetry.
    """

    def __init__(self, decider: Decider, watch: TelemetryContext) -> None:
        super().__init__(decider)
        self._traces = watch.traces

    async def submit(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Return the result of work that uses the decider; see `Threads.submit`."""
        with self._traces.span("ledger.decide"):
            return await super().submit(work, *args, **named)

    def at_once(self, work: Callable[[], T]) -> T:
        """Return the result of work that takes no time; see `Threads.at_once`."""
        with self._traces.span("ledger.decide"):
            return super().at_once(work)

    async def turn(self, promise: asyncio.Future[T]) -> T:
        """Return a durable result; see `Threads.turn`."""
        with self._traces.span("ledger.append"):
            return await super().turn(promise)

    async def compute(self, work: Callable[[], T]) -> T:
        """Return the result of slow work; see `Threads.compute`."""
        with self._traces.span("ledger.read"):
            return await super().compute(work)

    async def ponder(self, work: Callable[[], T]) -> T:
        """Return the result of very slow work; see `Threads.ponder`."""
        with self._traces.span("ledger.analyze"):
            return await super().ponder(work)

    async def recall(
        self, name: str, point: int | str, work: Callable[[LedgerView], T]
    ) -> T:
        """Return the result of a read of the past; see `Threads.recall`."""
        with self._traces.span("ledger.analyze"):
            return await super().recall(name, point, work)


class WatchedReleases(ReleaseBatches):
    """Releases with telemetry.

    Args:
        decider: The ledger.
        threads: Where operations run.
        sight: Removes hidden data from responses.
        watch: The telemetry.
        bound: The limit on one actor's reservations; None for no limit.
    """

    def __init__(
        self,
        decider: Decider,
        threads: Threads,
        sight: Visibility,
        watch: TelemetryContext,
        bound: Quotas | None = None,
    ) -> None:
        super().__init__(decider, threads, sight, bound)
        self._watch = watch

    async def check(self, who: Identity, body: Body) -> Decision:
        """Return the decision that submitting would make; see `Releases.check`."""
        began = time.perf_counter()
        try:
            with self._watch.traces.span("release.check") as span:
                decision = await super().check(who, body)
                _note(span, decision)
                return decision
        finally:
            self._watch.counts.checked(time.perf_counter() - began)

    async def submit(
        self,
        who: Identity,
        body: Body,
        how: SubmitOptions,
        once: IdempotencyKey | None = None,
    ) -> Decision:
        """Decide a release and reserve its loss; see `Releases.submit`."""
        with self._watch.traces.span("release.submit") as span:
            try:
                decision = await super().submit(who, body, how, once)
            except ApprovalError as missing:
                self._count(missing)
                raise
            _note(span, decision)
        self._count(decision)
        return decision

    async def submit_all(
        self,
        who: Identity,
        bodies: Sequence[Body],
        how: SubmitOptions,
        once: IdempotencyKey,
    ) -> list[Outcome]:
        """Decide releases in order; see `ReleaseBatches.submit_all`."""
        with self._watch.traces.span("release.submit") as span:
            found = await super().submit_all(who, bodies, how, once)
            span.note({"modicum.releases": len(found)})
        for one in found:
            self._count(one)
        return found

    def _count(self, found: Outcome) -> None:
        """Count a new decision."""
        if isinstance(found, ApprovalError):
            policy = self._decider.policy().policy.digest
            self._watch.counts.decided("needs-approval", policy)
        elif isinstance(found, Decision) and not found.retry:
            outcome = "allow" if found.allowed else "deny"
            self._watch.counts.decided(outcome, found.policy_digest)

    async def backfill(
        self, who: Identity, body: Body, once: IdempotencyKey | None = None
    ) -> Decision:
        """Count a release that happened before; see `Releases.backfill`."""
        with self._watch.traces.span("release.backfill") as span:
            decision = await super().backfill(who, body, once)
            _note(span, decision)
            return decision


class WatchedPolicies(Policies):
    """Policies with telemetry.

    Args:
        threads: Where operations run.
        watch: The telemetry.
    """

    def __init__(self, threads: Threads, watch: TelemetryContext) -> None:
        super().__init__(threads)
        self._watch = watch

    async def compile(self, who: Identity, body: Body) -> CompiledPolicy:
        """Return the compiled policy; see `Policies.compile`."""
        began = time.perf_counter()
        try:
            with self._watch.traces.span("policy.compile") as span:
                compiled = await super().compile(who, body)
                rules = len(compiled.rules) + len(compiled.release_rules)
                span.note({"modicum.rules": rules})
                return compiled
        finally:
            self._watch.counts.compiled(time.perf_counter() - began)


def _note(span: Spanned, decision: Decision) -> None:
    """Note how a release was decided: numbers only, and how many rules deny."""
    span.note(
        {
            "modicum.decision": "allow" if decision.allowed else "deny",
            "modicum.entry": decision.seq,
            "modicum.policy": decision.policy_digest[:VERSION_CHARACTERS],
            "modicum.rules.denying": len(decision.blocking),
        }
    )
