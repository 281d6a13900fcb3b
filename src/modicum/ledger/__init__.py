"""The ledger: a log of events and everything that is a fold of it.

Pure: events in, state out. The same events give the same digest on any machine;
no floats, clock, randomness or files are involved.
"""

from modicum.ledger.audit import AuditReport, audit
from modicum.ledger.balances import Balances
from modicum.ledger.chain import (
    GENESIS,
    ChainBreakError,
    Record,
    event_of,
    read_record,
    seal,
)
from modicum.ledger.decide import RuleLoss, Verdict, decide
from modicum.ledger.events import Event, RecordedRelease, record_release
from modicum.ledger.life import ReleaseStatus, Standing
from modicum.ledger.state import LossChange, State

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
