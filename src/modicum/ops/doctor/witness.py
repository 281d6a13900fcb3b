"""The check of a ledger's witness: is there one, and does the log contain its head?"""

from __future__ import annotations

from modicum.api.ports.storage import EventStore, HeadWitness
from modicum.core.errors import ModicumError
from modicum.ops.doctor.findings import Fact, Finding, Status, of_error
from modicum.storage.witness.heads import KnownHead

_NAME = "set  witness  in the server's settings, or MODICUM_WITNESS"


def check_witness(
    store: EventStore, witness: HeadWitness | None, entries: int
) -> Finding:
    """Return whether a log contains the head that its witness has.

    Args:
        store: The log; it may be a witnessed one.
        witness: The witness; None if none is set.
        entries: The number of the log's last entry.
    """
    if witness is None:
        message = "none: a new process cannot notice that entries were lost"
        return Finding("witness", Status.OK, message, _NAME, {"kind": "none"})
    facts: dict[str, Fact] = {"kind": witness.kind}
    try:
        line = witness.latest()
        if line is None:
            message = f"{witness.name} has no head yet"
            return Finding("witness", Status.WARN, message, facts=facts)
        head = KnownHead.read_line(line, witness.name)
        head.must_be(store.record(head.seq), store.name)
        is_beside = witness.is_beside(store.name)
    except ModicumError as error:
        return of_error("witness", error)
    ahead = max(0, entries - head.seq)
    facts |= {"ahead": ahead, "signed": bool(head.key), "beside": is_beside}
    message = f"{witness.name} has entry {head.seq}; the ledger is {ahead} ahead"
    if is_beside:
        message += "; both are on one disk, or in one database"
        remedy = "move it: what is lost or restored together is no witness"
        return Finding("witness", Status.WARN, message, remedy, facts)
    if not head.key:
        message += "; it is not signed"
    return Finding("witness", Status.OK, message, facts=facts)
