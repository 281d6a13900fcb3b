"""Corrections of past releases: requested by one person, approved by another.

Only the periods that a release reads may be corrected. All else stays as recorded,
under the policy of that time. See ADR 0041.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import msgspec.structs

from modicum.api.local.backfill import id_of, price_past, refuse_future
from modicum.api.local.balances import Entry
from modicum.api.local.evaluation import (
    Description,
    Evaluation,
    corrected_answer,
    place_of,
)
from modicum.api.local.governance.approval_cases import (
    NOT_BY_REQUESTERS,
    ApprovalCase,
    about_release,
    active_policy,
    reason_text,
    refused,
)
from modicum.api.local.governance.approvals import (
    Ballot,
    RecordedVote,
    record_vote,
    refuse_other_content,
    reviewed_head,
)
from modicum.api.local.governance.requests import Requested, outdated, requested_in
from modicum.core.errors import Code, ConflictError, InputError, Problem
from modicum.ledger import RecordedRelease, ReleaseStatus, event_of
from modicum.ledger.decision.approvals import (
    approved_by,
    asking_people,
    release_approvals,
)
from modicum.ledger.log.events import PastRedescribed, ReleaseRequested
from modicum.ledger.log.recorded_release import difference
from modicum.ledger.state.lifecycle import not_correctable, unknown_release
from modicum.ledger.state.pending import is_requested
from modicum.policy.declarations.roles import person_key
from modicum.policy.past_units import vocabulary_of


def redescribe(entry: Entry, release: Description, reason: str) -> Requested | None:
    """Request the correction of a past release. The charge does not change yet."""
    why = reason_text(reason, "correcting a past release")
    compiled, state = active_policy(entry.book), entry.book.state
    policy = compiled.policy
    before, now = _described(entry, release)
    if now.content == before.content:
        return None
    repeated = is_requested(state.waiting, now.id, now.content, policy.digest)
    if not repeated:
        entry.add(ReleaseRequested(now, policy.digest, why))
    known, followed = state.releases[now.id], entry.followed(compiled)
    decision = corrected_answer(
        Evaluation("the ledger", entry.book, entry.actor),
        followed.balances,
        known,
        followed.migrated(before, known.seq),
        followed.migrated(now, known.seq),
    )
    states = release_approvals(now, policy, state)
    return Requested(state.waiting.requests[now.id], states, repeated, decision)


def corrects(entry: Entry, release: Description | str) -> bool:
    """Return whether the subject of a vote is the correction of a past release."""
    named = release if isinstance(release, str) else id_of(release)
    state = entry.book.state
    return named in state.releases and named in state.waiting.requests


def vote_on_correction(
    entry: Entry, release: Description | str, ballot: Ballot
) -> RecordedVote:
    """Approve or refuse the correction of a past release.

    Once its approvals are complete, the release is charged by its new description.
    """
    compiled, state = active_policy(entry.book), entry.book.state
    named = release if isinstance(release, str) else id_of(release)
    known = state.waiting.requests[named]
    now = requested_in(known, entry.read).release
    called = f"correction of release `{named}`"
    if not isinstance(release, str):
        ballot = replace(ballot, content=_described(entry, release)[1].content)
    topic = replace(
        about_release(now, compiled.policy),
        called=called,
        release=None,
        since=known.seq,
    )
    refuse_other_content(topic, ballot.content)
    if known.policy != compiled.policy.digest:
        if ballot.approves:
            raise outdated(called, known.by)
        return record_vote(entry, replace(topic, approval_states=None), ballot)
    asking = asking_people(state.waiting.requesters[now.content], compiled.policy)
    if ballot.approves and person_key(entry.actor) in asking:
        raise refused(
            f"`{entry.actor}` cannot approve the {called}",
            NOT_BY_REQUESTERS,
        )
    if topic.states_in(state):
        vote = record_vote(entry, topic, ballot)
    elif ballot.signer is not None or entry.actor in compiled.policy.keys:
        # A signature is stored with the signed statement.
        vote = record_vote(entry, replace(topic, approval_states=None), ballot)
    else:
        vote = _by_one(entry, topic, ballot)
    states = topic.states_in(state)
    if not ballot.approves or not all(one.given for one in states):
        return vote
    standing = state.releases[named]
    before = entry.book.release_of(standing, entry.record)
    why = reason_text(ballot.reason, "approving")
    digest, agreed = compiled.policy.digest, approved_by(states)
    entry.add(PastRedescribed(now, before, digest, why, agreed))
    return msgspec.structs.replace(vote, corrected_in=state.seq, approval_states=states)


def made_already(
    entry: Entry, release: Description | str, ballot: Ballot
) -> RecordedVote | None:
    """Return that a past release is described so already; None if it is not.

    Files of corrections may hold releases that need none, or that were corrected. The
    answer names who described it, and the entry.
    """
    state = entry.book.state
    if isinstance(release, str) or not ballot.approves:
        return None
    named = id_of(release)
    known = state.releases.get(named)
    if known is None or known.status is not ReleaseStatus.RECORDED:
        return None
    before, now = _described(entry, release)
    if now.content != before.content:
        return None
    topic = ApprovalCase(
        "release", named, now.content, f"correction of release `{named}`"
    )
    refuse_other_content(topic, ballot.content)
    reviewed_head(ballot, state)
    seq = state.described_in(known)
    (record,) = islice(entry.read(seq - 1), 1)
    by = event_of(record, seq).actor
    return RecordedVote(by, True, (), seq, topic=topic, repeated=True, corrected_in=seq)  # noqa: FBT003


def _by_one(entry: Entry, topic: ApprovalCase, ballot: Ballot) -> RecordedVote:
    """Return the vote of the one person needed where the policy requires no approval.

    Their agreement is the correction itself; nothing has to be written to refuse it.
    """
    if not ballot.approves:
        raise refused(
            f"the {topic.called} needs no approval under the active policy",
            "it takes effect only when somebody approves it; the requester can"
            " withdraw it with  modicum request withdraw",
        )
    reviewed_head(ballot, entry.book.state)
    seq = entry.book.state.seq + 1
    return RecordedVote(entry.actor, ballot.approves, (), seq, topic=topic)


def _described(
    entry: Entry, release: Description
) -> tuple[RecordedRelease, RecordedRelease]:
    """Return a past release as it is described until now, and as it is to be."""
    state, named = entry.book.state, id_of(release)
    standing = state.releases.get(named)
    if standing is None:
        raise unknown_release(named)
    if standing.status is not ReleaseStatus.RECORDED:
        raise not_correctable(standing)
    policy = state.policy_at(standing.seq)
    vocabulary = vocabulary_of(policy.text)
    if vocabulary is None:
        raise ConflictError(
            Problem(
                Code.NOT_CORRECTABLE,
                f"release `{named}` was recorded under the policy `{policy.name}`,"
                " which this version cannot read",
            )
        )
    before = entry.book.release_of(standing, entry.record)
    now, _ = price_past(release, vocabulary)
    other = difference(before, now)
    if other:
        raise InputError(
            Problem(
                Code.CORRECTS_MORE,
                f"release `{named}` was recorded with a different `{other}`",
                place_of(release),
                notes=("a correction may change `periods` only",),
                help="start from the recorded file, and change `periods` only",
            )
        )
    (record,) = islice(entry.read(standing.seq - 1), 1)
    refuse_future(now, event_of(record, standing.seq).at, place_of(release))
    return before, now
