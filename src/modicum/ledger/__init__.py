"""The log of events and all that follows from it: state, balances, decisions.

Pure: events in, state out. The same events give the same digest on any machine;
no floats, clock, randomness or files are involved.
"""

from typing import TYPE_CHECKING

from modicum.core.facade import facade

if TYPE_CHECKING:
    from modicum.ledger.decision.balances import Balances
    from modicum.ledger.decision.decide import Verdict, decide
    from modicum.ledger.decision.single_release import RuleLoss
    from modicum.ledger.log.chain import (
        GENESIS,
        ChainBreakError,
        Record,
        event_of,
        read_record,
        seal,
    )
    from modicum.ledger.log.events import Event
    from modicum.ledger.log.recorded_release import RecordedRelease, record_release
    from modicum.ledger.proof.audit import AuditReport, audit
    from modicum.ledger.state.lifecycle import ReleaseStatus, Standing
    from modicum.ledger.state.state import LossChange, State

__all__ = [
    "GENESIS",
    "AuditReport",
    "Balances",
    "ChainBreakError",
    "Event",
    "LossChange",
    "Record",
    "RecordedRelease",
    "ReleaseStatus",
    "RuleLoss",
    "Standing",
    "State",
    "Verdict",
    "audit",
    "decide",
    "event_of",
    "read_record",
    "record_release",
    "seal",
]

__getattr__ = facade(
    __name__,
    {
        "modicum.ledger.decision.balances": "Balances",
        "modicum.ledger.decision.decide": "Verdict decide",
        "modicum.ledger.decision.single_release": "RuleLoss",
        "modicum.ledger.log.chain": (
            "GENESIS ChainBreakError Record event_of read_record seal"
        ),
        "modicum.ledger.log.events": "Event",
        "modicum.ledger.log.recorded_release": "RecordedRelease record_release",
        "modicum.ledger.proof.audit": "AuditReport audit",
        "modicum.ledger.state.lifecycle": "ReleaseStatus Standing",
        "modicum.ledger.state.state": "LossChange State",
    },
)
