"""The history of an escrow: data sets, contracts, runs. A pure fold of events.

It follows a log while it is audited: no run and no disclosure happened without a
contract.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from modicum.ledger.log.contracts import Contract, RawSignalTerms
from modicum.ledger.log.escrow_events import (
    ContractProposed,
    ContractWithdrawn,
    DataRegistered,
    DataShredded,
    FlowBegun,
    FlowFailed,
    FlowReleased,
    FlowWithheld,
)
from modicum.ledger.log.events import ApprovalGiven, Body, DisclosureRecorded
from modicum.ledger.state.consent import Agreement, Consents, Ownership, consents
from modicum.ledger.state.datasets import DataSetTerms
from modicum.ledger.state.flow import disclosure_of, proposer_out
from modicum.policy.declarations.roles import person_key
from modicum.reports.approval_cases import CaseVote
from modicum.reports.log_position import Placed

#: The outcome of a run; `no end` if the log has none.
Ended: TypeAlias = Literal["withheld", "failed", "no end"]
#: The state of a contract. `withheld`: it has run, and its results are in the vault.
#: `permitted`: it may be used. `waiting`: owners must agree first. `ended`: it expired.
#: `shredded`: its data was.
FlowState: TypeAlias = Literal[
    "withheld",
    "running",
    "let go",
    "withdrawn",
    "ended",
    "shredded",
    "used up",
    "waiting",
    "permitted",
]


@dataclass(slots=True)
class VersionRecord:
    """A version of a data set.

    Attributes:
        number: Its number.
        registered: The entry that registered it, and who.
        sealed: SHA-256 of its encrypted bytes.
        media: The format of rows.
        shredded: The entry that records the destruction of its key; None if there is
            none.
        reason: Why that was done.
    """

    number: int
    registered: Placed
    sealed: str
    media: str
    shredded: Placed | None = None
    reason: str = ""


class DatasetRecord(DataSetTerms):
    """A data set.

    Attributes:
        id: Its name.
        versions: Its versions, oldest first.
    """

    id: str
    versions: list[VersionRecord] = msgspec.field(default_factory=list)


@dataclass(slots=True)
class RunRecord:
    """A run of a query or a task.

    Attributes:
        number: Its number, from 1.
        started: The entry that records its start, and the actor.
        agreed: Those whose approval counted when it started, in the order of their
            names.
        how: How it ended.
        ended: The entry that records its end; None if there is none.
        results: By name, the SHA-256 of an encrypted result in the vault.
    """

    number: int
    started: Placed
    agreed: tuple[str, ...]
    how: Ended = "no end"
    ended: Placed | None = None
    results: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DisclosureRecord:
    """A disclosure.

    Attributes:
        entry: The entry and the actor.
        to: The recipient.
        agreed: Those whose approval counted, in the order of their names.
    """

    entry: Placed
    to: str
    agreed: tuple[str, ...]


@dataclass(slots=True)
class ContractRecord:
    """A contract and its history.

    Attributes:
        contract: The contract.
        proposed: The entry that proposed it, and the actor.
        reason: Why it was proposed.
        votes: The owners' votes, oldest first.
        runs: Its runs, oldest first.
        disclosures: Its disclosures, oldest first.
        withdrawn: The entry that withdrew it; None if none did.
        disclosed: The entry of its disclosure outside differential privacy; None if
            there is none.
        consents: The consents of its owners, by their last votes.
        state: Its state.
    """

    contract: Contract
    proposed: Placed
    reason: str
    consents: Consents
    votes: list[CaseVote] = field(default_factory=list)
    runs: list[RunRecord] = field(default_factory=list)
    disclosures: list[DisclosureRecord] = field(default_factory=list)
    withdrawn: Placed | None = None
    disclosed: Placed | None = None
    state: FlowState = "waiting"

    @property
    def bits(self) -> int:
        """The bits that its disclosure reveals outside differential privacy."""
        terms = self.contract.terms
        return terms.bits if isinstance(terms, RawSignalTerms) else 0

    @property
    def people(self) -> dict[str, str]:
        """The people who learn from its disclosure: one name each, by identity."""
        contract = self.contract
        names = (*contract.recipients, contract.analyst)
        return {person_key(one): one for one in names}


@dataclass(frozen=True, slots=True)
class Bits:
    """The bits of a data set disclosed to one person outside differential privacy.

    Attributes:
        person: The person.
        data: The data set.
        entry: The bits disclosed so far.
        may_follow: The further bits possible under proposed contracts.
        allowed: The total that owners allow.
        contracts: The disclosing contracts, by name, oldest first.
    """

    person: str
    data: str
    disclosed: int
    may_follow: int
    allowed: int
    contracts: tuple[str, ...]


@dataclass
class EscrowTimeline:
    """All of an escrow, up to the head.

    Attributes:
        data: The data sets by id, oldest first.
        flows: The contracts by digest, oldest first.
    """

    data: dict[str, DatasetRecord] = field(default_factory=dict)
    flows: dict[str, ContractRecord] = field(default_factory=dict)
    _disclosures: dict[str, Placed] = field(default_factory=dict)

    def add(self, entry: Placed, body: Body) -> None:
        """Add one event; most are of no concern here."""
        match body:
            case DataRegistered():
                self._register(entry, body)
            case DataShredded():
                version = _version(self.data[body.id], body.version)
                version.shredded, version.reason = entry, body.reason
            case ContractProposed(contract):
                stand = self._consents(contract, entry, ())
                flow = ContractRecord(contract, entry, body.reason, stand)
                self.flows[contract.digest] = flow
            case ContractWithdrawn():
                self.flows[body.contract].withdrawn = entry
            case ApprovalGiven(subject="contract"):
                self._add_vote(entry, body)
            case FlowBegun():
                flow = self.flows[body.contract]
                flow.runs.append(RunRecord(body.run, entry, _agreed(flow.consents)))
            case FlowWithheld() | FlowFailed():
                self._end(entry, body)
            case FlowReleased():
                flow = self.flows[body.contract]
                flow.disclosures.append(
                    DisclosureRecord(entry, body.to, _agreed(flow.consents))
                )
            case DisclosureRecorded():
                self._disclosures.setdefault(body.id, entry)
            case _:
                pass

    def stand_at(self, at: str) -> None:
        """Compute the state of every contract at a time."""
        for digest, flow in self.flows.items():
            flow.state = self._state(flow, at)
            if flow.bits:
                flow.disclosed = self._disclosures.get(disclosure_of(digest))

    @property
    def runs_without_end(self) -> tuple[tuple[ContractRecord, RunRecord], ...]:
        """The runs without a recorded end, oldest first."""
        return tuple(
            (flow, run)
            for flow in self.flows.values()
            for run in flow.runs
            if run.how == "no end"
        )

    @property
    def raw(self) -> tuple[ContractRecord, ...]:
        """The disclosures outside differential privacy, made or permitted."""
        return tuple(
            one
            for one in self.flows.values()
            if one.bits and (one.disclosures or one.disclosed)
        )

    @property
    def bits(self) -> tuple[Bits, ...]:
        """The bits disclosed to each person, by data set, as owners count them."""
        return tuple(one for data in self.data.values() for one in self._bits_of(data))

    # --- as it happens ---

    def _register(self, entry: Placed, body: DataRegistered) -> None:
        owned = Ownership(dict(body.owners), body.quorum)
        new = DatasetRecord(owned, body.contracts_max, body.bits_max, body.id)
        known = self.data.setdefault(body.id, new)
        version = VersionRecord(body.version, entry, body.sealed, body.media)
        known.versions.append(version)

    def _add_vote(self, entry: Placed, body: ApprovalGiven) -> None:
        flow = self.flows[body.content]
        own = [
            self.data[name].ownership.owners[entry.actor]
            for name in flow.contract.data_sets
            if self.data[name].ownership.is_owner(entry.actor)
        ]
        named = bool(body.key) and any(body.key in keys for keys in own)
        free = any(not keys for keys in own)
        countable = not body.approves or named or free
        flow.votes.append(CaseVote(entry, body, named, countable))
        flow.consents = self._consents(flow.contract, flow.proposed, flow.votes)

    def _consents(
        self, contract: Contract, proposed: Placed, votes: Sequence[CaseVote]
    ) -> Consents:
        agreements = [
            Agreement(
                one.entry.actor,
                one.body.approves,
                one.body.roles,
                one.entry.seq,
                one.body.key,
            )
            for one in votes
        ]
        owned = {one: self.data[one].ownership for one in contract.data_sets}
        out = proposer_out(proposed.actor, proposed.version)
        return consents(contract, owned, agreements, out)

    def _end(self, entry: Placed, body: FlowWithheld | FlowFailed) -> None:
        runs = self.flows[body.contract].runs
        run = next(one for one in runs if one.number == body.run)
        run.ended, run.how = entry, "failed"
        if isinstance(body, FlowWithheld):
            run.how, run.results = "withheld", dict(body.results)

    # --- at the head ---

    def _state(self, flow: ContractRecord, at: str) -> FlowState:
        contract = flow.contract
        ended = at >= contract.expires_at
        used = len(flow.runs) + len(flow.disclosures) >= contract.uses
        found: dict[FlowState, bool] = {
            "withheld": any(one.results for one in flow.runs),
            "running": any(one.how == "no end" for one in flow.runs),
            "let go": bool(flow.disclosures),
            "withdrawn": flow.withdrawn is not None,
            "ended": ended,
            "shredded": any(
                _version(self.data[one.id], one.number).shredded
                for one in contract.data.values()
            ),
            "used up": used,
            "waiting": bool(flow.consents.lacking),
        }
        return next((name for name, holds in found.items() if holds), "permitted")

    def _bits_of(self, data: DatasetRecord) -> Iterator[Bits]:
        here = [
            one
            for one in self.flows.values()
            if one.bits and data.id in one.contract.data_sets
        ]
        people: dict[str, str] = {}
        for flow in here:
            people = {**flow.people, **people}
        for identity, person in people.items():
            theirs = [one for one in here if identity in one.people]
            out = [one for one in theirs if one.disclosures]
            follow = [one for one in theirs if not one.disclosures and _is_open(one)]
            if out or follow:
                yield Bits(
                    person,
                    data.id,
                    sum(one.bits for one in out),
                    sum(one.bits for one in follow),
                    data.bits_max,
                    tuple(one.contract.id for one in out),
                )


def _is_open(flow: ContractRecord) -> bool:
    return flow.withdrawn is None and flow.state != "ended"


def _version(data: DatasetRecord, number: int) -> VersionRecord:
    return next(one for one in data.versions if one.number == number)


def _agreed(found: Consents) -> tuple[str, ...]:
    return tuple(sorted({name for one in found.by_data for name in one.agreed}))
