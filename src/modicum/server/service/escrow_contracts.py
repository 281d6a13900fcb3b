"""Contracts of the escrow, as those who may know of them look at them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from msgspec import UNSET

from modicum.api.local.escrow.execution import Tools
from modicum.api.local.escrow.programs import program_of
from modicum.api.local.escrow.review import (
    ContractRecord,
    ContractReview,
    contract_review,
    contract_reviews,
    examined,
    owner_votes,
)
from modicum.api.local.governance.approval_cases import VoteEntry
from modicum.api.local.governance.approvals import Ballot
from modicum.api.local.ledger_view import LedgerView
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.api.schema.escrow_input import RiskInput
from modicum.core.extras import needing_extras
from modicum.escrow.inspection import Inspection, inspected
from modicum.escrow.programs import Program
from modicum.ledger.log.approval_statement import statement_bytes
from modicum.ledger.log.contracts import TaskTerms
from modicum.ledger.log.events import ApprovalGiven
from modicum.ledger.state.datasets import OWNER
from modicum.risk.candidates import PUBLISHED
from modicum.server.service.escrow_visibility import (
    may_see_contract,
    may_see_data,
    must_be_owner,
    visible_contract,
)
from modicum.server.service.threads import Threads
from modicum.server.service.visibility import OF_ANOTHER, id_unusable

if TYPE_CHECKING:
    from modicum.ops.escrow.epsilon_choice import Facts


@dataclass(frozen=True, slots=True)
class ShownContract:
    """A contract as shown to owners before they vote.

    Attributes:
        found: The ledger data.
        program: Of a task, the program; None for others, or without a vault.
        inspection: The remarks on the program.
    """

    found: ContractRecord
    program: Program | None = None
    inspection: Inspection | None = None


class EscrowContracts:
    """Read operations on contracts of the escrow.

    Args:
        threads: Where they run.
        tools: The vault, sandboxes and engines; None for none.
    """

    def __init__(self, threads: Threads, tools: Tools | None) -> None:
        self._threads = threads
        self._tools = tools

    async def all(self, who: Identity) -> tuple[ContractReview, ...]:
        """Return the visible contracts, oldest first."""
        if not who.may(Action.TAKE_PART):
            who.must_some(Action.READ_CONTRACTS)

        def read_view(view: LedgerView) -> tuple[ContractReview, ...]:
            data = view.state().escrow.data
            return tuple(
                one
                for one in contract_reviews(view)
                if may_see_contract(who, one.flow, data)
            )

        return await self._threads.read_view(read_view)

    async def one(self, who: Identity, name: str) -> ShownContract:
        """Return a contract as its owners read it."""

        def read_view(view: LedgerView) -> ContractRecord:
            visible_contract(view.state().escrow, who, name)
            return examined(view, name)

        found = _without_hidden(who, await self._threads.study(read_view))
        terms = found.review.flow.contract.terms
        if not isinstance(terms, TaskTerms) or self._tools is None:
            return ShownContract(found)
        vault = self._tools.equipment.vault

        def read() -> ShownContract:
            program = program_of(vault, terms.program)
            return ShownContract(found, program, inspected(program))

        return await self._threads.compute(read)

    async def votes(
        self, who: Identity, name: str
    ) -> tuple[ContractReview, tuple[VoteEntry, ...]]:
        """Return the consents of a contract's owners, and the votes."""

        def read_view(view: LedgerView) -> tuple[ContractReview, tuple[VoteEntry, ...]]:
            flow = visible_contract(view.state().escrow, who, name)
            return contract_review(view, flow.contract.id), owner_votes(view, name)

        return await self._threads.read_view(read_view)

    async def risk(self, who: Identity, risk_input: RiskInput) -> dict[str, object]:
        """Return the meaning of an epsilon for a query, without reading a row."""
        who.must_some(Action.READ_DATA)
        facts = facts_of(risk_input)

        def read_view(view: LedgerView) -> dict[str, object]:
            from modicum.ops.escrow.epsilon_choice import risk_of, risk_of_file

            escrow, compiled = view.state().escrow, view.policy()
            if risk_input.contract:
                flow = visible_contract(escrow, who, risk_input.contract)
                found = risk_of(flow, escrow.data, compiled, facts)
            else:
                known = {
                    name: one
                    for name, one in escrow.data.items()
                    if may_see_data(who, name, one)
                }
                found = risk_of_file(risk_input.file or "", known, compiled, facts)
            return found.to_dict(found.choose(risk_input.tau))

        return await self._threads.study(read_view)

    async def statement(
        self, who: Identity, name: str, ballot: Ballot, key: str
    ) -> tuple[str, str]:
        """Return the statement to sign for a vote on a contract, and its head."""

        def read_view(view: LedgerView) -> tuple[str, str]:
            state, policy = view.state(), view.policy().policy
            flow = visible_contract(state.escrow, who, name)
            must_be_owner(who, flow, state.escrow.data)
            body = ApprovalGiven(
                "contract",
                name,
                flow.contract.digest,
                ballot.approves,
                (OWNER,),
                ballot.reason,
                head=state.head,
            )
            statement = statement_bytes(
                body, by=who.name, policy=policy.digest, key=key
            )
            return statement.decode("utf-8"), state.head

        return await self._threads.read_view(read_view)


def facts_of(risk_input: RiskInput) -> Facts:
    """Return the given facts about a query besides its contract."""
    with needing_extras():
        from modicum.ops.escrow.epsilon_choice import Facts
    delta = None if risk_input.delta is UNSET else risk_input.delta
    return Facts(risk_input.query or None, delta, risk_input.epsilons or PUBLISHED)


def _without_hidden(who: Identity, found: ContractRecord) -> ContractRecord:
    """Return a contract without releases hidden from the caller."""
    if who.may(Action.READ_RELEASES):
        return found
    statement = id_unusable(None).problems[0].message
    queries = tuple(
        replace(one, problem=statement) if one.code in OF_ANOTHER else one
        for one in found.queries
    )
    return replace(found, queries=queries)
