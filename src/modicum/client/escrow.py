"""Escrow operations on a server: the same methods, over HTTP.

Rows are sent when a data set is registered, and never returned. Programs run on the
server, in its sandboxes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from modicum.api import operations
from modicum.api.local.escrow.actions import ShownContract
from modicum.api.local.escrow.approvals import RecordedContractVote, RecordedVersionVote
from modicum.api.local.escrow.datasets import Declared, Ownership
from modicum.api.local.escrow.disclosure import DisclosedResult
from modicum.api.local.escrow.execution import Ran
from modicum.api.local.governance.approvals import Ballot
from modicum.api.schema.approval import Reason
from modicum.api.schema.escrow import Consents, ContractVoteReceipt
from modicum.api.schema.escrow_input import DatasetInput
from modicum.client.decision import decision_of
from modicum.client.decoding import (
    consents_of,
    data_of,
    decoded,
    disclosed_of,
    flow_of,
    named,
    program_of,
    version_of,
    version_vote_of,
    vote_of,
)
from modicum.client.escrow_proposals import RemoteEscrowProposals
from modicum.client.jobs import Job
from modicum.client.problems import not_understood
from modicum.client.request_encoding import sent
from modicum.client.retry_connection import Request
from modicum.client.votes import Key, Subject, VoteSubject, send_vote, signer_of
from modicum.ledger.log.contracts import Version
from modicum.ledger.state.datasets import OWNER, DataSet
from modicum.ledger.state.datasets import version_of as version_in
from modicum.ledger.state.flow import Flow


class RemoteEscrow(RemoteEscrowProposals):
    """Escrow operations on a server. The token identifies the actor."""

    # --- data ---

    def register(
        self,
        name: str,
        content: bytes,
        declared: Declared,
        owned: Ownership | None = None,
    ) -> Version:
        """Put a version of a data set into the vault, and register it."""
        form = DatasetInput(table=declared.table, media=declared.media, rows=content)
        if owned is not None:
            form = replace(
                form,
                owners=dict(owned.owners),
                quorum=owned.quorum,
                contracts=owned.contracts_max,
                bits=owned.bits_max,
            )
        request = Request(
            operations.REGISTER_DATA,
            {"name": name},
            sent=sent(form),
            step=f"registered a version of `{name}`",
        )
        return version_of(self._connection.send(request))

    def shred(self, version: Version, *, reason: str) -> None:
        """Destroy a version, and all withheld results computed from it.

        If it fails, shred it again.
        """
        ids: dict[str, str | int] = {"name": version.id, "n": version.number}
        self._connection.send(
            Request(operations.SHRED_DATA, ids, sent=sent(Reason(reason=reason)))
        )

    def data(self) -> Mapping[str, DataSet]:
        """Return the data sets that the caller may query, by name. Writes nothing."""
        return data_of(self._connection.send(Request(operations.DATA_SETS)))

    # --- looking ---

    def contracts(self) -> tuple[Flow, ...]:
        """Return the contracts that one may see, oldest first. Writes nothing."""
        request = Request(operations.CONTRACTS, query={"recorded": True})
        reply = decoded(dict[str, list[dict[str, Any]]], self._connection.send(request))
        return tuple(map(flow_of, reply.get("contracts", ())))

    def show(self, name: str) -> ShownContract:
        """Return a contract as people look at it. Writes nothing."""
        reply = self._one(name)
        consents = consents_of(decoded(Consents, reply.get("consent")))
        return ShownContract(flow_of(reply), consents, program_of(reply.get("program")))

    # --- agreeing ---

    def approve(
        self,
        name: str,
        *,
        reason: str,
        head: str | None = None,
        content: str | None = None,
        key: Key | None = None,
    ) -> RecordedContractVote:
        """Agree to a contract, as an owner of its data."""
        ballot = Ballot(True, reason, head, signer_of(key), content)  # noqa: FBT003
        return self.vote(name, ballot)

    def reject(
        self,
        name: str,
        *,
        reason: str,
        content: str | None = None,
        key: Key | None = None,
    ) -> RecordedContractVote:
        """Refuse a contract, or withdraw an approval. Blocks until withdrawn."""
        ballot = Ballot(False, reason, None, signer_of(key), content)  # noqa: FBT003
        return self.vote(name, ballot)

    def approve_data(
        self,
        version: Version,
        *,
        reason: str,
        head: str | None = None,
        content: str | None = None,
        key: Key | None = None,
    ) -> RecordedVersionVote:
        """Agree to a version that replaces the rows of a data set, as an owner."""
        ballot = Ballot(True, reason, head, signer_of(key), content)  # noqa: FBT003
        return self.vote_on_data(version, ballot)

    def reject_data(
        self,
        version: Version,
        *,
        reason: str,
        content: str | None = None,
        key: Key | None = None,
    ) -> RecordedVersionVote:
        """Refuse a pending version. A refusal blocks until withdrawn."""
        ballot = Ballot(False, reason, None, signer_of(key), content)  # noqa: FBT003
        return self.vote_on_data(version, ballot)

    def vote(self, name: str, ballot: Ballot) -> RecordedContractVote:
        """Vote on a contract, as an owner of its data."""
        flow = flow_of(self._one(name))
        digest = flow.contract.digest
        ids, called = named(name, "name"), f"the contract `{name}`"
        about: tuple[Subject, str, str] = "contract", name, digest
        on = VoteSubject(operations.APPROVE_CONTRACT, ids, about, called, (OWNER,))
        one = decoded(ContractVoteReceipt, send_vote(self._view, on, ballot))
        if (one.digest, one.approves) != (digest, ballot.approves):
            raise not_understood("it does not match the request").alone()
        return RecordedContractVote(
            *vote_of(one, (OWNER,)),
            flow=flow,
            consents=consents_of(one.consent),
            repeated=one.repeated,
        )

    def vote_on_data(self, version: Version, ballot: Ballot) -> RecordedVersionVote:
        """Vote on a version that waits, as an owner of the data."""
        digest = version_in(self.data(), version).content(version)
        name, number = version.id, version.number
        ids: dict[str, str | int] = {"name": name, "n": number}
        called = f"version {number} of `{name}`"
        about: tuple[Subject, str, str] = "data", name, digest
        on = VoteSubject(operations.APPROVE_DATA, ids, about, called, (OWNER,))
        vote = version_vote_of(send_vote(self._view, on, ballot))
        if (vote.version, vote.content, vote.approves) != (
            version,
            digest,
            ballot.approves,
        ):
            raise not_understood("it does not match the request").alone()
        return vote

    # --- flowing ---

    def run(self, name: str) -> Ran:
        """Run a contract, and wait for it; its results are withheld.

        Args:
            name: The contract.

        Raises:
            AccessError: If the caller does not take part in it.
            ApprovalError: If people must agree to a release first.
            ConflictError: If the contract does not permit it now.
            InputError: If it does not exist, or is a disclosure contract.
            StaleError: If its queries were priced under another policy.
            UnavailableError: If its sandbox is not there, and nothing ran; or it ended
                without results, and the use is counted; or the server gives no answer:
                look at `show` then, before it is run again.
            UsageError: If the server has no escrow.
        """
        request = Request(
            operations.RUN_CONTRACT,
            named(name, "name"),
            step=f"run the contract `{name}`",
            repeats=False,
        )
        found = Job(self._connection, self._connection.send(request)).wait()
        if not isinstance(found, dict) or "denied" not in found:
            raise not_understood("its run has no result").alone()
        denied = found["denied"]
        if denied is None:
            return Ran()
        return Ran(decision_of(denied, self._connection, None))

    def receive(self, name: str) -> DisclosedResult:
        """Return the disclosure of a contract to one of its recipients: the caller."""
        step = f"disclosed the result of `{name}`"
        request = Request(
            operations.RECEIVE, named(name, "name"), step=step, repeats=False
        )
        return disclosed_of(self._connection.send(request))
