"""Votes of owners on contracts and versions: checked in the turn, and recorded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from modicum.api.local.balances import Entry
from modicum.api.local.governance.approval_cases import active_policy, reason_text
from modicum.api.local.governance.approvals import Ballot, refuse_content, reviewed_head
from modicum.core.errors import ApprovalError, Code, Problem
from modicum.ledger.log.approval_statement import is_genuine, signed
from modicum.ledger.log.contracts import Version
from modicum.ledger.log.events import ApprovalGiven
from modicum.ledger.state.consent import Agreement, Consent, Consents
from modicum.ledger.state.datasets import OWNER, version_of
from modicum.ledger.state.flow import Flow

#: The fields of an agreement.
_Vote: TypeAlias = tuple[str, bool, tuple[str, ...], int, str]


class RecordedContractVote(Agreement, frozen=True, kw_only=True):
    """The vote of an owner on a contract, and the state after it.

    Attributes:
        flow: The contract.
        consents: The consents of the owners.
        repeated: Whether it equals their last vote, so that nothing was added.
    """

    flow: Flow
    consents: Consents
    repeated: bool = False


class RecordedVersionVote(Agreement, frozen=True, kw_only=True):
    """The vote of an owner on a version of their data, and the state after it.

    Attributes:
        version: The version.
        content: The SHA-256 of the content voted on.
        consent: The consent of the owners.
        repeated: Whether it equals their last vote, so that nothing was added.
    """

    version: Version
    content: str
    consent: Consent
    repeated: bool = False


def vote_on_version(
    entry: Entry, version: Version, ballot: Ballot
) -> RecordedVersionVote:
    """Record an owner's vote on a version, unless it repeats the last one."""
    data = entry.book.state.escrow.data
    content = version_of(data, version).content(version)
    called = f"version {version.number} of `{version.id}`"
    vote, repeated = _add_vote(
        entry, ("data", version.id, content), called, [version.id], ballot
    )
    votes = entry.book.state.approvals.get(("data", content), ())
    consent = data[version.id].consent(version, votes)
    return RecordedVersionVote(
        *vote, version=version, content=content, consent=consent, repeated=repeated
    )


def vote_on_contract(entry: Entry, flow: Flow, ballot: Ballot) -> RecordedContractVote:
    """Record an owner's vote on a contract, unless it repeats the last one."""
    contract, state = flow.contract, entry.book.state
    vote, repeated = _add_vote(
        entry,
        ("contract", contract.id, contract.digest),
        f"contract `{contract.id}`",
        contract.data_sets,
        ballot,
    )
    votes = state.approvals.get(("contract", contract.digest), ())
    consents = state.escrow.consents(flow, votes)
    return RecordedContractVote(*vote, flow=flow, consents=consents, repeated=repeated)


def _add_vote(
    entry: Entry,
    about: tuple[Literal["contract", "data"], str, str],
    called: str,
    data_sets: Iterable[str],
    ballot: Ballot,
) -> tuple[_Vote, bool]:
    """Record a vote; return it, and whether it was recorded before."""
    refuse_content(called, about[2], ballot.content)
    body = ApprovalGiven(
        *about,
        ballot.approves,
        (OWNER,),
        reason_text(ballot.reason, "approving or rejecting"),
        reviewed_head(ballot, entry.book.state),
    )
    body = _signed(body, entry, data_sets, ballot)
    before = _said_before(entry, body)
    if before is None:
        entry.add(body)
    seq = entry.book.state.seq if before is None else before.seq
    vote = entry.actor, body.approves, body.roles, seq, body.key
    return vote, before is not None


def _signed(
    body: ApprovalGiven, entry: Entry, data_sets: Iterable[str], ballot: Ballot
) -> ApprovalGiven:
    data = entry.book.state.escrow.data
    pinned = {
        key
        for name in data_sets
        for key in data[name].ownership.owners.get(entry.actor, ())
    }
    key = None if ballot.signer is None else ballot.signer.public.hex()
    if ballot.approves and pinned and key not in pinned:
        how = "with another key" if key else "without a signature"
        raise _badly_signed(
            f"`{entry.actor}` cannot approve {how}",
            "the data was registered with keys for this owner",
        )
    if ballot.signer is None:
        return body
    policy = active_policy(entry.book).policy.digest
    own = signed(body, by=entry.actor, policy=policy, signer=ballot.signer)
    if not is_genuine(own, entry.actor, policy):
        raise _badly_signed(
            f"the signature of `{entry.actor}` does not match their vote",
            "it covers the whole vote, the head and the active policy",
        )
    return own


def _badly_signed(message: str, note: str) -> ApprovalError:
    return ApprovalError(
        Problem(Code.NOT_SIGNED, message, notes=(note,), help="sign with  --key FILE")
    )


def _said_before(entry: Entry, body: ApprovalGiven) -> Agreement | None:
    """Return an actor's last vote if it is the same; else None."""
    votes = entry.book.state.approvals.get((body.subject, body.content), ())
    last = next((one for one in reversed(votes) if one.by == entry.actor), None)
    same = last is not None and (last.approves, last.key) == (body.approves, body.key)
    return last if same else None
