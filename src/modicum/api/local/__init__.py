"""The product's operations on a ledger: check, submit, govern, plan, query."""

from typing import TYPE_CHECKING

from modicum.core.facade import facade

if TYPE_CHECKING:
    from modicum.api.local.decision import Decision
    from modicum.api.local.submit import Submission, prepared
    from modicum.api.local.workspace import Workspace
    from modicum.api.ports.storage import Clock, EventStore, Turn

__all__ = [
    "Clock",
    "Decision",
    "EventStore",
    "Submission",
    "Turn",
    "Workspace",
    "prepared",
]

__getattr__ = facade(
    __name__,
    {
        "modicum.api.local.submit": "Submission prepared",
        "modicum.api.local.decision": "Decision",
        "modicum.api.ports.storage": "Clock EventStore Turn",
        "modicum.api.local.workspace": "Workspace",
    },
)
