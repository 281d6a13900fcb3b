"""Common parts of escrow runs: start, execution, and end.

A run is counted before anything is read. Whatever its outcome, the requester learns
only that it ended: the cause of a failure may depend on rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from msgspec.structs import replace

from modicum.api.local.balances import Entry
from modicum.api.local.decision import Decision
from modicum.api.local.escrow import programs
from modicum.api.local.escrow.retry import Ledger, retry, retry_reads
from modicum.api.local.submit import step
from modicum.api.ports.engine import Engines
from modicum.api.ports.escrow import Apart, Equipment, Sealed, Still, Work, go_on
from modicum.core.document import Node
from modicum.core.errors import (
    Code,
    ConflictError,
    ModicumError,
    Problem,
    UnavailableError,
)
from modicum.ledger import ReleaseStatus
from modicum.ledger.log.contracts import Contract, QueryTerms, TaskTerms
from modicum.ledger.log.escrow_events import FlowBegun, FlowFailed, FlowWithheld
from modicum.ledger.log.events import ReleaseStarted
from modicum.ledger.state.escrow import not_permitted
from modicum.ledger.state.flow import in_general

#: By data set, where its rows lie, and how they are written.
Rows: TypeAlias = Mapping[str, tuple[Sealed, str]]

_DENIED: Final = "another query of its contract was denied"
_FAILED: Final = "another query of its contract could not be reserved"
#: The reason for releasing a reservation whose run may no longer start.
CHANGED: Final = "its contract no longer permits it"
#: A task has its sandbox for a day at most.
TASK_SECONDS: Final = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Ran:
    """The outcome of a run.

    Attributes:
        denied: The decision about the query that was denied; None if it ran.
    """

    denied: Decision | None = None


@dataclass(frozen=True, slots=True)
class Tools:
    """The dependencies of runs.

    Attributes:
        equipment: The vault, and sandboxes.
        engines: The source of query engines.
        task_seconds: So long the programs of a task may take in all: others wait.
        still: Raises if the run is no longer wanted. It is called while waiting for the
            sandbox, and before the run is counted and spent, but not afterwards.
    """

    equipment: Equipment
    engines: Engines
    task_seconds: int = TASK_SECONDS
    still: Still = go_on


def must_be_permitted(entry: Entry, contract: Contract) -> None:
    """Refuse early, before anything is reserved; the fold refuses again."""
    state = entry.book.state
    flow = state.escrow.flow(contract.digest)
    votes = state.approvals.get(("contract", contract.digest), ())
    consent = state.escrow.consents(flow, votes)
    why = "its results are withheld" if flow.results else ""
    why = why or in_general(flow, state.escrow.data, consent, entry.now)
    if why:
        raise not_permitted(flow, why)


def reserve(
    ledger: Ledger, tools: Tools, releases: Sequence[tuple[str, Node]]
) -> Decision | None:
    """Reserve the losses of releases; return the denial if one is denied.

    This precedes opening rows, whose duration depends on them: a denial may be repeated
    at no cost.
    """
    tools.still()
    reserved: list[str] = []
    for release, described in releases:
        try:
            decision = retry_reads(tools.equipment, partial(ledger.submit, described))
            if decision.allowed and decision.status != ReleaseStatus.RESERVED.value:
                raise _used(release, decision.status)
        except UnavailableError:
            raise
        except ModicumError:
            give_up(ledger, reserved, _FAILED)
            raise
        if not decision.allowed:
            give_up(ledger, reserved, _DENIED)
            return decision
        reserved.append(release)
    return None


def _used(release: str, status: str) -> ModicumError:
    return ConflictError(
        Problem(
            Code.RELEASE_STATE,
            f"release `{release}` is {status}, and a run starts its own releases",
            help="propose the query again, under another id",
        )
    )


def give_up(ledger: Ledger, releases: Iterable[str], reason: str) -> None:
    """Cancel the reservations of a run that does not start, as far as possible."""
    for one in releases:
        with suppress(ModicumError):  # It expires anyway, and the cause was reported.
            ledger.cancel(one, reason=reason)


def begin(entry: Entry, contract: Contract) -> int:
    """Count a run, and spend its loss: rows may be read from here on."""
    terms = contract.terms
    assert isinstance(terms, QueryTerms | TaskTerms)
    for charge in terms.charges:
        # A release started earlier may have been disclosed: then this refuses.
        step(ReleaseStarted(charge.release), entry)
    run = entry.book.state.escrow.flow(contract.digest).runs + 1
    entry.add(FlowBegun(contract.digest, run))
    return run


def rows_of(entry: Entry, contract: Contract) -> Rows:
    """Return by data set where the rows of a contract lie, and how they are written."""
    data = entry.book.state.escrow.data
    rows = {}
    for one in contract.data.values():
        version = data[one.id].versions[one.number]
        rows[one.id] = Sealed(programs.of_data(one), version.sealed), version.media
    return rows


@contextmanager
def opened(
    tools: Tools, rows: Rows, work: Callable[..., Work], *given: object
) -> Iterator[Apart]:
    """Open and check rows in a separate process, before a run starts.

    If that fails, the reservation stays valid, and the next run uses it.
    """
    opens = [sealed.id for sealed, _ in rows.values()]
    with ExitStack() as stack:
        try:
            process = tools.equipment.apart(
                work, tools.engines, rows, *given, opens=opens, still=tools.still
            )
            apart = stack.enter_context(process)
            tools.still()
        except ModicumError as error:
            notes = ("nothing was spent; the reservation remains for the next run",)
            raise type(error)(
                *(replace(one, notes=(*one.notes, *notes)) for one in error.problems)
            ) from None
        yield apart


def carried_out(
    ledger: Ledger,
    tools: Tools,
    contract: Contract,
    run: int,
    work: Callable[[], Mapping[str, str]],
    resources: ExitStack | None = None,
) -> Ran:
    """Do the work of a started run, and withhold its results."""
    digest, results = contract.digest, dict[str, str]()
    try:
        with resources or ExitStack():
            results = dict(work())
    except Exception:  # noqa: BLE001 - it may quote rows; the failure is reported below
        results.clear()
    except BaseException:  # An interrupted run does not wait for an unavailable ledger.
        with suppress(ModicumError):
            ledger.turn(partial(_record_failure, FlowWithheld(digest, run, {})))
        raise
    event = FlowWithheld(digest, run, results)
    retry(ledger, tools.equipment, partial(_record_failure, event))
    if not results:
        raise _ended(contract)
    return Ran()


def _record_failure(event: FlowWithheld, entry: Entry) -> None:
    """Write how a run ended."""
    flow = entry.book.state.escrow.flow(event.contract)
    if event.results and not flow.results:
        entry.add(event)
    else:  # Or another run of it left results first.
        entry.add(FlowFailed(event.contract, event.run))


def _ended(contract: Contract) -> ModicumError:
    return UnavailableError(
        Problem(
            Code.ENGINE_FAILED,
            f"a run of the contract `{contract.id}` ended without a result",
            notes=(
                "the reason is hidden: it may reveal facts about rows",
                "the use is counted, and its loss is spent",
            ),
            help="its owners may check the data, and try the query on a copy",
        )
    )
