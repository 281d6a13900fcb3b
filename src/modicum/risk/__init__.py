"""What an epsilon means for the people in a table: influence, indicator, choice.

Nearly everything here is computed from rows, without noise. It is for the controller of
the data only, and carries a claim that says so.
"""

from __future__ import annotations

from importlib import import_module

from modicum.core.extras import needing_extras

#: Much of what people call as `mo.risk.…` looks at data, which nothing on this floor
#: does: it is found in the shell, when it is first used.
_IN_THE_SHELL = frozenset(
    {
        "PUBLISHED",
        "GaussianNoise",
        "LaplaceNoise",
        "PublishedOdometer",
        "RatioAtLeast",
        "Risk",
        "Wish",
        "by_priority",
        "choose_publicly",
        "count",
        "find_above_spent",
        "find_from_pri",
        "grid",
        "rdr",
    }
)


def __getattr__(name: str) -> object:
    if name not in _IN_THE_SHELL:
        message = f"module `modicum.risk` has no attribute `{name}`"
        raise AttributeError(message)
    with needing_extras():
        value: object = getattr(import_module("modicum.risk.measurement"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_IN_THE_SHELL)
