"""Rows as their owners look at them: their own data, which flows to nobody else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from modicum.api.local.escrow import places
from modicum.api.local.escrow.ledger import Ledger
from modicum.api.ports.escrow import Equipment, Sealed
from modicum.core.errors import Code, ConflictError, Problem
from modicum.ledger.log.contracts import Version
from modicum.ledger.state.datasets import DataSet, version_of


@contextmanager
def own_rows(
    ledger: Ledger, equipment: Equipment, actor: str, versions: Iterable[Version]
) -> Iterator[Mapping[str, object]]:
    """Yield the rows of versions of data sets by name, to an owner of all of them.

    Args:
        ledger: The ledger; nothing is written to it.
        equipment: Where the rows lie.
        actor: Who looks.
        versions: The versions.

    Raises:
        ConflictError: If they do not own one of the data sets, or it was shredded.
        InputError: If there is no such version.
        UnavailableError: If a key cannot be had.
        VerificationError: If something is not what was put in.
    """
    # No entry says that an owner looked. A contract is for what flows to others, and
    # here nothing does; while a log that told who looked, and when, would tell
    # analysts which decisions came after somebody saw rows.
    book, _, _ = ledger.look()
    data, asked = book.state.escrow.data, tuple(versions)
    for one in asked:  # All of them, before a key of any is asked for.
        _must_own(data, one, actor)
    with ExitStack() as stack:
        found = {}
        for one in asked:
            version = data[one.id].versions[one.number]
            sealed = Sealed(places.of_data(one), version.sealed)
            found[one.id] = stack.enter_context(equipment.rows(sealed, version.media))
        yield found


def _must_own(data: Mapping[str, DataSet], one: Version, actor: str) -> None:
    version = version_of(data, one)
    if not data[one.id].ownership.is_owner(actor):
        raise _refused(
            f"`{actor}` does not own the data set `{one.id}`",
            "only an owner of every data set of a query looks at its rows",
        )
    if version.shredded:
        raise _refused(
            f"version {one.number} of the data set `{one.id}` was shredded",
            "nobody can read it any more",
        )


def _refused(message: str, remedy: str) -> ConflictError:
    return ConflictError(Problem(Code.CONTRACT_REFUSED, message, help=remedy))
