"""Every workload by its name."""

from __future__ import annotations

from modicum.core.errors import Code, InputError, Problem
from modicum.workloads.cohere import ALIASES, MIXES, Recipe, cohere
from modicum.workloads.dpolicy import ROUNDS as SCENARIO_ROUNDS
from modicum.workloads.dpolicy import SCENARIOS, dpolicy
from modicum.workloads.model import ROUNDS, Workload

#: The names of workloads.
NAMES = (*MIXES, *ALIASES, *SCENARIOS)


def generated(name: str, recipe: Recipe | None = None) -> Workload:
    """Return a workload.

    Args:
        name: One of `NAMES`, in capitals or not.
        recipe: Its parameters; as published, with seed 0, by default.

    Raises:
        InputError: If the name or something in the recipe is unknown or out of range.

    Examples:
        >>> workload = generated("w4", Recipe(rounds=2, seed=7))
        >>> first = workload.requests.of_round(workload.first_round)
        >>> first.of_type(0).name, int(first.width[0]), int(first.utility[0])
        ('laplace elephant', 1339, 928)
    """
    own = recipe or Recipe(rounds=usual_rounds(name))
    make = dpolicy if name.lower() in SCENARIOS else cohere
    return make(name, own)


def usual_rounds(name: str) -> int:
    """Return how many rounds the published workload of a name has.

    Args:
        name: One of `NAMES`, in capitals or not.

    Raises:
        InputError: If there is none of that name.
    """
    lower = name.lower()
    if lower not in NAMES:
        raise InputError(
            Problem(
                Code.UNKNOWN_CHOICE,
                f"unknown workload `{name[:40]}`",
                help=f"choose one of {', '.join(NAMES)}",
            )
        )
    return SCENARIO_ROUNDS if lower in SCENARIOS else ROUNDS
