"""Disclosure of what a contract permits: answers and scores.

A disclosure is recorded in the ledger before it happens. A score on exact answers is
also recorded as a disclosure outside differential privacy, in the same turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from modicum.api.local.balances import Entry
from modicum.api.local.escrow.proposal import scores_of
from modicum.api.local.escrow.run import where_is
from modicum.api.local.governance.approval_cases import active_policy
from modicum.api.ports.escrow import Sealed, Vault, answers_from_bytes, score_from_bytes
from modicum.api.schema import escrow as schema
from modicum.escrow.signals import bin_of, score_text
from modicum.ledger import event_of
from modicum.ledger.log.contracts import (
    OutputTerms,
    QueryTerms,
    RawSignalTerms,
    SignalTerms,
    TaskTerms,
)
from modicum.ledger.log.escrow_events import FlowReleased
from modicum.ledger.log.events import DisclosureRecorded, ReleasePosted
from modicum.ledger.state.escrow import not_permitted
from modicum.ledger.state.flow import Flow, disclosed, disclosure_of, in_general
from modicum.ledger.state.lifecycle import ReleaseStatus
from modicum.release import EVERYTHING


@dataclass(frozen=True, slots=True)
class DisclosedResult:
    """A disclosure under a contract.

    Attributes:
        contract: The contract's id.
        flow: The kind of flow: `output`, `signal` or `raw-signal`.
        private: Whether it is differentially private; a raw signal is not.
        answers: For an output, by release, the documented JSON form of its answers.
        score: For a signal, the score as a decimal text; None if there is none, or only
            a bin is disclosed.
        bin: Of a raw signal in bins, the ends of the bin that the score lies in.
    """

    contract: str
    flow: str
    private: bool
    answers: Mapping[str, Mapping[str, Any]] | None = None
    score: str | None = None
    bin: Mapping[str, str] | None = None

    @property
    def view(self) -> schema.Disclosed:
        """The public form."""
        return schema.Disclosed(
            contract=self.contract,
            flow=cast("Literal['output', 'signal', 'raw-signal']", self.flow),
            differentially_private=self.private,
            answers=None
            if self.answers is None
            else {name: dict(one) for name, one in self.answers.items()},
            score=self.score,
            bin=None if self.bin is None else schema.Bin(**self.bin),
        )


def find_result(entry: Entry, flow: Flow) -> tuple[Flow, Sealed]:
    """Return the contract that a disclosure builds on, and the sealed result."""
    state, contract = entry.book.state, flow.contract
    votes = state.approvals.get(("contract", contract.digest), ())
    consent = state.escrow.consents(flow, votes)
    if not isinstance(contract.terms, OutputTerms | SignalTerms | RawSignalTerms):
        raise not_permitted(flow, "its results are withheld")
    if entry.actor not in contract.recipients:
        raise not_permitted(flow, f"`{entry.actor}` is not among its recipients")
    why = in_general(flow, state.escrow.data, consent, entry.now)
    if why:
        raise not_permitted(flow, why)
    parent = state.escrow.flow(contract.parent)
    name = "exact" if isinstance(contract.terms, RawSignalTerms) else "private"
    return parent, where_is(parent, name)


def disclose(entry: Entry, flow: Flow, parent: Flow) -> None:
    """Record a disclosure to the actor; it counts as disclosed from here on."""
    state, contract = entry.book.state, flow.contract
    if isinstance(contract.terms, RawSignalTerms):
        identifier = disclosure_of(contract.digest)
        if identifier not in state.disclosures:
            entry.add(_disclosure(entry, flow))
    entry.add(FlowReleased(contract.digest, entry.actor))
    for name in _charged(entry, parent):
        known = state.releases.get(name)
        if known is not None and known.status is ReleaseStatus.STARTED:
            entry.add(ReleasePosted(name))


def disclosed_value(
    vault: Vault, flow: Flow, parent: Flow, sealed: Sealed
) -> DisclosedResult:
    """Return the disclosed value of a contract. It is not disclosed yet."""
    contract, data = flow.contract, vault.open(sealed)
    terms = contract.terms
    if isinstance(terms, OutputTerms):
        found = answers_from_bytes(data).answers
        return DisclosedResult(
            contract.id, flow.contract.flow, private=True, answers=found
        )
    score, scores = score_from_bytes(data), scores_of(parent)
    private = not isinstance(terms, RawSignalTerms)
    if score is None or not isinstance(terms, RawSignalTerms) or not terms.bins:
        text = None if score is None else score_text(score, scores)
        return DisclosedResult(contract.id, contract.flow, private, score=text)
    found_bin = bin_of(score, scores, terms.bins)
    return DisclosedResult(
        contract.id, contract.flow, private=False, bin=found_bin.to_dict()
    )


def _disclosure(entry: Entry, flow: Flow) -> DisclosureRecorded:
    contract = flow.contract
    body = event_of(next(iter(entry.read(flow.seq - 1))), flow.seq).body
    reason = str(getattr(body, "reason", ""))
    vocabulary = active_policy(entry.book).policy.vocabulary
    attributes = tuple(sorted(vocabulary.attributes))
    identifier = disclosure_of(contract.digest)
    return DisclosureRecorded(
        identifier, disclosed(contract), attributes, EVERYTHING, reason, {}
    )


def _charged(entry: Entry, flow: Flow) -> list[str]:
    """Return the ids of the releases that a result was computed by."""
    found: list[str] = []
    above: Flow | None = flow
    while above is not None:
        terms, parent = above.contract.terms, above.contract.parent
        if isinstance(terms, QueryTerms | TaskTerms):
            found += [one.release for one in terms.charges]
        above = entry.book.state.escrow.flows.get(parent)
    return found
