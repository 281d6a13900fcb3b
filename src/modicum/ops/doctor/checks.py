"""All checks, in order; and the shareable report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from modicum.api.ports.storage import Clock, HeadWitness, MaintainedStore
from modicum.core.errors import Code, ModicumError
from modicum.ops.doctor.findings import Diagnosis, Fact, Finding, Status, of_error
from modicum.ops.doctor.machine import (
    check_clock,
    check_libraries,
    check_python,
    requirements,
)
from modicum.ops.doctor.sandboxes import check_sandboxes
from modicum.system.files import write_whole

if TYPE_CHECKING:
    from modicum.api.ports.escrow import Sandbox


def examine(
    ledger: str | None,
    clock: Clock,
    *,
    deep: bool = False,
    on_entry: Callable[[int], None] | None = None,
    boxes: Iterable[Sandbox] = (),
    witness: HeadWitness | None = None,
) -> Diagnosis:
    """Return the findings about this machine, and a ledger. Adds no entry."""
    findings = [*check_machine(clock), *check_sandboxes(boxes)]
    if ledger is not None:
        findings.extend(
            _check_ledger(ledger, clock, witness, deep=deep, on_entry=on_entry)
        )
    return Diagnosis(findings)


def check_machine(clock: Clock) -> Iterator[Finding]:
    """Yield the findings about this machine."""
    yield check_python()
    yield from check_libraries(requirements(metadata.requires("modicum") or ()))
    yield check_clock(clock)


def write_bundle(path: Path, diagnosis: Diagnosis) -> None:
    """Write the shareable facts into a file, as JSON."""
    document = {
        "modicum": "doctor/v1",
        "checks": [one.to_facts() for one in diagnosis.findings],
    }
    text = json.dumps(document, indent=2, allow_nan=False)
    write_whole(path, [text.encode("ascii"), b"\n"])


def _check_ledger(
    ledger: str,
    clock: Clock,
    witness: HeadWitness | None,
    *,
    deep: bool,
    on_entry: Callable[[int], None] | None,
) -> Iterator[Finding]:
    from modicum.api.local import Workspace
    from modicum.ops.doctor.log import Opened, check_log, check_snapshot
    from modicum.ops.doctor.witness import check_witness
    from modicum.storage.factory import open_store
    from modicum.storage.sqlite_store import SqliteStore

    store = open_store(ledger)
    is_file = isinstance(store, SqliteStore)
    found = _check_tables(store, "sqlite" if is_file else "postgresql")
    yield found
    if found.status is Status.FAIL:
        return
    if is_file:
        from modicum.ops.doctor.sqlite_file import check_file

        yield from check_file(ledger)
    else:
        from modicum.ops.doctor.postgres import check_server

        yield from check_server(ledger)
    opened = Opened(ledger, store, Workspace(store, clock, snapshots=store), clock)
    state = yield from check_log(opened, deep=deep, on_entry=on_entry)
    if state is not None:
        yield check_snapshot(store, state)
        yield check_witness(store, witness, state.seq)
    if witness is not None:
        witness.close()
    store.close()


def _check_tables(store: MaintainedStore, kind: str) -> Finding:
    try:
        stored, current = store.table_versions()
    except ModicumError as error:
        if error.code is Code.NOT_A_LEDGER:
            raise
        return of_error("store", error)
    facts: dict[str, Fact] = {"kind": kind, "tables": stored, "current": current}
    message = f"{store.name}, tables of version {stored}"
    if stored != current:
        message += f"; {current} is current"
        return Finding("store", Status.WARN, message, "run  modicum db upgrade", facts)
    return Finding("store", Status.OK, message, facts=facts)
