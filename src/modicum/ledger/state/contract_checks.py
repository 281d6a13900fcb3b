"""Validation of proposed contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from modicum.ledger.log.contracts import (
    Contract,
    OutputTerms,
    QueryTerms,
    RawSignalTerms,
    SignalTerms,
    TaskTerms,
)
from modicum.ledger.state.consent import consents
from modicum.ledger.state.datasets import DataSet, version_of
from modicum.ledger.state.flow import Flow, proposer_out
from modicum.policy.declarations.roles import person_key

#: Maximum number of recipients.
RECIPIENTS_MAX: Final = 100


def ill_proposed(
    contract: Contract,
    by: str,
    at: str,
    data: Mapping[str, DataSet],
    flows: Mapping[str, Flow],
    in_version: int,
) -> str:
    """Return the mistake of a contract, as text; empty if it is valid.

    Args:
        contract: The contract; nothing is called so, and none has its contents.
        by: The proposer.
        at: When.
        data: The data sets.
        flows: All contracts, by digest.
        in_version: The version of the event that proposes it.

    Raises:
        InputError: If there is no such version of its data.
    """
    if not contract.data:
        return "it has no data"
    for one in contract.data.values():
        version = version_of(data, one)
        if version.shredded or not version.agreed:
            why = "was shredded" if version.shredded else "awaits its owners"
            return f"version {one.number} of `{one.id}` {why}"
    ownerships = {name: data[name].ownership for name in contract.data_sets}
    is_requester = by == contract.analyst or any(
        one.is_owner(by) for one in ownerships.values()
    )
    if not is_requester:
        return f"`{by}` is neither its analyst nor an owner of its data"
    if contract.expires_at <= at:
        return f"it ended at {contract.expires_at}, before it was proposed"
    if contract.uses < 1:
        return "it may never be used"
    found = _ill_following(contract, flows) or _ill_formed(contract)
    if found:
        return found
    out = proposer_out(by, in_version)
    if not consents(contract, ownerships, by=out).attainable:
        return "too few owners may approve it who are neither requester nor recipient"
    return _too_much(contract, by, at, data, flows)


def _ill_formed(contract: Contract) -> str:
    terms, given = contract.terms, len(contract.recipients)
    if not isinstance(terms, QueryTerms | TaskTerms):
        fits = 1 <= given <= RECIPIENTS_MAX
        return "" if fits else f"it has {given} recipients, not 1 to {RECIPIENTS_MAX}"
    if given:
        return "a run is withheld, and has no recipients"
    if terms.charges and contract.uses > 1:
        return "a release runs once, so a contract with a charge is used once"
    if len({one.release for one in terms.charges}) < len(terms.charges):
        return "it charges the same release twice"
    if isinstance(terms, QueryTerms):
        return "" if terms.charges else "it has no queries"
    return _ill_tasked(terms)


def _ill_tasked(terms: TaskTerms) -> str:
    if terms.seconds < 1 or terms.memory_mib < 1 or terms.blocks < 0:
        return "its program has no time or no memory"
    if bool(terms.blocks) != bool(terms.charges):
        return "only a score of blocks is charged"
    if terms.blocks and terms.results != ("private",):
        return "a score of blocks is private, and is the only score"
    return ""


def _ill_following(contract: Contract, flows: Mapping[str, Flow]) -> str:
    """Return the mistake of a contract's base contract."""
    terms = contract.terms
    if isinstance(terms, QueryTerms):
        return "a query has no predecessor" if contract.parent else ""
    parent = flows.get(contract.parent)
    if parent is None:
        return "its predecessor is unknown"
    own = (contract.analyst, contract.data)
    if own != (parent.contract.analyst, parent.contract.data):
        return "its analyst or data differ from its predecessor"
    if not parent.results:
        return "its predecessor has no results yet"
    before = parent.contract.terms
    if isinstance(terms, TaskTerms | OutputTerms):
        if not isinstance(before, QueryTerms):
            return "its predecessor is not a query"
    elif not isinstance(before, TaskTerms):
        return "its predecessor is not a task"
    return _ill_resulting(terms, parent)


def _ill_resulting(
    terms: TaskTerms | OutputTerms | SignalTerms | RawSignalTerms, parent: Flow
) -> str:
    if isinstance(terms, TaskTerms):
        lacking = set(terms.results) - parent.results.keys()
        return f"there are no {min(lacking)} answers to run on" if lacking else ""
    name = "exact" if isinstance(terms, RawSignalTerms) else "private"
    if parent.results.get(name) != terms.result:
        return f"what it discloses is not the {name} result of its predecessor"
    return ""


def _too_much(
    contract: Contract,
    by: str,
    at: str,
    data: Mapping[str, DataSet],
    flows: Mapping[str, Flow],
) -> str:
    """Return which limit of a data set a contract would exceed."""
    for name in contract.data_sets:
        here = [one for one in flows.values() if name in one.contract.data_sets]
        found = _too_many(contract, by, name, at, data[name], here)
        if found:
            return found
    return ""


def _too_many(
    contract: Contract,
    by: str,
    name: str,
    at: str,
    limits: DataSet,
    here: Sequence[Flow],
) -> str:
    theirs = [one for one in here if person_key(one.by) == person_key(by)]
    if sum(one.is_open(at) for one in theirs) >= limits.contracts_max:
        return (
            f"`{by}` already has {limits.contracts_max} open contracts on"
            f" `{name}`, the limit of its owners"
        )
    bits = _bits(contract)
    for person in _recipients(contract) if bits else ():
        counted = [one for one in here if person in _recipients(one.contract)]
        spent = sum(_bits(one.contract) for one in counted if one.counts_bits(at))
        if spent + bits > limits.bits_max:
            whose = f"`{person}` may receive {limits.bits_max} bits of `{name}` outside"
            if person != person_key(by):  # Bits disclosed to a person concern them.
                return f"{whose} differential privacy, and this would exceed that"
            return (
                f"{whose} differential privacy; {spent} are disclosed or requested, and"
                f" this would add {bits}"
            )
    return ""


def _recipients(contract: Contract) -> list[str]:
    """Return those who learn from a contract's disclosure, in alphabetical order."""
    return sorted({person_key(one) for one in (contract.analyst, *contract.recipients)})


def _bits(contract: Contract) -> int:
    terms = contract.terms
    return terms.bits if isinstance(terms, RawSignalTerms) else 0
