"""What people do in the escrow: register data, ask for flows, agree, run, receive.

The steps of the utility signaling protocol are these verbs. An analyst asks for queries
(`ask_query`), owners look at that and agree (`show`, `approve`), it is run and withheld
(`run`), its answers are asked for, agreed to and received (`ask_output`, `receive`);
then the same for a task (`ask_task`) and its scores (`ask_signal`, `ask_raw_signal`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction

from modicum.core.errors import (
    Code,
    InputError,
    Problem,
    UsageError,
    VerificationError,
)
from modicum.escrow.blocks import ByBlocks
from modicum.escrow.catalogue import vetted
from modicum.escrow.programs import Program
from modicum.ledger.log.approval_statement import Signer
from modicum.ledger.log.contracts import QueryTerms, TaskTerms, Version
from modicum.ledger.log.escrow_events import (
    ContractWithdrawn,
)
from modicum.ledger.state.consent import Consents
from modicum.ledger.state.data_sets import DataSet
from modicum.ledger.state.escrow import Escrow as EscrowState
from modicum.ledger.state.flow import Flow
from modicum.workspace.book import Entry
from modicum.workspace.escrowing import asking
from modicum.workspace.escrowing.asking import Asked, Heading, Wanted
from modicum.workspace.escrowing.carrying_out import run_query, run_task
from modicum.workspace.escrowing.data_kept import (
    Declared,
    Given,
    Owned,
    register,
    shred,
)
from modicum.workspace.escrowing.ledger import Ledger
from modicum.workspace.escrowing.letting_go import LetGo, let_go, look_for, told
from modicum.workspace.escrowing.looking import named
from modicum.workspace.escrowing.own_rows import own_rows
from modicum.workspace.escrowing.ports import Limits, Sealed
from modicum.workspace.escrowing.programs_kept import keep_code, program_of
from modicum.workspace.escrowing.running_blocks import run_blocks
from modicum.workspace.escrowing.runs import Ran, Tools
from modicum.workspace.escrowing.speaking import SaidToContract, say_to_contract
from modicum.workspace.governing.governance import reason_text
from modicum.workspace.governing.saying import Word
from modicum.workspace.ports import Clock


@dataclass(frozen=True, slots=True)
class Shown:
    """A contract as people look at it before they say something to it.

    Attributes:
        flow: The contract, and how far it has come.
        consents: Where its owners stand.
        program: Of a task, the program that it runs; None for others.
    """

    flow: Flow
    consents: Consents
    program: Program | None = None


class EscrowOffice:
    """What somebody does in the escrow.

    Args:
        ledger: The ledger.
        tools: The vault, sandboxes and engines; None for none.
        clock: The time of day.
        actor: Who acts.
        among: The data sets that they know of, to put queries to; None for all.
    """

    def __init__(
        self,
        ledger: Ledger,
        tools: Tools | None,
        clock: Clock,
        actor: str,
        *,
        among: Collection[str] | None = None,
    ) -> None:
        self._ledger, self._clock, self._actor = ledger, clock, actor
        self._among = among
        self._given = tools

    # --- data ---

    def register(
        self, name: str, content: bytes, declared: Declared, owned: Owned | None = None
    ) -> Version:
        """Put a version of a data set into the vault, and register it.

        Args:
            name: What it is called: the name of its table.
            content: Its rows.
            declared: What its table is, and how its rows are written.
            owned: Whose it is, for its first version; None for a later one.

        Raises:
            ConflictError: If the actor does not own it, or it is owned otherwise.
            InputError: If the file does not declare it, or it is new and nobody owns
                it.
            UnavailableError: If it cannot be stored.
            UsageError: If there is no ledger with a policy, or no vault.
        """
        given = Given(name, content, declared, owned)
        vault = self._tools.equipment.vault
        return register(self._ledger, vault, given, self._actor)

    def shred(self, version: Version, *, reason: str) -> None:
        """Destroy a version, and whatever was computed of it and is withheld.

        First the ledger says so, and nothing flows from it any more; then the keys are
        destroyed. If that fails, shred it again.

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
        return dict(self._look().data)

    # --- asking ---

    def ask_query(
        self, heading: Heading, queries: Sequence[str], *, exact: bool = False
    ) -> Flow:
        """Ask that queries are run on registered data, and their answers withheld.

        Args:
            heading: What it is called, why, and how long.
            queries: Query files, as texts; their tables are data sets.
            exact: Whether exact answers are computed, too, for a later signal.

        Raises:
            ConflictError: If it cannot be proposed.
            InputError: If a query cannot be priced, or reads what is not registered.
            UsageError: If there is no ledger with a policy.
        """
        wanted = asking.Queries(queries, exact, self._among)
        return self._ask(
            heading, lambda entry, asked: asking.ask_query(entry, asked, wanted)
        )

    def ask_task(
        self,
        heading: Heading,
        query: str,
        program: Program,
        *,
        tier: str = "bubblewrap",
        limits: Limits | None = None,
        blocks: ByBlocks | None = None,
    ) -> Flow:
        """Ask that a program runs on withheld answers, and its scores are withheld.

        Args:
            heading: What it is called, why, and how long.
            query: The contract whose answers it runs on.
            program: The program; its code is put into the vault.
            tier: The sandbox that it runs in.
            limits: What it may use up; None for the usual.
            blocks: Into which blocks people are divided, for a score on exact answers
                that is differentially private, and charged; None for scores on what
                is withheld. It runs once, for each block so long as `limits` say.

        Raises:
            ConflictError: If it cannot be proposed.
            InputError: If there is no such contract, or no reason; or the program
                calls itself a text of the catalogue and is none; or the queries cannot
                be divided into blocks.
            UnavailableError: If its code cannot be stored.
            UsageError: If there is no ledger, or no vault.
        """
        _must_be_what_it_says(program)
        keep_code(self._tools.equipment.vault, program)
        wanted = Wanted(program, tier, limits or Limits(), blocks)
        return self._ask(
            heading,
            lambda entry, asked: asking.ask_task(
                entry, asked, _flow(entry, query), wanted
            ),
        )

    def ask_output(self, heading: Heading, query: str) -> Flow:
        """Ask that private answers go out.

        Args:
            heading: What it is called, why, how long, and to whom.
            query: The contract whose answers they are.

        Raises:
            ConflictError: If it cannot be proposed, or has not run.
            InputError: If there is no such contract, or no reason.
            UsageError: If there is no ledger.
        """
        return self._ask(
            heading,
            lambda entry, asked: asking.ask_output(entry, asked, _flow(entry, query)),
        )

    def ask_signal(self, heading: Heading, task: str) -> Flow:
        """Ask that the score on private answers goes out.

        Args:
            heading: What it is called, why, how long, and to whom.
            task: The contract whose score it is.

        Raises:
            ConflictError: If it cannot be proposed, or has not run.
            InputError: If there is no such contract, or no reason.
            UsageError: If there is no ledger.
        """
        return self._ask(
            heading,
            lambda entry, asked: asking.ask_signal(entry, asked, _flow(entry, task)),
        )

    def ask_raw_signal(
        self, heading: Heading, task: str, *, width: Fraction | None
    ) -> Flow:
        """Ask that the score on exact answers goes out, which no epsilon describes.

        Args:
            heading: What it is called, why, how long, and to whom.
            task: The contract whose score it is.
            width: How wide the bins are, of which one is told; None for the exact
                score, to which two people must agree.

        Raises:
            ConflictError: If it cannot be proposed, or has not run, or more would be
                told than owners allow.
            InputError: If there is no such contract, no reason, or bins cannot be so
                wide.
            UsageError: If there is no ledger.
        """
        return self._ask(
            heading,
            lambda entry, asked: asking.ask_raw_signal(
                entry, asked, _flow(entry, task), width
            ),
        )

    def withdraw(self, name: str, *, reason: str) -> Flow:
        """Take back a contract that the actor asked for.

        Args:
            name: What it is called.
            reason: Why, for the record; 1 to 2000 characters.

        Raises:
            ConflictError: If they did not ask for it, or it was withdrawn.
            InputError: If there is no such contract, or no reason.
            UsageError: If there is no ledger.
        """

        def work(entry: Entry) -> Flow:
            why = reason_text(reason, "withdrawing a contract")
            flow = _flow(entry, name)
            entry.add(ContractWithdrawn(flow.contract.digest, why))
            return replace(flow)

        return self._ledger.turn(work)

    # --- looking ---

    def contracts(self) -> tuple[Flow, ...]:
        """Return all contracts, oldest first. Writes nothing.

        Raises:
            UsageError: If there is no ledger.
        """
        return tuple(replace(one) for one in self._look().flows.values())

    def show(self, name: str) -> Shown:
        """Return a contract as people look at it. Writes nothing.

        Args:
            name: What it is called.

        Raises:
            InputError: If there is none.
            VerificationError: If the code of its program is not the one it names.
            UsageError: If there is no ledger.
        """
        book, _, _ = self._ledger.look()
        state = book.state
        flow = named(state.escrow, name)
        said = state.approvals.get(("contract", flow.contract.digest), ())
        consents = state.escrow.consents(flow, said)
        terms, program = flow.contract.terms, None
        if isinstance(terms, TaskTerms) and self._given is not None:
            program = program_of(self._given.equipment.vault, terms.program)
        return Shown(replace(flow), consents, program)

    def own_rows(
        self, versions: Iterable[Version]
    ) -> AbstractContextManager[Mapping[str, object]]:
        """Return rows by data set, while it is open, to an owner of all of them.

        They are in memory only. Writes nothing.

        Args:
            versions: The versions of the data sets.

        Raises:
            ConflictError: If the actor does not own one of them, or it was shredded.
            InputError: If there is no such version.
            UnavailableError: If a key cannot be had.
            UsageError: If there is no ledger, or no vault.
            VerificationError: If something is not what was put in.
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
    ) -> SaidToContract:
        """Agree to a contract, as an owner of its data.

        Args:
            name: What it is called.
            reason: Why, for the record; 1 to 2000 characters.
            head: The hash of the last entry that the actor has looked at, or at least
                its first 12 characters; None for whichever is last.
            content: The digest of the contract that the actor has looked at; None for
                whichever it has.
            key: What signs it; None for nobody.

        Raises:
            ApprovalError: If it is not signed as their data set asks.
            ConflictError: If they own none of its data, or it is over.
            InputError: If there is no such contract, or no reason.
            StaleError: If something came in since `head`, or it has other contents.
            UsageError: If there is no ledger with a policy.
        """
        return self._say(name, Word(True, reason, head, key, content))  # noqa: FBT003

    def reject(
        self,
        name: str,
        *,
        reason: str,
        content: str | None = None,
        key: Signer | None = None,
    ) -> SaidToContract:
        """Refuse a contract, or take an agreement back. It blocks until taken back.

        Args:
            name: What it is called.
            reason: As for `approve`.
            content: As for `approve`.
            key: As for `approve`; a refusal counts without, too.

        Raises:
            ConflictError: If they own none of its data.
            InputError: As for `approve`.
            StaleError: If it has other contents.
            UsageError: As for `approve`.
        """
        return self._say(name, Word(False, reason, None, key, content))  # noqa: FBT003

    # --- flowing ---

    def run(self, name: str) -> Ran:
        """Run what a contract permits; what it computes is withheld.

        Args:
            name: What the contract is called.

        Raises:
            ApprovalError: If people must agree to a release first.
            ConflictError: If the contract does not permit it now.
            InputError: If there is none, or it lets something go.
            StaleError: If its queries were priced under another policy.
            UnavailableError: If its sandbox is not there, and nothing ran; or it ended
                without results, and the use is counted.
            UsageError: If there is no ledger, or no vault.
        """
        escrow = self._look()
        contract = named(escrow, name).contract
        if isinstance(contract.terms, QueryTerms):
            return run_query(self._ledger, self._tools, contract)
        if isinstance(contract.terms, TaskTerms):
            query = escrow.flow(contract.parent)
            if contract.terms.blocks:
                return run_blocks(self._ledger, self._tools, contract, query)
            return run_task(self._ledger, self._tools, contract, query)
        raise InputError(
            Problem(
                Code.CONTRACT_REFUSED,
                f"nothing runs under the contract `{name}`: it lets something go",
                help=f"receive it:  modicum escrow receive {name}",
            )
        )

    def receive(self, name: str) -> LetGo:
        """Return what a contract lets go, to one of its recipients: the actor.

        Args:
            name: What the contract is called.

        Raises:
            ConflictError: If the contract does not permit it now.
            InputError: If there is none.
            UnavailableError: If it cannot be read; nothing went out then.
            UsageError: If there is no ledger, or no vault.
            VerificationError: If it is not what was withheld.
        """
        vault = self._tools.equipment.vault

        def look(entry: Entry) -> tuple[Flow, Flow, Sealed]:
            flow = _flow(entry, name)
            parent, sealed = look_for(entry, flow)
            return replace(flow), replace(parent), sealed

        flow, parent, sealed = self._ledger.turn(look)
        found = told(vault, flow, parent, sealed)
        self._ledger.turn(lambda entry: let_go(entry, flow, parent))
        return found

    # --- inside ---

    @property
    def _tools(self) -> Tools:
        if self._given is None:
            raise UsageError(
                Problem(
                    Code.NOT_SUPPORTED,
                    "this workspace has no vault",
                    help="say where it is:  --vault FOLDER --vault-keys FILE",
                )
            )
        return self._given

    def _look(self) -> EscrowState:
        book, _, _ = self._ledger.look()
        return book.state.escrow

    def _ask(self, heading: Heading, work: Callable[[Entry, Asked], Flow]) -> Flow:
        if heading.lasts_seconds < 1:
            raise InputError(
                Problem(
                    Code.OUT_OF_RANGE,
                    f"a contract cannot hold for {heading.lasts_seconds} seconds",
                    help="let it hold for 1 second at least",
                )
            )
        ends = self._clock.after(self._clock.now(), heading.lasts_seconds)
        asked = Asked(heading, ends)
        return self._ledger.turn(lambda entry: replace(work(entry, asked)))

    def _say(self, name: str, word: Word) -> SaidToContract:
        return self._ledger.turn(
            lambda entry: say_to_contract(entry, _flow(entry, name), word)
        )


def _flow(entry: Entry, name: str) -> Flow:
    return named(entry.book.state.escrow, name)


def _must_be_what_it_says(program: Program) -> None:
    """Refuse a program that calls itself a text of the catalogue, and is none."""
    try:
        vetted(program)
    except VerificationError as error:  # Here it is whoever asks who is mistaken.
        raise InputError(*error.problems) from None
