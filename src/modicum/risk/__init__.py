"""The meaning of an epsilon for the people in a table: influence, indicator, choice.

Nearly everything here is computed from rows, without noise. It is for the data
controller only, and carries a claim that states this.
"""

from __future__ import annotations

from importlib import import_module

from modicum.core.extras import needing_extras

#: Much of `mo.risk.…` reads data, which nothing in this layer does: it is imported from
#: another layer on first use.
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
