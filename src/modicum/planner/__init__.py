"""Which requests of a round to accept, and what a workload would get.

`rotation`, `unlocking` and `outlook` say who is active and how much of a budget is
open. `rounds` makes the problem of a round out of requests and of what was spent;
`allocating` solves it; `verifying` looks at every solution once more, and `explaining`
says what stands in a request's way. `simulating` does all that for made-up workloads.
A new solver goes into `allocating` and gets its name in `simulating.setting`; a new way
to be charged is a new module of `rounds`.
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
