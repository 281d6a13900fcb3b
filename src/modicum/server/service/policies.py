"""Policies: read, compiled, compared, and put in the place of each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from modicum.api.local.governance.activation import ActivationPreview
from modicum.api.local.handlers.policies import ACTIVE as POLICIES_ACTIVE
from modicum.api.local.handlers.policies import policy_of
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.policies.replay import history_of
from modicum.api.local.policies.what_if import what_if
from modicum.api.local.views.compiled_rules import CompiledRule, compiled_rules
from modicum.api.local.views.policy_changes import simulation_view
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.document import Node
from modicum.ledger import Record
from modicum.policy import CompiledPolicy
from modicum.policy.changes.differences import Differences, differences
from modicum.policy.compiler import compile_policy, compile_stored
from modicum.policy.parser import parse_policy
from modicum.server.inputs.body import Body
from modicum.server.service.jobs import Job, Jobs, Report
from modicum.server.service.threads import Threads
from modicum.writer.service import Decider

#: The active policy, accepted in place of a digest.
ACTIVE = "active"


class Policies:
    """The operations on policies and their rules.

    Args:
        threads: The thread pools.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    # --- policies ---

    async def compile(self, who: Identity, body: Body) -> CompiledPolicy:
        """Return the compiled policy; mistakes have positions."""
        who.must(Action.COMPILE_POLICY)
        node = await self._threads.policy(who.name, body)
        return await self._threads.compile(who.name, lambda: compiled_body(body, node))

    # --- rules ---


def compiled_body(body: Body, node: Node) -> CompiledPolicy:
    """Return the compiled policy of a request; within `Threads.compile`.

    Args:
        body: The request.
        node: The policy in it, as `Threads.policy` returns it.
    """
    compiled = compile_policy(parse_policy(node, body.text.decode("utf-8-sig")))
    _ = compiled.warnings  # They take as long, and are kept.
    return compiled


#: Reading the log is about so large a part of a simulation.
_READING = 0.2


@dataclass(frozen=True, slots=True)
class CompiledPage:
    """Some rules of a compiled policy.

    Attributes:
        compiled: The policy.
        rules: The rules, in its order: those over history first.
        after: The place to go on at; None at the end.
    """

    compiled: CompiledPolicy
    rules: tuple[CompiledRule, ...]
    after: int | None


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison of two policies.

    Attributes:
        old: The active or former policy.
        new: The one that would.
        found: Their differences.
        preview: The effect of activation; None if the old one is not active, or the
            caller may not read all releases.
    """

    old: CompiledPolicy
    new: CompiledPolicy
    found: Differences
    preview: ActivationPreview | None


class PolicyAnalysis:
    """The operations on policies that are not active.

    Args:
        decider: The ledger.
        threads: Where they run.
        policies: The policies of the ledger.
        jobs: Where long operations run.
    """

    def __init__(
        self, decider: Decider, threads: Threads, policies: Policies, jobs: Jobs
    ) -> None:
        self._decider = decider
        self._threads = threads
        self._policies = policies
        self._jobs = jobs

    async def compile(
        self, who: Identity, body: Body, after: int, limit: int
    ) -> CompiledPage:
        """Return rules that a policy compiles to."""
        who.must(Action.COMPILE_POLICY)
        node = await self._threads.policy(who.name, body)

        def work() -> CompiledPage:
            compiled = compiled_body(body, node)
            total = len(compiled.rules) + len(compiled.release_rules)
            stop = after + limit
            rules = tuple(compiled_rules(compiled, after, stop))
            return CompiledPage(compiled, rules, stop if stop < total else None)

        return await self._threads.compile(who.name, work)

    async def compare(self, who: Identity, body: Body, against: str) -> Compared:
        """Return what a policy tightens and loosens, and where history exceeds it.

        The author of a rule chooses which releases it counts: so conflicts with history
        are shown only to those who may read all of them.
        """
        who.must(Action.COMPILE_POLICY)
        who.must(Action.READ_POLICY)
        node = await self._threads.policy(who.name, body)
        known, active = await self._threads.read_view(
            lambda view: (policy_of(view, against), policy_of(view, POLICIES_ACTIVE))
        )

        def work() -> Compared:
            new = compiled_body(body, node)
            old = compile_stored(known.text, known.name)
            preview = None
            if known.digest == active.digest and who.may(Action.READ_RELEASES):
                preview = self._decider.studied(
                    lambda office: office.preview_activation(new)
                )
            return Compared(old, new, differences(old, new), preview)

        return await self._threads.compile(who.name, work)

    async def simulate(self, who: Identity, body: Body) -> Job:
        """Start a simulation of a policy's decisions, release by release."""
        who.must(Action.SIMULATE_POLICY)
        compiled = await self._policies.compile(who, body)

        def work(report: Report) -> object:
            return self._simulated(compiled, report)

        return self._jobs.begin(who, Action.SIMULATE_POLICY, "simulate-policy", work)

    def _simulated(self, compiled: CompiledPolicy, report: Report) -> object:
        total, now = self._decider.read_view(_length_and_time)
        records = _with_progress(self._decider.log().read(0), total, report)
        history = history_of(records, now)

        def on_attempt(done: int, of: int) -> None:
            report(_READING + (1 - _READING) * done / of)

        found = what_if(history, compiled, on_attempt)
        return simulation_view(compiled, history, found)


def _length_and_time(view: LedgerView) -> tuple[int, str]:
    return view.state().seq, view.current()[2]


def _with_progress(
    records: Iterable[Record], total: int, report: Report
) -> Iterator[Record]:
    for record in records:
        report(_READING * min(record.seq / max(total, 1), 1.0))
        yield record
