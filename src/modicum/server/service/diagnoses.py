"""The checks of the doctor, on a ledger that is served."""

from __future__ import annotations

from collections.abc import Iterator

from modicum.api.local.ledger_view import LedgerView
from modicum.api.permissions.actions import Action
from modicum.api.permissions.identity import Identity
from modicum.ops.doctor.checks import check_machine
from modicum.ops.doctor.findings import Diagnosis, Fact, Finding, Status
from modicum.ops.doctor.log import Opened, check_log
from modicum.ops.doctor.witness import check_witness
from modicum.server.service.threads import Threads
from modicum.system.clock import SystemClock
from modicum.writer.readiness import Outcome
from modicum.writer.service import Decider


class Diagnoses:
    """The findings about the machine and the log.

    Args:
        decider: The ledger.
        threads: The thread pools.
    """

    def __init__(self, decider: Decider, threads: Threads) -> None:
        self._decider = decider
        self._threads = threads

    async def diagnosis(self, who: Identity) -> Diagnosis:
        """Return the findings.

        Args:
            who: The caller.

        Raises:
            AccessError: If they may read neither the ledger nor metrics.
        """
        if not who.may(Action.READ_LEDGER):
            who.must(Action.READ_METRICS)
        clock = SystemClock()

        def read_view(view: LedgerView) -> Diagnosis:
            opened = Opened("", self._decider.log(), view, clock)
            return Diagnosis([*machine, ready, *self._of_ledger(opened)])

        ready = _check_readiness(self._decider.readiness.outcome())
        # Outside of the ledger's reads, which wait for one another.
        machine = await self._threads.ponder(lambda: [*check_machine(clock)])
        return await self._threads.study(read_view)

    def _of_ledger(self, opened: Opened) -> Iterator[Finding]:
        state = yield from check_log(opened, deep=False)
        if state is not None:
            yield check_witness(opened.store, self._decider.witness, state.seq)


def _check_readiness(ready: Outcome) -> Finding:
    """Return what `/readyz` is answered by."""
    facts: dict[str, Fact] = {"writable": ready.is_writable, "behind": ready.is_behind}
    if not ready.codes:
        return Finding("readiness", Status.OK, "requests can be decided", facts=facts)
    facts["code"] = ready.codes[0].value
    message = "nothing can be decided: " + ", ".join(one.value for one in ready.codes)
    return Finding("readiness", Status.FAIL, message, facts=facts)
