"""The product's verbs, over ports that the shell must offer."""

from typing import TYPE_CHECKING

from modicum.core.facade import facade

if TYPE_CHECKING:
    from modicum.workspace.bringing_in import Submission, prepared
    from modicum.workspace.decision import Decision
    from modicum.workspace.ports import Clock, EventStore, Turn
    from modicum.workspace.workspace import Workspace

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
        "modicum.workspace.bringing_in": "Submission prepared",
        "modicum.workspace.decision": "Decision",
        "modicum.workspace.ports": "Clock EventStore Turn",
        "modicum.workspace.workspace": "Workspace",
    },
)
