"""What all runs of the escrow have in common: how they begin, and how they end.

A run is counted before anything is read. Whatever becomes of it, who asked is told no
more than that it ended: why it failed may be a fact about rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Final

from modicum.core.document import Node
from modicum.core.errors import (
    Code,
    ModicumError,
    Problem,
    UnavailableError,
)
from modicum.ledger.log.contracts import Contract, QueryTerms, TaskTerms
from modicum.ledger.log.escrow_events import FlowBegun, FlowFailed, FlowWithheld
from modicum.ledger.log.events import ReleaseStarted
from modicum.ledger.state.escrow import not_permitted
from modicum.ledger.state.flow import in_general
from modicum.workspace.book import Entry
from modicum.workspace.decision import Decision
from modicum.workspace.escrowing import places
from modicum.workspace.escrowing.ledger import Ledger
from modicum.workspace.escrowing.ports import Equipment, Sealed
from modicum.workspace.querying.ports import Engines
from modicum.workspace.steps import step

_DENIED: Final = "another query of its contract was denied"
#: Why what was reserved is taken back, if its run may not begin any more.
CHANGED: Final = "its contract did not permit it any more"
#: How long a ledger that cannot be reached is waited for, in seconds: time and again.
_PAUSES: Final = (1.0, 4.0, 10.0, 15.0)


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a run.

    Attributes:
        denied: What the ledger said to the query that it denied; None if it ran.
    """

    denied: Decision | None = None


@dataclass(frozen=True, slots=True)
class Tools:
    """What runs need.

    Attributes:
        equipment: The vault, and sandboxes.
        engines: Where engines for queries come from.
    """

    equipment: Equipment
    engines: Engines


def must_be_permitted(entry: Entry, contract: Contract) -> None:
    """Refuse early, before anything is reserved; the fold refuses again.

    Args:
        entry: The turn.
        contract: The contract.

    Raises:
        ConflictError: If it does not permit a run now.
    """
    state = entry.book.state
    flow = state.escrow.flow(contract.digest)
    said = state.approvals.get(("contract", contract.digest), ())
    consent = state.escrow.consents(flow, said)
    why = "its results are withheld" if flow.results else ""
    why = why or in_general(flow, state.escrow.data, consent, entry.now)
    if why:
        raise not_permitted(flow, why)


def reserve(ledger: Ledger, releases: Sequence[tuple[str, Node]]) -> Decision | None:
    """Reserve what releases cost; return the denial if one is denied.

    Args:
        ledger: The ledger.
        releases: By id, what each is described by.

    Raises:
        ApprovalError: If people must agree to one of them first.
        ConflictError: If an id stands with other contents.
    """
    reserved: list[str] = []
    for release, described in releases:
        try:
            decision = ledger.submit(described)
        except ModicumError:
            give_up(ledger, reserved, _DENIED)
            raise
        if not decision.allowed:
            give_up(ledger, reserved, _DENIED)
            return decision
        reserved.append(release)
    return None


def give_up(ledger: Ledger, releases: Iterable[str], reason: str) -> None:
    """Take back what was reserved for a run that does not begin, as far as it goes.

    Args:
        ledger: The ledger.
        releases: The ids of the releases.
        reason: Why, for the record.
    """
    for one in releases:
        with suppress(ModicumError):  # It ends by itself, and why is told already.
            ledger.void(one, reason=reason)


def begin(entry: Entry, contract: Contract) -> int:
    """Count a run, and spend what it costs: rows may be read from here on.

    Args:
        entry: The turn.
        contract: The contract.

    Returns:
        The number of the run.

    Raises:
        ConflictError: If the contract does not permit it, or what it charges was
            started before.
    """
    terms = contract.terms
    assert isinstance(terms, QueryTerms | TaskTerms)
    for one in terms.charges:
        # What started before may have told something: then this refuses.
        step(ReleaseStarted(one.release), entry)
    run = entry.book.state.escrow.flow(contract.digest).runs + 1
    entry.add(FlowBegun(contract.digest, run))
    return run


def rows_of(
    ledger: Ledger, tools: Tools, contract: Contract, stack: ExitStack
) -> Mapping[str, object]:
    """Return by data set where its rows are, in memory, while a stack is open.

    Args:
        ledger: The ledger.
        tools: What runs need.
        contract: The contract, which names the versions.
        stack: What closes them.

    Raises:
        UnavailableError: If a key cannot be had.
        VerificationError: If something is not what was put in.
    """

    def look(entry: Entry) -> dict[str, tuple[Sealed, str]]:
        data = entry.book.state.escrow.data
        found = {}
        for one in contract.data.values():
            version = data[one.id].versions[one.number]
            sealed = Sealed(places.of_data(one), version.sealed)
            found[one.id] = sealed, version.media
        return found

    return {
        name: stack.enter_context(tools.equipment.rows(*where))
        for name, where in ledger.turn(look).items()
    }


def carried_out(
    ledger: Ledger,
    tools: Tools,
    contract: Contract,
    run: int,
    work: Callable[[], Mapping[str, bytes]],
) -> Ran:
    """Do the work of a run that began, and withhold what it computed.

    Args:
        ledger: The ledger.
        tools: What runs need.
        contract: The contract.
        run: The number of the run.
        work: Returns what is withheld, by the name of the result.

    Raises:
        UnavailableError: If it ended without results; why is not told.
    """
    digest, results = contract.digest, dict[str, str]()
    try:
        for name, content in work().items():
            place = places.of_result(digest, run, name)
            results[name] = tools.equipment.vault.seal(place, content).digest
    except Exception:  # noqa: BLE001 - it may quote rows; that it failed is told below
        results.clear()
    _tell(ledger, tools.equipment, FlowWithheld(digest, run, results))
    if not results:
        raise _ended(contract)
    return Ran()


def _tell(ledger: Ledger, equipment: Equipment, told: FlowWithheld) -> None:
    """Write how a run ended; try for a while, as what it charged is spent.

    Raises:
        UnavailableError: If the ledger cannot be reached for long: nobody can tell of
            its results any more.
    """

    def work(entry: Entry) -> None:
        flow = entry.book.state.escrow.flow(told.contract)
        if told.run not in flow.running:
            return  # The last try told it, and never knew.
        if told.results and not flow.results:
            entry.add(told)
        else:  # Or another run of it left results first.
            entry.add(FlowFailed(told.contract, told.run))

    for seconds in _PAUSES:
        with suppress(UnavailableError):
            return ledger.turn(work)
        equipment.pause(seconds)
    return ledger.turn(work)


def _ended(contract: Contract) -> ModicumError:
    return UnavailableError(
        Problem(
            Code.ENGINE_FAILED,
            f"a run of the contract `{contract.id}` ended without a result",
            notes=(
                "why is not told: it may be a fact about rows",
                "the use is counted, and what it charged is spent",
            ),
            help="its owners may look at the data, and try the query on a copy",
        )
    )
