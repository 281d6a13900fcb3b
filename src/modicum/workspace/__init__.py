"""The product's verbs, over ports that the shell must offer."""

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
