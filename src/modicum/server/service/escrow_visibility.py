"""Visibility in the escrow: data sets and contracts.

The participants of a contract see it: its requester, its analyst, its recipients and
the owners of its data. Others see it if they may read the contracts of all its data.
Ids are one name space, so that an id is in use is visible to everybody, and nothing
else.
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
from modicum.policy.declarations.roles import person_key


def takes_part(who: Identity, flow: Flow, data: Mapping[str, DataSet]) -> bool:
    """Return whether an identity participates in a contract."""
    contract = flow.contract
    people = {flow.by, contract.analyst, *contract.recipients}
    # In any spelling: its disclosed bits count for them.
    named = person_key(who.name) in map(person_key, people)
    return who.may(Action.TAKE_PART) and (named or bool(owned_by(who, flow, data)))


def owned_by(who: Identity, flow: Flow, data: Mapping[str, DataSet]) -> frozenset[str]:
    """Return the data sets of a contract that an identity owns."""
    sets = flow.contract.data_sets
    return frozenset(one for one in sets if data[one].ownership.is_owner(who.name))


def may_see_contract(who: Identity, flow: Flow, data: Mapping[str, DataSet]) -> bool:
    """Return whether an identity may see a contract."""
    sets = frozenset[str | None](flow.contract.data_sets)
    return takes_part(who, flow, data) or may(who, Action.READ_CONTRACTS, sets)


def must_be_owner(who: Identity, flow: Flow, data: Mapping[str, DataSet]) -> None:
    """Refuse who may not agree for the data that they own."""
    own = owned_by(who, flow, data)
    sets = frozenset[str | None](own or flow.contract.data_sets)
    must(who, Action.APPROVE_CONTRACT, sets)


def may_see_data(who: Identity, name: str, one: DataSet) -> bool:
    """Return whether an identity may see a data set."""
    owns = one.ownership.is_owner(who.name)
    return who.may(Action.READ_DATA, name) or (who.may(Action.TAKE_PART) and owns)


def visible_contract(escrow: Escrow, who: Identity, name: str) -> Flow:
    """Return a visible contract."""
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
    """Return a visible data set."""
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
