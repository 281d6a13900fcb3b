"""What somebody may know of the escrow: data sets and contracts that are for them.

Who takes part in a contract sees it: whoever asks for it, for whom, its recipients and
the owners of its data. Others see it if they may read the contracts of all its data.
Ids are one name space, so that one is taken is told to everybody, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

from modicum.api.local.release_datasets import may, must
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.core.errors import Code, InputError, Problem
from modicum.ledger.state.datasets import DataSet
from modicum.ledger.state.escrow import Escrow
from modicum.ledger.state.flow import Flow
from modicum.policy.declarations.roles import meant_by


def takes_part(who: Identity, flow: Flow, data: Mapping[str, DataSet]) -> bool:
    """Return whether a contract is somebody's: they ask, are given, or own."""
    contract = flow.contract
    people = {flow.by, contract.analyst, *contract.recipients}
    # However they are written there: what it may tell counts for them.
    named = meant_by(who.name) in map(meant_by, people)
    return who.may(Action.TAKE_PART) and (named or bool(owned_by(who, flow, data)))


def owned_by(who: Identity, flow: Flow, data: Mapping[str, DataSet]) -> frozenset[str]:
    """Return the data sets of a contract that somebody owns."""
    sets = flow.contract.data_sets
    return frozenset(one for one in sets if data[one].ownership.is_owner(who.name))


def may_see_contract(who: Identity, flow: Flow, data: Mapping[str, DataSet]) -> bool:
    """Return whether somebody may know of a contract."""
    sets = frozenset[str | None](flow.contract.data_sets)
    return takes_part(who, flow, data) or may(who, Action.READ_CONTRACTS, sets)


def must_be_owner(who: Identity, flow: Flow, data: Mapping[str, DataSet]) -> None:
    """Refuse who may not agree for the data that they own."""
    own = owned_by(who, flow, data)
    sets = frozenset[str | None](own or flow.contract.data_sets)
    must(who, Action.APPROVE_CONTRACT, sets)


def may_see_data(who: Identity, name: str, one: DataSet) -> bool:
    """Return whether somebody may know of a data set."""
    owns = one.ownership.is_owner(who.name)
    return who.may(Action.READ_DATA, name) or (who.may(Action.TAKE_PART) and owns)


def visible_contract(escrow: Escrow, who: Identity, name: str) -> Flow:
    """Return a contract that somebody may know of."""
    digest = escrow.names.get(name)
    flow = None if digest is None else escrow.flow(digest)
    if flow is not None and may_see_contract(who, flow, escrow.data):
        return flow
    raise InputError(
        Problem(
            Code.CONTRACT_UNKNOWN,
            f"unknown contract `{name[:200]}`",
            help="list them at  /escrow/contracts",
        )
    )


def visible_dataset(escrow: Escrow, who: Identity, name: str) -> DataSet:
    """Return a data set that somebody may know of."""
    one = escrow.data.get(name)
    if one is not None and may_see_data(who, name, one):
        return one
    raise InputError(
        Problem(
            Code.DATA_SET_UNKNOWN,
            f"no data set `{name[:200]}` is registered",
            help="list them at  /escrow/data",
        )
    )
