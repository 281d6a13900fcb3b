"""Contract proposals: queries, tasks, and disclosures."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias, cast

from msgspec import UnsetType

from modicum.api.local.escrow.actions import EscrowActions
from modicum.api.local.escrow.declared_tables import query_tree
from modicum.api.local.escrow.execution import Tools
from modicum.api.local.escrow.proposal import Purpose
from modicum.api.local.escrow.review import columns_of
from modicum.api.local.ledger_view import LedgerView
from modicum.api.local.release_datasets import data_sets_of, must
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.api.ports.escrow import Limits
from modicum.api.schema.escrow_input import (
    BlocksInput,
    ContractProposal,
    OutputProposal,
    QueryProposal,
    RawSignalProposal,
    SignalProposal,
    TaskProposal,
)
from modicum.escrow.blocks import ByBlocks
from modicum.escrow.programs import Program
from modicum.escrow.task_files import TaskFile
from modicum.escrow.tasks import program as made_of
from modicum.ledger.log.contracts import QueryTerms
from modicum.ledger.state.flow import Flow
from modicum.sandbox.catalog import installed
from modicum.server.service.escrow_datasets import needed
from modicum.server.service.escrow_visibility import owned_by, visible_contract
from modicum.server.service.parses import Tick
from modicum.server.service.threads import Threads
from modicum.server.service.votes import refuse_repeated
from modicum.writer.idempotency import IdempotencyKey
from modicum.writer.service import Decider

_Propose: TypeAlias = Callable[[EscrowActions], Flow]


class EscrowProposals:
    """The requests of analysts in the escrow.

    Args:
        decider: The ledger.
        threads: Where they run.
        tools: The vault, sandboxes and engines; None for none.
    """

    def __init__(self, decider: Decider, threads: Threads, tools: Tools | None) -> None:
        self._decider = decider
        self._threads = threads
        self._tools = tools

    async def propose(
        self, who: Identity, sent: ContractProposal, once: IdempotencyKey
    ) -> Flow:
        """Propose a contract.

        Args:
            who: The caller.
            sent: The proposal.
            once: The idempotency key.

        Raises:
            AccessError: If they may not, for one of its data sets.
            ConflictError: If it cannot be proposed.
            InputError: If it is malformed, or concerns hidden data.
            UsageError: If the server has no escrow.
        """
        who.must_some(Action.ASK_CONTRACT)
        tools = needed(self._tools)

        await self._threads.submit(refuse_repeated, self._decider, who, once)
        await self._must_submit(who, sent)

        def work() -> Flow:
            proposal = self._proposal(who, sent)
            among = self._among(who)
            office = self._decider.escrow(tools, who.name, once=once, among=among)
            return proposal(office)

        return await self._threads.submit(work)

    # --- inside ---

    def _among(self, who: Identity) -> frozenset[str]:
        """Return the data sets that a caller may query."""
        names = self._decider.glance(lambda view: [*view.state().escrow.data])
        return frozenset(one for one in names if who.may(Action.ASK_CONTRACT, one))

    def _proposal(self, who: Identity, sent: ContractProposal) -> _Propose:
        """Return a contract's proposal, after checking permission."""
        purpose = _purpose(sent)
        match sent:
            case QueryProposal(queries=queries, exact=exact):
                return lambda office: office.submit_query(purpose, queries, exact=exact)
            case TaskProposal(query=query, tier=tier):
                self._must_follow(who, query)
                program = self._program(sent)
                limits = Limits(float(sent.seconds), sent.memory_mib * 2**20)
                blocks = _blocks(sent.blocks)
                return lambda office: office.submit_task(
                    purpose,
                    query,
                    program,
                    tier=tier or None,
                    limits=limits,
                    blocks=blocks,
                )
            case OutputProposal(query=query):
                self._must_follow(who, query)
                return lambda office: office.submit_output(purpose, query)
            case RawSignalProposal(task=task):
                width = sent.width if isinstance(sent.width, Fraction) else None
                self._must_follow(who, task)
                return lambda office: office.submit_raw_signal(
                    purpose, task, width=width
                )
            case SignalProposal(task=task):
                self._must_follow(who, task)
                return lambda office: office.submit_signal(purpose, task)
            case _:
                raise AssertionError(sent)

    def _must_follow(self, who: Identity, name: str) -> None:
        """Refuse a proposal that builds on a contract hidden from the caller."""

        def read_view(view: LedgerView) -> None:
            escrow = view.state().escrow
            flow = visible_contract(escrow, who, name)
            own = owned_by(who, flow, escrow.data)
            sets = frozenset[str | None](own or flow.contract.data_sets)
            must(who, Action.ASK_CONTRACT, sets)

        self._decider.glance(read_view)

    async def _must_submit(self, who: Identity, sent: ContractProposal) -> None:
        """Refuse queries with releases of data sets without permission."""
        match sent:
            case QueryProposal(queries=queries):
                pass
            case TaskProposal(query=query, blocks=BlocksInput()):
                # It charges a release, as those queries did.
                queries = await self._threads.submit(self._queries_of, who, query)
            case _:
                return

        def check(tick: Tick) -> None:
            for text in queries:
                must(
                    who, Action.SUBMIT_RELEASE, data_sets_of(query_tree(text)) - {None}
                )
                tick()

        await self._threads.read(who.name, check)

    def _queries_of(self, who: Identity, name: str) -> tuple[str, ...]:
        """Return the queries of a contract that a proposal builds on."""
        self._must_follow(who, name)

        def read_view(view: LedgerView) -> tuple[str, ...]:
            terms = visible_contract(view.state().escrow, who, name).contract.terms
            charges = terms.charges if isinstance(terms, QueryTerms) else ()
            return tuple(one.text for one in charges)

        return self._decider.glance(read_view)

    def _program(self, sent: TaskProposal) -> Program:
        found = cast("Program | TaskFile", sent.program)
        if isinstance(found, Program):
            return found
        columns = self._decider.read_view(lambda view: columns_of(view, sent.query))
        return made_of(found.task, found.evaluation, installed(), columns)


def _purpose(sent: ContractProposal) -> Purpose:
    return Purpose(
        sent.contract,
        sent.reason,
        sent.lasts_seconds,
        sent.uses or None,
        getattr(sent, "to", ()),
        getattr(sent, "analyst", "") or "",
    )


def _blocks(sent: BlocksInput | UnsetType) -> ByBlocks | None:
    if not isinstance(sent, BlocksInput):
        return None
    return ByBlocks(sent.number, sent.loss, sent.unit or "", sent.noise)
