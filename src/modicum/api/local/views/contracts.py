"""Public forms of contracts and data sets of the escrow."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, cast

from msgspec import UNSET
from msgspec.structs import asdict

from modicum.api.local.escrow.approvals import RecordedContractVote, RecordedVersionVote
from modicum.api.local.escrow.review import (
    ContractRecord,
    ContractReview,
    QueryPrice,
)
from modicum.api.local.governance.approval_cases import VoteEntry
from modicum.api.schema import escrow as schema
from modicum.api.schema.ledger import Head
from modicum.escrow.inspection import WHY, Inspection
from modicum.escrow.programs import Program
from modicum.ledger.log.contracts import (
    RawSignalTerms,
    TaskTerms,
    Version,
    from_plain,
    to_plain,
)
from modicum.ledger.state.consent import Consent, Consents
from modicum.ledger.state.datasets import DataSet
from modicum.ledger.state.flow import Flow


def contract_view(flow: Flow) -> schema.Contract:
    """Return a contract and its state."""
    one = flow.contract
    return schema.Contract(
        contract=one.id,
        digest=one.digest,
        flow=cast(schema.FlowKind, one.flow),
        analyst=one.analyst,
        recipients=tuple(one.recipients),
        by=flow.by,
        at=flow.at,
        entry=flow.seq,
        data={table: version_view(of) for table, of in one.data.items()},
        parent=one.parent or None,
        expires_at=one.expires_at,
        uses=one.uses,
        uses_left=flow.uses_left,
        withdrawn=flow.withdrawn,
        results=tuple(sorted(flow.results)),
        released=flow.released,
    )


def recorded_flow_to_dict(flow: Flow) -> dict[str, Any]:
    """Return a contract exactly as stored, and its state."""
    return {
        "contract": to_plain(flow.contract),
        "by": flow.by,
        "at": flow.at,
        "seq": flow.seq,
        "version": flow.version,
        "withdrawn": flow.withdrawn,
        "runs": flow.runs,
        "running": [[run, by] for run, by in flow.running.items()],
        "results": dict(flow.results),
        "ended_by": flow.ended_by,
        "released": flow.released,
    }


def recorded_flow(document: Mapping[str, Any]) -> Flow:
    """Parse the result of `recorded_flow_to_dict`."""
    fields = dict(document)
    try:
        contract = from_plain(fields.pop("contract"))
        running = dict(fields.pop("running"))
        return Flow(contract=contract, running=running, **fields)
    except (KeyError, TypeError) as error:
        message = "it is not a stored contract"
        raise ValueError(message) from error


def version_view(version: Version) -> schema.Version:
    """Return a version of a data set."""
    return schema.Version(id=version.id, version=version.number)


def consents_view(consents: Consents) -> schema.Consents:
    """Return the consents of the owners."""
    return schema.Consents(
        given=consents.given,
        lacking=consents.lacking,
        people=consents.people,
        by_data=tuple(map(_consent_view, consents.by_data)),
    )


def _consent_view(one: Consent) -> schema.Consent:
    return schema.Consent(
        data=one.data,
        need=one.quorum,
        missing=one.missing,
        approved_by=tuple(one.agreed),
        rejected_by=tuple(one.refused),
        left=tuple(one.left),
    )


def listed_view(
    review: ContractReview, *, recorded: bool = False
) -> schema.ListedContract:
    """Return a contract as an item of a list."""
    flow = review.flow
    return schema.ListedContract(
        **asdict(contract_view(flow)),
        stage=review.stage,
        consent=consents_view(review.consents),
        recorded=recorded_flow_to_dict(flow) if recorded else UNSET,
    )


def details_view(
    found: ContractRecord,
    program: Program | None,
    inspection: Inspection | None,
    *,
    deep: bool = True,
    recorded: bool = False,
) -> schema.ContractDetails:
    """Return a contract as its owners read it before they agree."""
    contract = found.review.flow.contract
    terms, shown = contract.terms, None
    if isinstance(terms, TaskTerms) and program is not None and inspection is not None:
        shown = _program_view(program, terms, inspection)
    return schema.ContractDetails(
        **asdict(listed_view(found.review, recorded=recorded)),
        reason=found.reason,
        terms=cast(Any, to_plain(contract)["terms"]),
        bits=terms.bits if isinstance(terms, RawSignalTerms) else None,
        votes=votes_view(found.votes),
        follows=tuple(one.flow.contract.id for one in found.above),
        shredded=tuple(found.shredded),
        ledger=Head(seq=found.seq, head=found.head),
        queries=tuple(_priced_view(one, deep=deep) for one in found.queries),
        program=shown,
    )


def votes_view(votes: Iterable[VoteEntry]) -> tuple[schema.ContractVote, ...]:
    """Return the votes of owners on a contract, the oldest first."""
    return tuple(
        schema.ContractVote(
            by=one.by,
            at=one.at,
            approves=one.approves,
            reason=one.reason,
            key=one.key or None,
            entry=one.seq,
        )
        for one in votes
    )


def _priced_view(one: QueryPrice, *, deep: bool) -> schema.PricedQuery:
    shown, decision = None, one.decision
    if decision is not None:
        found = decision.explanation() if deep else None
        shown = decision.view(found, losses="all" if deep else "none")
    return schema.PricedQuery(
        release=one.charge.release,
        content=one.charge.content,
        text=one.charge.text,
        problem=one.problem or None,
        decision=shown,
    )


def _program_view(
    program: Program, terms: TaskTerms, found: Inspection
) -> schema.Program:
    plain: dict[str, Any] = dict(program.to_plain())
    python = program.language == "python"
    return schema.Program(
        language=program.language,
        catalogue=found.vetted or None,
        digest=program.digest,
        code=plain["code"],
        code_base64=base64.b64encode(program.code).decode("ascii"),
        text=program.code.decode("utf-8", "replace") if python else None,
        arguments=plain["arguments"],
        range=tuple(plain["range"]),
        compares=program.compares,
        tier=terms.tier,
        seconds=terms.seconds,
        memory_mib=terms.memory_mib,
        remarks=remarks_view(found),
    )


def remarks_view(found: Inspection) -> tuple[schema.ProgramRemark, ...]:
    """Return the passages of a program that reviewers should check."""
    return tuple(
        schema.ProgramRemark(
            line=one.line, kind=one.kind, text=one.text, why=WHY[one.kind]
        )
        for one in found.remarks
    )


def receipt_view(vote: RecordedContractVote) -> schema.ContractVoteReceipt:
    """Return the vote of an owner, and the state of the contract after it."""
    contract = vote.flow.contract
    return schema.ContractVoteReceipt(
        contract=contract.id,
        digest=contract.digest,
        by=vote.by,
        approves=vote.approves,
        key=vote.key or None,
        entry=vote.seq,
        repeated=vote.repeated,
        consent=consents_view(vote.consents),
    )


def version_receipt_view(vote: RecordedVersionVote) -> schema.VersionVoteReceipt:
    """Return the vote of an owner, and the state of the version after it."""
    return schema.VersionVoteReceipt(
        **asdict(version_view(vote.version)),
        digest=vote.content,
        by=vote.by,
        approves=vote.approves,
        key=vote.key or None,
        entry=vote.seq,
        repeated=vote.repeated,
        consent=_consent_view(vote.consent),
    )


def data_set_view(name: str, one: DataSet) -> schema.DataSet:
    """Return a data set and its versions."""
    return schema.DataSet(
        data=name,
        owners={who: tuple(keys) for who, keys in one.ownership.owners.items()},
        quorum=one.ownership.quorum,
        contracts=one.contracts_max,
        bits=one.bits_max,
        versions=tuple(
            schema.StoredVersion(
                version=number,
                media=cast(schema.Media, version.media),
                table=version.table,
                entry=version.seq,
                by=version.by,
                agreed=version.agreed,
                digest=version.content(Version(name, number)),
                shredded=version.shredded,
                sealed=version.sealed,
            )
            for number, version in one.versions.items()
        ),
    )
