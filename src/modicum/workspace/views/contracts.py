"""Contracts and data sets of the escrow, as plain JSON."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

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
from modicum.ledger.state.data_sets import DataSet
from modicum.ledger.state.flow import Flow
from modicum.workspace.escrowing.looking import Examined, Looked, Priced, Word
from modicum.workspace.escrowing.speaking import SaidToContract, SaidToData


def flow_to_dict(flow: Flow) -> dict[str, Any]:
    """Return a contract, and what became of it.

    Args:
        flow: The contract.
    """
    one = flow.contract
    return {
        "contract": one.id,
        "digest": one.digest,
        "flow": one.flow,
        "analyst": one.analyst,
        "recipients": list(one.recipients),
        "by": flow.by,
        "at": flow.at,
        "entry": flow.seq,
        "data": {table: version_to_dict(of) for table, of in one.data.items()},
        "parent": one.parent or None,
        "expires_at": one.expires_at,
        "uses": one.uses,
        "uses_left": flow.uses_left,
        "withdrawn": flow.withdrawn,
        "results": sorted(flow.results),
        "released": flow.released,
    }


def recorded_flow_to_dict(flow: Flow) -> dict[str, Any]:
    """Return a contract exactly, as the ledger keeps it, and what became of it.

    Args:
        flow: The contract.
    """
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


def recorded_flow(told: Mapping[str, Any]) -> Flow:
    """Return what `recorded_flow_to_dict` was given.

    Args:
        told: What it returned.

    Raises:
        ValueError: If it is something else.
    """
    fields = dict(told)
    try:
        contract = from_plain(fields.pop("contract"))
        running = dict(fields.pop("running"))
        return Flow(contract, running=running, **fields)
    except (KeyError, TypeError) as error:
        message = "it is no contract as the ledger keeps it"
        raise ValueError(message) from error


def version_to_dict(version: Version) -> dict[str, Any]:
    """Return a version of a data set.

    Args:
        version: The version.
    """
    return {"id": version.id, "version": version.number}


def consents_to_dict(consents: Consents) -> dict[str, Any]:
    """Return where the owners stand.

    Args:
        consents: Where they stand.
    """
    return {
        "given": consents.given,
        "lacking": consents.lacking,
        "people": consents.people,
        "by_data": [_consent_to_dict(one) for one in consents.by_data],
    }


def _consent_to_dict(one: Consent) -> dict[str, Any]:
    return {
        "data": one.data,
        "need": one.quorum,
        "missing": one.missing,
        "approved_by": list(one.agreed),
        "rejected_by": list(one.refused),
        "left": list(one.left),
    }


def looked_to_dict(looked: Looked) -> dict[str, Any]:
    """Return a contract as it is listed.

    Args:
        looked: The contract.
    """
    return {
        **flow_to_dict(looked.flow),
        "stage": looked.stage,
        "consent": consents_to_dict(looked.consents),
    }


def examined_to_dict(found: Examined) -> dict[str, Any]:
    """Return all that the ledger knows of a contract, without queries and program.

    Args:
        found: The contract.
    """
    terms = found.looked.flow.contract.terms
    return {
        **looked_to_dict(found.looked),
        "reason": found.reason,
        "terms": to_plain(found.looked.flow.contract)["terms"],
        "bits": terms.bits if isinstance(terms, RawSignalTerms) else None,
        "words": words_to_list(found.words),
        "follows": [one.flow.contract.id for one in found.above],
        "shredded": list(found.shredded),
        "ledger": {"seq": found.seq, "head": found.head},
    }


def words_to_list(words: Iterable[Word]) -> list[dict[str, Any]]:
    """Return what owners said to a contract.

    Args:
        words: What they said, oldest first.
    """
    return [
        {
            "by": one.by,
            "at": one.at,
            "approves": one.approves,
            "reason": one.reason,
            "key": one.key or None,
            "entry": one.seq,
        }
        for one in words
    ]


def priced_to_dict(one: Priced, *, deep: bool = True) -> dict[str, Any]:
    """Return a query of a contract, or its score of blocks.

    Args:
        one: The query, or the score.
        deep: Whether to tell the losses of all rules, too, and who filled what is full.
    """
    told, decision = None, one.decision
    if decision is not None:
        told = decision.to_dict(deep=deep, losses="all" if deep else "none")
    return {
        "release": one.charge.release,
        "content": one.charge.content,
        "text": one.charge.text,
        "problem": one.problem or None,
        "decision": told,
    }


def program_to_dict(
    program: Program, terms: TaskTerms, found: Inspection
) -> dict[str, Any]:
    """Return a program as its owners read it.

    Args:
        program: The program.
        terms: What else stands in its contract.
        found: What there is to say about it.
    """
    plain = program.to_plain()
    python = program.language == "python"
    return {
        "language": program.language,
        "catalogue": found.vetted or None,
        "digest": program.digest,
        "code": plain["code"],
        "code_base64": base64.b64encode(program.code).decode("ascii"),
        "text": program.code.decode("utf-8", "replace") if python else None,
        "arguments": plain["arguments"],
        "range": plain["range"],
        "compares": program.compares,
        "tier": terms.tier,
        "seconds": terms.seconds,
        "memory_mib": terms.memory_mib,
        "remarks": remarks_to_list(found),
    }


def remarks_to_list(found: Inspection) -> list[dict[str, Any]]:
    """Return what is worth a look in a program.

    Args:
        found: What there is to say about it.
    """
    return [
        {"line": one.line, "kind": one.kind, "text": one.text, "why": WHY[one.kind]}
        for one in found.remarks
    ]


def said_to_contract_to_dict(said: SaidToContract) -> dict[str, Any]:
    """Return what an owner said just now, and where the contract stands after it.

    Args:
        said: What they said.
    """
    contract = said.flow.contract
    return {
        "contract": contract.id,
        "digest": contract.digest,
        "by": said.by,
        "approves": said.approves,
        "key": said.key or None,
        "entry": said.seq,
        "repeated": said.repeated,
        "consent": consents_to_dict(said.consents),
    }


def said_to_data_to_dict(said: SaidToData) -> dict[str, Any]:
    """Return what an owner said just now, and where the version stands after it.

    Args:
        said: What they said.
    """
    return {
        **version_to_dict(said.version),
        "digest": said.content,
        "by": said.by,
        "approves": said.approves,
        "key": said.key or None,
        "entry": said.seq,
        "repeated": said.repeated,
        "consent": _consent_to_dict(said.consent),
    }


def data_set_to_dict(name: str, one: DataSet) -> dict[str, Any]:
    """Return a data set.

    Args:
        name: What it is called.
        one: The data set.
    """
    return {
        "data": name,
        "owners": {who: list(keys) for who, keys in one.ownership.owners.items()},
        "quorum": one.ownership.quorum,
        "contracts": one.contracts_max,
        "bits": one.bits_max,
        "versions": [
            {
                "version": number,
                "media": version.media,
                "table": version.table,
                "entry": version.seq,
                "by": version.by,
                "agreed": version.agreed,
                "digest": version.content(Version(name, number)),
                "shredded": version.shredded,
                "sealed": version.sealed,
            }
            for number, version in one.versions.items()
        ],
    }
