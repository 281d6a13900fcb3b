"""What an epsilon means for the people in a table: influence, indicator, choice.

Nearly everything here is computed from rows, without noise. It is for the controller of
the data only, and carries a claim that says so.
"""

from __future__ import annotations

from importlib import import_module

#: What people call as `mo.risk.…`. What looks at data is in the shell, where nothing on
#: this floor may be: each is found when it is first used.
_SHELL = "modicum.shell.risks"
_HOMES = {
    "PUBLISHED": _SHELL,
    "Risk": _SHELL,
    "choose_publicly": _SHELL,
    "count": _SHELL,
    "grid": _SHELL,
    "rdr": _SHELL,
    "LaplaceNoise": "modicum.risk.noise",
    "GaussianNoise": "modicum.risk.noise",
    "Wish": "modicum.risk.choosing.priorities",
    "by_priority": "modicum.risk.choosing.priorities",
    "RatioAtLeast": "modicum.risk.choosing.thresholds",
    "PublishedOdometer": "modicum.risk.choosing.above_spent",
    "find_above_spent": "modicum.risk.choosing.above_spent",
    "find_from_pri": "modicum.risk.choosing.from_pri",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        message = f"module `modicum.risk` has no attribute `{name}`"
        raise AttributeError(message)
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOMES)
