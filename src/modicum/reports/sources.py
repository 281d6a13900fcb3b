"""Statements and registry records, read from a ledger or from a bundle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from modicum.api.local import Workspace
from modicum.api.ports.storage import EventStore
from modicum.ledger import Record, RuleLoss
from modicum.ledger.proof.claims import Signed
from modicum.ledger.state.past_filters import eras
from modicum.reports.statement import RuleHistory, Statement, statement_of
from modicum.reports.timeline import Timeline
from modicum.storage.proofs.bundles import bundle_store, open_bundle
from modicum.storage.proofs.ledger_log import open_log, stored_checkpoints
from modicum.storage.proofs.verification import Trust, verify_log
from modicum.storage.read_only import up_to
from modicum.system.clock import FixedClock


@dataclass(frozen=True, slots=True)
class Source:
    """A log to report on.

    Attributes:
        name: Its display name.
        records: All its records, for one reading.
        carried: Signed claims stored beside it, and their places.
        store: The same log, for reads after the check.
    """

    name: str
    records: Iterable[Record]
    carried: tuple[tuple[Signed, str], ...]
    store: EventStore


@contextmanager
def opened_bundle(path: str | Path) -> Iterator[Source]:
    """Open a bundle to report on it."""
    with open_bundle(path) as bundle:
        carried = tuple((one, "the bundle") for one in bundle.checkpoints)
        yield Source(str(path), bundle.records(), carried, bundle_store(path))


@contextmanager
def opened_ledger(ledger: str | Path) -> Iterator[Source]:
    """Open a ledger to report on it."""
    store = open_log(ledger)
    carried = tuple((one, "the ledger") for one in stored_checkpoints(store))
    try:
        yield Source(store.name, store.read(0), carried, store)
    finally:
        store.close()


def report_on(
    source: Source, trust: Trust, on_entry: Callable[[int], None] | None = None
) -> Statement:
    """Return the statement about a log, after checking all of it.

    The status of rules is as of its last entry, not of the time of day, so that one log
    has one statement.
    """
    story = Timeline()
    verified = verify_log(
        story.passing(source.records),
        source.carried,
        trust,
        on_entry=on_entry,
        again=lambda: source.store.read(0),
    )
    verified.report.refuse_understated()
    story.approval_cases.count_pending()
    at = story.last.at if story.last else ""
    story.escrow.stand_at(at)
    clock = FixedClock(at)
    store = up_to(source.store, verified.report.entries)
    workspace = Workspace(store, clock, actor="auditor")
    policy = workspace.policy()
    accepted = list(_accepted(source, story))
    state = workspace.state()
    past = eras(state.policies, state.counted_seqs(at))
    rules = RuleHistory(workspace.standings(), accepted, past)
    return statement_of(source.name, verified, story, policy, rules)


def _accepted(source: Source, story: Timeline) -> Iterator[RuleLoss]:
    """Yield the status of accepted rules at the time of their acceptance."""
    if not story.activations or not story.activations[-1][1].accepted:
        return  # The usual case: the log is not read again.
    entry, policy = story.activations[-1]
    store = up_to(source.store, entry.seq)
    for loss in Workspace(store, FixedClock(entry.at), actor="auditor").standings():
        if loss.rule.id in policy.accepted:
            yield loss
