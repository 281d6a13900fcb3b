"""Selecting the requests of a round, and simulating workloads.

`rotation` and `outlook` determine who is active and how much of a budget is unlocked.
`rounds` builds the problem of a round from requests and charges; `allocation` solves
it; `verification` checks every solution, and `obstacles` gives the reasons against a
request. `simulation` does all that for synthetic workloads, `ledger_round` for a
ledger. A new solver goes into `allocation` and gets its name in `simulation.setting`; a
new way to be charged is a new module of `rounds`.
"""

from typing import TYPE_CHECKING

from modicum.core.facade import facade

if TYPE_CHECKING:
    from modicum.accounting.filters.unlock_schedule import AtOnce, Schedule, Unlocking
    from modicum.planner.outlook import Choice, Outlook, RoundOutlook, look_ahead
    from modicum.planner.rotation import Rotation

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

__getattr__ = facade(
    __name__,
    {
        "modicum.accounting.filters.unlock_schedule": "AtOnce Schedule Unlocking",
        "modicum.planner.outlook": "Choice Outlook RoundOutlook look_ahead",
        "modicum.planner.rotation": "Rotation",
    },
)
