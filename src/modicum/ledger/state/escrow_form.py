"""The escrow as plain data, and back; for digests of the state, and snapshots."""

from __future__ import annotations

from typing import Any

from modicum.core.canonical import Plain
from modicum.ledger.log.contracts import from_plain, to_plain
from modicum.ledger.state.consent import Ownership
from modicum.ledger.state.datasets import DataSet, DataVersion
from modicum.ledger.state.escrow import Escrow
from modicum.ledger.state.flow import Flow


def escrow_to_plain(escrow: Escrow) -> dict[str, Plain]:
    """Return all of the escrow as plain data.

    Args:
        escrow: The escrow.
    """
    return {
        "data_sets": [_data_set_to_plain(*one) for one in escrow.data.items()],
        "flows": [_flow_to_plain(one) for one in escrow.flows.values()],
    }


def escrow_from_plain(plain: dict[str, Any]) -> Escrow:
    """Return the escrow that plain data tells of.

    Args:
        plain: What `escrow_to_plain` returned.

    Raises:
        ValueError: If it is something else; so may `KeyError` and `TypeError` be.
    """
    flows = [_flow_from_plain(*one) for one in plain["flows"]]
    return Escrow(
        data=dict(_data_set_from_plain(*one) for one in plain["data_sets"]),
        flows={one.contract.digest: one for one in flows},
        names={one.contract.id: one.contract.digest for one in flows},
    )


def _data_set_to_plain(name: str, one: DataSet) -> Plain:
    owners = {person: list(keys) for person, keys in one.ownership.owners.items()}
    versions: list[Plain] = [
        [
            number,
            each.sealed,
            each.media,
            each.table,
            each.seq,
            each.by,
            each.agreed,
            each.shredded,
        ]
        for number, each in one.versions.items()
    ]
    return [
        name,
        owners,
        one.ownership.quorum,
        one.contracts_max,
        one.bits_max,
        versions,
    ]


def _flow_to_plain(flow: Flow) -> Plain:
    return [
        to_plain(flow.contract),
        flow.by,
        flow.at,
        flow.seq,
        flow.version,
        flow.withdrawn,
        flow.runs,
        [[run, by] for run, by in flow.running.items()],
        dict(flow.results),
        flow.ended_by,
        flow.released,
    ]


def _data_set_from_plain(
    name: str,
    owners: dict[str, list[str]],
    quorum: int,
    contracts_max: int,
    bits_max: int,
    versions: list[list[Any]],
) -> tuple[str, DataSet]:
    keys = {person: tuple(own) for person, own in owners.items()}
    found = {number: DataVersion(*rest) for number, *rest in versions}
    return name, DataSet(Ownership(keys, quorum), contracts_max, bits_max, found)


def _flow_from_plain(contract: Plain, *rest: Any) -> Flow:
    by, at, seq, version, withdrawn, runs, running, results, *counts = rest
    return Flow(
        from_plain(contract),
        by,
        at,
        seq,
        version,
        withdrawn,
        runs,
        dict(running),
        results,
        *counts,
    )
