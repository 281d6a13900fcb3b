"""Planning: which users are active when, and how much of their budget is open."""

from modicum.planner.outlook import Choice, Outlook, RoundOutlook, look_ahead
from modicum.planner.rotation import Rotation
from modicum.planner.unlocking import AtOnce, Schedule, Unlocking

__all__ = [
    "AtOnce",
    "Choice",
    "Outlook",
    "Rotation",
    "RoundOutlook",
    "Schedule",
    "Unlocking",
    "look_ahead",
]
