"""The escrow: data sets, contracts, and the state of each flow.

Nothing flows unless this permits it, and it permits nothing by default: see ADR 0035.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, assert_never

from msgspec import Struct, field

from modicum.core.canonical import Plain
from modicum.core.errors import Code, ConflictError, InputError, Problem
from modicum.ledger.log.contracts import (
    Contract,
    QueryTerms,
    RawSignalTerms,
    TaskTerms,
    from_plain,
    to_plain,
)
from modicum.ledger.log.escrow_events import (
    ContractProposed,
    ContractWithdrawn,
    DataRegistered,
    DataShredded,
    EscrowBody,
    FlowBegun,
    FlowFailed,
    FlowReleased,
    FlowWithheld,
)
from modicum.ledger.log.events import EVENT_VERSION, DisclosureRecorded
from modicum.ledger.state.consent import Agreement, Consents, Ownership, consents
from modicum.ledger.state.datasets import OWNER, DataSet, DataVersion, register, shred
from modicum.ledger.state.flow import (
    DISCLOSURES,
    Act,
    Flow,
    disclosed,
    disclosure_of,
    to_begin,
    to_release,
)
from modicum.ledger.state.lifecycle import Standing
from modicum.policy.declarations.roles import person_key


class Around(Act):
    """The ledger state around an escrow event.

    Attributes:
        votes: The votes on contracts, by digest, oldest first.
        started: The releases that who acts started just before, in one go.
        releases: The status of each release.
        disclosures: The ids of the disclosures that were recorded.
    """

    votes: Mapping[tuple[str, str], tuple[Agreement, ...]]
    started: Collection[str]
    releases: Mapping[str, Standing]
    disclosures: Collection[str]


class Escrow(Struct):
    """The state of the escrow, up to the head.

    Attributes:
        data: The data sets by id, oldest first.
        flows: The contracts, by digest, oldest first.
        names: The digest of each contract, by its id.
    """

    data: dict[str, DataSet] = field(default_factory=dict)
    flows: dict[str, Flow] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def apply(self, body: EscrowBody, around: Around) -> None:
        """Apply an event; a forbidden one changes nothing.

        Args:
            body: The event.
            around: The rest of the ledger state.

        Raises:
            ConflictError: If it may not happen.
            InputError: If it concerns an unknown data set or contract.
        """
        match body:
            case DataRegistered():
                register(self.data, body, around.by, around.seq, around.version)
            case DataShredded():
                shred(self.data, body, around.by)
            case ContractProposed():
                self._propose(body, around)
            case ContractWithdrawn():
                self._withdraw(body, around)
            case FlowBegun():
                self._begin(body, around)
            case FlowWithheld() | FlowFailed():
                self._end(body, around)
            case FlowReleased():
                self._release(body, around)
            case _:
                assert_never(body)

    def flow(self, contract: str) -> Flow:
        """Return a contract and its state.

        Args:
            contract: Its digest.

        Raises:
            InputError: If there is none.
        """
        known = self.flows.get(contract)
        if known is None:
            raise InputError(
                Problem(
                    Code.CONTRACT_UNKNOWN,
                    f"no contract has the digest {contract[:12]}",
                    help="list the contracts with  modicum escrow list",
                )
            )
        return known

    def consents(self, flow: Flow, votes: Iterable[Agreement]) -> Consents:
        """Return the consents that a contract needs.

        Args:
            flow: The contract.
            votes: The votes on it, oldest first.
        """
        ownerships = {
            name: self.data[name].ownership for name in flow.contract.data_sets
        }
        return consents(flow.contract, ownerships, votes, flow.proposer_out)

    def refuse_proposal(
        self,
        contract: Contract,
        by: str,
        at: str,
        disclosures: Collection[str],
        version: int = EVENT_VERSION,
    ) -> None:
        """Refuse an invalid contract; changes nothing.

        Args:
            contract: The contract.
            by: The proposer.
            at: When.
            disclosures: The ids of the disclosures that were recorded.
            version: The version of the event that proposes it.

        Raises:
            ConflictError: If it may not be proposed.
            InputError: If there is no such version of its data.
        """
        from modicum.ledger.state.contract_checks import ill_proposed

        if contract.id in self.names or contract.digest in self.flows:
            raise _refused(contract.id, "the id of the contract was already used")
        found = ill_proposed(contract, by, at, self.data, self.flows, version)
        if disclosure_of(contract.digest) in disclosures:
            found = "its disclosure is already recorded"
        if found:
            raise _refused(contract.id, found)

    def check_vote(self, contract: str, named: str, vote: Agreement, at: str) -> None:
        """Refuse an invalid vote on a contract; changes nothing.

        Args:
            contract: The digest of the contract.
            named: The contract's id in the vote.
            vote: The vote.
            at: When.

        Raises:
            ConflictError: If the id does not match, the voter is not an owner of its
                data, or the vote approves a withdrawn contract.
            InputError: If there is no such contract.
        """
        flow = self.flow(contract)
        if named != flow.contract.id:
            raise not_permitted(flow, "it was recorded under another id")
        owners = [self.data[name].ownership for name in flow.contract.data_sets]
        if not any(one.is_owner(vote.by) for one in owners):
            raise not_permitted(flow, f"`{vote.by}` owns none of its data")
        if vote.roles != (OWNER,):
            raise not_permitted(flow, f"`{vote.by}` does not vote as an owner")
        if vote.approves and flow.withdrawn:
            raise not_permitted(flow, "it was withdrawn")
        if vote.approves and at >= flow.contract.expires_at:
            raise not_permitted(flow, f"it ended at {flow.contract.expires_at}")

    def check_disclosure(self, body: DisclosureRecorded, by: str) -> None:
        """Refuse a disclosure of a score whose text differs from its contract.

        Args:
            body: The disclosure.
            by: The actor who records it.

        Raises:
            ConflictError: If the text differs, or the actor is not a recipient of the
                score.
        """
        prefix, _, digest = body.id.partition("/")
        flow = self.flows.get(digest) if f"{prefix}/" == DISCLOSURES else None
        if flow is None or not isinstance(flow.contract.terms, RawSignalTerms):
            return
        if by not in flow.contract.recipients:
            raise not_permitted(flow, f"`{by}` is not a recipient of its disclosure")
        if body.what != disclosed(flow.contract):
            raise not_permitted(flow, "its disclosure is described differently")

    def _propose(self, body: ContractProposed, around: Around) -> None:
        contract = body.contract
        by, at, version = around.by, around.at, around.version
        self.refuse_proposal(contract, by, at, around.disclosures, version)
        flow = Flow(by, at, around.seq, version, contract)
        self.flows[contract.digest] = flow
        self.names[contract.id] = contract.digest

    def _withdraw(self, body: ContractWithdrawn, around: Around) -> None:
        flow = self.flow(body.contract)
        one = flow.contract
        # Its bits count for its recipients, too, in whatever contract.
        theirs = {person_key(who) for who in (flow.by, one.analyst, *one.recipients)}
        if person_key(around.by) not in theirs:
            raise not_permitted(
                flow, f"`{around.by}` is neither its requester nor a recipient"
            )
        if flow.withdrawn:
            raise not_permitted(flow, "it was already withdrawn")
        flow.withdrawn = True

    def _begin(self, body: FlowBegun, around: Around) -> None:
        flow = self.flow(body.contract)
        consent = self.consents(flow, _words(body.contract, around))
        started = {
            name: around.releases[name]
            for name in around.started
            if name in around.releases
        }
        found = to_begin(flow, self.data, consent, around.at, started)
        if not found and body.run != flow.runs + 1:
            found = f"its next run is {flow.runs + 1}, and not {body.run}"
        if found:
            raise not_permitted(flow, found)
        flow.runs = body.run
        flow.running = {**flow.running, body.run: around.by}

    def _end(self, body: FlowWithheld | FlowFailed, around: Around) -> None:
        flow = self.flow(body.contract)
        if flow.running.get(body.run) != around.by:
            raise not_permitted(
                flow, f"no run {body.run} of it was started by `{around.by}`"
            )
        results = body.results if isinstance(body, FlowWithheld) else {}
        if isinstance(body, FlowWithheld):
            terms = flow.contract.terms
            assert isinstance(terms, QueryTerms | TaskTerms)  # Others never begin.
            if flow.results or results.keys() != {*terms.results}:
                raise not_permitted(flow, "it already has results, or these differ")
            flow.results, flow.ended_by = dict(results), body.run
        flow.running = {run: by for run, by in flow.running.items() if run != body.run}

    def _release(self, body: FlowReleased, around: Around) -> None:
        flow = self.flow(body.contract)
        consent = self.consents(flow, _words(body.contract, around))
        found = to_release(
            flow, self.data, consent, around.at, body.to, around.disclosures
        )
        if body.to != around.by:
            found = f"`{around.by}` cannot receive for `{body.to}`"
        if found:
            raise not_permitted(flow, found)
        flow.released += 1


def not_permitted(flow: Flow, why: str) -> ConflictError:
    """Return the error for a flow that no contract permits.

    Args:
        flow: The contract that was named.
        why: The reason, as text.
    """
    return ConflictError(
        Problem(
            Code.NOT_PERMITTED,
            f"the contract `{flow.contract.id}` does not permit this: {why}",
            help=f"see its status with  modicum escrow show {flow.contract.id}",
        )
    )


def _refused(identifier: str, why: str) -> ConflictError:
    return ConflictError(
        Problem(
            Code.CONTRACT_REFUSED,
            f"the contract `{identifier[:200]}` cannot be proposed: {why}",
        )
    )


def _words(contract: str, around: Around) -> tuple[Agreement, ...]:
    return around.votes.get(("contract", contract), ())


def escrow_to_plain(escrow: Escrow) -> dict[str, Plain]:
    """Return all of the escrow as plain data."""
    return {
        "data_sets": [_data_set_to_plain(*one) for one in escrow.data.items()],
        "flows": [_flow_to_plain(one) for one in escrow.flows.values()],
    }


def escrow_from_plain(plain: dict[str, Any]) -> Escrow:
    """Return the escrow that plain data encodes.

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
        by,
        at,
        seq,
        version,
        from_plain(contract),
        withdrawn,
        runs,
        dict(running),
        results,
        *counts,
    )
