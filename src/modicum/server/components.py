"""The parts of a running server, assembled once and passed to every route."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

import anyio.to_thread
from fastapi import Depends
from starlette.requests import Request

from modicum.console.router import Console
from modicum.core.errors import Code
from modicum.server.access_trail.record import AccessRecord
from modicum.server.auth.anonymous_limits import STRANGERS_PER_MINUTE
from modicum.server.auth.authentication import Recognizing
from modicum.server.auth.grants import CurrentGrants, GrantTable
from modicum.server.auth.registry import Registry
from modicum.server.auth.setup import Authentication
from modicum.server.event_streams import Streams
from modicum.server.rate_limits import Rates
from modicum.server.resources import Equipment
from modicum.server.service.annotations import Remarks
from modicum.server.service.audits import Audits, Receipts
from modicum.server.service.diagnoses import Diagnoses
from modicum.server.service.escrow_actions import EscrowActions
from modicum.server.service.escrow_contracts import EscrowContracts
from modicum.server.service.escrow_datasets import EscrowData
from modicum.server.service.escrow_proposals import EscrowProposals
from modicum.server.service.events import Events
from modicum.server.service.jobs import Jobs
from modicum.server.service.ledgers import Ledgers
from modicum.server.service.policies import PolicyAnalysis
from modicum.server.service.proposals import Proposals
from modicum.server.service.queries import Queries
from modicum.server.service.release_steps import ReleaseSteps
from modicum.server.service.requests import Requests
from modicum.server.service.risk_analyses import RiskAnalyses
from modicum.server.service.rounds import RoundVerbs
from modicum.server.service.tokens import Tokens
from modicum.server.service.visibility import Visibility
from modicum.server.telemetry.context import TelemetryContext
from modicum.server.telemetry.ledger_metrics import (
    LedgerFacts,
    Remembered,
    Working,
    glance,
)
from modicum.server.telemetry.operations import (
    WatchedPolicies,
    WatchedReleases,
    WatchedThreads,
)
from modicum.writer.readiness import Outcome
from modicum.writer.service import Decider


class Service:
    """All operations of the service, by resource.

    Args:
        decider: The ledger.
        registry: The store of tokens.
        watch: Its telemetry.
        grants: The grants in force.
        own: Its further resources.
    """

    def __init__(
        self,
        decider: Decider,
        registry: Registry,
        watch: TelemetryContext,
        grants: CurrentGrants,
        own: Equipment,
    ) -> None:
        self.threads = WatchedThreads(decider, watch)
        self.sight = Visibility(self.threads)
        self.releases = WatchedReleases(
            decider, self.threads, self.sight, watch, own.reservations
        )
        self.queries = Queries(decider, self.threads, self.sight)
        self.carrying_out = ReleaseSteps(decider, self.threads)
        self.policies = WatchedPolicies(self.threads, watch)
        self.proposals = Proposals(decider, self.threads)
        self.requests = Requests(decider, self.threads, self.sight)
        self.ledgers = Ledgers(self.threads)
        self.remarks = Remarks(decider, self.threads)
        self.tokens = Tokens(registry, self.threads, grants)
        self.jobs = Jobs()
        self.events = Events(self.threads)
        self.policy_work = PolicyAnalysis(
            decider, self.threads, self.policies, self.jobs
        )
        self.rounds = RoundVerbs(decider, self.threads, self.jobs)
        self.audits = Audits(decider, self.threads, self.jobs, own, registry.trail)
        self.signed = Receipts(decider, own)
        self.diagnoses = Diagnoses(decider, self.threads)
        self.risk = RiskAnalyses(own, self.jobs)
        self.escrow_data = EscrowData(decider, self.threads, own.escrow)
        self.escrow_asking = EscrowProposals(decider, self.threads, own.escrow)
        self.escrow_contracts = EscrowContracts(self.threads, own.escrow)
        self.escrow_acts = EscrowActions(decider, self.threads, self.jobs, own.escrow)


@dataclass
class Parts:
    """The parts of a server.

    Attributes:
        decider: The ledger.
        registry: The store of tokens and sessions.
        recognizing: Authenticates callers.
        rates: Limits their rates.
        watch: Its telemetry.
        own: Its further resources: tables, and a signing key.
        remembered: Facts about the ledger, for metrics.
        service: The operations.
        entrance: Authentication; None in tests without it.
        console: Its web pages; None if it has none.
        closing: What to close at the end, after the ledger.
        streams: Counts those who watch.
        anonymous_rates: Limits unauthenticated requests by address.
        checks: Further checks whether requests can be decided; they raise a mistake.
        reload: Reads grants again; None if no file has them.
        access: The access trail; None in tests without it.
        ledgers: The parts of each further ledger, by name.
        host: The host of its public URL, as requests name it; empty for none.
        is_leaving: Whether it is shutting down and accepts nothing new.
    """

    decider: Decider
    registry: Registry
    recognizing: Recognizing
    rates: Rates = field(default_factory=Rates)
    watch: TelemetryContext = field(default_factory=TelemetryContext)
    own: Equipment = field(default_factory=Equipment)
    entrance: Authentication | None = None
    console: Console | None = None
    closing: tuple[Callable[[], object], ...] = ()
    streams: Streams = field(default_factory=Streams)
    anonymous_rates: Rates = field(default_factory=lambda: Rates(STRANGERS_PER_MINUTE))
    checks: tuple[Callable[[], object], ...] = ()
    reload: Callable[[], None] | None = None
    access: AccessRecord | None = None
    ledgers: Mapping[str, Parts] = field(default_factory=dict)
    host: str = ""
    is_leaving: bool = False
    service: Service = field(init=False)
    remembered: Remembered = field(init=False)

    def __post_init__(self) -> None:
        grants = CurrentGrants(GrantTable())
        if self.entrance is not None:
            grants = self.entrance.grants
        self.service = Service(
            self.decider, self.registry, self.watch, grants, self.own
        )
        threads, working = self.service.threads, Working()

        async def read_view() -> LedgerFacts:
            found = await threads.read_view(glance)
            return await threads.compute(lambda: working.out(found))

        self.remembered = Remembered(read_view)
        self.decider.readiness.start(*self.checks, changed=self._log_readiness)

    def codes(self) -> tuple[Code, ...]:
        """Return why nothing can be decided now, on any ledger; empty if it can."""
        found = list(self.decider.readiness.outcome().codes)
        for other in self.ledgers.values():
            found += other.codes()
        return tuple(dict.fromkeys(found))

    def reload_all(self) -> None:
        """Read the grants of all ledgers again."""
        for one in (self, *self.ledgers.values()):
            if one.reload is not None:
                one.reload()

    def _log_readiness(self, outcome: Outcome) -> None:
        for code in outcome.codes:
            self.watch.log.not_ready(code.value)

    def leave(self) -> None:
        """Accept nothing new, on any ledger."""
        for one in (self, *self.ledgers.values()):
            one.is_leaving = True

    async def close(self) -> None:
        """Finish running work, and release everything."""
        self.leave()
        for other in self.ledgers.values():
            await other.close()
        if self.entrance is not None:
            await self.entrance.aclose()
        await anyio.to_thread.run_sync(self.service.jobs.close)
        await anyio.to_thread.run_sync(self.decider.close)
        for one in (*self.closing, self.watch.traces.close):
            await anyio.to_thread.run_sync(one)


def parts_of(request: Request) -> Parts:
    """Return the parts of the server of a request."""
    parts: Parts = request.app.state.parts
    return parts


async def verbs_of(request: Request) -> Service:
    """Return the operations of the server of a request."""
    return parts_of(request).service


#: The operations, as an argument of a route.
Verbs = Annotated[Service, Depends(verbs_of)]
