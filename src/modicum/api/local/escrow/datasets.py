"""Data sets: registration in the vault and destruction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

from modicum.api.local.balances import Entry, LedgerBalances
from modicum.api.local.escrow import programs
from modicum.api.local.escrow.declared_tables import declared_table
from modicum.api.local.escrow.execution import Tools
from modicum.api.local.escrow.retry import Ledger
from modicum.api.local.governance.approval_cases import active_policy, reason_text
from modicum.api.ports.engine import Engines
from modicum.api.ports.escrow import Equipment, Vault, Work
from modicum.core.document import from_python
from modicum.core.errors import (
    Code,
    ConflictError,
    InputError,
    Problem,
    UnavailableError,
)
from modicum.core.reader import text
from modicum.ledger.log.contracts import QueryTerms, TaskTerms, Version
from modicum.ledger.log.escrow_events import DataRegistered, DataShredded
from modicum.ledger.state.datasets import version_of
from modicum.ledger.state.escrow import Escrow
from modicum.query.tables import Table

#: Maximum number of version numbers skipped after crashes.
_NUMBERS_TRIED: Final = 100


@dataclass(frozen=True, slots=True)
class Ownership:
    """The owners of data, and the limits on its use.

    Attributes:
        owners: By name the keys, in hexadecimal, that their agreement must be signed
            with; none if it need not be signed.
        quorum: The number of owners that must agree to each flow.
        contracts_max: The maximum number of open contracts per analyst.
        bits_max: The maximum number of bits disclosed to one person outside
            differential privacy.
    """

    owners: Mapping[str, tuple[str, ...]]
    quorum: int
    contracts_max: int = 20
    bits_max: int = 0


@dataclass(frozen=True, slots=True)
class Declared:
    """The declaration of a data set.

    Attributes:
        table: A tables file that declares its table, as a text.
        media: The format of rows.
    """

    table: str
    media: Literal["csv", "parquet"] = "csv"


@dataclass(frozen=True, slots=True)
class GivenVersion:
    """A version of a data set to register.

    Attributes:
        name: The data set.
        content: Its rows.
        declared: Its declaration.
        owned: Its owners, for the first version; None for a later one.
    """

    name: str
    content: bytes = field(repr=False)
    declared: Declared
    owned: Ownership | None = None


def register(ledger: Ledger, tools: Tools, given: GivenVersion, actor: str) -> Version:
    """Put a version of a data set into the vault, and register it in one turn."""
    vault = tools.equipment.vault
    for who in given.owned.owners if given.owned else ():
        text(from_python(who), "the name of an owner", characters_max=200)
    book, _, _ = ledger.current()
    owns = _owned(book, given, actor)
    _refuse_look_alike(given.name, book.state.escrow)
    table = declared_table(given.declared.table, given.name, active_policy(book))
    with tools.equipment.apart(
        _look_work, tools.engines, given.content, given.declared.media, table
    ):
        pass  # It can be opened, and is as declared.
    for number in range(owns.next, owns.next + _NUMBERS_TRIED):
        version = Version(given.name, number)
        try:
            sealed = vault.seal(programs.of_data(version), given.content)
        except ConflictError:
            continue  # It was begun before, and its entry was never written.
        body = _registered(given, owns.owned, number, sealed.digest)
        try:
            done = ledger.turn(partial(_added, body))
        except UnavailableError:
            raise  # It is unknown whether it was written; `_left_behind` cleans up.
        except Exception:  # Nothing was written.
            vault.shred(programs.of_data(version))
            raise
        for number_left in _left_behind(ledger, given.name):
            vault.shred(programs.of_data(Version(given.name, number_left)))
        return done
    raise ConflictError(
        Problem(
            Code.CONTRACT_REFUSED,
            f"no version number is left for the data set `{given.name}`",
            help="check that this is the right vault",
        )
    )


def _look_work(
    equipment: Equipment, engines: Engines, content: bytes, media: str, table: Table
) -> Work:
    with ExitStack() as stack:
        rows = stack.enter_context(equipment.rows_in(content, media, table.name))
        try:
            engine = stack.enter_context(
                engines.engine("duckdb", {table.name: rows}, "", spills=False)
            )
        except UnavailableError:
            raise InputError(
                Problem(
                    Code.DATA_NOT_AS_DECLARED,
                    f"the data of `{table.name}` cannot be opened",
                    help="check that the file is complete",
                )
            ) from None
        engine.fits(table)
        yield None
    return {}


def _refuse_look_alike(name: str, escrow: Escrow) -> None:
    """Refuse a name that queries could not distinguish from another one."""
    for other in escrow.data:
        if other != name and other.lower() == name.lower():
            raise InputError(
                Problem(
                    Code.DUPLICATE_NAME,
                    f"the data sets `{other}` and `{name}` differ in case only, and"
                    " queries ignore case",
                    help="register it under another name",
                )
            )


def _left_behind(ledger: Ledger, name: str) -> list[int]:
    """Return the numbers of versions that may be stored but were never registered.

    The fold accepts no number below the newest, so they can never be registered.
    """
    book, _, _ = ledger.current()
    known = book.state.escrow.data[name]
    return [one for one in range(1, known.last) if one not in known.versions]


def _maybe_put_in(ledger: Ledger, name: str) -> Iterator[int]:
    """Yield the numbers that a registration may have used that was never finished."""
    book, _, _ = ledger.current()
    last = book.state.escrow.data[name].last
    yield from range(last + 1, last + 1 + _NUMBERS_TRIED)


def shred(ledger: Ledger, vault: Vault, version: Version, reason: str) -> None:
    """Destroy a version, and all withheld results computed from it."""

    def work(entry: Entry) -> list[str]:
        why = reason_text(reason, "shredding data")
        escrow = entry.book.state.escrow
        known = version_of(escrow.data, version)
        own = escrow.data[version.id].ownership.is_owner(entry.actor)
        if not (known.shredded and own):  # The fold refuses who does not own it.
            entry.add(DataShredded(version.id, version.number, why))
        return _derived(escrow, version)

    for place in ledger.turn(work):
        vault.shred(place)
    for number in _left_behind(ledger, version.id):
        vault.shred(programs.of_data(Version(version.id, number)))
    for number in _maybe_put_in(ledger, version.id):
        # A concurrent registration then fails because the version is gone.
        place = programs.of_data(Version(version.id, number))
        if vault.find(place) is not None:
            vault.shred(place)


@dataclass(frozen=True, slots=True)
class _Owns:
    """The owners of a new version, and its number if it is free."""

    owned: Ownership
    next: int


def _owned(book: LedgerBalances, given: GivenVersion, actor: str) -> _Owns:
    name, owned = given.name, given.owned
    known = book.state.escrow.data.get(name)
    if known is not None:
        own = known.ownership
        if not own.is_owner(actor):
            raise ConflictError(
                Problem(
                    Code.CONTRACT_REFUSED,
                    f"`{actor}` does not own the data set `{name}`",
                    help="only an owner can register a version",
                )
            )
        limits = known.contracts_max, known.bits_max
        before = Ownership(own.owners, own.quorum, *limits)
        return _Owns(owned or before, known.last + 1)
    if owned is None:
        raise InputError(
            Problem(
                Code.MISSING_KEY,
                f"the data set `{name}` is new, and has no owners",
                help="name its owners, and how many of them must approve",
            )
        )
    return _Owns(owned, 1)


def _derived(escrow: Escrow, version: Version) -> list[str]:
    """Return where a version lies, and all that was computed of it."""
    found = [programs.of_data(version)]
    for flow in escrow.flows.values():
        if version in flow.contract.data.values() and flow.computes:
            terms = flow.contract.terms
            assert isinstance(terms, QueryTerms | TaskTerms)
            found += [
                programs.of_result(flow.contract.digest, run, name)
                for run in range(1, flow.runs + 1)
                for name in terms.results
            ]
    return found


def _registered(
    given: GivenVersion, owned: Ownership, number: int, sealed: str
) -> DataRegistered:
    return DataRegistered(
        id=given.name,
        version=number,
        sealed=sealed,
        media=given.declared.media,
        table=given.declared.table,
        owners=owned.owners,
        quorum=owned.quorum,
        contracts_max=owned.contracts_max,
        bits_max=owned.bits_max,
    )


def _added(body: DataRegistered, entry: Entry) -> Version:
    entry.add(body)
    return Version(body.id, body.version)
