"""Opening the ledger of a command, or explaining why it cannot be one."""

from __future__ import annotations

import errno
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from modicum.cli.options import DEFAULT_LEDGER, shown
from modicum.cli.output import note
from modicum.core.errors import Code, Problem, UsageError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from modicum.api.local import Workspace
    from modicum.api.local.ledger_view import LedgerView
    from modicum.api.ports.storage import MaintainedStore
    from modicum.reports.sources import Source

#: So much of a name that is too long is shown.
_SHOWN = 60


def open_workspace(
    ledger: str, *, policy: Path | None = None, actor: str | None = None
) -> Workspace:
    """Return a ledger to work with. It is there: only `modicum init` begins one."""
    workspace = open_or_create(ledger, policy=policy, actor=actor)
    if not workspace.exists():
        raise no_ledger_at(ledger)
    return workspace


def open_or_create(
    ledger: str, *, policy: Path | None, actor: str | None = None
) -> Workspace:
    """Return a ledger to work with; it need not be there yet."""
    from modicum.ops import wiring

    refuse_no_ledger(ledger)
    return wiring.open_workspace(ledger, policy=policy, actor=actor)


def open_view(
    ledger: str, *, policy: Path | None = None, as_of: int | str | None = None
) -> LedgerView:
    """Return a view of a ledger. With a policy, an empty ledger may replace it.

    Args:
        ledger: Its path or URL.
        policy: The policy file; None for the ledger's active policy.
        as_of: A point in the past to look at it as it was; None for now.

    Raises:
        UsageError: If there is none, and no policy; or it was not there then.
        InputError: If the policy is malformed.
    """
    view = open_or_create(ledger, policy=policy)
    if policy is None and not view.exists():
        raise no_ledger_at(ledger)
    return view if as_of is None else view.as_of(as_of)


def note_if_empty(view: LedgerView, ledger: str) -> None:
    """Warn on standard error that an empty ledger is used, since there is none."""
    if not view.exists():
        note(f"note: there is no ledger at {shown(ledger)}: using an empty one")


def no_ledger_at(ledger: str) -> UsageError:
    """Return the mistake of a ledger that is not there."""
    given = "" if ledger == DEFAULT_LEDGER else f" --ledger {shown(ledger)}"
    begin = f"modicum init --policy policy.yaml{given}"
    remedy = f"correct --ledger, or create one with  {begin}"
    return _refusal(f"there is no ledger at {shown(ledger)}", remedy)


def open_log(ledger: str) -> MaintainedStore:
    """Return the store of a ledger that is there."""
    from modicum.storage.proofs import ledger_log

    refuse_no_ledger(ledger)
    return ledger_log.open_log(ledger)


def current_log(ledger: str) -> MaintainedStore:
    """Return the store of a ledger that is there, and not behind its witness."""
    from modicum.ops import wiring

    if wiring.witness_named() is not None:
        refuse_no_ledger(ledger)
        store = wiring.opened_store(ledger)
        store.record(1)
        store.close()
    return open_log(ledger)


def opened_source(bundle: Path | None, ledger: str) -> AbstractContextManager[Source]:
    """Return a bundle, or else a ledger, to be opened for a report."""
    from modicum.reports.sources import opened_bundle, opened_ledger

    if bundle is not None:
        return opened_bundle(bundle)
    current_log(ledger)
    return opened_ledger(ledger)


def refuse_no_ledger(ledger: str) -> None:
    """Refuse a name that neither is a ledger file nor can be one. Writes nothing."""
    if not ledger.strip() or "\0" in ledger:
        raise _refusal("the ledger's name is empty, or contains a NUL character")
    from modicum.storage.factory import open_store
    from modicum.storage.sqlite_store import SqliteStore

    if not isinstance(open_store(ledger), SqliteStore):
        return
    path = Path(ledger)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        folder = path.resolve().parent
        if not folder.is_dir():
            raise _refusal(f"there is no folder {folder}", "create it first") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            called = f"{ledger[:_SHOWN]}…"
            raise _refusal(f"the ledger's name is too long: {called}") from error
        reason = (error.strerror or "it cannot be read").lower()
        raise _refusal(f"cannot read {ledger}: {reason}") from error
    else:
        _refuse_other_than_file(ledger, mode)


def _refuse_other_than_file(ledger: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        inside = Path(ledger, "ledger.db")
        problem = f"{ledger} is a folder, not a ledger"
        raise _refusal(problem, f"name a file in it, such as {inside}")
    if not stat.S_ISREG(mode):
        raise _refusal(f"{ledger} is not a file: it cannot hold a ledger")


def _refusal(
    problem: str, remedy: str = "name a file, or run  modicum init"
) -> UsageError:
    return UsageError(Problem(Code.LEDGER_MISSING, problem, help=remedy))
