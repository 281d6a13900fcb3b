"""Responses of a server, as values."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from datetime import date
from fractions import Fraction
from typing import Any, Final, TypeVar

import msgspec

from modicum.api.local.escrow.approvals import RecordedVersionVote
from modicum.api.local.escrow.disclosure import DisclosedResult
from modicum.api.local.governance.approval_cases import VoteEntry
from modicum.api.local.views.contracts import recorded_flow
from modicum.api.schema import approval as schema
from modicum.api.schema import escrow as escrow_schema
from modicum.api.schema.policy import Approval as ApprovalShape
from modicum.api.schema.release import Decision, DecisionText, ReleaseState
from modicum.api.schema.shape import convert, plain
from modicum.client.problems import not_understood
from modicum.core.errors import InputError, UnavailableError
from modicum.escrow.programs import Program, Range
from modicum.ledger import RecordedRelease, ReleaseStatus, Standing
from modicum.ledger.decision.approvals import ApprovalState
from modicum.ledger.log.codec import release_from_plain
from modicum.ledger.log.contracts import Version
from modicum.ledger.state.consent import Consent, Consents, Ownership
from modicum.ledger.state.datasets import OWNER, DataSet, DataVersion
from modicum.ledger.state.flow import Flow
from modicum.ledger.state.lifecycle import unknown_release
from modicum.policy.model import Approval
from modicum.policy.predicates import Constant


def approval_of(one: ApprovalShape | schema.ApprovalStatus) -> Approval:
    """Return a required approval; the server determines which releases need it."""
    return Approval(
        when=Constant(value=True),
        need=one.need,
        roles=one.roles,
        requester_may_approve=one.requester_may_approve,
        mark=None,
    )


def approval_states_of(
    found: Iterable[schema.ApprovalStatus],
) -> tuple[ApprovalState, ...]:
    """Return the state of approvals."""
    return tuple(map(_approval_state, found))


def _approval_state(one: schema.ApprovalStatus) -> ApprovalState:
    found = ApprovalState(
        approval_of(one), one.approved_by, one.rejected_by, one.left, one.requesters
    )
    # It is given only if all data agrees on that.
    if (found.given, found.missing) != (one.given, one.missing):
        raise not_understood("its approval is inconsistent").alone()
    return found


def vote_entries_of(found: Iterable[schema.Vote]) -> tuple[VoteEntry, ...]:
    """Return votes, oldest first."""
    return tuple(
        VoteEntry(
            *vote_of(one, one.roles),
            at=one.at,
            content=one.content,
            reason=one.reason,
        )
        for one in found
    )


def vote_of(
    one: schema.CastVote, roles: tuple[str, ...]
) -> tuple[str, bool, tuple[str, ...], int, str]:
    """Return the fields of an agreement."""
    return one.by, one.approves, roles, one.entry, one.key or ""


T = TypeVar("T")


def decoded(kind: type[T], document: object) -> T:
    """Return an answer as a shape; keys that this version does not know are ignored."""
    try:
        return convert(document, kind)
    except msgspec.ValidationError as error:
        raise not_understood(str(error)).alone() from None


def decision_in(reply: Any) -> Decision:
    """Return a decision without its prose, which another version may form otherwise."""
    if isinstance(reply, dict):
        reply = {key: value for key, value in reply.items() if key != "text"}
    return decoded(Decision, reply)


def text_of(reply: Mapping[str, Any]) -> DecisionText:
    """Return the prose of a decision; none if it is missing, or of another form."""
    text = reply.get("text")
    if isinstance(text, dict):
        # The rest is not shown, and another version may form it otherwise.
        text = {key: text[key] for key in ("reasons", "added") if key in text}
    try:
        return decoded(DecisionText, text)
    except UnavailableError:
        return DecisionText()


def version_of(reply: object) -> Version:
    """Return a version of a data set."""
    one = decoded(escrow_schema.Version, reply)
    return Version(one.id, one.version)


def data_of(reply: object) -> dict[str, DataSet]:
    """Return data sets, by name."""
    return {
        one.data: DataSet(
            Ownership(one.owners, one.quorum),
            one.contracts,
            one.bits,
            {
                each.version: DataVersion(
                    each.sealed,
                    each.media,
                    each.table,
                    each.entry,
                    each.by,
                    each.agreed,
                    each.shredded,
                )
                for each in one.versions
            },
        )
        for one in decoded(escrow_schema.DataSetList, reply).data_sets
    }


def flow_of(reply: Mapping[str, Any]) -> Flow:
    """Return a contract, checked against its digest."""
    try:
        flow = recorded_flow(decoded(dict[str, Any], reply.get("recorded")))
    except ValueError as error:
        raise not_understood(str(error)).alone() from None
    if flow.contract.digest != reply.get("digest"):
        raise not_understood("its contract does not match its digest").alone()
    return flow


def consents_of(one: escrow_schema.Consents) -> Consents:
    """Return the consents that a contract needs."""
    return Consents(tuple(map(_consent_of, one.by_data)), one.people)


def _consent_of(one: escrow_schema.Consent) -> Consent:
    return Consent(one.data, one.need, one.approved_by, one.rejected_by, one.left)


def program_of(reply: object) -> Program | None:
    """Return a program, checked against its digest; None if there is none."""
    if reply is None:
        return None
    one = decoded(escrow_schema.Program, reply)
    try:
        low, high = map(Fraction, one.range)
        program = Program(
            one.language,
            base64.b64decode(one.code_base64, validate=True),
            one.arguments,
            Range(low, high),
            one.compares,
            one.catalogue or "",
        )
    except (ValueError, ZeroDivisionError, InputError) as error:
        raise not_understood("its program is invalid").alone() from error
    if program.digest != one.digest:
        raise not_understood("its program does not match its digest").alone()
    return program


def version_vote_of(reply: object) -> RecordedVersionVote:
    """Return an owner's vote on a version of their data."""
    one = decoded(escrow_schema.VersionVoteReceipt, reply)
    return RecordedVersionVote(
        *vote_of(one, (OWNER,)),
        version=Version(one.id, one.version),
        content=one.digest,
        consent=_consent_of(one.consent),
        repeated=one.repeated,
    )


def disclosed_of(reply: object) -> DisclosedResult:
    """Return a disclosure."""
    one = decoded(escrow_schema.Disclosed, reply)
    return DisclosedResult(
        one.contract,
        one.flow,
        one.differentially_private,
        one.answers,
        one.score,
        None if one.bin is None else plain(one.bin),
    )


#: No release has a longer id.
_ID_CHARACTERS_MAX: Final = 200
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


def named(release: str, hole: str = "release") -> dict[str, str]:
    """Return the id of a release, or of a contract, as a path parameter."""
    if not 0 < len(release) <= _ID_CHARACTERS_MAX or release in {".", ".."}:
        raise unknown_release(release)
    return {hole: release}


def recorded_release(reply: Any) -> RecordedRelease:
    """Return a release in the ledger's stored form."""
    try:
        return release_from_plain(reply)
    except ValueError as error:
        raise not_understood(f"its release is invalid ({error})") from None


def standing_of(reply: object) -> Standing:
    """Return the status of a release."""
    one = decoded(ReleaseState, reply)
    try:
        status = ReleaseStatus(one.status)
    except ValueError:
        raise not_understood(f"unknown status `{one.status[:40]}`") from None
    if not _DAY.fullmatch(one.day):
        raise not_understood(f"invalid day `{one.day[:40]}`")
    try:
        day = date.fromisoformat(one.day).toordinal()
    except ValueError:
        raise not_understood(f"invalid day `{one.day}`") from None
    return Standing(
        one.release,
        one.content,
        status,
        one.expires_at or "",
        one.entry,
        day,
    )
