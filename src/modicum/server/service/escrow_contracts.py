"""Contracts of the escrow: asked for, looked at, agreed to, carried out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from modicum.core.errors import AccessError, Code, ConflictError, Problem
from modicum.escrow.inspection import Inspection, inspected
from modicum.escrow.programs import Program
from modicum.ledger.log.approval_statement import statement_bytes
from modicum.ledger.log.contracts import TaskTerms
from modicum.ledger.log.events import ApprovalGiven
from modicum.ledger.state.escrow import OWNER
from modicum.ledger.state.flow import Flow
from modicum.server.reading_escrow_risk import RiskAsked
from modicum.server.service.data_sets import may, must, must_some
from modicum.server.service.escrow_data import needed
from modicum.server.service.escrow_sight import (
    may_see_contract,
    may_see_data,
    owned_by,
    seen_contract,
    takes_part,
)
from modicum.server.service.job import Job, Report
from modicum.server.service.jobs import Jobs
from modicum.server.service.sight import OF_ANOTHER, id_unusable
from modicum.server.service.threads import Threads
from modicum.server.service.words import Word, refuse_repeated
from modicum.shell.escrow.by_risk import risk_of, risk_of_file
from modicum.shell.serving.decider import Decider
from modicum.shell.serving.once import Once
from modicum.workspace.documents.contracts import looked_to_dict
from modicum.workspace.documents.decisions import decision_to_dict
from modicum.workspace.escrowing.letting_go import LetGo
from modicum.workspace.escrowing.looking import (
    Examined,
    Looked,
    examined,
    looked_at,
    looked_at_all,
    must_be_usable,
    words_said,
)
from modicum.workspace.escrowing.looking import Word as Spoken
from modicum.workspace.escrowing.programs_kept import program_of
from modicum.workspace.escrowing.runs import Tools
from modicum.workspace.escrowing.speaking import SaidToContract
from modicum.workspace.ledger_view import LedgerView
from modicum.workspace.permissions.actions import Action
from modicum.workspace.permissions.identity import Identity


@dataclass(frozen=True, slots=True)
class Shown:
    """A contract as its owners read it before they agree.

    Attributes:
        found: What the ledger knows of it.
        program: Of a task, the program; None for others, or without a vault.
        inspection: What there is to say about the program.
    """

    found: Examined
    program: Program | None = None
    inspection: Inspection | None = None


class EscrowContracts:
    """What can be done with contracts of the escrow.

    Args:
        decider: The ledger.
        threads: Where it is asked.
        jobs: Where what takes long is done.
        tools: The vault, sandboxes and engines; None for none.
    """

    def __init__(
        self, decider: Decider, threads: Threads, jobs: Jobs, tools: Tools | None
    ) -> None:
        self._decider = decider
        self._threads = threads
        self._jobs = jobs
        self._tools = tools

    # --- looking ---

    async def all(self, who: Identity) -> tuple[Looked, ...]:
        """Return the contracts that somebody may know of, oldest first.

        Args:
            who: Who asks.

        Raises:
            AccessError: If they may know of none.
        """
        if not who.may(Action.TAKE_PART):
            must_some(who, Action.READ_CONTRACTS)

        def look(view: LedgerView) -> tuple[Looked, ...]:
            data = view.state().escrow.data
            return tuple(
                one
                for one in looked_at_all(view)
                if may_see_contract(who, one.flow, data)
            )

        return await self._threads.look(look)

    async def one(self, who: Identity, name: str) -> Shown:
        """Return a contract as its owners read it.

        Args:
            who: Who asks.
            name: What it is called.

        Raises:
            InputError: If there is none, as far as they may know.
            VerificationError: If its program is not the one that it names.
        """

        def look(view: LedgerView) -> Examined:
            seen_contract(view.state().escrow, who, name)
            return examined(view, name)

        found = _without_hidden(who, await self._threads.study(look))
        terms = found.looked.flow.contract.terms
        if not isinstance(terms, TaskTerms) or self._tools is None:
            return Shown(found)
        vault = self._tools.equipment.vault

        def read() -> Shown:
            program = program_of(vault, terms.program)
            return Shown(found, program, inspected(program))

        return await self._threads.compute(read)

    async def words(
        self, who: Identity, name: str
    ) -> tuple[Looked, tuple[Spoken, ...]]:
        """Return where the owners of a contract stand, and what they said.

        Args:
            who: Who asks.
            name: What it is called.

        Raises:
            InputError: If there is none, as far as they may know.
        """

        def look(view: LedgerView) -> tuple[Looked, tuple[Spoken, ...]]:
            flow = seen_contract(view.state().escrow, who, name)
            return looked_at(view, flow.contract.id), words_said(view, name)

        return await self._threads.look(look)

    async def risk(self, who: Identity, asked: RiskAsked) -> dict[str, object]:
        """Return what an epsilon means for a query, before a row is read.

        Args:
            who: Who asks.
            asked: What they ask.

        Raises:
            AccessError: If they may know of no data.
            InputError: If there is no such contract or data, as far as they may know,
                or no epsilon is chosen by risk for such a query.
            StaleError: If the query means something else under the active policy.
        """
        must_some(who, Action.READ_DATA)

        def look(view: LedgerView) -> dict[str, object]:
            escrow, compiled = view.state().escrow, view.policy()
            if asked.contract:
                flow = seen_contract(escrow, who, asked.contract)
                found = risk_of(flow, escrow.data, compiled, asked.facts)
            else:
                known = {
                    name: one
                    for name, one in escrow.data.items()
                    if may_see_data(who, name, one)
                }
                found = risk_of_file(asked.file, known, compiled, asked.facts)
            return found.to_dict(found.choose(asked.tau))

        return await self._threads.study(look)

    async def statement(
        self, who: Identity, name: str, word: Word, key: str
    ) -> tuple[str, str]:
        """Return what somebody signs who speaks about a contract, and at which head.

        Args:
            who: Who speaks.
            name: What it is called.
            word: What they would say.
            key: The raw public key that they sign with, in hexadecimal.

        Raises:
            AccessError: If they may not speak.
            InputError: If there is none, as far as they may know.
        """

        def look(view: LedgerView) -> tuple[str, str]:
            state, policy = view.state(), view.policy().policy
            flow = seen_contract(state.escrow, who, name)
            self._must_speak(who, view, flow)
            body = ApprovalGiven(
                "contract",
                name,
                flow.contract.digest,
                word.approves,
                (OWNER,),
                word.reason,
                head=state.head,
            )
            said = statement_bytes(body, by=who.name, policy=policy.digest, key=key)
            return said.decode("utf-8"), state.head

        return await self._threads.look(look)

    # --- saying ---

    async def withdraw(self, who: Identity, name: str, reason: str, once: Once) -> Flow:
        """Take back a contract that somebody asked for.

        Args:
            who: Who does.
            name: What it is called.
            reason: Why, for the record.
            once: What makes it a request that is done once.

        Raises:
            AccessError: If they take no part in it.
            ConflictError: If they did not ask for it, or it was withdrawn.
            InputError: If there is none, as far as they may know.
        """

        def work() -> Flow:
            refuse_repeated(self._decider, who, once)
            self._must_take_part(who, name)
            office = self._decider.escrow(self._tools, who.name, once=once)
            return office.withdraw(name, reason=reason)

        return await self._threads.ask(work)

    async def say(
        self, who: Identity, name: str, word: Word, once: Once
    ) -> SaidToContract:
        """Agree to a contract, or refuse it, as an owner of its data.

        Args:
            who: Who speaks.
            name: What it is called.
            word: What they say.
            once: What makes it a request that is done once.

        Raises:
            AccessError: If they may not, for their data sets.
            ApprovalError: If it is not signed as their data set asks.
            ConflictError: If they own none of its data, or it is over.
            InputError: If there is none, as far as they may know.
            StaleError: If something came in since they looked, or it has other
                contents.
        """

        def work() -> SaidToContract:
            refuse_repeated(self._decider, who, once)

            def look(view: LedgerView) -> None:
                flow = seen_contract(view.state().escrow, who, name)
                self._must_speak(who, view, flow)

            self._decider.glance(look)
            office = self._decider.escrow(self._tools, who.name, once=once)
            if not word.approves:
                return office.reject(
                    name, reason=word.reason, content=word.content, key=word.key
                )
            return office.approve(
                name,
                reason=word.reason,
                head=word.head,
                content=word.content,
                key=word.key,
            )

        return await self._threads.ask(work)

    # --- flowing ---

    async def run(self, who: Identity, name: str) -> Job:
        """Begin to run what a contract permits; what it computes is withheld.

        Args:
            who: Who runs it.
            name: What it is called.

        Raises:
            AccessError: If they take no part in it.
            ConflictError: If it does not permit that now.
            InputError: If there is none, as far as they may know.
            UnavailableError: If too many jobs are under way.
            UsageError: If the server has no escrow.
        """
        tools = needed(self._tools)
        await self._threads.compute(lambda: self._must_carry_out(who, name))

        def work(_: Report) -> object:
            office = self._decider.escrow(tools, who.name)
            try:
                ran = office.run(name)
            except ConflictError as conflict:
                hidden = not who.may(Action.READ_RELEASES)
                if conflict.code in OF_ANOTHER and hidden:
                    raise id_unusable(None) from None
                raise
            denied = None
            if ran.denied is not None:
                denied = decision_to_dict(ran.denied, words=True)
            return {"denied": denied, "contract": looked_to_dict(self._looked(name))}

        return self._jobs.begin(who, Action.TAKE_PART, "run-contract", work)

    async def receive(self, who: Identity, name: str) -> LetGo:
        """Return what a contract lets go, to one of its recipients.

        Args:
            who: Who receives it.
            name: What it is called.

        Raises:
            AccessError: If they take no part in it.
            ConflictError: If it does not permit that now.
            InputError: If there is none, as far as they may know.
            UnavailableError: If it cannot be read; nothing went out then.
            UsageError: If the server has no escrow.
            VerificationError: If it is not what was withheld.
        """
        tools = needed(self._tools)

        def work() -> LetGo:
            self._must_take_part(who, name)
            return self._decider.escrow(tools, who.name).receive(name)

        return await self._threads.ask(work)

    # --- inside ---

    def _looked(self, name: str) -> Looked:
        return self._decider.glance(lambda view: looked_at(view, name))

    def _must_take_part(self, who: Identity, name: str) -> None:
        """Refuse who only looks on."""

        def look(view: LedgerView) -> bool:
            escrow = view.state().escrow
            flow = seen_contract(escrow, who, name)
            return takes_part(who, flow, escrow.data)

        if not self._decider.glance(look):
            who.must(Action.TAKE_PART)
            raise _no_part(who, name)

    def _must_carry_out(self, who: Identity, name: str) -> None:
        """Refuse who neither takes part nor carries out for others."""

        def look(view: LedgerView) -> bool:
            escrow = view.state().escrow
            flow = seen_contract(escrow, who, name)
            sets = frozenset[str | None](flow.contract.data_sets)
            part = takes_part(who, flow, escrow.data)
            return part or may(who, Action.CARRY_OUT_ANY, sets)

        if not self._decider.glance(look):
            who.must(Action.TAKE_PART)
            raise _no_part(who, name)
        self._decider.glance(lambda view: must_be_usable(view, name))

    @staticmethod
    def _must_speak(who: Identity, view: LedgerView, flow: Flow) -> None:
        """Refuse who may not approve for the data that they own."""
        own = owned_by(who, flow, view.state().escrow.data)
        must(
            who,
            Action.APPROVE_CONTRACT,
            frozenset[str | None](own or flow.contract.data_sets),
        )


def _without_hidden(who: Identity, found: Examined) -> Examined:
    """Return a contract that tells nothing of what stands under ids of others."""
    if who.may(Action.READ_RELEASES):
        return found
    said = id_unusable(None).problems[0].message
    queries = tuple(
        replace(one, problem=said) if one.code in OF_ANOTHER else one
        for one in found.queries
    )
    return replace(found, queries=queries)


def _no_part(who: Identity, name: str) -> AccessError:
    return AccessError(
        Problem(
            Code.FORBIDDEN,
            f"`{who.name}` takes no part in the contract `{name[:200]}`",
            help="its analyst, its recipients and the owners of its data do this",
        )
    )
