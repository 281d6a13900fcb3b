"""Data sets and flows of data, as plain JSON."""

from __future__ import annotations

from modicum.api.local.views.contracts import consents_view, version_view
from modicum.api.schema.shape import plain
from modicum.ledger.log.contracts import (
    Contract,
    QueryTerms,
    RawSignalTerms,
    TaskTerms,
)
from modicum.reports.approval_cases import CaseVote
from modicum.reports.escrow_timeline import (
    Bits,
    ContractRecord,
    DatasetRecord,
    EscrowTimeline,
    RunRecord,
    VersionRecord,
)
from modicum.reports.log_position import Placed


def escrow_to_dict(escrow: EscrowTimeline) -> dict[str, object]:
    """Return all of an escrow. Queries and programs are referenced by digest."""
    return {
        "data_sets": [_data(one) for one in escrow.data.values()],
        "contracts": [_flow(one) for one in escrow.flows.values()],
        "not_private": [_raw(one) for one in escrow.raw],
        "bits": [_bits(one) for one in escrow.bits],
        "runs_without_end": [
            {"contract": flow.contract.id, "run": run.number, **run.started.to_dict()}
            for flow, run in escrow.runs_without_end
        ],
    }


def _data(one: DatasetRecord) -> dict[str, object]:
    return {
        "data": one.id,
        "owners": {who: list(keys) for who, keys in one.ownership.owners.items()},
        "quorum": one.ownership.quorum,
        "contracts": one.contracts_max,
        "bits": one.bits_max,
        "versions": [_version(version) for version in one.versions],
    }


def _version(one: VersionRecord) -> dict[str, object]:
    return {
        "version": one.number,
        **one.registered.to_dict(),
        "media": one.media,
        "sealed": one.sealed,
        "shredded": _maybe(one.shredded),
        "reason": one.reason,
    }


def _maybe(entry: Placed | None) -> dict[str, object] | None:
    return None if entry is None else entry.to_dict()


def _flow(flow: ContractRecord) -> dict[str, object]:
    one = flow.contract
    return {
        "contract": one.id,
        "digest": one.digest,
        "flow": one.flow,
        "state": flow.state,
        **flow.proposed.to_dict(),
        "analyst": one.analyst,
        "recipients": list(one.recipients),
        "reason": flow.reason,
        "data": {table: plain(version_view(of)) for table, of in one.data.items()},
        "parent": one.parent or None,
        "expires_at": one.expires_at,
        "uses": one.uses,
        **_terms(one),
        "bits": flow.bits or None,
        "votes": [_vote(vote) for vote in flow.votes],
        "consent": plain(consents_view(flow.consents)),
        "runs": [_run(run) for run in flow.runs],
        "deliveries": [
            {**out.entry.to_dict(), "to": out.to, "agreed": list(out.agreed)}
            for out in flow.disclosures
        ],
        "withdrawn": _maybe(flow.withdrawn),
    }


def _terms(contract: Contract) -> dict[str, object]:
    """Return the terms, without queries and programs, which are not public."""
    terms = contract.terms
    charges = terms.charges if isinstance(terms, QueryTerms | TaskTerms) else ()
    return {
        "result": None if isinstance(terms, QueryTerms | TaskTerms) else terms.result,
        "bins": terms.bins if isinstance(terms, RawSignalTerms) else None,
        "tier": terms.tier if isinstance(terms, TaskTerms) else None,
        "charges": [
            {"release": one.release, "content": one.content} for one in charges
        ],
    }


def _vote(vote: CaseVote) -> dict[str, object]:
    return {
        **vote.entry.to_dict(),
        "approves": vote.body.approves,
        "reason": vote.body.reason,
        "key": vote.body.key or None,
        "key_named": vote.key_named,
        "countable": vote.countable,
    }


def _run(run: RunRecord) -> dict[str, object]:
    return {
        "run": run.number,
        **run.started.to_dict(),
        "agreed": list(run.agreed),
        "how": run.how,
        "ended": _maybe(run.ended),
        "results": dict(sorted(run.results.items())),
    }


def _raw(flow: ContractRecord) -> dict[str, object]:
    one = flow.contract
    return {
        "contract": one.id,
        "digest": one.digest,
        "analyst": one.analyst,
        "data_sets": list(one.data_sets),
        "bits": flow.bits,
        "disclosed": _maybe(flow.disclosed),
        "deliveries": [
            {**out.entry.to_dict(), "to": out.to} for out in flow.disclosures
        ],
    }


def _bits(one: Bits) -> dict[str, object]:
    return {
        "person": one.person,
        "data": one.data,
        "disclosed": one.disclosed,
        "may_follow": one.may_follow,
        "allowed": one.allowed,
        "contracts": list(one.contracts),
    }
