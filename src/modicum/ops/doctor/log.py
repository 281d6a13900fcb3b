"""Checks of a ledger's contents: chain, clock, policy, reservations, requests."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import datetime

from modicum.api.local import Clock
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.live_ledger import SNAPSHOT_EVERY, YEARS_MAX
from modicum.api.ports.storage import EventStore, Store
from modicum.core.errors import ModicumError
from modicum.ledger import GENESIS, ReleaseStatus, State, event_of, read_record
from modicum.ledger.replay.snapshot import read_snapshot
from modicum.ops.doctor.findings import Finding, Status, of_error
from modicum.storage.proofs.ledger_log import verify_ledger
from modicum.storage.proofs.verification import Trust

#: Number of last entries checked by default.
LAST = 1000
#: Age at which an unused reservation counts as forgotten.
FORGOTTEN_SECONDS = 24 * 60 * 60
#: Age at which a pending request counts as overlooked: a week.
OVERLOOKED_SECONDS = 7 * 24 * 60 * 60
#: Clocks of different machines may differ by so much.
_APART_SECONDS = 60
_YEAR_SECONDS = 365 * 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Opened:
    """A ledger to check.

    Attributes:
        ledger: Its path or URL.
        store: Its store.
        view: Reads it.
        clock: The time of day.
    """

    ledger: str
    store: EventStore
    view: LedgerView
    clock: Clock


def check_log(
    opened: Opened, *, deep: bool, on_entry: Callable[[int], None] | None = None
) -> Generator[Finding, None, State | None]:
    """Yield the findings about a log, and return its state. Writes nothing."""
    try:
        state = opened.view.state()
        yield _check_length(state)
        yield _check_chain(opened, state, deep=deep, on_entry=on_entry)
    except ModicumError as error:
        yield of_error("chain", error)
        return None
    yield _check_last(state, opened.clock.now())
    yield _check_policy(opened.view)
    yield _check_reservations(opened, state)
    yield _check_requests(state)
    yield _check_pending(state, opened.clock.now())
    return state


def _check_length(state: State) -> Finding:
    releases = len(state.releases)
    message = f"{state.seq} entries, {releases} releases, {state.denials} denials"
    facts = {
        "entries": state.seq,
        "releases": releases,
        "denials": state.denials,
        "policies": len(state.policies),
    }
    return Finding("entries", Status.OK, message, facts=facts)


def _check_chain(
    opened: Opened,
    state: State,
    *,
    deep: bool,
    on_entry: Callable[[int], None] | None,
) -> Finding:
    if deep:
        report = verify_ledger(opened.ledger, Trust(), on_entry=on_entry).report
        message = f"{report.entries} entries, {report.decisions} decisions agree"
        facts = {"read": report.entries, "decisions": report.decisions}
        return Finding("chain", Status.OK, message, facts=facts)
    seq, head, at = max(0, state.seq - LAST), GENESIS, ""
    before = opened.store.record(seq) if seq else None
    if before is not None:
        event_of(before, seq)  # Its hash is that of its contents.
        head = before.hash
    read = falls = 0
    for record in opened.store.read(seq):
        event = read_record(record, seq + 1, head)
        seq, head = record.seq, record.hash
        falls += event.at < at
        at, read = event.at, read + 1
    facts = {"read": read, "falling_times": falls}
    if falls:
        message = f"{falls} of the last {read} entries are older than the entry"
        return Finding("chain", Status.WARN, f"{message} before them", facts=facts)
    message = f"the last {read} entries are in order"
    return Finding("chain", Status.OK, message, facts=facts)


def _check_last(state: State, now: str) -> Finding:
    """Hold the clock against the last entry, whose time stays."""
    if not state.at:
        return Finding("last entry", Status.OK, "there is none")
    ahead = _seconds_between(state.at, now)
    facts = {"seconds_ago": ahead}
    remedy = "set the clock, for example with NTP"
    if ahead > YEARS_MAX * _YEAR_SECONDS:
        message = f"it is from {state.at[:10]}, but the clock shows {now[:10]}"
        return Finding("last entry", Status.FAIL, message, remedy, facts)
    if ahead < -_APART_SECONDS:
        message = (
            f"it is {-ahead} seconds ahead of the clock; until then, new entries get"
            " its time"
        )
        return Finding("last entry", Status.WARN, message, remedy, facts)
    return Finding("last entry", Status.OK, f"{state.at[:19]}Z", facts=facts)


def _check_policy(view: LedgerView) -> Finding:
    if view.state().policy is None:
        message, remedy = "none is active", "modicum init --policy policy.yaml"
        return Finding("policy", Status.WARN, message, remedy)
    try:
        compiled = view.policy()
    except ModicumError as error:
        return of_error("policy", error)
    rules, warnings = len(compiled.rules), len(compiled.warnings)
    facts = {"rules": rules, "warnings": warnings}
    message = f"`{compiled.policy.name}`, {rules} rules"
    if warnings:
        message += f", {warnings} warnings: {compiled.warnings[0].message}"
        remedy = "run  modicum policy lint  on its file"
        return Finding("policy", Status.WARN, message, remedy, facts)
    return Finding("policy", Status.OK, message, facts=facts)


def _check_reservations(opened: Opened, state: State) -> Finding:
    """Look for forgotten reservations, which hold budget for nothing."""
    now = opened.clock.now()
    forgotten = []
    for release in state.open:
        standing = state.releases[release]
        record = opened.store.record(standing.seq)
        if record is None or standing.status is not ReleaseStatus.RESERVED:
            continue
        at = event_of(record, standing.seq).at
        if _seconds_between(at, now) > FORGOTTEN_SECONDS:
            forgotten.append(release)
    started = sum(
        one.status is ReleaseStatus.STARTED for one in state.releases.values()
    )
    facts = {"reserved": len(state.open), "old": len(forgotten), "started": started}
    if forgotten:
        message = f"{len(forgotten)} are older than a day, such as `{forgotten[0]}`"
        remedy = "start them, or cancel them with  modicum release cancel"
        return Finding("reservations", Status.WARN, message, remedy, facts)
    message = f"{len(state.open)} open, {started} started"
    return Finding("reservations", Status.OK, message, facts=facts)


def _check_requests(state: State) -> Finding:
    """Count the approved or refused releases that were never submitted."""
    releases = {one.content for one in state.releases.values()}
    policies = {one.digest for one in state.policies}
    waiting = [
        kind
        for kind, content in state.approvals
        if content not in (policies if kind == "policy" else releases)
    ]
    facts = {"waiting": len(waiting)}
    message = f"{len(waiting)} with votes, not yet submitted"
    return Finding("requests", Status.OK, message, facts=facts)


def _check_pending(state: State, now: str) -> Finding:
    """Look for requests and proposals that people overlooked."""
    requests, proposals = state.waiting.requests, state.waiting.proposals
    since = [one.at for one in requests.values()]
    since += [one.at for one in proposals.values()]
    oldest = max(0, _seconds_between(min(since), now)) if since else 0
    facts = {
        "requests": len(requests),
        "proposals": len(proposals),
        "oldest_seconds": oldest,
    }
    message = f"{len(requests)} requests and {len(proposals)} proposals await approval"
    if oldest > OVERLOOKED_SECONDS:
        message += f", the oldest for {oldest // (24 * 60 * 60)} days"
        remedy = "modicum request list , and  modicum policy proposals"
        return Finding("pending", Status.WARN, message, remedy, facts)
    return Finding("pending", Status.OK, message, facts=facts)


def check_snapshot(store: Store, state: State) -> Finding:
    """Return how much of a log is read when a ledger is opened."""
    data = store.load_snapshot()
    found = read_snapshot(data) if data else None
    behind = state.seq - (found.state.seq if found else 0)
    facts = {"is_there": data is not None, "entries_behind": behind}
    if data is not None and found is None:
        message = "it is damaged or from another version, and ignored"
        remedy = "nothing: the next one replaces it"
        return Finding("snapshot", Status.WARN, message, remedy, facts)
    if behind > 2 * SNAPSHOT_EVERY:
        message = f"startup replays {behind} entries"
        remedy = "check that the ledger's user may write the snapshot"
        return Finding("snapshot", Status.WARN, message, remedy, facts)
    return Finding(
        "snapshot", Status.OK, f"startup replays {behind} entries", facts=facts
    )


def _seconds_between(earlier: str, later: str) -> int:
    between = datetime.fromisoformat(later) - datetime.fromisoformat(earlier)
    return int(between.total_seconds())
