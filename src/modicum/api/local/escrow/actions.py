"""The operations of the escrow: register data, request flows, vote, run, receive.

The steps of the utility signaling protocol are these methods. An analyst requests
queries (`submit_query`), owners review and approve them (`show`, `approve`), they are
run and their answers withheld (`run`), and disclosure of the answers is requested,
approved and received (`submit_output`, `receive`); then the same for a task
(`submit_task`) and its scores (`submit_signal`, `submit_raw_signal`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from msgspec.structs import replace

from modicum.api.local.balances import Entry
from modicum.api.local.escrow.approvals import (
    RecordedContractVote,
    RecordedVersionVote,
    vote_on_contract,
    vote_on_version,
)
from modicum.api.local.escrow.datasets import (
    Declared,
    GivenVersion,
    Ownership,
    register,
    shred,
)
from modicum.api.local.escrow.declared_tables import own_rows
from modicum.api.local.escrow.disclosure import (
    DisclosedResult,
    disclose,
    disclosed_value,
    find_result,
)
from modicum.api.local.escrow.execution import Ran
from modicum.api.local.escrow.programs import program_of
from modicum.api.local.escrow.proposal_actions import EscrowProposals
from modicum.api.local.escrow.review import named
from modicum.api.local.escrow.run import run_blocks, run_query, run_task
from modicum.api.local.governance.approvals import Ballot
from modicum.api.ports.escrow import Sealed
from modicum.core.errors import (
    Code,
    InputError,
    Problem,
)
from modicum.escrow.programs import Program
from modicum.ledger.log.approval_statement import Signer
from modicum.ledger.log.contracts import Contract, QueryTerms, TaskTerms, Version
from modicum.ledger.state.consent import Consents
from modicum.ledger.state.datasets import DataSet
from modicum.ledger.state.flow import Flow


@dataclass(frozen=True, slots=True)
class ShownContract:
    """A contract as shown to voters.

    Attributes:
        flow: The contract and its state.
        consents: The consents of its owners.
        program: Of a task, the program that it runs; None for others.
    """

    flow: Flow
    consents: Consents
    program: Program | None = None


class EscrowActions(EscrowProposals):
    """The operations of an actor in the escrow."""

    # --- data ---

    def register(
        self,
        name: str,
        content: bytes,
        declared: Declared,
        owned: Ownership | None = None,
    ) -> Version:
        """Store a version of a data set in the vault, and register it.

        Args:
            name: Its name, that of its table.
            content: Its rows.
            declared: The declaration of its table, and the format of its rows.
            owned: Its owners, for its first version; None for a later one.

        Raises:
            ConflictError: If the actor does not own it, or it is owned otherwise.
            InputError: If the file does not declare it, its rows cannot be read or
                violate the declaration, or it is new and has no owner.
            UnavailableError: If it cannot be stored.
            UsageError: If there is no ledger with a policy, no vault, or no engine.
        """
        given = GivenVersion(name, content, declared, owned)
        return register(self._ledger, self._tools, given, self._actor)

    def shred(self, version: Version, *, reason: str) -> None:
        """Destroy a version, and all withheld results computed from it.

        The ledger records this first, which stops all flows; then the keys are
        destroyed. If that fails, shred again.

        Args:
            version: The version.
            reason: Why, for the record; 1 to 2000 characters.

        Raises:
            ConflictError: If the actor does not own it.
            InputError: If there is none, or no reason.
            UnavailableError: If a key cannot be destroyed.
            UsageError: If there is no ledger, or no vault.
        """
        shred(self._ledger, self._tools.equipment.vault, version, reason)

    def data(self) -> Mapping[str, DataSet]:
        """Return the data sets that are registered, by name. Writes nothing.

        Raises:
            UsageError: If there is no ledger.
        """
        return dict(self._state().data)

    # --- looking ---

    def contracts(self) -> tuple[Flow, ...]:
        """Return all contracts, oldest first. Writes nothing.

        Raises:
            UsageError: If there is no ledger.
        """
        return tuple(replace(one) for one in self._state().flows.values())

    def show(self, name: str) -> ShownContract:
        """Return a contract as shown to voters. Writes nothing.

        Args:
            name: The contract.

        Raises:
            InputError: If there is none.
            VerificationError: If the code of its program is not the one it names.
            UsageError: If there is no ledger.
        """
        book, _, _ = self._ledger.current()
        state = book.state
        flow = named(state.escrow, name)
        votes = state.approvals.get(("contract", flow.contract.digest), ())
        consents = state.escrow.consents(flow, votes)
        terms, program = flow.contract.terms, None
        if isinstance(terms, TaskTerms) and self._given is not None:
            program = program_of(self._given.equipment.vault, terms.program)
        return ShownContract(replace(flow), consents, program)

    def own_rows(
        self, versions: Iterable[Version]
    ) -> AbstractContextManager[Mapping[str, object]]:
        """Return rows by data set, while open, to an owner of all of them.

        They are in memory only. Writes nothing.

        Args:
            versions: The versions of the data sets.

        Raises:
            ConflictError: If the actor does not own one of them, or it was shredded.
            InputError: If there is no such version.
            UnavailableError: If a key cannot be had.
            UsageError: If there is no ledger, or no vault.
            VerificationError: If the sealed content was changed.
        """
        return own_rows(self._ledger, self._tools.equipment, self._actor, versions)

    # --- agreeing ---

    def approve(
        self,
        name: str,
        *,
        reason: str,
        head: str | None = None,
        content: str | None = None,
        key: Signer | None = None,
    ) -> RecordedContractVote:
        """Approve a contract, as an owner of its data.

        Args:
            name: The contract.
            reason: Why, for the record; 1 to 2000 characters.
            head: The hash of the last entry that the actor has looked at, or at least
                its first 12 characters; None for whichever is last.
            content: The digest of the contract that the actor has looked at; None for
                whichever it has.
            key: The signer; None for no signature.

        Raises:
            ApprovalError: If a required signature is missing.
            ConflictError: If they own none of its data, or it is over.
            InputError: If there is no such contract, or no reason.
            StaleError: If the log has entries after `head`, or the contents differ.
            UsageError: If there is no ledger with a policy.
        """
        return self.vote(name, Ballot(True, reason, head, key, content))  # noqa: FBT003

    def reject(
        self,
        name: str,
        *,
        reason: str,
        content: str | None = None,
        key: Signer | None = None,
    ) -> RecordedContractVote:
        """Refuse a contract, or withdraw an approval. A refusal blocks until withdrawn.

        Args:
            name: The contract.
            reason: As for `approve`.
            content: As for `approve`.
            key: As for `approve`; a refusal counts without, too.

        Raises:
            ConflictError: If they own none of its data.
            InputError: As for `approve`.
            StaleError: If it has other contents.
            UsageError: As for `approve`.
        """
        return self.vote(name, Ballot(False, reason, None, key, content))  # noqa: FBT003

    def approve_data(
        self,
        version: Version,
        *,
        reason: str,
        head: str | None = None,
        content: str | None = None,
        key: Signer | None = None,
    ) -> RecordedVersionVote:
        """Approve a version that replaces the rows of a data set, as an owner.

        Args:
            version: The version.
            reason: As for `approve`.
            head: As for `approve`.
            content: The digest of the version that the actor has looked at; None for
                whichever it has.
            key: As for `approve`.

        Raises:
            ApprovalError: If a required signature is missing.
            ConflictError: If they do not own it, or it does not wait for its owners.
            InputError: If there is no such version, or no reason.
            StaleError: As for `approve`.
            UsageError: As for `approve`.
        """
        ballot = Ballot(True, reason, head, key, content)  # noqa: FBT003
        return self.vote_on_data(version, ballot)

    def reject_data(
        self,
        version: Version,
        *,
        reason: str,
        content: str | None = None,
        key: Signer | None = None,
    ) -> RecordedVersionVote:
        """Refuse a pending version. A refusal blocks until withdrawn.

        Args:
            version: The version.
            reason: As for `approve`.
            content: As for `approve_data`.
            key: As for `reject`.

        Raises:
            ConflictError: If they do not own it, or it does not wait for its owners.
            InputError: As for `approve_data`.
            StaleError: If it has other contents.
            UsageError: As for `approve`.
        """
        ballot = Ballot(False, reason, None, key, content)  # noqa: FBT003
        return self.vote_on_data(version, ballot)

    def vote(self, name: str, ballot: Ballot) -> RecordedContractVote:
        """Vote on a contract, as an owner of its data."""
        return self._ledger.turn(
            lambda entry: vote_on_contract(
                entry, named(entry.book.state.escrow, name), ballot
            )
        )

    def vote_on_data(self, version: Version, ballot: Ballot) -> RecordedVersionVote:
        """Vote on a version that waits, as an owner of the data."""
        return self._ledger.turn(lambda entry: vote_on_version(entry, version, ballot))

    # --- flowing ---

    def run(self, name: str) -> Ran:
        """Run a contract; its results are withheld.

        Args:
            name: The contract.

        Raises:
            ApprovalError: If people must agree to a release first.
            ConflictError: If the contract does not permit it now.
            InputError: If it does not exist, or is a disclosure contract.
            StaleError: If its queries were priced under another policy.
            UnavailableError: If its sandbox is not there, and nothing ran; or it ended
                without results, and the use is counted.
            UsageError: If there is no ledger, or no vault.
        """
        contract, query = self._ledger.turn(lambda entry: _to_run(entry, name))
        if isinstance(contract.terms, QueryTerms):
            return run_query(self._ledger, self._tools, contract)
        if isinstance(contract.terms, TaskTerms) and query is not None:
            if contract.terms.blocks:
                return run_blocks(self._ledger, self._tools, contract, query)
            return run_task(self._ledger, self._tools, contract, query)
        raise InputError(
            Problem(
                Code.CONTRACT_REFUSED,
                f"nothing runs under the contract `{name}`: it discloses a result",
                help=f"receive it:  modicum escrow receive {name}",
            )
        )

    def receive(self, name: str) -> DisclosedResult:
        """Return the disclosure of a contract to one of its recipients: the actor.

        Args:
            name: The contract.

        Raises:
            ConflictError: If the contract does not permit it now.
            InputError: If there is none.
            UnavailableError: If it cannot be read; nothing was disclosed then.
            UsageError: If there is no ledger, or no vault.
            VerificationError: If the withheld content was changed.
        """
        vault = self._tools.equipment.vault

        def look(entry: Entry) -> tuple[Flow, Flow, Sealed]:
            flow = named(entry.book.state.escrow, name)
            parent, sealed = find_result(entry, flow)
            return replace(flow), replace(parent), sealed

        flow, parent, sealed = self._ledger.turn(look)
        found = disclosed_value(vault, flow, parent, sealed)
        self._ledger.turn(lambda entry: disclose(entry, flow, parent))
        return found


def _to_run(entry: Entry, name: str) -> tuple[Contract, Flow | None]:
    """Return a contract and the contract that it builds on, from the turn's own state.

    A read outside of a turn may come from a snapshot, which is not authenticated.
    """
    escrow = entry.book.state.escrow
    contract = named(escrow, name).contract
    parent = escrow.flow(contract.parent) if contract.parent else None
    return contract, None if parent is None else replace(parent)
