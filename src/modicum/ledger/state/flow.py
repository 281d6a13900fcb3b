"""One contract and the state of its flow."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct, field

from modicum.ledger.log.contracts import (
    Contract,
    OutputTerms,
    QueryTerms,
    RawSignalTerms,
    SignalTerms,
    TaskTerms,
)
from modicum.ledger.state.consent import Consents
from modicum.ledger.state.datasets import DataSet
from modicum.ledger.state.lifecycle import Standing

#: The ids of disclosures of the escrow begin so.
DISCLOSURES: Final = "contract/"
#: Before this version of events, who proposed counted among those who agree.
PROPOSER_OUT_SINCE: Final = 5


class Act(Struct):
    """The actor and time of an escrow event.

    Attributes:
        by: The actor.
        at: When.
        seq: The number of the entry.
        version: The version of the event.
    """

    by: str
    at: str
    seq: int
    version: int


class Flow(Act):
    """A contract, its proposer and time, and its state.

    Attributes:
        contract: The contract.
        withdrawn: Whether it was withdrawn.
        runs: How many runs began.
        running: The runs without a recorded end, oldest first, and who started each.
        results: By name, the SHA-256 of an encrypted result in the vault.
        ended_by: The number of the run that left them; 0 for none.
        released: The number of disclosures.
    """

    contract: Contract
    withdrawn: bool = False
    runs: int = 0
    running: Mapping[int, str] = field(default_factory=dict)
    results: Mapping[str, str] = field(default_factory=dict)
    ended_by: int = 0
    released: int = 0

    @property
    def proposer_out(self) -> str | None:
        """The proposer, if excluded from the approvers; else None."""
        return proposer_out(self.by, self.version)

    @property
    def computes(self) -> bool:
        """Whether it computes something, rather than discloses it."""
        return isinstance(self.contract.terms, QueryTerms | TaskTerms)

    @property
    def uses_left(self) -> int:
        """The number of uses left."""
        return self.contract.uses - self.runs - self.released

    def is_open(self, at: str) -> bool:
        """Return whether it is pending or valid at a time."""
        done = bool(self.results) or not (self.uses_left or self.running)
        return not self.withdrawn and at < self.contract.expires_at and not done

    def counts_bits(self, at: str) -> bool:
        """Return whether its bits count at a time: disclosed, or still possible."""
        return bool(self.released) or (
            not self.withdrawn and at < self.contract.expires_at
        )


def proposer_out(by: str, version: int) -> str | None:
    """Return who does not count among those who agree, since they propose."""
    return by if version >= PROPOSER_OUT_SINCE else None


def disclosure_of(contract: str) -> str:
    """Return the id of the disclosure for a score on exact answers."""
    return f"{DISCLOSURES}{contract}"


def disclosed(contract: Contract) -> str:
    """Return the ledger text for the disclosure of a score on exact answers."""
    terms = contract.terms
    assert isinstance(terms, RawSignalTerms)
    form = f"one of {terms.bins} bins" if terms.bins else "as it is"
    return (
        f"the score of a program on exact answers, told {form}"
        f" (at most {terms.bits} bits), to {', '.join(contract.recipients)}"
    )


def to_begin(
    flow: Flow,
    data: Mapping[str, DataSet],
    consent: Consents,
    at: str,
    started: Mapping[str, Standing],
) -> str:
    """Return why a run may not start now, as text; empty if it may.

    Args:
        flow: The flow.
        data: The data sets.
        consent: The consent of its owners.
        at: The time.
        started: The releases started just before, for this run: a release started
            otherwise may already have disclosed something.
    """
    if not flow.computes:
        return "it discloses a result, and nothing runs under it"
    if flow.results:
        return "it has run, and its results are withheld"
    return in_general(flow, data, consent, at) or _uncharged(flow, started)


def to_release(
    flow: Flow,
    data: Mapping[str, DataSet],
    consent: Consents,
    at: str,
    to: str,
    disclosures: Collection[str],
) -> str:
    """Return why a disclosure is not permitted now, as text; empty if it is."""
    contract = flow.contract
    if not isinstance(contract.terms, OutputTerms | SignalTerms | RawSignalTerms):
        return "its results are withheld, and it discloses nothing"
    if to not in contract.recipients:
        return f"`{to}` is not among its recipients"
    raw = isinstance(contract.terms, RawSignalTerms)
    if raw and disclosure_of(contract.digest) not in disclosures:
        return "the ledger does not record the disclosure"
    return in_general(flow, data, consent, at)


def in_general(
    flow: Flow, data: Mapping[str, DataSet], consent: Consents, at: str
) -> str:
    """Return why a contract may not be used now, as text; empty if it may."""
    contract = flow.contract
    if flow.withdrawn:
        return "it was withdrawn"
    if at >= contract.expires_at:
        return f"it ended at {contract.expires_at}"
    for one in contract.data.values():
        if data[one.id].versions[one.number].shredded:
            return f"version {one.number} of `{one.id}` was shredded"
    if flow.uses_left <= 0:
        return f"it was used {contract.uses} times, its limit"
    return consent.lacking


def _uncharged(flow: Flow, started: Mapping[str, Standing]) -> str:
    terms = flow.contract.terms
    for charge in terms.charges if isinstance(terms, QueryTerms | TaskTerms) else ():
        known = started.get(charge.release)
        if known is None or known.content != charge.content:
            return f"the release `{charge.release}` was not started for it just before"
    return ""
